"""What benchmarks on data sets share: files of rows, and files of what came out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


def stored(path: Path) -> Any:
    """The only array of an .npz file, or its CSR matrix."""
    with np.load(path) as kept:
        names = kept.files
        if len(names) == 1:
            return kept[names[0]]
    return sparse.load_npz(path).tocsr()


def add_line(path: Path | None, record: Any) -> None:
    """Add a record to a file of them, where one is asked for."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

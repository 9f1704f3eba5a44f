"""Estimates in files: npz without pickles, named by all that they depend on."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma.study.records import write_whole

PARTS = ("data", "indices", "indptr", "shape")  # of a CSR array


@dataclass(frozen=True)
class Stored:
    """Arrays, dense or CSR, what the estimator said, and how long it took."""

    arrays: Mapping[str, Any]
    report: dict[str, Any]
    seconds: float


def path_of(folder: Path, dataset: str, estimator: str, known_by: Mapping[str, Any]) -> Path:
    """Where estimates are kept."""
    text = json.dumps(known_by, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return folder / f"{Path(dataset).name}-{estimator}-{digest}.npz"


def write(path: Path, kept: Stored) -> None:
    """Write all, or nothing."""
    said = json.dumps({"report": kept.report, "seconds": kept.seconds}, allow_nan=False)
    flat: dict[str, Any] = {"said": np.array(said)}
    for name, array in kept.arrays.items():
        if sparse.issparse(array):
            flat |= {f"{name}.{part}": getattr(array, part) for part in PARTS}
        else:
            flat[name] = array
    write_whole(path, lambda file: np.savez(file, **flat))


def read(path: Path) -> Stored | None:
    """What was kept; nothing where there is no such file, or half of one."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            said = json.loads(str(file["said"]))
            names = {name.partition(".")[0] for name in file.files if name != "said"}
            arrays = {name: _array(file, name) for name in names}
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError):
        return None
    return Stored(arrays, said["report"], said["seconds"])


def _array(file: Any, name: str) -> Any:
    if name in file.files:
        return file[name]
    data, indices, indptr, shape = (file[f"{name}.{part}"] for part in PARTS)
    return sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))

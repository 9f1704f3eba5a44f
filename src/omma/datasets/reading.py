"""Files in any format that is known, chosen by how their names end."""

from __future__ import annotations

from pathlib import Path

from omma.datasets.dataset import Dataset
from omma.datasets.formats.folder import read_folder


def read(path: str | Path) -> Dataset:
    """Read a dataset."""
    return read_folder(path)

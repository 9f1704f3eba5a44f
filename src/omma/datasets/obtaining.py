"""Datasets of the catalogue that are not kept in the folder of data yet."""

from __future__ import annotations

from pathlib import Path

from omma.datasets.dataset import Dataset
from omma.datasets.entry import Entry


def obtain(entry: Entry, root: Path | None, *, download: bool) -> Dataset:
    """Read what the provider gives, or say where to get it."""
    if root is None:
        raise FileNotFoundError(
            f"{entry.name} is looked up in the folder of data: set the environment variable "
            "OMMA_DATA to it, or pass folder="
        )
    raise FileNotFoundError(
        f"{root / entry.name} does not hold {entry.name}: put X.npz, Y.npz and meta.json there; "
        f"it comes from {entry.source}"
    )

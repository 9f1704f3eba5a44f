"""Datasets by name, or from a path."""

from __future__ import annotations

import os
from pathlib import Path

from omma._validate import nearest
from omma.datasets.catalogue import CATALOGUE
from omma.datasets.dataset import Dataset
from omma.datasets.formats.folder import is_folder, read_folder

VARIABLE = "OMMA_DATA"


def load(name: str | Path, folder: str | Path | None = None, *, download: bool = False) -> Dataset:
    """A dataset by its name in the catalogue, or from a path.

    A name is looked up in the folder of data: there, ``<name>/`` holds ``X.npz``, ``Y.npz`` and
    ``meta.json``, or the files of the provider. Nothing is downloaded unless asked for.

    Parameters
    ----------
    name : str or Path
        A name in ``CATALOGUE``, the name of a folder inside the folder of data, or a path to a
        folder or file that ``read`` knows.
    folder : str or Path, optional
        The folder of data; by default the environment variable ``OMMA_DATA`` names it.
    download : bool
        Get the files if they are not there, and keep them in the folder of data.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.datasets import Dataset, load, write_folder
    >>> write_folder(Dataset("toy", "binary", X=np.eye(4), y=[0, 1, 0, 0]), "data/toy")
    >>> load("toy", folder="data").n
    4
    >>> load("data/toy").n
    4
    """
    root = data_folder(folder)
    if root is not None and is_folder(root / name):
        return read_folder(root / name)
    if str(name) in CATALOGUE:
        from omma.datasets.obtaining import obtain

        return obtain(CATALOGUE[str(name)], root, download=download)
    if Path(name).exists():
        from omma.datasets.reading import read

        return read(name)
    where = f", {root} has no such folder" if root is not None else ""
    raise ValueError(
        f"name of load must be in the catalogue or be a path, got {str(name)!r}{where}"
        f"{nearest(str(name), CATALOGUE)}"
    )


def data_folder(folder: str | Path | None = None) -> Path | None:
    """The folder of data: as given, or as the environment says, or None."""
    if folder is not None:
        return Path(folder)
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None

"""Datasets by name, or from a path: kept in the folder of data, or brought there."""

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse

from omma.datasets import Dataset, read, read_folder, write_folder
from omma_study.checks import choice
from omma_study.datasets.catalogue import CATALOGUE
from omma_study.datasets.downloads import download_files, fetch
from omma_study.datasets.entry import Entry

VARIABLE = "OMMA_DATA"


def load(
    name: str | Path,
    folder: str | Path | None = None,
    *,
    download: bool = False,
    unverified: bool = False,
) -> Dataset:
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
    unverified : bool
        Download also files whose SHA-256 the catalogue does not know: whatever their address
        gives is taken, and a warning tells its SHA-256. scikit-learn verifies its own downloads.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.datasets import Dataset, write_folder
    >>> from omma_study.datasets import load
    >>> write_folder(Dataset("toy", "binary", X=np.eye(4), y=[0, 1, 0, 0]), "data/toy")
    >>> load("toy", folder="data").n
    4
    >>> load("data/toy").n
    4
    """
    named = folder or os.environ.get(VARIABLE)
    root = Path(named).expanduser() if named else None
    if root is not None and _is_folder(root / name):
        return read_folder(root / name)
    if str(name) in CATALOGUE:
        return _obtained(CATALOGUE[str(name)], root, download, unverified)
    if Path(name).exists():
        return read(name)
    choice(f"name of load, which is no path and no folder of {root},", str(name), CATALOGUE)
    raise AssertionError  # choice has raised


def _is_folder(path: Path) -> bool:
    return all((path / name).is_file() for name in ("X.npz", "Y.npz", "meta.json"))


def _obtained(entry: Entry, root: Path | None, download: bool, unverified: bool) -> Dataset:
    """Read the files of the provider if they are there; else get them, if that was asked for."""
    if root is None:
        raise FileNotFoundError(
            f"{entry.name} is looked up in the folder of data: set the environment variable "
            "OMMA_DATA to it, or pass folder="
        )
    home, instead = root / entry.name, _by_hand(entry)
    there = bool(entry.files) and all((home / file.name).is_file() for file in entry.files)
    if not download and not there:
        raise FileNotFoundError(f"{home} does not hold {entry.name}: {instead}")
    if not download:
        return _read(entry, home)
    if not there and not entry.downloadable:
        raise FileNotFoundError(f"{entry.name} cannot be downloaded by itself: {instead}")
    unknown = [file.name for file in entry.files if file.sha256 is None]
    if unknown and not there and not unverified:
        raise ValueError(
            f"{entry.name} is not downloaded: the catalogue has no SHA-256 of "
            f"{' and '.join(unknown)} to verify it by; {_by_hand(entry, ask=False)}; or pass "
            "unverified=True to load, which takes what the address gives and tells its SHA-256"
        )
    if entry.reader.startswith("fetch "):
        data = _checked(entry, fetch(entry, instead))
    else:
        download_files(entry, home, instead)
        data = _read(entry, home)
    write_folder(data, home, source=entry.source, licence=entry.licence, note=entry.note)
    return data


def _by_hand(entry: Entry, ask: bool = True) -> str:
    """What to do, in words."""
    files = " and ".join(file.name for file in entry.files)
    either = f"{files}, or " if files else ""
    first = "pass download=True to load, or " if ask and entry.downloadable else ""
    return (
        f"{first}put {either}X.npz, Y.npz and meta.json there, from {entry.source}; OMMA_DATA or "
        f"folder= names the folder that {entry.name}/ is in"
    )


def _read(entry: Entry, home: Path) -> Dataset:
    """The files of the provider, prepared as the entry says."""
    first, *test = [home / file.name for file in entry.files]
    options = {**entry.options, **({"test": test[0]} if test else {})}
    data = read(first, entry.reader, **options)
    return _checked(entry, PREPARATIONS[entry.prepare](data) if entry.prepare else data)


def _checked(entry: Entry, data: Dataset) -> Dataset:
    """Named as in the catalogue, with a warning if the numbers are others."""
    for key in ("task", "n", "d", "m", "split"):
        expected, got = getattr(entry, key), getattr(data, key)
        if expected != got and not (key == "d" and expected is None):
            warnings.warn(
                f"{key} of {entry.name} is {expected} in the catalogue, got {got}: the source may "
                "have changed",
                stacklevel=2,
            )
    return replace(data, name=entry.name)


def _unit_rows(data: Dataset) -> Dataset:
    """Every row scaled to unit length; rows of zeros stay."""
    matrix = sparse.csr_array(data.X)
    squares = matrix.multiply(matrix).sum(axis=1, dtype=np.float64)
    length = np.sqrt(np.asarray(squares).ravel())
    scale = 1.0 / np.where(length > 0, length, 1.0)
    return replace(data, X=sparse.diags_array(scale) @ matrix)


PREPARATIONS: dict[str, Callable[[Dataset], Dataset]] = {
    "unit rows": _unit_rows,
    # Rows in random order, always the same.
    "shuffled": lambda data: data.take(np.random.default_rng(0).permutation(data.n)),
    # Most features are zero, so that CSR is smaller.
    "sparse": lambda data: replace(data, X=sparse.csr_array(data.X)),
}

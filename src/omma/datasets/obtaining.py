"""Datasets of the catalogue that are not kept in the folder of data yet."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from omma.datasets.dataset import Dataset
from omma.datasets.entry import Entry
from omma.datasets.formats.folder import write_folder
from omma.datasets.preparing import PREPARATIONS
from omma.datasets.reading import FORMATS


def obtain(entry: Entry, root: Path | None, *, download: bool) -> Dataset:
    """Read the files of the provider if they are there; else get them, if that was asked for."""
    if root is None:
        raise FileNotFoundError(
            f"{entry.name} is looked up in the folder of data: set the environment variable "
            "OMMA_DATA to it, or pass folder="
        )
    home = root / entry.name
    if not download:
        if not _at_hand(entry, home):
            raise FileNotFoundError(f"{home} does not hold {entry.name}: {by_hand(entry, home)}")
        return _read(entry, home)
    data = _fetched(entry, home)
    write_folder(data, home, source=entry.source, licence=entry.licence, note=entry.note)
    return data


def by_hand(entry: Entry, home: Path) -> str:
    """What to do, in words."""
    files = " and ".join(file.name for file in entry.files)
    either = f"{files}, or " if files else ""
    ask = "pass download=True to load, or " if entry.downloadable else ""
    return (
        f"{ask}put {either}X.npz, Y.npz and meta.json there, from {entry.source}; OMMA_DATA or "
        f"folder= names the folder that {entry.name}/ is in"
    )


def _at_hand(entry: Entry, home: Path) -> bool:
    return bool(entry.files) and all((home / file.name).is_file() for file in entry.files)


def _fetched(entry: Entry, home: Path) -> Dataset:
    """From the files of the provider, which are downloaded where they are missing."""
    if _at_hand(entry, home):
        return _read(entry, home)
    if not entry.downloadable:
        raise FileNotFoundError(
            f"{entry.name} cannot be downloaded by itself: {by_hand(entry, home)}"
        )
    if entry.reader.startswith("fetch "):
        from omma.datasets.fetching import fetch

        return _checked(entry, fetch(entry, by_hand(entry, home)))
    from omma.datasets.downloading import download_files

    download_files(entry, home, by_hand(entry, home))
    return _read(entry, home)


def _read(entry: Entry, home: Path) -> Dataset:
    """The files of the provider, prepared as the entry says."""
    paths = [home / file.name for file in entry.files]
    data = FORMATS[entry.reader](*paths, **entry.options)
    prepare = PREPARATIONS[entry.prepare] if entry.prepare else None
    return _checked(entry, prepare(data) if prepare else data)


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

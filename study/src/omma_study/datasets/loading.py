"""Datasets by name, or from a path: read from the folder of data, or downloaded to it.

Files come from their providers by pooch, or by the fetchers of scikit-learn.
"""

import os
import sys
import tarfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pooch
from scipy import sparse
from sklearn import datasets as fetchers
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import maxabs_scale, minmax_scale, normalize

from omma.datasets import Dataset, read, read_folder, write_folder
from omma_study.checks import choice
from omma_study.datasets.catalogue import CATALOGUE, Entry, File

VARIABLE = "OMMA_DATA"
TIMEOUT = 60  # seconds without an answer
LARGEST_MEMBER = 1 << 30  # bytes that one file of an archive may unpack to
COVERS = (
    "Spruce/Fir",
    "Lodgepole Pine",
    "Ponderosa Pine",
    "Cottonwood/Willow",
    "Aspen",
    "Douglas-fir",
    "Krummholz",
)
WORDS = [1, 2, 3]  # columns of kddcup99 that hold words: protocol, service, flag


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
    place = folder or os.environ.get(VARIABLE)
    root = Path(place).expanduser() if place else None
    parts = ("X.npz", "Y.npz", "meta.json")
    if root is not None and all((root / name / part).is_file() for part in parts):
        return read_folder(root / name)
    if str(name) not in CATALOGUE and Path(name).exists():
        return read(name)
    owner = f"name of load, which is no path and no folder of {root},"
    return _from_provider(
        CATALOGUE[choice(owner, str(name), CATALOGUE)], root, download, unverified
    )


def _from_provider(entry: Entry, root: Path | None, download: bool, unverified: bool) -> Dataset:
    """Read the files of the provider if they are there; else get them, if that was asked for."""
    if root is None:
        raise FileNotFoundError(
            f"{entry.name} is looked up in the folder of data: set the environment variable "
            "OMMA_DATA to it, or pass folder="
        )
    home = root / entry.name
    # What users can do if a download is not possible.
    files = " and ".join(file.name for file in entry.files)
    by_hand = (
        f"put {f'{files}, or ' if files else ''}X.npz, Y.npz and meta.json there, from "
        f"{entry.source}; OMMA_DATA or folder= names the folder that {entry.name}/ is in"
    )
    instead = f"{'pass download=True to load, or ' if entry.downloadable else ''}{by_hand}"
    has_files = bool(entry.files) and all((home / file.name).is_file() for file in entry.files)
    if not download:
        if not has_files:
            raise FileNotFoundError(f"{home} does not hold {entry.name}: {instead}")
        return _read(entry, home)
    if not has_files and not entry.downloadable:
        raise FileNotFoundError(f"{entry.name} cannot be downloaded by itself: {instead}")
    without_hash = [file.name for file in entry.files if file.sha256 is None]
    if without_hash and not has_files and not unverified:
        raise ValueError(
            f"{entry.name} is not downloaded: the catalogue has no SHA-256 of "
            f"{' and '.join(without_hash)} to verify it by; {by_hand}; or pass "
            "unverified=True to load, which takes what the address gives and tells its SHA-256"
        )
    fetched, tried = None, entry.source
    try:
        if entry.reader.startswith("fetch "):
            fetched = FETCHERS[entry.reader.removeprefix("fetch ")]()
        for file in entry.files:
            tried = str(file.url)
            if not (home / file.name).is_file():
                download_file(file, home)
    except OSError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        short = reason if len(reason) <= 120 else reason[:119] + "…"
        raise OSError(f"{entry.name} could not be had from {tried} ({short}): {instead}") from error
    data = _read(entry, home) if fetched is None else _checked(entry, fetched)
    write_folder(data, home, source=entry.source, licence=entry.licence, note=entry.note)
    return data


def download_file(file: File, home: Path) -> None:
    """Get a file from its address; of an archive, one plain file of it."""
    url = str(file.url)
    path = pooch.retrieve(
        url,
        known_hash=file.sha256 and f"sha256:{file.sha256}",
        fname=url.rpartition("/")[2] if file.member else file.name,
        path=home,
        downloader=pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT),
    )
    if file.sha256 is None:
        warnings.warn(
            f"{file.name} was downloaded from {url} and not verified: its SHA-256 is "
            f"{pooch.file_hash(path)}",
            stacklevel=4,
        )
    if file.member is None:
        return
    # An archive's own names and links lead nowhere: only the content of one member is written.
    with tarfile.open(path) as archive:
        info = next((info for info in archive if info.name == file.member), None)
        if info is None:
            raise ValueError(f"{path}: expected a file {file.member}, got none")
        content = archive.extractfile(info) if info.isreg() else None
        if content is None:
            raise ValueError(
                f"{path}: expected a plain file {file.member}, got another kind of entry"
            )
        if info.size > LARGEST_MEMBER:
            raise ValueError(
                f"{path}: expected at most {LARGEST_MEMBER:,} bytes in {file.member}, got "
                f"{info.size:,}"
            )
        (home / file.name).write_bytes(content.read())


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


PREPARATIONS: dict[str, Callable[[Dataset], Dataset]] = {
    # In double precision; rows of zeros stay.
    "unit rows": lambda data: replace(data, X=normalize(sparse.csr_array(data.X, dtype=float))),
    # Rows in random order, always the same.
    "shuffled": lambda data: data.take(np.random.default_rng(0).permutation(data.n)),
    # Most features are zero, so that CSR is smaller.
    "sparse": lambda data: replace(data, X=sparse.csr_array(data.X)),
}


def news20() -> Dataset:
    """20 Newsgroups by date as tf-idf, which is fitted on the training part."""
    train, test = (
        fetchers.fetch_20newsgroups(subset=part, shuffle=True, random_state=0)
        for part in ("train", "test")
    )
    vectors = TfidfVectorizer(sublinear_tf=True, min_df=3, max_features=50_000, dtype=np.float32)
    features = sparse.vstack([vectors.fit_transform(train.data), vectors.transform(test.data)])
    target = np.concatenate([train.target, test.target])
    split = len(train.data)
    return Dataset("news20", "multiclass", features, target, split, train.target_names)


def covtype() -> Dataset:
    """Forest cover types, every column scaled to [0, 1]."""
    features, target = fetchers.fetch_covtype(return_X_y=True)
    # By all rows, as there is no test part; a constant column is 0.
    scaled = minmax_scale(features)
    return Dataset("covtype", "multiclass", scaled, target.astype(np.int64) - 1, labels=COVERS)


def kddcup99() -> Dataset:
    """Network connections without duplicates: logarithms of numbers, indicators of words."""
    rows, attacks = fetchers.fetch_kddcup99(percent10=True, return_X_y=True)
    table = pd.DataFrame(rows).assign(attack=attacks).drop_duplicates()
    # Words come as bytes; attacks end with a full stop.
    words = table[[*WORDS, "attack"]].map(
        lambda cell: cell.decode() if isinstance(cell, bytes) else str(cell)
    )
    names, ids = np.unique(words["attack"].str.rstrip(".").to_list(), return_inverse=True)
    # log(1 + x), each column divided by its maximum.
    numbers = np.log1p(table.drop(columns=[*WORDS, "attack"]).to_numpy(np.float64))
    blocks: list[Any] = [sparse.csr_array(maxabs_scale(numbers))]
    # A column for each word, in the order of the alphabet.
    blocks += [sparse.csr_array(pd.get_dummies(words[j], dtype=np.float32)) for j in WORDS]
    features = sparse.csr_array(sparse.hstack(blocks, format="csr"))
    # Columns of the numbers may be zero in all rows.
    used = np.unique(features.indices)
    return Dataset("kddcup99", "multiclass", features[:, used], ids, labels=names.tolist())


def rcv1() -> Dataset:
    """The whole of RCV1-v2, training part first."""
    bunch = fetchers.fetch_rcv1(subset="all")
    names = [str(name) for name in bunch.target_names]
    return Dataset("rcv1", "multilabel", bunch.data, bunch.target, 23149, names)


FETCHERS: dict[str, Callable[[], Dataset]] = {
    "news20": news20,
    "covtype": covtype,
    "kddcup99": kddcup99,
    "rcv1": rcv1,
}

"""Sets of the catalogue from where their providers keep them, by pooch or scikit-learn."""

import sys
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from scipy import sparse
from sklearn import datasets as fetchers
from sklearn.feature_extraction.text import TfidfVectorizer

from omma.datasets import Dataset
from omma_study.datasets.entry import Entry, File

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
WORDS = (1, 2, 3)  # columns of kddcup99 that hold words: protocol, service, flag


def download_files(entry: Entry, home: Path, instead: str) -> None:
    """Get every file of the entry that is missing; ``instead`` says what to do if that fails."""
    for file in entry.files:
        if (home / file.name).is_file():
            continue
        try:
            _download(file, home)
        except OSError as error:
            raise unreachable(entry, str(file.url), error, instead) from error


def unreachable(entry: Entry, tried: str, error: Exception, instead: str) -> OSError:
    """One sentence: what was tried, what came, what to do instead."""
    reason = " ".join(str(error).split()) or type(error).__name__
    short = reason if len(reason) <= 120 else reason[:119] + "…"
    return OSError(f"{entry.name} could not be had from {tried} ({short}): {instead}")


def _download(file: File, home: Path) -> None:
    url = str(file.url)
    archive = pooch.retrieve(
        url,
        known_hash=file.sha256 and f"sha256:{file.sha256}",
        fname=url.rpartition("/")[2] if file.member else file.name,
        path=home,
        downloader=pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT),
    )
    if file.sha256 is None:
        warnings.warn(
            f"{file.name} was downloaded from {url} and not verified: its SHA-256 is "
            f"{pooch.file_hash(archive)}",
            stacklevel=4,
        )
    if file.member:
        _unpack(archive, file.member, home / file.name)


def _unpack(archive: str, member: str, path: Path) -> None:
    """Write one plain file of a tar archive; its own names and links lead nowhere."""
    with tarfile.open(archive) as packed:
        info = next((info for info in packed if info.name == member), None)
        if info is None:
            raise ValueError(f"{archive}: expected a file {member}, got none")
        content = packed.extractfile(info) if info.isreg() else None
        if content is None:
            raise ValueError(
                f"{archive}: expected a plain file {member}, got another kind of entry"
            )
        if info.size > LARGEST_MEMBER:
            raise ValueError(
                f"{archive}: expected at most {LARGEST_MEMBER:,} bytes in {member}, got "
                f"{info.size:,}"
            )
        path.write_bytes(content.read())


def fetch(entry: Entry, instead: str) -> Dataset:
    """Fetch a set by scikit-learn; ``instead`` says what to do if that fails."""
    try:
        return FETCHERS[entry.reader.removeprefix("fetch ")]()
    except OSError as error:
        raise unreachable(entry, entry.source, error, instead) from error


def news20() -> Dataset:
    """20 Newsgroups by date as tf-idf, which is fitted on the training part."""
    train, test = (
        fetchers.fetch_20newsgroups(subset=part, shuffle=True, random_state=0)
        for part in ("train", "test")
    )
    vectors = TfidfVectorizer(sublinear_tf=True, min_df=3, max_features=50_000, dtype=np.float32)
    features = [vectors.fit_transform(train.data), vectors.transform(test.data)]
    target = np.concatenate([train.target, test.target])
    return Dataset(
        "news20",
        "multiclass",
        sparse.vstack(features),
        target,
        features[0].shape[0],
        train.target_names,
    )


def covtype() -> Dataset:
    """Forest cover types, every column scaled to [0, 1]."""
    features, target = fetchers.fetch_covtype(return_X_y=True)
    low, high = features.min(axis=0), features.max(axis=0)
    scaled = (features - low) / np.where(high > low, high - low, 1.0)
    return Dataset("covtype", "multiclass", scaled, target.astype(np.int64) - 1, labels=COVERS)


def kddcup99() -> Dataset:
    """Network connections without duplicates: logarithms of numbers, indicators of words."""
    rows, attacks = fetchers.fetch_kddcup99(percent10=True, return_X_y=True)
    whole = ((*row, attack) for row, attack in zip(rows.tolist(), attacks.tolist(), strict=True))
    columns = list(zip(*dict.fromkeys(whole), strict=True))
    names, ids = np.unique(
        [_word(attack).rstrip(".") for attack in columns[-1]], return_inverse=True
    )
    numbers = [j for j in range(len(columns) - 1) if j not in WORDS]
    blocks = [_logarithms([columns[j] for j in numbers])]
    blocks += [_indicators(columns[j]) for j in WORDS]
    features = sparse.csr_array(sparse.hstack(blocks, format="csr"))
    used = np.unique(features.indices)
    return Dataset("kddcup99", "multiclass", features[:, used], ids, labels=names.tolist())


def rcv1() -> Dataset:
    """The whole of RCV1-v2, training part first."""
    bunch = fetchers.fetch_rcv1(subset="all")
    names = [str(name) for name in bunch.target_names]
    return Dataset("rcv1", "multilabel", bunch.data, bunch.target, 23149, names)


def _logarithms(columns: list[tuple[Any, ...]]) -> sparse.csr_array:
    """log(1 + x), each column divided by its maximum."""
    table = np.log1p(np.array(columns, dtype=np.float64).T)
    highest = table.max(axis=0)
    scaled = sparse.csr_array(table / np.where(highest > 0, highest, 1.0))
    scaled.eliminate_zeros()
    return scaled


def _indicators(column: tuple[Any, ...]) -> sparse.csr_array:
    """One column for each word, in the order of the alphabet."""
    words, ids = np.unique([_word(cell) for cell in column], return_inverse=True)
    ones = np.ones(len(ids), np.float32)
    return sparse.csr_array((ones, (np.arange(len(ids)), ids)), shape=(len(ids), len(words)))


def _word(cell: Any) -> str:
    return cell.decode() if isinstance(cell, bytes) else str(cell)


FETCHERS: dict[str, Callable[[], Dataset]] = {
    "news20": news20,
    "covtype": covtype,
    "kddcup99": kddcup99,
    "rcv1": rcv1,
}

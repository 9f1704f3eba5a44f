"""Sets that scikit-learn fetches, made into features the way their entries tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.datasets.dataset import Dataset
from omma.datasets.downloading import require, unreachable
from omma.datasets.entry import Entry
from omma.datasets.formats.part import identify

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


def fetch(entry: Entry, instead: str) -> Dataset:
    """Fetch a set by scikit-learn; ``instead`` says what to do if that fails."""
    fetchers = require("sklearn.datasets", "sklearn")
    name = entry.reader.removeprefix("fetch ")
    try:
        return FETCHERS[name](fetchers)
    except OSError as error:
        raise unreachable(entry, entry.source, error, instead) from error


def news20(fetchers: Any) -> Dataset:
    """20 Newsgroups by date as tf-idf, which is fitted on the training part."""
    train, test = (
        fetchers.fetch_20newsgroups(subset=part, shuffle=True, random_state=0)
        for part in ("train", "test")
    )
    text = require("sklearn.feature_extraction.text", "sklearn")
    vectors = text.TfidfVectorizer(
        sublinear_tf=True, min_df=3, max_features=50_000, dtype=np.float32
    )
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


def covtype(fetchers: Any) -> Dataset:
    """Forest cover types, every column scaled to [0, 1]."""
    features, target = fetchers.fetch_covtype(return_X_y=True)
    low, high = features.min(axis=0), features.max(axis=0)
    scaled = (features - low) / np.where(high > low, high - low, 1.0)
    return Dataset("covtype", "multiclass", scaled, target.astype(np.int64) - 1, labels=COVERS)


def kddcup99(fetchers: Any) -> Dataset:
    """Network connections without duplicates: logarithms of numbers, indicators of words."""
    rows, attacks = fetchers.fetch_kddcup99(percent10=True, return_X_y=True)
    whole = ((*row, attack) for row, attack in zip(rows.tolist(), attacks.tolist(), strict=True))
    kept = list(dict.fromkeys(whole))
    columns = list(zip(*kept, strict=True))
    ids, names = identify([_word(attack).rstrip(".") for attack in columns[-1]])
    numbers = [j for j in range(len(columns) - 1) if j not in WORDS]
    blocks = [_logarithms([columns[j] for j in numbers])]
    blocks += [_indicators(columns[j]) for j in WORDS]
    features = sparse.csr_array(sparse.hstack(blocks, format="csr"))
    used = np.unique(features.indices)
    return Dataset("kddcup99", "multiclass", features[:, used], ids, labels=names)


def rcv1(fetchers: Any) -> Dataset:
    """The whole of RCV1-v2, training part first."""
    bunch = fetchers.fetch_rcv1(subset="all")
    names = [str(name) for name in bunch.target_names]
    return Dataset("rcv1", "multilabel", bunch.data, bunch.target, 23149, names)


def _logarithms(columns: list[tuple[Any, ...]]) -> sparse.csr_array:
    """log(1 + x), each column divided by its maximum."""
    table: NDArray[np.float64] = np.log1p(np.array(columns, dtype=np.float64).T)
    highest = table.max(axis=0)
    scaled = sparse.csr_array(table / np.where(highest > 0, highest, 1.0))
    scaled.eliminate_zeros()
    return scaled


def _indicators(column: tuple[Any, ...]) -> sparse.csr_array:
    """One column for each word, in the order of the alphabet."""
    ids, words = identify([_word(cell) for cell in column])
    ones = np.ones(len(ids), np.float32)
    return sparse.csr_array((ones, (np.arange(len(ids)), ids)), shape=(len(ids), len(words)))


def _word(cell: Any) -> str:
    return cell.decode() if isinstance(cell, bytes) else str(cell)


FETCHERS: dict[str, Callable[[Any], Dataset]] = {
    "news20": news20,
    "covtype": covtype,
    "kddcup99": kddcup99,
    "rcv1": rcv1,
}

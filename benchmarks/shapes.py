"""Synthetic data of the paper's shapes, with a long tail of rare labels.

Probabilities are exact: labels are drawn from them. Everything is vectorized, so that the largest
shape (26 million stored entries) takes seconds.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import omma

LABELS_PER_ROW = 5.0  # stored labels that are true
MISSED = 0.3  # true labels a row that the model did not store


@dataclass(frozen=True)
class Shape:
    """What to generate: ``kind`` is "dense", "csr" or "classes"."""

    kind: str
    n: int
    m: int
    entries: int = 0  # stored a row, for "csr"

    def __str__(self) -> str:
        return f"{self.n:,}×{self.m:,}"

    def data(self, seed: int = 0) -> tuple[Any, Any]:
        """Probabilities, and labels drawn from them."""
        if self.kind == "csr":
            return csr(self.n, self.m, self.entries, seed)
        if self.kind == "classes":
            return classes(self.n, self.m, seed)
        return omma.datasets.long_tail(n=self.n, m=self.m, seed=seed)


def classes(n: int, m: int, seed: int = 0) -> tuple[Any, Any]:
    """Probabilities that sum to one, and a class id a row."""
    rng = np.random.default_rng(seed)
    scores = 2.0 * rng.standard_normal((n, m)) - np.log(np.arange(1, m + 1))
    eta = np.exp(scores - scores.max(axis=1, keepdims=True))
    eta /= eta.sum(axis=1, keepdims=True)
    y = (eta.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return eta, np.minimum(y, m - 1)


def csr(n: int, m: int, entries: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows of about ``entries`` stored float32 probabilities, as an extreme classifier gives."""
    rng = np.random.default_rng(seed)
    ids, lengths = draw_ids(rng, n, m, entries)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    log_odds = rng.standard_normal(len(ids), dtype=np.float32) * 1.5
    log_odds += np.float32(np.log(LABELS_PER_ROW / entries) - 1.5**2 / 2)
    eta = 1.0 / (1.0 + np.exp(-log_odds))
    true = rng.random(len(ids), dtype=np.float32) < eta
    rows = np.repeat(np.arange(n, dtype=np.int32), lengths)[true]
    missed = np.flatnonzero(rng.random(n) < MISSED).astype(np.int32)
    rows = np.concatenate((rows, missed))
    columns = np.concatenate((ids[true], rng.integers(m, size=len(missed), dtype=np.int32)))
    y = sparse.csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(n, m))
    y.data[:] = 1  # a missed label may be a stored one after all
    return sparse.csr_array((eta, ids, indptr.astype(np.int32)), shape=(n, m)), y


def draw_ids(rng: Any, n: int, m: int, entries: int) -> tuple[Any, Any]:
    """Rising label ids of each row, label j about in proportion to 1 / (j + entries / 5).

    One uniform number from each of some equal parts of [0, 1] goes through the inverse of the
    distribution: ids come sorted, and only neighbours can be alike.
    """
    start = entries / 5
    draws = round(1.01 * entries)  # some are alike
    places = rng.random((n, draws), dtype=np.float32)
    places += np.arange(draws, dtype=np.float32)
    places *= np.float32(np.log1p(m / start) / draws)
    np.expm1(places, out=places)
    places *= np.float32(start)
    ids = np.minimum(places.astype(np.int32), m - 1)
    new = np.ones(ids.shape, dtype=bool)
    np.not_equal(ids[:, 1:], ids[:, :-1], out=new[:, 1:])
    return ids[new], new.sum(axis=1)

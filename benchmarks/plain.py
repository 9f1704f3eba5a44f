"""OMMA written the plain way: NumPy, autograd, and a loop over rows in Python.

It shares nothing with omma. Four count vectors start at the prior; each row takes the gradient of
the metric at the counts so far, for the labels that the row has (all of them if it is dense).
"""

from collections.abc import Callable, Iterator
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import grad
from scipy import sparse

TP, FP, FN, TN = range(4)
EPSILON = 1e-9


def f1(c: Any) -> Any:
    """2·tp / (2·tp + fp + fn)."""
    twice = 2 * c[TP]
    return twice / (twice + c[FP] + c[FN] + EPSILON)


def recall(c: Any) -> Any:
    """tp / (tp + fn)."""
    return c[TP] / (c[TP] + c[FN] + EPSILON)


def gmean(c: Any) -> Any:
    """√(recall · specificity)."""
    return anp.sqrt(recall(c) * (c[TN] / (c[TN] + c[FP] + EPSILON)))


# By name; ψ of one label for micro averages, and the logarithm of a mean, which ranks as it does.
METRICS: dict[str, Callable[[Any], Any]] = {
    "macro_f1": lambda c: anp.mean(f1(c)),
    "macro_gmean": lambda c: anp.mean(gmean(c)),
    "micro_f1": f1,
    "multiclass_gmean": lambda c: anp.mean(anp.log(recall(c) + EPSILON)),
}


class PlainOMMA:
    """The algorithm of the paper, a row at a time."""

    def __init__(self, metric: str, m: int, k: int | None, prior: float = 1e-6) -> None:
        self.gradient = grad(METRICS[metric])
        self.micro = metric.startswith("micro")
        self.k = k
        self.counts = np.full((4, m), prior)
        self.mean = np.full(4, prior)  # of the counts over labels
        self.n = 4 * prior
        self.predicted = np.zeros(m, dtype=bool)

    def predict(self, eta: np.ndarray, labels: Any = slice(None)) -> np.ndarray:
        """The positions chosen from a row: gains α·η − β of at least zero, or the k best."""
        counts = self.mean if self.micro else self.counts[:, labels]
        g = self.gradient(counts / self.n)
        alpha = g[TP] + g[TN] - g[FP] - g[FN]
        beta = g[TN] - g[FP]
        gains = alpha * eta - beta
        if self.k is None:
            return np.flatnonzero(gains >= 0)
        return np.sort(np.argsort(-gains, kind="stable")[: self.k])

    def update(self, true: np.ndarray, chosen: np.ndarray) -> None:
        """Count the true and the chosen labels of a row."""
        self.predicted[chosen] = True
        hits = true[self.predicted[true]]
        self.predicted[chosen] = False
        counts = self.counts
        counts[TN] += 1
        counts[FP, chosen] += 1
        counts[TN, chosen] -= 1
        counts[FN, true] += 1
        counts[TN, true] -= 1
        counts[TP, hits] += 1
        counts[FP, hits] -= 1
        counts[FN, hits] -= 1
        counts[TN, hits] += 1
        self.n += 1
        if self.micro:
            tp, m = len(hits), counts.shape[1]
            fp, fn = len(chosen) - tp, len(true) - tp
            self.mean += np.array([tp, fp, fn, m - tp - fp - fn]) / m


def rows_of(matrix: Any) -> Iterator[Any]:
    """Each row of a CSR matrix as (label ids, values)."""
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        yield matrix.indices[start:stop], matrix.data[start:stop]


def labels_of(y: Any) -> list[np.ndarray]:
    """The label ids of each row of indicators, or of class ids."""
    if sparse.issparse(y):
        return [ids for ids, _ in rows_of(y)]
    if y.ndim == 1:
        return list(y[:, np.newaxis])
    return [np.flatnonzero(row) for row in y]


def replay(metric: str, eta: Any, y: Any, k: int | None) -> list[np.ndarray]:
    """The labels predicted for each row of a sequence."""
    policy = PlainOMMA(metric, eta.shape[1], k)
    predictions = []
    rows = rows_of(eta) if sparse.issparse(eta) else ((None, row) for row in eta)
    for (labels, values), true in zip(rows, labels_of(y), strict=True):
        if labels is None:
            chosen = policy.predict(values)
        else:
            chosen = labels[policy.predict(values, labels)]
        policy.update(true, chosen)
        predictions.append(chosen)
    return predictions

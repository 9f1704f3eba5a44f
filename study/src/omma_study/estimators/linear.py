"""A fitted linear model: weights and intercepts, turned into probabilities block by block."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from omma.rows.arrays import csr
from omma_study.estimators._shared import read_features, row_blocks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """What fitting a linear model gives.

    Attributes
    ----------
    weights : ndarray or CSR of shape (d, m)
    intercept : ndarray of shape (m,)
        Minus infinity for a label that was never seen: its probability is 0. Infinity for one
        that was seen in every row: its probability is 1.
    link : {"logistic", "softmax"}
        Each label by itself, or one class a row.
    keep : int, optional
        How many probabilities to keep in each row; the others are taken as zero, and the result is
        a CSR matrix.
    report : dict
        How it was fitted, in numbers and words that go into JSON.
    """

    weights: Any
    intercept: Floats
    link: str
    keep: int | None = None
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def n_labels(self) -> int:
        """How many labels or classes."""
        return len(self.intercept)

    def predict_proba(self, X: Any) -> Any:
        """Probability of each label in each row.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray of shape (n, m), or CSR where ``keep`` is given
        """
        X = read_features("predict_proba", X, self.weights.shape[0])
        n, m = X.shape[0], self.n_labels
        width = m + (0 if sparse.issparse(X) else X.shape[1])
        if self.keep is not None and self.keep < m:
            kept = [keep_largest(self._block(X[rows]), self.keep) for rows in row_blocks(n, width)]
            return stack(kept, m)
        eta = np.empty((n, m))
        for rows in row_blocks(n, width):
            eta[rows] = self._block(X[rows])
        return eta

    def _block(self, X: Any) -> Floats:
        scores = X @ self.weights
        scores = scores.toarray() if sparse.issparse(scores) else np.asarray(scores)
        scores = scores + self.intercept
        return probabilities(scores, self.link)


def probabilities(scores: Floats, link: str) -> Floats:
    """Scores (n, m) through the logistic function, or through softmax."""
    found = special.expit(scores) if link == "logistic" else special.softmax(scores, axis=1)
    return np.asarray(found, dtype=np.float64)


def keep_largest(eta: Floats, keep: int) -> Any:
    """The largest probabilities of each row as CSR, without zeros; ties go to the lowest label.

    >>> keep_largest(np.array([[0.2, 0.5, 0.2], [0.0, 0.0, 0.1]]), 2).toarray()
    array([[0.2, 0.5, 0. ],
           [0. , 0. , 0.1]])
    """
    m = eta.shape[1]
    least = np.partition(eta, m - keep, axis=1)[:, m - keep, np.newaxis]
    above = eta > least
    missing = keep - above.sum(axis=1, keepdims=True)
    level = eta == least
    kept = above | (level & (np.cumsum(level, axis=1) <= missing))
    kept &= eta > 0
    indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
    return csr((eta[kept], np.nonzero(kept)[1].astype(np.int32), indptr), eta.shape)


def stack(blocks: list[Any], m: int) -> Any:
    """Blocks of CSR rows as one matrix with int32 label ids."""
    if not blocks:
        return sparse.csr_array((0, m))
    data = np.concatenate([block.data for block in blocks])
    indices = np.concatenate([block.indices for block in blocks])
    lengths = np.concatenate([np.diff(block.indptr) for block in blocks])
    kind = np.int32 if len(data) < 2**31 else np.int64
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(kind)
    return csr((data, indices, indptr), (len(lengths), m))

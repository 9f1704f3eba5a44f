"""How sure values are: rows are drawn again, the same for all rules, and only counts are added.

Rows fall at random into at most a thousand groups, each with its counts; groups are drawn with
replacement. That estimates the same spread as drawing rows one by one, at a cost that does not
grow with their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.choice.truth import Truth
from omma.counts import Counts
from omma.metrics import Metric
from omma.state import in_proportion

GROUPS = 1000
ROOM = 1 << 23  # numbers worked on at a time
Array = NDArray[Any]


class Resampler:
    """Draws groups of rows; ``values`` of every rule are by the same draws."""

    def __init__(self, truth: Truth, metric: Metric, draws: int, seed: int) -> None:
        n = truth.n
        rng = np.random.default_rng(seed)
        groups = min(n, GROUPS)
        of_row = rng.permutation(n) % groups
        self.truth, self.metric, self.m = truth, metric, truth.m
        dealt = (truth.weight, (of_row, np.arange(n)))
        self._by_group = sparse.csr_array(dealt, shape=(groups, n))
        drawn = rng.multinomial(groups, np.full(groups, 1.0 / groups), size=draws)
        self.weights = np.vstack((np.ones(groups), drawn))  # the first is the rows as they are
        self.rows = self.weights @ np.bincount(of_row, truth.weight, minlength=groups)

    def values(self, predictions: Any) -> Array:
        """The metric of some predictions: on all rows, then on each draw of them."""
        found = self._by_group @ self._columns(sparse.csr_array(predictions))
        step = max(1, ROOM // max(1, found.shape[1]))
        values = []
        for start in range(0, len(self.weights), step):
            sums = np.asarray(self.weights[start : start + step] @ found)
            for one, n in zip(sums, self.rows[start : start + step], strict=True):
                values.append(self.metric.value(self._counts(one, float(n))))
        return np.array(values)

    def _columns(self, predictions: Any) -> Any:
        """What each row adds to the counts."""
        y, missing = self.truth.labels, self.truth.missing
        if not self.metric.needs_matrix:
            predicted = self.truth.where_known(predictions)
            every = [y.multiply(predicted), predicted, y, *([] if missing is None else [missing])]
            return sparse.csr_array(sparse.hstack(every, format="csr"))
        pairs = y.indices.astype(np.int64) * self.m + predictions.indices
        n = y.shape[0]
        return sparse.csr_array((np.ones(n), (np.arange(n), pairs)), shape=(n, self.m * self.m))

    def _counts(self, sums: Array, n: float) -> Counts:
        if self.metric.needs_matrix:
            return Counts.from_confusion(sums.reshape(self.m, self.m))
        cells, missed = sums[: 3 * self.m].reshape(3, self.m), sums[3 * self.m :]
        tp, predicted, positive = in_proportion(cells, n, missed if len(missed) else None)
        return Counts(tp, predicted, positive, n)

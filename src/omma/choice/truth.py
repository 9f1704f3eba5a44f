"""What decisions are judged by: true labels, where they are known, and what rows weigh.

How sure values are is told by rows that are drawn again, the same for all rules; only counts are
added. Rows fall at random into at most a thousand groups, each with its counts; groups are drawn
with replacement. That estimates the same spread as drawing rows one by one, at a cost that does not
grow with their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.counts import Counts
from omma.metrics import Metric
from omma.rows.batch import Batch
from omma.state import in_proportion

GROUPS = 1000
ROOM = 1 << 23  # numbers worked on at a time
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Truth:
    """True labels as a CSR matrix, a matrix of those that are unknown, and weights of the rows.

    ``missing`` is None where all labels are known.
    """

    labels: Any
    missing: Any
    weight: Vector

    @classmethod
    def of(cls, data: Batch) -> Truth:
        """The labels of a batch, whatever they came as; something is known of each row."""
        assert data.labels is not None
        starts, ends, ids = data.labels.block(np.arange(data.n, dtype=np.int64))
        if data.class_ids:
            found = (np.ones(data.n), ids, np.append(starts, ends[-1:]))
            labels = sparse.csr_array(found, shape=(data.n, data.m))
        else:
            labels = sparse.csr_array(data.labels.given, dtype=np.float64)
        weight = (
            np.asarray(data.weights, dtype=np.float64) if len(data.weights) else np.ones(data.n)
        )
        missing = data.labels.missing
        return cls(labels, None if missing is None else sparse.csr_array(missing), weight)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.labels.shape[0])

    @property
    def m(self) -> int:
        """Number of labels."""
        return int(self.labels.shape[1])

    @property
    def share(self) -> float:
        """How much of all labels is known."""
        return 1.0 if self.missing is None else 1.0 - self.missing.nnz / (self.n * self.m)

    @cached_property
    def _given(self) -> Any:
        """Labels with NaN where they are unknown."""
        return self.labels if self.missing is None else self.labels + np.nan * self.missing

    @cached_property
    def rows_known(self) -> Vector:
        """The weight of the rows in which each label is known."""
        every = np.full(self.m, self.weight.sum())
        return every if self.missing is None else every - self.weight @ self.missing

    def where_known(self, made: Any) -> Any:
        """Decisions on known labels alone."""
        return made if self.missing is None else made - made.multiply(self.missing)

    def counts(self, made: Any) -> Counts:
        """What decisions come to, each label in proportion to the rows in which it is known."""
        return Counts.from_labels(self._given, made, sample_weight=self.weight)

    def seen(self, made: Any) -> tuple[Vector, Vector, Vector]:
        """(tp, predicted, positive) of each label over the rows in which it is known."""
        predicted = self.where_known(made)
        every = (self.labels.multiply(predicted), predicted, self.labels)
        tp, chosen, positive = (self.weight @ one for one in every)
        return tp, chosen, positive

    def predicted(self, made: Any) -> Counts:
        """What is predicted in all rows, known or not."""
        none = np.zeros(self.m)
        return Counts(none, self.weight @ made, none, float(self.weight.sum()))


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

    def values(self, predictions: Any) -> Vector:
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

    def _counts(self, sums: Vector, n: float) -> Counts:
        if self.metric.needs_matrix:
            return Counts.from_confusion(sums.reshape(self.m, self.m))
        cells, missed = sums[: 3 * self.m].reshape(3, self.m), sums[3 * self.m :]
        tp, predicted, positive = in_proportion(cells, n, missed if len(missed) else None)
        return Counts(tp, predicted, positive, n)

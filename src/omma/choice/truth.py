"""What decisions are judged by: true labels, where they are known, and what rows weigh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.counts import Counts
from omma.rows.batch import Batch

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

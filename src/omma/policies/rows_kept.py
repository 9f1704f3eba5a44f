"""Rows that a learner keeps, in arrays with room at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.rows.arrays import DenseProbabilities, Probabilities, Rows, SparseProbabilities, csr
from omma.rows.batch import Batch
from omma.rows.labels import Labels
from omma.rows.row import SparseRow


class Growing:
    """An array with room at its end: appending copies it seldom."""

    def __init__(self, start: NDArray[Any]) -> None:
        self.room = start.copy()
        self.length = len(start)

    @property
    def values(self) -> NDArray[Any]:
        """What was appended."""
        used: NDArray[Any] = self.room[: self.length]
        return used

    def extend(self, more: NDArray[Any]) -> None:
        """Append some values."""
        needed = self.length + len(more)
        if needed > len(self.room):
            larger = np.empty(
                (max(needed, 2 * len(self.room)), *self.room.shape[1:]), self.room.dtype
            )
            larger[: self.length] = self.values
            self.room = larger
        self.room[self.length : needed] = more
        self.length = needed


class Kept:
    """Rows that a learner keeps: probabilities, dense or sparse, true labels and weights."""

    NAMES = ("values", "indices", "ends", "true", "true_ends", "weights")

    def __init__(self, m: int, thin: bool) -> None:
        self.m = m
        self.thin = thin
        self.values = Growing(np.empty(0) if thin else np.empty((0, m)))
        self.indices = Growing(np.empty(0, dtype=np.int32))
        self.ends = Growing(np.zeros(1, dtype=np.int64))
        self.true = Growing(np.empty(0, dtype=np.int32))
        self.true_ends = Growing(np.zeros(1, dtype=np.int64))
        self.weights = Growing(np.empty(0))

    def append(
        self, eta: NDArray[np.float64] | SparseRow, true: NDArray[np.int32], weight: float
    ) -> None:
        """Keep one more row, in the layout of the first one."""
        if isinstance(eta, tuple) and not self.thin:
            dense = np.zeros(self.m)
            dense[eta[0]] = eta[1]
            eta = dense
        elif not isinstance(eta, tuple) and self.thin:
            stored = np.flatnonzero(eta).astype(np.int32)
            eta = (stored, eta[stored])
        if isinstance(eta, tuple):
            self.indices.extend(eta[0])
            self.values.extend(eta[1])
        else:
            self.values.extend(eta[np.newaxis])
        self.ends.extend(np.array([self.indices.length]))
        self.true.extend(true)
        self.true_ends.extend(np.array([self.true.length]))
        self.weights.extend(np.array([weight]))

    def sample(self, limit: int | None) -> tuple[Batch, Rows]:
        """All rows, without a copy, and which of them are the latest."""
        count = self.weights.length
        latest = np.arange(0 if limit is None else max(0, count - limit), count, dtype=np.int64)
        ones = np.ones(self.true.length, dtype=np.int8)
        true = csr((ones, self.true.values, self.true_ends.values), (count, self.m))
        labels = Labels("OnlineFrankWolfe", "y", true, self.m, checked=True)
        eta: Probabilities
        if self.thin:
            parts = (self.values.values, self.indices.values, self.ends.values)
            eta = SparseProbabilities(csr(parts, (count, self.m)))
        else:
            eta = DenseProbabilities(self.values.values, vector=False)
        return Batch(eta, labels, self.weights.values), latest

    def forget(self, limit: int) -> None:
        """Drop all but the latest rows, once there are twice as many: that is seldom."""
        surplus = self.weights.length - limit
        if surplus < limit:
            return
        entries, labels = self.ends.values[surplus], self.true_ends.values[surplus]
        self.ends = Growing(self.ends.values[surplus:] - entries)
        self.true_ends = Growing(self.true_ends.values[surplus:] - labels)
        self.indices = Growing(self.indices.values[entries:])
        self.values = Growing(self.values.values[entries if self.thin else surplus :])
        self.true = Growing(self.true.values[labels:])
        self.weights = Growing(self.weights.values[surplus:])

    def check(self) -> None:
        """Refuse what came from a file and does not fit: kernels follow ids without looking."""
        count = self.weights.length
        shape = (self.indices.length,) if self.thin else (count, self.m)
        ids = (self.indices.values, self.true.values)
        ends = (self.ends.values, self.true_ends.values)
        fits = (
            self.values.values.shape == shape
            and all(len(one) == count + 1 and (np.diff(one) >= 0).all() for one in ends)
            and all(one[0] == 0 for one in ends)
            and ends[0][-1] == len(ids[0])
            and ends[1][-1] == len(ids[1])
            and all(((one >= 0) & (one < self.m)).all() for one in ids)
        )
        if not fits:
            raise ValueError("the rows kept do not fit together")

    def copy(self) -> Kept:
        """Rows that go their own way."""
        return Kept.from_arrays(self.m, self.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as plain arrays."""
        return {f"kept_{name}": getattr(self, name).values for name in self.NAMES}

    @classmethod
    def from_arrays(cls, m: int, arrays: dict[str, NDArray[Any]]) -> Kept:
        """What ``arrays`` gave."""
        made = cls(m, thin=arrays["kept_values"].ndim == 1)
        for name in cls.NAMES:
            kind = getattr(made, name).room.dtype
            setattr(made, name, Growing(np.array(arrays[f"kept_{name}"], dtype=kind)))
        made.check()
        return made

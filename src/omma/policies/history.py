"""The rows that online Frank-Wolfe keeps for its next run."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.rows.arrays import DenseProbabilities, Probabilities, SparseProbabilities, csr
from omma.rows.batch import Batch
from omma.rows.labels import TrueLabels
from omma.rows.row import Row

# Rows as arrays in a file: the entries of sparse rows one after another, and where each row ends.
DTYPES = {
    "values": np.float64,
    "indices": np.int32,
    "ends": np.int64,
    "true": np.int32,
    "true_ends": np.int64,
    "weights": np.float64,
}


class RowHistory:
    """Probabilities, true labels and weights of rows, all in the layout of the first one.

    A row is (label ids, probabilities, ids of true labels, weight); dense rows have all labels, and
    no ids.
    """

    def __init__(self, m: int, is_sparse: bool) -> None:
        self.m, self.is_sparse = m, is_sparse
        self.rows: deque[tuple[NDArray[Any], NDArray[Any], NDArray[Any], float]] = deque()

    def append(self, eta: Row, true: NDArray[np.int32], weight: float, limit: int | None) -> None:
        """Keep one more row, and no more than ``limit`` of the latest."""
        # Rows are kept in the layout of the first one, so that they stack into one batch.
        ids = np.empty(0, dtype=np.int32)
        if isinstance(eta, tuple):
            ids, values = eta
            if not self.is_sparse:
                dense = np.zeros(self.m)
                dense[ids] = values
                ids, values = ids[:0], dense
        else:
            values = eta.copy()  # the caller's array may change
            if self.is_sparse:
                ids = np.flatnonzero(eta).astype(np.int32)
                values = eta[ids]
        self.rows.append((ids, values, true, weight))
        # A loop, as a state from a file may have more rows than the policy wants now.
        while limit is not None and len(self.rows) > limit:
            self.rows.popleft()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All rows as plain arrays, for a file or a batch."""
        ids, values, true, weights = zip(*self.rows, strict=True) if self.rows else ((),) * 4
        arrays = {
            "values": np.concatenate(values or ([],)),
            "indices": np.concatenate(ids or ([],)),
            "ends": np.cumsum([0, *map(len, ids)]),
            "true": np.concatenate(true or ([],)),
            "true_ends": np.cumsum([0, *map(len, true)]),
            "weights": np.array(weights),
        }
        if not self.is_sparse:
            arrays["values"] = arrays["values"].reshape(len(weights), self.m)
        return {f"kept_{name}": arrays[name].astype(kind) for name, kind in DTYPES.items()}

    @classmethod
    def from_arrays(cls, m: int, arrays: dict[str, NDArray[Any]]) -> RowHistory:
        """Rows from the arrays of a file, checked: kernels follow ids without looking."""
        values, ids, ends, true, true_ends, weights = (
            np.array(arrays[f"kept_{name}"], dtype=kind) for name, kind in DTYPES.items()
        )
        history = cls(m, is_sparse=values.ndim == 1)  # of dense rows it has two dimensions
        count = len(weights)
        fits = values.shape == ((len(ids),) if history.is_sparse else (count, m)) and all(
            len(stops) == count + 1
            and stops[0] == 0
            and stops[-1] == len(labels)
            and (np.diff(stops) >= 0).all()
            and ((labels >= 0) & (labels < m)).all()
            for labels, stops in ((ids, ends), (true, true_ends))
        )
        if not fits:
            raise ValueError("the rows kept do not fit together")
        rows = np.split(values, ends[1:-1]) if history.is_sparse else list(values)
        parts = (np.split(ids, ends[1:-1]), rows, np.split(true, true_ends[1:-1]), weights.tolist())
        history.rows.extend(zip(*parts, strict=True) if count else ())
        return history

    def batch(self) -> Batch:
        """All rows, for a run."""
        values, ids, ends, true, true_ends, weights = self.arrays().values()
        shape = (len(weights), self.m)
        present = csr((np.ones(len(true), dtype=np.int8), true, true_ends), shape)
        eta: Probabilities
        if self.is_sparse:
            eta = SparseProbabilities(csr((values, ids, ends), shape))
        else:
            eta = DenseProbabilities(values, vector=False)
        return Batch(eta, TrueLabels("OnlineFrankWolfe", "y", present, self.m), weights)

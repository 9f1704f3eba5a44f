"""Probabilities and labels as a curve looks at them: the entries of a label, or of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.rows.arrays import entries_of
from omma.rows.batch import Batch
from omma.rows.frames import Names

Floats = NDArray[np.float64]
Cells = tuple[Floats, Floats, Floats, Floats]


@dataclass(frozen=True)
class Entries:
    """Probabilities above zero, their rows, and whether they came true.

    ``positive`` is how many labels each row has, also where their probability is zero; ``labels``
    is how many there are.
    """

    values: Floats
    rows: NDArray[np.int64]
    hits: NDArray[np.bool_]
    positive: Floats
    labels: int

    def take(self, order: NDArray[np.int64]) -> Entries:
        """The same in another order."""
        values, rows, hits = self.values[order], self.rows[order], self.hits[order]
        return Entries(values, rows, hits, self.positive, self.labels)


@dataclass(frozen=True)
class Reading:
    """All that was given, by columns."""

    eta: Any  # CSC, with probabilities above zero alone
    true: Any  # CSC of ones
    weights: Floats
    names: Names | None

    @property
    def n(self) -> int:
        return int(self.eta.shape[0])

    @property
    def m(self) -> int:
        return int(self.eta.shape[1])

    def name(self, j: int) -> str:
        """What a label is called."""
        return f"label {j}" if self.names is None else self.names[j]

    def place(self, label: int | str) -> int:
        """Where a label is, by place or by name."""
        known: tuple[Any, ...] = tuple(range(self.m)) if self.names is None else self.names
        if isinstance(label, str) and label in known:
            return known.index(label)
        whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
        if not whole or not 0 <= int(label) < self.m:
            raise ValueError(
                f"labels of curve must be among {shown(list(known))}, or places from 0 to "
                f"{self.m - 1}, got {shown(label)}"
            )
        return int(label)

    def label(self, j: int) -> Entries:
        """The entries of one label."""
        part = slice(self.eta.indptr[j], self.eta.indptr[j + 1])
        rows = self.eta.indices[part].astype(np.int64)
        positive = np.zeros(self.n)
        positive[self.true.indices[self.true.indptr[j] : self.true.indptr[j + 1]]] = 1.0
        return Entries(self.eta.data[part], rows, positive[rows] > 0, positive, 1)

    def together(self) -> Entries:
        """The entries of all labels, under one threshold."""
        parts = [self.label(j) for j in range(self.m)]
        values, rows, hits = (
            np.concatenate([getattr(one, name) for one in parts])
            for name in ("values", "rows", "hits")
        )
        positive = np.asarray(self.true.sum(axis=1), dtype=np.float64).ravel()
        return Entries(values, rows, hits, positive, self.m)


def read_entries(
    owner: str, eta: Any, y: Any, weights: Any, check_labels: Callable[[int], None]
) -> Reading:
    """Check all that is given, and lay it out by columns."""
    batch = Batch.read(owner, eta, y, weights)
    if not batch.n:
        raise ValueError(f"eta of {owner} must have at least one row, got none")
    check_labels(batch.m)
    batch.check(owner)
    if batch.labels is None:
        raise ValueError(f"y of {owner} must be given, got None")
    batch.labels.refuse_unknown(owner)
    starts, ends, ids = batch.labels.block(np.arange(batch.n, dtype=np.int64))
    row_of = np.repeat(np.arange(batch.n), ends - starts)
    present = ids[entries_of(starts, ends)]
    shape = (batch.n, batch.m)
    true = sparse.csc_array((np.ones(len(present)), (row_of, present)), shape=shape)
    plain = batch.values if batch.thin else np.asarray(batch.values).reshape(shape)
    found = sparse.csc_array(plain, dtype=np.float64)
    if not found.data.all():
        found = found.copy()
        found.eliminate_zeros()
    return Reading(
        found, true, batch.weights if len(batch.weights) else np.ones(batch.n), batch.names
    )

"""Which rule of a mixture a row is decided by.

The draw for the t-th row is the t-th of a seeded generator, turned round the circle [0, 1) by the
row's fingerprint. So a row that is asked for twice gets the same answer, other rows draw anew even
where nothing is counted in between, stepping draws as replaying does, and dense rows as sparse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels.fingerprint import fingerprints_dense, fingerprints_sparse
from omma.rows.arrays import Probabilities, Rows, SparseProbabilities, blocks
from omma.rows.row import Row

Draws = NDArray[np.float64]


def draws(seed: int, start: int, fingerprints: Draws) -> Draws:
    """The draws for rows ``start`` onwards: the same whether taken one by one or together."""
    generator = np.random.PCG64(seed)
    generator.advance(start)
    turned = np.random.Generator(generator).random(len(fingerprints)) + fingerprints
    return turned - (turned >= 1.0)


def picked(shares: NDArray[np.float64], drawn: Draws) -> NDArray[np.int32]:
    """Which rule each draw falls on."""
    edges = np.cumsum(shares)
    return np.minimum(np.searchsorted(edges, drawn, side="right"), len(shares) - 1).astype(np.int32)


def of_rows(eta: Probabilities, order: Rows | None = None) -> Draws:
    """The fingerprints of all rows, in the order in which they come."""
    out = np.empty(eta.n)
    for start, rows in blocks(eta.n, eta.rows_per_block, order):
        part = out[start : start + len(rows)]
        sparse = isinstance(eta, SparseProbabilities)
        _fill(fingerprints_sparse if sparse else fingerprints_dense, *eta.block(rows), part)
    return out


def of_row(eta: Row) -> Draws:
    """The fingerprint of one row."""
    out = np.empty(1)
    if isinstance(eta, tuple):
        _fill(fingerprints_sparse, *eta, _at(0), _at(len(eta[0])), out)
    else:
        _fill(fingerprints_dense, eta[np.newaxis], _at(0), out)
    return out


def _fill(kernel: Any, *arguments: Any) -> None:
    with np.errstate(over="ignore"):  # hashes wrap around, and plain Python would warn of it
        kernel(*arguments)


def _at(place: int) -> Rows:
    return np.array([place], dtype=np.int64)

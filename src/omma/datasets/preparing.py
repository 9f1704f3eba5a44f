"""What is done to some sets after they are read, so that they are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import sparse

from omma.datasets.dataset import Dataset


def unit_rows(data: Dataset) -> Dataset:
    """Every row scaled to unit length; rows of zeros stay."""
    matrix = sparse.csr_array(data.X)
    squares = matrix.multiply(matrix).sum(axis=1, dtype=np.float64)
    length = np.sqrt(np.asarray(squares).ravel())
    scale = 1.0 / np.where(length > 0, length, 1.0)
    return replace(data, X=sparse.diags_array(scale) @ matrix)


def shuffled(data: Dataset) -> Dataset:
    """Rows in random order, always the same."""
    return data.take(np.random.default_rng(0).permutation(data.n))


def as_sparse(data: Dataset) -> Dataset:
    """Features as CSR, which most of them being zero makes smaller."""
    return replace(data, X=sparse.csr_array(data.X))


PREPARATIONS: dict[str, Callable[[Dataset], Dataset]] = {
    "unit rows": unit_rows,
    "shuffled": shuffled,
    "sparse": as_sparse,
}

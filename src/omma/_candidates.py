"""Rows that have fewer candidates than a budget wants: told, not decided otherwise.

A label of probability zero is no candidate. With an exact budget the lowest other labels fill up,
so that each row gets its k labels; who did not mean that wants ``at_most``.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.rows.arrays import DenseProbabilities, Probabilities, blocks


def rows_short_of(rows: Probabilities, k: int) -> int:
    """How many rows have fewer than k labels of probability above zero."""
    if isinstance(rows, DenseProbabilities):
        return sum(
            _short(np.asarray(rows.array[block[0] : block[-1] + 1]), k)
            for _, block in blocks(rows.n, rows.rows_per_block, None)
        )
    found = np.diff(rows.matrix.indptr)
    values = rows.matrix.data
    if values.size and not values.min() > 0:  # zeros that are stored are no candidates either
        before = np.concatenate(([0], np.cumsum(values > 0)))
        found = np.diff(before[rows.matrix.indptr])
    return int(np.count_nonzero(found < k))


def _short(block: NDArray[Any], k: int) -> int:
    if (block[:, :k] > 0).all():  # the usual case, and quickly seen
        return 0
    return int(np.count_nonzero(np.count_nonzero(block > 0, axis=1) < k))


def warn_of_rows(
    owner: str, rows: Probabilities, k: int | None, short: int | None = None, stacklevel: int = 3
) -> bool:
    """Say how many rows are filled up; where every label is predicted there is nothing to say.

    Where it is not known how many are ``short`` of candidates, rows are looked at.
    """
    if k is None or k >= rows.m:
        return False
    short = rows_short_of(rows, k) if short is None else short
    if short:
        warnings.warn(
            f"{short:,} of {rows.n:,} rows of {owner} have fewer than k={k} labels of probability "
            f"above 0, and the lowest other labels fill up to {k}: use at_most={k} in place of "
            f"k={k} to predict only labels that are probable at all",
            UserWarning,
            stacklevel=stacklevel,
        )
    return bool(short)


def candidates_of(row: Any) -> int:
    """How many labels of a row have a probability above zero; a pair is ids and values."""
    values = row[1] if isinstance(row, tuple) else row
    return int(np.count_nonzero(values))


def warn_of_row(owner: str, found: int, k: int) -> None:
    """The same for one row that a learner was asked for."""
    warnings.warn(
        f"a row of {owner} has {found} labels of probability above 0, fewer than k={k}, and the "
        f"lowest other labels fill up to {k}: use at_most={k} in place of k={k} to predict only "
        "labels that are probable at all (this is said once)",
        UserWarning,
        stacklevel=4,
    )

"""Warnings about rows with fewer candidates than the budget k.

A label of probability zero is no candidate. With an exact budget the lowest other labels fill up,
so that each row gets its k labels; ``at_most`` predicts candidates only.
"""

import warnings
from typing import Any

import numpy as np

from omma.rows.arrays import DenseProbabilities, Probabilities, blocks


def rows_short_of(rows: Probabilities, k: int) -> int:
    """How many rows have fewer than k labels of probability above zero."""
    if isinstance(rows, DenseProbabilities):
        # A block at a time, as a flag for each probability takes much memory.
        return sum(
            int(np.count_nonzero((rows.array[block] > 0).sum(axis=1) < k))
            for _, block in blocks(rows.n, rows.rows_per_block, None)
        )
    # Zeros that are stored are no candidates either.
    candidates_before = np.concatenate(([0], np.cumsum(rows.matrix.data > 0)))
    return int(np.count_nonzero(np.diff(candidates_before[rows.matrix.indptr]) < k))


def warn_of_rows(
    owner: str, rows: Probabilities, k: int | None, short: int | None = None, stacklevel: int = 3
) -> bool:
    """Warn of rows that are filled up, unless every label is predicted; returns whether it did.

    ``short`` is the number of rows with too few candidates; None counts them.
    """
    if k is None or k >= rows.m:  # no budget, or every label is predicted anyway
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


def warn_of_row(owner: str, row: Any, k: int, stacklevel: int = 3) -> bool:
    """Warn of one row of a learner: an array, or a pair of ids and values."""
    candidates = int(np.count_nonzero(row[1] if isinstance(row, tuple) else row))
    if candidates < k:
        warnings.warn(
            f"a row of {owner} has {candidates} labels of probability above 0, fewer than k={k}, "
            f"and the lowest other labels fill up to {k}: use at_most={k} in place of k={k} to "
            "predict only labels that are probable at all (this is said once)",
            UserWarning,
            stacklevel=stacklevel,
        )
    return candidates < k

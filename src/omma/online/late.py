"""Rows by their ids: what a learner checks of them, and counts of what it refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import repeated, shown
from omma.online.decided import Decided
from omma.online.pending import (
    AlreadyWaitingError,
    ForgottenIdError,
    Id,
    LabelledTwiceError,
    UnknownIdError,
    check_id,
)
from omma.rows.row import Row, indicator_rows, probability_rows

# What each is called where it is counted; the first that fits is taken.
KINDS: tuple[tuple[type[Exception], str], ...] = (
    (AlreadyWaitingError, "still_waiting"),
    (LabelledTwiceError, "labelled_twice"),
    (ForgottenIdError, "forgotten"),
    (UnknownIdError, "unknown"),
    (ValueError, "unsound"),
    (TypeError, "unsound"),
)


class Refusals:
    """Counts what is refused within a ``with``, by its kind, and lets the error pass.

    >>> refusals = Refusals()
    >>> try:
    ...     with refusals:
    ...         raise UnknownIdError("who?")
    ... except ValueError:
    ...     refusals.counts["unknown"]
    1
    """

    def __init__(self) -> None:
        self.counts = {name: 0 for _, name in KINDS}

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *others: Any) -> None:
        if kind is not None:
            for error, name in KINDS:
                if issubclass(kind, error):
                    self.counts[name] += 1
                    return

    def restore(self, counts: Any) -> None:
        """Take over what was counted before, as a file says it."""
        if not isinstance(counts, dict) or set(counts) != set(self.counts):
            raise ValueError(f"refused must count {', '.join(self.counts)}, got {shown(counts)}")
        for number in counts.values():
            if type(number) is not int or number < 0:
                raise ValueError(f"refused must hold numbers of at least 0, got {shown(number)}")
        self.counts = dict(counts)


def read_ids(owner: str, one: Any, several: Any) -> list[Id]:
    """The ids of an id or of several, each as it is kept; none may come twice."""
    if several is None:
        return [check_id(one)]
    if one is not None:
        raise ValueError(f"{owner} must be given id or ids, got both")
    if isinstance(several, str | bytes) or not isinstance(several, Iterable):
        raise TypeError(f"ids of {owner} must be a sequence of ids, got {shown(several)}")
    keys = [check_id(key) for key in several]
    twice = repeated(keys)
    if twice is not None:
        raise ValueError(f"ids of {owner} must differ, got {shown(twice)} twice")
    return keys


def check_as_many(owner: str, what: str, rows: int, keys: list[Id]) -> None:
    """Refuse another number of rows than of ids."""
    if rows != len(keys):
        raise ValueError(
            f"{what} of {owner} must have as many rows as there are ids, {len(keys)}, got {rows}"
        )


def rows_of(decided: Decided, m: int) -> list[tuple[NDArray[Any], Row | None]]:
    """The prediction and the probabilities of each row, as kernels take them."""
    if decided.thin or decided.prediction.shape == (m,):
        return [(decided.prediction, decided.eta)]
    thin = sparse.issparse(decided.prediction)
    chosen = indicator_rows("predict", "prediction", decided.prediction, np.int8, thin, m)
    if decided.eta is None:
        return [(one, None) for one in chosen]
    rows = probability_rows("predict", decided.eta, thin, m)
    return list(zip(chosen, rows, strict=True))

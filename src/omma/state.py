"""All that changes while a policy runs, as plain arrays.

Counts add where streams are merged, subtract where a window moves on and shrink where the past is
forgotten. The prior is not among them: it is added where a gradient is taken, so that it enters
once, however many states were added up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from omma.kernels.layout import (
    POSITIVE,
    PREDICTED,
    SUM_CROSS,
    SUM_POSITIVE,
    SUM_POSITIVE_SQUARED,
    SUM_PREDICTED,
    SUM_PREDICTED_SQUARED,
    SUM_TP,
    TOTALS,
    TP,
    N,
)

Array = NDArray[Any]
# How totals grow when every row counts for more: products grow with the square.
POWERS = np.array([1, 1, 1, 1, 2, 2, 2])


@dataclass(eq=False)
class State:
    """What a policy has counted.

    Attributes
    ----------
    cells : ndarray of shape (3, m)
        True positives, predictions and occurrences of each label: what decisions look at. With
        ``feedback="estimates"`` they count probabilities in place of labels.
    totals : ndarray
        The number of rows, and sums over labels for the metrics that need them.
    labels : State or None
        Counts of true labels, where decisions look at probabilities; of rows whose labels came.

    Examples
    --------
    >>> import omma
    >>> policy = omma.OMMA("macro_f1")
    >>> eta, y = omma.datasets.long_tail(n=100, m=3, seed=0)
    >>> first, second = (omma.replay(policy, eta[part], y[part]).state
    ...                  for part in (slice(0, 50), slice(50, 100)))
    >>> (first + second).rows
    100.0
    """

    cells: NDArray[np.float64]
    totals: NDArray[np.float64]
    labels: State | None = None

    @classmethod
    def zeros(cls, m: int, *, soft: bool = False) -> State:
        """Nothing counted yet; ``soft`` counts probabilities, and true labels beside them."""
        labels = State.zeros(m) if soft else None
        return cls(np.zeros((3, m)), np.zeros(TOTALS), labels)

    def laid_out(self, order: Literal["C", "F"]) -> None:
        """Keep the counts of a cell ("C") or of a label ("F") side by side in memory.

        A sparse row touches few labels: with "F" all counts of one come in one cache line. Each
        kernel is compiled for one of the two.
        """
        self.cells = np.asarray(self.cells, order=order)
        if self.labels is not None:
            self.labels.laid_out(order)

    @property
    def m(self) -> int:
        """The number of labels."""
        return int(self.cells.shape[1])

    @property
    def rows(self) -> float:
        """The number of rows that decisions look at, or their weight."""
        return float(self.totals[N])

    @property
    def side_by_side(self) -> NDArray[np.float64]:
        """The cells with those of one kind side by side, whatever the layout."""
        return np.ascontiguousarray(self.cells)

    @property
    def truth(self) -> State:
        """The counts of true labels."""
        return self if self.labels is None else self.labels

    def copy(self) -> State:
        """A state that goes its own way."""
        return type(self).from_arrays({name: one.copy() for name, one in self.arrays().items()})

    def arrays(self) -> dict[str, Array]:
        """All of it as plain arrays, for a file."""
        found: dict[str, Array] = {"cells": self.cells, "totals": self.totals}
        if self.labels is not None:
            found |= {f"labels_{name}": one for name, one in self.labels.arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> State:
        """What ``arrays`` gave."""
        labels = under("labels_", arrays)
        return cls(arrays["cells"], arrays["totals"], State.from_arrays(labels) if labels else None)

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what ``arrays`` of such a state gave, or nothing of it."""
        own = {"cells": self.cells, "totals": self.totals}
        for name, place in own.items():
            check_part(name, arrays.get(name), place.shape, signed=False)
        if self.labels is not None:
            self.labels.restore(under("labels_", arrays))
        for name, place in own.items():
            place[...] = arrays[name]

    def _like(self, other: State, cells: Array, totals: Array, labels: State | None) -> State:
        if self.totals[1:].any() or other.totals[1:].any():
            totals[1:] = sums_of(cells)
        return State(cells, totals, labels)

    def _checked(self, other: Any) -> State:
        if type(self) is not State or type(other) is not State:
            raise TypeError(
                f"states can be added where they are counts only, got {type(self).__name__} and "
                f"{type(other).__name__}"
            )
        if self.m != other.m or (self.labels is None) != (other.labels is None):
            raise ValueError(
                "states can be added for the same labels and feedback only, got "
                f"{self.m} and {other.m} labels"
            )
        return other

    def __add__(self, other: Any) -> State:
        if not isinstance(other, State):
            return NotImplemented
        other = self._checked(other)
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = self.labels + other.labels
        cells, totals = self.cells + other.cells, self.totals + other.totals
        return self._like(other, cells, totals, labels)

    def __sub__(self, other: Any) -> State:
        if not isinstance(other, State):
            return NotImplemented
        other = self._checked(other)
        labels = None
        if self.labels is not None and other.labels is not None:
            labels = self.labels - other.labels
        cells, totals = self.cells - other.cells, self.totals - other.totals
        return self._like(other, cells, totals, labels)

    def __mul__(self, factor: float) -> State:
        labels = None if self.labels is None else self.labels * factor
        return State(self.cells * factor, self.totals * factor**POWERS, labels)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, State):
            return NotImplemented
        mine, others = self.arrays(), other.arrays()
        return mine.keys() == others.keys() and all(
            np.array_equal(mine[name], others[name]) for name in mine
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.m} labels, {self.rows:g} rows>"


def sums_of(cells: Array) -> Array:
    """The sums over labels that go with some counts."""
    tp, predicted, positive = cells[TP], cells[PREDICTED], cells[POSITIVE]
    found = np.zeros(TOTALS)
    found[SUM_TP] = tp.sum()
    found[SUM_PREDICTED] = predicted.sum()
    found[SUM_POSITIVE] = positive.sum()
    found[SUM_CROSS] = predicted @ positive
    found[SUM_PREDICTED_SQUARED] = predicted @ predicted
    found[SUM_POSITIVE_SQUARED] = positive @ positive
    return found[1:]


def under(start: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names begin so, without that."""
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}


def check_part(name: str, found: Any, shape: tuple[int, ...], *, signed: bool = True) -> None:
    """Refuse an array of a state that cannot be one: kernels believe what they are given."""
    wanted = f"{name} of a state must be finite numbers of shape {shape}"
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        raise ValueError(f"{wanted}, got {'nothing' if found is None else found.dtype}")
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"{wanted}, got shape {found.shape} and what is not finite")
    if not signed and found.size and found.min() < -1e-9 * max(1.0, float(found.max())):
        raise ValueError(f"{name} of a state must be at least 0, got {found.min():g}")

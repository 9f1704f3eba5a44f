"""Counts of true and predicted labels, from which metrics are computed.

Per label the true positives ``tp``, the predictions ``predicted`` and the occurrences
``positive``; and the number of rows ``n``. The other cells of the confusion tensor follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._confusion import confusion_of
from omma._html import html_table, number
from omma._validate import check_number, check_positive_int
from omma.kernels.layout import POSITIVE, PREDICTED, TP, N
from omma.rows.arrays import read_numbers
from omma.rows.frames import check_same_rows, open_table
from omma.state import State

Vector = NDArray[np.float64]
CELLS: tuple[str, ...] = ("tp", "predicted", "positive")  # in the order of a state's cells
ROUNDING = 1e-9  # of all rows: sums in another order differ by less


class Counts:
    """Confusion counts of each label, in float64 and without any prior.

    Counting rows of weight one with hard labels is exact up to 2**53 rows (9e15). Labels may be
    soft: a label of 0.3 adds 0.3 where a label of 1 adds 1.

    Parameters
    ----------
    tp, predicted, positive : array-like of shape (m,)
        True positives, predictions and occurrences of each label.
    n : float
        Number of rows, or their weight.
    matrix : array-like of shape (m, m), optional
        Counts of (true class, predicted class) pairs, for metrics that need them.

    None of them may be negative, apart from what rounding leaves. Differences of counts are not
    checked.

    Examples
    --------
    >>> from omma import Counts
    >>> counts = Counts.from_labels([[1, 0], [1, 1], [0, 1]], [[1, 0], [0, 1], [0, 0]])
    >>> counts
    Counts(n=3, tp=[1. 1.], predicted=[1. 1.], positive=[2. 2.])
    >>> counts.fn
    array([1., 1.])
    >>> counts + counts == 2 * counts
    True
    """

    def __init__(
        self,
        tp: ArrayLike,
        predicted: ArrayLike,
        positive: ArrayLike,
        n: float,
        matrix: ArrayLike | None = None,
    ) -> None:
        self.n = check_number("Counts", "n", n, low=-ROUNDING)
        slack = ROUNDING * max(1.0, self.n)
        cells = [
            _counted("Counts", name, values, slack, ndim=1)
            for name, values in zip(CELLS, (tp, predicted, positive), strict=True)
        ]
        if len({len(counts) for counts in cells}) > 1:
            raise ValueError(
                "tp, predicted and positive of Counts must be of one length, got "
                f"{len(cells[TP])}, {len(cells[PREDICTED])} and {len(cells[POSITIVE])}"
            )
        self.cells = np.stack(cells)  # shape (3, m), as those of a state
        self.matrix = None
        if matrix is not None:
            self.matrix = _counted("Counts", "matrix", matrix, slack, ndim=2, m=self.m).copy()

    @classmethod
    def _unchecked(cls, cells: Vector, n: float, matrix: Any = None) -> Counts:
        """Counts from checked or computed cells (3, m); differences may be negative."""
        counts = cls.__new__(cls)  # no checks: they would refuse differences, and cost a copy
        counts.cells, counts.n, counts.matrix = cells, n, matrix
        return counts

    @classmethod
    def zeros(cls, m: int, *, matrix: bool = False) -> Counts:
        """No rows yet, of ``m`` labels; ``matrix`` also counts pairs of classes.

        >>> Counts.zeros(2)
        Counts(n=0, tp=[0. 0.], predicted=[0. 0.], positive=[0. 0.])
        """
        check_positive_int("Counts.zeros", "m", m)
        nothing = np.zeros(m)
        return cls(nothing, nothing, nothing, 0.0, np.zeros((m, m)) if matrix else None)

    @classmethod
    def from_labels(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sample_weight: ArrayLike | None = None,
        n_labels: int | None = None,
        matrix: bool = False,
    ) -> Counts:
        """Count rows of labels against rows of predictions.

        Parameters
        ----------
        y_true, y_pred : array-like or sparse matrix of shape (n, m), or class ids of shape (n,)
            ``y_true`` may be soft, with values from 0 to 1, and NaN where it is unknown: a label
            is counted over the rows in which it is known, in proportion (times all rows over
            these). ``y_pred`` is 0 or 1. Columns of two frames are matched by name; rows of pandas
            must have one index, in one order.
        sample_weight : array-like of shape (n,), optional
            A row of weight w counts as w rows. Weights are not costs: for these, see
            ``omma.metrics.RowCosts``.
        n_labels : int, optional
            Number of classes when both are class ids (default: the largest id plus one);
            1 reads vectors as the 0/1 labels of a binary problem.
        matrix : bool
            Also count pairs of classes.

        >>> Counts.from_labels([0, 2, 2], [0, 2, 1])
        Counts(n=3, tp=[1. 0. 1.], predicted=[1. 1. 1.], positive=[1. 0. 2.])
        >>> Counts.from_labels([[1, 0], [float("nan"), 1]], [[1, 0], [1, 1]])
        Counts(n=2, tp=[2. 1.], predicted=[2. 1.], positive=[2. 1.])
        """
        rows = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight}
        check_same_rows("Counts.from_labels", rows)
        return cls._unchecked(*confusion_of(y_true, y_pred, sample_weight, n_labels, matrix=matrix))

    @classmethod
    def from_confusion(cls, matrix: ArrayLike) -> Counts:
        """Rewrite an m×m matrix of (true class, predicted class) counts, class against rest.

        >>> Counts.from_confusion([[5, 1], [2, 4]])
        Counts(n=12, tp=[5. 4.], predicted=[7. 5.], positive=[6. 6.])
        """
        pairs = _counted("Counts.from_confusion", "matrix", matrix, ROUNDING, ndim=2)
        return cls(np.diag(pairs), pairs.sum(axis=0), pairs.sum(axis=1), float(pairs.sum()), pairs)

    @property
    def m(self) -> int:
        """Number of labels."""
        return len(self.tp)

    @property
    def tp(self) -> Vector:
        """True positives: predicted, and there."""
        return np.asarray(self.cells[TP])

    @property
    def predicted(self) -> Vector:
        """Predictions of each label."""
        return np.asarray(self.cells[PREDICTED])

    @property
    def positive(self) -> Vector:
        """Occurrences of each label."""
        return np.asarray(self.cells[POSITIVE])

    @property
    def fp(self) -> Vector:
        """False positives: predicted but not there."""
        return self.predicted - self.tp

    @property
    def fn(self) -> Vector:
        """False negatives: there but not predicted."""
        return self.positive - self.tp

    @property
    def tn(self) -> Vector:
        """True negatives: neither there nor predicted."""
        return self.n - self.predicted - self.positive + self.tp

    def as_2x2(self) -> NDArray[np.float64]:
        """The (m, 2, 2) tensor in scikit-learn's layout, ``[label, true, predicted]``.

        >>> Counts([1], [3], [2], 10).as_2x2()
        array([[[6., 2.],
                [1., 1.]]])
        """
        # Rows of each 2×2 are true classes, columns predicted ones, negative first.
        return np.stack((self.tn, self.fp, self.fn, self.tp), axis=-1).reshape(-1, 2, 2)

    def add(self, y_true: Any, y_pred: Any, weight: float = 1.0) -> None:
        """Count one row of m labels, or one class id, in place.

        >>> counts = Counts.zeros(3)
        >>> counts.add([0, 1, 1], [0, 1, 0])
        >>> counts.add(2, 2)
        >>> counts
        Counts(n=2, tp=[0. 1. 1.], predicted=[0. 1. 1.], positive=[0. 1. 2.])
        """
        # The row is checked and counted separately, so that bad input changes nothing.
        check_number("Counts.add", "weight", weight, low=0.0)
        true = open_table("Counts.add", "y_true", y_true, row=True)
        predicted = open_table("Counts.add", "y_pred", y_pred, true.names, row=True)
        # A row as a matrix of one row, a class id as a vector of one.
        y_true, y_pred = (
            row if sparse.issparse(row) else np.asarray(row)[np.newaxis]
            for row in (true.values, predicted.values)
        )
        has_matrix, whole = self.matrix is not None, "to be added to others"
        cells = confusion_of(y_true, y_pred, [weight], self.m, matrix=has_matrix, whole=whole)
        row = self._unchecked(*cells)
        if row.m != self.m:
            raise ValueError(f"a row of Counts.add must have {self.m} labels, got {row.m}")
        self.cells += row.cells
        self.n += row.n
        if self.matrix is not None and row.matrix is not None:
            self.matrix += row.matrix

    def copy(self) -> Counts:
        """A copy that shares no array."""
        return self * 1.0  # a product has arrays of its own

    def _combined(self, other: Counts, sign: float) -> Counts:
        if other.m != self.m:
            raise ValueError(
                f"Counts can be added for the same number of labels only, got {self.m} and "
                f"{other.m}"
            )
        matrix = None  # pairs of classes are known only where both have counted them
        if self.matrix is not None and other.matrix is not None:
            matrix = self.matrix + sign * other.matrix
        return self._unchecked(self.cells + sign * other.cells, self.n + sign * other.n, matrix)

    def __add__(self, other: Any) -> Counts:
        return self._combined(other, 1.0) if isinstance(other, Counts) else NotImplemented

    def __sub__(self, other: Any) -> Counts:
        return self._combined(other, -1.0) if isinstance(other, Counts) else NotImplemented

    def __mul__(self, factor: float) -> Counts:
        factor = check_number("Counts", "factor", factor, low=0.0)
        matrix = None if self.matrix is None else self.matrix * factor
        return self._unchecked(self.cells * factor, self.n * factor, matrix)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        is_equal = self.n == other.n and np.array_equal(self.cells, other.cells)
        if self.matrix is None or other.matrix is None:  # pairs of classes: if both have counted
            return is_equal
        return is_equal and np.array_equal(self.matrix, other.matrix)

    __hash__ = None  # type: ignore[assignment]  # ``add`` changes counts in place

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{name}={np.array2string(counts, threshold=6, edgeitems=2, precision=6)}"
            for name, counts in zip(CELLS, self.cells, strict=True)
        )
        return f"Counts(n={self.n:g}, {parts})"

    def _repr_html_(self) -> str:
        cells = zip(self.tp, self.fp, self.fn, self.tn, strict=True)
        rows = ((str(label), *map(float, row)) for label, row in enumerate(cells))
        title = f"Counts of {self.m:,} label{'s' * (self.m > 1)} in {number(self.n)} rows"
        return html_table(title, ("label", "tp", "fp", "fn", "tn"), rows, self.m)


def counts_of(state: State) -> Counts:
    """The counts of true labels in a state, as users see them.

    A label that was unknown in some rows counts in proportion, as if it were known in all.
    Positives that were not predicted and therefore not seen are estimated.
    """
    return Counts._unchecked(state.reported.copy(), float(state.truth.totals[N]))


def snapshot_counts(cells: NDArray[np.float64], rows: NDArray[np.float64]) -> list[Counts]:
    """The counts at checkpoints of a replay: cells of shape (checkpoints, 3, m)."""
    return [Counts._unchecked(counts, n) for counts, n in zip(cells, rows.tolist(), strict=True)]


def state_of(counts: Counts) -> State:
    """A state with these counts, and the sums over labels that some metrics need."""
    state = State(counts.m)
    add_counts(state.own, counts)
    return state


def state_with(state: State, counts: Any, estimates: Any) -> State:
    """A state with true labels against predictions, and probabilities, added to it."""
    nothing = Counts.zeros(state.m)  # a sum refuses counts of other labels
    true = nothing + counts
    own = true if state.labels is None else nothing + estimates
    total: State = state.copy()
    # Where the past fades, decisions look at counts in the unit of the present row.
    sets = ((total.own, own, state.unit), (total.labels, true, state.unit))
    for counted, added, unit in (*sets, (total.lifetime, true, 1.0)):
        # Sums over labels are computed again, which may change a last digit: only if needed.
        if counted is not None and added != nothing:
            add_counts(counted, added, unit)
    if total.prices is not None:  # they stay, but depend on rates, which are computed again
        total.prices.settle(total.limited.cells)
    return total


def add_counts(counted: Any, counts: Counts, unit: float = 1.0) -> None:
    """Add counts to a part of a state, whose rows weigh ``unit`` where the past fades."""
    counted.cells[...] += unit * counts.cells
    rows = counted.totals[N] + unit * counts.n
    counted.totals[...] = (rows, *counted.cells.sum(axis=1))


def _counted(
    owner: str, parameter: str, values: Any, slack: float, *, ndim: int, m: int | None = None
) -> Vector:
    """A vector of counts, or a square matrix of them (of side ``m``, if given)."""
    array, name = read_numbers(owner, parameter, values), f"{parameter} of {owner}"
    # Rounding may leave a count that should be zero a little below it.
    wrong = array[~((array >= -slack) & (array < np.inf))]  # NaN is neither
    if wrong.size:
        raise ValueError(f"{name} must be finite numbers of at least 0, got {wrong[0]:g}")
    if ndim == 1 and (array.ndim != 1 or not len(array)):
        raise ValueError(f"{name} must have one number for each label, got shape {array.shape}")
    if ndim == 2 and (array.ndim != 2 or {*array.shape, m or len(array)} != {len(array)}):
        side = m or "m"
        raise ValueError(f"{name} must have the shape ({side}, {side}), got {array.shape}")
    return array

"""Counts of true and predicted labels: all that a metric looks at.

Per label the true positives ``tp``, the predictions ``predicted`` and the occurrences
``positive``; and the number of rows ``n``. The other cells of the confusion tensor follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._confusion import confusion_of
from omma._html import html_table, number
from omma._validate import check_number, check_positive_int, shown
from omma.kernels.layout import POSITIVE, PREDICTED, TP, N
from omma.rows.frames import opened, values_of
from omma.state import State, sums_of

Vector = NDArray[np.float64]
CELLS: tuple[str, ...] = ("tp", "predicted", "positive")
HAIR = 1e-9  # of all rows: sums in another order differ by less


class Counts:
    """What happened to each label so far, in float64 and without any prior.

    Counting rows of weight one with hard labels is exact up to 2**53 rows (9e15). Labels may be
    soft: a label present to the degree 0.3 adds 0.3 where a present one adds 1.

    Parameters
    ----------
    tp, predicted, positive : array-like of shape (m,)
        True positives, predictions and occurrences of each label.
    n : float
        Number of rows, or their weight.
    matrix : array-like of shape (m, m), optional
        Counts of (true class, predicted class) pairs, for metrics that need them.

    None of them may be negative, but for a hair that rounding leaves. Differences of counts are
    not looked at.

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

    __slots__ = ("matrix", "n", "positive", "predicted", "tp")

    def __init__(
        self,
        tp: ArrayLike,
        predicted: ArrayLike,
        positive: ArrayLike,
        n: float,
        matrix: ArrayLike | None = None,
    ) -> None:
        self.n = check_number("Counts", "n", n, low=-HAIR)
        hair = HAIR * max(1.0, self.n)
        self.tp = _vector("tp", tp, hair)
        self.predicted = _vector("predicted", predicted, hair)
        self.positive = _vector("positive", positive, hair)
        if not len(self.tp) == len(self.predicted) == len(self.positive):
            raise ValueError(
                "tp, predicted and positive of Counts must be of one length, got "
                f"{len(self.tp)}, {len(self.predicted)} and {len(self.positive)}"
            )
        self.matrix = None if matrix is None else _square("matrix of Counts", matrix, self.m, hair)

    # What stores objects by their state (skops, and MLflow with it) has no words for slots.

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name in self.__slots__:
            setattr(self, name, state[name])

    @classmethod
    def _unchecked(cls, cells: Iterable[Vector], n: float, matrix: Any) -> Counts:
        """What comes of sums: their differences may be below zero, by rounding or on purpose."""
        made = cls.__new__(cls)
        made.tp, made.predicted, made.positive = cells
        made.n, made.matrix = n, matrix
        return made

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
            A row of weight w counts as w rows.
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
        return counted(y_true, y_pred, sample_weight, n_labels, matrix=matrix)

    @classmethod
    def from_confusion(cls, matrix: ArrayLike) -> Counts:
        """Rewrite an m×m matrix of (true class, predicted class) counts, class against rest.

        >>> Counts.from_confusion([[5, 1], [2, 4]])
        Counts(n=12, tp=[5. 4.], predicted=[7. 5.], positive=[6. 6.])
        """
        given = values_of("Counts.from_confusion", "matrix", matrix)
        square = _square("matrix of Counts.from_confusion", given)
        return cls(
            np.diag(square), square.sum(axis=0), square.sum(axis=1), float(square.sum()), square
        )

    @property
    def m(self) -> int:
        """Number of labels."""
        return len(self.tp)

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
        return np.stack((self.tn, self.fp, self.fn, self.tp), axis=-1).reshape(-1, 2, 2)

    def add(self, y_true: Any, y_pred: Any, weight: float = 1.0) -> None:
        """Count one row of m labels, or one class id, in place.

        >>> counts = Counts.zeros(3)
        >>> counts.add([0, 1, 1], [0, 1, 0])
        >>> counts.add(2, 2)
        >>> counts
        Counts(n=2, tp=[0. 1. 1.], predicted=[0. 1. 1.], positive=[0. 1. 2.])
        """
        check_number("Counts.add", "weight", weight, low=0.0)
        true = opened("Counts.add", "y_true", y_true, row=True)
        predicted = opened("Counts.add", "y_pred", y_pred, true.names, row=True)
        row = counted(
            _as_rows(true.values),
            _as_rows(predicted.values),
            [weight],
            self.m,
            matrix=self.matrix is not None,
            whole="to be added to others",
        )
        if row.m != self.m:
            raise ValueError(f"a row of Counts.add must have {self.m} labels, got {row.m}")
        for name in CELLS:
            vector = getattr(self, name)
            vector += getattr(row, name)
        self.n += row.n
        if self.matrix is not None and row.matrix is not None:
            self.matrix += row.matrix

    def copy(self) -> Counts:
        """Counts that go their own way."""
        return self * 1.0

    def _combined(self, other: Counts, sign: float) -> Counts:
        if other.m != self.m:
            raise ValueError(
                f"Counts can be added for the same number of labels only, got {self.m} and "
                f"{other.m}"
            )
        matrix = None
        if self.matrix is not None and other.matrix is not None:
            matrix = self.matrix + sign * other.matrix
        cells = (getattr(self, name) + sign * getattr(other, name) for name in CELLS)
        return self._unchecked(cells, self.n + sign * other.n, matrix)

    def __add__(self, other: Any) -> Counts:
        return self._combined(other, 1.0) if isinstance(other, Counts) else NotImplemented

    def __sub__(self, other: Any) -> Counts:
        return self._combined(other, -1.0) if isinstance(other, Counts) else NotImplemented

    def __mul__(self, factor: float) -> Counts:
        factor = check_number("Counts", "factor", factor, low=0.0)
        matrix = None if self.matrix is None else self.matrix * factor
        cells = (getattr(self, name) * factor for name in CELLS)
        return self._unchecked(cells, self.n * factor, matrix)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        compared = CELLS
        if self.matrix is not None and other.matrix is not None:  # pairs that both have counted
            compared = (*CELLS, "matrix")
        return self.n == other.n and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in compared
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{name}={np.array2string(getattr(self, name), threshold=6, edgeitems=2, precision=6)}"
            for name in CELLS
        )
        return f"Counts(n={self.n:g}, {parts})"

    def _repr_html_(self) -> str:
        cells = zip(self.tp, self.fp, self.fn, self.tn, strict=True)
        rows = ((str(label), *map(float, row)) for label, row in enumerate(cells))
        title = f"Counts of {self.m:,} label{'s' * (self.m > 1)} in {number(self.n)} rows"
        return html_table(title, ("label", "tp", "fp", "fn", "tn"), rows, self.m)


def counted(
    y_true: Any,
    y_pred: Any,
    sample_weight: ArrayLike | None = None,
    n_labels: int | None = None,
    *,
    matrix: bool = False,
    whole: str = "",
) -> Counts:
    """What ``Counts.from_labels`` returns; ``whole`` says for what no row may be known in part."""
    parts = (y_true, y_pred, sample_weight, n_labels)
    return Counts(*confusion_of(*parts, matrix=matrix, whole=whole))


def counts_of(state: State) -> Counts:
    """The counts of true labels in a state, as users see them.

    A label that was unknown in some of the rows counts in proportion, as if it were known in all.
    """
    truth = state.truth
    return Counts._unchecked(truth.in_proportion.copy(), float(truth.totals[N]), None)


def estimates_of(state: State) -> Counts | None:
    """The counts of probabilities in a state; None where decisions look at true labels."""
    if state.labels is None:
        return None
    cells = state.cells
    return Counts(cells[TP], cells[PREDICTED], cells[POSITIVE], float(state.totals[N]))


def state_of(counts: Counts) -> State:
    """Counts as the kernels hold them, sums over labels included."""
    cells = np.stack((counts.tp, counts.predicted, counts.positive))
    return State(cells, np.concatenate(([counts.n], sums_of(cells))))


def _vector(name: str, values: ArrayLike, hair: float) -> Vector:
    vector = _counted(f"{name} of Counts", values, hair)
    if vector.ndim != 1 or not len(vector):
        raise ValueError(
            f"{name} of Counts must have one number for each label, got shape {vector.shape}"
        )
    return vector


def _square(
    what: str, values: ArrayLike, m: int | None = None, hair: float = HAIR
) -> NDArray[np.float64]:
    square = _counted(what, values, hair)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or m not in (None, len(square)):
        side = "m" if m is None else m
        raise ValueError(f"{what} must have the shape ({side}, {side}), got {square.shape}")
    return square


def _counted(what: str, values: ArrayLike, hair: float) -> NDArray[np.float64]:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:  # text, or rows of several lengths
        raise TypeError(f"{what} must be numbers, got {shown(values)}") from error
    if array.size and not (array.min() >= -hair and array.max() < np.inf):  # NaN is neither
        wrong = array[~((array >= -hair) & (array < np.inf))][0]
        raise ValueError(f"{what} must be finite numbers of at least 0, got {wrong:g}")
    return array


def _as_rows(row: Any) -> Any:
    """One row as a matrix of one row; a class id as a vector of one."""
    return row if sparse.issparse(row) else np.asarray(row)[np.newaxis]

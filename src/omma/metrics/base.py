"""The interface of all metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import check_number
from omma.counts import Counts, state_of
from omma.engine import Engine
from omma.kernels.layout import EPSILON
from omma.kernels.objectives import Nothing, with_epsilon
from omma.plan import Plan
from omma.state import State

if TYPE_CHECKING:
    from omma.metrics.binary import LabelMetric

Vector = NDArray[np.float64]


# Metrics of one label that mean something else over classes: their averages are other numbers.
OF_CLASSES = frozenset({"accuracy", "balanced_accuracy", "gmean", "hmean", "qmean", "mcc"})


class Metric(ABC):
    """A function of counts to be maximized, and its derivatives.

    Attributes
    ----------
    name : str
        The name in tables; ``omma.metric(name)`` returns a metric of the catalogue by it.
    formula : str
        The formula in plain text.
    binary : bool
        Whether it looks at one label only (wrap it in ``macro`` or ``micro`` for more).
    multiclass : bool
        Whether it is meant for one class a row: a policy without a budget then takes k = 1.
    concave, smooth, linear_fractional : bool
        As a function of (tp, predicted) at fixed label frequencies: whether it is concave;
        whether its derivative is Lipschitz wherever every label occurs and is sometimes absent;
        whether it is a ratio of two linear forms.
    linear : bool
        Whether that ratio has a constant denominator.
    single_label : bool
        Whether it is defined for exactly one true class and one prediction a row.
    """

    name: str
    formula: str
    binary: bool = False
    multiclass: bool = False
    single_label: bool = False
    matrix: Any = None  # the gain of predicting j where i is true, for metrics with costs
    sums: int = 0  # SUMS where the kernels have to keep sums over labels
    # Assumption 4.1 of the paper asks for concave and smooth metrics; these say which are.
    concave: bool = False
    smooth: bool = False
    linear: bool = False
    linear_fractional: bool = False

    def _set(self, **traits: Any) -> None:
        """Set traits of a frozen metric, in its ``__post_init__``."""
        self.__dict__.update(traits)

    def value(self, counts: Counts, zero_division: float = 0.0) -> float:
        """The metric of some counts; a rate of 0/0 is ``zero_division``."""
        self.check_counts(counts)
        tp, predicted, positive = counts.cells
        return float(self.values(tp, predicted, positive, np.asarray(counts.n), zero_division))

    @abstractmethod
    def values(
        self, tp: Vector, predicted: Vector, positive: Vector, n: Vector, zero_division: float = 0.0
    ) -> Vector:
        """The metric of many counts at once: cells of shape (..., m), ``n`` of shape (...).

        >>> import numpy as np, omma
        >>> tp, predicted, positive = np.array([[[2.0], [3.0]], [[4.0], [3.0]], [[4.0], [3.0]]])
        >>> omma.metric("macro_f1").values(tp, predicted, positive, np.array([9.0, 9.0]))
        array([0.5, 1. ])
        """

    @abstractmethod
    def to_json(self) -> Any:
        """The metric as JSON, for ``metric_from_json``."""

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        """The metric in the form that kernels read, times its ``weight`` where it is part of a sum.

        ``exact`` asks for derivatives, not only for numbers proportional to them.
        """
        return Nothing(0.0)

    @property
    def compiles(self) -> bool:
        """Whether compiled code can work out the metric's value, not only its derivatives."""
        return True

    @property
    def needs_matrix(self) -> bool:
        """Whether it looks at pairs of classes; it is then one of classes, with one label a row."""
        return self.matrix is not None

    @property
    def per_label(self) -> LabelMetric | None:
        """The metric of one label that this one is, or averages; None for other metrics."""
        return None

    @property
    def parts(self) -> tuple[tuple[float, Metric], ...]:
        """The metrics that a sum adds up, each with its factor; of others, the metric itself."""
        return ((1.0, self),)

    def check_labels(self, m: int) -> None:
        """Refuse a number of labels that the metric has no meaning for."""
        if self.binary and m != 1:
            hint = self.over_many("pass eta[:, 1]" if m == 2 else None)
            raise ValueError(f"{self.name} is a metric of one label, got {m} columns: {hint}")

    def over_many(self, first: str | None = None) -> str:
        """A hint for a metric of one label: the metrics of several labels or classes to use."""
        hint = first or f"use macro_{self.name} or micro_{self.name}"
        if self.name in OF_CLASSES:
            hint += f", or multiclass_{self.name} for one class a row"
        return hint

    def check_counts(self, counts: Counts) -> None:
        """Refuse counts that the metric cannot be computed from."""
        if not isinstance(counts, Counts):
            raise TypeError(
                f"counts of {self.name} must be omma.Counts, got {type(counts).__name__}"
            )
        self.check_labels(counts.m)
        if counts.n <= 0:
            raise ValueError(f"counts of {self.name} must hold at least one row, got none")

    def gradient(
        self, counts: Counts, prior: float = 0.0, *, epsilon: float = EPSILON
    ) -> tuple[Vector, Vector]:
        """Slope and offset: derivatives by tp / n and by predicted / n of each label.

        The linearized gain of predicting label j with probability η is ``slope[j]·η + offset[j]``.
        ``prior`` is added to each of the four cells of each label first, ``epsilon`` to the
        denominators of fractions; both as in Remark 4.4 of the paper.

        >>> import omma
        >>> slope, offset = omma.metric("macro_f1").gradient(omma.Counts([2], [5], [3], 10))
        >>> round(float(-offset[0] / slope[0]), 6)  # the threshold is tp / (positive + predicted)
        0.25
        """
        # λ and ε of Remark 4.4: λ is never stored in counts, so that these can be added up.
        check_number(f"{self.name}.gradient", "prior", prior, low=0.0)
        check_number(f"{self.name}.gradient", "epsilon", epsilon, low=0.0, strict=True)
        self.check_labels(counts.m)
        if self.needs_matrix:
            raise TypeError(f"{self.name} has a matrix of gains, not a slope and an offset")
        return self.gradient_at(state_of(counts), prior, epsilon)

    def gradient_at(
        self, state: State, prior: float, epsilon: float = EPSILON
    ) -> tuple[Vector, Vector]:
        """``gradient`` at the counts of a state, without checks."""
        # α and −β of the paper's Eq. (5): the cost-sensitive form of Eq. (3).
        # Elsewhere only decisions matter, and a term may leave out positive factors.
        term = with_epsilon(self.term(exact=True), epsilon)
        plan = Plan(None, term, self.matrix, prior, sums=self.sums)
        return Engine(plan, state).rule(settled=True)

    def score(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: ArrayLike | None = None,
        *,
        labels: Sequence[Any] | None = None,
        n_labels: int | None = None,
        pos_label: Any = None,
        zero_division: float = 0.0,
    ) -> float:
        """The metric of predictions against true labels.

        Parameters
        ----------
        y_true, y_pred : array-like or sparse matrix of shape (n, m), or of shape (n,)
            Vectors are classes, numbers or text; for a metric of one label they are 0/1, or
            classes of which ``pos_label`` is the positive one. Lists of lists of text, or of
            sets, are the labels of each row. NaN in ``y_true`` is unknown, of indicators and of
            0/1: a label is then scored on the rows in which it is known.
        sample_weight : array-like of shape (n,), optional
            A row of weight w counts as w rows. Weights are not costs: for these, see
            ``omma.metrics.RowCosts``.
        labels : sequence, optional
            The classes to score (default: those that occur in either vector, sorted). A metric
            over classes needs all of them; others accept a subset, as scikit-learn does.
        n_labels : int, optional
            The number of classes, where some do not occur: these count as 0/0.
        pos_label : optional
            The positive class, for metrics of one label.
        zero_division : float
            The value of a rate of 0/0; the label stays in the mean. NaN leaves it out.

        >>> import omma
        >>> omma.metric("macro_f1").score([[1, 0], [1, 1]], [[1, 0], [1, 1]])
        1.0
        >>> omma.metric("recall").score([1, 1, 0], [1, 0, 0])
        0.5
        >>> omma.metric("macro_recall").score(["a", "c", "c", "c", "c"], ["a", "a", "c", "c", "c"])
        0.875
        >>> omma.metric("micro_f1").score([["sports"], ["music", "news"]], [["sports"], ["news"]])
        0.8
        >>> omma.metric("macro_recall").score([[1, float("nan")], [1, 1]], [[1, 1], [0, 1]])
        0.75
        """
        # Imported here, as it imports every kind of metric.
        from omma.metrics.scoring import score_of

        return score_of(
            self, y_true, y_pred, sample_weight, labels, n_labels, pos_label, zero_division
        )

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The metric of an estimator's decisions: a metric can be passed as ``scoring=``.

        ``omma.sklearn.make_scorer`` has options, such as a budget and the positive class.
        """
        return self.score(y, estimator.predict(X), sample_weight)

    def __add__(self, metric: Any) -> Any:
        from omma.metrics.averages import Sum  # here: it imports this file

        return Sum(((1.0, self), (1.0, metric))) if isinstance(metric, Metric) else NotImplemented

    def __sub__(self, metric: Any) -> Any:
        return self + -metric if isinstance(metric, Metric) else NotImplemented

    def __mul__(self, factor: Any) -> Any:
        from omma.metrics.averages import Sum

        if not isinstance(factor, Real):
            return NotImplemented
        return Sum(((check_number(self.name, "factor", factor), self),))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        return self * (1.0 / check_number(self.name, "divisor", divisor))

    def __neg__(self) -> Any:
        return self * -1.0

    def __repr__(self) -> str:
        return f"<metric {self.name}>"


def divide(numerator: Any, denominator: Any, otherwise: float) -> Any:
    """Divide; x/0 is ``otherwise``. Reported values have no other division."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    result = np.full(numerator.shape, float(otherwise))
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result

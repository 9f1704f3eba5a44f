"""Costs of mistakes: a matrix for pairs of classes, or costs of each row."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import shown
from omma.counts import Counts
from omma.metrics.base import Metric
from omma.rows.arrays import meaning, read_numbers


@dataclass(frozen=True, repr=False, eq=False)
class Costs(Metric):
    """The average gain of a prediction; made by ``omma.metrics.costs``."""

    formula = "Σ over (true i, predicted j) of matrix[i, j] · C[i, j]"
    multiclass = single_label = True
    concave = smooth = linear = linear_fractional = True

    matrix: NDArray[np.float64]
    name: str = "costs"

    def check_labels(self, m: int) -> None:
        if m != len(self.matrix):
            raise ValueError(
                f"{self.name} has a matrix for {len(self.matrix)} classes, got {m} columns"
            )

    def value(self, counts: Counts, zero_division: float = 0.0) -> float:
        # The only metric that is no function of tp, predicted and positive of each class.
        self.check_counts(counts)
        if counts.matrix is None:
            raise ValueError(
                f"{self.name} needs counts of class pairs: make them by "
                "Counts.from_labels(…, matrix=True) or Counts.from_confusion"
            )
        return float((self.matrix * counts.matrix).sum() / counts.n)

    def values(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        """Zero: the worth of pairs of classes is no function of these counts."""
        return np.zeros(np.shape(n))

    def to_json(self) -> Any:
        return {"costs": self.matrix.tolist(), "name": self.name}

    def __eq__(self, metric: object) -> bool:
        return isinstance(metric, Costs) and np.array_equal(self.matrix, metric.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())


def costs(matrix: ArrayLike, *, name: str = "costs") -> Costs:
    """A metric that is linear in the m×m confusion matrix: ``Σ matrix[i, j] · C[i, j]``.

    Parameters
    ----------
    matrix : array-like of shape (m, m)
        The gain of predicting class j where class i is true. The library maximizes: write gains as
        positive numbers and costs as negative ones. The gains of a row's predictions are
        ``eta @ matrix``, and a class of probability zero may be the best of them.
    name : str

    Examples
    --------
    A false alarm costs 1, a missed fraud 20:

    >>> import omma
    >>> fraud = omma.metrics.costs([[0, -1], [-20, 0]])
    >>> omma.replay(omma.OMMA(fraud), [[0.97, 0.03], [0.9, 0.1]], [0, 1]).classes
    array([0, 1], dtype=int32)
    """
    # Metrics are hashed and shared: the matrix is a copy that cannot be written to.
    worth = np.array(matrix, dtype=np.float64)
    if worth.ndim != 2 or worth.shape[0] != worth.shape[1] or len(worth) < 2:
        raise ValueError(
            f"matrix of costs must have the shape (m, m) of at least 2 classes, got {worth.shape}"
        )
    if not np.isfinite(worth).all():
        raise ValueError(f"matrix of costs must hold finite numbers, got {shown(matrix)}")
    # People often write costs as positive numbers, and would then maximize them.
    mistakes = worth + np.diag(np.full(len(worth), np.inf))
    if (np.diag(worth) < mistakes.min(axis=1)).all():
        warnings.warn(
            "matrix of costs makes every mistake worth more than being right: "
            "write costs as negative numbers",
            UserWarning,
            stacklevel=2,
        )
    worth.flags.writeable = False
    return Costs(worth, name)


@dataclass(frozen=True, eq=False)
class RowCosts:
    """Decide each row by its own costs, and add costs up.

    Predicting a label that is absent costs ``false_alarm``, not predicting one that is present
    costs ``miss``: predicting is cheaper where η ≥ false_alarm / (false_alarm + miss). That is
    optimal for exact probabilities, so there is nothing to learn; calibrate them first
    (``omma.calibration``).

    ``weights=`` elsewhere counts a row several times, and does not do this: the page "Choosing a
    metric" compares the two.

    Parameters
    ----------
    false_alarm, miss : float, or array-like that fits the shape of ``eta``
        The cost of either mistake, at least 0: one number for all rows, one for each row (shape
        (n,), or (n, 1) for several labels), or one for each row and label.

    Examples
    --------
    A check of a payment costs 5, a fraud that is missed its amount:

    >>> import numpy as np
    >>> from omma.metrics import RowCosts
    >>> costs = RowCosts(false_alarm=5, miss=np.array([20, 1000, 3]))
    >>> costs.thresholds.round(3)
    array([0.2  , 0.005, 0.625])
    >>> decisions = costs.predict([0.1, 0.1, 0.5])
    >>> decisions
    array([0, 1, 0], dtype=int8)
    >>> costs.cost([0, 1, 1], decisions), costs.cost([0, 1, 1], [0, 0, 0])
    (3.0, 1003.0)
    """

    false_alarm: ArrayLike
    miss: ArrayLike

    def __post_init__(self) -> None:
        for name in ("false_alarm", "miss"):
            cost = getattr(self, name)
            numbers = read_numbers("RowCosts", name, cost).copy()
            if not (np.isfinite(numbers) & (numbers >= 0)).all():
                raise ValueError(
                    f"{name} of RowCosts must be finite and at least 0, got {shown(cost)}"
                )
            numbers.flags.writeable = False
            object.__setattr__(self, name, numbers)

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """The probability from which predicting is cheaper; 1 where no mistake costs anything."""
        alarm, miss = np.broadcast_arrays(np.asarray(self.false_alarm), np.asarray(self.miss))
        # Predicting costs (1 − η)·false_alarm, not predicting η·miss: Eq. (5) at constant gains.
        both = alarm + miss
        return np.divide(alarm, both, out=np.ones(both.shape), where=both > 0)  # type: ignore[no-any-return]

    def predict(self, eta: ArrayLike) -> NDArray[np.int8]:
        """Decide rows of probabilities: int8 indicators in their shape."""
        values = np.asarray(eta, dtype=np.float64)
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(
                f"eta of RowCosts must hold probabilities from 0 to 1, got {shown(eta)}"
                f"{meaning(values)}"
            )
        self._check_shape("eta", values)
        return (values >= self.thresholds).astype(np.int8)

    def cost(self, y: ArrayLike, prediction: ArrayLike) -> float:
        """The total cost of decisions, given the labels."""
        true, chosen = np.asarray(y), np.asarray(prediction)
        if true.shape != chosen.shape:
            raise ValueError(
                f"y and prediction of RowCosts must have one shape, got {true.shape} and "
                f"{chosen.shape}"
            )
        for name, labels in (("y", true), ("prediction", chosen)):
            if not np.isin(labels, (0, 1)).all():
                raise ValueError(f"{name} of RowCosts must hold 0 and 1, got {shown(labels)}")
        self._check_shape("y", true)
        # Costs are broadcast: one for all rows, one a row, or one for each row and label.
        alarms = np.asarray(self.false_alarm) * ((chosen == 1) & (true == 0))
        misses = np.asarray(self.miss) * ((chosen == 0) & (true == 1))
        return float(alarms.sum() + misses.sum())

    def _check_shape(self, name: str, values: NDArray[np.generic]) -> None:
        """Refuse costs whose shape does not fit these values."""
        thresholds = self.thresholds
        try:
            np.broadcast_to(thresholds, values.shape)
        except ValueError:
            raise ValueError(
                f"costs of RowCosts must fit the shape of {name}, {values.shape}, got "
                f"{thresholds.shape}"
            ) from None

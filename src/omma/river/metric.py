"""Any metric of omma as a metric of river, and the models and labels that it takes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from fractions import Fraction
from typing import Any

from river import base, metrics

from omma import metrics as own
from omma._validate import check_number, shown
from omma.counts import Counts
from omma.metrics.base import OF_CLASSES
from omma.metrics.names import MetricName
from omma.metrics.scoring import value_with

TP, PREDICTED, POSITIVE, LISTED = range(4)  # LISTED counts the rows that mention a label
YES_OR_NO = (False, True, -1)  # some streams have -1 for no


class Metric(metrics.base.ClassificationMetric):
    """A metric of omma, to be used where river takes one.

    A binary metric, such as `"f1"` or `"gmean"`, is about one positive class. A multi-class metric,
    such as `"multiclass_gmean"`, takes any labels. Those with `macro_` and `micro_` take labels or,
    from a multi-label model, dictionaries of labels, where a missing label is False. They average
    over the classes or labels seen so far.

    Counts are kept as whole numbers and fractions, so `revert` takes back an `update` exactly,
    whatever the weights.

    Parameters
    ----------
    metric
        A name (see `omma.metric`), or a metric of `omma.metrics`.
    pos_val
        Value to treat as "positive", for a binary metric.
    zero_division
        The value of a rate of 0/0, such as the recall of a class without rows.

    Examples
    --------
    >>> from omma.river import Metric

    >>> y_true = [True, False, True, True, True]
    >>> y_pred = [True, True, False, True, True]

    >>> metric = Metric("f1")
    >>> for yt, yp in zip(y_true, y_pred):
    ...     metric.update(yt, yp)

    >>> metric
    f1: 75.00%

    >>> metric = Metric("macro_f1")
    >>> metric.update({"cat": True, "dog": False}, {"cat": True, "dog": True})
    >>> metric.get()
    0.5

    With river's own tools it can be windowed, or added to other metrics:

    >>> from river import metrics, utils

    >>> windowed = utils.Rolling(Metric, window_size=2, metric="multiclass_gmean")
    >>> for yt, yp in zip("aabb", "abbb"):
    ...     windowed.update(yt, yp)
    >>> windowed.get()
    1.0

    >>> metrics.Accuracy() + Metric("multiclass_kappa")
    Accuracy: 0.00%
    multiclass_kappa: 0.00%

    """

    def __init__(
        self,
        metric: MetricName | str | own.Metric,
        pos_val: Any = True,
        zero_division: float = 0.0,
    ) -> None:
        self.metric = metric
        self.pos_val = pos_val
        self.zero_division = check_number("Metric", "zero_division", zero_division)
        self._own = own.metric(metric)
        refuse_for_streams("Metric", self._own)
        self._rows: int | Fraction = 0
        self._cells: dict[Hashable, list[Any]] = {}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"metric": "f1"}

    def update(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Count a row.

        Parameters
        ----------
        y_true, y_pred
            A label, or a dictionary of labels.
        w
            The weight of the row: it counts as `w` rows.

        """
        self._count(y_true, y_pred, w, 1)

    def revert(self, y_true: Any, y_pred: Any, w: float = 1.0) -> None:
        """Take back an `update`.

        Parameters
        ----------
        y_true, y_pred, w
            As of that `update`.

        """
        self._count(y_true, y_pred, w, -1)

    def get(self) -> float:
        """The metric so far.

        Returns
        -------
        A fraction; 0 before the first row.

        """
        if self._rows <= 0:
            return 0.0
        return value_with(self._own, self.counts, self.zero_division)

    @property
    def counts(self) -> Counts:
        """The counts so far, label by label."""
        cells = list(self._cells.values()) or [[0, 0, 0, 0]]
        tp, predicted, positive = (
            [float(cell[place]) for cell in cells] for place in (TP, PREDICTED, POSITIVE)
        )
        return Counts(tp, predicted, positive, float(self._rows))

    def works_with(self, model: Any) -> bool:
        """Say whether a model predicts what the metric judges.

        Parameters
        ----------
        model
            A model of river.

        Returns
        -------
        True for classifiers, and for multi-label classifiers if the metric averages over labels.

        """
        is_average = not (self._own.binary or self._own.multiclass)
        return is_single(model) or (is_average and is_multi(model))

    def _count(self, y_true: Any, y_pred: Any, w: float, sign: int) -> None:
        number = check_number("Metric", "w", w, low=0.0)
        # Numbers that add up without rounding.
        weight = sign * (int(number) if number.is_integer() else Fraction(number))
        true, predicted, listed = self._labels(y_true, y_pred)
        if sign < 0 and not all(label in self._cells for label in listed):
            raise ValueError(
                f"revert of Metric must come after an update with the same labels, got "
                f"{shown(y_true)} and {shown(y_pred)}"
            )
        self._rows += weight
        for label in listed:
            cell = self._cells.setdefault(label, [0, 0, 0, 0])
            cell[TP] += weight * (label in true and label in predicted)
            cell[PREDICTED] += weight * (label in predicted)
            cell[POSITIVE] += weight * (label in true)
            cell[LISTED] += sign  # rows and not weights, which may be zero
            if not cell[LISTED]:  # all its rows were taken back: macro averages leave it out
                del self._cells[label]

    def _labels(self, y_true: Any, y_pred: Any) -> tuple[Collection[Hashable], ...]:
        """The true labels, the predicted ones, and all that a row mentions."""
        pair = (y_true, y_pred)
        check, name = check_label, self._own.name
        if isinstance(y_true, dict) and not (self._own.binary or self._own.multiclass):
            check = check_labels
        for parameter, y in zip(("y_true", "y_pred"), pair, strict=True):
            check(name, parameter, y)
        if self._own.binary:
            check_positive(name, "y_true", y_true, self.pos_val, self._own)
            true, predicted = ({True} if y == self.pos_val else () for y in pair)
            return true, predicted, (True,)
        if check is check_label:
            return {y_true}, {y_pred}, dict.fromkeys(pair)
        true, predicted = ({label for label, yes in y.items() if yes} for y in pair)
        return true, predicted, y_true | y_pred

    def __repr__(self) -> str:
        return f"{self._own.name}: {self.get():{self._fmt}}"


def refuse_for_streams(owner: str, metric: own.Metric) -> None:
    """Refuse a metric that must know all classes beforehand."""
    if metric.needs_matrix:
        raise ValueError(
            f"metric of {owner} must not be a table of costs, whose classes are numbered while "
            f"those of a stream have names and come as they come, got {metric.name}"
        )


def last_step(model: Any) -> Any:
    """The model at the end of a pipeline, however deeply pipelines are nested."""
    while hasattr(model, "_last_step"):
        model = model._last_step
    return model


def is_single(model: Any) -> bool:
    """Whether a model predicts one label per row: yes or no, or one of several classes."""
    return isinstance(last_step(model), base.Classifier)


def check_label(owner: str, parameter: str, y: Any) -> None:
    """Refuse what cannot be one label: lists, arrays, dictionaries."""
    if not isinstance(y, Hashable):
        raise TypeError(f"{parameter} of {owner} must be one class a row, got {shown(y)}")


def check_positive(owner: str, parameter: str, y: Any, pos_val: Any, metric: own.Metric) -> None:
    """Refuse text and numbers of classes while the positive class is True, as by default.

    >>> from omma.metrics import metric
    >>> check_positive("learn_one", "y", "spam", True, metric("f1"))
    Traceback (most recent call last):
    ...
    ValueError: y of learn_one must be True or False unless pos_val= names the positive \
    class, got 'spam'; f1 over classes is macro_f1
    """
    if pos_val is True and y not in YES_OR_NO:
        over = "multiclass" if metric.name in OF_CLASSES else "macro"
        raise ValueError(
            f"{parameter} of {owner} must be True or False unless pos_val= names the positive "
            f"class, got {shown(y)}; {metric.name} over classes is {over}_{metric.name}"
        )


def check_labels(owner: str, parameter: str, y: Any) -> None:
    """Refuse what is no dictionary of labels."""
    if not isinstance(y, dict):
        raise TypeError(
            f"{parameter} of {owner} must be a dictionary from labels to True or False, got "
            f"{shown(y)}"
        )


def is_multi(model: Any) -> bool:
    """Whether a model predicts yes or no for each of many labels."""
    return isinstance(last_step(model), base.MultiLabelClassifier)

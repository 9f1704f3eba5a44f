"""Scores of predictions against true labels: indicators, classes, text or label sets.

Also the range of the values that a metric can have.
"""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from omma._confusion import class_indicators, confusion_of, is_vector
from omma._validate import shown
from omma.counts import Counts
from omma.metrics.averages import KINDS, Macro, OverClasses, Sum
from omma.metrics.base import OF_CLASSES, Metric
from omma.metrics.binary import RECALL, Binary, Minimum, mean_of
from omma.metrics.costs import Costs
from omma.rows.frames import check_same_rows, is_label_sets, open_table


def score_of(
    metric: Metric,
    y_true: Any,
    y_pred: Any,
    sample_weight: Any,
    labels: Sequence[Any] | None,
    n_labels: int | None,
    pos_label: Any,
    zero_division: float,
) -> float:
    """The metric of predictions against true labels; ``Metric.score`` explains all parameters."""
    owner = f"{metric.name}.score"
    check_zero_division(owner, zero_division)
    check_same_rows(owner, {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight})
    pair = _as_vectors(y_true, y_pred)
    # Lists of label names, or sets of ids, are neither indicators nor classes.
    are_sets = any(map(is_label_sets, pair))
    width = n_labels
    # Indicators, 0 and 1 of a single label, or else classes and sets of labels.
    if not are_sets and not all(map(is_vector, pair)):
        _refuse(owner, "labels", labels, "indicators")
        _refuse(owner, "pos_label", pos_label, "indicators")
    elif metric.binary and not are_sets:
        pair, width = _one_label(metric, owner, pair, pos_label), 1
    else:
        _refuse(owner, "pos_label", pos_label, "a metric of many labels")
        if metric.needs_matrix and labels is None and n_labels is None:
            labels = _all_ids(len(metric.matrix), pair)
        pair = class_indicators(
            owner, *pair, labels=labels, n_labels=n_labels, outside=not metric.multiclass
        )
        width = None
    # One class a row is known or it is not: no row may be labelled in part.
    whole = f"for {metric.name}, which is about one class a row" if metric.multiclass else ""
    cells = confusion_of(*pair, sample_weight, width, matrix=metric.needs_matrix, whole=whole)
    return value_with(metric, Counts._unchecked(*cells), float(zero_division))


def _as_vectors(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """A column beside a vector, or a column of text, as a vector; frame[["target"]] is one."""

    def is_column(y: Any) -> bool:
        return not sparse.issparse(y) and len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1

    def is_text(y: Any) -> bool:
        values = np.asarray(y).ravel() if is_column(y) else np.empty(0)
        return bool(len(values)) and isinstance(values[0], str | bytes)

    # A column of numbers beside another one may be indicators of one label: it stays.
    if not any(is_vector(y) or is_text(y) for y in (y_true, y_pred)):
        return y_true, y_pred
    first, second = (np.asarray(y).reshape(-1) if is_column(y) else y for y in (y_true, y_pred))
    return first, second


def check_zero_division(owner: str, zero_division: Any) -> None:
    """A finite number, or NaN."""
    if not isinstance(zero_division, Real) or math.isinf(zero_division):
        raise TypeError(
            f"zero_division of {owner} must be a finite number or NaN, got {shown(zero_division)}"
        )


def _refuse(owner: str, parameter: str, value: Any, what: str) -> None:
    if value is not None:
        raise ValueError(f"{parameter} of {owner} must be None for {what}, got {shown(value)}")


def _one_label(metric: Metric, owner: str, pair: tuple[Any, Any], pos_label: Any) -> Any:
    """Vectors of 0 and 1, where 1 is the positive class; what is unknown stays NaN."""
    names = ("y_true", "y_pred")
    true, predicted = (
        np.asarray(open_table(owner, name, y).values) for name, y in zip(names, pair, strict=True)
    )
    unknown = np.isnan(true) if true.dtype.kind == "f" else np.zeros(true.shape, dtype=np.bool_)
    if pos_label is None and all(y.dtype.kind in "fiub" for y in (true, predicted)):
        known = (true[~unknown], predicted)
        if all(np.isin(y, (-1, 1)).all() for y in known):  # -1 is the negative class
            pos_label = 1
        elif all(((y >= 0) & (y <= 1)).all() for y in known):
            return true, predicted
    if pos_label is None:
        over = "multiclass" if metric.name in OF_CLASSES else "macro"
        classes = dict.fromkeys((*true[:1000].tolist(), *predicted[:1000].tolist()))
        raise ValueError(
            f"y_true and y_pred of {owner} must hold 0 and 1, got the classes "
            f"{shown(list(classes)[:4])}: pass pos_label, or use {over}_{metric.name}"
        )
    first, second = ((y == pos_label).astype(np.int8) for y in (true, predicted))
    return np.where(unknown, np.nan, first) if unknown.any() else first, second


def _all_ids(m: int, pair: tuple[Any, Any]) -> Any:
    """All ids of m classes, if the vectors hold only these: a matrix has classes by their place."""
    arrays = [np.asarray(open_table("score", "y", y).values) for y in pair]
    fits = all(y.dtype.kind in "fiub" and np.isin(y, np.arange(m)).all() for y in arrays)
    return range(m) if fits else None


def value_with(metric: Metric, counts: Counts, zero_division: float) -> float:
    """The metric of counts; ``zero_division=nan`` leaves out labels whose rate is 0/0."""
    single_class = metric.multiclass and counts.m == 1 and not metric.needs_matrix
    if not single_class and not math.isnan(zero_division):
        return metric.value(counts, zero_division)
    if single_class:
        # Every mean of recalls is the recall of the class. Metrics over classes need two: the
        # other one never occurs.
        counts = Counts._unchecked(np.pad(counts.cells, ((0, 0), (0, 1))), counts.n)
    value = value_skipping(metric, counts)
    return zero_division if math.isnan(value) else value


def value_skipping(metric: Metric, counts: Counts) -> float:
    """The metric without labels whose own is 0/0, as ``zero_division=nan`` asks in scikit-learn.

    Where nothing is left, it is NaN.

    >>> import omma
    >>> counts = omma.Counts([0, 3], [0, 4], [0, 4], 10)  # the first label never occurs
    >>> macro_f1 = omma.metric("macro_f1")
    >>> macro_f1.value(counts), value_skipping(macro_f1, counts)
    (0.375, 0.75)
    """
    if isinstance(metric, Sum):
        return float(sum(weight * value_skipping(part, counts) for weight, part in metric.parts))
    metric.check_counts(counts)
    cells = (counts.tp, counts.predicted, counts.positive, counts.n)
    # A rate is 0/0 if its value changes with ``zero_division``.
    if isinstance(metric, Macro):
        mean, low, high = "arithmetic", *(metric.of.of_cells(*cells, to) for to in (0.0, 1.0))
    elif isinstance(metric, OverClasses) and metric.kind not in ("accuracy", "mcc", "kappa"):
        mean, low, high = KINDS[metric.kind].mean, *(RECALL.of(*cells, to) for to in (0.0, 1.0))
    else:
        mean, low, high = "rate", *(np.array([metric.value(counts, to)]) for to in (0.0, 1.0))
    defined = low[low == high]
    if len(defined) < 2:
        return float(defined[0]) if len(defined) else math.nan
    return float(mean_of(mean, defined))


def value_range(metric: Metric) -> tuple[float, float]:
    """The lowest and the highest value of a metric, as far as that is known.

    >>> import omma
    >>> value_range(omma.metric("macro_f1")), value_range(omma.metric("micro_mcc"))
    ((0.0, 1.0), (-1.0, 1.0))
    >>> value_range(omma.metric("macro_recall") - omma.metric("macro_mcc"))
    (-1.0, 2.0)
    """
    if isinstance(metric, Sum):
        # A part without weight may be unbounded: 0 · ∞ is no number.
        parts = [(weight, value_range(part)) for weight, part in metric.parts if weight]
        ends = [sorted((weight * low, weight * high)) for weight, (low, high) in parts]
        return sum(low for low, _ in ends), sum(high for _, high in ends)
    if isinstance(metric, Costs):
        return float(metric.matrix.min()), float(metric.matrix.max())
    of = getattr(metric, "of", metric)  # a mean over labels has the range of a label's metric
    if not isinstance(of, Binary | Minimum | OverClasses):
        return -math.inf, math.inf  # of a metric that a user wrote
    return (-1.0 if of.name.endswith(("mcc", "kappa")) else 0.0), 1.0

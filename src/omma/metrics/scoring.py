"""Predictions judged by a metric, in every shape that they come in."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from omma._confusion import class_indicators, is_vector
from omma._validate import shown
from omma.counts import Counts, counted
from omma.metrics.averages import KINDS, Macro, OverClasses, Sum
from omma.metrics.base import OF_CLASSES, Metric
from omma.metrics.binary import RECALL, mean_of
from omma.rows.frames import values_of
from omma.rows.index import check_same_rows
from omma.rows.sets import is_label_sets


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
    """The metric of predictions against true labels; ``Metric.score`` says what all that is."""
    owner = f"{metric.name}.score"
    check_zero_division(owner, zero_division)
    given = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight}
    check_same_rows(owner, given)
    y_true, y_pred = _without_columns(y_true, y_pred)
    sets = is_label_sets(y_true) or is_label_sets(y_pred)
    if not sets and not (is_vector(y_true) and is_vector(y_pred)):
        _refuse(owner, "labels", labels, "indicators")
        _refuse(owner, "pos_label", pos_label, "indicators")
        pair, width = (y_true, y_pred), n_labels
    elif metric.binary and not sets:
        pair, width = _one_label(metric, owner, y_true, y_pred, pos_label), 1
    else:
        _refuse(owner, "pos_label", pos_label, "a metric of many labels")
        pair, width = _many(metric, owner, y_true, y_pred, labels, n_labels), None
    one_class = metric.multiclass or metric.single_label
    whole = f"for {metric.name}, which is about one class a row" if one_class else ""
    counts = counted(*pair, sample_weight, width, matrix=metric.needs_matrix, whole=whole)
    return value_with(metric, counts, float(zero_division))


def _without_columns(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """A column beside a vector, or one of text, as a vector: what frame[["target"]] is."""
    pair = (y_true, y_pred)
    if any(map(is_vector, pair)) or any(map(_is_text, pair)):
        return _flat(y_true), _flat(y_pred)
    return pair


def _is_column(y: Any) -> bool:
    return not sparse.issparse(y) and len(getattr(y, "shape", ())) == 2 and y.shape[1] == 1


def _is_text(y: Any) -> bool:
    values = np.asarray(y).ravel() if _is_column(y) else np.empty(0)
    return bool(len(values)) and isinstance(values[0], str | bytes)


def _flat(y: Any) -> Any:
    return np.asarray(y).reshape(-1) if _is_column(y) else y


def check_zero_division(owner: str, zero_division: Any) -> None:
    """A finite number, or NaN."""
    if not isinstance(zero_division, Real) or math.isinf(zero_division):
        raise TypeError(
            f"zero_division of {owner} must be a finite number or NaN, got {shown(zero_division)}"
        )


def _refuse(owner: str, parameter: str, given: Any, what: str) -> None:
    if given is not None:
        raise ValueError(f"{parameter} of {owner} must be None for {what}, got {shown(given)}")


def _one_label(metric: Metric, owner: str, y_true: Any, y_pred: Any, pos_label: Any) -> Any:
    """Vectors of 0 and 1, where 1 is the positive class."""
    pair = [
        np.asarray(values_of(owner, name, y))
        for name, y in (("y_true", y_true), ("y_pred", y_pred))
    ]
    unknown = np.isnan(pair[0]) if pair[0].dtype.kind == "f" else np.bool_(False)
    if pos_label is not None:
        return _marked(pair, pos_label, unknown)
    if all(one.dtype.kind in "fiub" for one in pair):
        looked = [pair[0][~unknown] if unknown.any() else pair[0], pair[1]]
        if all(np.isin(one, (-1, 1)).all() for one in looked):
            return _marked(pair, 1, unknown)
        if all(((one >= 0) & (one <= 1)).all() for one in looked):
            return pair
    over = "multiclass" if metric.name in OF_CLASSES else "macro"
    raise ValueError(
        f"y_true and y_pred of {owner} must hold 0 and 1, got the classes "
        f"{shown(_some(pair))}: pass pos_label, or use {over}_{metric.name}"
    )


def _marked(pair: list[Any], positive: Any, unknown: Any) -> list[Any]:
    """One where it is the positive class, else zero; what is unknown stays so."""
    true, predicted = ((one == positive).astype(np.int8) for one in pair)
    return [np.where(unknown, np.nan, true) if unknown.any() else true, predicted]


def _some(pair: list[Any]) -> list[Any]:
    found = dict.fromkeys(one for vector in pair for one in vector[:1000].tolist())
    return list(found)[:4]


def _many(
    metric: Metric, owner: str, y_true: Any, y_pred: Any, labels: Any, n_labels: int | None
) -> Any:
    """Indicators of classes, or of sets of labels."""
    if metric.needs_matrix and labels is None and n_labels is None:
        labels = _by_place(len(metric.matrix), y_true, y_pred)
    pair = class_indicators(
        owner,
        y_true,
        y_pred,
        labels=labels,
        n_labels=n_labels,
        outside=not (metric.multiclass or metric.needs_matrix),
    )
    return pair


def _by_place(m: int, *vectors: Any) -> Any:
    """All ids of m classes, where that is what the vectors hold: a table goes by their place."""
    arrays = [np.asarray(values_of("score", "y", one)) for one in vectors]
    fits = all(one.dtype.kind in "fiub" and np.isin(one, np.arange(m)).all() for one in arrays)
    return range(m) if fits else None


def value_with(metric: Metric, counts: Counts, zero_division: float) -> float:
    """The metric of counts; NaN as the worth of 0/0 leaves out the labels that hang on it."""
    alone = metric.multiclass and counts.m == 1 and not metric.needs_matrix
    if not alone and not math.isnan(zero_division):
        return metric.value(counts, zero_division)
    # One class is all there is: its recall is every mean of recalls, and 0/0 stays what it is.
    found = value_skipping(metric, _with_another(counts) if alone else counts)
    return zero_division if math.isnan(found) else found


def _with_another(counts: Counts) -> Counts:
    """The same with a class that never comes, as metrics over classes want two."""
    tp, predicted, positive = (
        np.append(one, 0.0) for one in (counts.tp, counts.predicted, counts.positive)
    )
    return Counts(tp, predicted, positive, counts.n)


def value_skipping(metric: Metric, counts: Counts) -> float:
    """The metric without labels whose own is 0/0, as ``zero_division=nan`` asks in scikit-learn.

    Where nothing is left, it is NaN.

    >>> import omma
    >>> counts = omma.Counts([0, 3], [0, 4], [0, 4], 10)  # the first label never comes
    >>> macro_f1 = omma.metric("macro_f1")
    >>> macro_f1.value(counts), value_skipping(macro_f1, counts)
    (0.375, 0.75)
    """
    if isinstance(metric, Sum):
        return float(sum(weight * value_skipping(part, counts) for weight, part in metric.terms))
    if isinstance(metric, Macro):
        return _mean("arithmetic", *(metric.of_labels(counts, worth) for worth in (0.0, 1.0)))
    if isinstance(metric, OverClasses) and metric.kind not in ("accuracy", "mcc", "kappa"):
        metric.check_counts(counts)
        cells = (counts.tp, counts.predicted, counts.positive, counts.n)
        return _mean(KINDS[metric.kind].mean, *(RECALL.of(*cells, worth) for worth in (0.0, 1.0)))
    low, high = metric.value(counts, 0.0), metric.value(counts, 1.0)
    return low if low == high else float("nan")


def _mean(kind: str, low: Any, high: Any) -> float:
    """The mean of what does not hang on the worth of 0/0."""
    sure = low[low == high]
    if len(sure) < 2:
        return float(sure[0]) if len(sure) else float("nan")
    return float(np.asarray(mean_of(kind, sure)))

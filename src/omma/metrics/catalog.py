"""Every named metric, one statement each.

The ``macro_`` and ``micro_`` forms, the kernels, the command line, the tables and the property
tests pick up a statement that is added here. CONTRIBUTING.md lists the places that repeat its name.
Functions make metrics of others: ``fbeta``, ``macro``, ``micro``, ``minimum`` and ``smoothed``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from omma._validate import check_number, check_positive_int, nearest, shown
from omma.counts import Counts, state_of
from omma.metrics.averages import KINDS, Macro, Micro, OverClasses, Sum, Weighted, is_minimum
from omma.metrics.base import Metric
from omma.metrics.binary import (
    RECALL,
    SPECIFICITY,
    Binary,
    LabelMetric,
    Minimum,
    Rate,
    Smoothing,
)
from omma.metrics.costs import costs
from omma.metrics.names import MetricName
from omma.metrics.target import BARE, parse_target
from omma.state import State

Kinked = Macro | Micro | Weighted | Minimum | OverClasses
# The columns for two classes of the paper's Table 1; traits as in ``Metric``.
LINEAR = {"concave": True, "smooth": True, "linear": True, "linear_fractional": True}


def fbeta(beta: float) -> Binary:
    """The F-measure that weights recall ``beta`` times as much as precision.

    ``(1 + β²)·tp / ((1 + β²)·tp + β²·fn + fp)``, which is the same as
    ``(1 + β²)·tp / (β²·positive + predicted)``.

    >>> fbeta(2.0)
    <metric f2>
    >>> round(fbeta(2.0).score([1, 1, 0], [1, 0, 0]), 4)
    0.5556
    """
    check_number("fbeta", "beta", beta, low=0.0, strict=True)
    # tp, fn = positive − tp and fp = predicted − tp: the terms of tp cancel below the line.
    square = float(beta) ** 2
    missed = "fn" if square == 1 else f"{square:g}·fn"
    return Binary(
        f"f{beta:g}",
        f"{1 + square:g}·tp / ({1 + square:g}·tp + {missed} + fp)",
        "rate",
        Rate((1 + square, 0, 0, 0), (0, 1, square, 0)),
        smooth=True,
        linear_fractional=True,
        spec=None if beta == 1 else {"fbeta": float(beta)},
    )


# Coefficients are of (tp, predicted, positive, n): tp + tn is 2·tp − predicted − positive + n, and
# tp + fp + fn is predicted + positive − tp.
accuracy = Binary("accuracy", "(tp + tn) / n", "rate", Rate((2, -1, -1, 1), (0, 0, 0, 1)), **LINEAR)
balanced_accuracy = Binary(
    "balanced_accuracy",
    "(tp / (tp + fn) + tn / (tn + fp)) / 2",
    "arithmetic",
    None,
    **LINEAR,
)
precision = Binary(
    "precision",
    "tp / (tp + fp)",
    "rate",
    Rate((1, 0, 0, 0), (0, 1, 0, 0)),
    linear_fractional=True,
)
recall = Binary("recall", "tp / (tp + fn)", "rate", RECALL, **LINEAR)
specificity = Binary("specificity", "tn / (tn + fp)", "rate", SPECIFICITY, **LINEAR)
f1 = fbeta(1.0)
jaccard = Binary(
    "jaccard",
    "tp / (tp + fp + fn)",
    "rate",
    Rate((1, 0, 0, 0), (-1, 1, 1, 0)),
    smooth=True,
    linear_fractional=True,
)
gmean = Binary("gmean", "√(tp / (tp + fn) · tn / (tn + fp))", "geometric", concave=True)
hmean = Binary("hmean", "2 / ((tp + fn) / tp + (tn + fp) / tn)", "harmonic", concave=True)
qmean = Binary(
    "qmean",
    "1 − √(((fn / (tp + fn))² + (fp / (tn + fp))²) / 2)",
    "quadratic",
    concave=True,
)
min_recall_specificity = Minimum(recall, specificity)
mcc = Binary("mcc", "(tp·tn − fp·fn) / √((tp + fp)(tp + fn)(tn + fp)(tn + fn))", "correlation")

# Every statement above that names a metric of one label, in the order of the tables.
_BINARY: dict[str, LabelMetric] = {
    name: metric
    for name, metric in list(globals().items())
    if isinstance(metric, LabelMetric) and name == metric.name
}
# Shares of all rows, which a minimum may be of.
_FRACTIONS = {
    "tp": Binary("tp", "tp / n", "rate", Rate((1, 0, 0, 0), (0, 0, 0, 1)), **LINEAR),
    "tn": Binary("tn", "tn / n", "rate", Rate((1, -1, -1, 1), (0, 0, 0, 1)), **LINEAR),
}
_CATALOG: dict[str, Metric] = {
    **_BINARY,
    **{f"macro_{name}": Macro(metric) for name, metric in _BINARY.items()},
    **{f"micro_{name}": Micro(metric) for name, metric in _BINARY.items()},
    **{f"weighted_{name}": Weighted(_BINARY[name]) for name in BARE},
    **{f"multiclass_{kind}": OverClasses(kind) for kind in KINDS},
}
NAMES: tuple[str, ...] = tuple(_CATALOG)


AVERAGES: dict[str, Callable[[LabelMetric], Metric]] = {
    kind.average: kind for kind in (Macro, Micro, Weighted)
}


def metric(name: MetricName | str | Metric) -> Metric:
    """A metric by its name; a metric is returned as it is.

    Names are ``accuracy``, ``balanced_accuracy``, ``precision``, ``recall``, ``specificity``,
    ``f1``, ``jaccard``, ``gmean``, ``hmean``, ``qmean``, ``min_recall_specificity`` and ``mcc`` for
    one label; the same with ``macro_`` or ``micro_`` before them for many; ``weighted_`` with
    ``precision``, ``recall``, ``f1`` or ``jaccard`` for means weighed by how often labels occur;
    and ``multiclass_`` with ``accuracy``, ``balanced_accuracy``, ``gmean``, ``hmean``, ``qmean``,
    ``min_recall``, ``mcc`` or ``kappa`` for one class a row. ``f2``, ``macro_f0.5`` and so on are
    F-measures, and names of scikit-learn such as ``f1_macro`` are understood.

    >>> metric("macro_f1").formula
    'mean over labels of 2·tp / (2·tp + fn + fp)'
    >>> metric("macro_f")
    Traceback (most recent call last):
    ...
    ValueError: unknown metric 'macro_f'; did you mean 'macro_f1' or 'micro_f1' or 'macro_mcc'?
    """
    named, k = read_target(name)
    if k is not None:
        raise ValueError(
            f"a metric has no budget, got {name!r}: give it to a policy, as in "
            f"omma.Auto({name!r}), or pass {named.name!r} and k={k}"
        )
    return named


find_metric = metric  # where a parameter has that name


def read_target(target: str | Metric) -> tuple[Metric, int | None]:
    """A metric and the budget after its @, as in "macro_f1@3"; scikit-learn's names are understood.

    >>> read_target("macro_f1@3")
    (<metric macro_f1>, 3)
    >>> read_target("f1_micro")[0], read_target("macro_f2")[0]
    (<metric micro_f1>, <metric macro_f2>)
    """
    if isinstance(target, Metric):
        return target, None
    name, k = parse_target(target)
    if name in _CATALOG:
        return _CATALOG[name], k
    # An F-measure of any β, as f2 or macro_f0.5, is not in the catalogue, but made.
    average, _, label = name.rpartition("_")
    beta = re.fullmatch(r"f(\d+(\.\d+)?)", label)
    if beta is None or average not in ("", *AVERAGES) or float(beta[1]) == 0.0:
        hint = nearest(name, NAMES) or "; omma.metrics.NAMES lists them"
        raise ValueError(f"unknown metric {target!r}{hint}")
    of_label = fbeta(float(beta[1]))
    return AVERAGES[average](of_label) if average else of_label, k


def macro(metric: LabelMetric | str) -> Macro:
    """The mean over labels of a metric of one label.

    >>> macro("f1")
    <metric macro_f1>
    """
    return Macro(_one_label("macro", metric))


def micro(metric: LabelMetric | str) -> Micro:
    """A metric of one label at the counts averaged over labels.

    >>> micro(fbeta(0.5))
    <metric micro_f0.5>
    """
    return Micro(_one_label("micro", metric))


def minimum(first: LabelMetric | str, second: LabelMetric | str) -> Minimum:
    """The smaller of two rates of one label; ``macro`` and ``micro`` make it one of many.

    It is concave where the denominators do not depend on decisions, as in recall, specificity and
    accuracy; "tp" and "tn" are the shares of true positives and true negatives in all rows. To
    maximize it, smooth its kink: see ``omma.metrics.smoothed``.

    >>> minimum("recall", "specificity").score([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    >>> macro(minimum("tp", "tn"))
    <metric macro_min_tp_tn>
    """
    rates: list[Any] = []
    for part in (first, second):
        of_label = {**_BINARY, **_FRACTIONS}.get(part, part) if isinstance(part, str) else part
        # Only rates have the linear forms that smoothing needs.
        if not isinstance(of_label, Binary) or of_label.rate is None:
            raise TypeError(
                "a part of minimum must be a rate of one label, such as 'recall', "
                f"omma.metrics.fbeta(2), 'tp' or 'tn', got {shown(part)}"
            )
        rates.append(of_label)
    return Minimum(*rates)


def smoothed(
    metric: MetricName | Metric | str, gamma: float | str = "auto", *, rows: int | None = None
) -> Kinked:
    """A minimum of rates, smoothed by γ where its gradient is taken.

    The gradient of a minimum is that of the smallest rate alone, so decisions jump whenever another
    rate becomes the smallest. The Moreau-Yosida smoothing of the paper's Appendix B.2,

        ψ_γ(C) = max over C' of ψ(C') − ‖C − C'‖² / 2γ

    also weighs rates that are nearly smallest. (The norm is over tp and fp of each label, the cells
    that decisions change, at the label frequencies so far.) Reported values remain those of the
    metric itself.

    Parameters
    ----------
    metric : str or Metric
        ``min_recall_specificity``, its ``macro_`` or ``micro_`` average, ``multiclass_min_recall``,
        or what ``omma.metrics.minimum`` makes of rates whose denominators do not depend on
        decisions.
    gamma : float or "auto"
        γ of each label's minimum; ψ_γ exceeds it by at most L²γ/2, where L is its steepness. "auto"
        is the value of the paper's best bound, Eq. (15): √(2 (1 + ln n) / n) / L, at the n rows
        seen so far.
    rows : int, optional
        With "auto", the number of rows that will come, if it is known: γ is then the paper's own,
        the same from the start.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> kinked = omma.metric("macro_min_recall_specificity")
    >>> smooth = omma.metrics.smoothed(kinked)
    >>> omma.replay(omma.OMMA(smooth), eta, y).value > omma.replay(omma.OMMA(kinked), eta, y).value
    True
    """
    rows = check_positive_int("smoothed", "rows", rows, optional=True)
    if gamma == "auto":
        smoothing = Smoothing(None, rows)
    elif isinstance(gamma, str):
        raise ValueError(f"gamma of smoothed must be a number or 'auto', got {shown(gamma)}")
    elif rows is not None:
        raise ValueError("rows of smoothed goes with gamma='auto' only")
    else:
        smoothing = Smoothing(check_number("smoothed", "gamma", gamma, low=0.0, strict=True))
    kinked = find_metric(metric)
    if not is_minimum(kinked):
        raise ValueError(
            "metric of smoothed must be a minimum of rates, such as 'min_recall_specificity' or "
            f"'multiclass_min_recall', got {kinked.name}"
        )
    if not kinked.concave:  # a ratio whose kink has no such smoothing
        raise ValueError(
            "metric of smoothed must be a minimum of rates whose denominators do not depend on "
            f"decisions, got {kinked.formula}"
        )
    of_label: Any = kinked.per_label or kinked  # of classes, no label has a minimum of its own
    smooth: Any = replace(of_label, smoothing=smoothing)
    return type(kinked)(smooth) if isinstance(kinked, Macro | Micro | Weighted) else smooth


def smoothed_value(metric: Metric, counts: Counts, prior: float = 0.0) -> float:
    """The function that a policy maximizes: the metric with smoothing, prior and ε.

    >>> import omma
    >>> counts = omma.Counts([3.0], [5.0], [4.0], 10)
    >>> kinked = omma.metric("min_recall_specificity")
    >>> kinked.value(counts)
    0.666...
    >>> round(smoothed_value(smoothed(kinked, 0.01), counts), 4)
    0.6806
    """
    metric.check_labels(counts.m)
    # Smoothing, prior and ε are added by compiled code alone.
    if metric.needs_matrix or not metric.compiles:
        return metric.value(counts)
    return value_at(metric, state_of(counts), prior)


def value_at(metric: Metric, state: State, prior: float) -> float:
    """The metric with its smoothing, prior and ε."""
    from omma.kernels.value import evaluate, for_values  # here: serving does without it

    cells = np.ascontiguousarray(state.cells)
    return float(evaluate(for_values(metric.term()), prior, cells, state.totals.copy()))


def _one_label(owner: str, metric: Any) -> LabelMetric:
    of_label = _BINARY.get(metric, metric) if isinstance(metric, str) else metric
    if not isinstance(of_label, LabelMetric):
        raise TypeError(
            f"metric of {owner} must be a metric of one label, such as omma.metrics.f1 or "
            f"'f1', got {shown(metric)}"
        )
    return of_label


def metric_from_json(spec: Any) -> Metric:
    """Make a metric from its JSON; a user's own function cannot be saved."""
    if isinstance(spec, str):
        return metric(spec)
    # One key says what it is, as {"macro": "f1"}; sums and averages are made of parts.
    if isinstance(spec, dict):
        for average, kind in AVERAGES.items():
            if average in spec:
                return kind(_one_label(average, metric_from_json(spec[average])))
        if "fbeta" in spec:
            return fbeta(spec["fbeta"])
        if "costs" in spec:
            return costs(spec["costs"], name=spec.get("name", "costs"))
        if "minimum" in spec:
            # Names of shares of all rows, such as "tp", are known to ``minimum`` alone.
            parts: Any = (
                part if isinstance(part, str) else metric_from_json(part)
                for part in spec["minimum"]
            )
            return minimum(*parts)
        if "smoothed" in spec:
            gamma = "auto" if spec.get("gamma") is None else spec["gamma"]
            return smoothed(metric_from_json(spec["smoothed"]), gamma, rows=spec.get("rows"))
        if "sum" in spec:
            return Sum(tuple((weight, metric_from_json(part)) for weight, part in spec["sum"]))
        if "custom" in spec:
            raise ValueError(
                f"the metric {spec['custom']!r} is a function of your own, which cannot be saved: "
                "pass it as metric="
            )
    raise ValueError(f"cannot make a metric from {shown(spec)}")

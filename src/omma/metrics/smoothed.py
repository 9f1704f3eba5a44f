"""Smoothed minima: their gradient does not jump where two rates are equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from omma._validate import check_number, check_positive_int, shown
from omma.counts import Counts, state_of
from omma.metrics.averages import Macro, Micro, OverClasses
from omma.metrics.base import Metric
from omma.metrics.binary import Minimum, Smoothing
from omma.metrics.names import MetricName
from omma.state import State

Kinked = Macro | Micro | Minimum | OverClasses


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
    from omma.metrics.catalog import metric as find_metric  # the catalogue saves smoothed ones

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
    if isinstance(kinked, OverClasses):
        return replace(kinked, smoothing=smoothing)
    of_label = kinked.per_label
    assert isinstance(of_label, Minimum)
    if not of_label.concave:  # a ratio whose kink has no such smoothing
        raise ValueError(
            "metric of smoothed must be a minimum of rates whose denominators do not depend on "
            f"decisions, got {of_label.formula}"
        )
    name = f"smoothed_{of_label.name.removeprefix('smoothed_')}"
    smooth = replace(of_label, name=name, smoothing=smoothing)
    return type(kinked)(smooth) if isinstance(kinked, Macro | Micro) else smooth


def is_minimum(metric: Metric) -> bool:
    """Whether a metric is a minimum of rates, smoothed or not."""
    if isinstance(metric, OverClasses):
        return metric.kind == "min_recall"
    return isinstance(metric.per_label, Minimum)


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
    if len(metric.matrix) or not metric.compiles:
        return metric.value(counts)
    return value_at(metric, state_of(counts), prior)


def value_at(metric: Metric, state: State, prior: float) -> float:
    """The metric with its smoothing, prior and ε."""
    from omma.kernels.value import evaluate, for_values  # here: serving does without it

    cells = np.ascontiguousarray(state.cells)
    return float(evaluate(for_values(metric.term()), prior, cells, state.totals.copy()))

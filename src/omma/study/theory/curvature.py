"""How steep and how curved a metric can be, as a function of its cells, at given frequencies.

The theorems need the largest norm of a metric's gradient (L) and of its second derivative (M) over
all confusion matrices; for most metrics both are finite only while labels keep occurring.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import shown
from omma.metrics import Metric, metric as find_metric
from omma.metrics.averages import Macro, Micro, OverClasses
from omma.metrics.binary import Binary, Rate

Vector = NDArray[np.float64]
SQRT2 = math.sqrt(2.0)


@dataclass(frozen=True)
class Constants:
    """The Lipschitz constant L of a metric, and M, that of its gradient."""

    lipschitz: float
    smoothness: float

    def averaged(self, m: int) -> Constants:
        """Those of the macro or micro average over m labels that are alike."""
        return Constants(self.lipschitz / math.sqrt(m), self.smoothness / m)


def constants(metric: Metric | str, frequencies: ArrayLike) -> Constants:
    """L and M of a metric over all confusion matrices with given label frequencies.

    They are the least such numbers for every metric of the catalogue but κ and the multi-class MCC,
    which have none here. For any other rate they are upper bounds.

    Parameters
    ----------
    metric : Metric or str
    frequencies : array-like of shape (m,), or a number for one label
        How often each label, or class, occurs; strictly between 0 and 1.

    Examples
    --------
    >>> from omma.theory import constants
    >>> constants("recall", 0.25).lipschitz
    4.0
    >>> constants("gmean", 0.1).lipschitz  # where no positive is found, it is infinitely steep
    inf
    >>> constants("hmean", 0.1)  # steep, but not infinitely; its slope changes at once, though
    Constants(lipschitz=20.0, smoothness=inf)
    """
    found = find_metric(metric)
    p = _frequencies(frequencies)
    if isinstance(found, OverClasses):
        return _over_classes(found, p)
    if isinstance(found, Micro):
        return _one_label(found.of, float(p.mean())).averaged(len(p))
    if isinstance(found, Macro):
        parts = [_one_label(found.of, each) for each in p.tolist()]
        return Constants(
            math.hypot(*(part.lipschitz for part in parts)) / len(p),
            max(part.smoothness for part in parts) / len(p),
        )
    found.check_labels(len(p))
    return _one_label(found, float(p[0]))


def worst_constants(metric: Metric | str, m: int, low: float, high: float) -> Constants:
    """L and M over all frequencies from ``low`` to ``high``.

    Constants fall with every p, or with every 1 − p, or are the larger of both; so ends are enough.

    >>> from omma.theory import worst_constants
    >>> worst_constants("recall", 1, 0.1, 0.9).lipschitz
    10.0
    """
    ends = [constants(metric, np.full(m, end)) for end in (low, high)]
    return Constants(max(c.lipschitz for c in ends), max(c.smoothness for c in ends))


def _one_label(metric: Metric, p: float) -> Constants:
    if isinstance(metric, Binary):
        if metric.mean in MEANS:
            return MEANS[metric.mean](p)
        if metric.rate is not None:
            return rate_constants(metric.rate, p)
    raise ValueError(f"the constants of {metric.name} are not known")


def rate_constants(rate: Rate, p: float) -> Constants:
    """Of a ratio f = a·c / b·c of linear forms in the cells c = (tp, fp, fn, tn).

    Its gradient is g / (b·c) with g = a − f·b, its second derivative −(g·bᵀ + b·gᵀ) / (b·c)². Norms
    of both are convex in f: they are largest at the largest or the least f, over the least b·c.
    """
    over, under = _in_cells(rate.over), _in_cells(rate.under)
    if rate.under == (0, 0, 0, 1):  # a share of all rows has nothing to divide by
        return Constants(float(np.linalg.norm(over)), 0.0)
    corners = np.array([(tp, fp, p - tp, 1.0 - p - fp) for tp, fp in product((0, p), (0, 1.0 - p))])
    below = float((corners @ under).min())
    if below <= 1e-15:
        return Constants(math.inf, math.inf)
    rates = (corners @ over) / (corners @ under)
    gradients = [over - f * under for f in (rates.min(), rates.max())]
    width = float(np.linalg.norm(under))
    steepest = max(float(np.linalg.norm(g)) for g in gradients)
    bent = max(abs(float(g @ under)) + float(np.linalg.norm(g)) * width for g in gradients)
    return Constants(steepest / below, bent / below**2)


def _in_cells(form: tuple[float, ...]) -> Vector:
    """A form in (tp, predicted, positive, n) as one in (tp, fp, fn, tn)."""
    tp, predicted, positive, n = form
    return np.array([tp + predicted + positive + n, predicted + n, positive + n, n], dtype=float)


def _balanced(p: float) -> Constants:
    return Constants(
        0.5 * math.hypot(1.0 / p, 1.0 / (1.0 - p)), 0.5 * (1.0 + SQRT2) / min(p, 1.0 - p) ** 2
    )


MEANS: dict[str, Callable[[float], Constants]] = {
    "arithmetic": _balanced,
    # Infinitely steep at tpr = 0, and at tnr = 0.
    "geometric": lambda p: Constants(math.inf, math.inf),
    # The slope by a recall r is 2s²/(r + s)² ≤ 2, but it jumps where both are 0.
    "harmonic": lambda p: Constants(2.0 / min(p, 1.0 - p), math.inf),
    # A cone whose tip is the perfect classifier.
    "quadratic": lambda p: Constants(1.0 / (SQRT2 * min(p, 1.0 - p)), math.inf),
    # Infinitely steep where nothing, or everything, is predicted.
    "correlation": lambda p: Constants(math.inf, math.inf),
}


def _over_classes(metric: OverClasses, p: Vector) -> Constants:
    """Means of recalls C_jj / Σ_l C_jl of an m×m matrix; near 1 they are steep by all of a row."""
    m = len(p)
    metric.check_labels(m)
    if metric.kind == "accuracy":
        return Constants(math.sqrt(m), 0.0)
    rarest = float(p.min())
    bent = (m - 1) + math.sqrt(m * (m - 1))
    if metric.kind == "balanced_accuracy":
        steep = math.sqrt(m - 1) * float(np.linalg.norm(1.0 / p)) / m
        return Constants(steep, bent / (m * rarest**2))
    if metric.kind == "gmean":
        return Constants(math.inf, math.inf)
    if metric.kind == "hmean":
        return Constants(m / rarest, math.inf)
    if metric.kind == "qmean":
        return Constants(math.sqrt((m - 1) / m) / rarest, math.inf)
    raise ValueError(f"the constants of {metric.name} are not known")


def _frequencies(given: ArrayLike) -> Vector:
    p = np.atleast_1d(np.array(given, dtype=np.float64))
    if p.ndim != 1 or not len(p) or not ((p > 0) & (p < 1)).all():
        raise ValueError(
            "frequencies of constants must be numbers strictly between 0 and 1, one a label, got "
            f"{shown(given)}"
        )
    return p

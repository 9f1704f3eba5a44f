"""The paper's bounds on regret, as functions of the number of rows, and the constants in them.

The theorems need the largest norm of a metric's gradient (L) and of its second derivative (M) over
all confusion matrices; for most metrics both are finite only while labels keep occurring. In bounds
``n`` may be an array, and ``error`` is the average distance of estimates from probabilities,
(1/n)·Σ E‖η(x) − η̂(x)‖. Constants come from ``omma_study.theory.constants`` or are your own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import omma
from omma.metrics import Binary, Macro, Metric, Micro, OverClasses, Rate
from omma_study.theory.distributions import Vector

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
    >>> from omma_study.theory import constants
    >>> constants("recall", 0.25).lipschitz
    4.0
    >>> constants("gmean", 0.1).lipschitz  # where no positive is found, it is infinitely steep
    inf
    >>> constants("hmean", 0.1)  # steep, but not infinitely; its slope changes at once, though
    Constants(lipschitz=20.0, smoothness=inf)
    """
    target = omma.metric(metric) if isinstance(metric, str) else metric
    p = np.atleast_1d(np.array(frequencies, dtype=np.float64))
    if not ((p > 0) & (p < 1)).all():
        raise ValueError(
            "frequencies of constants must be numbers strictly between 0 and 1, one a label, got "
            f"{frequencies!r}"
        )
    if isinstance(target, OverClasses) and target.kind in CLASS_MEANS:
        return CLASS_MEANS[target.kind](len(p), p)
    if isinstance(target, Micro):
        return _one_label(target.of, float(p.mean())).averaged(len(p))
    if isinstance(target, Macro):
        # Labels have cells of their own, so gradients are at right angles to each other.
        parts = [_one_label(target.of, each) for each in p.tolist()]
        return Constants(
            math.hypot(*(part.lipschitz for part in parts)) / len(p),
            max(part.smoothness for part in parts) / len(p),
        )
    if len(p) > 1 and not isinstance(target, OverClasses):
        raise ValueError(f"{target.name} is a metric of one label, got {len(p)} frequencies")
    return _one_label(target, float(p[0]))


def worst_constants(metric: Metric | str, m: int, low: float, high: float) -> Constants:
    """L and M over all frequencies from ``low`` to ``high``.

    Constants fall with every p, or with every 1 − p, or are the larger of both; so ends are enough.

    >>> from omma_study.theory import worst_constants
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
    # Linear forms are extreme at the corners of all (tp, fp) with this frequency.
    corners = np.array([(tp, fp, p - tp, 1.0 - p - fp) for tp, fp in product((0, p), (0, 1.0 - p))])
    below = float((corners @ under).min())
    # The ratio is 0/0 somewhere, such as precision where nothing is predicted.
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


MEANS: dict[str, Callable[[float], Constants]] = {
    "arithmetic": lambda p: Constants(
        0.5 * math.hypot(1.0 / p, 1.0 / (1.0 - p)), 0.5 * (1.0 + SQRT2) / min(p, 1.0 - p) ** 2
    ),
    # Infinitely steep at tpr = 0, and at tnr = 0.
    "geometric": lambda p: Constants(math.inf, math.inf),
    # The slope by a recall r is 2s²/(r + s)² ≤ 2, but it jumps where both are 0.
    "harmonic": lambda p: Constants(2.0 / min(p, 1.0 - p), math.inf),
    # A cone whose tip is the perfect classifier.
    "quadratic": lambda p: Constants(1.0 / (SQRT2 * min(p, 1.0 - p)), math.inf),
    # Infinitely steep where nothing, or everything, is predicted.
    "correlation": lambda p: Constants(math.inf, math.inf),
}
# Means of recalls C_jj / Σ_l C_jl of an m×m matrix; near 1 they are steep by all of a row.
CLASS_MEANS: dict[str, Callable[[int, Vector], Constants]] = {
    # The trace, which is linear: its gradient has a one for each class.
    "accuracy": lambda m, p: Constants(math.sqrt(m), 0.0),
    # (m − 1) + √(m(m − 1)) is the norm of the second derivative of a recall at 1, times p_j².
    "balanced_accuracy": lambda m, p: Constants(
        math.sqrt(m - 1) * float(np.linalg.norm(1.0 / p)) / m,
        ((m - 1) + math.sqrt(m * (m - 1))) / (m * float(p.min()) ** 2),
    ),
    # As of one label: steep without end at a recall of 0, and with a kink there.
    "gmean": lambda m, p: Constants(math.inf, math.inf),
    "hmean": lambda m, p: Constants(m / float(p.min()), math.inf),
    "qmean": lambda m, p: Constants(math.sqrt((m - 1) / m) / float(p.min()), math.inf),
}


@dataclass(frozen=True)
class Task:
    """The two numbers by which the task enters: a confusion matrix has entries that sum to a.

    Two that differ are at most √(2a) apart, and by at most b times the distance of the
    probabilities they are made of.

    >>> from omma_study.theory import Task
    >>> Task.multiclass(), Task.multilabel(5).a
    (Task(a=1.0, b=1.0), 5.0)
    """

    a: float
    b: float

    @classmethod
    def multiclass(cls) -> Task:
        """One class a row."""
        return cls(1.0, 1.0)

    @classmethod
    def multilabel(cls, m: int) -> Task:
        """Labels of their own; a binary problem is one label."""
        return cls(float(m), math.sqrt(2.0))


def omma_bound(n: ArrayLike, constants: Constants, task: Task, error: float = 0.0) -> Any:
    """Theorem 4.3, of OMMA on a concave, Lipschitz and smooth metric.

    M·a·(1 + ln n)/n + 2·b·L·error, where error = (1/n)·Σ E‖η(x_t) − η̂_t(x_t)‖.

    >>> from omma_study.theory import Constants, Task, omma_bound
    >>> round(omma_bound(1000, Constants(1.0, 2.0), Task.multiclass()), 6)
    0.015816
    """
    rows = _rows("omma_bound", n)
    first = task.a * constants.smoothness * (1.0 + np.log(rows)) / rows
    return _plain(first + _estimation(constants.lipschitz, task, error))


def estimates_bound(n: ArrayLike, constants: Constants, task: Task) -> Any:
    """Appendix D, of OMMA(η̂) with exact probabilities: M·a·(2 + ln n)/n.

    With other probabilities nothing is known.

    >>> from omma_study.theory import Constants, Task, estimates_bound
    >>> round(estimates_bound(1000, Constants(1.0, 2.0), Task.multiclass()), 6)
    0.017816
    """
    rows = _rows("estimates_bound", n)
    return _plain(task.a * constants.smoothness * (2.0 + np.log(rows)) / rows)


@dataclass(frozen=True)
class Smoothing:
    """A γ-smoothing of appendix B.2: 0 ≤ ψ − ψ_γ ≤ α·γ, and ψ_γ is β/γ-smooth.

    >>> from omma_study.theory import Smoothing
    >>> Smoothing.moreau(lipschitz=1.0)
    Smoothing(alpha=0.5, beta=1.0)
    """

    alpha: float
    beta: float

    @classmethod
    def moreau(cls, lipschitz: float) -> Smoothing:
        """Moreau's: ψ_γ(C) = max over C′ of ψ(C′) − ‖C − C′‖²/2γ, with α = L²/2 and β = 1."""
        return cls(lipschitz**2 / 2, 1.0)

    def best_gamma(self, n: ArrayLike, task: Task) -> Any:
        """The γ for which the bound is least, √(a·β·(1 + ln n)/(α·n)), when n rows are to come.

        >>> round(Smoothing.moreau(1.0).best_gamma(1000, Task.multiclass()), 6)
        0.12576
        """
        rows = _rows("best_gamma", n)
        return _plain(np.sqrt(task.a * self.beta * (1.0 + np.log(rows)) / (self.alpha * rows)))


def smoothed_bound(
    n: ArrayLike,
    lipschitz: float,
    task: Task,
    smoothing: Smoothing | None = None,
    error: float = 0.0,
) -> Any:
    """Appendix B.2, of OMMA on a smoothed metric: 2·√(a·α·β·(1 + ln n)/n) + 2·b·L·error.

    ``lipschitz`` is that of the metric; the default smoothing is Moreau's.

    >>> from omma_study.theory import Task, smoothed_bound
    >>> round(smoothed_bound(1000, 1.0, Task.multiclass()), 6)
    0.12576
    """
    rows = _rows("smoothed_bound", n)
    # Moreau's smoothing is there for every concave metric.
    form = Smoothing.moreau(lipschitz) if smoothing is None else smoothing
    first = 2.0 * np.sqrt(task.a * form.alpha * form.beta * (1.0 + np.log(rows)) / rows)
    return _plain(first + _estimation(lipschitz, task, error))


def frequency_bound(
    n: ArrayLike,
    constants: Constants,
    task: Task,
    m: int,
    rarest: float,
    error: float = 0.0,
) -> Any:
    """Theorem E.1, of OMMA with constants that hold only while every label keeps occurring.

    The theorem is O(√(ln n / n)); this has the constants of its proof with n₀ = √n.

    Parameters
    ----------
    n : int or array-like
    constants : Constants
        At frequencies of at least a quarter of the rarest label's: see ``worst_constants``.
    task : Task
    m : int
        Number of labels or classes.
    rarest : float
        Frequency of the rarest label.
    error : float

    Examples
    --------
    >>> from omma_study.theory import Task, frequency_bound, worst_constants
    >>> worst = worst_constants("recall", 1, 0.3 / 4, 1 - 0.3 / 4)
    >>> round(frequency_bound(10**9, worst, Task.multilabel(1), 1, 0.3), 4)
    0.0231
    """
    rows = _rows("frequency_bound", n)
    steep, bent = constants.lipschitz, constants.smoothness
    # n₀ of the proof: the rows after which frequencies are taken to be right.
    root = np.sqrt(rows)
    bound = (2.0 + 12.0 * task.a * steep * np.sqrt(np.log(rows))) / root
    bound = bound + bent * task.a * (1.0 + np.log(rows)) / rows + 2.0 * task.b * steep / rows
    # Lemma E.2: labels are not (n₀, γ*/4)-nice with probability at most m·n₀·exp(−γ*²·n₀/2).
    bound = bound + m * root * np.exp(-(rarest**2) * root / 2.0) + 1.0 / rows
    return _plain(bound + _estimation(steep, task, error))


def _estimation(lipschitz: float, task: Task, error: float) -> float:
    if not error >= 0:
        raise ValueError(f"error of a bound must be at least 0, got {error!r}")
    # An infinite constant times no error is no error.
    return 2.0 * task.b * lipschitz * error if error else 0.0


def _rows(owner: str, n: ArrayLike) -> Vector:
    rows = np.array(n, dtype=np.float64)
    if not (rows >= 1).all():
        raise ValueError(f"n of {owner} must be at least 1, got {n!r}")
    return rows


def _plain(bound: Any) -> Any:
    """A number for a number, an array for an array."""
    return float(bound) if np.ndim(bound) == 0 else bound

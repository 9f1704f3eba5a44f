"""The paper's bounds on regret, as functions of the number of rows.

``n`` may be an array. ``error`` is the average distance of estimates from probabilities,
(1/n)·Σ E‖η(x) − η̂(x)‖. Constants come from ``omma.theory.constants`` or are your own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._validate import check_number, check_positive_int, shown
from omma.study.theory.curvature import Constants

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """The two numbers by which the task enters: a confusion matrix has entries that sum to a.

    Two that differ are at most √(2a) apart, and by at most b times the distance of the
    probabilities they are made of.

    >>> from omma.theory import Task
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
        check_positive_int("Task.multilabel", "m", m)
        return cls(float(m), math.sqrt(2.0))


def omma_bound(n: ArrayLike, constants: Constants, task: Task, error: float = 0.0) -> Any:
    """Of OMMA, for a concave, Lipschitz and smooth metric: M·a·(1 + ln n)/n + 2·b·L·error.

    >>> from omma.theory import Constants, Task, omma_bound
    >>> round(omma_bound(1000, Constants(1.0, 2.0), Task.multiclass()), 6)
    0.015816
    """
    rows = _rows("omma_bound", n)
    first = task.a * constants.smoothness * (1.0 + np.log(rows)) / rows
    return _plain(first + _estimation(constants.lipschitz, task, error))


def estimates_bound(n: ArrayLike, constants: Constants, task: Task) -> Any:
    """Of OMMA(η̂) with exact probabilities: M·a·(2 + ln n)/n. With others nothing is known.

    >>> from omma.theory import Constants, Task, estimates_bound
    >>> round(estimates_bound(1000, Constants(1.0, 2.0), Task.multiclass()), 6)
    0.017816
    """
    rows = _rows("estimates_bound", n)
    return _plain(task.a * constants.smoothness * (2.0 + np.log(rows)) / rows)


@dataclass(frozen=True)
class Smoothing:
    """How well a smooth metric stands for one that is not: within α·γ of it, and β/γ-smooth.

    >>> from omma.theory import Smoothing
    >>> Smoothing.moreau(lipschitz=1.0)
    Smoothing(alpha=0.5, beta=1.0)
    """

    alpha: float
    beta: float

    @classmethod
    def moreau(cls, lipschitz: float) -> Smoothing:
        """The best value nearby, less the squared distance over 2γ."""
        return cls(check_number("Smoothing.moreau", "lipschitz", lipschitz, low=0.0) ** 2 / 2, 1.0)

    def best_gamma(self, n: ArrayLike, task: Task) -> Any:
        """The γ for which the bound is least, when n rows are to come.

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
    """Of OMMA on a smoothed metric, at the best γ: 2·√(a·α·β·(1 + ln n)/n) + 2·b·L·error.

    ``lipschitz`` is that of the metric; the default smoothing is Moreau's.

    >>> from omma.theory import Task, smoothed_bound
    >>> round(smoothed_bound(1000, 1.0, Task.multiclass()), 6)
    0.12576
    """
    rows = _rows("smoothed_bound", n)
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
    """Of OMMA, for constants that hold only while every label keeps occurring.

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
    >>> from omma.theory import Task, frequency_bound, worst_constants
    >>> worst = worst_constants("recall", 1, 0.3 / 4, 1 - 0.3 / 4)
    >>> round(frequency_bound(10**9, worst, Task.multilabel(1), 1, 0.3), 4)
    0.0231
    """
    rows = _rows("frequency_bound", n)
    check_number("frequency_bound", "rarest", rarest, low=0.0, high=1.0)
    steep, bent = constants.lipschitz, constants.smoothness
    root = np.sqrt(rows)
    found = (2.0 + 12.0 * task.a * steep * np.sqrt(np.log(rows))) / root
    found = found + bent * task.a * (1.0 + np.log(rows)) / rows + 2.0 * task.b * steep / rows
    found = found + m * root * np.exp(-(rarest**2) * root / 2.0) + 1.0 / rows
    return _plain(found + _estimation(steep, task, error))


def _estimation(lipschitz: float, task: Task, error: float) -> float:
    check_number("a bound", "error", error, low=0.0)
    return 2.0 * task.b * lipschitz * error if error else 0.0


def _rows(owner: str, n: ArrayLike) -> Vector:
    rows = np.array(n, dtype=np.float64)
    if not (rows >= 1).all():
        raise ValueError(f"n of {owner} must be at least 1, got {shown(n)}")
    return rows


def _plain(found: Any) -> Any:
    """A number for a number, an array for an array."""
    return float(found) if np.ndim(found) == 0 else found

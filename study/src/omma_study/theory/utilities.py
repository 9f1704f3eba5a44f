"""Utilities that are concave in all four cells, with their constants: what the theorems ask for.

Most metrics are concave, if at all, only while the frequency of a label stands still. These are
concave without that, Lipschitz and (but for ``least``) smooth, everywhere.
"""

import math
from dataclasses import dataclass
from functools import cache

from omma.metrics import LabelMetric, accuracy as plain_accuracy, custom, minimum
from omma_study.theory.bounds import Constants

DELTA = 0.1


@dataclass(frozen=True)
class Utility:
    """A metric of one label and the constants that hold for it at all counts."""

    metric: LabelMetric
    constants: Constants


@cache
def accuracy() -> Utility:
    """Accuracy, tp + tn: linear.

    >>> from omma_study.theory import utilities
    >>> utilities.accuracy().constants.smoothness
    0.0
    """
    return Utility(plain_accuracy, Constants(math.sqrt(2.0), 0.0))


@cache
def geometric(delta: float = DELTA) -> Utility:
    """√((tp + δ)(tn + δ)).

    >>> from omma_study.theory import utilities
    >>> round(utilities.geometric(0.1).constants.smoothness, 3)
    8.36
    """

    def geometric_cells(tp: float, fp: float, fn: float, tn: float) -> float:
        return math.sqrt((tp + delta) * (tn + delta))

    # Gradient and Hessian grow where one of the two is δ and the other all there is, 1 + δ.
    low, high = delta, 1.0 + delta
    lipschitz = 0.5 * math.sqrt(high / low + low / high)
    smoothness = 0.25 * math.sqrt(low * high) * (low**-2 + high**-2)
    return _utility(geometric_cells, f"geometric_{delta:g}", lipschitz, smoothness)


@cache
def harmonic(delta: float = DELTA) -> Utility:
    """The harmonic mean of tp + δ and tn + δ.

    >>> from omma_study.theory import utilities
    >>> utilities.harmonic(0.1).constants.smoothness
    10.0
    """

    def harmonic_cells(tp: float, fp: float, fn: float, tn: float) -> float:
        return 2.0 * (tp + delta) * (tn + delta) / (tp + tn + 2.0 * delta)

    low, high = delta, 1.0 + delta
    lipschitz = 2.0 * math.hypot(low**2, high**2) / (low + high) ** 2
    # 4(u² + v²)/(u + v)³ is largest at u = v = δ, or where v is as large as it can be.
    smoothness = max(1.0 / low, 4.0 * (low**2 + high**2) / (low + high) ** 3)
    return _utility(harmonic_cells, f"harmonic_{delta:g}", lipschitz, smoothness)


@cache
def soft_least(gamma: float) -> Utility:
    """A smooth min{tp, tn}: below it by at most γ·ln 2.

    >>> from omma_study.theory import utilities
    >>> utilities.soft_least(0.1).constants.smoothness
    5.0
    """

    def soft_least_cells(tp: float, fp: float, fn: float, tn: float) -> float:
        # The smaller goes out of the logarithm, so that nothing overflows.
        return min(tp, tn) - gamma * math.log(1.0 + math.exp(-abs(tp - tn) / gamma))

    return _utility(soft_least_cells, f"soft_least_{gamma:g}", 1.0, 0.5 / gamma)


@cache
def least() -> Utility:
    """The smaller of tp and tn: concave and Lipschitz, not smooth.

    >>> from omma_study.theory import utilities
    >>> utilities.least().constants
    Constants(lipschitz=1.0, smoothness=inf)
    """
    return Utility(minimum("tp", "tn"), Constants(1.0, math.inf))


def _utility(psi: object, name: str, lipschitz: float, smoothness: float) -> Utility:
    metric = custom(psi, name=name, concave=True, smooth=True)  # type: ignore[arg-type]
    return Utility(metric, Constants(lipschitz, smoothness))  # type: ignore[arg-type]

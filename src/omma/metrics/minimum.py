"""The smaller of two rates of one label: concave where both are linear, and with a kink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import shown
from omma.kernels import kinds
from omma.metrics.base import Traits
from omma.metrics.binary import RECALL, SPECIFICITY, Binary, LabelMetric, Rate

FRACTIONS = {
    "tp": Rate((1, 0, 0, 0), (0, 0, 0, 1)),
    "tn": Rate((1, -1, -1, 1), (0, 0, 0, 1)),
}


@dataclass(frozen=True)
class Smoothing:
    """How a kink is rounded where a gradient is taken; made by ``omma.metrics.smoothed``.

    ``gamma`` is a number, or None for the best bound of the paper at ``rows`` rows, or at those
    seen so far where ``rows`` is None.
    """

    gamma: float | None = None
    rows: int | None = None

    @property
    def numbers(self) -> tuple[float, float]:
        """γ, below zero where it follows the number of rows, and that number, zero for so far."""
        return -1.0 if self.gamma is None else float(self.gamma), float(self.rows or 0)

    def to_json(self, metric: Any) -> Any:
        """What is saved of a smoothed metric."""
        return {"smoothed": metric, "gamma": self.gamma, "rows": self.rows}

    def named(self, name: str) -> str:
        """What a smoothed metric is called."""
        return f"smoothed_{name}"


@dataclass(frozen=True, repr=False)
class Minimum(LabelMetric):
    """The smaller of two rates; made by ``omma.metrics.minimum``."""

    name: str
    names: tuple[str, str]
    rates: tuple[Rate, Rate]
    smoothing: Smoothing | None = None

    def __post_init__(self) -> None:
        formula = f"min({self.names[0]}, {self.names[1]})"
        concave = all(not (rate.under[0] or rate.under[1]) for rate in self.rates)
        self._have(
            Traits(
                self.name, formula, concave, self.smoothing is not None, False, False, binary=True
            )
        )

    def of_cells(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        first, second = (rate.of(tp, predicted, positive, n, zero_division) for rate in self.rates)
        return np.minimum(first, second)  # type: ignore[no-any-return]

    @property
    def kind(self) -> Any:
        first, second = self.rates
        gamma = (0.0, 0.0) if self.smoothing is None else self.smoothing.numbers
        return kinds.Smaller(first.kind, second.kind, *gamma)

    def to_json(self) -> Any:
        if self == min_recall_specificity:
            return self.name
        parts = [
            [name, rate.over, rate.under] for name, rate in zip(self.names, self.rates, strict=True)
        ]
        saved: Any = {"minimum": parts}
        return saved if self.smoothing is None else self.smoothing.to_json(saved)


min_recall_specificity = Minimum(
    "min_recall_specificity", ("recall", "specificity"), (RECALL, SPECIFICITY)
)


def of_two(first: Any, second: Any, known: dict[str, Any]) -> Minimum:
    """The minimum of two rates, given as names, metrics or coefficients."""
    parts = [_part(one, known) for one in (first, second)]
    (a, a_rate), (b, b_rate) = parts
    if (a, b) == min_recall_specificity.names:
        return min_recall_specificity
    return Minimum(f"min_{a}_{b}", (a, b), (a_rate, b_rate))


def _part(given: Any, known: dict[str, Any]) -> tuple[str, Rate]:
    if isinstance(given, str) and given in FRACTIONS:
        return given, FRACTIONS[given]
    found = known.get(given, given) if isinstance(given, str) else given
    if isinstance(found, Binary) and found.rate is not None:
        return found.name, found.rate
    raise TypeError(
        "a part of minimum must be a rate of one label, such as 'recall', omma.metrics.fbeta(2), "
        f"'tp' or 'tn', got {shown(given)}"
    )


def minimum_from_json(parts: Any) -> Minimum:
    """What ``Minimum.to_json`` described."""
    (a, b), (a_rate, b_rate) = zip(
        *((name, Rate(tuple(over), tuple(under))) for name, over, under in parts), strict=True
    )
    return Minimum(f"min_{a}_{b}", (a, b), (a_rate, b_rate))

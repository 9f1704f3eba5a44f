"""Linear combinations of metrics are metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.kernels import kinds
from omma.metrics.base import Metric
from omma.running.empty import NO_MATRIX

Terms = tuple[tuple[float, Metric], ...]


@dataclass(frozen=True, repr=False)
class Sum(Metric):
    """A weighted sum of metrics.

    A sum that contains a geometric, harmonic or quadratic mean over classes looks at every class
    once a row, to weigh that mean against the rest.

    >>> import omma
    >>> omma.metric("macro_recall") - 0.5 * omma.metric("micro_precision")
    <metric macro_recall - 0.5*micro_precision>
    """

    terms: Terms

    def __post_init__(self) -> None:
        flat = []
        for weight, metric in self.terms:
            inner = metric.terms if isinstance(metric, Sum) else ((1.0, metric),)
            flat += [(weight * factor, part) for factor, part in inner]
        object.__setattr__(self, "terms", tuple(flat))
        if len({metric.binary for _, metric in flat}) > 1:
            names = ", ".join(metric.name for _, metric in flat)
            raise ValueError(
                f"a sum cannot mix metrics of one label and of many, got {names}: wrap the first "
                "in omma.metrics.macro or omma.metrics.micro"
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._join([metric.name for _, metric in self.terms])

    @property
    def formula(self) -> str:  # type: ignore[override]
        return self._join([f"({metric.formula})" for _, metric in self.terms])

    def _join(self, names: list[str]) -> str:
        text = ""
        for (weight, _), name in zip(self.terms, names, strict=True):
            sign = " - " if weight < 0 else " + "
            factor = "" if abs(weight) == 1 else f"{abs(weight):g}*"
            text += f"{sign}{factor}{name}"
        return text[3:] if text.startswith(" + ") else "-" + text[3:]

    @property
    def binary(self) -> bool:  # type: ignore[override]
        return all(metric.binary for _, metric in self.terms)

    @property
    def multiclass(self) -> bool:  # type: ignore[override]
        return any(metric.multiclass for _, metric in self.terms)

    @property
    def single_label(self) -> bool:  # type: ignore[override]
        return any(metric.single_label for _, metric in self.terms)

    @property
    def needs_matrix(self) -> bool:  # type: ignore[override]
        return any(metric.needs_matrix for _, metric in self.terms)

    @property
    def concave(self) -> bool:  # type: ignore[override]
        return all(
            metric.linear or (weight >= 0 and metric.concave) for weight, metric in self.terms
        )

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return all(metric.smooth for _, metric in self.terms)

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return all(metric.linear for _, metric in self.terms)

    @property
    def linear_fractional(self) -> bool:  # type: ignore[override]
        if len(self.terms) == 1:
            return self.terms[0][1].linear_fractional
        return self.linear

    def check_labels(self, m: int) -> None:
        for _, metric in self.terms:
            metric.check_labels(m)

    def value(self, counts: Counts, zero_division: float = 0.0) -> float:
        return float(
            sum(weight * metric.value(counts, zero_division) for weight, metric in self.terms)
        )

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        # Beside another term, a mean over classes must be weighed by its factor.
        exact = exact or len(self.terms) > 1
        parts = [
            metric.term(weight * factor, exact)
            for factor, metric in self.terms
            if not len(metric.matrix)
        ]
        return reduce(kinds.Sum, parts) if parts else kinds.Nothing(0.0)

    @property
    def compiles(self) -> bool:
        return all(metric.compiles for _, metric in self.terms)

    @property
    def matrix(self) -> NDArray[np.float64]:
        parts = [weight * metric.matrix for weight, metric in self.terms if len(metric.matrix)]
        return np.sum(parts, axis=0) if parts else NO_MATRIX

    @property
    def sums(self) -> int:
        return max((metric.sums for _, metric in self.terms), default=0)

    def to_json(self) -> Any:
        return {"sum": [[weight, metric.to_json()] for weight, metric in self.terms]}

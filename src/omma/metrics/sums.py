"""Linear combinations of metrics are metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.kernels import kinds
from omma.metrics.base import Metric, Traits
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
        parts = [metric for _, metric in flat]
        if len({metric.binary for metric in parts}) > 1:
            names = ", ".join(metric.name for metric in parts)
            raise ValueError(
                f"a sum cannot mix metrics of one label and of many, got {names}: wrap the first "
                "in omma.metrics.macro or omma.metrics.micro"
            )
        linear = all(metric.linear for metric in parts)
        traits = Traits(
            self._join([metric.name for metric in parts]),
            self._join([f"({metric.formula})" for metric in parts]),
            all(metric.linear or (weight >= 0 and metric.concave) for weight, metric in flat),
            all(metric.smooth for metric in parts),
            linear,
            linear_fractional=parts[0].linear_fractional if len(parts) == 1 else linear,
            binary=all(metric.binary for metric in parts),
            multiclass=any(metric.multiclass for metric in parts),
            single_label=any(metric.single_label for metric in parts),
            needs_matrix=any(metric.needs_matrix for metric in parts),
        )
        self._have(traits)

    def _join(self, names: list[str]) -> str:
        text = ""
        for (weight, _), name in zip(self.terms, names, strict=True):
            sign = " - " if weight < 0 else " + "
            factor = "" if abs(weight) == 1 else f"{abs(weight):g}*"
            text += f"{sign}{factor}{name}"
        return text[3:] if text.startswith(" + ") else "-" + text[3:]

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

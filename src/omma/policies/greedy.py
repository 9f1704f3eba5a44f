"""Greedy: the exact expected value of the metric, the present row included."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from omma._run import Plan
from omma.kernels.kinds import Change, Macro, Sum
from omma.policies.base import MetricPolicy, UnsupportedMetricError


@dataclass(frozen=True)
class Greedy(MetricPolicy):
    """Predict what makes the expected metric largest, the present row counted in.

    Where OMMA takes a derivative, Greedy takes the difference that the row would make; the two
    decisions agree up to O(1/t²). It is for metrics that decompose over labels: ``macro_`` metrics,
    those of one label, ``multiclass_balanced_accuracy``, and sums of these.

    Parameters are those of ``omma.OMMA``.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> greedy = omma.replay(omma.Greedy("macro_f1"), eta, y)
    >>> close = omma.replay(omma.OMMA("macro_f1"), eta, y)
    >>> abs(greedy.value - close.value) < 0.02
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        metric = self.objective
        if metric.needs_matrix or not decomposes(metric.term()):
            raise UnsupportedMetricError(
                "metric of Greedy must decompose over labels: a macro_ metric, one of one label, "
                f"or multiclass_balanced_accuracy; got {metric.name}"
            )
        if not metric.compiles:
            raise UnsupportedMetricError(
                f"metric of Greedy must compile, not only its gradient; {metric.name} does not"
            )

    def plan(self, m: int) -> Plan:
        plan = self.objective.plan(k=self.budget, prior=self.prior, soft=self.soft)
        return replace(plan, term=changes(plan.term))


def decomposes(term: Any) -> bool:
    """Whether what is maximized is a sum over labels."""
    if isinstance(term, Sum):
        return decomposes(term.of) and decomposes(term.rest)
    return isinstance(term, Macro)


def changes(term: Any) -> Any:
    """What one more row would change, in place of derivatives."""
    if isinstance(term, Sum):
        return Sum(changes(term.of), changes(term.rest))
    return Macro(term.weight, Change(term.of))

"""Greedy: the exact expected value of the metric, the present row included."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omma._run import Plan
from omma.kernels.layout import AVERAGE, MACRO
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
        decomposes = (metric.table()[:, AVERAGE] == MACRO).all() and metric.micro_psi is None
        if metric.needs_matrix or not decomposes:
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
        psi = self.objective.greedy_psi
        return replace(plan, table=None, greedy=plan.table, macro_psi=psi)

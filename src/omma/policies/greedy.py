"""Greedy: the expected value of the metric, the present row included."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from omma._validate import check_choice, check_positive_int
from omma.engine import Engine
from omma.kernels.objectives import Change, MacroTerm, PlugIn, SumOfTerms
from omma.plan import Plan
from omma.policies.base import MetricPolicy, UnsupportedMetricError
from omma.rows.batch import Batch
from omma.state import State

EXPECTATIONS = ("exact", "plug_in")


@dataclass(frozen=True, repr=False)
class Greedy(MetricPolicy):
    """Predict whatever makes the expected metric largest, the present row included.

    OMMA takes a derivative where Greedy takes the difference that the row would make; the two gains
    agree up to O(1/t²). Greedy is for metrics that decompose over labels: ``macro_`` metrics,
    metrics of one label, ``multiclass_balanced_accuracy``, and sums of these.

    Parameters
    ----------
    metric, k, feedback, prior, epsilon
        As of ``omma.OMMA``.
    expectation : {"exact", "plug_in"}
        "exact" is the expected metric E[ψ], as the paper's appendix defines Greedy: each label of
        the row is present with probability η, and the gain is linear in η. "plug_in" is ψ at the
        expected counts, ψ(E[counts]), as the paper's experiments compute it: η itself is added to
        the true positives and to the occurrences. That gain is not linear in η, so no rule has it:
        ``trace.rule`` is then OMMA's, which both approach. Early in a stream, and for rare labels,
        the two decide very differently.
    rows : int, optional
        The number of rows that will come, if it is known. Counts are then divided by it from the
        first row on, as in the code of the paper's tables, so that ε is added to counts as
        ε·rows. The default divides by the rows so far.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> greedy = omma.replay(omma.Greedy("macro_f1"), eta, y)
    >>> close = omma.replay(omma.OMMA("macro_f1"), eta, y)
    >>> abs(greedy.value - close.value) < 0.02
    True
    >>> paper = omma.replay(omma.Greedy("macro_f1", expectation="plug_in"), eta, y)
    >>> abs(paper.value - close.value) < 0.02
    True
    """

    expectation: str = "exact"
    rows: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("Greedy", "expectation", self.expectation, EXPECTATIONS)
        self._set(rows=check_positive_int("Greedy", "rows", self.rows, optional=True))
        metric = self.objective
        if metric.needs_matrix or not decomposes(metric.term()):
            raise UnsupportedMetricError(
                "metric of Greedy must decompose over labels: a macro_ metric, one of one label, "
                f"or multiclass_balanced_accuracy; got {metric.name}"
            )
        if not metric.compiles:
            raise UnsupportedMetricError(
                f"metric of Greedy must compile, not only its gradient, and {metric.name} does not"
            )

    def plan(self, m: int) -> Plan:
        # F(ŷ) = E[ψ(C(yᵗ, ŷᵗ))] of the paper's Appendix A; OMMA is its first-order expansion.
        # The plug-in is ψ(E[C]) in place of E[ψ(C)], as in the code of the paper's tables.
        plan, rows = self.metric_plan, float(self.rows or 0)
        exact = self.expectation == "exact"
        return replace(plan, term=after_one_more_row(plan.term, rows, exact))

    def decide_rows(self, state: State, eta: Any) -> Any:
        if self.expectation == "exact":
            return super().decide_rows(state, eta)
        # No rule decides as the plug-in does, so rows of weight 0 are replayed: they count nothing.
        owner = f"predict of {self!r}"
        batch = Batch.read(owner, eta)
        if batch.m != state.m:
            raise ValueError(f"eta of {owner} must have {state.m} labels, got {batch.m}")
        still = replace(batch, labels=None, weights=np.zeros(batch.n))
        return Engine(self.plan(state.m), state.copy()).replay(owner, still).predictions


def decomposes(term: Any) -> bool:
    """Whether an objective is a sum over labels."""
    # A micro metric, or one of classes, looks at all labels at once.
    if isinstance(term, SumOfTerms):
        return decomposes(term.of) and decomposes(term.rest)
    return isinstance(term, MacroTerm)


def after_one_more_row(term: Any, rows: float, exact: bool) -> Any:
    """The objective whose gains are changes by one more row, in place of derivatives."""
    if isinstance(term, SumOfTerms):
        parts = (after_one_more_row(part, rows, exact) for part in term)
        return SumOfTerms(*parts)
    return MacroTerm(term.weight, Change(term.of, rows)) if exact else PlugIn(term, rows)

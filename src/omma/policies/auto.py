"""Auto: the default, which needs no choice of feedback or prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from omma._types import Feedback
from omma.kernels import objectives as kinds
from omma.kernels.layout import EPSILON
from omma.metrics import Metric, smoothed
from omma.metrics.binary import RECALL
from omma.metrics.names import MetricName
from omma.metrics.smoothed import is_minimum
from omma.plan import Plan, Shrinkage
from omma.policies.base import Maximizer

PRIOR = 1e-6
# What is expected by probabilities is corrected by labels once there are some: so many hits, or
# positives, count half. Where positives do not matter, luck does: a label that was hit keeps that
# by being left alone, and one hit says much.
STRENGTH, LUCKY, UNHIT = 10.0, 1.0, 0.1


@dataclass(frozen=True, repr=False)
class Auto(Maximizer):
    """OMMA that calibrates probabilities as labels come, and needs no choice.

    OMMA asks for two choices that nobody can make in advance: labels or estimates as feedback, and
    the prior. ``Auto`` counts both. Probabilities are calibrated on the labels seen so far; what is
    expected by them is corrected, label by label, by what was found; and what was never labelled is
    carried on from there. Before the first label it decides exactly as ``OMMA(feedback=
    "estimates")`` does. Rows without labels count by their estimates, and so do single labels that
    are unknown (NaN) in a row; those that are known count as labels.

    Parameters
    ----------
    metric : str or Metric
        What to maximize: a name (see ``omma.metric``) or a metric.
    k : int, optional
        Predict exactly k labels a row.
    at_most : int, optional
        Predict the labels that gain, but no more than so many a row.
    subject_to : str, Limit, or list of these, optional
        What must hold meanwhile: ``"micro_precision >= 0.9"``, ``"recall[fraud] >= 0.8"``,
        ``"labels_per_row <= 2"``, or what ``omma.at_least`` and ``omma.at_most`` make.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=10_000, m=20, seed=0)
    >>> limited = omma.Auto("macro_recall", subject_to="micro_precision >= 0.8")
    >>> omma.metric("micro_precision").value(omma.replay(limited, eta, y).counts) > 0.79
    True
    >>> wrong = eta ** 3  # probabilities that are far too low
    >>> auto = omma.replay(omma.Auto("macro_f1"), wrong, y).value
    >>> auto > omma.replay(omma.OMMA("macro_f1", feedback="estimates"), wrong, y).value
    True
    """

    feedback: ClassVar[Feedback] = "both"  # type: ignore[misc]
    prior: ClassVar[float] = PRIOR
    PARTS: ClassVar[bool] = True

    metric: MetricName | Metric | str
    k: int | None = None
    at_most: int | None = None
    subject_to: Any = None

    def __post_init__(self) -> None:
        self.check_target()
        self.check_subject_to()

    @cached_property
    def _plan(self) -> Plan:
        """The plan but for limits, which are about so many labels."""
        term = climbed(self.objective, exact=bool(self.limits))
        return replace(
            self.objective.plan(k=self.budget, prior=PRIOR, soft=True),
            term=term,
            at_most=self.at_most,
            shrinkage=shrinkage_of(term, PRIOR),
            calibrated=True,
        )

    def plan(self, m: int) -> Plan:
        return self.limited_plan(self._plan, m)


def climbed(metric: Metric, exact: bool = False) -> Any:
    """What is maximized for a metric: the metric, or for a minimum what is near it and smooth.

    ``exact`` asks for derivatives, not only for numbers in proportion: prices are weighed by them.
    """
    if not is_minimum(metric):
        return metric.term(exact=exact)
    if metric.multiclass:
        kind = kinds.WeighedClasses if exact else kinds.Classes
        return kind(1.0, kinds.Steep(EPSILON), RECALL.kind)
    return (metric if metric.smooth else smoothed(metric)).term(exact=exact)


def shrinkage_of(term: Any, prior: float) -> Shrinkage:
    """How labels correct estimates, for what is maximized."""
    if _positives_do_not_matter(term):
        return Shrinkage(LUCKY, STRENGTH, LUCKY, 1.0, prior)
    return Shrinkage(STRENGTH, STRENGTH, _unhit(term))


def _positives_do_not_matter(term: Any) -> bool:
    """Whether a label's share of the metric looks at its predictions alone, as precision does."""
    if isinstance(term, kinds.Macro) and isinstance(term.of, kinds.Rate):
        return not (term.of.over[2] or term.of.under[2] or term.of.over[3] or term.of.under[3])
    return False


def _unhit(term: Any) -> float:
    """One class that was never hit makes a geometric mean zero: estimates must not hide it."""
    classes = isinstance(term, kinds.Classes | kinds.WeighedClasses)
    geometric = classes and isinstance(term.of, kinds.Geometric)
    return UNHIT if geometric else STRENGTH

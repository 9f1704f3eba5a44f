"""Auto: the default, which needs no choice of feedback or prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from omma._types import Feedback
from omma.kernels import objectives as kinds
from omma.kernels.calibrate import STRAIGHT, SURE
from omma.kernels.layout import EPSILON
from omma.metrics import Metric, smoothed
from omma.metrics.averages import is_minimum
from omma.metrics.binary import RECALL
from omma.metrics.names import MetricName
from omma.plan import Plan, Shrinkage
from omma.policies.base import Maximizer

PRIOR = 0.01  # λ: a hundredth of a row in each cell; of the first few rows, none decides alone


@dataclass(frozen=True, repr=False)
class Auto(Maximizer):
    """OMMA with online calibration, and without options to tune. The default policy.

    OMMA has two options that are hard to choose in advance: the feedback (labels or estimates) and
    the prior. ``Auto`` uses labels and estimates. It calibrates probabilities by the labels so far,
    and observed labels correct the expected counts of each label. Before the first label, it
    decides exactly like ``OMMA(feedback="estimates", prior=0.01)``. Unknown labels (NaN), of whole
    rows or of single entries, count by their corrected estimates.

    Parameters
    ----------
    metric : str or Metric
        The metric to maximize: a name (see ``omma.metric``) or a metric.
    k : int, optional
        Predict exactly k labels per row.
    at_most : int, optional
        Predict the labels that raise the metric, up to this number per row.
    subject_to : str, Limit, or list of these, optional
        Constraints: ``"micro_precision >= 0.9"``, ``"recall[fraud] >= 0.8"``,
        ``"labels_per_row <= 2"``, or limits from ``omma.at_least`` and ``omma.at_most``.

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

    # Choices that OMMA has as options.
    feedback: ClassVar[Feedback] = "both"  # type: ignore[misc]
    prior: ClassVar[float] = PRIOR
    PARTIAL_LABELS: ClassVar[bool] = True

    metric: MetricName | Metric | str
    k: int | None = None
    at_most: int | None = None
    subject_to: Any = None

    def __post_init__(self) -> None:
        self.check_options()

    @cached_property
    def _plan(self) -> Plan:
        """The plan but for limits, which need the number of labels."""
        term = objective_of(self.objective, exact=bool(self.limits))
        return replace(
            self.objective.plan(k=self.budget, prior=PRIOR, soft=True),
            term=term,
            at_most=self.at_most,
            shrinkage=shrinkage_of(term, PRIOR),
            calibrated=True,
            squash=STRAIGHT if self.objective.multiclass else SURE,
        )

    plan = Maximizer.limited_plan


def objective_of(metric: Metric, exact: bool = False) -> Any:
    """The objective for a metric: the metric itself, or for a minimum a smooth function near it.

    ``exact`` asks for derivatives, not only for numbers in proportion: prices are weighed by them.
    The paper's Appendix B.2 smooths a metric that has kinks.
    """
    if not is_minimum(metric):
        return metric.term(exact=exact)
    if metric.multiclass:
        # A power mean of recalls with the exponent −3 follows the smallest, and has no kink.
        kind = kinds.WeighedClasses if exact else kinds.Classes
        return kind(1.0, kinds.Steep(EPSILON), RECALL.kind)
    return (metric if metric.smooth else smoothed(metric)).term(exact=exact)


def shrinkage_of(term: Any, prior: float) -> Shrinkage:
    """How labels correct estimates, for what is maximized; ``prior`` is λ, for eager labels."""
    of = getattr(term, "of", None)
    # Without a prediction so far, precision and MCC have no slope to go by but that of the prior.
    looks_at_predictions = isinstance(of, kinds.Correlation) or (
        isinstance(of, kinds.Ratio) and not any((*of.over[2:], *of.under[2:]))
    )
    if isinstance(term, kinds.MacroTerm) and looks_at_predictions:
        return Shrinkage(eager=prior)
    return Shrinkage()

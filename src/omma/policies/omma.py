"""OMMA, the Online Metric Maximization Algorithm, and its variant without labels."""

import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar

from omma._types import Calibration
from omma._validate import check_choice
from omma.kernels.calibrate import STRAIGHT, SURE
from omma.kernels.objectives import with_epsilon
from omma.metrics.averages import is_minimum
from omma.plan import Plan
from omma.policies.auto import Auto, shrinkage_of
from omma.policies.base import Maximizer, MetricPolicy


@dataclass(frozen=True, repr=False)
class OMMA(MetricPolicy):
    """Predict whatever raises the metric most, linearized at the counts so far.

    Kotłowski, Wydmuch, Schultheis, Babbar and Dembczyński, *A General Online Algorithm for
    Optimizing Complex Performance Metrics*, ICML 2024: one pass, nothing remembered but counts.
    With labels it is Algorithm 1 of the paper, with estimates Algorithm 2, OMMA(η̂).

    Parameters
    ----------
    metric : str or Metric
        What to maximize: a name (see ``omma.metric``) or a metric.
    k : int, optional
        Predict exactly k labels a row. None has no budget: each label has its own threshold, except
        that ``multiclass_`` metrics then take k = 1.
    feedback : {"labels", "estimates", "both"}
        "labels" counts true labels. "estimates", OMMA(η̂), counts probabilities in their place: it
        needs no labels, which also helps where many labels are rare. "both" counts probabilities
        and corrects them by the labels that came, as ``omma.Auto`` does.
    prior : float
        λ, added to each of the four cells of each label where the gradient is taken. 0 is the
        paper's plain rule, which predicts a label until it has been counted once.
    calibration : {None, "online"}
        "online" calibrates probabilities by the labels that came, before deciding and counting.
    at_most : int, optional
        Predict the labels that raise the metric, but no more than this number a row.
    epsilon : float
        ε, added to the denominators of fractions where a gradient is taken; the paper's 1e-9. It
        matters for fractions of about that size: with ``prior=0``, and for labels rarer than one in
        1/ε rows. 1e-6, which the code of the paper's tables used in macro and micro metrics, pulls
        the thresholds of labels seen a few times in a million rows towards zero. A metric of your
        own has the ε that you wrote into it.
    subject_to : str, Limit, or list of these, optional
        Limits that must hold, as for ``omma.Auto``. With ``feedback="estimates"`` limits are held
        on estimates: they hold on labels as far as the probabilities are right.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> trace = omma.replay(omma.OMMA("macro_f1"), eta, y)
    >>> half = omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1")
    >>> trace.value > half.value
    True
    """

    FEEDBACKS: ClassVar[tuple[str, ...]] = ("labels", "estimates", "both")
    PARTIAL_LABELS: ClassVar[bool] = True

    calibration: Calibration = None
    at_most: int | None = None
    subject_to: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("OMMA", "calibration", self.calibration, (None, "online"))
        # OMMA needs a smooth metric: Assumption 4.1 of the paper, and Appendix B.2.
        if is_minimum(self.objective) and not self.objective.smooth:
            warn_of_kink(self.objective.name)

    @property
    def needs_eta(self) -> bool:
        return super().needs_eta or self.calibration is not None

    @cached_property
    def _plan(self) -> Plan:
        """The plan but for limits, which need the number of labels.

        Its objective is the gradient of Eq. (3); ``feedback`` decides what Eq. (1) adds to the
        counts, y as in Algorithm 1 or η̂ as in Algorithm 2.
        """
        plan = self.metric_plan
        term = plan.term
        if self.limits:  # prices are paid in the metric's own derivatives
            term = with_epsilon(self.objective.term(exact=True), self.epsilon)
        return replace(
            plan,
            term=term,
            at_most=self.at_most,
            shrinkage=shrinkage_of(term, plan.prior) if self.feedback == "both" else None,
            calibrated=self.calibration is not None,
            squash=STRAIGHT if self.objective.multiclass else SURE,
        )

    plan = Maximizer.limited_plan


def auto_or_omma(model: Any, metric: Any, k: int | None, at_most: int | None) -> OMMA | Auto:
    """Auto, unless the ``feedback`` or the ``prior`` of a model is chosen: then OMMA with these."""
    # A choice of either is one of OMMA's options, which Auto does not have.
    limits = model.subject_to
    if model.feedback is None and model.prior is None:
        return Auto(metric, k, at_most, subject_to=limits)
    feedback: Any = "labels" if model.feedback is None else model.feedback
    prior = OMMA.prior if model.prior is None else model.prior
    return OMMA(metric, k, feedback, prior, at_most=at_most, subject_to=limits)


@cache  # once for each metric
def warn_of_kink(name: str) -> None:
    """Say once that a rule which follows a minimum jumps."""
    warnings.warn(
        f"the rule that OMMA ends with for {name} may be worthless, as it follows whichever rate "
        f"is smallest at the moment: use omma.metrics.smoothed({name!r}), or omma.Auto",
        UserWarning,
        stacklevel=4,
    )

"""OMMA, the Online Metric Maximization Algorithm, and its variant without labels."""

import math
import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar

from omma._types import Calibration
from omma._validate import check_choice, check_positive_int
from omma.kernels import objectives as kinds
from omma.kernels.calibrate import STRAIGHT, SURE
from omma.kernels.counts import Both
from omma.kernels.layout import SUMS
from omma.limits import Limit, check_limits, check_per_row, limited, read_limits
from omma.metrics import Metric
from omma.metrics.averages import is_minimum
from omma.plan import Plan
from omma.policies.base import MetricPolicy
from omma.rows.frames import Names


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
    FOLLOWS_KINKS: ClassVar[bool] = True  # whether the rule for a minimum of rates jumps

    calibration: Calibration = None
    at_most: int | None = None
    subject_to: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = self.owner
        check_choice(owner, "calibration", self.calibration, (None, "online"))
        self._set(
            at_most=check_at_most(owner, self.objective, self.k, self.at_most),
            subject_to=read_limits(owner, self.subject_to),
        )
        check_per_row(owner, self.limits, *self._labels_per_row(None))
        # OMMA needs a smooth metric: Assumption 4.1 of the paper, and Appendix B.2.
        has_kink = is_minimum(self.objective) and not self.objective.smooth
        if has_kink and self.FOLLOWS_KINKS:
            warn_of_kink(self.objective.name)

    @property
    def needs_eta(self) -> bool:
        return self.soft or self.calibration is not None

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        return self.subject_to or ()

    def _labels_per_row(self, m: int | None) -> tuple[float, float]:
        """The fewest and the most labels that a row can get."""
        if self.budget is not None:
            return float(self.budget), float(self.budget)
        return 0.0, float(self.at_most or m or math.inf)

    def named_limits(self, m: int, names: Names | None = None) -> tuple[Limit, ...]:
        """The limits, each with the place of its label."""
        return tuple(limit.named(names, m, self.owner) for limit in self.limits)

    def for_names(self, names: Names | None) -> Any:
        if names is None or not self.limits:
            return self
        return replace(self, subject_to=self.named_limits(len(names), names))

    def check_labels(self, m: int) -> None:
        super().check_labels(m)
        check_limits(self.owner, self.named_limits(m), m, *self._labels_per_row(m))
        if self.at_most is not None and self.at_most > m:
            raise ValueError(
                f"at_most of {self!r} must be at most the number of labels, which is {m}, got "
                f"{self.at_most}"
            )

    def whole_rows(self, metric: Metric | None) -> str | None:
        # A count of all rows, as in specificity, is not known label by label.
        for limit in self.limits:
            if limit.needs_labels and (limit.rate.over[3] or limit.rate.under[3]):
                return f" for a limit on {limit.of}, which counts all rows"
        return super().whole_rows(metric)

    def term(self) -> Any:
        # Prices of limits are paid in the metric's own derivatives.
        return self.objective.term(exact=bool(self.limits))

    def plan(self, m: int) -> Plan:
        # The objective is the gradient of Eq. (3); ``feedback`` decides what Eq. (1) adds to the
        # counts, y as in Algorithm 1 or η̂ as in Algorithm 2.
        plan, corrects = self.metric_plan, self.feedback == "both"
        plan = replace(
            plan,
            at_most=self.at_most,
            shrinkage=shrinkage_of(plan.term, self.prior) if corrects else None,
            calibrated=self.calibration is not None,
            squash=STRAIGHT if self.objective.multiclass else SURE,
        )
        if not self.limits:
            return plan
        # Limits on single labels need their places, and averages over labels their number.
        limits = limited(self.named_limits(m), m, calibrated=plan.calibrated)
        # Limits over all labels look at sums over labels, whatever the metric does.
        return replace(plan, limits=limits, sums=max(plan.sums, SUMS))


def check_at_most(owner: str, metric: Metric, k: int | None, at_most: int | None) -> int | None:
    """Refuse an upper bound on labels a row that contradicts an exact number of them."""
    most: int | None = check_positive_int(owner, "at_most", at_most, optional=True)
    if most is None:
        return None
    if k is not None:
        raise ValueError(
            f"{owner} takes k (exactly k labels a row) or at_most (up to so many), not both, "
            f"got k={k} and at_most={at_most}"
        )
    if metric.multiclass or metric.binary:
        kind = "one label" if metric.binary else "one class a row"
        raise ValueError(
            f"at_most of {owner} must be None for {metric.name}, a metric of {kind}, got {at_most}"
        )
    return most


def shrinkage_of(term: Any, prior: float) -> Both:
    """How labels correct estimates, for an objective; ``prior`` is λ, for eager labels."""
    of = getattr(term, "of", None)
    # Before the first prediction, precision and MCC have no slope but that of the prior.
    looks_at_predictions = isinstance(of, kinds.Correlation) or (
        isinstance(of, kinds.Ratio) and not any((*of.over[2:], *of.under[2:]))
    )
    if isinstance(term, kinds.MacroTerm) and looks_at_predictions:
        return Both(eager=float(prior))
    return Both()


@cache  # once for each metric
def warn_of_kink(name: str) -> None:
    """Say once that a rule which follows a minimum jumps."""
    warnings.warn(
        f"the rule that OMMA ends with for {name} may be worthless, as it follows whichever rate "
        f"is smallest at the moment: use omma.metrics.smoothed({name!r}), or omma.Auto",
        UserWarning,
        stacklevel=4,
    )

"""OMMA, the Online Metric Maximization Algorithm, and its variant without labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from omma._run import Plan
from omma._validate import check_choice
from omma.metrics.tangent import is_minimum
from omma.policies.auto import shrinkage_of
from omma.policies.base import MetricPolicy


@dataclass(frozen=True, repr=False)
class OMMA(MetricPolicy):
    """Predict what gains most on the metric linearized at the counts so far.

    Kotłowski, Wydmuch, Schultheis, Babbar and Dembczyński, *A General Online Algorithm for
    Optimizing Complex Performance Metrics*, ICML 2024: one pass, nothing remembered but counts.

    Parameters
    ----------
    metric : str or Metric
        What to maximize: a name (see ``omma.metric``) or a metric.
    k : int, optional
        Predict exactly k labels a row. None has no budget: each label has its own threshold, except
        that ``multiclass_`` metrics then take k = 1.
    feedback : {"labels", "estimates", "both"}
        Count true labels, or, as OMMA(η̂), the probabilities in their place: then no label is ever
        needed, which also helps where many labels are rare. "both" counts probabilities and
        corrects them by the labels that came, as ``omma.Auto`` does.
    prior : float
        λ, added to each of the four cells of each label where the gradient is taken. 0 is the
        paper's plain rule, which predicts a label until it has been counted once.
    calibration : {None, "online"}
        Calibrate probabilities by the labels that came, before anything is decided or counted.
    at_most : int, optional
        Predict the labels that gain, but no more than so many a row.

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

    calibration: str | None = None
    at_most: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("OMMA", "calibration", self.calibration, (None, "online"))
        if is_minimum(self.objective) and not self.objective.smooth:
            warn_of_kink(self.objective.name)

    @property
    def needs_eta(self) -> bool:
        return super().needs_eta or self.calibration is not None

    def plan(self, m: int) -> Plan:
        plan = self.objective.plan(k=self.budget, prior=self.prior, soft=self.soft)
        return replace(
            plan,
            at_most=self.at_most,
            shrinkage=shrinkage_of(plan.term) if self.feedback == "both" else None,
            calibrated=self.calibration is not None,
        )


@cache
def warn_of_kink(name: str) -> None:
    """Say once that a rule which follows a minimum jumps."""
    warnings.warn(
        f"the rule that OMMA ends with for {name} may be worthless, as it follows whichever rate "
        f"is smallest just now: use omma.metrics.smoothed({name!r}), or omma.Auto",
        UserWarning,
        stacklevel=4,
    )

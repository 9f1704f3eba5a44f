"""Auto: the default, which needs no choice of feedback or prior."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from omma._types import Calibration, Feedback
from omma.kernels import objectives as kinds
from omma.kernels.layout import EPSILON
from omma.metrics import smoothed
from omma.metrics.averages import is_minimum
from omma.metrics.binary import RECALL
from omma.policies.omma import OMMA

PRIOR = 0.01  # λ: a hundredth of a row in each cell; of the first few rows, none decides alone


@dataclass(frozen=True, repr=False)
class Auto(OMMA):
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

    FOLLOWS_KINKS: ClassVar[bool] = False

    # Options of OMMA that have one value here.
    feedback: Feedback = field(default="both", init=False)
    prior: float = field(default=PRIOR, init=False)
    epsilon: float = field(default=EPSILON, init=False)
    calibration: Calibration = field(default="online", init=False)

    def term(self) -> Any:
        # A minimum has kinks, so a smooth function near it is maximized: Appendix B.2 of the paper.
        metric, exact = self.objective, bool(self.limits)
        if not is_minimum(metric):
            return super().term()
        if metric.multiclass:
            # A power mean of recalls with the exponent −3 follows the smallest, and has no kink.
            kind = kinds.WeighedClasses if exact else kinds.Classes
            return kind(1.0, kinds.Steep(EPSILON), RECALL.kind)
        return (metric if metric.smooth else smoothed(metric)).term(exact=exact)


def auto_or_omma(model: Any, metric: Any, k: int | None, at_most: int | None) -> OMMA:
    """Auto, unless the ``feedback`` or the ``prior`` of a model is chosen: then OMMA with these."""
    # A choice of either is one of OMMA's options, which Auto does not have.
    limits = model.subject_to
    if model.feedback is None and model.prior is None:
        return Auto(metric, k, at_most, subject_to=limits)
    feedback: Any = "labels" if model.feedback is None else model.feedback
    prior = OMMA.prior if model.prior is None else model.prior
    return OMMA(metric, k, feedback, prior, at_most=at_most, subject_to=limits)

"""OMMA, the Online Metric Maximization Algorithm, and its variant without labels."""

from __future__ import annotations

from dataclasses import dataclass

from omma._run import Plan
from omma.policies.base import MetricPolicy


@dataclass(frozen=True)
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
    feedback : {"labels", "estimates"}
        Count true labels, or, as OMMA(η̂), the probabilities in their place: then no label is ever
        needed, which also helps where many labels are rare.
    prior : float
        λ, added to each of the four cells of each label where the gradient is taken. 0 is the
        paper's plain rule, which predicts a label until it has been counted once.
    epsilon : float
        ε, added to the denominators of fractions where a gradient is taken; the paper's 1e-9. It
        matters where a fraction is not far above it: with ``prior=0``, and for labels rarer than
        one in 1/ε rows. 1e-6, which the code of the paper's tables used in macro and micro metrics,
        pulls the thresholds of labels seen a few times in a million rows towards zero. A metric of
        your own has what you wrote into it.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> trace = omma.replay(omma.OMMA("macro_f1"), eta, y)
    >>> half = omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1")
    >>> trace.value > half.value
    True
    """

    def plan(self, m: int) -> Plan:
        return self.metric_plan()

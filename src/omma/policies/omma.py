"""OMMA, the Online Metric Maximization Algorithm, and its variant without labels."""

from __future__ import annotations

from dataclasses import dataclass

from omma._run import Plan
from omma._validate import check_choice, check_number, check_positive_int
from omma.metrics import Metric, metric
from omma.policies.base import LinearPolicy


@dataclass(frozen=True)
class OMMA(LinearPolicy):
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

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> trace = omma.replay(omma.OMMA("macro_f1"), eta, y)
    >>> half = omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1")
    >>> trace.value > half.value
    True
    """

    metric: Metric | str
    k: int | None = None
    feedback: str = "labels"
    prior: float = 1e-6

    def __post_init__(self) -> None:
        found = metric(self.metric)
        object.__setattr__(self, "metric", found)
        check_positive_int("OMMA", "k", self.k, optional=True)
        check_choice("OMMA", "feedback", self.feedback, ("labels", "estimates"))
        object.__setattr__(self, "prior", check_number("OMMA", "prior", self.prior, low=0.0))
        if found.single_label and not found.needs_matrix and self.k not in (None, 1):
            raise ValueError(
                f"k of OMMA must be 1 or None for {found.name}, which is defined for one "
                f"prediction a row, got {self.k}"
            )
        if found.binary and self.k is not None:
            raise ValueError(
                f"k of OMMA must be None for {found.name}, a metric of one label, got {self.k}"
            )

    @property
    def objective(self) -> Metric:
        return metric(self.metric)

    @property
    def budget(self) -> int | None:
        return 1 if self.k is None and self.objective.multiclass else self.k

    def plan(self, m: int) -> Plan:
        soft = self.feedback == "estimates"
        return self.objective.plan(k=self.budget, prior=self.prior, soft=soft)

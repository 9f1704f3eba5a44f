"""OFO: online F-measure optimization."""

from dataclasses import dataclass
from typing import Literal

from omma._validate import check_choice, check_number
from omma.kernels.layout import SUMS
from omma.kernels.objectives import MacroThreshold, MicroThreshold
from omma.metrics import Metric, metric
from omma.plan import Plan
from omma.policies.base import Policy


@dataclass(frozen=True)
class OFO(Policy):
    """Predict a label where its probability reaches half of its F-measure so far.

    Busa-Fekete, Szörényi, Dembczyński and Hüllermeier, *Online F-measure optimization*, 2015. The
    threshold is a/b, where a counts true positives and b counts labels and predictions; both start
    at the prior. At the same nonzero counts it is OMMA's rule for F1.

    Parameters
    ----------
    average : {"macro", "micro"}
        "macro" has a threshold for each label, "micro" one for all labels.
    feedback : {"labels", "estimates"}
        Count true labels, or probabilities in their place.
    prior : float
        The start value of a and b of each label; "micro" adds them up to m times the prior. 0
        predicts a label until it has been counted once.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> round(omma.replay(omma.OFO("micro"), eta, y).value, 2)
    0.55
    """

    average: Literal["macro", "micro"] = "macro"
    feedback: Literal["labels", "estimates"] = "labels"
    prior: float = 1e-6

    def __post_init__(self) -> None:
        check_choice("OFO", "average", self.average, ("macro", "micro"))
        check_choice("OFO", "feedback", self.feedback, ("labels", "estimates"))
        self._set(prior=check_number("OFO", "prior", self.prior, low=0.0))

    @property
    def objective(self) -> Metric:
        return metric(f"{self.average}_f1")

    def plan(self, m: int) -> Plan:
        # a / b is OMMA's threshold for F1 at the same counts, β / α of Eq. (5): with tp, predicted
        # and positive it is tp / (predicted + positive), half of the F-measure.
        macro, soft = self.average == "macro", self.feedback == "estimates"
        term = MacroThreshold(1.0) if macro else MicroThreshold(1.0)
        return Plan(None, term, prior=self.prior, soft=soft, sums=0 if macro else SUMS)

"""Problems of every kind with a known best classifier."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import omma
from omma import Metric, Policy
from omma_study.theory import utilities
from omma_study.theory.distributions import (
    Beta,
    Discrete,
    Distribution,
    Independent,
    LogisticNormal,
    Softmax,
)
from omma_study.theory.optimum import Optimum, exhaustive, optimum
from omma_study.theory.regret import Distort, Measured, Problem, measure, until
from omma_study.theory.simulation import Spec
from omma_study.theory.utilities import Utility

OMMA, ESTIMATES, GREEDY, OFO, ONLINE = "OMMA", "OMMA(η̂)", "Greedy", "OFO", "Online-FW"
AUTO = "Auto"
USUAL = (OMMA, ESTIMATES, GREEDY, ONLINE)
WITH_OFO = (OMMA, ESTIMATES, GREEDY, OFO, ONLINE)  # which is for F1 alone
FEWER = 300_000  # rows of problems that take more time a row


@dataclass(frozen=True)
class Case:
    """A problem by name, the policies that run on it, and the number of rows of a sequence.

    It is ``about`` a metric, by its name, or about a utility of one label, which is averaged over
    several labels.
    """

    name: str
    title: str
    distribution: Distribution
    about: str | Callable[[], Utility]
    k: int | None = None
    entrants: tuple[str, ...] = USUAL
    rows: int = 1_000_000
    search: Callable[..., Optimum] = optimum  # for the best classifier

    @cached_property
    def problem(self) -> Problem:
        """With its best classifier."""
        if isinstance(self.about, str):
            metric = omma.metric(self.about)
        else:
            of_label = self.about().metric
            metric = of_label if self.distribution.m == 1 else omma.metrics.macro(of_label)
        best = self.search(metric, self.distribution, self.k)
        return Problem(self.distribution, metric, best, self.k)


def policy(name: str, metric: Metric, k: int | None = None) -> Policy:
    """A policy by the name that tables have for it.

    >>> import omma
    >>> policy("Greedy", omma.metric("f1")).prior
    1e-06
    """
    # Functions, as some policies refuse some metrics.
    makers: dict[str, Callable[[], Policy]] = {
        OMMA: lambda: omma.OMMA(metric, k),
        ESTIMATES: lambda: omma.OMMA(metric, k, "estimates"),
        GREEDY: lambda: omma.Greedy(metric, k),
        OFO: omma.OFO,
        ONLINE: lambda: omma.OnlineFrankWolfe(metric, k),
        AUTO: lambda: omma.Auto(metric, k),
    }
    return makers[name]()


def measured(problem: Problem, spec: Spec, distort: Distort | None = None) -> Measured:
    """The sequences of a run, by its policy."""
    chosen = policy(spec["policy"], problem.metric, problem.k)
    rows = until(spec["rows"])
    return measure(problem, chosen, rows, spec["sequences"], seed=spec["seed"], distort=distort)


# One label; a fifth of the rows have it, and half of them are easy to tell.
ONE_LABEL = Independent(Beta(0.5, 2.0))
# One label and five kinds of rows, rarer the more probable the label is.
FIVE_KINDS = Discrete([0.05, 0.2, 0.4, 0.6, 0.9], [5, 4, 3, 2, 1])
# Labels and classes, each rarer than the one before.
TWO_LABELS = Independent(LogisticNormal(-1.0, 1.5), LogisticNormal(-2.0, 1.5))
FIVE_LABELS = Independent(*(LogisticNormal(-1.0 - 0.5 * j, 1.5) for j in range(5)))
FOUR_CLASSES = Softmax([0.0, -0.5, -1.0, -1.5], spread=1.5)
# Three classes and six kinds of rows: few enough to try all classifiers.
SIX_KINDS = Discrete(
    [
        [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7],
        [0.5, 0.4, 0.1], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05],
    ],
    [3, 3, 2, 2, 2, 1],
    multiclass=True,
)  # fmt: skip
CASES = {
    case.name: case
    for case in (
        Case("binary", "√((tp + δ)(tn + δ)), continuous", ONE_LABEL, utilities.geometric),
        Case(
            "binary-discrete", "harmonic mean of tp + δ, tn + δ, five kinds", FIVE_KINDS,
            utilities.harmonic,
        ),
        Case(
            "multilabel-at-2", "macro √((tp + δ)(tn + δ)) at 2 of 5 labels", FIVE_LABELS,
            utilities.geometric, k=2, rows=FEWER,
        ),
        Case(
            "multiclass", "H-mean of four classes", FOUR_CLASSES, "multiclass_hmean", k=1,
            entrants=(OMMA, ESTIMATES, ONLINE), rows=FEWER,
        ),
        Case("f1", "F1 of one label, continuous", ONE_LABEL, "f1", entrants=WITH_OFO),
        Case(
            "macro-f1", "macro-F1 of 5 labels", FIVE_LABELS, "macro_f1", entrants=WITH_OFO,
            rows=FEWER,
        ),
        Case("macro-f1-at-2", "macro-F1 at 2 of 5 labels", FIVE_LABELS, "macro_f1", 2, rows=FEWER),
        # It has local optima, in which Frank-Wolfe would stop: all classifiers are tried.
        Case(
            "macro-precision-at-1", "macro-precision at 1 of 3 classes", SIX_KINDS,
            "macro_precision", k=1, rows=FEWER, search=exhaustive,
        ),
    )
}  # fmt: skip

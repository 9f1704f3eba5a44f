"""Problems of every kind whose best classifier is known."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

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
from omma_study.theory.optimum import exhaustive, optimum
from omma_study.theory.regret import Distort, Measured, Problem, measure, until
from omma_study.theory.simulation import Spec
from omma_study.theory.utilities import Utility

OMMA, ESTIMATES, GREEDY, OFO, ONLINE = "OMMA", "OMMA(η̂)", "Greedy", "OFO", "Online-FW"
AUTO = "Auto"
USUAL = (OMMA, ESTIMATES, GREEDY, ONLINE)
EVERY = (OMMA, ESTIMATES, GREEDY, OFO, ONLINE)
FEWER = 300_000  # rows, where each costs more


@dataclass(frozen=True)
class Case:
    """A problem by name, who takes part, and how many rows a sequence has.

    It is about a metric, by its name, or a utility of one label, which is averaged over several.
    """

    name: str
    title: str
    distribution: Callable[[], Distribution]
    about: str | Callable[[], Utility]
    k: int | None = None
    entrants: tuple[str, ...] = USUAL
    rows: int = 1_000_000
    everything: bool = False  # whether all classifiers are tried, as the metric has local optima

    def problem(self) -> Problem:
        """With its best classifier, found once."""
        return _problem(self)


@cache
def _problem(case: Case) -> Problem:
    distribution = case.distribution()
    if isinstance(case.about, str):
        metric = omma.metric(case.about)
    else:
        one_label = case.about().metric
        metric = one_label if distribution.m == 1 else omma.metrics.macro(one_label)
    # Macro-precision has local optima, in which Frank-Wolfe would stop.
    if case.everything:
        assert isinstance(distribution, Discrete)
        best = exhaustive(metric, distribution, case.k)
    else:
        best = optimum(metric, distribution, case.k)
    return Problem(distribution, metric, best, case.k)


def policy(name: str, metric: Metric, k: int | None = None) -> Policy:
    """A policy by the name that tables have for it.

    >>> import omma
    >>> policy("Greedy", omma.metric("f1")).prior
    1e-06
    """
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


def beta() -> Independent:
    """One label; a fifth of the rows have it, and half of them are easy to tell."""
    return Independent(Beta(0.5, 2.0))


def five_kinds() -> Discrete:
    """One label and five kinds of rows, rarer the more probable the label is."""
    return Discrete([0.05, 0.2, 0.4, 0.6, 0.9], [5, 4, 3, 2, 1])


def five_labels() -> Independent:
    """Five labels, each rarer than the one before."""
    return Independent(*(LogisticNormal(-1.0 - 0.5 * j, 1.5) for j in range(5)))


def four_classes() -> Softmax:
    """Four classes, each rarer than the one before."""
    return Softmax([0.0, -0.5, -1.0, -1.5], spread=1.5)


def six_kinds() -> Discrete:
    """Three classes and six kinds of rows."""
    points = [
        [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7],
        [0.5, 0.4, 0.1], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05],
    ]  # fmt: skip
    return Discrete(points, [3, 3, 2, 2, 2, 1], multiclass=True)


CASES = {
    case.name: case
    for case in (
        Case("binary", "√((tp + δ)(tn + δ)), continuous", beta, utilities.geometric),
        Case(
            "binary-discrete", "harmonic mean of tp + δ, tn + δ, five kinds", five_kinds,
            utilities.harmonic,
        ),
        Case(
            "multilabel-at-2", "macro √((tp + δ)(tn + δ)) at 2 of 5 labels", five_labels,
            utilities.geometric, k=2, rows=FEWER,
        ),
        Case(
            "multiclass", "H-mean of four classes", four_classes, "multiclass_hmean", k=1,
            entrants=(OMMA, ESTIMATES, ONLINE), rows=FEWER,
        ),
        Case("f1", "F1 of one label, continuous", beta, "f1", entrants=EVERY),
        Case(
            "macro-f1", "macro-F1 of 5 labels", five_labels, "macro_f1", entrants=EVERY, rows=FEWER
        ),
        Case("macro-f1-at-2", "macro-F1 at 2 of 5 labels", five_labels, "macro_f1", 2, rows=FEWER),
        Case(
            "macro-precision-at-1", "macro-precision at 1 of 3 classes", six_kinds,
            "macro_precision", k=1, rows=FEWER, everything=True,
        ),
    )
}  # fmt: skip

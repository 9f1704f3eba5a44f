"""The registry: all policies that people call by a name, each once.

Tables, the command line, suites of the study and comparisons all read it here. To add a policy,
write its file and one line of ``REGISTRY``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omma.metrics import Metric, metric as find_metric
from omma.policies.auto import Auto
from omma.policies.base import Policy, UnsupportedMetricError
from omma.policies.fixed import Threshold, TopK
from omma.policies.frank_wolfe import FrankWolfe
from omma.policies.greedy import Greedy
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.policies.online_frank_wolfe import OnlineFrankWolfe
from omma.policies.thresholds import TunedThresholds
from omma.rows.batch import Batch

HAT_ETA = "η\u0302"
ETA = "_eta"  # ends the name of a variant that counts probabilities in place of labels
# How a policy learns: as it runs, from a sample beforehand, or never.
ONLINE, TRAINED, STILL = "online", "trained", "still"
Make = Callable[..., Any]


@dataclass(frozen=True)
class PolicyEntry:
    """A policy by its name.

    ``kind`` is ONLINE, TRAINED or STILL. ``make`` is a function of (metric, k, prior) that makes
    the policy; for a trained one, it makes an object with a ``fit`` that does.
    """

    name: str
    title: str  # what tables call it
    about: str  # how it decides, in a few words
    kind: str
    make: Make
    priors: bool = False  # whether λ is to be chosen for it

    @property
    def labels(self) -> bool:
        """Whether it needs true labels to learn from."""
        return self.kind != STILL and not self.name.endswith(ETA) and self.name != "auto"

    def check_train(self, train: Batch | None) -> None:
        """Refuse to go without a sample where one is needed."""
        if self.kind == TRAINED and train is None:
            raise ValueError(
                f"train of compare must be a pair (eta, y) for {self.name!r}, which learns "
                "beforehand, got None"
            )

    def policy(
        self, metric: Metric, k: int | None, prior: float, train: Batch | None = None
    ) -> Policy:
        """The policy for a metric and a budget, fitted where it learns beforehand."""
        self.check_train(train)
        policy = self.make(metric, k, prior)
        return policy.fit(train) if self.kind == TRAINED else policy  # type: ignore[no-any-return]


def _ofo(metric: Metric, k: int | None, feedback: Any, prior: float) -> Policy:
    # OFO has one threshold a label, or one for all; f1 of a single label is the former.
    for average, names in (("macro", ("macro_f1", "f1")), ("micro", ("micro_f1",))):
        if k is None and any(metric == find_metric(name) for name in names):
            return OFO(average, feedback, prior)  # type: ignore[arg-type]
    raise UnsupportedMetricError("OFO is for f1, macro_f1 and micro_f1 without a budget")


def _tuned(metric: Metric, k: int | None, prior: float) -> TunedThresholds:
    if k is not None:
        raise UnsupportedMetricError("TunedThresholds is for metrics without a budget")
    return TunedThresholds(metric)


def _both(
    name: str, title: str, about: str, make: Make, **options: Any
) -> tuple[PolicyEntry, PolicyEntry]:
    """A policy from labels, and the same from probabilities in their place.

    ``make`` is a function of (metric, k, feedback, prior), such as the class of the policy.
    """
    # The hat comes before what is said of a variant: "Greedy(η̂), plug-in".
    first, comma, how = title.partition(",")
    hat = f"{first}({HAT_ETA}){comma}{how}"
    soft = f"the same as {name}, η in place of labels"
    return (
        PolicyEntry(
            name,
            title,
            about,
            ONLINE,
            lambda metric, k, prior: make(metric, k, "labels", prior, **options),
            priors=True,
        ),
        PolicyEntry(
            name + ETA,
            hat,
            soft,
            ONLINE,
            lambda metric, k, prior: make(metric, k, "estimates", prior, **options),
            priors=True,
        ),
    )


def _half_or_top(metric: Metric, k: int | None, prior: float) -> Policy:
    return Threshold(0.5) if k is None else TopK(k)


_HALF = f"Top-k / {HAT_ETA} ≥ 0.5"
_ENTRIES = (
    PolicyEntry(
        "baseline", _HALF, "the threshold 0.5; with a budget, the top k", STILL, _half_or_top
    ),
    PolicyEntry("top_k_or_half", _HALF, "another name of baseline", STILL, _half_or_top),
    PolicyEntry(
        "auto",
        "Auto",
        "calibrates and learns from whatever labels come",
        ONLINE,
        lambda metric, k, prior: Auto(metric, k),
    ),
    *_both("omma", "OMMA", "what gains most on the metric at the counts so far", OMMA),
    *_both("greedy", "Greedy", "what raises the expected metric most, this row included", Greedy),
    *_both(
        "greedy_plug_in",
        "Greedy, plug-in",
        "the same at expected counts, as the code of the paper",
        Greedy,
        expectation="plug_in",
    ),
    *_both("ofo", "OFO", "for F1: the threshold is half of the F1 so far", _ofo),
    *_both(
        "online_fw", "Online-FW", "Frank-Wolfe on all rows so far, which it keeps", OnlineFrankWolfe
    ),
    *_both(
        "online_fw_random",
        "Online-FW, random",
        "the same from random starts, as the code of the paper",
        OnlineFrankWolfe,
        start="random",
    ),
    PolicyEntry(
        "offline_fw",
        "Offline-FW",
        "Frank-Wolfe on a sample beforehand, the better of two starts",
        TRAINED,
        lambda metric, k, prior: FrankWolfe(metric, k, start="best"),
    ),
    PolicyEntry(
        "offline_fw_top",
        "Offline-FW, top",
        "the same from the top k, or from 0.5",
        TRAINED,
        lambda metric, k, prior: FrankWolfe(metric, k, start="top"),
    ),
    PolicyEntry(
        "offline_fw_random",
        "Offline-FW, random",
        "the same from a random start, as the code of the paper",
        TRAINED,
        lambda metric, k, prior: FrankWolfe(metric, k, start="random"),
    ),
    PolicyEntry(
        "tuned", "Tuned thresholds", "the best thresholds of a sample beforehand", TRAINED, _tuned
    ),
)
REGISTRY: dict[str, PolicyEntry] = {entry.name: entry for entry in _ENTRIES}
NAMES: tuple[str, ...] = tuple(REGISTRY)

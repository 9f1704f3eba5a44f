"""The registry: every policy that can be called by a name.

Comparisons, the command line and their tables read it. To add a policy, write its file and one
line here.
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
# How a policy learns: as it runs, from a sample beforehand, or never.
ONLINE, TRAINED, STILL = "online", "trained", "still"
Make = Callable[..., Any]


@dataclass(frozen=True)
class PolicyEntry:
    """A policy by its name.

    ``kind`` is ONLINE, TRAINED or STILL. ``make`` is a function of (metric, k, prior) that returns
    the policy, or for a TRAINED one an object whose ``fit`` returns it.
    """

    name: str
    title: str  # in tables
    about: str  # how it decides, in a few words
    kind: str
    make: Make
    labels: bool = False  # whether it needs true labels to learn from
    priors: bool = False  # whether it has a prior λ to choose

    def policy(
        self, metric: Metric, k: int | None, prior: float, train: Batch | None = None
    ) -> Policy:
        """The policy for a metric and a budget, fitted to the training sample if it needs one."""
        if self.kind != TRAINED:
            return self.make(metric, k, prior)  # type: ignore[no-any-return]
        if train is None:
            raise ValueError(
                f"train of compare must be a pair (eta, y) for {self.name!r}, which is fitted "
                "beforehand, got None"
            )
        return self.make(metric, k, prior).fit(train)  # type: ignore[no-any-return]


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
    """A policy that counts labels, and the same policy counting probabilities.

    ``make`` is a function of (metric, k, feedback, prior), such as the class of the policy.
    """
    # (η̂) stands before the name of a variant: "Greedy(η̂), plug-in".
    first, comma, variant = title.partition(",")
    return (
        PolicyEntry(
            name,
            title,
            about,
            ONLINE,
            lambda metric, k, prior: make(metric, k, "labels", prior, **options),
            labels=True,
            priors=True,
        ),
        PolicyEntry(
            f"{name}_eta",
            f"{first}({HAT_ETA}){comma}{variant}",
            f"the same as {name}, counting probabilities in place of labels",
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
        "baseline", _HALF, "the threshold 0.5, or the top k with a budget", STILL, _half_or_top
    ),
    PolicyEntry("top_k_or_half", _HALF, "another name of baseline", STILL, _half_or_top),
    PolicyEntry(
        "auto",
        "Auto",
        "calibrates probabilities and corrects counts by the labels that come",
        ONLINE,
        lambda metric, k, prior: Auto(metric, k),
    ),
    *_both("omma", "OMMA", "whatever raises the metric most, given the counts so far", OMMA),
    *_both(
        "greedy", "Greedy", "whatever raises the expected metric most, this row included", Greedy
    ),
    *_both(
        "greedy_plug_in",
        "Greedy, plug-in",
        "the metric at expected counts, as in the code of the paper",
        Greedy,
        expectation="plug_in",
    ),
    *_both("ofo", "OFO", "for F1 only: the threshold is half of the F1 so far", _ofo),
    *_both("online_fw", "Online-FW", "Frank-Wolfe, rerun on all rows so far", OnlineFrankWolfe),
    *_both(
        "online_fw_random",
        "Online-FW, random",
        "Frank-Wolfe from random starts, as in the code of the paper",
        OnlineFrankWolfe,
        start="random",
    ),
    PolicyEntry(
        "offline_fw",
        "Offline-FW",
        "Frank-Wolfe on a training sample, the better of two starts",
        TRAINED,
        lambda metric, k, prior: FrankWolfe(metric, k, start="best"),
        labels=True,
    ),
    PolicyEntry(
        "offline_fw_top",
        "Offline-FW, top",
        "Frank-Wolfe on a training sample, from the top k or 0.5",
        TRAINED,
        lambda metric, k, prior: FrankWolfe(metric, k, start="top"),
        labels=True,
    ),
    PolicyEntry(
        "offline_fw_random",
        "Offline-FW, random",
        "Frank-Wolfe on a training sample, from a random start",
        TRAINED,
        lambda metric, k, prior: FrankWolfe(metric, k, start="random"),
        labels=True,
    ),
    PolicyEntry(
        "tuned",
        "Tuned thresholds",
        "the best thresholds of a training sample",
        TRAINED,
        _tuned,
        labels=True,
    ),
)
REGISTRY: dict[str, PolicyEntry] = {entry.name: entry for entry in _ENTRIES}
NAMES: tuple[str, ...] = tuple(REGISTRY)

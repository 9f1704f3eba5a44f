"""The roster: every policy that people call by a name, once.

Tables, the command line, suites of the study and comparisons all read it here. To add a policy,
write its file and one line of ``ROSTER``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from omma._types import Feedback
from omma.metrics import Metric, metric as find_metric
from omma.policies.auto import Auto
from omma.policies.base import MetricPolicy, Policy, UnsupportedMetricError
from omma.policies.fixed import Threshold, TopK
from omma.policies.frank_wolfe import FrankWolfe
from omma.policies.greedy import Greedy
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.policies.online_frank_wolfe import OnlineFrankWolfe
from omma.policies.tuned import TunedThresholds
from omma.rows.batch import Batch

HAT_ETA = "η\u0302"
ETA = "_eta"  # ends the name of a variant that counts probabilities in place of labels
ONLINE, TRAINED, STILL = "online", "trained", "still"
Make = Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """A policy by its name.

    ``kind`` is "online" where it learns as it runs, "trained" where it does so from a sample
    beforehand, and "still" where it never does. ``make`` is a function of (metric, k, prior); of a
    trained policy it makes what has a ``fit``.
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
        made = self.make(metric, k, prior)
        return made.fit(train) if self.kind == TRAINED else made  # type: ignore[no-any-return]


def _still(metric: Metric, k: int | None, prior: float) -> Policy:
    return Threshold(0.5) if k is None else TopK(k)


def _auto(metric: Metric, k: int | None, prior: float) -> Policy:
    return Auto(metric, k)


def _maximizer(
    kind: type[MetricPolicy],
    feedback: Feedback,
    metric: Metric,
    k: int | None,
    prior: float,
    **options: Any,
) -> Policy:
    return kind(metric, k, feedback, prior, **options)


_OFO: dict[str, Literal["macro", "micro"]] = {
    "macro_f1": "macro",
    "f1": "macro",
    "micro_f1": "micro",
}


def _ofo(
    feedback: Literal["labels", "estimates"], metric: Metric, k: int | None, prior: float
) -> Policy:
    for name, average in _OFO.items():
        if k is None and metric == find_metric(name):
            return OFO(average, feedback, prior)
    raise UnsupportedMetricError("OFO is for f1, macro_f1 and micro_f1 without a budget")


def _offline(start: str, metric: Metric, k: int | None, prior: float) -> FrankWolfe:
    return FrankWolfe(metric, k, start=start)


def _tuned(metric: Metric, k: int | None, prior: float) -> TunedThresholds:
    if k is not None:
        raise UnsupportedMetricError("TunedThresholds is for metrics without a budget")
    return TunedThresholds(metric)


def _both(name: str, title: str, about: str, of: Any, **options: Any) -> tuple[Entry, Entry]:
    """A policy from labels, and the same from probabilities in their place.

    ``of`` is its class, or what makes it.
    """
    make = partial(_maximizer, of, **options) if isinstance(of, type) else of
    soft = f"the same as {name}, η in place of labels"
    first, comma, how = title.partition(",")
    hat = f"{first}({HAT_ETA}){comma}{how}"
    return (
        Entry(name, title, about, ONLINE, partial(make, "labels"), priors=True),
        Entry(name + ETA, hat, soft, ONLINE, partial(make, "estimates"), priors=True),
    )


_HALF = f"Top-k / {HAT_ETA} ≥ 0.5"
_LISTED = (
    Entry("baseline", _HALF, "the threshold 0.5; with a budget, the top k", STILL, _still),
    Entry("top_k_or_half", _HALF, "another name of baseline", STILL, _still),
    Entry("auto", "Auto", "calibrates and learns from whatever labels come", ONLINE, _auto),
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
    Entry(
        "offline_fw",
        "Offline-FW",
        "Frank-Wolfe on a sample beforehand, the better of two starts",
        TRAINED,
        partial(_offline, "best"),
    ),
    Entry(
        "offline_fw_top",
        "Offline-FW, top",
        "the same from the top k, or from 0.5",
        TRAINED,
        partial(_offline, "top"),
    ),
    Entry(
        "offline_fw_random",
        "Offline-FW, random",
        "the same from a random start, as the code of the paper",
        TRAINED,
        partial(_offline, "random"),
    ),
    Entry(
        "tuned", "Tuned thresholds", "the best thresholds of a sample beforehand", TRAINED, _tuned
    ),
)
ROSTER: dict[str, Entry] = {one.name: one for one in _LISTED}
NAMES: tuple[str, ...] = tuple(ROSTER)

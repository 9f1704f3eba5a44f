"""The policies that suites name: titles as in the paper's tables, and how each is made."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import omma

ETA = "_eta"  # ends the name of a variant that counts estimates in place of labels


@dataclass(frozen=True)
class NamedPolicy:
    """A policy by name.

    ``make`` is a function of (metric, k, λ). If the policy is ``trained``, that function returns an
    object with a ``fit`` for the training part. If it has a ``prior``, λ has to be chosen.
    """

    title: str
    make: Callable[..., Any]
    prior: bool = False
    trained: bool = False


def _with_feedback(name: str, title: str, make: Callable[..., Any]) -> dict[str, NamedPolicy]:
    """A policy that counts labels, and the same with estimates in their place."""
    # "(η̂)" stands before the name of a variant: "Greedy(η̂), plug-in".
    first, comma, variant = title.partition(",")
    return {
        name: NamedPolicy(title, partial(make, "labels"), prior=True),
        name + ETA: NamedPolicy(
            f"{first}(η̂){comma}{variant}", partial(make, "estimates"), prior=True
        ),
    }


@dataclass(frozen=True, repr=False)
class PaperFrankWolfe(omma.OnlineFrankWolfe):
    """Online-FW as the authors' code runs it: random starts, 25 iterations, floored intervals.

    The paper prints intervals of 10·1.1^i rows; the code multiplies the last interval by 1.1 and
    drops the fraction, so that it refits more often: 28 times in 1,000 rows in place of 25.
    """

    start: str = "random"
    max_iter: int = 25

    def run_again(self, state: Any, sample: omma.Batch, rows: Any) -> None:
        """Replace the mixture, and set when that is due next."""
        due = state.due
        super().run_again(state, sample, rows)
        interval = self.first
        for _ in range(state.runs):
            interval = math.floor(interval * self.growth)
        state.due = due + interval


def _baseline(metric: omma.Metric, k: int | None, prior: float) -> omma.Policy:
    # Of classes, the most probable one.
    top = 1 if metric.multiclass else k
    return omma.Threshold(0.5) if top is None else omma.TopK(top)


def _ofo(feedback: Any, metric: omma.Metric, k: int | None, prior: float) -> omma.Policy:
    # F1 of one label is a macro average of one.
    average: Any = {"macro_f1": "macro", "f1": "macro", "micro_f1": "micro"}.get(metric.name)
    if k is not None or average is None:
        raise ValueError("OFO is for f1, macro_f1 and micro_f1 without a budget")
    return omma.OFO(average, feedback, prior)


def _tuned(metric: omma.Metric, k: int | None, prior: float) -> omma.TunedThresholds:
    if k is not None:
        raise ValueError("TunedThresholds is for metrics without a budget")
    return omma.TunedThresholds(metric)


def _offline(start: Any) -> Callable[..., omma.FrankWolfe]:
    return lambda metric, k, prior: omma.FrankWolfe(metric, k, start=start)


# In the order of the rows of the paper's tables.
POLICIES: dict[str, NamedPolicy] = {
    "baseline": NamedPolicy("Top-k / η̂ ≥ 0.5", _baseline),
    **_with_feedback("ofo", "OFO", _ofo),
    **_with_feedback("greedy", "Greedy", lambda f, m, k, p: omma.Greedy(m, k, f, p)),
    # Decides by the metric at expected counts, as the code behind the paper's tables.
    **_with_feedback(
        "greedy_plug_in",
        "Greedy, plug-in",
        lambda f, m, k, p: omma.Greedy(m, k, f, p, expectation="plug_in"),
    ),
    **_with_feedback(
        "online_fw", "Online-FW", lambda f, m, k, p: omma.OnlineFrankWolfe(m, k, f, p)
    ),
    # Starts at random, as the code behind the paper's tables.
    **_with_feedback(
        "online_fw_random",
        "Online-FW, random",
        lambda f, m, k, p: omma.OnlineFrankWolfe(m, k, f, p, start="random"),
    ),
    **_with_feedback(
        "online_fw_paper",
        "Online-FW, authors' schedule",
        lambda f, m, k, p: PaperFrankWolfe(m, k, f, p),
    ),
    **_with_feedback("omma", "OMMA", lambda f, m, k, p: omma.OMMA(m, k, f, p)),
    "auto": NamedPolicy("Auto", lambda metric, k, prior: omma.Auto(metric, k)),
    "offline_fw": NamedPolicy("Offline-FW", _offline("best"), trained=True),
    "offline_fw_top": NamedPolicy("Offline-FW, top", _offline("top"), trained=True),
    "offline_fw_random": NamedPolicy("Offline-FW, random", _offline("random"), trained=True),
    "tuned": NamedPolicy("Tuned thresholds", _tuned, trained=True),
}
# Ours that are nearer to the code behind the paper's tables, each with the policy it replaces.
VARIANTS = {
    "greedy_plug_in": "greedy",
    "greedy_plug_in_eta": "greedy_eta",
    "online_fw_random": "online_fw",
    "online_fw_random_eta": "online_fw_eta",
    "online_fw_paper": "online_fw_random",
    "online_fw_paper_eta": "online_fw_random_eta",
    "offline_fw_random": "offline_fw",
}


def name_of(policy: str, feedback: str | None) -> str:
    """The name of a policy from the two fields of a record.

    >>> name_of("omma", "estimates"), name_of("offline_fw", None)
    ('omma_eta', 'offline_fw')
    """
    return policy + ETA if feedback == "estimates" else policy


def supports(name: str, metric: str, k: int | None) -> bool:
    """Whether a policy can be run for a metric; tables show × where it cannot.

    >>> supports("ofo", "macro_f1", None), supports("ofo", "macro_f1", 3)
    (True, False)
    """
    # Constructors know best what they are for.
    try:
        POLICIES[name].make(omma.metric(metric), k, 0.0)
    except ValueError:
        return False
    return True

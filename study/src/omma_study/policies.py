"""The policies that suites name: those of the library's registry, and one of the authors' code."""

import math
from dataclasses import dataclass, replace
from typing import Any

import omma
from omma.policies import REGISTRY

ETA = "_eta"  # ends the name of a variant that counts estimates in place of labels
TRAINED = "trained"  # the kind of an entry whose policy is fitted to the training part


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


def _authors_schedule(name: str, feedback: Any) -> Any:
    """The entry of ``PaperFrankWolfe``: as that of random starts, by another name."""
    entry = REGISTRY[name]
    return replace(
        entry,
        name=name.replace("random", "paper"),
        title=entry.title.replace("random", "authors' schedule"),
        make=lambda metric, k, prior: PaperFrankWolfe(metric, k, feedback, prior),
    )


AUTHORS = (
    _authors_schedule("online_fw_random", "labels"),
    _authors_schedule("online_fw_random_eta", "estimates"),
)
# In the order of the rows of the paper's tables.
NAMES = (
    "baseline", "ofo", "ofo_eta", "greedy", "greedy_eta",
    # Decides by the metric at expected counts, as the code behind the paper's tables.
    "greedy_plug_in", "greedy_plug_in_eta",
    "online_fw", "online_fw_eta",
    # Starts at random, as the code behind the paper's tables.
    "online_fw_random", "online_fw_random_eta", "online_fw_paper", "online_fw_paper_eta",
    "omma", "omma_eta", "auto", "offline_fw", "offline_fw_top", "offline_fw_random", "tuned",
)  # fmt: skip
_ENTRIES = REGISTRY | {entry.name: entry for entry in AUTHORS}
POLICIES = {name: _ENTRIES[name] for name in NAMES}
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

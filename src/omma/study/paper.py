"""The figures that the paper reports, to stand beside one's own."""

import csv
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple


class Place(NamedTuple):
    """Where in the paper a figure stands."""

    protocol: str
    dataset: str
    policy: str
    metric: str
    k: int | None


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: a fraction and seconds where measured, each with its deviation."""

    value: float
    std: float
    seconds: float | None
    n: int
    m: int
    seconds_std: float | None = None


@cache
def figures() -> dict[Place, Figure]:
    """All figures of its tables, by where they stand.

    >>> len(figures())
    682
    >>> figures()[Place("fixed", "News20", "omma", "macro_f1", 3)].value
    0.7284
    """
    file = resources.files("omma.study") / "paper.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    return dict(map(_figure, csv.DictReader(lines)))


def _figure(row: dict[str, str]) -> tuple[Place, Figure]:
    place = Place(row["cpe"], row["dataset"], row["method"], row["metric"], int(row["k"]) or None)
    figure = Figure(
        value=round(float(row["value"]) / 100, 6),
        std=round(float(row["std"]) / 100, 6),
        seconds=float(row["seconds"]) if row["seconds"] else None,
        n=int(row["n"]),
        m=int(row["m"]),
        seconds_std=float(row["seconds_std"]) if row["seconds_std"] else None,
    )
    return place, figure


# Sets of the paper that cannot be had here, by those that stand in for them.
STAND_INS = {
    "youtube_deepwalk": "YouTube",
    "eurlex4k": "Eurlex-LexGlue",
    "rcv1_subsets": "RCV1X",
    "delicious": "AmazonCat",
    "kddcup99": "Ledgar-LexGlue",
    "covtype": "Caltech-256",
}
# Ours that decide as the code behind the paper's tables, by the paper's names.
VARIANTS = {
    "greedy_plug_in": "greedy",
    "greedy_plug_in_eta": "greedy_eta",
    "online_fw_random": "online_fw",
    "online_fw_random_eta": "online_fw_eta",
    "offline_fw_random": "offline_fw",
}
KNOWN_AS = {"baseline": "top_k_or_half", **VARIANTS}


def decides_as(policy: str, policies: Collection[str]) -> bool:
    """Whether, of those that were run, it is the policy that the paper's figures are of.

    >>> decides_as("greedy", ["greedy"]), decides_as("greedy", ["greedy", "greedy_plug_in"])
    (True, False)
    """
    return not any(VARIANTS.get(other) == policy for other in policies)


def find(protocol: str, dataset: str, policy: str, metric: str, k: int | None) -> Figure | None:
    """The paper's figure for a cell, under the paper's name of the dataset."""
    return figures().get(Place(protocol, dataset, KNOWN_AS.get(policy, policy), metric, k))

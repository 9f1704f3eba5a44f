"""The figures that the paper reports, to stand beside one's own."""

from __future__ import annotations

import csv
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
    """A figure of the paper: a fraction, its standard deviation, and seconds where measured."""

    value: float
    std: float
    seconds: float | None
    n: int
    m: int


@cache
def figures() -> dict[Place, Figure]:
    """All figures of its tables, by where they stand.

    Examples
    --------
    >>> from omma.study.paper import Place, figures
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
    )
    return place, figure


def find(protocol: str, dataset: str, policy: str, metric: str, k: int | None) -> Figure | None:
    """The paper's figure for a cell, under the paper's name of the dataset."""
    known_as = "top_k_or_half" if policy == "baseline" else policy
    return figures().get(Place(protocol, dataset, known_as, metric, k))

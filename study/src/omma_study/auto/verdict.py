"""What records of the grid show: cells, goals, and every cell that was lost."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from omma.metrics.target import Target
from omma.tables import Grid, plain, texts
from omma_study.auto.cells import AS_IS, DISTORTIONS, TREES, USUAL_PRIOR
from omma_study.records import Record

# Constants of Auto were chosen on the first of these; the others were looked at afterwards.
DESIGN = ("yeast", "youtube_deepwalk", "rcv1_subsets", "news20", "covtype")
SLACK = 0.005  # half a point: less is not called a loss
OF_TREES = "boosted trees as they come"
LABELS, ESTIMATES = f"omma {plain(USUAL_PRIOR)}", f"omma_eta {plain(USUAL_PRIOR)}"


@dataclass(frozen=True)
class Cell:
    """A set, a distortion and a metric: means over sequences."""

    dataset: str
    distortion: str
    metric: str
    sequences: int
    values: dict[str, float]  # by name of who decides; a λ follows it where it was chosen

    @property
    def auto(self) -> float:
        """What the one setting is worth."""
        return self.values["auto"]

    @property
    def better(self) -> float:
        """The better of labels and estimates with the usual λ: nobody knows beforehand which."""
        return max(self.values[LABELS], self.values[ESTIMATES])

    @property
    def hindsight(self) -> float:
        """The best λ and feedback, chosen with hindsight."""
        return max(value for name, value in self.values.items() if name.startswith("omma"))

    @property
    def gain(self) -> float:
        """What ``Auto`` adds to the better of labels and estimates."""
        return self.auto - self.better

    @property
    def lost(self) -> bool:
        """Whether it is more than half a point below."""
        return self.gain < -SLACK

    @property
    def design(self) -> bool:
        """Whether constants were chosen on this set."""
        return self.dataset in DESIGN


def cells_of(records: Iterable[Record]) -> list[Cell]:
    """Records put together; of a set that was run quickly and in full, the latter counts."""
    runs: dict[tuple[str, str, str], dict[int, list[dict[str, float]]]] = {}
    for record in records:
        spec, result = record["spec"], record["result"]
        if record["kind"] != "auto" or result is None:
            continue
        trees = spec["estimator"]["name"] == TREES
        key = (
            spec["dataset"],
            OF_TREES if trees else spec["distortion"],
            str(Target(spec["metric"], spec["k"])),
        )
        by_priors = runs.setdefault(key, defaultdict(list))
        by_priors[len(spec["priors"])].append(result["values"])
    found = [_cell(key, by_priors[max(by_priors)]) for key, by_priors in runs.items()]
    order = (*DISTORTIONS, OF_TREES)
    return sorted(found, key=lambda one: order.index(one.distortion))


def _cell(key: tuple[str, str, str], runs: Sequence[dict[str, float]]) -> Cell:
    means = {name: float(np.mean([one[name] for one in runs])) for name in runs[0]}
    return Cell(*key, len(runs), means)


GAIN = attrgetter("gain")


@dataclass(frozen=True)
class Goal:
    """What was to be reached, in words, and what was."""

    words: str
    wanted: float
    found: float
    unit: str = "points"

    @property
    def reached(self) -> bool:
        """Whether it was, to the digits that are shown."""
        return round(self.found, 2) >= self.wanted


def goals(cells: Sequence[Cell]) -> list[Goal]:
    """All goals for ``Auto``, in the order in which they were set."""
    plain_cells = [one for one in cells if one.distortion == AS_IS]
    found = [
        Goal(
            "cells at most half a point below the better of OMMA and OMMA(η̂)",
            95.0,
            100 * float(np.mean([not one.lost for one in cells])),
            "%",
        ),
        Goal("mean gain over the better of the two", 2.5, _mean(cells, GAIN)),
    ]
    if plain_cells:
        words = "the same where probabilities are as they are"
        found.append(Goal(words, 0.5, _mean(plain_cells, GAIN)))
    words = "mean difference to the best λ and feedback in hindsight"
    return [*found, Goal(words, 0.0, _mean(cells, lambda one: one.auto - one.hindsight))]


def _mean(cells: Sequence[Cell], number: Callable[[Cell], float]) -> float:
    return 100 * float(np.mean([number(one) for one in cells]))


def tables(records: Iterable[Record]) -> list[Grid]:
    """Goals, means by distortion, by metric and by set, and the lost cells."""
    cells = cells_of(records)
    if not cells:
        return []
    parts: dict[str, list[Cell]] = {"all sets": cells}
    for title, wanted in (("sets of the design", True), ("other sets", False)):
        mine = [one for one in cells if one.design is wanted]
        if mine and len(mine) < len(cells):
            parts[title] = mine
    found = [_goals(f"Goals, {title}", mine) for title, mine in parts.items()]
    found += [
        _means("distortion", cells, attrgetter("distortion")),
        _means("metric", cells, attrgetter("metric")),
        _means("set", cells, attrgetter("dataset")),
    ]
    lost = sorted((one for one in cells if one.lost), key=lambda one: one.gain)
    return [*found, _lost(lost)] if lost else found


def _goals(title: str, cells: Sequence[Cell]) -> Grid:
    return texts(
        f"{title} ({len(cells)} cells)",
        goals(cells),
        {"goal": lambda one: one.words},
        {
            "to reach": lambda one: f"{one.wanted:g} {one.unit}",
            "reached": lambda one: f"{one.found:.2f} {one.unit}",
            "": lambda one: "yes" if one.reached else "no",
        },
    )


COLUMNS: dict[str, Callable[[Cell], float]] = {
    "0.5 / top-k": lambda one: one.values["baseline"],
    "OMMA": lambda one: one.values[LABELS],
    "OMMA(η̂)": lambda one: one.values[ESTIMATES],
    "better of both": lambda one: one.better,
    "best λ, either": lambda one: one.hindsight,
    "both": lambda one: one.values["both"],
    "calibrated": lambda one: one.values["calibrated"],
    "Auto": lambda one: one.auto,
}


def _means(head: str, cells: Sequence[Cell], group: Callable[[Cell], str]) -> Grid:
    """A row for each group, and one for all."""
    rows: dict[str, list[Cell]] = {}
    for one in cells:
        rows.setdefault(group(one), []).append(one)
    rows["all"] = list(cells)
    numbers: dict[str, Callable[[Any], str]] = {"cells": lambda row: str(len(row[1]))}
    numbers |= {
        name: lambda row, say=say: f"{_mean(row[1], say):.2f}"  # type: ignore[misc]
        for name, say in COLUMNS.items()
    }
    numbers["gain"] = lambda row: f"{_mean(row[1], GAIN):+.2f}"
    numbers["lost"] = lambda row: str(sum(one.lost for one in row[1]))
    return texts(f"Means by {head}, in %", rows.items(), {head: lambda row: row[0]}, numbers)


def _lost(cells: Sequence[Cell]) -> Grid:
    return texts(
        f"Lost cells, in % ({len(cells)})",
        cells,
        {
            "set": attrgetter("dataset"),
            "distortion": attrgetter("distortion"),
            "metric": attrgetter("metric"),
        },
        {
            "OMMA": lambda one: f"{100 * one.values[LABELS]:.2f}",
            "OMMA(η̂)": lambda one: f"{100 * one.values[ESTIMATES]:.2f}",
            "Auto": lambda one: f"{100 * one.auto:.2f}",
            "gain": lambda one: f"{100 * one.gain:+.2f}",
        },
    )

"""Both families of the paper's figures: running values, and what each λ is worth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from omma.comparison.report import by_prior, running
from omma.plots.families import plot_family
from omma.study.printed.model import Column, by_suite
from omma.study.records import Record
from omma.study.sections import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Policies of the paper's figures, and Auto; each as it decides best.
SHOWN = ("baseline", "ofo", "greedy", "online_fw", "online_fw_eta", "omma", "omma_eta", "auto")
KINDS = {"running": running, "priors": by_prior}
CAPTIONS = {
    "running": "The metric so far, against the number of rows",
    "priors": "The final value with each prior λ",
}


def families(records: Iterable[Record]) -> dict[str, Figure]:
    """A figure for each suite and family: a row of panels for each dataset."""
    found = {}
    for suite, mine in by_suite(records).items():
        drawn = {
            "running": [one for one in mine if _developed(one)],
            "priors": mine if any(one.comparison.priors for one in mine) else [],
        }
        for kind, some in drawn.items():
            if some:
                found[f"{suite}: {CAPTIONS[kind]}"] = _family(some, kind)
    return found


def _developed(section: Section) -> bool:
    """Whether records tell more than the last value; packed ones may not."""
    cells = section.comparison.cells.values()
    return any(len(cell.rows) > 1 for cell in cells if cell.by_prior)


def _family(found: list[Section], kind: str) -> Figure:
    rows = {
        f"{one.dataset} (m = {one.m:,}, n = {one.n:,})": {
            Column.of(*one.targets[name]).full: bands
            for name, bands in one.comparison.panels(KINDS[kind], SHOWN).items()
        }
        for one in found
    }
    priors = sorted({prior for one in found for prior in one.comparison.priors})
    return plot_family(rows, priors if kind == "priors" else None)

"""A simulation: one statement of the paper, the grid of runs that checks it, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import pandas as pd

from omma_study.records import Record
from omma_study.runs import Job
from omma_study.tables import Table

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Simulation:
    """Runs of one kind.

    Attributes
    ----------
    name : str
        Such as ``theory-regret``.
    title : str
        What it shows, in a line.
    grid : sequence of dict
        What tells its runs apart.
    simulate : function
        The result of a run, given its specification.
    rows, sequences : pair
        In full, and for a first look; a run of the grid may have rows of its own.
    seed : int
    tables, figures : function
        What records show.
    label : str
        How tables name a run, with fields of its specification in braces.
    """

    name: str
    title: str
    grid: Sequence[Spec] = field(repr=False)
    simulate: Callable[[Spec], Mapping[str, Any]] = field(repr=False)
    rows: tuple[Any, Any]
    sequences: tuple[int, int]
    seed: int
    tables: Callable[[list[Record]], list[Table]] = field(repr=False)
    figures: Callable[[list[Record]], dict[str, Any]] = field(repr=False)
    label: str = "{policy}"

    @property
    def runs(self) -> list[Job]:
        """All of its runs at full length."""
        return self.jobs(False)

    def jobs(self, quick: bool) -> list[Job]:
        """Its runs, at full length or for a first look."""
        jobs = []
        for point in self.grid:
            rows = point.get("rows", self.rows[0])
            short = {"rows": min(rows, self.rows[1]) if quick else rows,
                     "sequences": self.sequences[quick], "seed": self.seed}  # fmt: skip
            spec = {**point, **short}
            label = self.label.format(**point)
            jobs.append(Job(self.name, spec, label, partial(self._run, spec), kind="theory"))
        return jobs

    def _run(self, spec: Spec) -> dict[str, Any]:
        start = perf_counter()
        result = self.simulate(spec)
        return {"result": result, "seconds": {"run": perf_counter() - start}}


def table(
    title: str, row: Callable[[Record], Mapping[str, str]], words: int = 2
) -> Callable[[list[Record]], list[Table]]:
    """What makes a table of records, a row for each."""
    return lambda records: [Table(title, pd.DataFrame([row(record) for record in records]), words)]


def last(record: Record, name: str, form: str, times: float = 1) -> str:
    """The last number of a curve.

    >>> last({"result": {"regret": [3.0, 1.5]}}, "regret", ".1f", times=2)
    '3.0'
    """
    return format(times * record["result"][name][-1], form)


def power(record: Record) -> str:
    """The power of n that was fitted."""
    rate = record["result"]["rate"]
    return "–" if rate is None else f"{rate[0]:.2f}"


def power_and_interval(record: Record) -> dict[str, str]:
    """The power of n, and where it lies with 95 %."""
    rate = record["result"]["rate"]
    interval = "–" if rate is None else f"{rate[1]:.2f} to {rate[2]:.2f}"
    return {"power": power(record), "95% interval": interval}

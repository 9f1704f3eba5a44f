"""A suite: one statement of the paper, the runs that check it, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omma.study.jobs import Job, Outcome
from omma.study.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

Jobs = Callable[[bool], list[Job]]


@dataclass(frozen=True)
class Suite:
    """Runs of one kind.

    Attributes
    ----------
    name : str
        Such as ``theory-regret``.
    title : str
        What it shows, in a line.
    """

    name: str
    title: str
    jobs: Jobs = field(repr=False)
    tables: Callable[[list[Record]], list[Table]] = field(repr=False)
    figures: Callable[[list[Record]], dict[str, Figure]] = field(repr=False)

    @property
    def runs(self) -> list[Job]:
        """All of its runs at full length."""
        return self.jobs(False)


def job(
    suite: str, spec: Mapping[str, Any], label: str, simulate: Callable[[], Mapping[str, Any]]
) -> Job:
    """A run of a suite, timed."""

    def run() -> Outcome:
        start = perf_counter()
        result = simulate()
        return Outcome(result, {"run": perf_counter() - start})

    return Job(suite, spec, label, run, kind="theory")

"""A suite: one statement of the paper, the grid of runs that checks it, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omma.tables import Grid, texts
from omma_study.bench import Job, Outcome
from omma_study.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Spec = Mapping[str, Any]
Column = Callable[[Record], str]


@dataclass(frozen=True)
class Suite:
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
    tables: Callable[[list[Record]], list[Grid]] = field(repr=False)
    figures: Callable[[list[Record]], dict[str, Figure]] = field(repr=False)
    label: str = "{policy}"

    @property
    def runs(self) -> list[Job]:
        """All of its runs at full length."""
        return self.jobs(False)

    def jobs(self, quick: bool) -> list[Job]:
        """Its runs, at full length or for a first look."""
        return [self._job(one, quick) for one in self.grid]

    def _job(self, one: Spec, quick: bool) -> Job:
        rows = one.get("rows", self.rows[0])
        spec = {
            **one,
            "rows": min(rows, self.rows[1]) if quick else rows,
            "sequences": self.sequences[quick],
            "seed": self.seed,
        }

        def run() -> Outcome:
            start = perf_counter()
            result = self.simulate(spec)
            return Outcome(result, {"run": perf_counter() - start})

        return Job(self.name, spec, self.label.format(**one), run, kind="theory")


def table(
    title: str, words: Mapping[str, Column], numbers: Mapping[str, Column]
) -> Callable[[list[Record]], list[Grid]]:
    """What makes a table of records, a row for each."""
    return lambda records: [texts(title, records, words, numbers)]


def titled(cases: Mapping[str, Any]) -> Column:
    """How tables name the problem of a run."""
    return lambda record: str(cases[record["spec"]["dataset"]].title)


def label(record: Record) -> str:
    """How tables name a run."""
    return str(record["label"])


def last(name: str, form: str, times: float = 1) -> Column:
    """The last number of a curve, as a column of a table.

    >>> last("regret", ".1f", times=2)({"result": {"regret": [3.0, 1.5]}})
    '3.0'
    """
    return lambda record: format(times * record["result"][name][-1], form)


def of_rate(form: str) -> Column:
    """The power of n that was fitted, and where that lies with 95%: {0}, and {1} to {2}."""

    def cell(record: Record) -> str:
        rate = record["result"]["rate"]
        return "–" if rate is None else form.format(*rate)

    return cell


power, interval = of_rate("{0:.2f}"), of_rate("{1:.2f} to {2:.2f}")
RATE: dict[str, Column] = {"power": power, "95% interval": interval}


def with_power(name: str, record: Record, of: str = "n") -> str:
    """A curve's name in a legend, and the power of n that was fitted to it."""
    return name if record["result"]["rate"] is None else f"{name}: {of}^{power(record)}"

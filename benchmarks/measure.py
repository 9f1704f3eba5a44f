"""What benchmarks share: timing on a noisy machine, figures with targets, files of results."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from omma.tables import text_grid, to_markdown

Row = dict[str, Any]


# Timing


def seconds_of(call: Callable[[], Any]) -> float:
    """Seconds of one call, by the clock of this thread.

    All that is timed here runs in one thread. A wall clock would also count the time in which other
    programs use the core, most of all in long calls.
    """
    started = time.thread_time()
    call()
    return time.thread_time() - started


def race(
    *calls: Callable[[], Any], rounds: int = 5, at_least: float = 0.5, at_most: int = 200
) -> list[float]:
    """The best seconds of each call; they take turns, so that all meet the same noise.

    At least ``rounds`` rounds are run, more until ``at_least`` seconds have passed.
    """
    best = [np.inf] * len(calls)
    started = time.perf_counter()
    done = 0
    while done < rounds or (done < at_most and time.perf_counter() - started < at_least):
        best = [min(least, seconds_of(call)) for least, call in zip(best, calls, strict=True)]
        done += 1
    return best


def processor_seconds(process: int) -> float:
    """Processor seconds of a process so far, with those of its children that have ended."""
    # The name of a program may hold blanks and brackets; numbers begin after its last bracket.
    parts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, parts[11:15])) / os.sysconf("SC_CLK_TCK")


def output_of(code: str, *arguments: Any, **environment: str) -> str:
    """What some code prints in a process of its own; its errors are shown."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    variables = {**os.environ, "OMMA_QUIET": "1", **environment}
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Exponent of the growth of time: the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


# Figures


@dataclass(frozen=True)
class Target:
    """A figure that should be at least, or at most, some limit."""

    value: float
    limit: float
    at_most: bool = False
    unit: str = ""  # of a figure that says by itself what it should be, such as 100 %

    @property
    def met(self) -> bool:
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def __str__(self) -> str:
        mark = "✓" if self.met else "✗"
        if self.unit:
            return f"{shown(self.value)}{self.unit} {mark}"
        return f"{shown(self.value)} {'≤' if self.at_most else '≥'}{shown(self.limit)} {mark}"


def at_least(value: float, limit: float | None) -> Any:
    """A figure with a lower limit, if it has one."""
    return value if limit is None else Target(float(value), limit)


def at_most(value: float, limit: float | None) -> Any:
    """A figure with an upper limit, if it has one."""
    return value if limit is None else Target(float(value), limit, at_most=True)


def all_of(alike: Any) -> Target:
    """The share of answers that are alike, in percent; the target is all of them."""
    return Target(100.0 * float(np.mean(alike)), 100.0, unit="%")


def shown(value: Any) -> str:
    """A number with about three digits; anything else as it is."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass
class Table:
    """Rows of figures under a title."""

    title: str
    note: str
    rows: list[Row] = field(default_factory=list)

    @property
    def targets(self) -> list[Target]:
        """Every figure that has a limit."""
        return [cell for row in self.rows for cell in row.values() if isinstance(cell, Target)]

    def show(self, console: Console, *, markdown: bool = False) -> None:
        """Print the table, its title above and its note below."""
        if not self.rows:
            console.print(f"{self.title}: nothing was measured\n")
            return
        first, *others = self.rows[0]
        lines = [list(map(shown, row.values())) for row in self.rows]
        grid = text_grid(first, others, lines)
        if markdown:
            options: dict[str, Any] = {"soft_wrap": True, "highlight": False, "markup": False}
            console.print(f"### {self.title}\n\n{to_markdown(grid)}\n\n{self.note}\n", **options)
        else:
            console.rule(f"[bold]{self.title}", align="left")
            console.print(grid)
            console.print(f"  {self.note}\n", style="dim", highlight=False)

    def as_json(self) -> Row:
        """The table for a file."""
        rows = [{name: _plain(cell) for name, cell in row.items()} for row in self.rows]
        return {"title": self.title, "note": self.note, "rows": rows}


def tabulated(title: str, note: str) -> Callable[[Callable[..., Iterator[Row]]], Any]:
    """Make a case of a function that yields the rows of one table."""

    def decorate(rows_of: Callable[..., Iterator[Row]]) -> Callable[..., Iterator[Table]]:
        @wraps(rows_of)  # options of the command line are the parameters of the function
        def case(*args: Any, **options: Any) -> Iterator[Table]:
            yield Table(title, note, list(rows_of(*args, **options)))

        return case

    return decorate


def _plain(cell: Any) -> Any:
    if isinstance(cell, Target):
        kind = "at_most" if cell.at_most else "at_least"
        return {"value": cell.value, kind: cell.limit, "met": cell.met}
    return cell


# Files


def add_line(path: str | None, record: Any) -> None:
    """Add a record to a file of them, where one is asked for."""
    if path is not None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

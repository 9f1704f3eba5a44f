"""How far a long work is: a bar that names what runs, or a line a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


@contextmanager
def steps(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar that names what runs; where there is no terminal, a line for each step."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    if not console.is_terminal:
        yield lambda step: click.echo(step, err=True)
        return
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=total)
        started = False

        def report(step: str) -> None:
            nonlocal started
            bar.update(task, description=step, advance=int(started))
            started = True

        yield report
        bar.advance(task)


class Minutely:
    """Called with how much is done of how much, it says so at most once a minute.

    >>> now = 0.0
    >>> log = Minutely(lambda line: lines.append(line), clock=lambda: now)
    >>> lines = []
    >>> for now, done in ((30.0, 2), (60.0, 5), (90.0, 8), (120.0, 10)):
    ...     log(done, 20)
    >>> lines
    ['5 of 20 runs, 1 min, about 3 min left', '10 of 20 runs, 2 min, about 2 min left']
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.say = say
        self.clock = clock
        self._start = self._said = clock()

    def __call__(self, done: int, total: int) -> None:
        now = self.clock()
        if now - self._said < 60 or done == total:  # at the end a summary follows
            return
        self._said = now
        spent = (now - self._start) / 60
        left = f", about {spent * (total - done) / done:.0f} min left" if done else ""
        self.say(f"{done:,} of {total:,} runs, {spent:.0f} min{left}")

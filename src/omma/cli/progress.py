"""How far a long work is: a bar that names what runs."""

from __future__ import annotations

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

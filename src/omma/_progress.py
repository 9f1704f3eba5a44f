"""A progress bar for whatever takes long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int], None]


@contextmanager
def progress_bar(total: int, title: object, wanted: bool) -> Iterator[Progress | None]:
    """A progress bar on standard error, if wanted."""
    if not wanted:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress as Bar,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling", total=total)

        def advance(count: int) -> None:
            bar.update(task, description=str(title), advance=count)

        yield advance

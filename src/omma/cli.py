"""The command ``omma``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from omma import __version__

if TYPE_CHECKING:
    from rich.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])

PICTURE = Path("omma-demo.png")
ENDINGS = (".png", ".svg", ".pdf")


class OneLineErrors(click.Group):
    """A group of commands whose errors take one line: click puts the usage before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line():
            return super().invoke(ctx)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.ctx = None  # without it click has no usage to show
        raise


@click.group(cls=OneLineErrors, invoke_without_command=True)
@click.version_option(__version__, prog_name="omma")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Decisions that maximize the metric you are judged by.

    Try it on a made-up stream of labels:

        omma demo
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _whole_number(
    name: str, default: int, text: str, least: int = 1
) -> Callable[[Command], Command]:
    return click.option(
        name,
        type=click.IntRange(min=least),
        metavar="N",
        default=default,
        show_default=True,
        help=text,
    )


@main.command()
@_whole_number("--rows", 20_000, "Rows of the stream.")
@_whole_number("--labels", 50, "Labels that a row may have.")
@_whole_number("--k", 3, "Labels a row gets where there is a budget.")
@_whole_number("--seed", 0, "Another seed is another stream.", least=0)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE.png",
    help=f"Where the picture goes.  [default: {PICTURE}]",
)
@click.option("--no-plot", is_flag=True, help="Print the table only.")
def demo(rows: int, labels: int, k: int, seed: int, output: Path | None, no_plot: bool) -> None:
    """Decide a stream with many rare labels, and compare.

    Draws labels whose probabilities are known; decides every row by a threshold of 0.5, by the k
    most probable labels, and by OMMA with and without seeing labels; prints what each is worth by
    ten metrics, and draws how four of them develop. The first run compiles for some 20 seconds.

    \b
    Example:
        omma demo --rows 100000 --labels 200 --k 5 --output running.png
    """  # noqa: D301
    if k > labels:
        raise click.BadParameter(f"{k} is more than the {labels} of --labels.", param_hint="--k")
    path = None if no_plot else _where(output)

    from rich.console import Console

    from omma import demo as job

    with _steps(Console(stderr=True), job.STEPS + (path is not None)) as report:
        try:
            found = job.run(rows, labels, k, seed, report=report)
        except MemoryError as error:
            raise click.ClickException(
                f"{rows:,} rows of {labels:,} labels do not fit in memory."
            ) from error
        if path is not None:
            from omma.plots import save

            report(f"drawing {path}")
            save(job.picture(found), path)
    console = Console(highlight=False)
    console.print(job.summary(found))
    console.print(job.table(found))
    if path is not None:
        click.echo(f"Saved the running performance to {path}")


def _where(output: Path | None) -> Path | None:
    """Where the picture goes: nowhere if nobody asked and it cannot be drawn."""
    path = PICTURE if output is None else output
    if path.suffix.lower() not in ENDINGS:
        raise click.BadParameter(
            f"'{path}' must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.",
            param_hint="--output",
        )
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"'{path.parent}' is not a folder.", param_hint="--output")
    from omma.plots import require_matplotlib

    try:
        require_matplotlib()
    except ImportError as error:
        if output is not None:
            raise click.ClickException(str(error)) from error
        click.echo(f"No picture: {error}", err=True)
        return None
    return path


@contextmanager
def _steps(console: Console, total: int) -> Iterator[Callable[[str], None]]:
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

"""``omma demo``: decision rules compared on a simulated stream."""

from pathlib import Path

import click

import omma
from omma.cli.options import picture_path, progress_bar, whole_number

PICTURE = Path("omma-demo.png")


@click.command("demo")
@whole_number("--rows", 20_000, "Rows of the stream.")
@whole_number("--labels", 50, "Number of labels.")
@whole_number("--k", 3, "Labels for each row where there is a budget.")
@whole_number("--seed", 0, "Seed of the stream.", least=0)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE.png",
    help=f"File for the plot.  [default: {PICTURE}]",
)
@click.option("--no-plot", is_flag=True, help="Print the table only.")
def command(rows: int, labels: int, k: int, seed: int, output: Path | None, no_plot: bool) -> None:
    """Compare decision rules on a simulated stream with many rare labels.

    Draws labels from known probabilities. Decides every row by a 0.5 threshold, by the k most
    probable labels, by thresholds tuned on 1,000 other rows, by Auto, and by OMMA with and without
    labels. Prints the score of each by eight metrics, and plots how four of them develop.

    \b
    Example:
        omma demo --rows 100000 --labels 200 --k 5 --output running.png
    """  # noqa: D301
    if k > labels:
        raise click.BadParameter(f"{k} is more than the {labels} of --labels.", param_hint="--k")
    # Before the replays, which take a while: whether there is a place for the picture.
    path = None if no_plot else picture_path(output, PICTURE)

    from rich.console import Console

    from omma import demo

    with progress_bar(Console(stderr=True), demo.STEPS + (path is not None)) as report:
        try:
            results = demo.run(rows, labels, k, seed, report=report)
        except MemoryError as error:
            raise click.ClickException(
                f"{rows:,} rows of {labels:,} labels do not fit in memory."
            ) from error
        if path is not None:
            report(f"drawing {path}")
            omma.plots.save(demo.picture(results), path)
    console = Console(highlight=False)
    console.print(demo.summary(results))
    console.print(demo.table(results))
    if path is not None:
        click.echo(f"Saved the running performance to {path}")

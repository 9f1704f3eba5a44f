"""``omma demo``: decision rules compared on a simulated stream."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

import omma
from omma.cli.options import (
    PICTURES,
    PRIOR,
    OutputFile,
    can_draw,
    shows_progress,
    whole_number,
)

PICTURE = Path("omma-demo.png")
METRICS = ("macro_f1", "micro_f1", "macro_balanced_accuracy", "macro_gmean")
WITH_BUDGET = ("macro_f1", "macro_precision", "macro_recall", "macro_gmean")
PICTURED, PICTURED_WITH_BUDGET = ("macro_f1", "macro_gmean"), ("macro_precision", "macro_recall")
POLICIES = ("baseline", "tuned", "auto", "omma", "omma_eta")
TUNING_ROWS = 1000  # labelled rows that thresholds are tuned on


@click.command("demo")
@whole_number("--rows", 20_000, "Rows of the stream.")
@whole_number("--labels", 50, "Number of labels.")
@whole_number("--k", 3, "Labels for each row where there is a budget.")
@whole_number("--seed", 0, "Seed of the stream.", least=0)
@click.option(
    "--output",
    type=OutputFile(*PICTURES),
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
    # Before the replays, which take a while.
    is_drawn = not no_plot and can_draw(output)

    from rich.console import Console

    from omma.tables import fitting

    try:
        about, comparison = run(rows, labels, k, seed, progress=shows_progress(rows))
    except MemoryError as error:
        raise click.ClickException(
            f"{rows:,} rows of {labels:,} labels do not fit in memory."
        ) from error
    console = Console(highlight=False)
    console.print(about)
    for table in fitting(comparison.grid(std=True), console):
        console.print(table)
    console.print(
        f"In %, the best in bold; × does not apply. The usual rule is a threshold of 0.5, or the "
        f"top {k}. Thresholds are tuned on {TUNING_ROWS:,} other labelled rows. OMMA(η̂) never sees "
        "a label."
    )
    seconds = dict.fromkeys(comparison.policies, 0.0)  # of all replays of each policy
    for cell in comparison.cells.values():
        seconds[cell.policy] += cell.times.sum()
    times = (f"{comparison.titles[name]} {total:.2f}" for name, total in seconds.items())
    console.print(f"Seconds for the above: {', '.join(times)}.")
    if is_drawn:
        from omma.metrics.target import Target  # here: --help needs no Numba

        path = output or PICTURE
        names = (*PICTURED, *(str(Target(name, k)) for name in PICTURED_WITH_BUDGET))
        title = f"Policies compared on {rows:,} rows of {labels:,} labels. "
        omma.plots.save(replace(comparison, metrics=names).plot(title=title), path)
        click.echo(f"Saved the running performance to {path}")


def run(
    rows: int = 20_000, labels: int = 50, k: int = 3, seed: int = 0, *, progress: bool = False
) -> tuple[str, omma.Comparison]:
    """A sentence about the stream, and policies compared on it."""
    # A row has 2.5 labels on average, as in tagging, or fewer if there are few labels.
    labels_per_row = min(2.5, labels / 2)
    eta, y = omma.datasets.long_tail(rows, labels, labels_per_row=labels_per_row, seed=seed)
    # Other rows of the same kind, to tune thresholds on before the stream begins.
    sample = omma.datasets.long_tail(
        TUNING_ROWS, labels, labels_per_row=labels_per_row, seed=seed + 1
    )
    comparison = omma.compare(
        eta,
        y,
        [*METRICS, *((name, k) for name in WITH_BUDGET)],
        POLICIES,
        train=sample,
        seeds=(None,),
        priors=PRIOR,
        checkpoints=200,
        n_jobs=1,  # runs at the same time would disturb each other's clocks
        progress=progress,
    )
    label_counts = y.sum(axis=0)
    about = (
        f"{rows:,} rows, {labels:,} labels, {label_counts.sum() / rows:.1f} a row; "
        f"the rarest label is in {int(label_counts.min()):,} rows."
    )
    # Short titles, so that four metrics fit side by side into 80 columns.
    titles = comparison.titles | {"baseline": "Usual rule", "tuned": "Tuned"}
    return about, replace(comparison, titles=titles)

"""``omma list``: metrics and policies."""

import json
from typing import Any

import click

import omma
from omma.cli.learners import streaming_policies
from omma.cli.options import policy_names

MOVED = ("datasets", "suites")
Rows = list[dict[str, Any]]


@click.command("list")
@click.argument(
    "kind", type=click.Choice(("metrics", "policies", *MOVED)), metavar="{metrics|policies}"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kind: str, as_json: bool) -> None:
    """List metrics or policies.

    \b
    Examples:
        omma list metrics
        omma list policies --json
    """  # noqa: D301
    if kind in MOVED:
        raise click.UsageError(
            f"omma list {kind} moved to the package omma-study: pip install omma-study, then "
            f"omma-study list {kind}"
        )
    rows = metrics() if kind == "metrics" else policies()
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    *first, last = rows[0]
    for name in first:
        table.add_column(name, no_wrap=True)
    table.add_column(last, overflow="fold")  # wraps where the terminal has no room
    words: dict[Any, str] = {True: "yes", False: "no"}
    for row in rows:
        table.add_row(*(Text(words.get(cell) or cell) for cell in row.values()))
    Console(highlight=False).print(table)


def metrics() -> Rows:
    """Every metric by name."""
    rows = []
    for name in omma.metrics.NAMES:
        metric = omma.metric(name)
        task = "binary" if metric.binary else "multiclass" if metric.multiclass else "multilabel"
        average, _, rate = name.partition("_")
        # For an average over labels, the name of the rate says more than a formula.
        averages = {
            "macro": f"mean over labels of {rate}",
            "micro": f"{rate} of counts over all labels",
        }
        formula = averages.get(average, metric.formula)
        rows.append({"metric": name, "for": task, "formula": formula})
    return rows


def policies() -> Rows:
    """Every policy that commands know by name: whether it needs labels, whether it streams."""
    from omma.policies.registry import REGISTRY

    return [
        {
            "policy": name,
            "labels": REGISTRY[name].labels,
            "stream": name in streaming_policies(),
            "decides by": REGISTRY[name].about,
        }
        for name in policy_names()
    ]

"""``omma list``: metrics and policies."""

import json
from typing import Any

import click

from omma.metrics import NAMES, metric as find_metric

MOVED = ("datasets", "suites")
Rows = list[dict[str, Any]]


@click.command("list")
@click.argument("what", type=click.Choice(("metrics", "policies", *MOVED)))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(what: str, as_json: bool) -> None:
    """List metrics or policies.

    \b
    Examples:
        omma list metrics
        omma list policies --json
    """  # noqa: D301
    if what in MOVED:
        raise click.UsageError(
            f"omma list {what} moved to the package omma-study: pip install omma-study, then "
            f"omma-study list {what}"
        )
    rows = metrics() if what == "metrics" else policies()
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    _show(rows)


def _show(rows: Rows) -> None:
    """An aligned table; where the terminal has no room, the last column goes on below."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, name in enumerate(rows[0]):
        numbers = all(type(row[name]) in (int, float, type(None)) for row in rows)
        last = place == len(rows[0]) - 1
        table.add_column(
            name, justify="right" if numbers else "left", overflow="fold", no_wrap=not last
        )
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    Console(highlight=False).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def metrics() -> Rows:
    """Every metric by name."""
    rows = []
    for name in NAMES:
        found = find_metric(name)
        task = "binary" if found.binary else "multiclass" if found.multiclass else "multilabel"
        rows.append({"metric": name, "for": task, "formula": _formula(name, found.formula)})
    return rows


def _formula(name: str, formula: str) -> str:
    """The formula; where it is that of one label averaged, the name of that is enough."""
    average, _, of = name.partition("_")
    averages = {"macro": f"mean over labels of {of}", "micro": f"{of} of counts over all labels"}
    return averages.get(average, formula)


def policies() -> Rows:
    """Every policy that commands know by name: whether it needs labels, whether it streams."""
    from omma.cli.evaluation import ALL
    from omma.cli.learners import POLICIES as STREAMED
    from omma.policies.roster import ROSTER

    return [
        {
            "policy": name,
            "labels": ROSTER[name].labels,
            "stream": name in STREAMED,
            "decides by": ROSTER[name].about,
        }
        for name in ALL
    ]

"""``omma list``: metrics, policies, datasets and suites."""

from __future__ import annotations

import json
from typing import Any

import click

WHAT = ("metrics", "policies", "datasets", "suites")


@click.command("list")
@click.argument("what", type=click.Choice(WHAT))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(what: str, as_json: bool) -> None:
    """List metrics, policies, datasets or suites.

    \b
    Examples:
        omma list metrics
        omma list policies --json
    """  # noqa: D301
    from omma.cli import listing

    rows = getattr(listing, what)()
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    _show([{name: row[name] for name in row if name not in listing.UNSHOWN} for row in rows])


def _show(rows: list[dict[str, Any]]) -> None:
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

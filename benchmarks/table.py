"""Figures, the targets that some of them have, and how both are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

Row = dict[str, Any]


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
    """Which part of some answers is alike, in percent: it should be all of them."""
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

    def show(self, console: Console) -> None:
        """Print the table, its title above and its note below."""
        table = RichTable(box=SIMPLE_HEAD)
        for name, cell in self.rows[0].items():
            table.add_column(name, justify="left" if isinstance(cell, str) else "right")
        for row in self.rows:
            table.add_row(*(_styled(cell) for cell in row.values()))
        console.rule(f"[bold]{self.title}", align="left")
        console.print(table)
        console.print(f"  {self.note}\n", style="dim", highlight=False)

    def as_json(self) -> Row:
        """The table for a file."""
        rows = [{name: _plain(cell) for name, cell in row.items()} for row in self.rows]
        return {"title": self.title, "note": self.note, "rows": rows}


def _styled(cell: Any) -> str:
    if isinstance(cell, Target):
        return f"[{'green' if cell.met else 'red'}]{cell}[/]"
    return shown(cell)


def _plain(cell: Any) -> Any:
    if isinstance(cell, Target):
        kind = "at_most" if cell.at_most else "at_least"
        return {"value": cell.value, kind: cell.limit, "met": cell.met}
    return cell

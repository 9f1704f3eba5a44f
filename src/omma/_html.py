"""HTML: small tables for notebooks and pages.

Colours are those of the text, so that tables are legible on white and on black.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

MOST = 10  # rows; of more, the first ones are shown

# Notebooks have their own styles for tables: these override them.
_LINE = "border-bottom:1px solid color-mix(in srgb, currentColor 25%, transparent)"
_LEFT, _RIGHT = "text-align:left", "text-align:right;font-variant-numeric:tabular-nums"


def html_table(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    total: int,
    notes: str = "",
    *,
    most: int = MOST,
) -> str:
    """A table of the first rows, of ``total`` in all: a column of names, others of numbers.

    Numbers are shortened, text is escaped. ``title`` stands above, ``notes`` below.

    >>> html_table("<3", ["label", "η"], [("a&b", 0.25)], total=1).count("&")
    2
    """
    shown = list(islice(rows, most))
    lines = [_line("th", head, _LINE), *(_line("td", row) for row in shown)]
    left = f"… and {total - len(shown):,} more. " if total > len(shown) else ""
    below = f"<div><small>{escape(left + notes)}</small></div>" if left or notes else ""
    table = f'<table style="border-collapse:collapse;background:none">{"".join(lines)}</table>'
    return f'<div style="color:inherit"><div>{escape(title)}</div>{table}{below}</div>'


def _line(tag: str, cells: Sequence[Any], style: str = "") -> str:
    sides = [_LEFT] + [_RIGHT] * (len(cells) - 1)
    marked = (
        f'<{tag} style="{";".join(filter(None, (side, style)))}">{escape(number(cell))}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f'<tr style="background:none">{"".join(marked)}</tr>'


def number(value: Any) -> str:
    """A number as a cell shows it; anything else as text.

    >>> number(1234567.0), number(0.123456), number("a")
    ('1,234,567', '0.1235', 'a')
    """
    if isinstance(value, float) and not value.is_integer():
        # Four digits, but no exponent for large numbers.
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.1f}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)

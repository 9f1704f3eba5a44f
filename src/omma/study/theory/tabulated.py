"""Tables of the theory: made once, shown in every format."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from omma import tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 0 auto; padding: 1rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: left; white-space: nowrap; }
th { border-bottom: 1px solid; }
td.number, th.number { text-align: right; }
img { max-width: 100%; background: white; }
"""


def tabulated(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    """A table without rows; on a narrow screen words are wrapped and numbers stay whole."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in words:
        table.add_column(name, overflow="fold", min_width=9)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def rows_of(table: Table) -> list[list[str]]:
    """The head of a table and its rows, as texts.

    >>> table = tabulated("Rates", ["policy"], ["power"])
    >>> table.add_row("OMMA", "-0.9")
    >>> rows_of(table)
    [['policy', 'power'], ['OMMA', '-0.9']]
    """
    head = [str(column.header) for column in table.columns]
    cells = zip(*(column.cells for column in table.columns), strict=True)
    return [head, *([str(cell) for cell in row] for row in cells)]


def to_markdown(found: Sequence[Table]) -> str:
    """Each table under its title."""
    parts = []
    for table in found:
        head, *rows = [[tables.markdown(text) for text in row] for row in rows_of(table)]
        rule = ["--:" if column.justify == "right" else ":--" for column in table.columns]
        lines = [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
        parts.append("\n".join([f"### {table.title}", "", *lines, ""]))
    return "\n".join(parts)


def to_latex(found: Sequence[Table]) -> str:
    """Each table (booktabs) after a comment with its title."""
    parts = []
    for table in found:
        head, *rows = [" & ".join(map(tables.latex, row)) + r" \\" for row in rows_of(table)]
        places = "".join("r" if column.justify == "right" else "l" for column in table.columns)
        lines = [rf"\begin{{tabular}}{{{places}}}", r"\toprule", head, r"\midrule", *rows,
                 r"\bottomrule", r"\end{tabular}"]  # fmt: skip
        parts.append("\n".join([f"% {table.title}", *lines, ""]))
    return "\n".join(parts)


def to_csv(found: Sequence[Table]) -> str:
    """A line for each number: its table, the words of its row, its column, and the number."""
    lines = []
    for table in found:
        head, *rows = rows_of(table)
        words = sum(column.justify != "right" for column in table.columns)
        for row in rows:
            about = "; ".join(row[:words])
            lines += [
                {"table": str(table.title), "row": about, "column": name, "value": value}
                for name, value in zip(head[words:], row[words:], strict=True)
            ]
    return tables.to_csv(lines)


def page(found: Sequence[Table], figures: dict[str, Figure], *, title: str) -> str:
    """One page of HTML with tables and figures, which needs no other file."""
    body = [f"<h1>{escape(title)}</h1>"]
    for name, figure in figures.items():
        body.append(f'<p><img alt="{escape(name)}" src="{_embedded(figure)}"></p>')
    for table in found:
        head, *rows = rows_of(table)
        kinds = ["number" if column.justify == "right" else "word" for column in table.columns]
        lines = [_line("th", head, kinds), *(_line("td", row, kinds) for row in rows)]
        body.append(f"<h2>{escape(str(table.title))}</h2>")
        body.append(f"<div><table>{''.join(lines)}</table></div>")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def _line(tag: str, texts: Sequence[str], kinds: Sequence[str]) -> str:
    cells = (
        f'<{tag} class="{kind}">{escape(text)}</{tag}>'
        for kind, text in zip(kinds, texts, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _embedded(figure: Figure) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, facecolor="white")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"

"""Tables for the terminal, Markdown, LaTeX and CSV: one grid, one writer for each format.

A ``Grid`` has a row for each policy and a column for each metric; numbers are fractions, shown in
%. As in the paper, the best of each column is bold and the second best italic; numbers that look
equal share a rank. An entry without a number shows its text.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from omma._html import html_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNSUPPORTED, MISSING, PARTIAL = "×", "–", "†"
BEST, SECOND = 1, 2  # ranks within a column; 0 is any other
HAT_ETA = "η\u0302"


@dataclass(frozen=True)
class GridEntry:
    """An entry of a grid: numbers (NaN where unknown), or a text instead."""

    mean: float = math.nan
    std: float = math.nan  # an unknown one is not shown
    seconds: float = math.nan
    instead: str = ""  # shown where there is no number
    partial: bool = False  # whether some runs are missing

    @property
    def shown(self) -> str:
        """The mean in %, as every table prints it; empty where there is none."""
        return "" if self.instead or math.isnan(self.mean) else f"{100 * self.mean:.2f}"


@dataclass(frozen=True)
class Grid:
    """The content of a table; ``notes`` are sentences to print under it.

    ``head`` is the title of the column of names; ``std`` and ``seconds`` say whether these are
    shown beside each mean.

    >>> grid = Grid(("macro_f1",), ("OMMA", "OFO"), ((GridEntry(0.5),), (GridEntry(instead="×"),)))
    >>> print(to_markdown(grid))
    | policy |  macro_f1 |
    | :----- | --------: |
    | OMMA   | **50.00** |
    | OFO    |         × |
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    entries: tuple[tuple[GridEntry, ...], ...]
    notes: tuple[str, ...] = ()
    head: str = "policy"
    std: bool = True
    seconds: bool = False

    @property
    def texts(self) -> list[list[str]]:
        """The text of each entry, without emphasis."""
        return [
            [content(entry, std=self.std, seconds=self.seconds) for entry in row]
            for row in self.entries
        ]

    def __str__(self) -> str:
        return to_text(self)

    def __rich__(self) -> Table:
        return to_terminal(self)


def text_grid(
    head: str, columns: Sequence[str], lines: Iterable[Sequence[str]], *notes: str
) -> Grid:
    """A table of texts: each line is a name and a text for each column.

    >>> grid = text_grid("number", ["square"], [("2", "4"), ("3", "9")])
    >>> grid.head, grid.columns, grid.names, [row[0].instead for row in grid.entries]
    ('number', ('square',), ('2', '3'), ['4', '9'])
    """
    lines = list(lines)
    names = tuple(line[0] for line in lines)
    entries = tuple(tuple(GridEntry(instead=text) for text in line[1:]) for line in lines)
    return Grid(tuple(columns), names, entries, notes, head)


def ranks(grid: Grid) -> list[list[int]]:
    """The rank of each entry: 1 for the best of its column, 2 for the second best, else 0.

    >>> entries = tuple((GridEntry(mean),) for mean in (0.5, 0.50001, 0.4))
    >>> ranks(Grid(("a",), ("x", "y", "z"), entries))
    [[1], [1], [2]]
    """
    by_column = []
    for column in zip(*grid.entries, strict=True):
        # As printed, so that numbers which look equal share a rank.
        shown = [float(entry.shown or "nan") for entry in column]
        best = sorted({value for value in shown if not math.isnan(value)}, reverse=True)[:2]
        by_column.append([1 + best.index(value) if value in best else 0 for value in shown])
    return [list(row) for row in zip(*by_column, strict=True)]


def plain(number: float) -> str:
    """A number in its shortest usual form.

    >>> plain(0.0), plain(1e-6), plain(0.001), plain(1.0)
    ('0', '1e-6', '0.001', '1')
    """
    return f"{number:g}".replace("e-0", "e-").replace("e+0", "e")


def content(entry: GridEntry, *, std: bool = True, seconds: bool = False) -> str:
    """The text of an entry, without emphasis.

    >>> content(GridEntry(0.5, 0.01, 0.002), seconds=True)
    '50.00 ± 1.00 (2 ms)'
    """
    text = entry.shown
    if not text:
        return entry.instead or MISSING
    if std and not math.isnan(entry.std):
        text += f" ± {100 * entry.std:.2f}"
    if seconds and not math.isnan(entry.seconds):
        text += (
            f" ({1000 * entry.seconds:.3g} ms)"
            if entry.seconds < 1
            else f" ({entry.seconds:.3g} s)"
        )
    return text + PARTIAL if entry.partial else text


def to_terminal(grid: Grid) -> Table:
    """A table for ``rich.console.Console().print``."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    styles = {BEST: "bold", SECOND: "italic"}
    dim = {UNSUPPORTED: "dim", MISSING: "dim"}
    table = Table(box=box.SIMPLE_HEAD, caption=" ".join(grid.notes), caption_justify="left")
    table.add_column(escape(grid.head))
    for column in grid.columns:
        table.add_column(escape(column), justify="right")  # recall[fraud] is no markup
    for name, row, ranked in zip(grid.names, grid.texts, ranks(grid), strict=True):
        marked = [
            Text(text, style=styles.get(rank, dim.get(text, "")))
            for text, rank in zip(row, ranked, strict=True)
        ]
        table.add_row(Text(name), *marked)
    return table


def fitting(grid: Grid, console: Console) -> Iterator[Table]:
    """Tables of some columns each, no wider than the console, without notes."""
    from rich.measure import Measurement

    unbounded = console.options.update(max_width=10_000)  # else rich measures what it would cut
    start, total = 0, len(grid.columns)
    while start < total:
        for stop in range(total, start, -1):  # as many columns as fit, at least one
            entries = tuple(row[start:stop] for row in grid.entries)
            part = replace(grid, columns=grid.columns[start:stop], entries=entries, notes=())
            table = to_terminal(part)
            if Measurement.get(console, unbounded, table).maximum <= console.width:
                break
        yield table
        start = stop


def to_text(grid: Grid) -> str:
    """Plain aligned text: nothing but columns, with a star at the best."""
    marks = ("{}  ", "{} *", "{}  ")  # as wide as a star, so that columns stay aligned
    rows = _aligned(replace(grid, std=False, seconds=False), str, marks)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def to_markdown(grid: Grid) -> str:
    """A table in GitHub's Markdown, its columns aligned; the notes are a paragraph under it."""
    from rich.cells import cell_len

    marks = ("{}", "**{}**", "*{}*")
    head, *rows = _aligned(grid, markdown, marks)
    first, *others = ["-" * (cell_len(text) - 1) for text in head]
    rule = [f":{first}", *(f"{line}:" for line in others)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
    return "\n\n".join([table, " ".join(grid.notes)] if grid.notes else [table])


def to_html(grid: Grid, title: str) -> str:
    """A table for notebooks, under its title; the notes are below."""
    rows = ((name, *texts) for name, texts in zip(grid.names, grid.texts, strict=True))
    head, notes, count = (grid.head, *grid.columns), " ".join(grid.notes), len(grid.names)
    return html_table(title, head, rows, count, notes, most=count)


def to_latex(grid: Grid) -> str:
    """A table for LaTeX with the package booktabs; the notes are its caption."""
    marks = ("{}", r"\textbf{{{}}}", r"\textit{{{}}}")
    rows = _aligned(grid, latex, marks)
    head, *body = [f"    {' & '.join(row)} \\\\" for row in rows]
    places = "l" + "r" * len(grid.columns)
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}[t]",
            rf"  \caption{{{latex(' '.join(grid.notes))}}}",
            r"  \centering",
            rf"  \begin{{tabular}}{{{places}}}",
            r"    \toprule",
            head,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys as CSV: numbers in full, nothing where a value is None.

    >>> print(to_csv([{"policy": "omma", "value": 0.1}, {"policy": "ofo", "value": None}]))
    policy,value
    omma,0.1
    ofo,
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _aligned(
    grid: Grid, escape: Callable[[str], str], marks: tuple[str, str, str]
) -> list[list[str]]:
    """Head and rows as texts of one width a column; ``marks`` are formats of ranks 0, 1 and 2."""
    from rich.cells import cell_len  # of η̂ the hat takes no room

    rows = [[escape(grid.head), *(marks[0].format(escape(column)) for column in grid.columns)]]
    for name, row, ranked in zip(grid.names, grid.texts, ranks(grid), strict=True):
        cells = zip(row, ranked, strict=True)
        rows.append([escape(name), *(marks[rank].format(escape(text)) for text, rank in cells)])
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for line in rows:
        for place, text in enumerate(line):
            blank = " " * (widths[place] - cell_len(text))
            line[place] = blank + text if place else text + blank
    return rows


def markdown(text: str) -> str:
    """A text that Markdown shows as it is."""
    return text.translate({ord(sign): f"\\{sign}" for sign in "\\|<*`"})


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "%": r"\%",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"$<$",
        ">": r"$>$",
        "≥": r"$\geq$",
        "±": r"$\pm$",
        "−": "$-$",
        "λ": r"$\lambda$",
        "η": r"$\eta$",
        UNSUPPORTED: r"$\times$",
        MISSING: "--",
        PARTIAL: r"$^\dagger$",
    }
)


def latex(text: str) -> str:
    r"""A text that LaTeX shows as it is.

    >>> print(latex("macro_f1 ± 1 %"))
    macro\_f1 $\pm$ 1 \%
    """
    parts = text.split(HAT_ETA)  # two characters, one sign
    return r"$\hat{\eta}$".join(part.translate(_LATEX) for part in parts)

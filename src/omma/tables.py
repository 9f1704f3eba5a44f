"""Tables for the terminal, Markdown, LaTeX, HTML and CSV: one grid, one writer for each format.

A ``Grid`` has a row for each policy and a column for each metric; numbers are fractions that are
shown in %. As in the paper, the best of each column is bold and the second best italic; numbers
that look equal are equal. What is no number, as in tables of the theory, stands there as a text.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNSUPPORTED, MISSING, PARTIAL = "×", "–", "†"
BEST, SECOND = 1, 2
HAT_ETA = "η\u0302"

Mark = Callable[[str, int], str]
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Entry:
    """One place of a table: numbers, NaN where unknown, or what stands there in their place."""

    mean: float = math.nan
    std: float = math.nan  # one that is unknown is not shown
    seconds: float = math.nan
    instead: str = ""  # shown where there is no number
    partial: bool = False  # whether some runs are missing
    beside: str = ""  # what else belongs to the number, such as another's

    @property
    def shown(self) -> str:
        """The mean in %, as every table prints it; empty where there is none."""
        return "" if self.instead or math.isnan(self.mean) else f"{100 * self.mean:.2f}"


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn; ``notes`` are sentences that belong under it.

    ``head`` is what stands above the names; the first ``words`` columns hold words, not numbers.

    >>> grid = Grid(("macro_f1",), ("OMMA", "OFO"), ((Entry(0.5),), (Entry(instead="×"),)))
    >>> print(to_markdown(grid))
    | policy |  macro_f1 |
    | :----- | --------: |
    | OMMA   | **50.00** |
    | OFO    |         × |
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    entries: tuple[tuple[Entry, ...], ...]
    notes: tuple[str, ...] = ()
    head: str = "policy"
    words: int = 0
    title: str = ""

    def __str__(self) -> str:
        return to_text(self)

    def __rich__(self) -> Table:
        return to_terminal(self)


def texts(
    title: str,
    things: Iterable[Thing],
    words: Mapping[str, Callable[[Thing], str]],
    numbers: Mapping[str, Callable[[Thing], str]],
) -> Grid:
    """A table with a row for each thing, and functions that say what stands in each column.

    >>> grid = texts("Squares", [2, 3], {"number": str}, {"square": lambda x: f"{x * x}"})
    >>> grid.head, grid.columns, grid.names, [row[0].instead for row in grid.entries]
    ('number', ('square',), ('2', '3'), ['4', '9'])
    """
    head, *columns = [*words, *numbers]
    rows = [[say(one) for say in (*words.values(), *numbers.values())] for one in things]
    entries = tuple(tuple(Entry(instead=text) for text in row[1:]) for row in rows)
    names = tuple(row[0] for row in rows)
    return Grid(tuple(columns), names, entries, (), head, len(words) - 1, title)


def ranks(grid: Grid) -> list[list[int]]:
    """Of each entry 1 if it is the best of its column, 2 if it is the second best, else 0.

    >>> ranks(Grid(("a",), ("x", "y", "z"), ((Entry(0.5),), (Entry(0.50001),), (Entry(0.4),))))
    [[1], [1], [2]]
    """
    found = [[0] * len(grid.columns) for _ in grid.names]
    for column in range(len(grid.columns)):
        shown = [row[column].shown for row in grid.entries]
        order = sorted({float(text) for text in shown if text}, reverse=True)
        for row, text in enumerate(shown):
            if text and float(text) in order[:2]:
                found[row][column] = 1 + order.index(float(text))
    return found


def plain(number: float) -> str:
    """A number as people write it.

    >>> plain(0.0), plain(1e-6), plain(0.001), plain(1.0)
    ('0', '1e-6', '0.001', '1')
    """
    return f"{number:g}".replace("e-0", "e-").replace("e+0", "e")


def duration(seconds: float) -> str:
    """A time that people can read.

    >>> duration(0.00123), duration(75.2)
    ('1.23 ms', '75.2 s')
    """
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def content(entry: Entry, *, std: bool, seconds: bool, plus_minus: str = " ± ") -> str:
    """What an entry says, without emphasis.

    >>> content(Entry(0.5, 0.01, 0.002), std=True, seconds=True)
    '50.00 ± 1.00 (2 ms)'
    >>> content(Entry(0.5, beside="49.00 +1.00"), std=False, seconds=False)
    '50.00 [49.00 +1.00]'
    """
    if not entry.shown:
        return entry.instead or MISSING
    text = entry.shown
    if std and not math.isnan(entry.std):
        text += f"{plus_minus}{100 * entry.std:.2f}"
    if seconds and not math.isnan(entry.seconds):
        text += f" ({duration(entry.seconds)})"
    text += PARTIAL if entry.partial else ""
    return f"{text} [{entry.beside}]" if entry.beside else text


def _rows(
    grid: Grid, escaped: Callable[[str], str], mark: Mark, aligned: bool = True, **options: Any
) -> list[list[str]]:
    """Head and rows as texts, the best and the second best marked."""
    rows = [[escaped(grid.head), *(mark(escaped(column), 0) for column in grid.columns)]]
    for name, row, ranked in zip(grid.names, grid.entries, ranks(grid), strict=True):
        cells = zip((escaped(content(entry, **options)) for entry in row), ranked, strict=True)
        rows.append([escaped(name), *(mark(text, rank) for text, rank in cells)])
    return padded(rows, 1 + grid.words) if aligned else rows


def to_terminal(grid: Grid, *, std: bool = True, seconds: bool = False) -> Table:
    """A table for ``rich.console.Console().print``.

    Where there is a title there may be long words: on a narrow screen they are wrapped, and
    numbers stay whole.
    """
    from rich import box
    from rich.markup import escape as escaped
    from rich.table import Table
    from rich.text import Text

    styles = {BEST: "bold", SECOND: "italic"}
    table = Table(
        title=grid.title or None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0) if grid.title else (0, 1),
        caption=" ".join(grid.notes),
        caption_justify="left",
    )
    wrapped: dict[str, Any] = {"overflow": "fold", "min_width": 9} if grid.title else {}
    for column in (grid.head, *grid.columns[: grid.words]):
        table.add_column(escaped(column), **wrapped)  # recall[fraud] is no markup
    for column in grid.columns[grid.words :]:
        table.add_column(escaped(column), justify="right", no_wrap=bool(grid.title))
    for name, row, ranked in zip(grid.names, grid.entries, ranks(grid), strict=True):
        cells = [content(entry, std=std, seconds=seconds) for entry in row]
        found = zip(cells, ranked, strict=True)
        dim = {UNSUPPORTED: "dim", MISSING: "dim"}
        marked = [Text(text, style=styles.get(rank, dim.get(text, ""))) for text, rank in found]
        table.add_row(Text(name), *marked)
    return table


def fitting(
    grid: Grid, console: Console, *, std: bool = True, seconds: bool = False
) -> Iterator[Table]:
    """Tables of some columns each, no wider than the console, without notes."""
    from rich.measure import Measurement

    unbounded = console.options.update(max_width=10_000)
    start, total = 0, len(grid.columns)
    while start < total:
        for stop in range(total, start, -1):
            entries = tuple(row[start:stop] for row in grid.entries)
            part = replace(grid, columns=grid.columns[start:stop], entries=entries, notes=())
            table = to_terminal(part, std=std, seconds=seconds)
            if Measurement.get(console, unbounded, table).maximum <= console.width:
                break
        yield table
        start = stop


def to_text(grid: Grid, *, std: bool = False, seconds: bool = False) -> str:
    """Plain aligned text: nothing but columns, with a star at the best."""

    def mark(text: str, rank: int) -> str:
        return text + (" *" if rank == BEST else "  ")

    rows = _rows(grid, str, mark, std=std, seconds=seconds)
    return "\n".join("  ".join(row).rstrip() for row in rows)


def to_markdown(
    grid: Grid, *, std: bool = True, seconds: bool = False, aligned: bool = True
) -> str:
    """A table in GitHub's Markdown, its columns aligned; the notes are a paragraph under it."""

    def mark(text: str, rank: int) -> str:
        stars = ("", "**", "*")[rank]
        return f"{stars}{text}{stars}"

    head, *rows = _rows(grid, markdown, mark, aligned, std=std, seconds=seconds)
    lines = ["-" * ((_width(text) if aligned else 3) - 1) for text in head]
    left = 1 + grid.words
    rule = [*(f":{line}" for line in lines[:left]), *(f"{line}:" for line in lines[left:])]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))
    return "\n\n".join([table, " ".join(grid.notes)] if grid.notes else [table])


def to_latex(grid: Grid, *, std: bool = True, seconds: bool = False) -> str:
    """A table for LaTeX with the package booktabs; the notes are its caption."""
    return floating("table", " ".join(grid.notes), tabular(grid, std=std, seconds=seconds))


def tabular(grid: Grid, *, aligned: bool = True, **options: Any) -> list[str]:
    """The lines of a table in LaTeX that stands in the text."""
    head, *body = [
        f"{' & '.join(row)} \\\\" for row in _rows(grid, latex, emphasized, aligned, **options)
    ]
    places = "l" * (1 + grid.words) + "r" * (len(grid.columns) - grid.words)
    return ruled(places, [head, r"\midrule", *body])


def ruled(places: str, lines: Iterable[str]) -> list[str]:
    """Lines of a table between its rules."""
    inside = [f"  {line}" for line in (r"\toprule", *lines, r"\bottomrule")]
    return [rf"\begin{{tabular}}{{{places}}}", *inside, r"\end{tabular}"]


def floating(kind: str, caption: str, lines: Iterable[str]) -> str:
    """A table in LaTeX with its caption."""
    inside = [rf"\caption{{{latex(caption)}}}", r"\centering", *lines]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            rf"\begin{{{kind}}}[t]",
            *(f"  {line}" for line in inside),
            rf"\end{{{kind}}}",
        ]
    )


def emphasized(text: str, rank: int) -> str:
    """LaTeX that is bold if it is the best, italic if it is the second best."""
    return (text, rf"\textbf{{{text}}}", rf"\textit{{{text}}}")[rank]


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


def _width(text: str) -> int:
    """How many columns a text takes: the hat of η̂ takes none."""
    from rich.cells import cell_len

    return cell_len(text)


def padded(rows: list[list[str]], left: int) -> list[list[str]]:
    """Texts filled up with blanks: the first ones of each row to the left, others to the right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]

    def filled(place: int, text: str) -> str:
        blank = " " * (widths[place] - _width(text))
        return text + blank if place < left else blank + text

    return [[filled(place, text) for place, text in enumerate(row)] for row in rows]


def markdown(text: str) -> str:
    """A text that Markdown shows as it is."""
    for sign in "\\|<*`":
        text = text.replace(sign, f"\\{sign}")
    return text


_LATEX = {
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


def latex(text: str) -> str:
    r"""A text that LaTeX shows as it is.

    >>> print(latex("macro_f1 ± 1 %"))
    macro\_f1 $\pm$ 1 \%
    """
    hat = r"$\hat{\eta}$"
    return hat.join(
        "".join(_LATEX.get(sign, sign) for sign in part) for part in text.split(HAT_ETA)
    )

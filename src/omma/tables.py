"""Tables of results for the terminal, Markdown, LaTeX and CSV.

A ``Grid`` is what all of them draw: a row for each policy, a column for each metric, numbers as
fractions that are shown in %. As in the paper, the best of each column is bold and the second best
italic; numbers that look equal are equal.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

UNSUPPORTED, MISSING, PARTIAL = "×", "–", "†"
BEST, SECOND = 1, 2
HAT_ETA = "η\u0302"

Mark = Callable[[str, int], str]


@dataclass(frozen=True)
class Entry:
    """One place of a table: numbers, or what stands there in their place.

    Attributes
    ----------
    mean, std : float
        NaN where unknown; a standard deviation that is unknown is not shown.
    seconds : float
    instead : str
        Shown where there is no number.
    partial : bool
        Whether some runs are missing.
    beside : str
        What else belongs to the number, such as another's.
    """

    mean: float = math.nan
    std: float = math.nan
    seconds: float = math.nan
    instead: str = ""
    partial: bool = False
    beside: str = ""

    @property
    def shown(self) -> str:
        """The mean in %, as every table prints it; empty where there is none."""
        return "" if self.instead or math.isnan(self.mean) else f"{100 * self.mean:.2f}"


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn; ``notes`` are sentences that belong under it.

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


def _texts(grid: Grid, mark: Mark, **options: Any) -> list[list[str]]:
    return [
        [mark(content(entry, **options), rank) for entry, rank in zip(row, ranked, strict=True)]
        for row, ranked in zip(grid.entries, ranks(grid), strict=True)
    ]


def to_terminal(grid: Grid, *, std: bool = True, seconds: bool = False) -> Table:
    """A table for ``rich.console.Console().print``."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    styles = {BEST: "bold", SECOND: "italic"}
    table = Table(box=box.SIMPLE_HEAD, caption=" ".join(grid.notes), caption_justify="left")
    table.add_column("policy")
    for column in grid.columns:
        table.add_column(column, justify="right")
    for name, row, ranked in zip(grid.names, grid.entries, ranks(grid), strict=True):
        texts = [content(entry, std=std, seconds=seconds) for entry in row]
        cells = [
            Text(text, style=styles.get(rank, "" if entry.shown else "dim"))
            for text, rank, entry in zip(texts, ranked, row, strict=True)
        ]
        table.add_row(Text(name), *cells)
    return table


def to_text(grid: Grid, *, std: bool = False, seconds: bool = False) -> str:
    """Plain aligned text: nothing but columns, with a star at the best."""
    lines = _texts(
        grid, lambda text, rank: text + (" *" if rank == BEST else "  "), std=std, seconds=seconds
    )
    head = ["policy", *(f"{column}  " for column in grid.columns)]
    rows = [head, *([name, *line] for name, line in zip(grid.names, lines, strict=True))]
    return "\n".join("  ".join(row).rstrip() for row in _aligned(rows))


def to_markdown(grid: Grid, *, std: bool = True, seconds: bool = False) -> str:
    """A table in GitHub's Markdown, its columns aligned; the notes are a paragraph under it."""
    stars = {BEST: "**", SECOND: "*"}
    lines = _texts(
        grid,
        lambda text, rank: f"{stars.get(rank, '')}{text}{stars.get(rank, '')}",
        std=std,
        seconds=seconds,
    )
    names = [markdown(name) for name in grid.names]
    rows = [["policy", *map(markdown, grid.columns)]]
    rows += [[name, *line] for name, line in zip(names, lines, strict=True)]
    rows = _aligned(rows)
    widths = [_width(text) for text in rows[0]]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]])
    return "\n\n".join([table, " ".join(grid.notes)] if grid.notes else [table])


def to_latex(grid: Grid, *, std: bool = True, seconds: bool = False) -> str:
    """A table for LaTeX with the package booktabs; the notes are its caption."""
    commands = {BEST: r"\textbf", SECOND: r"\textit"}

    def mark(text: str, rank: int) -> str:
        return latex(text) if not rank else f"{commands[rank]}{{{latex(text)}}}"

    lines = _texts(grid, mark, std=std, seconds=seconds)
    rows = [["policy", *map(latex, grid.columns)]]
    rows += [[latex(name), *line] for name, line in zip(grid.names, lines, strict=True)]
    head, *body = [f"    {' & '.join(row)} \\\\" for row in _aligned(rows)]
    return "\n".join(
        (
            r"% \usepackage{booktabs}",
            r"\begin{table}[t]",
            f"  \\caption{{{latex(' '.join(grid.notes))}}}",
            r"  \centering",
            f"  \\begin{{tabular}}{{l{'r' * len(grid.columns)}}}",
            r"    \toprule",
            head,
            r"    \midrule",
            *body,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        )
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


def _width(text: str) -> int:
    """How many columns a text takes: the hat of η̂ takes none."""
    from rich.cells import cell_len

    return cell_len(text)


def _aligned(rows: list[list[str]]) -> list[list[str]]:
    """Texts filled up with blanks: the first of each row to the left, others to the right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        [
            text + blank if place == 0 else blank + text
            for place, (text, blank) in enumerate(
                (text, " " * (width - _width(text)))
                for text, width in zip(row, widths, strict=True)
            )
        ]
        for row in rows
    ]


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

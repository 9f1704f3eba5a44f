"""Tables of the paper in LaTeX, in its own layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from omma.study.printed.model import Block, Line, Number, Table, clock
from omma.tables import emphasized, latex

ABREAST = 2  # multi-label sets stand in pairs, as in the paper


def document(tables: Sequence[Table]) -> str:
    """All tables; they need the packages booktabs and graphicx."""
    head = "% \\usepackage{booktabs,graphicx}"
    return "\n\n".join([head, *(extended(one) if one.extended else plain(one) for one in tables)])


def plain(table: Table) -> str:
    """Values alone: two datasets abreast, or one where columns are of multi-class means."""
    width = len(table.columns)
    abreast = min(ABREAST, len(table.blocks)) if table.columns[0].group == "Micro" else 1
    places = "l" + abreast * ("|" + "|".join("c" * size for _, size in table.groups))
    above = [
        f"\\multicolumn{{{size}}}{{c|}}{{{latex(name)}}}" for name, size in abreast * table.groups
    ]
    names = abreast * [latex(column.name) for column in table.columns]
    lines = [_row("Method", _last(above)), _row("", names)]
    for start in range(0, len(table.blocks), abreast):
        pair = table.blocks[start : start + abreast]
        titles = [f"\\multicolumn{{{width}}}{{c|}}{{{_title(one)}}}" for one in pair]
        lines += [r"\midrule", _row("", _last(titles))]
        lines += _lines(pair, lambda number: [_value(number)], width)
    return _float(table, places, lines)


def extended(table: Table) -> str:
    """Values and seconds with their deviations, one dataset under another."""
    width = 4 * len(table.columns)
    places = "l" + len(table.columns) * "|r@{}lr@{}l"
    full = [f"\\multicolumn{{4}}{{c|}}{{{latex(column.full)}}}" for column in table.columns]
    both = [r"\multicolumn{2}{c}{(\%)}", r"\multicolumn{2}{c|}{time (s)}"] * len(table.columns)
    lines = [_row("Method", _last(full)), _row("", _last(both))]
    for block in table.blocks:
        lines += [r"\midrule", _row("", [f"\\multicolumn{{{width}}}{{c}}{{{_title(block)}}}"])]
        lines += _lines([block], _spread, width)
    return _float(table, places, lines)


def _float(table: Table, places: str, lines: list[str]) -> str:
    inside = [
        rf"\caption{{{latex(table.suite)}. {latex(table.caption)}}}",
        r"\centering",
        r"\small",
        r"\resizebox{\linewidth}{!}{%",
        r"\setlength\tabcolsep{3pt}",
        rf"\begin{{tabular}}{{{places}}}",
        *(f"  {line}" for line in (r"\toprule", *lines, r"\bottomrule")),
        r"\end{tabular}}",
    ]
    return "\n".join([r"\begin{table*}[t]", *(f"  {line}" for line in inside), r"\end{table*}"])


def _lines(
    pair: Sequence[Block], cells: Callable[[Number], list[str]], width: int
) -> Iterator[str]:
    """Lines of blocks abreast; a block that lacks a policy has a gap."""
    named = _aligned(pair)
    before = None
    for (name, group, theirs), lines in named:
        if group != before:
            yield r"\midrule"
        before = group
        texts = []
        for line in lines:
            numbers = [""] * width if line is None else [t for n in line.numbers for t in cells(n)]
            texts += [rf"{{\scriptsize {text}}}" if theirs and text else text for text in numbers]
        first = rf"\quad {{\scriptsize {latex(name)}}}" if theirs else latex(name)
        yield _row(first, texts)


Key = tuple[str, int, bool]


def _aligned(pair: Sequence[Block]) -> list[tuple[Key, list[Line | None]]]:
    """Lines of blocks abreast by their policy, in the order of the block that has more."""
    found = [_keyed(block.lines) for block in pair]
    order = max(found, key=len)
    keys = list(dict.fromkeys([*order, *(key for one in found for key in one)]))
    # A key names the policy and whether the line is the paper's.
    return [((key[1], key[2], key[3]), [one.get(key) for one in found]) for key in keys]


def _keyed(lines: Sequence[Line]) -> dict[tuple[str, str, int, bool], Line]:
    owner, found = "", {}
    for line in lines:
        owner = owner if line.theirs else line.name
        found[owner, line.name, line.group, line.theirs] = line
    return found


def _title(block: Block) -> str:
    more = f"; {latex(block.paper)}" if block.paper else ""
    return f"\\textsc{{{latex(block.title)}}} ($m = {block.m}, n = {block.n}${more})"


def _value(number: Number) -> str:
    return emphasized(latex(number.shown), number.rank)


def _spread(number: Number) -> list[str]:
    """Value and seconds, each with its deviation in a column of its own."""
    if number.instead:
        return ["", latex(number.instead), "", latex(number.instead)]
    value = [_value(number), emphasized(_deviation(100 * number.std), number.rank)]
    if math.isnan(number.seconds):
        return [*value, "", latex(number.time)]
    return [*value, latex(number.time), _deviation(number.seconds_std, clock)]


def _deviation(value: float, say: Callable[[float], str] = "{:.2f}".format) -> str:
    return "" if math.isnan(value) else rf"\scriptsize\,$\pm$\,{say(value)}"


def _row(first: str, cells: Sequence[str]) -> str:
    return f"{first} & {' & '.join(cells)} \\\\"


def _last(cells: Sequence[str]) -> list[str]:
    """No rule after the last column."""
    return [*cells[:-1], cells[-1].replace("{c|}", "{c}")]

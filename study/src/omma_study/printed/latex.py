"""Tables of the paper in LaTeX, in its own layout."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from omma.comparison.entrants import TITLES
from omma.tables import emphasized, latex
from omma_study.printed.model import Block, Line, Number, Table, clock
from omma_study.sections import POLICIES

ABREAST = 2  # multi-label sets stand in pairs, as in the paper
# Lines that a page has room for: in pairs and with deviations, tables are made smaller to fit.
ROOM = {1: 50, ABREAST: 62}
ROOM_EXTENDED = 96


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
    heads = [_row("Method", _last(above)), _row("", names)]
    parts = []
    for start in range(0, len(table.blocks), abreast):
        pair = table.blocks[start : start + abreast]
        gaps = [""] * (abreast - len(pair))  # the last may stand alone
        titles = [f"\\multicolumn{{{width}}}{{c|}}{{{_title(one)}}}" for one in pair]
        titles += [f"\\multicolumn{{{width}}}{{c|}}{{}}" for _ in gaps]
        parts.append(
            [
                r"\midrule",
                _row("", _last(titles)),
                *_lines(pair, lambda number: [_value(number)], width, len(gaps)),
            ]
        )
    return _floats(table, places, heads, parts, ROOM[abreast])


def extended(table: Table) -> str:
    """Values and seconds with their deviations, one dataset under another."""
    width = 4 * len(table.columns)
    places = "l" + len(table.columns) * "|r@{}lr@{}l"
    full = [f"\\multicolumn{{4}}{{c|}}{{{latex(column.full)}}}" for column in table.columns]
    both = [r"\multicolumn{2}{c}{(\%)}", r"\multicolumn{2}{c|}{time (s)}"] * len(table.columns)
    heads = [_row("Method", _last(full)), _row("", _last(both))]
    parts = [
        [
            r"\midrule",
            _row("", [f"\\multicolumn{{{width}}}{{c}}{{{_title(block)}}}"]),
            *_lines([block], _spread, width),
        ]
        for block in table.blocks
    ]
    return _floats(table, places, heads, parts, ROOM_EXTENDED)


def _floats(table: Table, places: str, heads: list[str], parts: list[list[str]], room: int) -> str:
    """As many floats as pages are needed; what belongs to a dataset stays together."""
    pages: list[list[str]] = []
    for part in parts:
        if pages and len(pages[-1]) + len(part) <= room:
            pages[-1] += part
        else:
            pages.append([*part])
    many = len(pages)
    return "\n\n".join(
        _float(table, places, [*heads, *lines], f" (part {place} of {many})" if many > 1 else "")
        for place, lines in enumerate(pages, 1)
    )


def _float(table: Table, places: str, lines: list[str], part: str) -> str:
    inside = [
        rf"\caption{{{latex(table.suite)}{part}. {latex(table.caption)}}}",
        r"\vspace{8pt}",
        r"\centering",
        r"\small",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",  # never enlarged
        r"\setlength\tabcolsep{3pt}",
        rf"\begin{{tabular}}{{{places}}}",
        *(f"  {line}" for line in (r"\toprule", *lines, r"\bottomrule")),
        r"\end{tabular}}",
    ]
    return "\n".join([r"\begin{table*}[t]", *(f"  {line}" for line in inside), r"\end{table*}"])


def _lines(
    pair: Sequence[Block], cells: Callable[[Number], list[str]], width: int, gaps: int = 0
) -> Iterator[str]:
    """Lines of blocks abreast; a block that lacks a policy has a gap."""
    before = None
    for lines in _aligned(pair):
        like = next(line for line in lines if line is not None)
        if like.group != before:
            yield r"\midrule"
        before = like.group
        texts = []
        for line in lines:
            numbers = [""] * width if line is None else [t for n in line.numbers for t in cells(n)]
            small = [rf"{{\scriptsize {text}}}" if text else text for text in numbers]
            texts += small if like.theirs else numbers
        texts += [""] * (gaps * width)
        name = latex(like.name)
        yield _row(rf"\quad {{\scriptsize {name}}}" if like.theirs else name, texts)


def _aligned(pair: Sequence[Block]) -> list[list[Line | None]]:
    """Lines of blocks abreast by their policy, in the order of tables; others come last."""
    known = [TITLES[name] for name in POLICIES if name in TITLES]
    found = []
    for block in pair:
        owner, mine = "", dict[tuple[Any, ...], Line]()
        for line in block.lines:
            owner = owner if line.theirs else line.name
            place = known.index(owner) if owner in known else len(known)
            mine[line.group, place, line.theirs, owner, line.name] = line
        found.append(mine)
    order = sorted(dict.fromkeys(key for mine in found for key in mine), key=lambda key: key[:3])
    return [[mine.get(key) for mine in found] for key in order]


def _title(block: Block) -> str:
    more = rf"{{\scriptsize , {latex(block.paper)}}}" if block.paper else ""
    return f"\\textsc{{{latex(block.title)}}} ($m = {block.m}, n = {block.n}$){more}"


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

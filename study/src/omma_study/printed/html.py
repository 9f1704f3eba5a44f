"""Tables of the paper, in its own layout, and both families of its figures, as one page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from omma._html import html_page, html_picture
from omma.comparison.report import by_prior, running
from omma.plots.bands import plot_family
from omma_study.printed.model import Block, Column, Line, Number, Table, by_suite, clock
from omma_study.records import Record
from omma_study.sections import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --faint: color-mix(in srgb, currentColor 62%, transparent); }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 1500px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .3rem 0; max-width: 60rem; }
th, td { padding: .12rem .5rem; text-align: right; white-space: nowrap; font-weight: normal; }
th:first-child { text-align: left; position: sticky; left: 0; background: Canvas; }
thead tr:first-child th { border-top: 2px solid; }
thead th + th { text-align: center; }
.set th { border-top: 1px solid; border-bottom: 1px solid; text-align: center; }
.rule > * { border-top: 1px solid var(--faint); }
.theirs > * { color: var(--faint); font-size: .72rem; padding-top: 0; }
.theirs th { padding-left: 1.4rem; }
.best { font-weight: bold; } .second { font-style: italic; }
small { color: var(--faint); }
img { max-width: 100%; background: white; }
"""
# Policies of the paper's figures, and Auto; each as it decides best.
SHOWN = ("baseline", "ofo", "greedy", "online_fw", "online_fw_eta", "omma", "omma_eta", "auto")
KINDS = {"running": running, "priors": by_prior}
CAPTIONS = {
    "running": "The metric so far, against the number of rows",
    "priors": "The final value with each prior λ",
}


def page(
    tables: Sequence[Table],
    pictures: Mapping[str, bytes],
    *,
    title: str = "omma: the tables of the paper",
) -> str:
    """A page that needs no other file; pictures are PNG by their captions."""
    body = [
        f'<h2>{escape(one.suite)}</h2><div class="wide" tabindex="0">{table(one)}</div>'
        for one in tables
    ]
    for caption, png in pictures.items():
        body.append(f"<h2>{escape(caption)}</h2>{html_picture(caption, png)}")
    return html_page(title, STYLE, body)


def table(given: Table) -> str:
    """One table: heads in two rows, a block for each dataset."""
    span = 2 if given.extended else 1
    above = [
        f'<th scope="colgroup" colspan="{size * span}">{escape(name)}</th>'
        for name, size in given.groups
    ]
    names = [
        f'<th scope="col" colspan="{span}">{escape(column.name)}</th>' for column in given.columns
    ]
    units = "<th>%</th><th>time (s)</th>" * len(given.columns) if given.extended else ""
    heads = [f"<th>Method</th>{''.join(above)}", f"<th></th>{''.join(names)}"]
    heads += [f"<th></th>{units}"] * bool(units)
    width = 1 + span * len(given.columns)
    rows = [row for block in given.blocks for row in _block(block, width, given.extended)]
    return (
        f"<table><caption>{escape(given.caption)}</caption>"
        f"<thead>{''.join(f'<tr>{head}</tr>' for head in heads)}</thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _block(block: Block, width: int, extended: bool) -> list[str]:
    more = f", {escape(block.paper)}" if block.paper else ""
    some = "sequence" if block.sequences == 1 else "sequences"
    head = (
        f"<b>{escape(block.title)}</b> <small>m = {block.m:,}, n = {block.n:,}{more}; "
        f"{block.sequences} {some}</small>"
    )
    rows = [f'<tr class="set"><th colspan="{width}">{head}</th></tr>']
    before: int | None = block.lines[0].group
    for line in block.lines:
        rows.append(_row(line, line.group != before, extended))
        before = line.group
    return rows


def _row(line: Line, ruled: bool, extended: bool) -> str:
    kinds = " ".join(["rule"] * ruled + ["theirs"] * line.theirs)
    cells = "".join(_cell(number, extended) for number in line.numbers)
    return f'<tr class="{kinds}"><th scope="row">{escape(line.name)}</th>{cells}</tr>'


def _cell(number: Number, extended: bool) -> str:
    mark = ("", "best", "second")[number.rank]
    value = f'<td class="{mark}">{escape(number.shown)}'
    if not extended:
        return f"{value}</td>"
    spread = _deviation(100 * number.std, "{:.2f}".format)
    slower = _deviation(number.seconds_std, clock)
    return f"{value}{spread}</td><td>{escape(number.time)}{slower}</td>"


def _deviation(value: float, say: Callable[[float], str]) -> str:
    return "" if math.isnan(value) else f" <small>± {say(value)}</small>"


def families(records: Iterable[Record]) -> dict[str, Figure]:
    """A figure for each suite and family: a row of panels for each dataset."""
    found = {}
    for suite, mine in by_suite(records).items():
        drawn = {
            "running": [one for one in mine if _developed(one)],
            "priors": mine if any(one.comparison.priors for one in mine) else [],
        }
        for kind, some in drawn.items():
            if some:
                found[f"{suite}: {CAPTIONS[kind]}"] = _family(some, kind)
    return found


def _developed(section: Section) -> bool:
    """Whether records tell more than the last value; packed ones may not."""
    cells = section.comparison.cells.values()
    return any(len(cell.rows) > 1 for cell in cells if cell.by_prior)


def _family(found: list[Section], kind: str) -> Figure:
    rows = {
        f"{one.dataset} (m = {one.m:,}, n = {one.n:,})": {
            Column.of(*one.targets[name]).full: bands
            for name, bands in one.comparison.panels(KINDS[kind], SHOWN).items()
        }
        for one in found
    }
    priors = sorted({prior for one in found for prior in one.comparison.priors})
    return plot_family(rows, priors if kind == "priors" else None)

"""Puts tables, numbers, style and script together into one file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from html import escape
from importlib import resources

from omma.study.grids import grid_of
from omma.study.page.model import model
from omma.study.records import Record
from omma.study.sections import Section, grouped, section_of
from omma.tables import MISSING, PARTIAL, Entry, Grid, duration, ranks

MARKS = ("", "best", "second")


def page(records: Iterable[Record], *, title: str = "omma: the study") -> str:
    """A page of HTML that needs no other file and no network.

    Parameters
    ----------
    records : iterable of dict
        As ``omma.study.records.read`` gives them; those that are not of a study are left out.
    title : str
        What the browser's window and the head of the page say.

    Examples
    --------
    >>> from omma.study.page import page
    >>> page([]).startswith("<!doctype html>")
    True
    """
    groups = grouped(records)
    sections = [section_of(group) for group in groups]
    models = [model(*pair) for pair in zip(sections, groups, strict=True)]
    parts = {
        "title": escape(title),
        "style": _file("style.css"),
        "script": _file("script.js"),
        "versions": escape(_versions(groups)),
        "links": "\n".join(map(_link, sections)),
        "sections": "\n".join(map(_section, sections)) or "<p>There are no finished runs.</p>",
        # "<" would let a label's name end the script.
        "models": json.dumps(models, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
    }
    # In one pass: what one part says is no place for another.
    return re.sub("<!--(\\w+)-->", lambda place: parts[place[1]], _file("page.html"))


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _versions(groups: list[list[Record]]) -> str:
    """All versions that the runs were made with."""
    every = {
        (name, version)
        for group in groups
        for record in group
        for name, version in record["versions"].items()
    }
    return ", ".join(f"{name} {version}" for name, version in sorted(every))


def _link(section: Section) -> str:
    text = escape(f"{section.suite}: {section.dataset}")
    return f'<option value="{escape(section.name)}">{text}</option>'


def _section(section: Section) -> str:
    grid = grid_of(section)
    notes = "".join(f"<p>{escape(note)}</p>" for note in grid.notes)
    return (
        f'<section id="{escape(section.name)}">\n'
        f"<h2>{escape(section.title)}<small>{escape(section.suite)}</small></h2>\n"
        f'<div class="scroll" tabindex="0">{_table(section, grid)}</div>\n'
        f'<div class="notes">{notes}</div>\n'
        '<div class="views"></div>\n</section>'
    )


def _table(section: Section, grid: Grid) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.columns)
    places = ranks(grid)
    rows = []
    for index, name in enumerate(grid.names):
        cells = "".join(
            _cell(entry, rank)
            for entry, rank in zip(grid.entries[index], places[index], strict=True)
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f"<table><caption>{escape(section.title)}, values in %</caption>"
        f'<thead><tr><th scope="col">policy</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _cell(entry: Entry, rank: int) -> str:
    if not entry.shown:
        return f'<td class="none">{escape(entry.instead or MISSING)}</td>'
    more = [] if math.isnan(entry.std) else [f"± {100 * entry.std:.2f}"]
    more += [] if math.isnan(entry.seconds) else [duration(entry.seconds)]
    value = entry.shown + (PARTIAL if entry.partial else "")
    beside = f"<br><i>{escape(entry.beside)}</i>" if entry.beside else ""
    said = escape(", ".join(more))
    return f'<td class="{MARKS[rank]}" title="{said}"><b>{value}</b>{beside}</td>'

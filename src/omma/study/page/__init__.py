"""The report as one page that works without a network: tables, and curves to look into."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from importlib import resources

from omma.plots.palette import FIXED, LEARNING, variables
from omma.study.grids import grid_of
from omma.study.page.model import model
from omma.study.records import Record
from omma.study.sections import Section, grouped, section_of
from omma.tables import to_html

__all__ = ["page"]


def page(records: Iterable[Record], *, title: str = "omma: the study") -> str:
    """A page of HTML that needs no other file and no network.

    Records that are not of a study are left out. The browser's window says ``title``, too.

    >>> page([]).startswith("<!doctype html>")
    True
    """
    groups = grouped(records)
    sections = [section_of(group) for group in groups]
    models = [model(*pair) for pair in zip(sections, groups, strict=True)]
    parts = {
        "title": escape(title),
        "style": _filled("style.css", light=variables(dark=False), dark=variables(dark=True)),
        "script": _filled("script.js", learning=str(len(LEARNING)), fixed=str(len(FIXED))),
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


def _filled(name: str, **places: str) -> str:
    """A file whose comments ``/*name*/`` are places for what is known here."""
    return re.sub(r"/\*(\w+)\*/", lambda place: places[place[1]], _file(name))


def _versions(groups: list[list[Record]]) -> str:
    """All versions that the runs were made with."""
    records = [record for group in groups for record in group]
    every = {pair for record in records for pair in record["versions"].items()}
    return ", ".join(f"{name} {version}" for name, version in sorted(every))


def _link(section: Section) -> str:
    text = escape(f"{section.suite}: {section.dataset}")
    return f'<option value="{escape(section.name)}">{text}</option>'


def _section(section: Section) -> str:
    grid = grid_of(section)
    notes = "".join(f"<p>{escape(note)}</p>" for note in grid.notes)
    table = to_html(grid, f"{section.title}, values in %")
    return (
        f'<section id="{escape(section.name)}">\n'
        f"<h2>{escape(section.title)}<small>{escape(section.suite)}</small></h2>\n"
        f'<div class="scroll" tabindex="0">{table}</div>\n'
        f'<div class="notes">{notes}</div>\n'
        '<div class="views"></div>\n</section>'
    )

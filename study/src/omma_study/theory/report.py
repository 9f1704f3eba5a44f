"""All suites of the theory: run them, and show what their records say."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omma._html import html_page, html_picture
from omma._validate import nearest
from omma.plots.frames import png_of
from omma.tables import Grid, content, tabular, to_csv, to_html, to_markdown
from omma_study.bench import Summary, perform
from omma_study.records import Record
from omma_study.theory.suite import Suite
from omma_study.theory.suites import (
    adversary,
    agreement,
    bounds,
    estimation,
    population,
    regret,
    shift,
    smoothing,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 0 auto; padding: 1rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; }
thead th { border-bottom: 1px solid; }
tbody th, thead th:first-child { font-weight: normal; text-align: left; }
img { max-width: 100%; background: white; }
"""
ALL = "theory"
_SUITES = {
    suite.name: suite
    for suite in (
        regret.SUITE,
        regret.RATIOS,
        population.SUITE,
        bounds.SUITE,
        estimation.SUITE,
        estimation.CALIBRATION,
        smoothing.SUITE,
        adversary.SUITE,
        shift.SUITE,
        agreement.SUITE,
    )
}


def suites() -> list[Suite]:
    """Every suite: its name, its title and its runs.

    >>> from omma_study.theory import suites
    >>> [suite.name for suite in suites()][:3]
    ['theory-regret', 'theory-ratios', 'theory-population']
    """
    return list(_SUITES.values())


def run(
    name: str,
    folder: str | Path,
    jobs: int | None = None,
    quick: bool = False,
    *,
    progress: bool | Callable[[int, int], None] = False,
    report: Callable[[str], None] | None = None,
) -> Summary:
    """Perform a suite and leave a record of each run.

    Runs that have a record are skipped; failed ones are tried again.

    Parameters
    ----------
    name : str
        A suite's name, or ``"theory"`` for all of them.
    folder : path
        Where records go.
    jobs : int, optional
        Runs at a time; default as many as there are processors.
    quick : bool
        Short sequences, and few: a first look.
    progress : bool or function
        Show a progress bar; a function is called a few times a second with how many runs are done,
        and how many there are to do.
    report : function, optional
        Called with a sentence when a run has failed.

    Examples
    --------
    >>> from omma_study.theory import run
    >>> print(run("theory-shift", "records-of-run", quick=True))
    8 done, 0 there before, 0 failed
    """
    if name != ALL and name not in _SUITES:
        names = (ALL, *_SUITES)
        hint = nearest(name, names) or f"; there are {', '.join(names)}"
        raise ValueError(f"unknown suite {name!r} of the theory{hint}")
    chosen = suites() if name == ALL else [_SUITES[name]]
    every = [one for suite in chosen for one in suite.jobs(quick)]
    n_jobs = jobs if jobs is not None else os.cpu_count() or 1
    return perform(every, folder, n_jobs=n_jobs, progress=progress, report=report)


def tables(records: list[Record]) -> list[Grid]:
    """Tables of what records of the theory say, suite by suite.

    ``omma.tables`` draws them: ``to_terminal``, ``to_markdown`` and others.
    """
    return [table for suite, mine in _by_suite(records) for table in suite.tables(mine)]


def figures(records: list[Record]) -> dict[str, Figure]:
    """Figures of what records of the theory say, by name."""
    found: dict[str, Figure] = {}
    for suite, mine in _by_suite(records):
        found.update(suite.figures(mine))
    return found


def report(records: list[Record]) -> dict[str, Any]:
    """Tables and figures together.

    >>> from omma_study.records import read
    >>> from omma_study.theory import report, run
    >>> _ = run("theory-shift", "records-of-theory", quick=True)
    >>> found = report(read("records-of-theory"))
    >>> len(found["tables"]), list(found["figures"])
    (1, ['shift'])
    """
    return {"tables": tables(records), "figures": figures(records)}


def text(records: list[Record], form: str) -> str:
    """Tables as ``markdown``, ``latex`` or ``csv``, or with the figures as a page of ``html``.

    >>> from omma_study.records import read
    >>> from omma_study.theory import run, text
    >>> _ = run("theory-shift", "records-of-text", quick=True)
    >>> text(read("records-of-text"), "markdown").splitlines()[0]
    "### F1 when the label's frequency shifts after half of the rows, in %"
    """
    drawn = figures(records) if form == "html" else {}
    return written(tables(records), drawn, form, title="omma: the theory")


def written(found: Sequence[Grid], figures: dict[str, Figure], form: str, *, title: str) -> str:
    """Tables in a format; a page of HTML has the figures, too, and needs no other file."""
    if form == "html":
        body = [html_picture(name, png_of(figure, dpi=110)) for name, figure in figures.items()]
        body += [f"<h2>{escape(one.title)}</h2><div>{to_html(one)}</div>" for one in found]
        return html_page(title, STYLE, body)
    if form == "csv":
        return to_csv([line for table in found for line in _numbers(table)])
    if form == "markdown":
        drawn = [f"### {one.title}\n\n{to_markdown(one, aligned=False)}\n" for one in found]
    else:
        drawn = ["\n".join([f"% {one.title}", *_latex(one), ""]) for one in found]
    return "\n".join(drawn)


def _latex(table: Grid) -> list[str]:
    return [line.strip() for line in tabular(table, aligned=False, std=False, seconds=False)]


def _numbers(table: Grid) -> Iterator[dict[str, str]]:
    """A line for each number: its table, the words of its row, its column, and the number."""
    for name, row in zip(table.names, table.entries, strict=True):
        cells = [content(entry, std=False, seconds=False) for entry in row]
        about = "; ".join([name, *cells[: table.words]])
        numbers = list(zip(table.columns, cells, strict=True))[table.words :]
        for column, value in numbers:
            yield {"table": table.title, "row": about, "column": column, "value": value}


def _by_suite(records: list[Record]) -> list[tuple[Suite, list[Record]]]:
    """Finished runs of each suite that has some, in the order in which they are planned.

    A suite may have been run both quickly and in full: then the longest runs count.
    """
    found = []
    for suite in suites():
        mine: dict[str, list[Record]] = {}
        for record in records:
            if record["suite"] == suite.name and record["result"] is not None:
                mine.setdefault(_key(record["spec"]), []).append(record)
        full, short = (
            [one for job in suite.jobs(quick) for one in mine.get(_key(job.spec), [])]
            for quick in (False, True)
        )
        if full or short:
            found.append((suite, full or short))
    return found


def _key(spec: Any) -> str:
    """A specification as text: records keep lists where plans have tuples."""
    return json.dumps(spec, sort_keys=True)

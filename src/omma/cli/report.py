"""``omma report``: a page about a journal, with its decisions, their value and each label."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import Any

import click

import omma
from omma._atomic import replacing
from omma._html import html_table
from omma.cli.learners import RecentStats
from omma.cli.options import work

MOVED = (
    "omma report makes a page of the folder of a --journal; reports of the study moved to the "
    "package omma-study: pip install omma-study, then omma-study report"
)
POINTS = 200  # of the curve
WIDTH, HEIGHT = 640, 160  # of the picture, in pixels
MOST_LABELS = 1_000  # in the table
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
td, th { padding: .1rem .8rem .1rem 0 } h1 { font-size: 1.4rem } h2 { font-size: 1.1rem }
svg { max-width: 100% } svg text { font-size: 12px; fill: currentColor }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b } }
"""


# Unknown options may be those of the study's report: they get the sentence that it moved.
@click.command("report", context_settings={"ignore_unknown_options": True})
@click.argument("places", metavar="JOURNAL", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format", "form", metavar="html", default="html", show_default=True, help="The format."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File for the page.  [default: standard output]",
)
def command(places: tuple[Path, ...], form: str, output: Path | None) -> None:
    """Make an HTML page about a journal: decisions, scores, limits and labels.

    \b
    Examples:
        omma report journal --output journal.html
    """  # noqa: D301
    from omma.online.journal import logs

    # A folder without logs may be records of the study.
    if len(places) != 1 or not logs(places[0]) or form != "html":
        raise click.UsageError(MOVED)
    with work():
        text = page(places[0])
        if output is None:
            click.echo(text, nl=not text.endswith("\n"))
            return
        with replacing(output) as file:
            file.write(text.encode("utf-8"))
    click.echo(f"Wrote {output}")


def page(folder: Path) -> str:
    """The page about a journal; it loads nothing from elsewhere."""
    from omma.online.journal import Follower

    recent, course = RecentStats(), list[tuple[float, float]]()

    def note(learner: omma.OnlineClassifier) -> None:
        recent.note(learner)
        rows = learner.state.truth.rows
        # A point for each number of labelled rows: decisions alone do not change the value.
        if learner.metric is not None and rows > 0 and (not course or rows > course[-1][0]):
            course.append((rows, float(learner.metric.value(learner.counts))))

    learner = Follower(folder).look(note)
    stats = recent.of(learner)
    numbers = [
        (name.replace("_", " "), value)
        for name, value in stats.items()
        if isinstance(value, int | float)
    ]
    numbers += [(f"refused: {name}", times) for name, times in stats["refused"].items() if times]
    parts = [
        f"<p>{escape(repr(learner.policy))}, {learner.n_labels:,} labels</p>",
        html_table("", ["", "now"], numbers, total=len(numbers), most=len(numbers)),
    ]
    if len(course) > 1:
        parts.append(f"<h2>{escape(str(stats['metric']))} since the last snapshot</h2>")
        parts.append(_curve(course))
    if stats["limits"]:
        limits = [
            (
                limit["name"],
                limit["bound"],
                "" if limit["value"] is None else limit["value"],
                limit["price"],
                "holds" if limit["holds"] else "missed",
            )
            for limit in stats["limits"]
        ]
        head = ["limit", "bound", "value", "price", ""]
        parts += ["<h2>Limits</h2>", html_table("", head, limits, total=len(limits), most=99)]
    head = ["label", "occurred", "predicted", "hits", "precision", "recall"]
    head += ["threshold"] if learner.policy.budget is None else []
    m = learner.n_labels
    parts += ["<h2>Labels</h2>", html_table("", head, _labels(learner), total=m, most=MOST_LABELS)]
    title = escape(folder.name)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>"
        f"<body><h1>{title}</h1>{''.join(parts)}</body></html>\n"
    )


def _labels(learner: omma.OnlineClassifier) -> list[tuple[Any, ...]]:
    """A row for each label: counts, precision, recall, and without a budget its threshold."""
    counts, m = learner.counts, min(MOST_LABELS, learner.n_labels)
    columns: list[Any] = [learner.names or [*map(str, range(m))]]
    columns += [counts.positive.tolist(), counts.predicted.tolist(), counts.tp.tolist()]
    for whole in (counts.predicted.tolist(), counts.positive.tolist()):
        hits = zip(counts.tp.tolist(), whole, strict=True)
        columns.append([tp / n if n > 0 and math.isfinite(n) else "" for tp, n in hits])
    if learner.policy.budget is None:
        columns.append(learner.rule.thresholds.tolist())
    return [*zip(*(column[:m] for column in columns), strict=True)]


def _curve(course: list[tuple[float, float]]) -> str:
    """The value of the metric over time as a line in SVG."""
    points = [*course[:: max(1, len(course) // POINTS)], course[-1]]
    first, last = points[0][0], points[-1][0]
    low, high = min(value for _, value in points), max(value for _, value in points)
    line = " ".join(
        f"{50 + (rows - first) / max(last - first, 1.0) * (WIDTH - 60):.1f},"
        f"{10 + (high - value) / max(high - low, 1e-9) * (HEIGHT - 40):.1f}"
        for rows, value in points
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img">'
        f'<polyline points="{line}" fill="none" stroke="#3b6fb6" stroke-width="2"/>'
        f'<text x="0" y="14">{high:.4f}</text><text x="0" y="{HEIGHT - 26}">{low:.4f}</text>'
        f'<text x="50" y="{HEIGHT - 6}">{first:,.0f}</text>'
        f'<text x="{WIDTH - 10}" y="{HEIGHT - 6}" text-anchor="end">{last:,.0f} rows with labels'
        "</text></svg>"
    )

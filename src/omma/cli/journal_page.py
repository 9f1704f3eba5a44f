"""A page about a journal: what was decided, what it was worth, and each label."""

import math
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from omma._html import html_page, html_table
from omma.cli.looks import Looks
from omma.online import OnlineClassifier
from omma.online.journal import Follower

POINTS = 200  # of the course that is drawn
WIDE, HIGH = 640, 160
MOST = 1_000  # labels in the table
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
td, th { padding: .1rem .8rem .1rem 0 } h1 { font-size: 1.4rem } h2 { font-size: 1.1rem }
svg { max-width: 100% } svg text { font-size: 12px; fill: currentColor }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b } }
"""


def page(folder: Path) -> str:
    """The page, whole, with nothing loaded from elsewhere."""
    looks, course = Looks(), list[tuple[float, float]]()

    def note(learner: OnlineClassifier) -> None:
        looks.note(learner)
        rows = learner.state.truth.rows
        if learner.metric is not None and rows > 0 and (not course or rows > course[-1][0]):
            course.append((rows, float(learner.metric.value(learner.counts))))

    learner = Follower(folder).look(note)
    stats = looks.stats(learner)
    refused = {f"refused: {name}": n for name, n in stats["refused"].items() if n}
    plain = {name: one for name, one in stats.items() if isinstance(one, int | float)} | refused
    numbers = [(name.replace("_", " "), one) for name, one in plain.items()]
    parts = [
        f"<p>{escape(repr(learner.policy))}, {learner.n_labels:,} labels</p>",
        html_table("", ["", "now"], numbers, total=len(numbers), most=len(numbers)),
    ]
    if len(course) > 1:
        parts += [
            f"<h2>{escape(str(stats['metric']))} since the last snapshot</h2>",
            _curve(course),
        ]
    if stats["limits"]:
        parts += ["<h2>Limits</h2>", _limits(stats["limits"])]
    parts += ["<h2>Labels</h2>", _labels(learner)]
    return html_page(folder.name, STYLE, parts)


def _curve(course: list[tuple[float, float]]) -> str:
    """The metric so far, as a line."""
    some = course[:: max(1, len(course) // POINTS)]
    x, y = np.array([*some, course[-1]]).T
    low, high = float(y.min()), float(y.max())
    room = max(high - low, 1e-9)
    across = 50 + (x - x[0]) / max(x[-1] - x[0], 1.0) * (WIDE - 60)
    down = 10 + (high - y) / room * (HIGH - 40)
    points = " ".join(f"{one:.1f},{two:.1f}" for one, two in zip(across, down, strict=True))
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" role="img">'
        f'<polyline points="{points}" fill="none" stroke="#3b6fb6" stroke-width="2"/>'
        f'<text x="0" y="14">{high:.4f}</text><text x="0" y="{HIGH - 26}">{low:.4f}</text>'
        f'<text x="50" y="{HIGH - 6}">{x[0]:,.0f}</text>'
        f'<text x="{WIDE - 10}" y="{HIGH - 6}" text-anchor="end">{x[-1]:,.0f} rows with labels'
        "</text></svg>"
    )


def _limits(limits: list[dict[str, Any]]) -> str:
    rows = [
        (one["name"], one["bound"], "" if one["value"] is None else one["value"], one["price"],
         "holds" if one["holds"] else "missed")
        for one in limits
    ]  # fmt: skip
    return html_table("", ["limit", "bound", "value", "price", ""], rows, total=len(rows), most=99)


def _labels(learner: OnlineClassifier) -> str:
    head = ["label", "occurred", "predicted", "hits", "precision", "recall"]
    thresholds = learner.policy.budget is None
    rows = list(_rows(learner, thresholds))
    if thresholds:
        head.append("threshold")
    return html_table("", head, rows, total=learner.n_labels, most=MOST)


def _rows(learner: OnlineClassifier, thresholds: bool) -> Iterator[tuple[Any, ...]]:
    counts, cuts = learner.counts, learner.rule.thresholds if thresholds else ()
    names = learner.names or tuple(map(str, range(learner.n_labels)))
    for j in range(min(MOST, learner.n_labels)):
        tp, predicted, positive = counts.tp[j], counts.predicted[j], counts.positive[j]
        rates = (_share(tp, predicted), _share(tp, positive))
        row = (names[j], float(positive), float(predicted), float(tp), *rates)
        yield (*row, float(cuts[j])) if thresholds else row


def _share(part: float, whole: float) -> Any:
    return float(part / whole) if whole > 0 and math.isfinite(whole) else ""

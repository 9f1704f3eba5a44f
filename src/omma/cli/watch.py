"""``omma watch``: a learner at work, live in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import omma
from omma._json import parse_json
from omma._validate import shown
from omma.cli.learners import RecentStats
from omma.cli.options import token_option, work

if TYPE_CHECKING:
    from rich.console import Group

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # values in the line of recent values
SECONDS = 5.0  # for a service to answer
# Anybody may answer at an address: larger answers, names, tables and numbers are refused.
MOST_BYTES = 10_000_000
LONGEST = 1_000  # signs of a name, and rows of a table
GREATEST = 1e15
# Numbers among the stats by their keys, with their titles.
COUNTS = {
    "labels": "rows with labels",
    "rows": "rows looked at",
    "decided": "decided by id",
    "waiting": "waiting for labels",
    "dropped": "forgotten",
}
VALUES = {
    "value": "so far",
    "recent_value": "recent rows",
    "window_value": "rows looked at",
    "calibration_error": "calibration error",
}


@click.command("watch")
@click.argument("place", metavar="PLACE")
@click.option(
    "--every",
    "seconds",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between updates.",
)
@click.option("--once", is_flag=True, help="Print once and exit.")
@token_option("The token of a service that requires one.")
def command(place: str, seconds: float, once: bool, token: str) -> None:
    """Watch a learner: the folder of a --journal, a saved --state, or the address of a service.

    A journal is read as it is written, and is not changed. Recent values are over the last complete
    1,000 labelled rows. Ctrl-C stops.

    \b
    Examples:
        omma watch served/
        omma watch http://127.0.0.1:8765
        omma watch learner.npz --once
    """  # noqa: D301
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with work():
        look = stats_reader(place, token)
        course: list[float] = []
        if once:
            console.print(view(place, look(), course))
            return
        with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
            try:
                while True:
                    live.update(view(place, look(), course), refresh=True)
                    time.sleep(seconds)
            except KeyboardInterrupt:
                return


def stats_reader(place: str, token: str) -> Callable[[], dict[str, Any]]:
    """A function that reads the present stats of a service, a journal or a saved learner."""
    if place.startswith(("http://", "https://")):
        return lambda: _stats_of_service(place.rstrip("/") + "/stats", token)
    from omma.online.journal import Follower

    recent, path = RecentStats(), Path(place)
    if path.is_dir():
        follower = Follower(path)
        return lambda: recent.of(follower.look(recent.note))
    if not path.exists():
        raise ValueError(f"{place} is no journal, no saved learner and no address of a service")
    return lambda: recent.of(omma.OnlineClassifier.load(path))


def _stats_of_service(address: str, token: str) -> dict[str, Any]:
    """The stats of a service; an error quotes its answer if it refuses."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        request = Request(address)
        if token:  # a server that it is redirected to must not get it
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            answer = urlopen(request, timeout=SECONDS)
        except HTTPError as error:
            answer = error  # it has a status and a body, too
        with answer:
            status, text = answer.status, answer.read(MOST_BYTES)
    except (OSError, HTTPException, ValueError) as error:
        raise ValueError(f"{address} does not answer: {shown(str(error), 200)}") from error
    if status != 200:
        raise ValueError(
            f"{address} answered {status}: {shown(text.decode(errors='replace'), 200)}"
        )
    content = parse_json(address, text)
    if not _fits(content, SCHEMA):
        raise ValueError(f"{address} is no service of omma: expected stats as of GET /stats")
    return dict(content)


def _fits(content: Any, schema: Any) -> bool:
    """Whether content agrees with a schema, and is small enough to be shown.

    A schema is one or more of number, text and null with | between; a list with the schema of its
    rows; or a dictionary with the schema of each key, where the key "" stands for all keys.
    """
    if isinstance(schema, dict):
        if "" in schema and isinstance(content, dict):
            schema = dict.fromkeys(content, schema[""])
        return isinstance(content, dict) and all(
            key in content and _fits(content[key], kind) for key, kind in schema.items()
        )
    if isinstance(schema, list):
        is_table = isinstance(content, list) and len(content) <= LONGEST
        return is_table and all(_fits(row, schema[0]) for row in content)
    is_number = type(content) in (int, float) and abs(content) < GREATEST
    is_text = isinstance(content, str) and len(content) <= LONGEST
    kind = "null" if content is None else "number" if is_number else "text" if is_text else ""
    return kind in schema.split("|")


VALUE = "null|number"
SCHEMA = {
    **dict.fromkeys(COUNTS, "number"),
    **dict.fromkeys(VALUES, VALUE),
    "metric": "null|text",
    "refused": {"": "number"},
    "limits": [{"name": "text", "bound": "number", "value": VALUE, "price": "number"}],
    "moved": [{"label": "text|number", "before": "number", "now": "number"}],
}


def view(place: str, stats: dict[str, Any], course: list[float]) -> Group:
    """The stats as tables. ``course`` has the values of earlier calls; this one is appended."""
    from rich.console import Group
    from rich.table import Table

    title = f"[bold]{_plain(place)}[/bold]  {_plain(stats['metric'] or 'no metric')}"
    counts = [(text, stats[key]) for key, text in COUNTS.items()]
    counts.append(("refused", sum(stats["refused"].values())))
    values = [(text, f"{stats[key]:.4f}") for key, text in VALUES.items() if stats[key] is not None]
    numbers = Table.grid(padding=(0, 2))
    for _ in range(2):
        numbers.add_column(style="dim")
        numbers.add_column(justify="right", min_width=9)
    for (text, count), value in zip_longest(counts, values, fillvalue=("", "")):
        # Counts are sums of weights, which may be fractions.
        digits = 0 if float(count).is_integer() else 1
        numbers.add_row(text, f"{count:,.{digits}f}", *value)
    parts: list[Any] = [title, "", numbers]
    value = stats["value"] if stats["recent_value"] is None else stats["recent_value"]
    course += [] if value is None else [value]
    del course[:-WIDTH]
    if course:
        parts += ["", f"recent  {bars(course)}  {course[-1]:.4f}"]
    limits = [
        (
            _plain(limit["name"]),
            f"{limit['bound']:g}",
            "" if limit["value"] is None else f"{limit['value']:.4f}",
            f"{limit['price']:.3g}",
            "holds" if limit.get("holds") else "[bold]missed[/bold]",
        )
        for limit in stats["limits"]
    ]
    moved = [
        (_plain(str(label["label"])), f"{label['before']:.4f}", f"{label['now']:.4f}")
        for label in stats["moved"]
    ]
    for head, rows in (
        (("limit", "bound", "value", "price", ""), limits),
        (("threshold of", "before", "now"), moved),
    ):
        if rows:
            table = Table(*head, box=None)
            for row in rows:
                table.add_row(*row)
            parts += ["", table]
    return Group(*parts)


def bars(values: list[float]) -> str:
    """Values as bars of text.

    >>> bars([0.1, 0.2, 0.3])
    '▁▅█'
    """
    low, high = min(values), max(values)
    step = (high - low) / (len(BARS) - 1)
    return "".join(BARS[0 if step == 0 else round((value - low) / step)] for value in values)


def _plain(text: str) -> str:
    r"""Text without control characters and without the markup of rich.

    >>> print(_plain("\x1b[2Jred"))
    \x1b[2Jred
    """
    from rich.markup import escape

    return escape("".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text))

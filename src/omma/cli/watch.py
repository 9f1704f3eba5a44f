"""``omma watch``: a learner at work, live in a terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omma._validate import shown
from omma.cli.options import file_option, read_token, work

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # looks that the course shows
SECONDS = 5.0  # for a service to answer
MOST = 10_000_000  # bytes of an answer
LONGEST = 1_000  # signs of a name, and rows of a table
GREATEST = 1e15  # numbers that can be shown
# What each number is called.
COUNTS = (
    ("labels", "rows with labels"),
    ("rows", "rows looked at"),
    ("decided", "decided by id"),
    ("waiting", "waiting for labels"),
    ("dropped", "forgotten"),
)
VALUES = (
    ("value", "so far"),
    ("recent_value", "recent rows"),
    ("window_value", "rows looked at"),
)


@click.command("watch")
@click.argument("place", metavar="PLACE")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between two looks.",
)
@click.option("--once", is_flag=True, help="Look once, print, and end.")
@file_option("--token-file", "FILE", "The token of a service that asks for one.")
def command(place: str, every: float, once: bool, token_file: Path | None) -> None:
    """Watch a learner: the folder of a --journal, a saved --state, or the address of a service.

    A journal is read as it is written, and nothing in it is changed. Recent is the last 1,000
    labelled rows that are complete. Ctrl-C ends it.

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
        look = looker(place, None if token_file is None else read_token(token_file))
        course: list[float] = []
        if once:
            console.print(view(place, look(), course))
            return
        with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
            try:
                while True:
                    live.update(view(place, look(), course), refresh=True)
                    time.sleep(every)
            except KeyboardInterrupt:
                return


def looker(place: str, token: str | None = None) -> Callable[[], dict[str, Any]]:
    """What gives the present stats of whatever is at a place, each time that it is called."""
    if place.startswith(("http://", "https://")):
        return lambda: _asked(place.rstrip("/") + "/stats", token)
    from omma.cli.looks import Looks
    from omma.online import OnlineClassifier

    looks, path = Looks(), Path(place)
    if path.is_dir():
        from omma.online.journal import Follower

        follower = Follower(path)
        return lambda: looks.stats(follower.look(looks.note))
    if not path.exists():
        raise ValueError(f"{place} is no journal, no saved learner and no address of a service")
    return lambda: looks.stats(OnlineClassifier.load(path))


def _asked(address: str, token: str | None) -> dict[str, Any]:
    """The stats of a service, which may be anybody's; its own sentence where it refuses."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        request = Request(address)
        if token is not None:  # not for whoever it may be redirected to
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            answer = urlopen(request, timeout=SECONDS)
        except HTTPError as error:
            answer = error  # an answer as well
        with answer:
            status, text = answer.status, answer.read(MOST)
    except (OSError, HTTPException, ValueError) as error:
        raise ValueError(f"{address} does not answer: {shown(str(error), 200)}") from error
    if status != 200:
        said = text.decode(errors="replace")
        raise ValueError(f"{address} answered {status}: {shown(said, 200)}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{address} is no service of omma: expected JSON") from error
    if not _are_stats(content):
        raise ValueError(f"{address} is no service of omma: expected stats as of GET /stats")
    return dict(content)


def _are_stats(content: Any) -> bool:
    """Whether these are the stats of a learner, of a size that can be shown."""
    return (
        isinstance(content, dict)
        and all(_is_number(content.get(key)) for key, _ in COUNTS)
        and all(_is_value(content.get(key, "")) for key, _ in VALUES)
        and _is_value(content.get("calibration_error", ""))
        and (content.get("metric", 0) is None or _is_text(content["metric"]))
        and isinstance(content.get("refused"), dict)
        and all(map(_is_number, content["refused"].values()))
        and _is_table(
            content.get("limits"),
            {"name": _is_text, "bound": _is_number, "value": _is_value, "price": _is_number},
        )
        and _is_table(
            content.get("moved"),
            {
                "label": lambda label: _is_text(label) or _is_number(label),
                "before": _is_number,
                "now": _is_number,
            },
        )
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < GREATEST


def _is_value(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST


def _is_table(rows: Any, columns: dict[str, Callable[[Any], bool]]) -> bool:
    return (
        isinstance(rows, list)
        and len(rows) <= LONGEST
        and all(
            isinstance(row, dict)
            and all(name in row and is_sound(row[name]) for name, is_sound in columns.items())
            for row in rows
        )
    )


def view(place: str, stats: dict[str, Any], course: list[float]) -> Group:
    """What is shown of one look; ``course`` has the values of those before, and gets this one."""
    from rich.console import Group

    value = stats["value"] if stats["recent_value"] is None else stats["recent_value"]
    if value is not None:
        course.append(value)
        del course[:-WIDTH]
    parts: list[Any] = [
        f"[bold]{_plain(place)}[/bold]  {_plain(stats['metric'] or 'no metric')}",
        "",
    ]
    parts.append(_numbers(stats))
    if course:
        parts += ["", f"recent  {bars(course)}  {course[-1]:.4f}"]
    if stats["limits"]:
        parts += ["", _limits(stats["limits"])]
    if stats["moved"]:
        parts += ["", _moved(stats["moved"])]
    return Group(*parts)


def bars(values: list[float]) -> str:
    """A course as bars of text, from the least to the greatest.

    >>> bars([0.1, 0.2, 0.3])
    '▁▅█'
    """
    low, high = min(values), max(values)
    step = (high - low) / (len(BARS) - 1)
    return "".join(BARS[0 if step == 0 else round((one - low) / step)] for one in values)


def _numbers(stats: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    refused = sum(stats["refused"].values())
    counts = [(text, _count(stats[key])) for key, text in COUNTS]
    counts.append(("refused", _count(refused)))
    values = [(text, f"{stats[key]:.4f}") for key, text in VALUES if stats[key] is not None]
    if stats["calibration_error"] is not None:
        values.append(("calibration error", f"{stats['calibration_error']:.4f}"))
    values += [("", "")] * (len(counts) - len(values))
    for _ in range(2):
        table.add_column(style="dim")
        table.add_column(justify="right", min_width=9)
    for first, second in zip(counts, values, strict=False):
        table.add_row(*first, *second)
    return table


def _limits(limits: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table("limit", "bound", "value", "price", "", box=None)
    for one in limits:
        value = "" if one["value"] is None else f"{one['value']:.4f}"
        held = "holds" if one.get("holds") else "[bold]missed[/bold]"
        table.add_row(_plain(one["name"]), f"{one['bound']:g}", value, f"{one['price']:.3g}", held)
    return table


def _moved(moved: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table("threshold of", "before", "now", box=None)
    for one in moved:
        table.add_row(_plain(str(one["label"])), f"{one['before']:.4f}", f"{one['now']:.4f}")
    return table


def _plain(text: str) -> str:
    r"""Text that does nothing to a terminal.

    >>> print(_plain("\x1b[2Jred"))
    \x1b[2Jred
    """
    from rich.markup import escape

    return escape("".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text))


def _count(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"

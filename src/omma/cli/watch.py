"""``omma watch``: a learner at work, live in a terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omma.cli.options import work

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # looks that the course shows
SECONDS = 5.0  # for a service to answer
MOST = 10_000_000  # bytes of an answer
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
def command(place: str, every: float, once: bool) -> None:
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
        look = looker(place)
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


def looker(place: str) -> Callable[[], dict[str, Any]]:
    """What gives the present stats of whatever is at a place, each time that it is called."""
    if place.startswith(("http://", "https://")):
        return lambda: _asked(place.rstrip("/") + "/stats")
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


def _asked(address: str) -> dict[str, Any]:
    """What a service answers; its own sentence where it refuses."""
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=SECONDS) as answer:
            content = json.loads(answer.read(MOST))
    except HTTPError as error:
        with error:
            said = error.read(1_000).decode(errors="replace")
        raise ValueError(f"{address} answered {error.code}: {said}") from error
    except (URLError, TimeoutError) as error:
        raise ValueError(f"{address} does not answer: {error}") from error
    if not isinstance(content, dict) or "refused" not in content:
        raise ValueError(f"{address} is no service of omma")
    return content


def view(place: str, stats: dict[str, Any], course: list[float]) -> Group:
    """What is shown of one look; ``course`` has the values of those before, and gets this one."""
    from rich.console import Group

    value = stats["value"] if stats["recent_value"] is None else stats["recent_value"]
    if value is not None:
        course.append(value)
        del course[:-WIDTH]
    parts: list[Any] = [f"[bold]{_plain(place)}[/bold]  {stats['metric'] or 'no metric'}", ""]
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
        held = "holds" if one["holds"] else "[bold]missed[/bold]"
        table.add_row(_plain(one["name"]), f"{one['bound']:g}", value, f"{one['price']:.3g}", held)
    return table


def _moved(moved: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table("threshold of", "before", "now", box=None)
    for one in moved:
        table.add_row(_plain(str(one["label"])), f"{one['before']:.4f}", f"{one['now']:.4f}")
    return table


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _count(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"

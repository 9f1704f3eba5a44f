"""``omma stream``: rows come in, decisions go out, one at a time."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from omma.cli.learners import Asked, Keeper, deciding_options, keeping_options
from omma.cli.options import raw_cells_option, say

if TYPE_CHECKING:
    from omma.cli.readers import Lines
    from omma.cli.streaming import Stream

SKIPPED = 3  # the code of a stream with lines that could not be read


@click.command("stream")
@click.argument("file", type=click.Path(allow_dash=True), default="-")
@deciding_options()
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "tsv", "json"]),
    help="What lines are.  [default: what the first one looks like]",
)
@click.option(
    "--n-labels",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many labels there are; rows of other lengths are refused. Needed where CSV has no "
    "names of columns but labels too.  [default: as many as the first row has]",
)
@click.option(
    "--id", "id_column", metavar="NAME", help="The column that names rows.  [default: id]"
)
@click.option("--column", metavar="NAME", help="Take one column of probabilities from CSV.")
@keeping_options("lines")
@click.option("--strict", is_flag=True, help="Stop at a line that cannot be read.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines with the metric so far.")
@raw_cells_option
@click.pass_context
def command(
    ctx: click.Context,
    file: str,
    asked: Asked,
    form: str | None,
    n_labels: int | None,
    id_column: str | None,
    column: str | None,
    strict: bool,
    as_json: bool,
    raw_cells: bool,
) -> None:
    """Decide rows as they come, from a file or standard input, and learn from their labels.

    Each decision is written as soon as its row was read; memory does not grow. A line that cannot
    be read is skipped with a sentence, wherever it stands, and changes nothing.

    CSV: a column of probabilities for each label; y_NAME beside NAME has its labels, or one
    column y the class; a column id names rows. JSON lines: {"id": "a", "eta": [0.9, 0.2], "y": [1,
    0]}, or by names: {"eta": {"sport": 0.9, "art": 0.2}, "y": ["sport"]}; where labels have names,
    --json tells those decided as "labels". Where the truth comes later, the row comes without y
    first, and its id with y later (in CSV with empty cells for the probabilities). Rows that wait
    are part of --state; a line may also bring its "decision" along, as --json wrote it: {"y": [1,
    0], "decision": [1, 1]}. One stream at a time may use a --state or a --journal; with the latter
    nothing is lost if the process is killed, wherever it was.

    \b
    Examples:
        omma stream rows.csv --metric macro_f1 > decisions.csv
        tail -f rows.jsonl | omma stream --metric macro_recall -k 3 \\
            --state learner.npz --save-every 1000 --json

    \b
    Exit codes: 0 done, 1 the work failed or a line stopped --strict, 2 bad usage,
    3 done, but lines were skipped, 130 and 143 stopped by Ctrl-C or termination.
    The state is saved in all cases but 2.
    """  # noqa: D301
    keeper = Keeper(ctx, asked)
    if file != "-" and (not Path(file).exists() or Path(file).is_dir()):
        raise click.BadParameter(f"'{file}' is not a file.", param_hint="FILE")

    from omma.cli.readers import Lines
    from omma.cli.streaming import Kept, Stream

    with keeper.working("another omma stream"):
        kept = Kept(keeper.begun, asked.state, asked.save_every)
        stream = Stream(sys.stdout, keeper.make, as_json, say, keeper.found(), kept, raw_cells)
        if stream.learner is not None and column is None:
            n_labels = n_labels or stream.learner.n_labels
        with _opened(file) as source:
            reader = Lines(form, n_labels, id_column, column, stream.names)
            code = _run(stream, source, reader, strict)
    ctx.exit(code)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    """The bytes of a file, compressed or not, or of standard input."""
    if file == "-":
        yield sys.stdin.buffer
        return
    from omma.datasets.text import DAMAGED, opened_bytes

    with opened_bytes(Path(file)) as source:
        try:
            yield source
        except DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"{file} is damaged: {error}") from error


class StoppedError(Exception):
    """Somebody asked to stop; ``code`` is what the process ends with, as shells expect it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.code = 128 + number


class Interrupts:
    """While it is entered, signals stop the loop over ``between`` only while it waits.

    So whatever is saved afterwards has each row wholly or not at all.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._number: int | None = None
        self._waits = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._number = number
        if self._waits:
            raise StoppedError(number)

    def between(self, lines: Iterator[bytes | None]) -> Iterator[bytes | None]:
        """The lines, unless somebody asked to stop before the next one."""
        while True:
            self._waits = True
            if self._number is not None:
                raise StoppedError(self._number)
            try:
                line = next(lines)
            except StopIteration:
                return
            finally:
                self._waits = False
            yield line


def _run(stream: Stream, source: BinaryIO, reader: Lines, strict: bool) -> int:
    """Take every line; whatever ends it, the learner is saved. The exit code is returned."""
    from omma.cli.lines import bounded

    skipped, quiet = 0, False
    try:
        with Interrupts() as interrupts:
            for bad in _taken(stream, interrupts.between(bounded(source)), reader):
                say(bad)
                skipped += 1
                if strict:
                    return 1
        return SKIPPED if skipped else 0
    except StoppedError as stopped:
        say(f"{stopped}".capitalize() + ".")
        return stopped.code
    except BrokenPipeError:
        # Nobody reads any more; what Python would still write at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        quiet = True
        return 0
    finally:
        stream.save()
        if not quiet:
            say(stream.summary(skipped))
            for limit in () if stream.learner is None else stream.learner.limits:
                say(f"{limit}.")
            if stream.unlearned is not None:
                say(stream.unlearned)


def _taken(stream: Stream, lines: Iterable[bytes | None], reader: Lines) -> Iterator[str]:
    """Take lines; a sentence comes out for each that could not be read."""
    from omma.cli.lines import StopStreamError

    for number, text in enumerate(lines, start=1):
        try:
            line = reader.read(text)
            if line is not None:
                stream.take(line, reader.names)
                reader.accept()
        except StopStreamError as error:
            raise ValueError(f"line {number}: {error}") from error
        except (ValueError, TypeError) as error:
            try:
                said = reader.refuse(error)
            except StopStreamError as stop:
                raise ValueError(f"line {number}: {stop}") from stop
            yield f"line {number}: {said}"
        if reader.withdrawn:
            yield f"line {number} begins anew: what seemed to be names of columns before it is none"
        stream.count(1)

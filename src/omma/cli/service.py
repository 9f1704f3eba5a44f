"""What ``omma serve`` does, whatever carries it: rows in, decisions out, labels by id."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from omma.cli.json_lines import JsonLines
from omma.cli.lines import Line, Names
from omma.cli.looks import Looks
from omma.cli.options import say
from omma.cli.streaming import Keeping, Kept, Make, answered, check_labels, check_row_width
from omma.online import OnlineClassifier

MAX_VALUES = 500_000  # rows x labels of a request
LEAST = 100  # labels that a row counts for at least, as a row of few labels takes time as well
CHUNK = 100  # rows between which other requests are answered

Item = TypeVar("Item")
Result = TypeVar("Result")


class NothingYetError(LookupError):
    """A question about a learner that the first row has not begun yet."""


class TooManyValuesError(ValueError):
    """A request of more rows x labels than allowed."""


class Service(Keeping):
    """A learner that answers requests, each as JSON objects; it holds no connection.

    Rows and labels are those of ``omma stream``: ``{"id": "a", "eta": [0.9, 0.2]}``, later
    ``{"id": "a", "y": [1, 0]}``, or lists of these. A list is taken as a whole or not at all.
    Reading a list gives way to other requests after each ``CHUNK`` rows; the learner then takes all
    rows in one call.

    Rows may name labels by numbers if ``n_labels`` is known before.
    """

    def __init__(
        self,
        make: Make,
        learner: OnlineClassifier | None = None,
        n_labels: int | None = None,
        kept: Kept | None = None,
        max_values: int = MAX_VALUES,
    ) -> None:
        super().__init__(make, learner, kept)
        self.n_labels = n_labels if learner is None else learner.n_labels
        self.max_values = max_values
        self.unsaved: str | None = None  # why the state could not be saved last time
        self._reader = JsonLines(self.n_labels, self.names, settled=learner is not None)
        self._looks = Looks()

    async def decide(self, content: Any) -> Any:
        """Decide a row or a list of rows; those with an id wait for their labels."""
        learner = self.learner
        lines, names = await self._read(content, _check_eta)
        if learner is not self.learner:  # another request began the learner between two chunks
            learner = self.learner
            lines, names = await self._read(content, _check_eta)
        keys = [line.id for line in lines if line.id is not None]
        if len(keys) not in (0, len(lines)):
            raise ValueError(
                f"expected ids for all rows or for none, got {len(keys)} for {len(lines)} rows"
            )
        rows = [line.eta for line in lines if line.eta is not None]
        if learner is None:
            learner = self.make(len(rows[0]), names)
        for row in rows:
            check_row_width(learner, "probabilities", row)
        if len(rows) == 1:
            decisions = learner.predict(rows[0], id=keys[0] if keys else None)
        else:
            decisions = learner.predict(np.stack(rows), ids=keys or None)
        if self.learner is None:
            self.begin(learner)
            self._reader = JsonLines(learner.n_labels, self.names, settled=True)
        if keys:
            self.count(len(lines))
        pairs = [*zip(keys or [None] * len(rows), decisions.reshape(len(rows), -1), strict=True)]
        answers = await _each(lambda pair: answered(*pair, learner.names), pairs)
        return answers if isinstance(content, list) else answers[0]

    async def label(self, content: Any) -> dict[str, int]:
        """Learn the labels of a row or of a list of rows, by their ids."""
        learner = self._known()
        lines, _ = await self._read(content, _check_y)
        rows = await _each(lambda line: _indicators(learner, line.y), lines)
        if len(lines) == 1:
            learner.update(rows[0], id=lines[0].id)
        else:
            learner.update(np.stack(rows), ids=[line.id for line in lines])
        self.count(len(lines))
        self._looks.note(learner)
        return {"learned": len(lines)}

    async def _read(
        self, content: Any, check: Callable[[Line], None]
    ) -> tuple[list[Line], Names | None]:
        """The rows of a request, and the names of labels; too many are refused unread."""
        rows = content if isinstance(content, list) else [content]
        if not rows:
            raise ValueError("expected at least one row, got an empty list")
        reader = self._reader
        if self.learner is None:  # names of labels in a row that is refused are forgotten
            reader = JsonLines(self.n_labels)

        def read(row: Any) -> Line:
            line = reader.line(row)
            check(line)
            return line

        first = read(rows[0])  # which may be what says how many labels there are
        m = reader.n_labels or (0 if first.eta is None else len(first.eta))
        if len(rows) > 1 and len(rows) * max(m, LEAST) > self.max_values:
            raise TooManyValuesError(
                f"expected rows x labels of at most {self.max_values:,} (--max-values), where a "
                f"row counts for at least {LEAST} labels, got {len(rows):,} rows of {m:,} labels; "
                "send fewer rows at once"
            )
        return [first, *await _each(read, rows[1:])], reader.names

    def count(self, rows: int) -> None:
        """As ever; rows that are counted are answered, whether or not saving fails."""
        try:
            super().count(rows)
            self.unsaved = None
        except OSError as error:
            if self.unsaved is None:
                say(f"The state was not saved: {error}. This is tried again after the next rows.")
            self.unsaved = f"counted, but the state was not saved: {error}"

    def rule(self) -> str:
        """The rule by which the next row would be decided, as JSON."""
        return str(self._known().rule.to_json())

    def stats(self) -> dict[str, Any]:
        """How it goes; recent values are of the last 1,000 labelled rows that are complete."""
        return self._looks.stats(self._known())

    def _known(self) -> OnlineClassifier:
        if self.learner is None:
            raise NothingYetError("no row has come yet: how many labels there are is not known")
        return self.learner


def warm_up(learner: OnlineClassifier) -> None:
    """Ask a learner, which is not used further, all that clients may ask: so all is compiled."""
    two_rows = 2 * max(learner.n_labels, LEAST)
    service = Service(lambda m, names: learner, learner, max_values=two_rows)
    asyncio.run(_ask_everything(service))


async def _ask_everything(service: Service) -> None:
    learner = service._known()
    m = learner.n_labels
    row = [0.5] * m
    # States before and after the first labels, and after partly known ones, have code of their own.
    rest: list[Any] = [0, 0]
    if m > 1 and learner.policy.whole_rows(learner.metric) is None:
        rest += [None, 0]
    for number, other in enumerate(rest):
        y = [1] + [other] * (m - 1)
        single, *several = (f"{number} {place}" for place in range(3))
        await service.decide({"eta": row})
        await service.decide({"id": single, "eta": row})
        await service.decide([{"id": key, "eta": row} for key in several])
        await service.label({"id": single, "y": y})
        await service.label([{"id": key, "y": y} for key in several])
        service.stats()
        service.rule()


async def _each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The function of each item; other requests are answered between chunks."""
    results: list[Result] = []
    for start in range(0, len(items), CHUNK):
        if start:
            await asyncio.sleep(0)
        results += map(function, items[start : start + CHUNK])
    return results


def _check_eta(line: Line) -> None:
    if line.eta is None or line.y is not None or line.decision is not None:
        raise ValueError("expected rows with eta, and without y or decision")


def _check_y(line: Line) -> None:
    if line.id is None or line.y is None or line.eta is not None:
        raise ValueError("expected labels with id and y, and without eta")


def _indicators(learner: OnlineClassifier, y: Any) -> NDArray[np.float64]:
    """One row of zeros and ones; a class id is that of its only label."""
    check_labels(learner, y)
    m = learner.n_labels
    if not isinstance(y, int) or m == 1:
        return np.asarray(y, dtype=np.float64).reshape(m)
    row = np.zeros(m)
    row[y] = 1.0
    return row

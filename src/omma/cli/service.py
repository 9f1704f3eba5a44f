"""The work of ``omma serve``, apart from HTTP: rows in, decisions out, labels by id."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import omma
from omma.cli.learners import LearnerKeeper, RecentStats
from omma.cli.options import say
from omma.cli.streaming import as_answer, label_row
from omma.datasets.json_lines import JsonLines, Line, Names

LEAST = 100  # a row counts as at least so many labels: rows of few labels take time as well
CHUNK = 100  # rows of a long list; between chunks, other requests are answered

Item = TypeVar("Item")
Result = TypeVar("Result")


class RefusedError(Exception):
    """A request that is refused before the learner sees it, with the status of the answer."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Service:
    """A learner that answers requests, which are JSON objects; it knows nothing of connections.

    Rows and labels are those of ``omma stream``: ``{"id": "a", "eta": [0.9, 0.2]}``, later
    ``{"id": "a", "y": [1, 0]}``, or lists of these. A list is taken as a whole or not at all: other
    requests are answered while it is read, ``CHUNK`` rows at a time, and then the learner takes all
    rows in one call.

    Rows may name labels by numbers once their number is known.
    """

    def __init__(self, keeper: LearnerKeeper) -> None:
        self.keeper = keeper
        self.unsaved: str | None = None  # why the state could not be saved last time
        self._reader: JsonLines | None = None  # of a learner that has begun
        self._recent = RecentStats()

    @property
    def learner(self) -> omma.OnlineClassifier:
        """The learner; refuse the request if no row has come yet."""
        if self.keeper.learner is None:
            raise RefusedError(404, "no row has come yet: how many labels there are is not known")
        return self.keeper.learner

    async def decide(self, content: Any) -> Any:
        """Decide a row or a list of rows; those with an id wait for their labels."""
        lines, names = await self._read(content, has_eta=True)
        keys = [line.id for line in lines if line.id is not None]
        if len(keys) not in (0, len(lines)):
            raise ValueError(
                f"expected ids for all rows or for none, got {len(keys)} for {len(lines)} rows"
            )
        rows = [line.eta for line in lines if line.eta is not None]
        learner = self.keeper.learner or self.keeper.make(len(rows[0]), names)
        # A batch of one row would take longer.
        if len(rows) == 1:
            decisions = learner.decide(rows[0], id=keys[0] if keys else None)
        else:
            decisions = learner.decide(np.stack(rows), ids=keys or None)
        self.keeper.begin(learner)
        if keys:
            self._count(len(lines))
        pairs = [*zip(keys or [None] * len(rows), decisions.reshape(len(rows), -1), strict=True)]
        answers = await _each(lambda pair: as_answer(*pair, learner.names), pairs)
        return answers if isinstance(content, list) else answers[0]

    async def label(self, content: Any) -> dict[str, int]:
        """Learn the labels of a row or of a list of rows, by their ids."""
        learner = self.learner
        lines, _ = await self._read(content, has_eta=False)
        rows = await _each(lambda line: label_row(learner, line.y), lines)
        if len(lines) == 1:
            learner.update(rows[0], id=lines[0].id)
        else:
            learner.update(np.stack(rows), ids=[line.id for line in lines])
        self._count(len(lines))
        self._recent.note(learner)
        return {"learned": len(lines)}

    async def _read(self, content: Any, has_eta: bool) -> tuple[list[Line], Names | None]:
        """Read the rows of a request, and the names of labels; refuse too many before reading them.

        Rows to decide have ``eta``; rows to learn have an id and labels.
        """
        rows = content if isinstance(content, list) else [content]
        if not rows:
            raise ValueError("expected at least one row, got an empty list")
        learner = self.keeper.learner
        if learner is not None and self._reader is None:
            self._reader = JsonLines(learner.n_labels, learner.names, settled=True)
        # If the first row is refused, its names of labels are forgotten with its reader.
        reader = self._reader or JsonLines(self.keeper.n_labels)

        def read(row: Any) -> Line:
            line = reader.line(row)
            if has_eta and (line.eta is None or line.y is not None or line.decision is not None):
                raise ValueError("expected rows with eta, and without y or decision")
            if not has_eta and (line.id is None or line.y is None or line.eta is not None):
                raise ValueError("expected labels with id and y, and without eta")
            return line

        first = read(rows[0])  # it may tell how many labels there are
        m = reader.width = reader.width or (0 if first.eta is None else len(first.eta))
        most = self.keeper.options.max_values
        if len(rows) > 1 and len(rows) * max(m, LEAST) > most:
            raise RefusedError(
                413,
                f"expected rows x labels of at most {most:,} (--max-values), where a "
                f"row counts for at least {LEAST} labels, got {len(rows):,} rows of {m:,} labels; "
                "send fewer rows at once",
            )
        lines = [first, *await _each(read, rows[1:])]
        if learner is not self.keeper.learner:  # another request began it between two chunks
            return await self._read(content, has_eta)
        return lines, reader.names

    def _count(self, rows: int) -> None:
        """Count rows, and save the learner if it is time; a failure to save is no refusal."""
        try:
            self.keeper.count(rows)
            self.unsaved = None
        except OSError as error:
            if self.unsaved is None:
                say(f"The state was not saved: {error}. This is tried again after the next rows.")
            self.unsaved = f"counted, but the state was not saved: {error}"

    def stats(self) -> dict[str, Any]:
        """The stats of the learner; recent values are of the last full 1,000 labelled rows."""
        return self._recent.of(self.learner)


def warm_up(learner: omma.OnlineClassifier) -> None:
    """Compile all that requests need, on a learner that is then thrown away."""
    row = np.full(learner.n_labels, 0.5)
    # Before and after the first labels, and after partly known ones, other kernels run.
    answers = [0.0, 0.0]
    if learner.n_labels > 1 and learner.policy.whole_rows(learner.metric) is None:
        answers += [np.nan, 0.0]
    for answer in answers:
        y = np.array([1.0, *[answer] * (learner.n_labels - 1)])
        learner.decide(row)
        learner.decide(row, id="single")
        learner.update(y, id="single")
        learner.decide(np.stack([row, row]), ids=["first", "second"])
        learner.update(np.stack([y, y]), ids=["first", "second"])
        learner.stats()
        learner.rule  # noqa: B018 — the rule has a kernel of its own


async def _each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call the function with each item; between chunks, other requests are answered."""
    results: list[Result] = []
    for start in range(0, len(items), CHUNK):
        if start:
            await asyncio.sleep(0)
        results += map(function, items[start : start + CHUNK])
    return results

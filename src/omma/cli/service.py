"""What ``omma serve`` does, whatever carries it: rows in, decisions out, labels by id."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.cli.json_lines import JsonLines
from omma.cli.lines import Line
from omma.cli.looks import Looks
from omma.cli.streaming import Keeping, Kept, Make, answered, check_labels, check_row_width
from omma.online import OnlineClassifier


class NothingYetError(LookupError):
    """A question about a learner that the first row has not begun yet."""


class Service(Keeping):
    """A learner that answers requests, each as JSON objects; it holds no connection.

    Rows and labels are those of ``omma stream``: ``{"id": "a", "eta": [0.9, 0.2]}``, later
    ``{"id": "a", "y": [1, 0]}``, or lists of these. A list is taken as a whole or not at all.

    Rows may name labels by numbers if ``n_labels`` is known before.
    """

    def __init__(
        self,
        make: Make,
        learner: OnlineClassifier | None = None,
        n_labels: int | None = None,
        kept: Kept | None = None,
    ) -> None:
        super().__init__(make, learner, kept)
        self.n_labels = n_labels if learner is None else learner.n_labels
        self._reader = JsonLines(self.n_labels, self.names)
        self._looks = Looks()

    def decide(self, content: Any) -> Any:
        """Decide a row or a list of rows; those with an id wait for their labels."""
        reader = self._reader
        if self.learner is None:  # what a row that is refused says of names is forgotten
            reader = JsonLines(self.n_labels)
        lines = _lines(reader, content)
        for line in lines:
            if line.eta is None or line.y is not None or line.decision is not None:
                raise ValueError("expected rows with eta, and without y or decision")
        keys = [line.id for line in lines if line.id is not None]
        if len(keys) not in (0, len(lines)):
            raise ValueError(
                f"expected ids for all rows or for none, got {len(keys)} for {len(lines)} rows"
            )
        rows = [line.eta for line in lines if line.eta is not None]
        learner = self.learner
        if learner is None:
            learner = self.make(len(rows[0]), reader.names)
        for row in rows:
            check_row_width(learner, "probabilities", row)
        single = len(rows) == 1
        eta = rows[0] if single else np.stack(rows)
        asked: dict[str, Any] = {"id": keys[0]} if single and keys else {}
        asked |= {"ids": keys} if keys and not single else {}
        made = learner.predict(eta, **asked)
        if self.learner is None:
            self.begin(learner)
            self._reader = JsonLines(learner.n_labels, self.names)
        answers = [
            answered(line.id, decision, learner.names)
            for line, decision in zip(lines, made.reshape(len(lines), -1), strict=True)
        ]
        if keys:
            self.count(len(lines))
        return answers if isinstance(content, list) else answers[0]

    def label(self, content: Any) -> dict[str, int]:
        """Learn the labels of a row or of a list of rows, by their ids."""
        lines = _lines(self._reader, content)
        for line in lines:
            if line.id is None or line.y is None or line.eta is not None:
                raise ValueError("expected labels with id and y, and without eta")
        learner = self._known()
        for line in lines:
            check_labels(learner, line.y)
        rows = [_indicators(line.y, learner.n_labels) for line in lines]
        if len(lines) == 1:
            learner.update(rows[0], id=lines[0].id)
        else:
            learner.update(np.stack(rows), ids=[line.id for line in lines])
        self.count(len(lines))
        self._looks.note(learner)
        return {"learned": len(lines)}

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


def _lines(reader: JsonLines, content: Any) -> list[Line]:
    rows = content if isinstance(content, list) else [content]
    if not rows:
        raise ValueError("expected at least one row, got an empty list")
    return [reader.line(one) for one in rows]


def _indicators(y: Any, m: int) -> NDArray[np.float64]:
    """One row of zeros and ones; a class id is that of its only label."""
    if not isinstance(y, int) or m == 1:
        return np.asarray(y, dtype=np.float64).reshape(m)
    row = np.zeros(m)
    row[y] = 1.0
    return row

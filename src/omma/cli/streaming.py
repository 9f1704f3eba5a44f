"""The work of ``omma stream``: decide each row at once, learn when its labels are known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from omma._validate import shown
from omma.cli.lines import Line, Names, StopStreamError
from omma.counts import Counts
from omma.datasets.csv_text import csv_cell, spreadsheet_text
from omma.online import OnlineClassifier
from omma.online.pending import Pending, check_id

Say = Callable[[str], None]
Make = Callable[[int, Names | None], OnlineClassifier]
PATIENCE = 1_000  # rows without any label, after which it is said what that means


class Kept(NamedTuple):
    """Where a learner is kept: ``begun`` is told of a new one, ``path`` has it saved to it."""

    begun: Callable[[OnlineClassifier], None] | None = None
    path: Path | None = None
    every: int = 0  # rows or lines between two saves; 0 is at the end alone


class Keeping:
    """A learner that the first good row begins, where there is none to go on with.

    ``make`` gives it when that row says how many labels there are; ``kept`` has it before the row
    is answered.
    """

    def __init__(self, make: Make, learner: OnlineClassifier | None, kept: Kept | None) -> None:
        self.make = make
        self.learner = learner
        self.kept = kept or Kept()
        self._since = 0  # rows or lines since the learner was saved

    @property
    def names(self) -> Names | None:
        """Of the labels, where the learner has them."""
        known = None if self.learner is None else self.learner.names
        return None if known is None else tuple(known)

    def begin(self, learner: OnlineClassifier) -> None:
        """The first good row has begun the learner; it is kept before anybody is told."""
        if self.learner is None:
            if self.kept.begun is not None:
                self.kept.begun(learner)
            self.learner = learner

    def count(self, rows: int) -> None:
        """So many rows or lines have passed: save the learner where it is time to."""
        self._since += rows
        if self.kept.every and self._since >= self.kept.every:
            self.save()

    def save(self) -> None:
        """Save the learner, with all that waits for labels, where that was asked for."""
        if self.kept.path is not None and self.learner is not None:
            self.learner.save(self.kept.path)
        self._since = 0


class Stream(Keeping):
    """A learner and what passes through it: decisions go to ``out``, each at once.

    ``say`` is told what is worth to be known, once.
    """

    def __init__(
        self,
        out: TextIO,
        make: Make,
        as_json: bool,
        say: Say,
        learner: OnlineClassifier | None = None,
        kept: Kept | None = None,
        raw_cells: bool = False,
    ) -> None:
        super().__init__(make, learner, kept)
        self.out = out
        self.as_json = as_json
        self.raw_cells = raw_cells
        self.say = say
        self.decided = self.learned = 0
        self._told = False  # that rows are forgotten
        self._told_formula = False  # that a cell begins as a formula does
        self._with_id: bool | None = None  # whether decisions have ids is seen at the first

    @property
    def value(self) -> float | None:
        """The metric so far, or None."""
        if self.learner is None or self.learner.metric is None:
            return None
        return self.learner.value

    def take(self, line: Line, names: Names | None) -> None:
        """Decide a row, learn labels, or both; nothing is changed where it raises."""
        if line.eta is None:
            self._learn_late(line)
            return
        learner = self._begun(len(line.eta), names)
        _check_row(learner, line, names)
        if line.id is not None:
            oldest = next(iter(learner.waiting), None)
            learner.waiting.check_free(line.id)
            self._tell_forgotten(learner.waiting, oldest)
        if line.decision is not None:  # made before a restart
            if line.y is None:
                raise ValueError("expected labels y with a decision, got none")
            self._learn_earlier(learner, line, line.decision, line.eta)
            self.begin(learner)
            return
        decision = self._decide(learner, line)
        self.begin(learner)
        self.learned += line.y is not None
        self.decided += 1
        self._emit(line.id, decision, learner.names)
        # Said where nothing is learned, after a while: such a stream may never end.
        if self.decided == PATIENCE and self._with_id is not True and (hint := self.unlearned):
            self.say(hint)

    def _decide(self, learner: OnlineClassifier, line: Line) -> NDArray[np.int8]:
        """Decide a row; where its labels are not there yet, they come by its id."""
        decision: NDArray[np.int8]
        assert line.eta is not None  # such lines are decided; others only bring labels
        if line.y is None and line.id is not None:
            oldest = next(iter(learner.waiting), None)
            decision = learner.predict(line.eta, id=line.id)
            self._tell_forgotten(learner.waiting, oldest)
            return decision
        decision = learner.predict(line.eta)
        if line.y is not None or _soft(learner) or _both(learner):
            learner.update(line.y)
        return decision

    def _tell_forgotten(self, waiting: Pending, oldest: Any) -> None:
        """Say of the first row that was forgotten why it was."""
        if waiting.forgotten == 0 or self._told:
            return
        self._told = True
        why = f"more than {waiting.limit:,} rows wait for labels (--pending)"
        if len(waiting) < waiting.limit:
            why = f"it has waited for more than {waiting.max_age:g} seconds (--max-seconds)"
        self.say(f"id {oldest!r} was forgotten: {why}; further ones are counted")

    def _begun(self, m: int, names: Names | None = None) -> OnlineClassifier:
        """The learner; one that is new is kept only when its first line turns out to be good."""
        if self.learner is not None:
            return self.learner
        try:
            return self.make(m, names)
        except ValueError as error:  # such as a budget that is larger: no line will do
            raise StopStreamError(str(error)) from error

    def _learn_late(self, line: Line) -> None:
        """Labels of a row decided earlier."""
        if line.y is None:
            raise ValueError("expected probabilities, labels or both, got neither")
        key = None if line.id is None else check_id(line.id)
        known = self.learner is not None and key is not None and key in self.learner.waiting
        if line.decision is not None and not known:
            learner = self._begun(len(line.decision))
            self._learn_earlier(learner, line, line.decision, line.eta)
            self.begin(learner)
        elif self.learner is None or line.id is None:
            raise ValueError("labels without probabilities need the id of a row decided before")
        else:
            check_labels(self.learner, line.y)
            self.learner.update(line.y, id=line.id)
            self.learned += 1

    def _learn_earlier(
        self, learner: OnlineClassifier, line: Line, decision: NDArray[Any], eta: Any
    ) -> None:
        check_labels(learner, line.y)
        check_row_width(learner, "decisions", decision)
        _check_indicators("decisions", decision)
        if _soft(learner):  # it has learned from the probabilities; labels say how good it was
            nothing = Counts.zeros(learner.n_labels)
            learner.merge(_counted(learner, line.y, decision), estimates=nothing)
        elif _both(learner):
            if eta is None:
                raise ValueError(
                    "expected probabilities eta beside a decision made earlier, as "
                    f"{learner.policy!r} learns from them too, got none"
                )
            learner.update(line.y, prediction=decision.astype(np.int8), eta=np.asarray(eta))
        else:
            learner.update(line.y, prediction=decision.astype(np.int8))
        self.learned += 1

    @property
    def unlearned(self) -> str | None:
        """What to do, where a policy that learns from labels gets none."""
        learner = self.learner
        if learner is None or self.learned or not self.decided or _soft(learner):
            return None
        if learner.policy.objective is None:  # a baseline learns nothing anyway
            return None
        if _both(learner) and self._with_id is not True:  # such rows do not wait for labels
            return None
        return (
            "No labels came, so that decisions keep to the thresholds they began with: send labels "
            "(y), with the rows or later by their id, or pass --policy omma_eta, which learns from "
            "the probabilities alone."
        )

    def _emit(self, key: Any, decision: NDArray[np.int8], names: Any) -> None:
        if self._with_id is None:
            self._with_id = key is not None
            if not self.as_json and (names is not None or self._with_id):
                start = ["id"] if self._with_id else []
                columns = names or map(str, range(len(decision)))
                self.out.write(",".join([*start, *map(self._text, columns)]) + "\n")
        if self.as_json:
            told = answered(key, decision, names)
            self.out.write(json.dumps({"row": self.decided, **told, "value": self.value}) + "\n")
        else:
            start = [self._text("" if key is None else str(key))] if self._with_id else []
            self.out.write(",".join([*start, *map(str, decision.tolist())]) + "\n")
        self.out.flush()

    def _text(self, cell: str) -> str:
        """A name or an id as a cell; the first that had to be changed is told."""
        text = cell if self.raw_cells else spreadsheet_text(cell)
        if text != cell and not self._told_formula:
            self._told_formula = True
            self.say(
                f"{shown(cell)} is written with an apostrophe before it, lest a spreadsheet runs "
                "it as a formula, and so are others like it: --raw-cells writes them as they are"
            )
        return csv_cell(text)

    def summary(self, skipped: int) -> str:
        """What was done, in a sentence."""
        value, words = self.value, [f"{self.decided:,} decided", f"{self.learned:,} learned"]
        if value is not None and self.learner is not None and self.learner.metric is not None:
            words.append(f"{self.learner.metric.name} {100 * value:.2f} %")
        if skipped:
            words.append(f"{skipped:,} line{'s' * (skipped != 1)} skipped")
        waiting = () if self.learner is None else self.learner.waiting
        if len(waiting):
            words.append(f"{len(waiting):,} waiting for labels")
        if self.learner is not None and self.learner.waiting.forgotten:
            words.append(f"{self.learner.waiting.forgotten:,} forgotten")
        return ", ".join(words) + "."


def answered(key: Any, decision: NDArray[np.int8], names: Any) -> dict[str, Any]:
    """A decision as JSON tells it, with the names of labels where there are some."""
    made: dict[str, Any] = {} if key is None else {"id": key}
    made["decision"] = decision.tolist()
    if names is not None:
        made["labels"] = [names[place] for place in np.flatnonzero(decision)]
    return made


def _soft(learner: OnlineClassifier) -> bool:
    return learner.policy.feedback == "estimates"


def _both(learner: OnlineClassifier) -> bool:
    """Whether it learns from labels, and from probabilities where none come."""
    return learner.policy.feedback == "both"


def _check_row(learner: OnlineClassifier, line: Line, names: Names | None) -> None:
    known = learner.names
    if names is not None and known is not None and names != tuple(known):
        raise StopStreamError(
            f"expected the columns {', '.join(known)}, which the state was learned with, got "
            f"{', '.join(names)}"
        )
    check_row_width(learner, "probabilities", line.eta)
    check_labels(learner, line.y)


def check_row_width(learner: OnlineClassifier, what: str, values: Any) -> None:
    """Refuse a row of another width than the learner's."""
    if isinstance(values, np.ndarray) and len(values) != learner.n_labels:
        raise ValueError(f"expected {learner.n_labels} {what}, got {len(values)}")


def check_labels(learner: OnlineClassifier, y: Any) -> None:
    """Refuse labels of another width or kind than the learner's."""
    if y is None:
        return
    m = learner.n_labels
    check_row_width(learner, "labels", y)
    if isinstance(y, int) and m > 1:
        if learner.policy.budget is None:
            raise ValueError("expected a list of 0 and 1 as y; a class id needs -k 1")
        if not 0 <= y < m:
            raise ValueError(f"expected a class id from 0 to {m - 1}, got {shown(y)}")
        return
    row = np.ravel(y)
    _check_indicators("labels", row[~np.isnan(row)])
    why = learner.policy.whole_rows(learner.metric) if np.isnan(row).any() else None
    if why is not None:
        raise ValueError(f"expected all labels of a row or none{why}, got a part of them")
    if learner.metric is not None and learner.metric.multiclass and row.sum() != 1:
        raise ValueError(
            f"expected one class a row for {learner.metric.name}, got {int(row.sum())} labels; for "
            "rows of several labels choose a macro_ or micro_ metric"
        )


def _check_indicators(what: str, values: NDArray[Any]) -> None:
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ValueError(f"expected 0 and 1 as {what}, got {wrong[0]:g}")


def _counted(learner: OnlineClassifier, y: Any, decision: NDArray[Any]) -> Counts:
    """Labels against a decision, where the policy itself does not need them."""
    m, metric = learner.n_labels, learner.metric
    true = np.array([y]) if isinstance(y, int) and m > 1 else np.reshape(y, (1, m))
    return Counts.from_labels(
        true,
        decision.reshape(1, m).astype(np.int8),
        n_labels=m,
        matrix=metric is not None and metric.needs_matrix,
    )

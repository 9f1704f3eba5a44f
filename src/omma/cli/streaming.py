"""The work of ``omma stream``: decide each row at once, learn when its labels are known."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from types import FrameType
from typing import Any, BinaryIO, NoReturn, TextIO

import click
import numpy as np
from numpy.typing import NDArray

import omma
from omma._validate import shown
from omma.cli.learners import LearnerKeeper
from omma.cli.lines import LineReader, StopStreamError, bounded_lines
from omma.cli.options import say, signals_handled
from omma.datasets.csv_text import csv_cell, spreadsheet_text
from omma.datasets.json_lines import Line, Names, Vector
from omma.online.waiting import Waiting

SKIPPED = 3  # the code of a stream with lines that could not be read
PATIENCE = 1_000  # rows without any label before ``unlearned`` is said


def until_stopped(lines: Iterator[bytes | None]) -> Iterator[bytes | None]:
    """The lines; SIGINT and SIGTERM end the command, but only while it waits for a line.

    So a state that is saved afterwards has each row as a whole or not at all.
    """
    numbers: list[int] = []  # the signals so far
    is_waiting = False

    def note(number: int, frame: FrameType | None) -> None:
        numbers.append(number)
        if is_waiting:
            stop(number)

    def stop(number: int) -> NoReturn:
        say(f"Stopped by {signal.Signals(number).name}.")
        # As shells expect it of a process that a signal ended.
        raise click.exceptions.Exit(128 + number)

    # Python lets only the main thread handle signals.
    is_main = threading.current_thread() is threading.main_thread()
    with signals_handled(note, *((signal.SIGINT, signal.SIGTERM) if is_main else ())):
        while True:
            is_waiting = True
            if numbers:
                stop(numbers[0])
            try:
                line = next(lines)
            except StopIteration:
                return
            finally:
                is_waiting = False
            yield line


class Stream:
    """A learner and what passes through it: decisions go to ``out``, each at once."""

    def __init__(self, out: TextIO, keeper: LearnerKeeper) -> None:
        self.out = out
        self.keeper = keeper
        self.options = keeper.options
        self.decided = self.learned = 0
        self._told_forgotten = False  # whether it was said that rows are forgotten
        self._told_formula = False  # whether it was said that cells begin as formulas do
        self._with_id: bool | None = None  # whether decisions have ids: the first one tells

    def take(self, line: Line, names: Names | None) -> None:
        """Decide a row, learn labels, or both; an error leaves everything as it was."""
        learner = self.keeper.learner
        waits = learner is not None and line.id in learner.waiting
        row = line.decision if line.eta is None else line.eta  # has a number for each label
        if row is None or (line.eta is None and waits):
            self._learn_late(line)
            return
        learner = self._learner_of(len(row), names)
        # Labels are checked before the row is decided: a line is taken as a whole or not at all.
        y = None if line.y is None else label_row(learner, line.y)
        waiting = learner.waiting
        oldest, forgotten = next(iter(waiting), None), waiting.forgotten
        if line.id is not None:
            waiting.check_free(line.id)
        if line.decision is not None:
            self._learn_earlier(learner, line, y, line.decision)
            return
        if y is None and line.id is not None:  # its labels will come by its id
            decision = learner.decide(line.eta, id=line.id)
            # Where nothing was predicted nothing will be seen, so that there is no need to wait.
            if self.options.seen is not None and not decision.any() and not line.audited:
                learner.update(None, id=line.id, seen=self.options.seen)
        else:
            decision = learner.decide(line.eta)
            if y is not None or learner.policy.feedback != "labels":
                learner.update(y, seen=self.options.seen, audited=line.audited)
        if waiting.forgotten > forgotten and not self._told_forgotten:
            self._tell_forgotten(waiting, oldest)
        self.keeper.begin(learner)
        self.learned += y is not None
        self.decided += 1
        self._emit(line.id, decision, learner)
        # Not only at the end: a stream may never end.
        if self.decided == PATIENCE and self._with_id is not True and (hint := self.unlearned):
            say(hint)

    def _learner_of(self, m: int, names: Names | None) -> omma.OnlineClassifier:
        """The learner, or a new one, which ``keeper.begin`` keeps once its first line is good."""
        learner = self.keeper.learner
        try:
            learner = learner or self.keeper.make(m, names)
        except ValueError as error:  # such as a budget that is larger: no line will do
            raise StopStreamError(str(error)) from error
        if names is not None and learner.names is not None and names != learner.names:
            raise StopStreamError(
                f"expected the columns {', '.join(learner.names)}, which the state was learned "
                f"with, got {', '.join(names)}"
            )
        return learner

    def _learn_late(self, line: Line) -> None:
        """Learn the labels of a row that was decided earlier and waits for them."""
        if line.y is None:
            raise ValueError("expected probabilities, labels or both, got neither")
        learner = self.keeper.learner
        if learner is None or line.id is None:
            raise ValueError("labels without probabilities need the id of a row decided before")
        y = label_row(learner, line.y)
        learner.update(y, id=line.id, seen=self.options.seen, audited=line.audited)
        self.learned += 1

    def _learn_earlier(
        self, learner: omma.OnlineClassifier, line: Line, y: Vector | None, decision: Vector
    ) -> None:
        """Learn from a line that has the decision, too, such as one made before a restart."""
        if y is None:
            raise ValueError("expected labels y with a decision, got none")
        _check_indicators("decisions", decision)
        m, feedback = learner.n_labels, learner.policy.feedback
        if self.options.seen is not None and feedback != "both":
            raise ValueError(
                "expected no decision made earlier with --seen, unless --policy auto decides: its "
                "probabilities cannot be counted again"
            )
        if feedback == "both" and line.eta is None:
            raise ValueError(
                "expected probabilities eta beside a decision made earlier, as "
                f"{learner.policy!r} learns from them too, got none"
            )
        if feedback == "estimates":
            # It has counted the probabilities already; labels only say how good the decision was.
            needs_matrix = learner.metric is not None and learner.metric.needs_matrix
            counts = omma.Counts.from_labels(
                y.reshape(1, m), decision.reshape(1, m), n_labels=m, matrix=needs_matrix
            )
            learner.merge(counts, estimates=omma.Counts.zeros(m))
        else:
            learner.update(
                y,
                prediction=decision.astype(np.int8),
                eta=line.eta if feedback == "both" else None,
                seen=self.options.seen,
                audited=line.audited,
            )
        self.learned += 1
        self.keeper.begin(learner)

    def _emit(self, key: Any, decision: NDArray[np.int8], learner: omma.OnlineClassifier) -> None:
        """Write a decision; before the first, a line of names where there are some."""
        names = learner.names
        if self._with_id is None:
            self._with_id = key is not None
            if not self.options.as_json and (names is not None or self._with_id):
                columns = names or map(str, range(len(decision)))
                cells = [*(["id"] if self._with_id else []), *map(self._cell, columns)]
                self.out.write(",".join(cells) + "\n")
        if self.options.as_json:
            answer = {"row": self.decided, **as_answer(key, decision, names)}
            value = None if learner.metric is None else learner.value
            self.out.write(json.dumps({**answer, "value": value}) + "\n")
        else:
            cells = [self._cell("" if key is None else str(key))] if self._with_id else []
            self.out.write(",".join([*cells, *map(str, decision.tolist())]) + "\n")
        self.out.flush()

    def _cell(self, cell: str) -> str:
        """A name or an id as a cell of CSV; a message tells of the first that was changed."""
        text = cell if self.options.raw_cells else spreadsheet_text(cell)
        if text != cell and not self._told_formula:
            self._told_formula = True
            say(
                f"{shown(cell)} and cells like it are written with an apostrophe first, so that no "
                "spreadsheet runs them as formulas: --raw-cells writes them as they are"
            )
        return csv_cell(text)

    def _tell_forgotten(self, waiting: Waiting, oldest: Any) -> None:
        """Say why the first row was forgotten."""
        self._told_forgotten = True
        why = f"more than {waiting.limit:,} rows wait for labels (--pending)"
        if len(waiting) < waiting.limit:
            why = f"more than {waiting.max_age} rows were decided after it"
            if waiting.max_seconds is not None:
                why = f"it has waited for more than {waiting.max_seconds:g} seconds (--max-seconds)"
        say(f"id {oldest!r} was forgotten: {why}; further ones are only counted")

    @property
    def unlearned(self) -> str | None:
        """Advice if a policy that learns from labels gets none, else None."""
        if self.keeper.learner is None or self.learned or not self.decided:
            return None
        policy = self.keeper.learner.policy
        # A baseline never learns. "both" learns from probabilities, too, but a row with an id is
        # learned only when its labels come.
        learns_without = policy.feedback == "both" and self._with_id is not True
        if policy.objective is None or policy.feedback == "estimates" or learns_without:
            return None
        return (
            "No labels came, so decisions stay at their initial thresholds: send labels (y), with "
            "the rows or later by id, or pass --policy omma_eta, which learns from probabilities "
            "alone."
        )

    def summary(self, skipped: int) -> str:
        """A sentence on what was done."""
        learner = self.keeper.learner
        words = [f"{self.decided:,} decided", f"{self.learned:,} learned"]
        counts = {f"line{'s' * (skipped != 1)} skipped": skipped}
        if learner is not None:
            waiting = learner.waiting
            counts |= {"waiting for labels": len(waiting), "forgotten": waiting.forgotten}
            if learner.metric is not None:
                value, how = learner.value, ""
                if value is None:  # no label came
                    value, how = learner.expected_value, " expected by probabilities"
                elif hasattr(value, "rests_on"):
                    how = f" (estimated: {value.rests_on})"
                if value is not None:
                    words.append(f"{learner.metric.name} {100 * value:.2f} %{how}")
        words += [f"{count:,} {what}" for what, count in counts.items() if count]
        return ", ".join(words) + "."


def run(stream: Stream, source: BinaryIO) -> int:
    """Take all lines, save the learner whatever ends them, and return the exit code."""
    skipped, is_read = 0, True
    try:
        with closing(until_stopped(bounded_lines(source))) as lines:  # type: ignore[type-var]
            for complaint in LineReader(stream.keeper).complaints(lines, stream.take):
                say(complaint)
                skipped += 1
                if stream.options.strict:
                    return 1
        return SKIPPED if skipped else 0
    except BrokenPipeError:
        # The reader has gone: what Python still flushes at its end must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        is_read = False
        return 0
    finally:
        stream.keeper.save()
        if is_read:
            say(stream.summary(skipped))
            for limit in () if stream.keeper.learner is None else stream.keeper.learner.limits:
                say(f"{limit}.")
            if stream.unlearned is not None:
                say(stream.unlearned)


def as_answer(key: Any, decision: NDArray[np.int8], names: Any) -> dict[str, Any]:
    """A decision as JSON, with the names of the predicted labels if labels have names."""
    answer: dict[str, Any] = {} if key is None else {"id": key}
    answer["decision"] = decision.tolist()
    if names is not None:
        answer["labels"] = [names[place] for place in np.flatnonzero(decision)]
    return answer


def label_row(learner: omma.OnlineClassifier, y: Any) -> Vector:
    """The labels of a row as 0 and 1, or NaN where unknown; refuse what the learner cannot take."""
    m, metric = learner.n_labels, learner.metric
    if isinstance(y, int) and m > 1:
        if learner.policy.budget is None:
            raise ValueError("expected a list of 0 and 1 as y; a class id needs -k 1")
        if not 0 <= y < m:
            raise ValueError(f"expected a class id from 0 to {m - 1}, got {shown(y)}")
        return np.asarray(np.eye(1, m, y)[0])
    row = np.ravel(np.asarray(y, dtype=np.float64))
    is_known = ~np.isnan(row)
    _check_indicators("labels", row[is_known])
    # Whether a part of the labels is enough is for the learner to say.
    if metric is not None and metric.multiclass and is_known.all() and row.sum() != 1:
        raise ValueError(
            f"expected one class a row for {metric.name}, got {int(row.sum())} labels; for rows "
            "of several labels choose a macro_ or micro_ metric"
        )
    return row


def _check_indicators(title: str, values: Vector) -> None:
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ValueError(f"expected 0 and 1 as {title}, got {wrong[0]:g}")

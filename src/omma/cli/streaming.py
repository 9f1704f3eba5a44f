"""The work of ``omma stream``: decide each row at once, learn when its labels are known."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from omma.cli.lines import Line, StopStreamError
from omma.counts import Counts
from omma.metrics import Metric
from omma.online import OnlineClassifier
from omma.policies import Policy

Say = Callable[[str], None]
Names = tuple[str, ...]
Make = Callable[[int, Names | None], OnlineClassifier]


class Waiting:
    """Decisions whose labels are not known yet: so many and no more, the oldest go first."""

    def __init__(self, most: int, say: Say) -> None:
        self.most = most
        self.say = say
        self.forgotten = 0
        self._decisions: OrderedDict[Any, NDArray[np.int8]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._decisions)

    def __contains__(self, key: Any) -> bool:
        return key in self._decisions

    def add(self, key: Any, decision: NDArray[np.int8]) -> None:
        """Remember a decision."""
        self._decisions[key] = decision
        if len(self._decisions) > self.most:
            oldest, _ = self._decisions.popitem(last=False)
            if not self.forgotten:
                self.say(
                    f"id {oldest!r} was forgotten: more than {self.most:,} rows wait for labels "
                    "(--pending); further ones are counted"
                )
            self.forgotten += 1

    def get(self, key: Any) -> NDArray[np.int8]:
        """The decision made for an id."""
        if key not in self._decisions:
            raise ValueError(f"labels for the id {key!r}, which is not waiting for any")
        return self._decisions[key]

    def remove(self, key: Any) -> None:
        """Its labels are known."""
        self._decisions.pop(key, None)


class Stream:
    """A learner and what passes through it.

    Parameters
    ----------
    out : file
        Where decisions go, each at once.
    make : function of the number of labels
        Gives the learner, when the first row says how many labels there are.
    """

    def __init__(self, out: TextIO, make: Make, waiting: Waiting, as_json: bool) -> None:
        self.out = out
        self.make = make
        self.waiting = waiting
        self.as_json = as_json
        self.learner: OnlineClassifier | None = None
        self.decided = self.learned = 0
        # Labels that come after a policy has learned from probabilities only say how good it was.
        self._late: Counts | None = None
        self._with_id: bool | None = None  # whether decisions have ids is seen at the first

    @property
    def value(self) -> float | None:
        """The metric so far, or None."""
        if self.learner is None or self.learner.metric is None:
            return None
        if self._late is None:
            return self.learner.value
        return self.learner.metric.value(self.learner.counts + self._late)

    def take(self, line: Line, names: tuple[str, ...] | None) -> None:
        """Decide a row, learn labels, or both; nothing is changed where it raises."""
        if line.eta is None:
            self._learn_late(line)
            return
        if self.learner is None:
            self.learner = self._made(len(line.eta), names)
        self._check_names(names)
        self._check_width("probabilities", line.eta)
        self._check_labels(line.y)
        if line.id is not None and line.id in self.waiting:
            raise ValueError(f"the id {line.id!r} is still waiting for its labels")
        if line.decision is not None:  # made before a restart
            if line.y is None:
                raise ValueError("expected labels y with a decision, got none")
            self._learn_earlier(line, line.decision)
            return
        decision = self.learner.predict(line.eta)
        if line.y is not None or self._soft:
            self.learner.update(line.y)
            self.learned += line.y is not None
        if line.y is None and line.id is not None:
            self.waiting.add(line.id, decision)
        self.decided += 1
        self._emit(line, decision, names)

    def _made(self, m: int, names: Names | None = None) -> OnlineClassifier:
        try:
            return self.make(m, names)
        except ValueError as error:  # such as a budget that is larger: no line will do
            raise StopStreamError(str(error)) from error

    def _check_names(self, names: Names | None) -> None:
        """A state that was learned with names is for columns of these names, in this order."""
        assert self.learner is not None
        known = self.learner.names
        if names is not None and known is not None and names != tuple(known):
            raise StopStreamError(
                f"expected the columns {', '.join(known)}, which the state was learned with, got "
                f"{', '.join(names)}"
            )

    def _check_width(self, what: str, values: Any) -> None:
        assert self.learner is not None
        if isinstance(values, np.ndarray) and len(values) != self.learner.n_labels:
            raise ValueError(f"expected {self.learner.n_labels} {what}, got {len(values)}")

    def _check_labels(self, y: Any) -> None:
        assert self.learner is not None
        m = self.learner.n_labels
        self._check_width("labels", y)
        if isinstance(y, int) and m > 1:
            if self.learner.policy.budget is None:
                raise ValueError("expected a list of 0 and 1 as y; a class id needs -k 1")
            if not 0 <= y < m:
                raise ValueError(f"expected a class id from 0 to {m - 1}, got {y}")
        elif y is not None:
            _check_indicators("labels", np.ravel(y))

    @property
    def _soft(self) -> bool:
        return self.learner is not None and self.learner.policy.feedback == "estimates"

    def _learn_late(self, line: Line) -> None:
        """Labels of a row decided earlier."""
        if line.y is None:
            raise ValueError("expected probabilities, labels or both, got neither")
        if self.learner is None and line.decision is not None:
            self.learner = self._made(len(line.decision))
        if self.learner is None or (line.id is None and line.decision is None):
            raise ValueError("labels without probabilities need the id of a row decided before")
        decision = self.waiting.get(line.id) if line.decision is None else line.decision
        self._learn_earlier(line, decision)

    def _learn_earlier(self, line: Line, decision: NDArray[Any]) -> None:
        assert self.learner is not None
        self._check_labels(line.y)
        self._check_width("decisions", decision)
        _check_indicators("decisions", decision)
        if self._soft:
            self._judge(line.y, decision)
        else:
            self.learner.update(line.y, prediction=decision.astype(np.int8))
        self.learned += 1
        self.waiting.remove(line.id)

    def _judge(self, y: Any, decision: NDArray[Any]) -> None:
        """Count labels that the policy itself does not need."""
        assert self.learner is not None
        m = self.learner.n_labels
        true = np.array([y]) if isinstance(y, int) and m > 1 else np.reshape(y, (1, m))
        metric = self.learner.metric
        found = Counts.from_labels(
            true,
            decision.reshape(1, m).astype(np.int8),
            n_labels=m,
            matrix=metric is not None and metric.needs_matrix,
        )
        self._late = found if self._late is None else self._late + found

    def _emit(self, line: Line, decision: NDArray[np.int8], names: tuple[str, ...] | None) -> None:
        if self.as_json:
            content = {"row": self.decided, "id": line.id, "decision": decision.tolist()}
            if line.id is None:
                del content["id"]
            self.out.write(json.dumps({**content, "value": self.value}) + "\n")
        else:
            if self._with_id is None:
                self._with_id = line.id is not None
                self._head(len(decision), names)
            start = [_cell("" if line.id is None else str(line.id))] if self._with_id else []
            self.out.write(",".join([*start, *map(str, decision.tolist())]) + "\n")
        self.out.flush()

    def _head(self, m: int, names: tuple[str, ...] | None) -> None:
        """The names of columns, where the stream has them."""
        if names is not None or self._with_id:
            columns = names or tuple(map(str, range(m)))
            start = ["id"] if self._with_id else []
            self.out.write(",".join([*start, *map(_cell, columns)]) + "\n")

    def summary(self, skipped: int) -> str:
        """What was done, in a sentence."""
        value, words = self.value, [f"{self.decided:,} decided", f"{self.learned:,} learned"]
        if value is not None and self.learner is not None and self.learner.metric is not None:
            words.append(f"{self.learner.metric.name} {100 * value:.2f} %")
        if skipped:
            words.append(f"{skipped:,} line{'s' * (skipped != 1)} skipped")
        if len(self.waiting):
            words.append(f"{len(self.waiting):,} waiting for labels")
        if self.waiting.forgotten:
            words.append(f"{self.waiting.forgotten:,} forgotten")
        return ", ".join(words) + "."


def _check_indicators(what: str, values: NDArray[Any]) -> None:
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ValueError(f"expected 0 and 1 as {what}, got {wrong[0]:g}")


def _cell(text: str) -> str:
    """A cell of CSV, in quotes where it needs them."""
    if any(sign in text for sign in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def restored(path: Path, policy: Policy | None, metric: Metric | None) -> OnlineClassifier:
    """A learner as it was saved, if it is the one that was asked for."""
    learner = OnlineClassifier.load(path)
    if policy is not None and learner.policy != policy:
        raise ValueError(f"{path} holds {learner.policy!r}, and {policy!r} was asked for")
    if metric is not None and learner.metric != metric:
        own = "none" if learner.metric is None else learner.metric.name
        raise ValueError(f"{path} is judged by {own}, and {metric.name} was asked for")
    return learner

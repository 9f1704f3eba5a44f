"""What happens to a learner, as bytes for its journal, and done again from them.

An event is a letter and parts, each with its length before it. It stands for one call and is
all there or not at all, so that no call is ever half done again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma._json import parse_json
from omma.online.packed import Decision, check_unpacked, pack, time_of, unpack
from omma.online.pending import Id, check_id
from omma.online.steps import Step
from omma.rows.arrays import HEAVIEST
from omma.rows.frames import read_names
from omma.rows.row import Row

if TYPE_CHECKING:
    from omma.online.learner import OnlineClassifier

DECIDED, LABELLED, COUNTED, NAMED = b"D", b"L", b"C", b"N"


def decided(
    keys: Sequence[Id],
    rows: Sequence[tuple[NDArray[Any], Row | None]],
    moved: bool,
    m: int,
    now: float = 0.0,
) -> bytes:
    """Decisions that wait by their ids; ``now`` is when, where they grow old by seconds."""
    parts: list[bytes] = []
    for key, (chosen, row) in zip(keys, rows, strict=True):
        made = Decision(row, chosen, 1.0, _is_thin(chosen), moved)
        parts += [json.dumps(key).encode(), pack(made, now, m)]
    return _joined(DECIDED, parts)


def labelled(keys: Sequence[Id], steps: Sequence[Step], m: int, now: float = 0.0) -> bytes:
    """Labels of rows by their ids."""
    parts: list[bytes] = []
    for key, step in zip(keys, steps, strict=True):
        parts += [json.dumps(key).encode(), _labels(step, m, now)]
    return _joined(LABELLED, parts)


def counted(steps: Iterable[Step], m: int) -> bytes:
    """Rows that were decided and labelled without an id."""
    parts: list[bytes] = []
    for step in steps:
        made = Decision(step.row, step.chosen, step.weight, _is_thin(step.chosen))
        parts += [pack(made, 0.0, m), b"" if step.true is None else _labels(step, m)]
    return _joined(COUNTED, parts)


def named(names: Sequence[str] | None) -> bytes:
    """Names of labels, learned from a frame."""
    return _joined(NAMED, [json.dumps(names).encode()])


def do_again(learner: OnlineClassifier, event: bytes) -> None:
    """Do what an event says; ``ValueError`` where no learner can have said it."""
    kind, parts = event[:1], _parts(event)
    m = learner.n_labels
    if kind == NAMED:
        learner.names = read_names("a journal", parse_json("names", parts[0]), m)
    elif kind == DECIDED:
        for key, made in zip(parts[::2], parts[1::2], strict=True):
            one = _unpacked(made, m)
            learner._check_made(one, learner._keeps)
            with learner.waiting.at(time_of(made)):
                learner._wait(_key(key), one.prediction, one.eta, one.moved)
    elif kind == LABELLED:
        for key, made in zip(parts[::2], parts[1::2], strict=True):
            came = _unpacked(made, m)
            with learner.waiting.at(time_of(made)):
                _check_layout(learner.waiting.get(_key(key)), came)
                learner._settle(_key(key), _true(came), came.weight)
    elif kind == COUNTED:
        for first, second in zip(parts[::2], parts[1::2], strict=True):
            one, labels = _unpacked(first, m), None
            learner._check_made(one, learner._keeps)
            if second:
                labels = _unpacked(second, m)
                _check_layout(one, labels)
            elif learner.state.labels is None:
                raise ValueError("a row without labels")
            true = None if labels is None else _true(labels)
            learner._count(Step(one.eta, true, one.prediction, one.weight))
    else:
        raise ValueError(f"an event of the unknown kind {kind!r}")


def _key(part: bytes) -> Id:
    return check_id(parse_json("an id", part))


def _check_layout(one: Decision, labels: Decision) -> None:
    """Kernels follow ids where the decision has ids: the labels must have them, too."""
    if one.sparse != labels.sparse:
        raise ValueError("labels that are laid out in another way than their decision")


def _is_thin(chosen: NDArray[Any]) -> bool:
    return chosen.dtype == np.int32


def _labels(step: Step, m: int, now: float = 0.0) -> bytes:
    return pack(Decision(None, step.true, step.weight, _is_thin(step.chosen)), now, m)


def _true(labels: Decision) -> NDArray[Any]:
    return labels.prediction if labels.sparse else labels.prediction.astype(np.float64)


def _unpacked(part: bytes, m: int) -> Decision:
    found = unpack(part, m)
    check_unpacked(found, m)
    if found.weight > HEAVIEST:
        raise ValueError(f"a weight of {found.weight:g}")
    return found


def _joined(kind: bytes, parts: list[bytes]) -> bytes:
    return b"".join([kind, *(len(part).to_bytes(4, "little") + part for part in parts)])


def _parts(event: bytes) -> list[bytes]:
    found, place = [], 1
    while place < len(event):
        start = place + 4
        place = start + int.from_bytes(event[place:start], "little")
        if place > len(event):
            raise ValueError("a part that is longer than its event")
        found.append(event[start:place])
    return found

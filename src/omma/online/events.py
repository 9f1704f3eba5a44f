"""What happens to a learner, as bytes for its journal, and done again from them.

An event is a letter and parts, each with its length before it. It stands for one call and is
all there or not at all, so that no call is ever half done again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma._json import parse_json
from omma.online.packed import Decision, are_places, check_unpacked, pack, time_of, unpack
from omma.online.pending import Id, check_id
from omma.online.steps import Step
from omma.rows.arrays import HEAVIEST
from omma.rows.frames import read_names
from omma.rows.row import Partly, Row

if TYPE_CHECKING:
    from omma.online.learner import OnlineClassifier

DECIDED, LABELLED, COUNTED, NAMED = b"D", b"L", b"C", b"N"
# The same where some labels of a row are unknown: before its labels stands which.
LABELLED_PARTLY, COUNTED_PARTLY = b"l", b"c"


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
    partly = any(step.true is None or isinstance(step.true, Partly) for step in steps)
    for key, step in zip(keys, steps, strict=True):
        parts += [json.dumps(key).encode(), _labels(step, m, partly, now)]
    return _joined(LABELLED_PARTLY if partly else LABELLED, parts)


def counted(steps: Sequence[Step], m: int) -> bytes:
    """Rows that were decided and labelled without an id."""
    parts: list[bytes] = []
    partly = any(isinstance(step.true, Partly) for step in steps)
    for step in steps:
        made = Decision(step.row, step.chosen, step.weight, _is_thin(step.chosen))
        parts += [pack(made, 0.0, m), b"" if step.true is None else _labels(step, m, partly)]
    return _joined(COUNTED_PARTLY if partly else COUNTED, parts)


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
    elif kind in (LABELLED, LABELLED_PARTLY):
        for key, made in zip(parts[::2], parts[1::2], strict=True):
            came, time, true = _came(made, m, kind == LABELLED_PARTLY)
            _check_known(learner, true)
            with learner.waiting.at(time):
                _check_layout(learner.waiting.get(_key(key)), came)
                learner._settle(_key(key), true, came.weight)
    elif kind in (COUNTED, COUNTED_PARTLY):
        for first, second in zip(parts[::2], parts[1::2], strict=True):
            one, true = _unpacked(first, m), None
            learner._check_made(one, learner._keeps)
            if second:
                labels, _, true = _came(second, m, kind == COUNTED_PARTLY)
                _check_layout(one, labels)
            _check_known(learner, true)
            learner._count(Step(one.eta, true, one.prediction, one.weight))
    else:
        raise ValueError(f"an event of the unknown kind {kind!r}")


def _key(part: bytes) -> Id:
    return check_id(parse_json("an id", part))


def _check_layout(one: Decision, labels: Decision) -> None:
    """Kernels follow ids where the decision has ids: the labels must have them, too."""
    if one.sparse != labels.sparse:
        raise ValueError("labels that are laid out in another way than their decision")


def _check_known(learner: OnlineClassifier, true: Any) -> None:
    """Refuse a row without labels where nothing else is learned from."""
    if true is None and learner.state.labels is None:
        raise ValueError("a row without labels")


def _is_thin(chosen: NDArray[Any]) -> bool:
    return chosen.dtype == np.int32


def _labels(step: Step, m: int, partly: bool, now: float = 0.0) -> bytes:
    true, ids = step.true, np.empty(0, dtype=np.int32)
    if true is None:  # no label is known
        true, ids = np.zeros(0 if _is_thin(step.chosen) else m), np.arange(m, dtype=np.int32)
    elif isinstance(true, Partly):
        true, ids = true
    labels = pack(Decision(None, true, step.weight, _is_thin(step.chosen)), now, m)
    if not partly:
        return labels
    unknown = ids.astype("<i4", copy=False).tobytes()
    return b"".join((len(unknown).to_bytes(4, "little"), unknown, labels))


def _came(part: bytes, m: int, partly: bool) -> tuple[Decision, float, Any]:
    """Labels as they came: laid out as a decision is, when, and as the learner counts them."""
    unknown = np.empty(0, dtype=np.int32)
    if partly:
        end = 4 + int.from_bytes(part[:4], "little")
        unknown, part = np.frombuffer(part[4:end], "<i4").astype(np.int32), part[end:]
        if not are_places(unknown, m):
            raise ValueError("unknown labels that no row has")
    labels = _unpacked(part, m)
    true = labels.prediction if labels.sparse else labels.prediction.astype(np.float64)
    if not len(unknown):
        return labels, time_of(part), true
    known = ~np.isin(true, unknown) if labels.sparse else true[unknown] == 0.0
    if not known.all():
        raise ValueError("labels that are both true and unknown")
    return labels, time_of(part), Partly(true, unknown) if len(unknown) < m else None


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

"""A learner as bytes: decisions that wait, the events of its journal, and its files.

- A *record* is the decision on one row: a head of fixed size, then bits or ids of labels, then
  probabilities.
- An *event* is one call that changes a learner: JSON, then the records of its decisions.
- A *file* is an .npz archive of JSON and plain arrays; a snapshot of a journal is one, too.

All of it is read as if a stranger had written it: nothing is run, and whatever no learner can have
written is a ``ValueError``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma import npz
from omma._json import parse_json
from omma._validate import check_number, check_positive_int, shown
from omma.metrics import Metric, metric_from_json
from omma.policies import policy_from_json
from omma.rows.arrays import HEAVIEST, NO_IDS
from omma.rows.frames import Names, read_names
from omma.rows.row import PartlyKnown
from omma.state_parts import MOST_AUDIT_WEIGHT

if TYPE_CHECKING:
    from omma.online.learner import OnlineClassifier

Id = str | int
LONGEST_ID = 1_000  # characters: memory is bounded by the number of rows only if ids are, too
WIDEST_ID = 2**128  # as large as a UUID
# What Python raises where a learner is made of a damaged file.
SPOILED = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)


# Ids


def check_id(key: Any) -> Id:
    """An id as it is kept: a text, or a whole number.

    >>> check_id(2.5)
    Traceback (most recent call last):
    ...
    TypeError: an id must be a text or a whole number, got 2.5
    """
    if isinstance(key, str):
        if len(key) > LONGEST_ID:
            raise ValueError(f"an id must have at most {LONGEST_ID:,} signs, got {len(key):,}")
        return str(key)
    if isinstance(key, bool) or not isinstance(key, int | np.integer):
        raise TypeError(f"an id must be a text or a whole number, got {shown(key)}")
    number = int(key)
    if not -WIDEST_ID < number < WIDEST_ID:
        raise ValueError(f"an id must be a number of at most 128 bits, got {hex(number)[:20]}…")
    return number


# Records


class Decision(NamedTuple):
    """The decision on one row, or on the rows of a matrix, which waits for its labels.

    ``prediction`` has an int8 indicator for each label, ``eta`` their probabilities. Of a single
    sparse row, ``prediction`` has the int32 ids of the labels predicted, and ``eta`` is a pair of
    ids and probabilities. ``eta`` is None if the learner does not need it. Of a frame, ``names``
    are those of its columns, ``index`` is that of its rows, and ``moved`` says that its columns
    were in another order than the labels.
    """

    prediction: Any
    eta: Any = None
    moved: bool = False
    names: Names | None = None
    index: Any = None

    @property
    def is_sparse(self) -> bool:
        """Whether it is of a single sparse row."""
        return bool(self.prediction.dtype == np.int32)


HEAD = struct.Struct("<BI")  # flags, and how many labels are predicted for a sparse row
SPARSE, ETA, MOVED = 1, 2, 4
DAMAGED = "a decision that waits is damaged"


def pack(decision: Decision) -> bytes:
    """The decision on one row as a record."""
    prediction, eta = decision.prediction, decision.eta
    flags = (MOVED if decision.moved else 0) | (0 if eta is None else ETA)
    if decision.is_sparse:
        head = HEAD.pack(flags | SPARSE, len(prediction))
        ids, values = (NO_IDS, None) if eta is None else eta
        parts = [(prediction, "<i4"), (ids, "<i4"), (values, "<f8")]
    else:
        head = HEAD.pack(flags, 0)
        parts = [(np.packbits(prediction != 0), "u1"), (eta, "<f8")]
    written = [np.asarray(part, kind).tobytes() for part, kind in parts if part is not None]
    return head + b"".join(written)


def unpack(record: bytes, m: int, *, check: bool = False) -> Decision:
    """The decision of a record, on one row of m labels.

    ``check`` also checks its values, for records from a file, which may contain anything.
    """
    if len(record) < HEAD.size:
        raise ValueError(DAMAGED)
    flags, chosen = HEAD.unpack_from(record)
    is_sparse, has_eta = bool(flags & SPARSE), bool(flags & ETA)
    end = HEAD.size + (4 * chosen if is_sparse else (m + 7) // 8)
    # Each probability takes eight bytes, and that of a sparse row has its label id before.
    stored, excess = divmod(len(record) - end, 12 if is_sparse else 8)
    fits = (is_sparse or stored == m) if has_eta else stored == 0
    if flags > SPARSE | ETA | MOVED or stored < 0 or excess or not fits:
        raise ValueError(DAMAGED)
    # Each is copied, so that compiled code gets aligned arrays of the machine's own kind.
    eta: Any = np.frombuffer(record[len(record) - 8 * stored :], "<f8").astype(np.float64)
    if check and not ((eta >= 0) & (eta <= 1)).all():
        raise ValueError(DAMAGED)
    if is_sparse:
        prediction = np.frombuffer(record[HEAD.size : end], "<i4").astype(np.int32)
        ids = np.frombuffer(record[end : end + 4 * stored], "<i4").astype(np.int32)
        if check and not (are_label_ids(prediction, m) and are_label_ids(ids, m)):
            raise ValueError(DAMAGED)
        eta = (ids, eta)
    else:
        bits = np.frombuffer(record[HEAD.size : end], np.uint8)
        prediction = np.unpackbits(bits, count=m).view(np.int8)
    return Decision(prediction, eta if has_eta else None, bool(flags & MOVED))


def are_label_ids(ids: NDArray[Any], m: int) -> bool:
    """Whether ids rise, and are those of labels: kernels follow them without looking."""
    if not len(ids):
        return True
    return bool(ids[0] >= 0 and ids[-1] < m and (ids[1:] > ids[:-1]).all())


def join(parts: Iterable[bytes]) -> bytes:
    """All parts one after another, each with its length before it.

    >>> split(join([b"one", b"", b"three"]))
    [b'one', b'', b'three']
    """
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def split(content: bytes) -> list[bytes]:
    """The parts that ``join`` put one after another."""
    parts, place = [], 0
    while place < len(content):
        start = place + 4
        place = start + int.from_bytes(content[place:start], "little")
        parts.append(content[start:place])
    if place != len(content):
        raise ValueError("a part that is longer than all of it")
    return parts


# Events


DECIDED, LABELLED, COUNTED, NAMED = "decided", "labelled", "counted", "named"


class EventRow(NamedTuple):
    """A row of an event.

    ``labels`` have the layout of the decision: indicators, or the ids of a sparse row; None where
    they are unknown. A row that was decided and labelled without an id has no ``key``. ``audit`` is
    not zero where labels were seen because of the decision (``omma.kernels.row.Gaps``).
    """

    key: Id | None
    decision: Decision | None
    labels: Any = None
    weight: float = 1.0
    audit: float = 0.0


class Event(NamedTuple):
    """One call that changes a learner.

    Rows were ``DECIDED`` by id, ``LABELLED`` by id, or ``COUNTED`` with decision and labels at
    once; or labels were ``NAMED`` by a frame. ``time`` is that of the clock of waiting decisions.
    """

    kind: str
    rows: list[EventRow]
    time: float = 0.0
    names: Names | None = None


def encode(event: Event) -> bytes:
    """An event as bytes."""
    rows = []
    for row in event.rows:
        true, unknown = row.labels if isinstance(row.labels, PartlyKnown) else (row.labels, NO_IDS)
        # Labels are written as ids, whatever the layout of the row is.
        if true is not None:
            true = (true if true.dtype == np.int32 else np.flatnonzero(true)).tolist()
        rows.append([row.key, true, unknown.tolist(), row.weight, row.audit])
    content = {"kind": event.kind, "time": event.time, "names": event.names, "rows": rows}
    parts = [json.dumps(content).encode()]
    if event.kind != LABELLED:  # these decisions wait, so the learner has them
        parts += [pack(row.decision) for row in event.rows if row.decision is not None]
    return join(parts)


def decode(content: bytes, m: int) -> Event:
    """The event of some bytes, with the ids of labels: ``lay_out`` gives them their layout.

    Rows that were ``LABELLED`` have no decision: it waits in the learner.
    """
    text, *records = split(content)
    event = parse_json("an event", text)
    kind, rows = event["kind"], []
    if kind not in (DECIDED, LABELLED, COUNTED, NAMED):
        raise ValueError(f"an event of the unknown kind {shown(kind)}")
    decisions: list[Decision | None] = [unpack(record, m, check=True) for record in records]
    if kind == LABELLED:
        decisions = [None] * len(event["rows"])
    for row, decision in zip(event["rows"], decisions, strict=True):
        key, true, unknown, weight, audit = row
        if kind != COUNTED:
            check_id(key)
        check_number("an event", "weight", weight, low=0.0, high=HEAVIEST)
        if audit not in (0.0, -1.0) and not 1.0 <= audit <= MOST_AUDIT_WEIGHT:
            raise ValueError("an audit of another weight than audits have")
        labels = None
        if true is not None:
            ids = [np.array(part, dtype=np.int32).ravel() for part in (true, unknown)]
            labels = PartlyKnown(*ids)
            if not all(are_label_ids(part, m) for part in ids):
                raise ValueError("labels that no row has")
            if np.isin(ids[0], ids[1]).any():
                raise ValueError("labels that are both true and unknown")
        rows.append(EventRow(key, decision, labels, float(weight), float(audit)))
    time = check_number("an event", "time", event["time"], low=0.0)
    return Event(kind, rows, time, read_names("a journal", event["names"], m))


def lay_out(labels: PartlyKnown | None, decision: Decision, m: int) -> Any:
    """The labels of a decoded row in the layout of its decision.

    >>> lay_out(PartlyKnown(np.array([1]), NO_IDS), Decision(np.zeros(3, np.int8)), 3)
    array([0., 1., 0.])
    """
    if labels is None:
        return None
    true, unknown = labels
    if not decision.is_sparse:
        indicators = np.zeros(m)
        indicators[true] = 1.0
        true = indicators
    return PartlyKnown(true, unknown) if len(unknown) else true


# Files


FORMAT = "omma-learner-3"
KIND = "omma learner"


def write(path: str | Path | BinaryIO, learner: OnlineClassifier) -> None:
    """Write a learner to a file, whole or not at all."""
    metric, waiting, last = learner.metric, learner.waiting, learner._last
    content = {
        "format": FORMAT,
        "policy": learner.policy.to_json(),
        "n_labels": learner.n_labels,
        "gap": learner._certificate is not None,
        "names": learner.names,
        "metric": None if metric in (None, learner.policy.objective) else metric.to_json(),
        "last_names": None if last is None else last.names,
        "max_waiting": waiting.limit,
        "max_age": waiting.max_age,
        "max_seconds": waiting.max_seconds,
        "refused": learner._refused,
    }
    # Members of the archive are named by their group: state_cells, waiting_ids, …
    groups = {"state": learner.state.arrays(), "waiting": waiting.arrays()}
    if learner._certificate is not None:
        groups["gap"] = learner._certificate.arrays()
    parts: dict[str, Any] = {"content": json.dumps(content)}
    for group, arrays in groups.items():
        parts |= {f"{group}_{name}": array for name, array in arrays.items()}
    if learner._pairs is not None:
        parts["pairs"] = learner._pairs
    if last is not None:
        records = join(pack(row) for row in learner._rows("save", last))
        parts["last"] = np.frombuffer(records, np.uint8)
    npz.write(path, parts)


def read(
    cls: type[OnlineClassifier],
    path: str | Path,
    metric: Metric | None,
    content: bytes | None = None,
) -> OnlineClassifier:
    """Read what ``write`` wrote; nothing in the file is run, and no more of it read than fits.

    ``content`` is what was written, if it is only a part of the file.
    """
    if Path(path).is_dir():
        raise ValueError(f"{path} is not a sound {KIND}: it is a folder")
    with npz.opened(path, KIND, content) as archive:
        try:
            options = archive.json("content")
        except ValueError as error:
            raise ValueError(f"{path} is not an {KIND}: {error}") from error
        form = options.get("format") if isinstance(options, dict) else options
        if form != FORMAT:
            raise ValueError(
                f"{path} is not an {KIND} of the format {FORMAT}, got {shown(form)}: load it with "
                "the version of omma that wrote it, or begin a new learner"
            )
        with npz.told(str(path), f"is not a whole {KIND}", SPOILED):
            return _learner(cls, archive, options, metric)


def _learner(
    cls: type[OnlineClassifier], archive: npz.Archive, content: dict[str, Any], metric: Any
) -> OnlineClassifier:
    """The learner of a file; ``metric`` is one that no file can hold."""
    m = check_positive_int(f"{archive.path}, a {KIND},", "n_labels", content["n_labels"])
    # The counts say how many labels there are, before memory is taken for them.
    archive.array("state_cells", kinds="f", shape=(3, m), finite=True)
    # A metric of a user's own decides, unless it is the one that judges.
    judge = content["metric"]
    is_judge = metric is not None and judge == metric.to_json()
    policy = policy_from_json(content["policy"], None if is_judge else metric)
    learner = cls(
        policy,
        m,
        metric=metric if is_judge else None if judge is None else metric_from_json(judge),
        gap=bool(content["gap"]),
        names=content["names"],
        max_waiting=content["max_waiting"],
        max_age=content["max_age"],
        max_seconds=content["max_seconds"],
    )
    learner.state.restore(_arrays(archive, "state_", learner.state.shapes()))
    if learner._certificate is not None:
        shapes = learner._certificate.shapes()
        learner._certificate.restore(_arrays(archive, "gap_", shapes))
    if learner._pairs is not None:
        learner._pairs[...] = archive.array("pairs", shape=(m, m), finite=True, low=-1e-6)
    needs_eta = learner._keeps_eta_late
    arrays = _arrays(archive, "waiting_", dict.fromkeys(learner.waiting.arrays()))
    learner.waiting.restore(arrays, lambda row: learner._check_decision(row, needs_eta))
    for kind in learner._refused:
        number = content["refused"][kind]
        learner._refused[kind] = check_positive_int("a file", f"refused {kind!r}", number, least=0)
    if "last" in archive:
        records = split(archive.array("last", kinds="u", shape=(None,)).tobytes())
        last = _stacked([unpack(record, m, check=True) for record in records], m)
        last = last._replace(names=read_names("a decision", content["last_names"], m))
        learner._check_decision(last, learner._keeps_eta)
        learner._last = last
    return learner


def _arrays(
    archive: npz.Archive, prefix: str, shapes: Mapping[str, tuple[int, ...] | None]
) -> dict[str, NDArray[Any]]:
    """The arrays that a learner asks for, if they have these shapes; no others are unpacked."""
    return {
        name: archive.array(prefix + name, shape=shape)
        for name, shape in shapes.items()
        if prefix + name in archive  # whoever needs an array that is missing names it
    }


def _stacked(rows: list[Decision], m: int) -> Decision:
    """The decisions on some rows as the decision on a matrix of them."""
    if not rows:  # the matrix that was decided had none
        return Decision(np.zeros((0, m), dtype=np.int8), np.zeros((0, m)))
    first = rows[0]
    if len(rows) == 1:
        return first
    if len({(row.is_sparse, row.eta is None, row.moved) for row in rows}) > 1:
        raise ValueError("rows of different kinds that were decided together")
    predictions, etas = [row.prediction for row in rows], [row.eta for row in rows]
    if first.is_sparse:
        predictions = [_csr_of_ids(ids, np.ones(len(ids), dtype=np.int8), m) for ids in predictions]
        etas = [None if eta is None else _csr_of_ids(eta[0], eta[1], m) for eta in etas]
    stack: Any = sparse.vstack if first.is_sparse else np.stack
    return Decision(stack(predictions), None if first.eta is None else stack(etas), first.moved)


def _csr_of_ids(ids: NDArray[np.int32], values: NDArray[Any], m: int) -> sparse.csr_array:
    """A row of values at these label ids."""
    return sparse.csr_array((values, ids, [0, len(ids)]), shape=(1, m))

"""A learner as bytes: decisions that wait, the events of its journal, and its files.

- A *record* is one decision, or the labels of one: a head of fixed size, then bits or ids of
  labels, then probabilities.
- An *event* is one call that changes a learner: a letter, then parts with their length before each.
  It is all there or not at all, so that no call is ever done again by half.
- A *file* is an .npz archive of JSON and plain arrays; a snapshot of a journal is one, too.

All of it is read as if a stranger had written it: nothing is run, and whatever no learner can have
written is a ``ValueError``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma import npz
from omma._json import parse_json
from omma._validate import check_positive_int, shown
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
# What Python raises where a learner is made of a spoiled file.
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
    """What was decided for one row, or for the rows of a matrix, and waits for its labels.

    ``prediction`` has an int8 indicator for each label, ``eta`` their probabilities. Of a single
    sparse row, ``prediction`` has the int32 ids of the labels predicted, and ``eta`` is a pair of
    ids and probabilities. ``eta`` is None where nobody learns from it. Of a frame, ``names`` are
    those of its columns, ``index`` is that of its rows, and ``moved`` says that its columns were
    in another order than the labels.
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


# Time of the decision, weight, flags, and how many labels are predicted for a sparse row.
HEAD = struct.Struct("<ddBI")
# SINGLE is only read: older learners kept 32-bit probabilities as they came.
SPARSE, ETA, SINGLE, MOVED = 1, 2, 4, 8
DAMAGED = "a decision that waits is damaged"


def pack(decision: Decision, m: int, time: float = 0.0, weight: float = 1.0) -> bytes:
    """The decision on one row of m labels as a record."""
    prediction, eta = decision.prediction, decision.eta
    flags = (MOVED if decision.moved else 0) | (0 if eta is None else ETA)
    if decision.is_sparse:
        head = HEAD.pack(time, weight, flags | SPARSE, len(prediction))
        ids, values = ((), None) if eta is None else eta
        parts = [(prediction, "<i4"), (ids, "<i4"), (values, "<f8")]
    else:
        for name, values in (("prediction", prediction), ("eta", eta)):
            if values is not None and len(values) != m:
                raise ValueError(f"{name} of a decision must have {m} numbers, got {len(values)}")
        head = HEAD.pack(time, weight, flags, 0)
        parts = [(np.packbits(prediction != 0), "u1"), (eta, "<f8")]
    written = [np.asarray(part, kind).tobytes() for part, kind in parts if part is not None]
    return head + b"".join(written)


def unpack(record: bytes, m: int, *, check: bool = False) -> tuple[Decision, float, float]:
    """The decision of a record, its time and its weight.

    ``check`` looks at its values, too, as for a record from a file: anything may stand there.
    """
    if len(record) < HEAD.size:
        raise ValueError(DAMAGED)
    time, weight, flags, chosen = HEAD.unpack_from(record)
    number = np.dtype("<f4" if flags & SINGLE else "<f8")
    is_sparse, has_eta = bool(flags & SPARSE), bool(flags & ETA)
    end = HEAD.size + (4 * chosen if is_sparse else (m + 7) // 8)
    # Each probability of a sparse row has its label id before.
    stored, excess = divmod(len(record) - end, number.itemsize + (4 if is_sparse else 0))
    fits = (is_sparse or stored == m) if has_eta else stored == 0
    if flags > SPARSE | ETA | SINGLE | MOVED or stored < 0 or excess or not fits:
        raise ValueError(DAMAGED)
    # Each is copied, so that compiled code gets aligned arrays of the machine's own kind.
    values = np.frombuffer(record[len(record) - stored * number.itemsize :], number)
    eta: Any = values.astype(np.float64)
    if check and not (0.0 <= weight <= HEAVIEST and ((eta >= 0) & (eta <= 1)).all()):
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
    return Decision(prediction, eta if has_eta else None, bool(flags & MOVED)), time, weight


def are_label_ids(ids: Any, m: int) -> bool:
    """Whether ids rise, and are those of labels: kernels follow them without looking."""
    ids = np.asarray(ids)
    return bool(((ids >= 0) & (ids < m)).all() and (np.diff(ids) > 0).all())


# Events


DECIDED, LABELLED, COUNTED, NAMED = b"D", b"L", b"C", b"N"
SEEN = b"P"  # before an event whose labels were seen where predicted: the audit of each row


class EventRow(NamedTuple):
    """A row of an event.

    ``labels`` are laid out as the decision is: indicators, or the ids of a sparse row; None where
    they are unknown. What waits by id is known without its ``decision``, and a row that was decided
    and labelled without an id has no ``key``. ``audit`` is not zero where labels were seen because
    of the decision (``omma.kernels.row.Gaps``).
    """

    key: Id | None
    decision: Decision | None
    labels: Any = None
    weight: float = 1.0
    audit: float = 0.0


class Event(NamedTuple):
    """One call that changes a learner.

    Rows were ``DECIDED`` by id, ``LABELLED`` by id, or ``COUNTED`` with decision and labels at
    once; or labels were ``NAMED`` by a frame. ``time`` is that of decisions that grow old.
    """

    kind: bytes
    rows: list[EventRow]
    time: float = 0.0
    names: Names | None = None


def encode(event: Event, m: int) -> bytes:
    """An event as bytes."""
    kind, parts = event.kind, []
    if kind == NAMED:
        return kind + _with_length(json.dumps(event.names).encode())
    if any(row.audit for row in event.rows):
        audits = np.array([row.audit for row in event.rows], dtype="<f8")
        parts = [SEEN, _with_length(audits.tobytes())]
    # Where labels are unknown, each row says which; such an event has a small letter.
    # A row that was counted without any label has an empty part in their place.
    is_partial = kind != DECIDED and any(
        isinstance(row.labels, PartlyKnown) or (row.labels is None and kind == LABELLED)
        for row in event.rows
    )
    parts.append(kind.lower() if is_partial else kind)
    for key, decision, labels, weight, _ in event.rows:
        assert decision is not None
        # Of a row without an id its decision comes first, in place of the id.
        first = pack(decision, m, weight=weight) if kind == COUNTED else json.dumps(key).encode()
        if kind == DECIDED:
            second = pack(decision, m, event.time)
        elif kind == COUNTED and labels is None:
            second = b""
        else:
            unknown = NO_IDS
            if labels is None:
                none = NO_IDS if decision.is_sparse else np.zeros(m)
                labels, unknown = none, np.arange(m, dtype=np.int32)
            elif isinstance(labels, PartlyKnown):
                labels, unknown = labels
            second = pack(Decision(labels), m, event.time, weight)
            if is_partial:
                second = _with_length(unknown.astype("<i4", copy=False).tobytes()) + second
        parts += [_with_length(first), _with_length(second)]
    return b"".join(parts)


def decode(content: bytes, m: int) -> Event:
    """The event of some bytes."""
    audits: list[float] | None = None
    if content[:1] == SEEN:
        part, place = _part(content, 1)
        audits, content = np.frombuffer(part, "<f8").tolist(), content[place:]
        if not all(audit == -1.0 or 1.0 <= audit <= MOST_AUDIT_WEIGHT for audit in audits):
            raise ValueError("an audit of another weight than audits have")
    kind, is_partial = content[:1].upper(), content[:1].islower()
    if kind not in (DECIDED, LABELLED, COUNTED, NAMED) or content[:1] in (b"d", b"n"):
        raise ValueError(f"an event of the unknown kind {content[:1]!r}")
    if audits is not None and kind not in (LABELLED, COUNTED):
        raise ValueError("labels seen where predicted, of an event without labels")
    parts, place = [], 1
    while place < len(content):
        part, place = _part(content, place)
        parts.append(part)
    if kind == NAMED:
        return Event(kind, [], names=read_names("a journal", parse_json("names", parts[0]), m))
    rows, time = [], 0.0
    firsts, seconds = parts[::2], parts[1::2]
    audits = [0.0] * len(firsts) if audits is None else audits
    for first, second, audit in zip(firsts, seconds, audits, strict=True):
        key, decision, labels, weight = None, None, None, 1.0
        if kind == COUNTED:
            decision, _, weight = unpack(first, m, check=True)
        else:
            key = check_id(parse_json("an id", first))
        if kind == DECIDED:
            decision, time, _ = unpack(second, m, check=True)
        elif second or kind == LABELLED:
            unknown, place = _part(second, 0) if is_partial else (b"", 0)
            laid_out, time, weight = unpack(second[place:], m, check=True)
            labels = laid_out.prediction
            labels = labels if laid_out.is_sparse else labels.astype(np.float64)
            labels = _known_labels(labels, np.frombuffer(unknown, "<i4").astype(np.int32), m)
        rows.append(EventRow(key, decision, labels, weight, audit))
    return Event(kind, rows, time)


def _known_labels(labels: NDArray[Any], unknown: NDArray[np.int32], m: int) -> Any:
    """Labels as a learner counts them, where some are unknown."""
    if not are_label_ids(unknown, m):
        raise ValueError("unknown labels that no row has")
    is_true = np.isin(labels, unknown) if labels.dtype == np.int32 else labels[unknown] != 0.0
    if is_true.any():
        raise ValueError("labels that are both true and unknown")
    if len(unknown) == m:
        return None
    return PartlyKnown(labels, unknown) if len(unknown) else labels


def _with_length(part: bytes) -> bytes:
    return len(part).to_bytes(4, "little") + part


def _part(content: bytes, place: int) -> tuple[bytes, int]:
    """A part with its length before it, and the byte behind it."""
    start = place + 4
    end = start + int.from_bytes(content[place:start], "little")
    if end > len(content):
        raise ValueError("a part that is longer than its event")
    return content[start:end], end


# Files


FORMAT = "omma-learner-2"
FIRST_FORMAT = "omma-learner-1"  # what the first release wrote
KIND = "omma learner"
# Of a snapshot: the name of its journal, which snapshot it is, and the number of the next record.
JOURNAL_FIELDS = {"journal", "generation", "first"}


def write(
    path: str | Path | BinaryIO, learner: OnlineClassifier, journal: dict[str, Any] | None = None
) -> None:
    """Write a learner to a file, whole or not at all.

    ``journal`` says which snapshot of which journal this is.
    """
    metric, waiting, last = learner.metric, learner.waiting, learner._last
    content = {
        "format": FORMAT,
        "policy": learner.policy.to_json(),
        "n_labels": learner.n_labels,
        "gap": learner._certificate is not None,
        "names": learner.names,
        "metric": None if metric in (None, learner.policy.objective) else metric.to_json(),
        "last": None if last is None else {"names": last.names, "moved": last.moved},
        "max_waiting": waiting.limit,
        "max_age": waiting.max_age,
        "max_seconds": waiting.max_seconds,
        "refused": learner._refused,
        "journal": journal,
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
        prediction, eta = last.prediction, last.eta
        if last.is_sparse:  # files have matrices alone
            shape, ones = (1, learner.n_labels), np.ones(len(prediction), dtype=np.int8)
            prediction = sparse.csr_array((ones, prediction, [0, len(ones)]), shape=shape)
            if eta is not None:
                eta = sparse.csr_array((eta[1], eta[0], [0, len(eta[0])]), shape=shape)
        parts["prediction"] = prediction
        parts |= {} if eta is None else {"eta": eta}
    npz.write(path, parts)


def read(
    cls: type[OnlineClassifier], path: str | Path, metric: Metric | None
) -> tuple[OnlineClassifier, dict[str, Any] | None]:
    """Read what ``write`` wrote; nothing in the file is run, and no more of it read than fits.

    With the learner comes which snapshot of which journal the file is; None if it does not say.
    """
    if Path(path).is_dir():
        raise ValueError(f"{path} is not a sound {KIND}: it is a folder")
    with npz.opened(path, KIND) as archive:
        try:
            content = archive.json("content")
        except ValueError as error:
            raise ValueError(f"{path} is not an {KIND}: {error}") from error
        is_known = isinstance(content, dict) and content.get("format") in (FORMAT, FIRST_FORMAT)
        if not is_known or {"policy", "n_labels"} - set(content):
            raise ValueError(f"{path} is not an {KIND} of the format {FORMAT}")
        with npz.told(str(path), f"is not a whole {KIND}", SPOILED):
            learner, entry = _learner(cls, archive, content, metric), content.get("journal")
            if entry is not None and (type(entry) is not dict or set(entry) != JOURNAL_FIELDS):
                raise ValueError(f"journal must have {sorted(JOURNAL_FIELDS)}")
    return learner, entry


def _learner(
    cls: type[OnlineClassifier], archive: npz.Archive, content: dict[str, Any], metric: Any
) -> OnlineClassifier:
    """The learner of a file; ``metric`` is one that no file can hold."""
    m = check_positive_int(f"{archive.path}, a {KIND},", "n_labels", content["n_labels"])
    # The counts say how many labels there are, before memory is taken for them.
    archive.array("state_cells", kinds="f", shape=(3, m), finite=True)
    # A metric of a user's own decides, unless it is the one that judges.
    judge = content.get("metric")
    is_judge = metric is not None and judge == metric.to_json()
    policy = policy_from_json(content["policy"], None if is_judge else metric)
    learner = cls(
        policy,
        m,
        metric=metric if is_judge else None if judge is None else metric_from_json(judge),
        gap=bool(content.get("gap", False)),
        names=content.get("names"),
        max_waiting=content.get("max_waiting", 10_000),
        max_age=content.get("max_age"),
        max_seconds=content.get("max_seconds"),
    )
    learner.state.restore(_arrays(archive, "state_", learner.state.shapes()))
    if learner._certificate is not None:
        shapes = learner._certificate.shapes()
        learner._certificate.restore(_arrays(archive, "gap_", shapes))
    if learner._pairs is not None:
        learner._pairs[...] = archive.array("pairs", shape=(m, m), finite=True, low=-1e-6)
    if "waiting_ids" in archive:  # the first release had no ids
        shapes, needs_eta = dict.fromkeys(learner.waiting.arrays()), learner._keeps_eta_late
        arrays = _arrays(archive, "waiting_", shapes)
        learner.waiting.restore(arrays, lambda row: learner._check_decision(row, needs_eta))
        learner._refused.update(_refused(content.get("refused"), learner._refused))
    if "prediction" in archive or "prediction_data" in archive:
        learner._last = _last_decision(archive, m, content.get("last") or {})
    return learner


def _refused(counts: Any, kinds: Mapping[str, int]) -> dict[str, int]:
    """How many calls of each kind a learner has refused."""
    if not isinstance(counts, dict) or set(counts) != set(kinds):
        raise ValueError(f"refused must count {', '.join(kinds)}, got {shown(counts)}")
    for number in counts.values():
        if type(number) is not int or number < 0:
            raise ValueError(f"refused must hold numbers of at least 0, got {shown(number)}")
    return counts


def _arrays(
    archive: npz.Archive, prefix: str, shapes: Mapping[str, tuple[int, ...] | None]
) -> dict[str, NDArray[Any]]:
    """The arrays that a learner asks for, if they have these shapes; no others are unpacked."""
    arrays = {}
    for name, shape in shapes.items():
        member = prefix + name
        if member not in archive and name.startswith("labels_"):
            member = name.replace("labels_", "truth_", 1)  # as the first release called it
        if member in archive:  # whoever needs an array that is missing names it
            arrays[name] = archive.array(member, shape=shape)
    return arrays


def _last_decision(archive: npz.Archive, m: int, frame: dict[str, Any]) -> Decision:
    """The decision without an id that waits; ``frame`` says how the frame it came in was."""
    eta: Any = None
    if "prediction_data" in archive:
        prediction: Any = archive.csr("prediction", shape=(None, m), low=0, high=1)
        prediction = sparse.csr_array(prediction, dtype=np.int8)
        if "eta_data" in archive:
            eta = archive.csr("eta", shape=prediction.shape, kinds="f", low=0, high=1)
    else:
        prediction = archive.array("prediction", kinds="iu", low=0, high=1).astype(np.int8)
        if prediction.shape[-1:] != (m,) and prediction.ndim != 1:
            raise archive.refuse("prediction", f"rows of {m} labels", prediction.shape)
        if "eta" in archive:
            shape = prediction.shape
            eta = archive.array("eta", kinds="f", shape=shape, finite=True, low=0, high=1)
            eta = eta.astype(np.float64)
    names = frame.get("names")
    names = None if names is None else tuple(names)
    return Decision(prediction, eta, bool(frame.get("moved", False)), names)

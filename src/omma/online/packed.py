"""What was decided for a row, and the few bytes it takes while it waits for its labels."""

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Time of the decision, weight, what kind of row it is, and how many labels a sparse one was given.
_HEAD = struct.Struct("<ddBI")
_SPARSE, _ETA, _SINGLE, _MOVED = 1, 2, 4, 8
_DAMAGED = "a decision that waits is damaged"

Eta = NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]


class Decision(NamedTuple):
    """A decision: ``prediction`` has an indicator for each label, ``eta`` their probabilities.

    Of a ``sparse`` row, ``prediction`` has the places of the labels predicted, and ``eta`` is a
    pair: the places of the probabilities stored, and these. Where ``eta`` is None, nobody needs it.
    ``moved`` says that it came in a frame with its columns in another order.
    """

    eta: Eta | None
    prediction: NDArray[Any]
    weight: float = 1.0
    sparse: bool = False
    moved: bool = False


def pack(decision: Decision, time: float, n_labels: int) -> bytes:
    """A decision as bytes; probabilities of 32 bits stay so, all others take 64."""
    prediction = np.asarray(decision.prediction)
    kind = (_SPARSE if decision.sparse else 0) | (0 if decision.eta is None else _ETA)
    kind |= _MOVED if decision.moved else 0
    parts = [_places(prediction) if decision.sparse else _bits(prediction, n_labels)]
    if decision.eta is not None:
        values = np.asarray(decision.eta[1] if decision.sparse else decision.eta)
        kind |= _SINGLE if values.dtype == np.float32 else 0
        if decision.sparse:
            _check_width("places of eta", len(decision.eta[0]), len(values))
            parts.append(_places(decision.eta[0]))
        else:
            _check_width("eta", len(values), n_labels)
        parts.append(values.astype(_type(kind), copy=False).tobytes())
    chosen = len(prediction) if decision.sparse else 0
    return b"".join([_HEAD.pack(time, decision.weight, kind, chosen), *parts])


def unpack(record: bytes, n_labels: int) -> Decision:
    """The decision that was packed; ``ValueError`` where the bytes have no such shape."""
    _, weight, kind, chosen = _head(record)
    if not kind & _SPARSE:
        end = _HEAD.size + (n_labels + 7) // 8
        bits = np.frombuffer(record[_HEAD.size : end], np.uint8)
        if len(record) - end != (n_labels * _width(kind) if kind & _ETA else 0):
            raise ValueError(_DAMAGED)
        prediction = np.unpackbits(bits, count=n_labels).astype(np.int8)
        eta = _numbers(record[end:], kind) if kind & _ETA else None
        return Decision(eta, prediction, weight, moved=bool(kind & _MOVED))
    end = _HEAD.size + 4 * chosen
    stored, over = divmod(len(record) - end, 4 + _width(kind))
    if len(record) < end or over or (stored and not kind & _ETA):
        raise ValueError(_DAMAGED)
    middle = end + 4 * stored
    pair = (_read_places(record[end:middle]), _numbers(record[middle:], kind))
    chosen_labels = _read_places(record[_HEAD.size : end])
    stored_eta = pair if kind & _ETA else None
    return Decision(stored_eta, chosen_labels, weight, sparse=True, moved=bool(kind & _MOVED))


def time_of(record: bytes) -> float:
    """When a packed decision was made, in whatever the clock counts."""
    return float(_head(record)[0])


def check_unpacked(decision: Decision, n_labels: int) -> None:
    """Refuse what no learner has decided: such bytes come from a file that somebody changed."""
    eta = decision.eta
    values = (eta[1] if decision.sparse else eta) if eta is not None else np.empty(0)
    right = np.isfinite(decision.weight) and decision.weight >= 0
    right = right and bool(((values >= 0) & (values <= 1)).all())  # type: ignore[operator]
    if decision.sparse:
        right = right and are_places(decision.prediction, n_labels)
        right = right and (eta is None or are_places(eta[0], n_labels))
    if not right:
        raise ValueError(_DAMAGED)


def _head(record: bytes) -> tuple[float, float, int, int]:
    if len(record) < _HEAD.size:
        raise ValueError(_DAMAGED)
    time, weight, kind, chosen = _HEAD.unpack_from(record)
    if kind > _SPARSE | _ETA | _SINGLE | _MOVED:
        raise ValueError(_DAMAGED)
    return time, weight, kind, chosen


def _type(kind: int) -> str:
    return "<f4" if kind & _SINGLE else "<f8"


def _width(kind: int) -> int:
    return 4 if kind & _SINGLE else 8


def _check_width(what: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise ValueError(f"{what} of a decision must have {wanted} numbers, got {found}")


def _bits(prediction: NDArray[Any], n_labels: int) -> bytes:
    _check_width("prediction", len(prediction), n_labels)
    whole = prediction.dtype.kind in "iub"  # which packbits takes as they are
    return np.packbits(prediction if whole else prediction != 0).tobytes()


def _places(places: NDArray[Any]) -> bytes:
    return np.asarray(places).astype("<i4", copy=False).tobytes()


# Both copy, so that compiled code gets whole arrays of the machine's own kind.
def _read_places(part: bytes) -> NDArray[np.int32]:
    return np.frombuffer(part, "<i4").astype(np.int32)


def _numbers(part: bytes, kind: int) -> NDArray[Any]:
    return np.frombuffer(part, _type(kind)).astype(np.float32 if kind & _SINGLE else np.float64)


def are_places(places: NDArray[Any], n_labels: int) -> bool:
    """Whether these rise, and are those of labels."""
    inside = bool(((places >= 0) & (places < n_labels)).all())
    return inside and bool((np.diff(places) > 0).all())

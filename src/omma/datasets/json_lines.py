"""Lines of JSON with probabilities, labels or both."""

import json
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma._validate import nearest, shown

Vector = NDArray[np.float64]
Names = tuple[str, ...]

KEYS = ("id", "eta", "y", "decision", "audited")
MOST_LABELS = 1 << 31  # as arrays of 32-bit ids can tell apart


class Line(NamedTuple):
    """The content of a line; None where a key is absent."""

    id: Any = None
    eta: Vector | None = None
    y: Any = None  # indicators, or a class id
    decision: Vector | None = None  # made by an earlier process, instead of the remembered one
    audited: bool = False  # whether all labels were looked up, not only the predicted ones


class JsonLines:
    """Reads lines such as ``{"id": "a", "eta": [0.9, 0.1], "y": [1, 0]}``; all keys are optional.

    Labels may have names: ``{"eta": {"sport": 0.9, "art": 0.1}, "y": ["sport"]}``. All names are
    those of a learner (``names``), or else those of the first line with probabilities; a
    ``settled`` reader takes no names from lines. Rows of other lengths than ``width`` are refused;
    it is ``n_labels``, or what is set once the first row is known.
    """

    def __init__(
        self, n_labels: int | None, names: Names | None = None, *, settled: bool = False
    ) -> None:
        self.n_labels = self.width = n_labels
        self._name_labels(names)
        self._settled = settled  # whether a row has been read, with or without names

    def _name_labels(self, names: Names | None) -> None:
        self.names = names
        self._places = {name: place for place, name in enumerate(names or ())}

    def read(self, text: str) -> Line | None:
        """Read a line; None if it is blank."""
        return self.line(parsed(text)) if text.strip() else None

    def line(self, content: Any) -> Line:
        """Check the content of a line that JSON has parsed."""
        if not isinstance(content, dict):
            raise ValueError(f"expected a JSON object, got {shown(content)}")
        for key in content:
            if key not in KEYS:
                raise ValueError(f"expected the keys {', '.join(KEYS)}, got {shown(key)}")
        row_id, eta, y, decision, audited = map(content.get, KEYS)
        row_id = None if row_id is None else _checked_id(row_id)
        eta = None if eta is None else self._eta(eta)
        y = None if y is None else self._labels(y)
        decision = None if decision is None else _numbers("decision", decision)
        width = self.width
        for title, row in (("probabilities", eta), ("decisions", decision), ("labels", y)):
            if isinstance(row, np.ndarray):  # y may be a class id
                width = width or len(row)
                if len(row) != width:
                    raise ValueError(f"expected {width} {title}, got {len(row)}")
        if audited not in (None, 0, 1):  # true and false are 1 and 0
            raise ValueError(f"expected true or false as audited, got {shown(audited)}")
        return Line(row_id, eta, y, decision, bool(audited))

    def _eta(self, values: Any) -> Vector:
        is_first, self._settled = not self._settled, True
        if not isinstance(values, dict):
            return _numbers("eta", values)
        if self.names is None and is_first and not all(map(str.isdecimal, values)):
            self._name_labels(tuple(_unicode("names of labels", name) for name in values))
        if self.names is not None:
            m, places = len(self.names), [self._place("eta", label) for label in values]
        elif self.n_labels is not None:
            m, places = self.n_labels, [self._number(label) for label in values]
        else:
            raise ValueError("expected a list in eta; pairs label: probability need --n-labels")
        row = np.zeros(m)  # labels that are not in the line have the probability 0
        if places:
            row[places] = _numbers("eta", [*values.values()])
        return row

    def _labels(self, values: Any) -> Any:
        """Indicators, or a class id; names stand for either."""
        # In Python a bool is an int as well; here it is no class id.
        if isinstance(values, int) and not isinstance(values, bool):
            if abs(values) > MOST_LABELS:
                raise ValueError(f"expected a class id in y, got {shown(values)}")
            return values
        m = len(self._places)
        if isinstance(values, str) and m:
            place = self._place("y", values)
            return place if m > 1 else np.array([1.0])
        if isinstance(values, list) and m and all(isinstance(label, str) for label in values):
            row = np.zeros(m)
            row[[self._place("y", label) for label in values]] = 1
            return row
        if isinstance(values, list):  # null is an unknown label
            values = [math.nan if value is None else value for value in values]
        return _numbers("y", values)

    def _place(self, key: str, label: str) -> int:
        if label not in self._places:
            hint = nearest(label, self._places) or f" among {shown(tuple(self._places))}"
            raise ValueError(f"expected names of labels in {key}, got {label!r}{hint}")
        return self._places[label]

    def _number(self, label: str) -> int:
        assert self.n_labels is not None
        # Very long numbers are no labels, and slow to parse.
        if not label.isdecimal() or len(label) > 9 or int(label) >= self.n_labels:
            last = self.n_labels - 1
            raise ValueError(f"expected labels from 0 to {last} in eta, got {shown(label)}")
        return int(label)


def parsed(text: str | bytes) -> Any:
    """Parse JSON."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"expected JSON, got brackets nested too deep: {shown(text)}") from error
    except ValueError as error:
        raise ValueError(f"expected JSON, got {shown(text[:100].strip())}: {error}") from error


def _checked_id(key: Any) -> Any:
    """An id is a text or a whole number; programs without whole numbers write 7.0 for 7."""
    if isinstance(key, bool | list | dict) or (isinstance(key, float) and not key.is_integer()):
        raise ValueError(f"expected a text or whole number as id, got {shown(key)}")
    if isinstance(key, str):
        return _unicode("a text or whole number as id", key)
    return int(key)


def _unicode(expected: str, text: str) -> str:
    """Refuse a text with half a surrogate pair, which JSON allows and no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"expected {expected}, got {shown(text)}, which is no Unicode text"
        ) from error
    return text


def _numbers(key: str, values: Any) -> Vector:
    """A row of numbers; callers check whether these are probabilities or labels."""
    row = values if isinstance(values, list) else [values]
    if not row or not {type(value) for value in row} <= {int, float}:
        raise ValueError(f"expected numbers in {key}, got {shown(values)}")
    try:
        return np.array(row, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"expected numbers in {key}, got one of too many digits") from error

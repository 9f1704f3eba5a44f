"""Lines of a stream that are JSON."""

import json
import math
from typing import Any

import numpy as np

from omma._validate import nearest, shown
from omma.cli.lines import Line, Names, Vector

KEYS = ("id", "eta", "y", "decision")
MOST_LABELS = 1 << 31


class JsonLines:
    """``{"id": "a", "eta": [0.9, 0.1], "y": [1, 0]}``, all but one of them optional.

    Labels may have names: ``{"eta": {"sport": 0.9, "art": 0.1}, "y": ["sport"]}``. Those of the
    first line that has them are all there are, where a learner does not bring its own; none are
    taken from lines once it is ``settled``. Rows of other lengths than ``n_labels`` are refused.
    """

    def __init__(
        self, n_labels: int | None, names: Names | None = None, *, settled: bool = False
    ) -> None:
        self.n_labels = n_labels
        self.names = names
        self._places = _numbered(names)
        self._fixed = settled  # whether rows have come, which had names or not

    def read(self, text: str) -> Line | None:
        """What a line says."""
        if not text.strip():
            return None
        return self.line(parsed(text))

    def line(self, content: Any) -> Line:
        """What an object says, as JSON was read."""
        given = {key: value for key, value in _checked(content).items() if value is not None}
        return Line(
            _id(given.get("id")),
            self._fitting("probabilities", self._eta(given["eta"])) if "eta" in given else None,
            self._labels(given["y"]) if "y" in given else None,
            self._decision(given["decision"]) if "decision" in given else None,
        )

    def _decision(self, values: Any) -> Vector:
        return self._fitting("decisions", numbers("decision", values))

    def _fitting(self, what: str, row: Vector) -> Vector:
        if self.n_labels not in (None, len(row)):
            raise ValueError(f"expected {self.n_labels} {what}, got {len(row)}")
        return row

    def _eta(self, values: Any) -> Vector:
        fixed, self._fixed = self._fixed, True
        if not isinstance(values, dict):
            return numbers("eta", values)
        if self.names is None and not fixed and not all(map(str.isdecimal, values)):
            self.names = tuple(_text("names of labels", name) for name in values)
            self._places = _numbered(self.names)
        if self.names is not None:
            m, places = len(self.names), [self._place("eta", label) for label in values]
        elif self.n_labels is not None:
            m, places = self.n_labels, [self._number(label) for label in values]
        else:
            raise ValueError("expected a list in eta; pairs label: probability need --n-labels")
        row = np.zeros(m)
        if places:
            row[places] = numbers("eta", [*values.values()])
        return row

    def _labels(self, values: Any) -> Any:
        """Indicators, or a class id; both may be said by names."""
        if isinstance(values, int) and not isinstance(values, bool):
            if abs(values) > MOST_LABELS:
                raise ValueError(f"expected a class id in y, got {shown(values)}")
            return values
        if isinstance(values, str) and self._places:
            place = self._place("y", values)
            return place if len(self._places) > 1 else np.array([1.0])
        words = isinstance(values, list) and all(isinstance(one, str) for one in values)
        if not words or not self._places:
            known = values
            if isinstance(values, list) and None in values:  # what is null is not known
                known = [math.nan if one is None else one for one in values]
            return numbers("y", known)
        row = np.zeros(len(self._places))
        row[[self._place("y", label) for label in values]] = 1
        return row

    def _place(self, what: str, label: str) -> int:
        if label not in self._places:
            hint = nearest(label, self._places) or f" among {shown(tuple(self._places))}"
            raise ValueError(f"expected names of labels in {what}, got {label!r}{hint}")
        return self._places[label]

    def _number(self, label: str) -> int:
        assert self.n_labels is not None
        # Long digits are no label, and would take long to be read.
        if not label.isdecimal() or len(label) > 9 or int(label) >= self.n_labels:
            last = self.n_labels - 1
            raise ValueError(f"expected labels from 0 to {last} in eta, got {shown(label)}")
        return int(label)


def _numbered(names: Names | None) -> dict[str, int]:
    return {name: place for place, name in enumerate(names or ())}


def parsed(text: str | bytes) -> Any:
    """What JSON says."""
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"expected JSON, got brackets nested too deep: {shown(text)}") from error
    except ValueError as error:
        raise ValueError(f"expected JSON, got {shown(text[:100].strip())}: {error}") from error
    return content


def _checked(content: Any) -> dict[str, Any]:
    """An object that has no keys but the known ones."""
    if not isinstance(content, dict):
        raise ValueError(f"expected a JSON object, got {shown(content)}")
    for key in content:
        if key not in KEYS:
            raise ValueError(f"expected the keys {', '.join(KEYS)}, got {shown(key)}")
    return content


def _id(key: Any) -> Any:
    """A text or a whole number; programs that know no whole numbers write 7.0 for 7."""
    if isinstance(key, bool | list | dict) or (isinstance(key, float) and not key.is_integer()):
        raise ValueError(f"expected a text or whole number as id, got {shown(key)}")
    if isinstance(key, str):
        return _text("a text or whole number as id", key)
    return int(key) if isinstance(key, float) else key


def _text(what: str, text: str) -> str:
    """A text that can be written: JSON may have halves of letters, which no encoding has."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"expected {what}, got {shown(text)}, which is no Unicode text") from error
    return text


def numbers(what: str, values: Any) -> Vector:
    """A row of numbers; whether they are probabilities or labels is for others to say."""
    row = values if isinstance(values, list) else [values]
    if not row or not {type(one) for one in row} <= {int, float}:
        raise ValueError(f"expected numbers in {what}, got {shown(values)}")
    try:
        return np.array(row, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"expected numbers in {what}, got one of too many digits") from error

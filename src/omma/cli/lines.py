"""Lines of a stream: CSV or JSON, each read into an id, probabilities and labels.

A line that cannot be read raises ``ValueError`` with a sentence; the next one can still be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from omma._validate import shown
from omma.datasets._cells import is_header, is_number, split

Vector = NDArray[np.float64]
CLASS_NAMES = ("y", "label", "class", "target")
KEYS = ("id", "eta", "y", "decision")


@dataclass(frozen=True)
class Line:
    """What a line says; None where it says nothing about it."""

    id: Any = None
    eta: Vector | None = None
    y: Any = None  # indicators, or a class id
    decision: Vector | None = None  # one made earlier, in place of the one remembered


class Reader(Protocol):
    """Reads lines of one format; ``names`` of labels are known when the first was read."""

    names: tuple[str, ...] | None

    def read(self, text: str) -> Line | None:
        """What a line says, or None for one that says nothing, such as the names of columns."""


def numbers(what: str, values: Any) -> Vector:
    """A row of finite numbers."""
    values = values if isinstance(values, list) else [values]
    right = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    if not right or not values:
        raise ValueError(f"expected numbers in {what}, got {shown(values)}")
    return np.array(values, dtype=np.float64)


class JsonLines:
    """``{"id": "a", "eta": [0.9, 0.1], "y": [1, 0]}``, all but one of them optional."""

    def __init__(self, n_labels: int | None) -> None:
        self.n_labels = n_labels
        self.names: tuple[str, ...] | None = None

    def read(self, text: str) -> Line | None:
        """What a line says."""
        if not text.strip():
            return None
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"expected JSON, got {shown(text.strip())}: {error}") from error
        if not isinstance(content, dict):
            raise ValueError(f"expected a JSON object, got {shown(content)}")
        unknown = [key for key in content if key not in KEYS]
        if unknown:
            raise ValueError(f"expected the keys {', '.join(KEYS)}, got {unknown[0]!r}")
        given = {key: value for key, value in content.items() if value is not None}
        key = given.get("id")
        if isinstance(key, list | dict):
            raise ValueError(f"expected a text or number as id, got {shown(key)}")
        decision = given.get("decision")
        return Line(
            key,
            self._eta(given["eta"]) if "eta" in given else None,
            self._labels(given["y"]) if "y" in given else None,
            None if decision is None else numbers("decision", decision),
        )

    def _eta(self, values: Any) -> Vector:
        if not isinstance(values, dict):
            return numbers("eta", values)
        if self.n_labels is None:
            raise ValueError("expected a list in eta; pairs label: probability need --n-labels")
        row = np.zeros(self.n_labels)
        for label, value in zip(values, numbers("eta", [*values.values()] or [0]), strict=False):
            if not label.isdecimal() or int(label) >= self.n_labels:
                raise ValueError(
                    f"expected labels from 0 to {self.n_labels - 1} in eta, got {label!r}"
                )
            row[int(label)] = value
        return row

    def _labels(self, values: Any) -> Any:
        if isinstance(values, int) and not isinstance(values, bool):
            return values
        return numbers("y", values)


class CsvLines:
    """Columns of probabilities, of labels (``y_NAME``, or one of class ids), and of ids."""

    def __init__(self, separator: str, n_labels: int | None, id_column: str | None) -> None:
        self.separator = separator
        self.n_labels = n_labels
        self.id_column = id_column
        self.names: tuple[str, ...] | None = None
        self._width = 0
        self._id: int | None = None
        self._eta: list[int] = []
        self._y: list[int] = []
        self._classes = False

    def read(self, text: str) -> Line | None:
        """What a line says; the first may have the names of columns."""
        cells = split(text, self.separator)
        if not any(cells):
            return None
        if not self._width:
            self._width = len(cells)
            if is_header("the stream", cells):
                self._name(cells)
                return None
            self._number(cells)
        if len(cells) != self._width:
            raise ValueError(f"expected {self._width} cells, got {len(cells)}")
        y = self._part(cells, self._y)
        if y is not None and self._classes:
            y = self._class(y[0])
        return Line(
            None if self._id is None else cells[self._id] or None, self._part(cells, self._eta), y
        )

    def _part(self, cells: list[str], places: list[int]) -> Any:
        """The numbers in some cells, or None where all are empty."""
        chosen = [cells[place] for place in places]
        if not any(chosen):
            return None
        wrong = [cell for cell in chosen if not is_number(cell)]
        if wrong and self._classes and places is self._y and self.names:
            return chosen
        if wrong:
            raise ValueError(
                f"expected a number, got {wrong[0]!r}"
                if wrong[0]
                else "expected a number, got nothing"
            )
        return np.array([float(cell) for cell in chosen])

    def _class(self, found: Any) -> int:
        if isinstance(found, str):
            if found not in (self.names or ()):
                raise ValueError(f"expected a class among {shown(self.names)}, got {found!r}")
            return (self.names or ()).index(found)
        if found % 1 != 0:
            raise ValueError(f"expected a whole number as class id, got {found:g}")
        return int(found)

    def _name(self, cells: list[str]) -> None:
        """Find out by their names what the columns are."""
        wanted = self.id_column or "id"
        if wanted in cells:
            self._id = cells.index(wanted)
        elif self.id_column is not None:
            raise StopStreamError(f"expected a column {self.id_column!r}, got {shown(cells)}")
        others = [place for place in range(len(cells)) if place != self._id]
        marked = {cells[place][2:]: place for place in others if cells[place].startswith("y_")}
        plain = [place for place in others if place not in marked.values()]
        classes = [place for place in plain if cells[place].lower() in CLASS_NAMES]
        self._eta = [place for place in plain if place not in classes]
        self.names = tuple(cells[place] for place in self._eta)
        if marked:
            if set(marked) != set(self.names):
                odd = sorted(set(marked) ^ set(self.names))[0]
                raise StopStreamError(f"expected a column y_NAME for each NAME, not so for {odd!r}")
            self._y = [marked[name] for name in self.names]
        elif classes:
            self._y, self._classes = classes[:1], len(self.names) > 1
        if not self._eta or len(classes) > 1 or (marked and classes):
            raise StopStreamError(f"expected columns of probabilities, got {shown(cells)}")

    def _number(self, cells: list[str]) -> None:
        """Columns without names: probabilities, then as many labels or one class id."""
        m = self.n_labels or len(cells)
        over = len(cells) - m
        if over not in (0, 1, m):
            raise StopStreamError(
                f"expected {m} columns of probabilities (--n-labels), then {m} of labels, one of "
                f"class ids or none, got {len(cells)}"
            )
        self._eta, self._y = list(range(m)), list(range(m, len(cells)))
        self._classes = over == 1 and m > 1


class StopStreamError(ValueError):
    """What makes all further lines useless."""

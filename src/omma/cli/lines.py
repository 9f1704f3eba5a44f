"""Lines of a stream, each read into an id, probabilities and labels; those that are JSON.

A line that cannot be read raises ``ValueError`` with a sentence; the next one can still be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from omma._validate import shown

Vector = NDArray[np.float64]
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


class StopStreamError(ValueError):
    """What makes all further lines useless."""

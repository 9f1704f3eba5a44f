"""Rows of an ARFF file, dense or sparse, as numbers."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from omma._validate import shown
from omma.datasets.formats.arff_header import Attribute, cells_of
from omma.datasets.formats.part import from_entries
from omma.datasets.text import wrong

Converter = Callable[[str], float]
LARGEST = float(np.finfo(np.float32).max)


class Table:
    """Rows as they are read. Dense rows among sparse ones are kept as sparse ones."""

    def __init__(self, path: Path, attributes: Sequence[Attribute]) -> None:
        self.path, self.attributes = path, attributes
        self.converters = [_converter(one) for one in attributes]
        self.values, self.columns, self.counts = array("f"), array("q"), array("q")
        self.sparse = False

    def add(self, number: int, text: str) -> None:
        """One row; a line that does not fit is an error that names it."""
        if text.startswith("{") and not self.sparse:
            self._check_zero()
            self.sparse = True
        try:
            if text.startswith("{"):
                columns, cells = self._sparse_row(text)
            else:
                columns, cells = range(len(self.attributes)), cells_of(text)
                if len(cells) != len(columns):
                    raise ValueError(f"{len(columns)} cells instead of {len(cells)}")
            if len(columns) and min(columns) < 0:
                raise ValueError("below zero")
            convert = self.converters
            found = [convert[j](cell) for j, cell in zip(columns, cells, strict=True)]
        except (ValueError, KeyError, IndexError):
            raise self._error(number, text) from None
        self.values.extend(found)
        self.columns.extend(columns)
        self.counts.append(len(found))

    def _sparse_row(self, text: str) -> tuple[Sequence[int], list[str]]:
        if not text.endswith("}"):
            raise ValueError("a brace is not closed")
        inside = text[1:-1].strip()
        if not inside:
            return [], []
        if "'" in inside or '"' in inside:
            pairs = [one.split(None, 1) for one in _quoted_pairs(inside)]
            return [int(column) for column, _ in pairs], [cells_of(v)[0] for _, v in pairs]
        words = inside.replace(",", " , ").split()
        if any(word != "," for word in words[2::3]) or len(words) % 3 != 2:
            raise ValueError("not made of pairs")
        return [int(word) for word in words[::3]], words[1::3]

    def _check_zero(self) -> None:
        """A sparse row leaves out zeros, and the first value of nominal columns."""
        for one in self.attributes:
            if one.values is not None and one.codes()[one.values[0]] != 0:
                raise ValueError(
                    f"{self.path}: expected 0 as the first value of {one.name!r} in a file of "
                    f"sparse rows, got {one.values[0]!r}"
                )

    def _error(self, number: int, text: str) -> ValueError:
        """What is wrong with a row, found cell by cell."""
        width = len(self.attributes)
        if text.startswith("{"):
            return wrong(
                self.path,
                number,
                f"{{column value, …}} with columns from 0 to {width - 1} and values as declared",
                text,
            )
        cells = cells_of(text)
        if len(cells) != width:
            return wrong(self.path, number, f"{width} cells", f"{len(cells)} cells")
        for one, convert, cell in zip(self.attributes, self.converters, cells, strict=True):
            try:
                convert(cell)
            except (ValueError, KeyError):
                values = "a finite number" if one.values is None else _either(one.values)
                return wrong(self.path, number, f"{values} in {shown(one.name)}", cell)
        return wrong(self.path, number, "a row", text)

    def matrix(self) -> Any:
        """All rows."""
        values = np.frombuffer(self.values, np.float32)
        if not self.sparse:
            return values.reshape(len(self.counts), len(self.attributes))
        columns, counts = (np.frombuffer(one, np.int64) for one in (self.columns, self.counts))
        whole = from_entries(counts, columns, values.copy(), len(self.attributes))
        whole.eliminate_zeros()
        return whole


def _converter(attribute: Attribute) -> Converter:
    """From the text of a cell to its number; KeyError or ValueError for what does not fit."""
    return _finite if attribute.values is None else attribute.codes().__getitem__


def _finite(text: str) -> float:
    value = float(text)
    if not abs(value) <= LARGEST:
        raise ValueError("not finite")
    return value


def _either(values: Sequence[str]) -> str:
    words = " or ".join(values)
    return words if len(words) <= 100 else words[:99] + "…"


def _quoted_pairs(inside: str) -> Iterator[str]:
    """Pairs with commas between, where values have quotes."""
    start, quote = 0, ""
    for place, mark in enumerate(inside):
        if quote:
            if mark == quote and inside[place - 1] != "\\":
                quote = ""
        elif mark in "'\"":
            quote = mark
        elif mark == ",":
            yield inside[start:place]
            start = place + 1
    yield inside[start:]

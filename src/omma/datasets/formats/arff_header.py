"""The head of an ARFF file: what its columns are called and what they may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from omma.datasets.formats.part import is_finite
from omma.datasets.text import wrong

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|\S+?)\s*(\{{.*\}}|\s\S.*)$", re.IGNORECASE)
CELL = re.compile(rf"\s*({QUOTED}|[^,]*?)\s*(?:,|$)")
MEKA = re.compile(r"-C\s+(-?\d{1,9})(?!\d)", re.IGNORECASE)
NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """A column; ``values`` are those a nominal one may have, in the order of the file."""

    name: str
    values: tuple[str, ...] | None = None

    def codes(self) -> dict[str, float]:
        """Numbers for the values: their own if they are numbers, else their place."""
        values = self.values or ()
        if all(map(is_finite, values)):
            return {value: float(value) for value in values}
        return {value: float(place) for place, value in enumerate(values)}


@dataclass(frozen=True)
class Header:
    """Columns, and the number of those that are labels, which MEKA writes into the relation."""

    attributes: tuple[Attribute, ...]
    meka: int | None


def unquoted(text: str) -> str:
    """Without quotes, and without the backslashes that quotes need."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def cells_of(line: str) -> list[str]:
    """Cells with commas between, quotes taken off."""
    if "'" not in line and '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    found = list(CELL.finditer(line))
    if len(found) > 1 and not found[-2].group().endswith(","):
        found.pop()  # the empty match behind the last cell
    return [unquoted(match.group(1)) for match in found]


def read_header(path: Path, lines: Iterator[tuple[int, str]]) -> Header:
    """Read up to ``@data``; the lines go on after it."""
    relation, attributes, number = "", [], 0
    for number, line in lines:
        text = line.strip()
        word = text.lower()
        if not text or text.startswith("%"):
            continue
        if word.startswith("@relation"):
            relation = unquoted(text[len("@relation") :].strip())
        elif word.startswith("@attribute"):
            attributes.append(_attribute(path, number, text))
        elif word.startswith("@data"):
            if not attributes:
                raise wrong(path, number, "attributes before @data", text)
            meka = MEKA.search(relation)
            return Header(tuple(attributes), int(meka.group(1)) if meka else None)
        else:
            raise wrong(path, number, "@relation, @attribute or @data", text)
    raise wrong(path, number + 1, "@data", "the end of the file")


def _attribute(path: Path, number: int, text: str) -> Attribute:
    match = ATTRIBUTE.match(text)
    if match is None:
        raise wrong(path, number, "@attribute name type", text)
    name, kind = unquoted(match.group(1)), match.group(2).strip()
    if kind.startswith("{"):
        return Attribute(name, tuple(cells_of(kind[1:-1].strip())))
    if kind.split()[0].lower() not in NUMERIC:
        raise wrong(path, number, "a numeric or a nominal attribute", kind)
    return Attribute(name)

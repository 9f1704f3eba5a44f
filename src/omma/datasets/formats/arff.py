"""ARFF, the format of Weka, with the label conventions of Mulan and MEKA."""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from omma._validate import nearest, shown
from omma.datasets.dataset import Dataset
from omma.datasets.formats.part import Part, assemble, from_entries, is_finite
from omma.datasets.text import bare_name, numbered_lines, wrong

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|\S+?)\s*(\{{.*\}}|\s\S.*)$", re.IGNORECASE)
CELL = re.compile(rf"\s*({QUOTED}|[^,]*?)\s*(?:,|$)")
MEKA = re.compile(r"-C\s+(-?\d{1,9})(?!\d)", re.IGNORECASE)
NUMERIC = ("numeric", "real", "integer")
LARGEST = float(np.finfo(np.float32).max)


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


class Table:
    """Rows as they are read. Dense rows among sparse ones are kept as sparse ones."""

    def __init__(self, path: Path, attributes: Sequence[Attribute]) -> None:
        self.path, self.attributes = path, attributes
        # From the text of a cell to its number; KeyError or ValueError for what does not fit.
        self.converters: list[Callable[[str], float]] = [
            _finite if one.values is None else one.codes().__getitem__ for one in attributes
        ]
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


def read_arff(
    path: str | Path,
    test: str | Path | None = None,
    *,
    labels: int | str | Path | Sequence[str] | None = None,
    task: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Read an ARFF file of dense or sparse rows.

    Which columns are labels is said by ``labels``; else by ``-C n`` in the name of the relation
    (MEKA); else by an XML file beside it that is called as the ARFF file is (Mulan). Without any
    of these the last column, a nominal one, is the class. Nominal features are read as numbers if
    their values are numbers, else as the place of the value in the declaration. A missing value
    (``?``) is an error.

    Parameters
    ----------
    path : str or Path
        Plain or compressed (.gz, .bz2, .xz).
    test : str or Path, optional
        File of the test part.
    labels : int, path of an XML file, or sequence of str, optional
        A number n means the first n columns, −n the last n; a path is the XML file of Mulan; a
        sequence names the columns.
    task : {"binary", "multiclass"}, optional
        For files with one class column; by default binary if it has two values.
    name : str, optional
        By default that of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read_arff
    >>> _ = Path("toy.arff").write_text('''@relation 'toy: -C 2'
    ... @attribute 'is red' {0,1}
    ... @attribute big {0,1}
    ... @attribute width numeric
    ... @data
    ... 1,0,2.5
    ... {1 1, 2 4}
    ... ''')
    >>> toy = read_arff("toy.arff")
    >>> toy.X.toarray().tolist(), toy.y.toarray().tolist(), toy.labels
    ([[2.5], [4.0]], [[1, 0], [0, 1]], ('is red', 'big'))
    """
    paths = [Path(one) for one in (path, test) if one is not None]
    headers, tables = zip(*(_read(one) for one in paths), strict=True)
    header = headers[0]
    if len(paths) > 1 and header.attributes != headers[1].attributes:
        raise ValueError(f"{paths[1]}: expected the attributes of {paths[0]}, got others")
    chosen = _label_columns(paths[0], header, labels)
    if chosen is None:
        return _with_class(name, paths[0], header, tables, task)
    rest = np.setdiff1d(np.arange(len(header.attributes)), chosen)
    parts = []
    for file, table in zip(paths, tables, strict=True):
        target = sparse.csr_array(table[:, chosen])
        target.eliminate_zeros()
        if not np.all(target.data == 1):
            odd = float(target.data[target.data != 1][0])
            raise ValueError(f"{file}: expected labels to be 0 or 1, got {odd:g}")
        parts.append(Part(table[:, rest], target.astype(np.int8)))
    titles = [header.attributes[j].name for j in chosen]
    return assemble(paths[0], parts, name=name, labels=titles)


def _with_class(
    name: str | None, path: Path, header: Header, tables: Sequence[Any], task: str | None
) -> Dataset:
    """The last column as the class, ids in the order of its declaration."""
    last = header.attributes[-1]
    if last.values is None:
        raise ValueError(
            f"{path}: expected labels= or -C in the relation, or a last attribute that is nominal, "
            f"got the number {last.name!r}"
        )
    named = {float(np.float32(code)): value for value, code in last.codes().items()}
    parts = []
    for table in tables:
        column = table[:, [-1]]
        dense = column.toarray() if sparse.issparse(column) else column
        parts.append(Part(table[:, :-1], [named[code] for code in dense.ravel().tolist()]))
    return assemble(path, parts, name=name, labels=last.values, task=task)


def _label_columns(path: Path, header: Header, labels: Any) -> list[int] | None:
    """Indices of label columns, or None if there is a class column instead."""
    count, names = len(header.attributes), [one.name for one in header.attributes]
    beside = path.with_name(bare_name(path) + ".xml")
    if labels is None:
        labels = header.meka if header.meka is not None else beside if beside.is_file() else None
    if labels is None:
        return None
    if isinstance(labels, int):
        if not 0 < abs(labels) <= count:
            raise ValueError(f"{path}: expected from 1 to {count} label columns, got {abs(labels)}")
        return list(range(labels)) if labels > 0 else list(range(count + labels, count))
    wanted = _names_in_xml(Path(labels)) if isinstance(labels, str | Path) else list(labels)
    for one in wanted:
        if one not in names:
            raise ValueError(f"{path}: expected a label {one!r}, got none{nearest(one, names)}")
    return sorted(names.index(one) for one in wanted)


def _names_in_xml(path: Path) -> list[str]:
    """Labels of Mulan's XML file, whatever their hierarchy."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}, line {error.position[0]}: expected XML, {error}") from error
    found = [one.get("name") for one in root.iter() if one.tag.rpartition("}")[2] == "label"]
    names = [name for name in found if name is not None]
    if not names:
        raise ValueError(f"{path}: expected elements <label name=…>, got none")
    return names


def _read(path: Path) -> tuple[Header, Any]:
    """Header, and all columns as numbers: CSR if rows are sparse, else an array."""
    lines = numbered_lines(path)
    header = read_header(path, lines)
    table = Table(path, header.attributes)
    for number, line in lines:
        text = line.strip()
        if text and not text.startswith("%"):
            table.add(number, text)
    return header, table.matrix()

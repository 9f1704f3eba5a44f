"""ARFF, the format of Weka, with the label conventions of Mulan and MEKA."""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from omma._validate import nearest, shown
from omma.datasets.dataset import LARGEST, Dataset, SparseRows, assemble, dense, is_finite
from omma.datasets.text import bare_name, numbered_lines, wrong

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|\S+?)\s*(\{{.*\}}|\s\S.*)$", re.IGNORECASE)
CELL = re.compile(rf"\s*({QUOTED}|[^,]*?)\s*(?:,|$)")
# Column and value in a sparse row. Python refuses to parse numbers of thousands of digits.
PAIR = re.compile(rf"\s*(\d{{1,18}})\s+({QUOTED}|[^,\s]+)\s*(?:,|$)")
# In the name of the relation MEKA says that the first n, or with −n the last n, columns are labels.
MEKA = re.compile(r"-C\s+(-?\d{1,9})(?!\d)", re.IGNORECASE)
NUMERIC = ("numeric", "real", "integer")


class Attribute(NamedTuple):
    """A column; a nominal one has a number for each of its values, in the declared order."""

    name: str
    codes: dict[str, float] | None = None

    def number(self, cell: str) -> float:
        """The number of a cell; NaN if the column cannot hold it."""
        if self.codes is not None:
            return self.codes.get(cell, math.nan)
        try:
            value = float(cell)
        except ValueError:
            return math.nan
        return value if abs(value) <= LARGEST else math.nan


def unquoted(text: str) -> str:
    """The text without its quotes and their backslashes."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def cells_of(line: str) -> list[str]:
    """The cells of a line, without quotes."""
    # Most lines have no quotes, and need no regular expression.
    if "'" not in line and '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    cells = list(CELL.finditer(line))
    if len(cells) > 1 and not cells[-2].group().endswith(","):
        cells.pop()  # the empty match behind the last cell
    return [unquoted(match[1]) for match in cells]


def read_header(
    path: Path, lines: Iterator[tuple[int, str]]
) -> tuple[tuple[Attribute, ...], int | None]:
    """Columns, and the number of labels that MEKA declares; stops after the line ``@data``."""
    relation, attributes, number = "", [], 0
    for number, text in lines:
        word = text.lower()
        if word.startswith("@relation"):
            relation = unquoted(text[len("@relation") :].strip())
        elif word.startswith("@attribute"):
            match = ATTRIBUTE.match(text)
            if match is None:
                raise wrong(path, number, "@attribute name type", text)
            name, kind = unquoted(match[1]), match[2].strip()
            is_nominal = kind.startswith("{")
            if not is_nominal and kind.split()[0].lower() not in NUMERIC:
                raise wrong(path, number, "a numeric or a nominal attribute", kind)
            codes = _codes(cells_of(kind[1:-1].strip())) if is_nominal else None
            attributes.append(Attribute(name, codes))
        elif word.startswith("@data"):
            if not attributes:
                raise wrong(path, number, "attributes before @data", text)
            meka = MEKA.search(relation)
            return tuple(attributes), int(meka[1]) if meka else None
        else:
            raise wrong(path, number, "@relation, @attribute or @data", text)
    raise wrong(path, number + 1, "@data", "the end of the file")


def _codes(values: Sequence[str]) -> dict[str, float]:
    """Numbers for nominal values: the values if they are numbers, else their places."""
    if all(map(is_finite, values)):
        return {value: float(value) for value in values}
    return {value: float(place) for place, value in enumerate(values)}


def read_rows(path: Path, lines: Iterator[tuple[int, str]], attributes: Sequence[Attribute]) -> Any:
    """All columns as numbers: a CSR matrix if some row is sparse, else an array."""
    rows, is_sparse, columns = SparseRows(), False, range(len(attributes))
    for number, text in lines:
        if text.startswith("{"):
            if not is_sparse:
                _check_zeros(path, attributes)
            is_sparse = True
            rows.add(*_sparse_row(path, number, text, attributes))
        else:
            rows.add(columns, _dense_row(path, number, text, attributes))
    if not is_sparse:
        return np.array(rows.values).reshape(-1, len(attributes))
    matrix = rows.matrix(len(attributes))
    matrix.eliminate_zeros()  # dense rows among the sparse ones store all their cells
    return matrix


def _dense_row(path: Path, number: int, text: str, attributes: Sequence[Attribute]) -> list[float]:
    """The numbers of a row; the error names the first wrong cell."""
    cells = cells_of(text)
    if len(cells) != len(attributes):
        raise wrong(path, number, f"{len(attributes)} cells", f"{len(cells)} cells")
    values = [attribute.number(cell) for attribute, cell in zip(attributes, cells, strict=True)]
    if math.isnan(sum(values)):  # faster than to check each value
        place = next(place for place, value in enumerate(values) if math.isnan(value))
        name, codes = attributes[place]
        words = "a finite number" if codes is None else " or ".join(codes)
        words = words if len(words) <= 100 else words[:99] + "…"
        raise wrong(path, number, f"{words} in {shown(name)}", cells[place])
    return values


def _sparse_row(
    path: Path, number: int, text: str, attributes: Sequence[Attribute]
) -> tuple[list[int], list[float]]:
    """Columns and numbers of a sparse row."""
    last, inside = len(attributes) - 1, text[1:-1].strip()
    pairs = [(int(column), unquoted(cell)) for column, cell in PAIR.findall(inside)]
    columns = [column for column, _ in pairs]
    if text.endswith("}") and not PAIR.sub("", inside) and max(columns, default=0) <= last:
        values = [attributes[column].number(cell) for column, cell in pairs]
        if not math.isnan(sum(values)):
            return columns, values
    expected = f"{{column value, …}} with columns from 0 to {last} and values as declared"
    raise wrong(path, number, expected, text)


def _check_zeros(path: Path, attributes: Sequence[Attribute]) -> None:
    """Check that the first nominal value, which sparse rows leave out like a zero, is zero."""
    for name, codes in attributes:
        if codes is not None and next(iter(codes.values())) != 0:
            raise ValueError(
                f"{path}: expected 0 as the first value of {name!r} in a file of sparse rows, got "
                f"{next(iter(codes))!r}"
            )


def read_arff(
    path: str | Path,
    test: str | Path | None = None,
    *,
    labels: int | str | Path | Sequence[str] | None = None,
    task: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Read an ARFF file of dense or sparse rows.

    The label columns are those that ``labels`` names; else those of ``-C n`` in the name of the
    relation (MEKA); else those in an XML file beside it with the name of the ARFF file (Mulan).
    Without any of these, the last column is the class, and must be nominal. Nominal features become
    numbers: their values if these are numbers, else the places of the values in the declaration. A
    missing value (``?``) is an error.

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
    paths = [Path(file) for file in (path, test) if file is not None]
    attributes: tuple[Attribute, ...] = ()
    tables: list[Any] = []
    meka = None
    for file in paths:
        lines = (
            (number, line.strip())
            for number, line in numbered_lines(file)
            if line.strip() and not line.lstrip().startswith("%")
        )
        own, count = read_header(file, lines)
        if not tables:
            attributes, meka = own, count
        # Numbers of nominal values depend on the header, and must mean the same in both parts.
        elif own != attributes:
            raise ValueError(f"{file}: expected the attributes of {paths[0]}, got others")
        tables.append(read_rows(file, lines, attributes))
    label_columns = _label_columns(paths[0], attributes, meka if labels is None else labels)
    columns = [len(attributes) - 1] if label_columns is None else label_columns
    others = np.setdiff1d(np.arange(len(attributes)), columns)
    features = [table[:, others] for table in tables]
    targets: list[Any] = [table[:, columns] for table in tables]
    if label_columns is None:
        name_of_class, codes = attributes[-1]
        if codes is None:
            raise ValueError(
                f"{paths[0]}: expected labels= or -C in the relation, or a last attribute that is "
                f"nominal, got the number {name_of_class!r}"
            )
        # Columns were converted to float32, and so must be the codes.
        classes = {float(np.float32(code)): value for value, code in codes.items()}
        targets = [[classes[code] for code in dense(part).ravel().tolist()] for part in targets]
        return assemble(paths[0], features, targets, name=name, labels=[*codes], task=task)
    targets = list(map(sparse.csr_array, targets))
    for file, target in zip(paths, targets, strict=True):
        odd = target.data[(target.data != 0) & (target.data != 1)]
        if len(odd):
            raise ValueError(f"{file}: expected labels to be 0 or 1, got {odd[0]:g}")
    names = [attributes[j].name for j in columns]
    return assemble(paths[0], features, targets, name=name, labels=names)


def _label_columns(path: Path, attributes: Sequence[Attribute], labels: Any) -> list[int] | None:
    """Indices of label columns; None if there is a class column instead."""
    beside = path.with_name(bare_name(path) + ".xml")  # as in Mulan's datasets
    if labels is None and beside.is_file():
        labels = beside
    if labels is None:
        return None
    count, names = len(attributes), [attribute.name for attribute in attributes]
    if isinstance(labels, int):
        if not 0 < abs(labels) <= count:
            raise ValueError(f"{path}: expected from 1 to {count} label columns, got {abs(labels)}")
        return list(range(count))[:labels] if labels > 0 else list(range(count))[labels:]
    titles = _names_in_xml(Path(labels)) if isinstance(labels, str | Path) else list(labels)
    for title in titles:
        if title not in names:
            raise ValueError(f"{path}: expected a label {title!r}, got none{nearest(title, names)}")
    return sorted(map(names.index, titles))


def _names_in_xml(path: Path) -> list[str]:
    """The labels in Mulan's XML file, at any level of a hierarchy."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}, line {error.position[0]}: expected XML, {error}") from error
    # Tags may have a namespace before them, in braces.
    labels = [tag.get("name") for tag in root.iter() if tag.tag.rpartition("}")[2] == "label"]
    names = [name for name in labels if name is not None]
    if not names:
        raise ValueError(f"{path}: expected elements <label name=…>, got none")
    return names

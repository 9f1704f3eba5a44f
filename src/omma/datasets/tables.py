"""Tables in files, as columns with names: CSV and TSV text, and Parquet by pyarrow."""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from omma._validate import require
from omma.datasets.csv_text import (
    csv_cell,
    csv_line,
    is_header,
    is_missing,
    is_number,
    parse_cell,
    rows,
    separator_of,
)
from omma.datasets.dataset import dense
from omma.datasets.text import ending, opened_bytes, opened_text
from omma.npz import largest, told

SEPARATORS = {".csv": ",", ".tsv": "\t"}  # as they are written
NAMED_COLUMNS = (*SEPARATORS, ".parquet")
# The end of a line on old Macs, about which readers of CSV disagree.
LONE_RETURN = re.compile(rb"\r(?!\n)")
SAMPLE = 50  # lines that tell the separator, and rows that tell what a column holds
LARGE = 1 << 20  # bytes: below it, importing pyarrow takes longer than reading
WIDEST = 4096  # columns: above, a table of pyarrow costs more than it saves
BLOCK = 1 << 20  # numbers written at a time: 8 MB where a sparse matrix becomes dense
PYARROW_ERRORS = (ValueError, OSError, NotImplementedError, LookupError, TypeError)
TIMES = 1000  # equal values of a column take next to no room, so files may be far smaller


# Columns of numbers, columns of text, and the number of each row's line.
Columns = tuple[NDArray[np.float64], list[list[str]], Sequence[int]]


class CsvTable:
    """The rows of a file, of which the first have been looked at.

    ``header`` says whether the first row has names; by default its cells tell. Without a
    ``separator`` the first lines tell it, or else the ``default``. Errors call the parameter that
    takes the name of a column of ids ``ids_by``.
    """

    def __init__(
        self,
        path: Path,
        lines: Iterable[str],
        *,
        separator: str | None = None,
        default: str | None = ",",
        header: bool | None = None,
        ids_by: str | None = None,
    ) -> None:
        lines = iter(lines)
        start = list(islice(lines, SAMPLE))
        self.path, self.ids_by = path, ids_by
        self.separator = separator or separator_of(start, default)
        self._rows = rows(chain(start, lines), self.separator, path)
        self._start = list(islice(self._rows, SAMPLE + 1))
        if not self._start:
            raise ValueError(f"{path}, line 1: expected names of columns or numbers, got nothing")
        self.first = self._start[0][1]
        self.width = len(self.first)
        if header is None:
            try:
                header = is_header(self.first, [cells for _, cells in self._start[1:]])
            except ValueError as error:
                raise ValueError(f"{path}, line 1: {error}") from error
        self.names: tuple[str, ...] | None = tuple(self.first) if header else None

    def is_text(self, place: int) -> bool:
        """Whether the first value of a column that is known is a word."""
        below = self._start[self.names is not None :]
        cells = (row[place] for _, row in below if place < len(row))
        first = next((cell for cell in cells if not is_missing(cell)), "0")
        return not is_number(first.rstrip("% "))

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        labels: Sequence[int] = (),
        *,
        may_lack: bool = False,
        percent: bool = False,
    ) -> Columns:
        """Columns of numbers and columns of text, by their places; others are passed over.

        Of the ``numbers``, those at ``labels`` may be words such as yes and no, or missing; with
        ``may_lack`` any may be missing. With ``percent`` a sign % after a number is left out.
        """
        # Lines above the first row would shift the numbers of all others.
        if self._start[0][0] == 1:
            columns = _by_pyarrow(self, numbers, texts)
            if columns is not None:
                return columns
        values, lines = array("d"), array("q")  # a quarter of what lists of floats take
        words: list[list[str]] = [[] for _ in texts]
        label_places = frozenset(labels)
        for number, cells in chain(self._start[self.names is not None :], self._rows):
            if len(cells) != self.width:
                raise ValueError(
                    f"{self.path}, line {number}: expected {self.width} cells, as in line 1, got "
                    f"{len(cells)}"
                )
            try:
                values.extend(list(map(float, [cells[place] for place in numbers])))
            except ValueError:  # some cell is no plain number
                for place in numbers:
                    value = parse_cell(
                        f"{self.path}, line {number}",
                        place if self.names is None else self.names[place],
                        cells[place],
                        separator=self.separator,
                        is_label=place in label_places or (may_lack and not cells[place]),
                        percent=percent,
                        ids_by=self.ids_by,
                    )
                    values.append(value)
            for column, place in zip(words, texts, strict=True):
                column.append(cells[place])
            lines.append(number)
        table = np.frombuffer(values, np.float64).reshape(len(lines), len(numbers))
        return table, words, lines


def _by_pyarrow(table: CsvTable, numbers: Sequence[int], texts: Sequence[int]) -> Columns | None:
    """The columns of a large file, several times as fast as row by row, to the same bits.

    None where the file is small, unusual or wrong, or pyarrow is not installed: then rows are read
    one by one, and what is wrong is said.
    """
    is_small = table.path.stat().st_size < LARGE or table.width > WIDEST or not numbers
    separator = table.separator or ""
    if is_small or len(separator.encode()) != 1:
        return None
    try:
        arrow, library = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return None
    with opened_bytes(table.path) as file:
        data = file.read()
    has_header = table.names is not None
    start = data.find(b"\n") + 1 if has_header else 3 * (data[:3] == b"\xef\xbb\xbf")
    # Quotes, bytes that are no text, and ends of lines as nobody writes them.
    is_unusual = any(data.find(sign, start) >= 0 for sign in (b'"', b"\0"))
    if is_unusual or LONE_RETURN.search(data, start):
        return None
    kinds = {str(place): arrow.float64() for place in numbers}
    kinds |= {str(place): arrow.string() for place in texts}
    is_decimal = separator != "," and data.find(b",", start) >= 0
    try:
        content = library.read_csv(
            arrow.BufferReader(arrow.py_buffer(memoryview(data)[start:])),
            library.ReadOptions(column_names=[str(place) for place in range(table.width)]),
            # A blank line has no number, which is an error, and so rows are lines.
            library.ParseOptions(delimiter=separator, quote_char=False, ignore_empty_lines=False),
            library.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=[],
                strings_can_be_null=False,
                decimal_point="," if is_decimal else ".",
            ),
        )
        words = [
            [cell.strip() for cell in content.column(str(place)).to_pylist()] for place in texts
        ]
        # A batch fits into the cache, a column may not.
        batches = content.select([str(place) for place in numbers]).to_batches()
        values = np.concatenate([np.column_stack(batch.columns) for batch in batches])
    except (ValueError, OverflowError, MemoryError):  # as it says that something is wrong
        return None
    return values, words, range(1 + has_header, 1 + has_header + len(values))


def _pyarrow(name: str, path: Any) -> Any:
    return require(name, f"{path} needs", "pyarrow", "pyarrow")


class ParquetTable:
    """The columns of an open Parquet file, with the methods of a ``CsvTable``."""

    def __init__(self, path: Path, file: BinaryIO, ids_by: str) -> None:
        self.path, self.ids_by = path, ids_by
        parquet = _pyarrow("pyarrow.parquet", path)
        self._told = partial(told, str(path), "is not a sound Parquet file", PYARROW_ERRORS)
        with self._told():
            self._file = parquet.ParquetFile(file, page_checksum_verification=True)
            self._schema = self._file.schema_arrow
            size = 8 * self._file.metadata.num_rows * len(self._schema.names)
        # A small file can claim any number of rows: refused before memory is asked for.
        if not 0 < size <= largest(path, TIMES):
            most = largest(path, TIMES) // 8
            raise ValueError(f"{path} must have from 1 to {most:,} cells, got {size // 8:,}")
        self.names: tuple[str, ...] = tuple(self._schema.names)
        self.width = len(self.names)

    def is_text(self, place: int) -> bool:
        """Whether a column is of words; categories are."""
        kind, types = self._schema.types[place], _pyarrow("pyarrow.types", self.path)
        return not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        labels: Sequence[int] = (),
        *,
        may_lack: bool = False,
        percent: bool = False,
    ) -> Columns:
        """Columns of numbers and columns of text, by their places, as of a ``CsvTable``."""
        with self._told():
            table = self._file.read()
            columns = {place: table.column(place).to_numpy() for place in numbers}
            # Texts, or truths of which some are null.
            odd = [place for place, column in columns.items() if column.dtype.kind not in "fiub"]
            words = {
                place: [
                    "" if cell is None else str(cell) for cell in table.column(place).to_pylist()
                ]
                for place in (*texts, *odd)
            }
        parse = partial(parse_cell, str(self.path), percent=percent, ids_by=self.ids_by)
        for place in odd:
            name, is_label = self.names[place], place in labels
            cells = [parse(name, text, is_label=is_label) for text in words[place]]
            columns[place] = np.array(cells)
        n = table.num_rows
        values = np.column_stack([columns[place] for place in numbers] or [np.empty((n, 0))])
        return values, [words[place] for place in texts], range(1, n + 1)


@contextmanager
def opened_table(path: Path, ids_by: str = "id_column") -> Iterator[CsvTable | ParquetTable]:
    """The columns of a CSV, TSV or Parquet file, which are read while it is open.

    Errors call the parameter that takes the name of a column of ids ``ids_by``.
    """
    if ending(path) == ".parquet":
        with path.open("rb") as content:
            yield ParquetTable(path, content, ids_by)
        return
    with opened_text(path) as file:
        yield CsvTable(path, file, default=SEPARATORS[ending(path)], ids_by=ids_by)


def write_parquet(
    file: BinaryIO, matrix: Any, names: Sequence[str], rows: tuple[str, tuple[str, ...]] | None
) -> None:
    """A column for each label, after the one that names rows."""
    arrow, parquet = _pyarrow("pyarrow", "Parquet"), _pyarrow("pyarrow.parquet", "Parquet")
    table = arrow.table(list(dense(matrix).T), names=list(names))
    if rows is not None:
        table = table.add_column(0, rows[0], [arrow.array(rows[1], arrow.string())])
    parquet.write_table(table, file)


def write_csv(
    file: TextIO,
    matrix: Any,
    names: Sequence[str] | None,
    separator: str,
    ids: tuple[str, tuple[str, ...]] | None,
) -> None:
    """A line for each row, some rows at a time where the matrix is sparse."""
    if names is not None:
        file.write(csv_line(names if ids is None else (ids[0], *names), separator))
    kind = matrix.dtype.kind
    digits = {"U": "%s", "f": "%.17g"}.get(kind, "%d")  # so many digits read back the same
    n, columns = matrix.shape
    line = separator.join([digits] * columns) + "\n"
    step = max(1, BLOCK // max(1, columns))
    for start in range(0, n, step):
        for row, cells in enumerate(dense(matrix[start : start + step]).tolist(), start):
            if kind == "U":
                cells = [csv_cell(cell, separator) for cell in cells]
            if ids is not None:
                file.write(csv_cell(ids[1][row], separator) + separator)
            file.write(line % tuple(cells))

"""Tables in files, as columns with names: CSV and TSV text, and Parquet by pyarrow."""

from array import array
from collections.abc import Sequence
from functools import partial
from itertools import islice
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
from omma.datasets.text import ending, text_lines, wrong
from omma.npz import largest, told

SEPARATORS = {".csv": ",", ".tsv": "\t"}  # with which files are written
NAMED_COLUMNS = (*SEPARATORS, ".parquet")
SAMPLE = 50  # lines from which the separator, and rows from which types of columns are guessed
BLOCK = 1 << 20  # numbers written at a time: 8 MB where a sparse matrix becomes dense
PYARROW_ERRORS = (ValueError, OSError, NotImplementedError, LookupError, TypeError)
TIMES = 1000  # equal values of a column take hardly any space, so files may be far smaller

# Columns of numbers, columns of text, and the line number of each row.
Columns = tuple[NDArray[np.float64], list[list[str]], Sequence[int]]


class CsvTable:
    """The lines of a file as a table; ``read`` parses the columns that are asked for.

    ``header`` says whether the first row has names, and ``separator`` what separates cells; by
    default both are guessed from the first lines, with ``default`` as the last resort. ``ids_by``
    is what errors call the parameter that names the column of ids. With ``percent`` a sign % after
    a number is ignored.
    """

    def __init__(
        self,
        path: Path,
        lines: Sequence[str],
        *,
        separator: str | None = None,
        default: str | None = ",",
        header: bool | None = None,
        ids_by: str = "",
        percent: bool = False,
    ) -> None:
        self.path, self.lines, self.ids_by, self.percent = path, lines, ids_by, percent
        self.separator = separator or separator_of(lines[:SAMPLE], default)
        self._start = list(islice(rows(lines, self.separator, path), SAMPLE + 1))
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
        """Whether a column holds words: its first value that is not missing tells."""
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
    ) -> Columns:
        """Columns of numbers and columns of text, chosen by their places.

        Numbers in the columns ``labels`` may also be words such as yes and no, or missing; with
        ``may_lack`` all numbers may be missing.
        """
        columns = self._read_plain(numbers, texts)
        if columns is not None:
            return columns
        values, lines = array("d"), array("q")  # a quarter of what lists of floats take
        words: list[list[str]] = [[] for _ in texts]
        label_places = frozenset(labels)
        all_rows = rows(self.lines, self.separator, self.path)
        for number, cells in islice(all_rows, self.names is not None, None):
            if len(cells) != self.width:
                raise wrong(self.path, number, f"{self.width} cells, as in line 1", len(cells))
            try:
                values.extend([float(cells[place]) for place in numbers])
            except ValueError:  # some cell is no plain number
                for place in numbers:
                    value = parse_cell(
                        f"{self.path}, line {number}",
                        place if self.names is None else self.names[place],
                        cells[place],
                        separator=self.separator,
                        is_label=place in label_places or (may_lack and not cells[place]),
                        percent=self.percent,
                        ids_by=self.ids_by,
                    )
                    values.append(value)
            for column, place in zip(words, texts, strict=True):
                column.append(cells[place])
            lines.append(number)
        table = np.frombuffer(values, np.float64).reshape(len(lines), len(numbers))
        return table, words, lines

    def _read_plain(self, numbers: Sequence[int], texts: Sequence[int]) -> Columns | None:
        """The same columns, read by NumPy in half the time; None if some cell is not plain.

        Plain cells are not in quotes, and all numbers are plain, too. Other files are read row by
        row, which also finds the line of an error.
        """
        has_header = self.names is not None
        start = self._start[0][0] if has_header else 0
        body = self.lines[start:]
        # A cell in quotes may span several lines.
        if not numbers or len(self._start) == has_header or any('"' in line for line in body):
            return None
        numbered = enumerate(body, start + 1)
        lines = array("q", (number for number, line in numbered if line.strip(" \r\n")))
        # Without texts, a comma beside other separators is a decimal one.
        is_decimal = self.separator != "," and not texts
        plain = (line.replace(",", ".") if is_decimal else line for line in body)
        kinds: dict[int, Any] = dict.fromkeys(range(self.width), "U1")  # columns nobody asked for
        kinds |= dict.fromkeys(numbers, np.float64) | dict.fromkeys(texts, object)
        try:
            table = np.loadtxt(
                plain,
                [(str(place), kind) for place, kind in kinds.items()],
                delimiter=self.separator,
                comments=None,
                ndmin=1,
            )
        except ValueError:
            return None
        values = np.column_stack([table[str(place)] for place in numbers])
        words = [[cell.strip() for cell in table[str(place)].tolist()] for place in texts]
        return values, words, lines


def _pyarrow(name: str, path: Any) -> Any:
    return require(name, f"{path} needs", "pyarrow", "pyarrow")


class ParquetTable:
    """A Parquet file, with the methods of a ``CsvTable``."""

    def __init__(self, path: Path, ids_by: str, percent: bool) -> None:
        self.path, self.ids_by, self.percent = path, ids_by, percent
        self._told = partial(told, str(path), "is not a sound Parquet file", PYARROW_ERRORS)
        parquet, most = _pyarrow("pyarrow.parquet", path), largest(path, TIMES) // 8
        with path.open("rb") as content, self._told():
            file = parquet.ParquetFile(content, page_checksum_verification=True)
            cells = file.metadata.num_rows * len(file.schema_arrow.names)
            # A small file can claim any number of rows: refuse it before memory is allocated.
            if not 0 < cells <= most:
                raise ValueError(f"{path} must have from 1 to {most:,} cells, got {cells:,}")
            self._table = file.read()
        self.names: tuple[str, ...] = tuple(self._table.column_names)
        self.width = len(self.names)

    def is_text(self, place: int) -> bool:
        """Whether a column holds words; categories are words."""
        kind, types = self._table.schema.types[place], _pyarrow("pyarrow.types", self.path)
        return not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        labels: Sequence[int] = (),
        *,
        may_lack: bool = False,
    ) -> Columns:
        """Columns of numbers and columns of text, chosen by their places, as in ``CsvTable``."""
        n, columns = self._table.num_rows, []
        parse = partial(parse_cell, str(self.path), percent=self.percent, ids_by=self.ids_by)
        with self._told():
            for place in numbers:
                column = self._table.column(place).to_numpy()
                if column.dtype.kind not in "fiub":  # text, or booleans of which some are null
                    name, is_label = self.names[place], place in labels
                    cells = self._texts(place)
                    column = np.array([parse(name, cell, is_label=is_label) for cell in cells])
                columns.append(column)
            words = [self._texts(place) for place in texts]
        return np.column_stack(columns or [np.empty((n, 0))]), words, range(1, n + 1)

    def _texts(self, place: int) -> list[str]:
        cells = self._table.column(place).to_pylist()
        return ["" if cell is None else str(cell) for cell in cells]


Table = CsvTable | ParquetTable


def named_table(path: Path, ids_by: str = "id_column", percent: bool = False) -> Table:
    """Open the table in a CSV, TSV or Parquet file; ``CsvTable`` explains the parameters."""
    if ending(path) == ".parquet":
        return ParquetTable(path, ids_by, percent)
    default = SEPARATORS[ending(path)]
    return CsvTable(path, text_lines(path), default=default, ids_by=ids_by, percent=percent)


def write_parquet(
    file: BinaryIO, matrix: Any, names: Sequence[str], rows: tuple[str, tuple[str, ...]] | None
) -> None:
    """Write a column for each label, after the column that names rows."""
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
    """Write a line for each row; a sparse matrix becomes dense a block of rows at a time."""
    if names is not None:
        file.write(csv_line(names if ids is None else (ids[0], *names), separator))
    kind = matrix.dtype.kind
    digits = {"U": "%s", "f": "%.17g"}.get(kind, "%d")  # 17 digits are read as the same number
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

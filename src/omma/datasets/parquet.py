"""Tables in Parquet files, read and written by pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from omma._validate import require
from omma.datasets.csv_text import Names, TableColumns, no_number, to_label
from omma.npz import largest

TIMES = 1000  # equal values of a column take next to no room, so files may be far smaller


def _pyarrow(name: str, path: Any) -> Any:
    return require(name, f"{path} needs", "pyarrow", "pyarrow")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What pyarrow raises within, as a sentence that names the file."""
    try:
        yield
    # Its own errors are subclasses of these.
    except (ValueError, OSError, NotImplementedError, LookupError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a sound Parquet file: {reason}") from error


class ParquetTable:
    """The columns of a Parquet file, with the methods of a ``CsvTable``."""

    def __init__(self, path: Path, ids_by: str) -> None:
        self.path, self.ids_by = path, ids_by
        parquet = _pyarrow("pyarrow.parquet", path)
        self._arrow_types = _pyarrow("pyarrow.types", path)
        with path.open("rb") as file:
            with _told(path):
                opened = parquet.ParquetFile(file, page_checksum_verification=True)
                size = 8 * opened.metadata.num_rows * len(opened.schema_arrow.names)
            # A small file can claim any number of rows: refused before memory is asked for.
            if not 0 < size <= largest(path, TIMES):
                most = largest(path, TIMES) // 8
                raise ValueError(f"{path} must have from 1 to {most:,} cells, got {size // 8:,}")
            with _told(path):
                self._table = opened.read()
        self.names: Names = tuple(self._table.column_names)
        self.width = len(self.names)

    def is_text(self, place: int) -> bool:
        """Whether a column is of words; categories are."""
        kind = self._table.schema.types[place]
        types = self._arrow_types
        return not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def read(
        self,
        numbers: Sequence[int],
        texts: Sequence[int] = (),
        labels: Sequence[int] = (),
        *,
        may_lack: bool = False,
        percent: bool = False,
    ) -> TableColumns:
        """Columns of numbers and columns of text, by their places, as of a ``CsvTable``."""
        columns, label_places = [], frozenset(labels)
        for place in numbers:
            with _told(self.path):
                column = self._table.column(place).to_numpy()
            if column.dtype.kind not in "fiub":
                column = self._converted(place, percent, place in label_places)
            columns.append(column)
        with _told(self.path):
            words = [
                [
                    "" if cell is None else str(cell)
                    for cell in self._table.column(place).to_pylist()
                ]
                for place in texts
            ]
        n = self._table.num_rows
        return TableColumns(np.column_stack(columns or [np.empty((n, 0))]), words, range(1, n + 1))

    def _converted(self, place: int, percent: bool, is_label: bool) -> Any:
        """A column of texts or of bools with nulls as numbers."""
        name = (self.names or ())[place]
        with _told(self.path):
            cells = self._table.column(place).to_pylist()
        values = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells):
            text = str("" if cell is None else cell)
            try:
                if not is_label and not percent:
                    raise ValueError("a column of text holds no probabilities")
                values[row] = to_label(text.rstrip("% ") if percent else text)
            except ValueError as error:
                raise no_number(str(self.path), name, cell, self.ids_by) from error
        return values


def write_parquet(
    file: BinaryIO, matrix: Any, names: Names, rows: tuple[str, tuple[str, ...]] | None
) -> None:
    """A column for each label, after the one that names rows."""
    arrow, parquet = _pyarrow("pyarrow", "Parquet"), _pyarrow("pyarrow.parquet", "Parquet")
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix.reshape(len(matrix), -1)
    names = tuple(str(j) for j in range(dense.shape[1])) if names is None else names
    table = arrow.table(list(dense.T), names=list(names))
    if rows is not None:
        table = table.add_column(0, rows[0], [arrow.array(rows[1], arrow.string())])
    parquet.write_table(table, file)

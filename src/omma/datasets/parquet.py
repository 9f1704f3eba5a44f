"""Tables in Parquet files, read and written by pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from omma._validate import require
from omma.datasets.csv_text import Names, TableColumns, parse_cell
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
        self.names: tuple[str, ...] = tuple(self._table.column_names)
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
        label_places = frozenset(labels)
        columns = [self._numbers(place, place in label_places, percent) for place in numbers]
        words = [self._texts(place) for place in texts]
        n = self._table.num_rows
        return TableColumns(np.column_stack(columns or [np.empty((n, 0))]), words, range(1, n + 1))

    def _numbers(self, place: int, is_label: bool, percent: bool) -> Any:
        with _told(self.path):
            column = self._table.column(place).to_numpy()
        if column.dtype.kind in "fiub":
            return column
        # Texts, or truths of which some are null.
        cells = [
            parse_cell(
                str(self.path),
                self.names[place],
                text,
                is_label=is_label,
                percent=percent,
                ids_by=self.ids_by,
            )
            for text in self._texts(place)
        ]
        return np.array(cells)

    def _texts(self, place: int) -> list[str]:
        with _told(self.path):
            cells = self._table.column(place).to_pylist()
            return ["" if cell is None else str(cell) for cell in cells]


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

"""Matrices as columns of Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from omma._validate import require
from omma.datasets._columns import Names, named_columns, refuse_word
from omma.npz import largest

TIMES = 1000  # equal values of a column take next to no room, so files may be far smaller


def _pyarrow(name: str, path: Any) -> Any:
    return require(name, f"{path} needs", "pyarrow", "pyarrow")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What pyarrow raises within, as a sentence that names the file."""
    try:
        yield
    except (ValueError, OSError, NotImplementedError, LookupError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a sound Parquet file: {reason}") from error


def read(path: Path, id_column: str | None) -> tuple[Any, Names, Names]:
    """Columns of numbers, with their names."""
    parquet = _pyarrow("pyarrow.parquet", path)
    with path.open("rb") as file:
        with _told(path):
            found = parquet.ParquetFile(file, page_checksum_verification=True)
            size = 8 * found.metadata.num_rows * len(found.schema_arrow.names)
        if not 0 < size <= largest(path, TIMES):
            most = largest(path, TIMES) // 8
            raise ValueError(f"{path} must have from 1 to {most:,} cells, got {size // 8:,}")
        with _told(path):
            table = found.read()
    names, which = named_columns(path, tuple(table.column_names), id_column)
    with _told(path):
        ids = None if which is None else tuple(map(str, table.column(which).to_pylist()))
        columns = [column.to_numpy() for column in table.columns]
    if which is not None:
        del columns[which]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "fiub":
            refuse_word(str(path), name, column[0] if len(column) else column.dtype)
    return np.column_stack(columns), names, ids


def names_of(path: Path) -> tuple[str, ...]:
    """What the columns are called."""
    parquet = _pyarrow("pyarrow.parquet", path)
    with path.open("rb") as file, _told(path):
        return tuple(parquet.read_schema(file).names)


def write(
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

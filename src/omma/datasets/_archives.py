"""Matrices in NumPy's, SciPy's and Parquet files. Nothing in them is run."""

from __future__ import annotations

import zipfile
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import nearest
from omma.datasets._columns import named_columns, refuse_word

Names = tuple[str, ...] | None
# What NumPy, SciPy and the zip library raise for files that are something else, or spoiled.
DAMAGED = (ValueError, KeyError, TypeError, EOFError, IndexError, zipfile.BadZipFile, zlib.error)
FORMATS = ("csr", "csc", "coo", "bsr", "dia")
NAMES = "names"


def read_npz(path: Path, member: str | None) -> tuple[Any, Names]:
    """A sparse matrix, the only array of an archive, or the one that was asked for."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            found = set(archive.files)
            names = _names(archive[NAMES]) if NAMES in found - {member} else None
            if member is None and "format" in found:
                return _sparse(path), names
            chosen = _member(path, found, member)
            return _numbers(path, archive[chosen]), names
    except DAMAGED as error:
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} is not a sound .npz file: {error}") from error


def _sparse(path: Path) -> Any:
    """A sparse matrix whose indices are where they may be: compiled code does not look."""
    matrix = sparse.load_npz(path)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    if matrix.ndim != 2:
        raise ValueError(f"{path} must hold a matrix of two dimensions, got {matrix.ndim}")
    return sparse.csr_array(_numbers(path, matrix))


def _member(path: Path, found: set[str], member: str | None) -> str:
    arrays = sorted(found - {NAMES}) or sorted(found)
    if member is None:
        if len(arrays) == 1:
            return arrays[0]
        shown = ", ".join(arrays) or "none"
        raise ValueError(f"{path} must hold one array, or be asked for one as {path}:NAME; {shown}")
    if member not in found:
        hint = nearest(member, arrays) or f"; it has {', '.join(arrays) or 'none'}"
        raise ValueError(f"{path} has no array {member!r}{hint}")
    return member


def _names(array: NDArray[Any]) -> Names:
    if array.ndim != 1 or array.dtype.kind != "U":
        return None
    return tuple(array.tolist())


def _numbers(path: Path, values: Any) -> Any:
    if isinstance(values, bytes):  # what NumPy gives for anything else in a zip file
        raise ValueError(f"{path} must hold arrays, got something else")
    if values.dtype.kind not in "fiub" or values.ndim not in (1, 2):
        raise ValueError(
            f"{path} must hold numbers in one or two dimensions, got the type {values.dtype} and "
            f"shape {tuple(values.shape)}"
        )
    return values


def read_npy(path: Path) -> Any:
    """An array that stays on the disk until its rows are used."""
    try:
        return _numbers(path, np.load(path, mmap_mode="r", allow_pickle=False))
    except DAMAGED as error:
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} is not a sound .npy file of numbers: {error}") from error


def write_npz(file: BinaryIO, matrix: Any, names: Names) -> None:
    """An archive that NumPy reads, or SciPy where the matrix is sparse; names are beside it."""
    arrays = {} if names is None else {NAMES: np.array(names, dtype=np.str_)}
    if sparse.issparse(matrix):
        arrays |= {
            "format": np.array(b"csr"),
            "_is_array": np.array(True),
            "shape": np.array(matrix.shape),
            "data": matrix.data,
            "indices": matrix.indices,
            "indptr": matrix.indptr,
        }
    else:
        arrays["values"] = matrix
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _pyarrow(name: str, path: Any) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{path} needs pyarrow, which is not installed: pip install pyarrow"
        ) from error


def read_parquet(path: Path, id_column: str | None) -> tuple[Any, Names, Names]:
    """Columns of numbers, with their names."""
    parquet = _pyarrow("pyarrow.parquet", path)
    with path.open("rb") as file:
        try:
            table = parquet.read_table(file)
        except (ValueError, OSError) as error:  # pyarrow's own errors are of these kinds
            raise ValueError(f"{path} is not a sound Parquet file: {error}") from error
    names, which = named_columns(path, tuple(table.column_names), id_column)
    ids = None if which is None else tuple(map(str, table.column(which).to_pylist()))
    if which is not None:
        table = table.remove_column(which)
    columns = [column.to_numpy() for column in table.columns]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "fiub":
            refuse_word(str(path), name, column[0] if len(column) else column.dtype)
    return np.column_stack(columns), names, ids


def parquet_names(path: Path) -> tuple[str, ...]:
    """What the columns are called."""
    parquet = _pyarrow("pyarrow.parquet", path)
    with path.open("rb") as file:
        try:
            return tuple(parquet.read_schema(file).names)
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} is not a sound Parquet file: {error}") from error


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

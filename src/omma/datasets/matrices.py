"""Probabilities and labels in files: one function to read any of them, one to write."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma import npz
from omma._atomic import replacing
from omma._validate import nearest, require
from omma.datasets import csv_text, svmlight
from omma.datasets.csv_text import Names, named_columns, no_number
from omma.datasets.text import OPENERS, compressing, ending, opened_text
from omma.npz import largest

TABLES = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".npz", ".npy", ".csv", ".tsv", ".parquet", ".txt")
NAMES = "names"  # the array with them in an .npz file
TIMES = 1000  # equal values of a column take next to no room, so files may be far smaller


@dataclass(frozen=True, eq=False)
class Matrix:
    """What a file holds.

    Attributes
    ----------
    values : ndarray or scipy.sparse.csr_array
        A row for each instance.
    names : tuple of str, or None
        Of the columns, where the file has them.
    ids : tuple of str, or None
        Of the rows, where a column with them was asked for.
    """

    values: Any
    names: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.values) else str(self.values.dtype)
        named = "" if self.names is None else ", with names"
        return f"<{kind} matrix of shape {tuple(self.values.shape)}{named}>"


def read_matrix(path: str | Path, *, id_column: str | None = None) -> Matrix:
    r"""Read probabilities or labels from a file; its ending says what it is.

    =================  ===========================================================================
    ``.npz``           a SciPy sparse matrix, or NumPy arrays; of several, ``file.npz:name`` is one
    ``.npy``           a NumPy array, mapped from the disk and not read into memory
    ``.csv, .tsv``     numbers, a column for each label; a first line of words has their names
    ``.parquet``       the same columns
    ``.txt``           lines of the Extreme Classification Repository: ``n m`` and then
                       ``label:value label:value …`` or ``label,label,…`` for each row (of its data
                       files, ``n d m`` and then ``label,label feature:value …``, the labels); or
                       numbers with blanks between them
    =================  ===========================================================================

    Text may be compressed: ``.csv.gz``, ``.txt.bz2``, ``.csv.xz``. Nothing in a file is run.

    Parameters
    ----------
    path : str or Path
    id_column : str, optional
        The column of a CSV, TSV or Parquet file that names the rows. It is no label.

    Returns
    -------
    Matrix

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import read_matrix
    >>> _ = Path("eta.csv").write_text("sport,art\n0.9,0.25\n0.1,0.5\n")
    >>> read_matrix("eta.csv")
    <float64 matrix of shape (2, 2), with names>
    >>> _ = Path("labels.txt").write_text("2 4\n0,3\n1\n")
    >>> read_matrix("labels.txt").values.toarray().tolist()
    [[1, 0, 0, 1], [0, 1, 0, 0]]
    """
    path, member = split_address(path)
    kind, _ = file_ending(path)
    if id_column is not None and kind not in (*TABLES, ".parquet"):
        raise ValueError(f"{path} has no columns with names, so none of them is {id_column!r}")
    if kind == ".npz":
        return _from_npz(path, member)
    if kind == ".npy":
        return Matrix(_of_numbers(path, npz.mapped(path)))
    if kind == ".parquet":
        return Matrix(*read_parquet(path, id_column))
    with opened_text(path) as file:
        if kind in TABLES:
            return read_table(path, file, id_column)
        lines = file.read().splitlines()
    # Text of the repository starts with its size; any other .txt is a table with blanks.
    if svmlight.is_sized(lines):
        return Matrix(svmlight.read_sized(path, lines))
    return Matrix(*csv_text.read(path, iter(lines), None, None))


def read_table(
    path: Path, lines: Iterable[str], id_column: str | None, empty_is_nan: bool = False
) -> Matrix:
    """A CSV or TSV file that somebody has opened; its lines from the first on."""
    separator = TABLES[file_ending(path)[0]]
    return Matrix(*csv_text.read(path, lines, separator, id_column, empty_is_nan))


def _of_numbers(path: Path, values: Any) -> Any:
    """What a file holds, if that is a matrix or a vector of numbers."""
    if values.dtype.kind not in "fiub" or values.ndim not in (1, 2):
        raise ValueError(
            f"{path} must hold numbers in one or two dimensions, got the type {values.dtype} and "
            f"shape {tuple(values.shape)}"
        )
    return values


def _from_npz(path: Path, member: str | None) -> Matrix:
    """A sparse matrix, the only array of an archive, or the one that was asked for."""
    with npz.opened(path) as archive:
        names: tuple[str, ...] | None = None
        if member != NAMES and NAMES in archive:
            names = tuple(archive.array(NAMES, kinds="U", shape=(None,)).tolist())
        if member is None and "format" in archive:
            values: Any = archive.matrix()
        else:
            # Of several arrays the names are none, unless there is nothing else.
            arrays = sorted({*archive.names} - {NAMES}) or sorted(archive.names)
            listed = ", ".join(arrays) or "none"
            if member is None and len(arrays) != 1:
                raise ValueError(
                    f"{path} must hold one array, or be asked for one as {path}:NAME; {listed}"
                )
            if member is not None and member not in archive.names:
                hint = nearest(member, arrays) or f"; it has {listed}"
                raise ValueError(f"{path} has no array {member!r}{hint}")
            values = archive.array(arrays[0] if member is None else member, kinds="fiubSU")
    _of_numbers(path, values)
    if names is not None and len(names) != (values.shape[1] if values.ndim == 2 else 1):
        raise ValueError(f"{path}: expected a name for each column, got {len(names)}")
    return Matrix(values, names)


def column_names(path: str | Path) -> tuple[str, ...] | None:
    """What a table calls its columns, the one that names rows among them; None without names."""
    path = Path(path)
    kind, _ = file_ending(split_address(path)[0])
    if kind == ".parquet":
        parquet = _pyarrow("pyarrow.parquet", path)
        with path.open("rb") as file, _told(path):
            return tuple(parquet.read_schema(file).names)
    if kind not in TABLES:
        return None
    with opened_text(path) as file:
        return csv_text.first_names(path, file, TABLES[kind])


def write_matrix(
    path: str | Path,
    values: Any,
    names: tuple[str, ...] | None = None,
    rows: tuple[str, tuple[str, ...]] | None = None,
) -> None:
    """Write a matrix such as ``trace.predictions`` to a file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        Its ending says how, as for ``read_matrix``; text may be compressed. A sparse matrix goes
        into ``.npz`` and ``.txt`` as it is.
    values : ndarray or sparse matrix of shape (n, m), or (n,)
    names : tuple of str, optional
        Of the columns. ``.npy`` and ``.txt`` have no place for them.
    rows : tuple of str and tuple of str, optional
        What the column that names rows is called, and its cells. It comes first. Only tables
        (``.csv``, ``.tsv``, ``.parquet``) have a place for it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from omma.datasets import write_matrix
    >>> write_matrix("decisions.csv", [[1, 0], [0, 1]], names=("sport", "art"))
    >>> print(Path("decisions.csv").read_text())
    sport,art
    1,0
    0,1
    <BLANKLINE>
    """
    path = Path(path)
    kind, compressed = file_ending(path)
    matrix = _writable(values)
    columns = 1 if matrix.ndim == 1 else matrix.shape[1]
    if names is not None and len(names) != columns:
        raise ValueError(
            f"names of write_matrix must be {columns}, one for each column, got {len(names)}"
        )
    if rows is not None:
        if kind not in (*TABLES, ".parquet"):
            raise ValueError(
                f"{path} has no place for names of rows: let it end in .csv, .tsv or .parquet"
            )
        n = matrix.shape[0]
        if len(rows[1]) != n:
            raise ValueError(
                f"rows of write_matrix must be {n}, one for each row, got {len(rows[1])}"
            )
        # A column of ids has a name, so the others need one, too.
        names = tuple(map(str, range(columns))) if names is None else names
    if kind == ".npy" and sparse.issparse(matrix):
        raise ValueError(f"{path} cannot hold a sparse matrix: let its name end in .npz")
    with replacing(path) as file:
        if kind == ".npz":
            more = {} if names is None else {NAMES: np.array(names, dtype=np.str_)}
            # Without a name the parts of a sparse matrix are called as SciPy calls them.
            values_name = "" if sparse.issparse(matrix) else "values"
            npz.write(file, {values_name: matrix, **more}, pack=True)
        elif kind == ".npy":
            np.save(file, matrix, allow_pickle=False)
        elif kind == ".parquet":
            write_parquet(file, matrix, names, rows)
        else:
            with compressing(file, compressed) as text:
                if kind in TABLES:
                    csv_text.write(text, matrix, names, TABLES[kind], rows)
                else:
                    svmlight.write_sized(text, matrix)


def split_address(path: str | Path) -> tuple[Path, str | None]:
    """A path, and the array of an archive that ``file.npz:name`` asks for."""
    # The last colon: paths of Windows have one after the drive.
    before, colon, after = str(path).rpartition(":")
    if colon and before.lower().endswith(".npz"):
        return Path(before), after
    return Path(path), None


def file_ending(path: Path) -> tuple[str, str]:
    """What a file is by its name, and how it is compressed; refuses a name that says nothing."""
    kind, last = ending(path), path.suffix.lower()
    compressed = last if last in OPENERS else ""
    if kind not in ENDINGS or (compressed and kind not in (*TABLES, ".txt")):
        hint = nearest(kind, ENDINGS, count=1) if kind else ""
        raise ValueError(
            f"{path} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, text also in "
            f"{', '.join(OPENERS)} after that{hint}"
        )
    return kind, compressed


def _writable(values: Any) -> Any:
    if sparse.issparse(values):
        return sparse.csr_array(values)
    matrix: NDArray[Any] = np.asarray(values)
    if matrix.ndim not in (1, 2) or matrix.dtype.kind not in "fiub":
        raise ValueError(
            "values of write_matrix must be numbers in one or two dimensions, got the type "
            f"{matrix.dtype} and shape {matrix.shape}"
        )
    # True and false are written as 1 and 0.
    return matrix.view(np.uint8) if matrix.dtype.kind == "b" else matrix


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


def read_parquet(path: Path, id_column: str | None) -> tuple[Any, Names, Names]:
    """Columns of numbers, with their names."""
    parquet = _pyarrow("pyarrow.parquet", path)
    with path.open("rb") as file:
        with _told(path):
            opened = parquet.ParquetFile(file, page_checksum_verification=True)
            size = 8 * opened.metadata.num_rows * len(opened.schema_arrow.names)
        # A small file can claim any number of rows: refused before memory is asked for.
        if not 0 < size <= largest(path, TIMES):
            most = largest(path, TIMES) // 8
            raise ValueError(f"{path} must have from 1 to {most:,} cells, got {size // 8:,}")
        with _told(path):
            table = opened.read()
    names, id_place = named_columns(path, tuple(table.column_names), id_column)
    with _told(path):
        ids = None if id_place is None else tuple(map(str, table.column(id_place).to_pylist()))
        columns = [column.to_numpy() for column in table.columns]
    if id_place is not None:
        del columns[id_place]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "fiub":
            raise no_number(str(path), name, column[0] if len(column) else column.dtype)
    return np.column_stack(columns), names, ids


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

"""Probabilities and labels in files of all formats: one function reads them, one writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma import npz
from omma._atomic import replacing
from omma._validate import nearest
from omma.datasets import svmlight
from omma.datasets.column_roles import Roles, matrix_roles
from omma.datasets.dataset import dense
from omma.datasets.tables import (
    NAMED_COLUMNS,
    SEPARATORS,
    CsvTable,
    Table,
    named_table,
    write_csv,
    write_parquet,
)
from omma.datasets.text import OPENERS, compressing, ending, text_lines

ENDINGS = (".npz", ".npy", ".csv", ".tsv", ".parquet", ".txt")
NAMES = "names"  # the array with them in an .npz file


@dataclass(frozen=True, eq=False)
class Matrix:
    """The content of a file.

    Attributes
    ----------
    values : ndarray or scipy.sparse.csr_array
        A row for each instance.
    names : tuple of str, or None
        Names of the columns; None if the file has none.
    ids : tuple of str, or None
        Ids of the rows; None if no column of ids was read.
    path : str
        The file.
    lines : sequence of int, or None
        The line number of each row; None if the file has no lines.
    """

    values: Any
    names: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    path: str = ""
    lines: Sequence[int] | None = None

    @property
    def width(self) -> int:
        """The number of columns; a vector is one column."""
        return 1 if self.values.ndim == 1 else int(self.values.shape[1])

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the columns, or their numbers if they have no names."""
        return self.names or tuple(map(str, range(self.width)))

    @property
    def stored(self) -> Any:
        """All values of an array, or the stored values of a sparse matrix, as a vector."""
        return np.ravel(self.values.data if sparse.issparse(self.values) else self.values)

    def columns(self, places: Sequence[int], names: tuple[str, ...] | None = None) -> Matrix:
        """Some columns, in the given order; by default they keep their names."""
        if names is None and self.names is not None:
            names = tuple(self.names[place] for place in places)
        values = self.values
        if values.ndim == 2:
            values = values[:, places]
            if len(places) == 1:  # a single column is dense
                values = np.ascontiguousarray(dense(values))
        return replace(self, values=values, names=names)

    def take(self, rows: Sequence[int]) -> Matrix:
        """Some rows, in the given order."""
        ids = None if self.ids is None else tuple(self.ids[row] for row in rows)
        lines = None if self.lines is None else [self.lines[row] for row in rows]
        return replace(self, values=self.values[rows], ids=ids, lines=lines)

    def where(self, row: int) -> str:
        """The file, and the line (or row) in it, for a message."""
        return f"{self.path}, " + (
            f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        )

    def __repr__(self) -> str:
        kind = "sparse" if sparse.issparse(self.values) else str(self.values.dtype)
        named = "" if self.names is None else ", with names"
        return f"<{kind} matrix of shape {tuple(self.values.shape)}{named}>"


def read_matrix(path: str | Path, *, id_column: str | None = None) -> Matrix:
    r"""Read probabilities or labels from a file; its ending is that of the format.

    =================  ===========================================================================
    ``.npz``           a SciPy sparse matrix or a NumPy array; ``file.npz:name`` is one of several
    ``.npy``           a NumPy array, mapped from the disk and not read into memory
    ``.csv, .tsv``     numbers, a column for each label; a first line of words names the columns
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
    file, member = split_address(path)
    if file_ending(file) in NAMED_COLUMNS:
        table = named_table(file)
        if table.names is None and id_column is not None:
            raise ValueError(
                f"{file}, line 1: expected names of columns, {id_column!r} among them, got none"
            )
        return read_roles(table, matrix_roles(table, id_column))[0]
    if id_column is not None:
        raise ValueError(f"{file} has no columns with names, so none of them is {id_column!r}")
    matrix = read_array(file, member)
    if matrix.values.dtype.kind not in "fiub" or matrix.values.ndim not in (1, 2):
        raise ValueError(
            f"{file} must hold numbers in one or two dimensions, got the type "
            f"{matrix.values.dtype} and shape {tuple(matrix.values.shape)}"
        )
    return matrix


def read_roles(table: Table, roles: Roles) -> tuple[Matrix, Matrix]:
    """Probabilities and labels of a table; a single column of labels may be of words."""
    id_places = [] if roles.id is None else [roles.id]
    eta_places, label_places = [*roles.eta], [*roles.labels]
    is_words = len(label_places) == 1 and table.is_text(label_places[0])
    # A row without probabilities may have the labels of an earlier row with the same id.
    may_lack = bool(id_places and eta_places and label_places)
    labels = [] if is_words else label_places
    texts = [*id_places, *label_places] if is_words else id_places
    numbers, words, lines = table.read([*eta_places, *labels], texts, labels, may_lack=may_lack)
    if not len(lines):
        raise ValueError(f"{table.path} must have rows of numbers, got none")
    # Both were read in one pass over the file.
    eta, y = np.split(numbers, [len(eta_places)], axis=1)
    values = np.array(words[-1], dtype=object) if is_words else np.ascontiguousarray(y)
    ids = tuple(words[0]) if id_places else None
    path, is_named = str(table.path), table.names is not None
    names, label_names = tuple(roles.eta.values()), tuple(roles.labels.values())
    return (
        Matrix(np.ascontiguousarray(eta), names if is_named else None, ids, path, lines),
        Matrix(values, label_names if is_named else None, ids, path, lines),
    )


def read_array(path: Path, member: str | None) -> Matrix:
    """Read a file that is no table with names: numbers, or texts such as names of classes."""
    kind = file_ending(path)
    if kind == ".npz":
        return _from_npz(path, member)
    if kind == ".npy":
        return Matrix(npz.mapped(path), path=str(path))
    # Text of the repository starts with a size; other text is numbers with blanks between them.
    lines = text_lines(path)
    if svmlight.is_sized(lines):
        return Matrix(svmlight.read_sized(path, lines), path=str(path))
    table = CsvTable(path, lines, default=None)
    return read_roles(table, Roles(None, dict(enumerate(table.first)), {}))[0]


def _from_npz(path: Path, member: str | None) -> Matrix:
    """A sparse matrix, the only array of an archive, or the array that ``member`` names."""
    with npz.opened(path) as archive:
        names: tuple[str, ...] | None = None
        if member != NAMES and NAMES in archive:
            names = tuple(archive.array(NAMES, kinds="U", shape=(None,)).tolist())
        if member is None and "format" in archive:
            values: Any = archive.matrix()
        else:
            # The names of columns are not the content, unless there is nothing else.
            arrays = sorted({*archive.members} - {NAMES}) or sorted(archive.members)
            listed = ", ".join(arrays) or "none"
            if member is None and len(arrays) != 1:
                raise ValueError(
                    f"{path} must hold one array, or be asked for one as {path}:NAME; {listed}"
                )
            if member is not None and member not in archive:
                hint = nearest(member, arrays) or f"; it has {listed}"
                raise ValueError(f"{path} has no array {member!r}{hint}")
            values = archive.array(arrays[0] if member is None else member, kinds="fiubSU")
    if names is not None and len(names) != (values.shape[1] if values.ndim == 2 else 1):
        raise ValueError(f"{path}: expected a name for each column, got {len(names)}")
    return Matrix(values, names, path=str(path))


def write_matrix(
    path: str | Path,
    values: Any,
    names: tuple[str, ...] | None = None,
    rows: tuple[str, tuple[str, ...]] | None = None,
) -> None:
    """Write a matrix such as ``trace.predictions`` to a file, completely or not at all.

    Parameters
    ----------
    path : str or Path
        Its ending is that of the format, as for ``read_matrix``; text may be compressed. ``.npz``
        and ``.txt`` keep a sparse matrix sparse.
    values : ndarray or sparse matrix of shape (n, m), or (n,)
        Numbers; in tables also text, such as the names of classes.
    names : tuple of str, optional
        Names of the columns, which ``.npy`` and ``.txt`` cannot hold.
    rows : tuple of str and tuple of str, optional
        The name of the first column, which names rows, and its cells. Only tables (``.csv``,
        ``.tsv``, ``.parquet``) can hold it.

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
    kind = file_ending(path)
    matrix = _writable(values, "fiubU" if kind in NAMED_COLUMNS else "fiub")
    columns = 1 if matrix.ndim == 1 else matrix.shape[1]
    if names is not None and len(names) != columns:
        raise ValueError(
            f"names of write_matrix must be {columns}, one for each column, got {len(names)}"
        )
    if rows is not None:
        if kind not in NAMED_COLUMNS:
            raise ValueError(
                f"{path} has no place for names of rows: let it end in .csv, .tsv or .parquet"
            )
        n = matrix.shape[0]
        if len(rows[1]) != n:
            raise ValueError(
                f"rows of write_matrix must be {n}, one for each row, got {len(rows[1])}"
            )
    if names is None and (rows is not None or kind == ".parquet"):
        # The columns of Parquet have names, and those beside a column of ids need names, too.
        names = tuple(map(str, range(columns)))
    if kind in NAMED_COLUMNS and matrix.ndim == 1:
        matrix = matrix[:, np.newaxis]
    if kind == ".npy" and sparse.issparse(matrix):
        raise ValueError(f"{path} cannot hold a sparse matrix: let its name end in .npz")
    # Other programs see the old file or the complete new one, never a part of it.
    with replacing(path) as file:
        if kind == ".npz":
            content = npz.sparse_parts(matrix) if sparse.issparse(matrix) else {"values": matrix}
            if names is not None:
                content[NAMES] = np.array(names, dtype=np.str_)
            npz.write(file, content, pack=True)
        elif kind == ".npy":
            np.save(file, matrix, allow_pickle=False)
        elif kind == ".parquet":
            write_parquet(file, matrix, names or (), rows)
        else:
            with compressing(file, path) as text:
                if kind in SEPARATORS:
                    write_csv(text, matrix, names, SEPARATORS[kind], rows)
                else:
                    svmlight.write_sized(text, matrix)


def split_address(path: str | Path) -> tuple[Path, str | None]:
    """Split ``file.npz:name`` into the path and the name of an array, or None."""
    # At the last colon, as Windows has one after the drive.
    before, colon, after = str(path).rpartition(":")
    if colon and before.lower().endswith(".npz"):
        return Path(before), after
    return Path(path), None


def file_ending(path: Path) -> str:
    """The ending of the format; refuses an unknown format, and a compressed one that is no text."""
    kind, is_compressed = ending(path), path.suffix.lower() in OPENERS
    if kind not in ENDINGS or (is_compressed and kind not in (*SEPARATORS, ".txt")):
        hint = nearest(kind, ENDINGS, count=1) if kind else ""
        raise ValueError(
            f"{path} must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, text also in "
            f"{', '.join(OPENERS)} after that{hint}"
        )
    return kind


def _writable(values: Any, kinds: str) -> Any:
    if sparse.issparse(values):
        return sparse.csr_array(values)
    matrix: NDArray[Any] = np.asarray(values)
    if matrix.ndim not in (1, 2) or matrix.dtype.kind not in kinds:
        raise ValueError(
            "values of write_matrix must be numbers in one or two dimensions, got the type "
            f"{matrix.dtype} and shape {matrix.shape}"
        )
    # True and false are written as 1 and 0.
    return matrix.view(np.uint8) if matrix.dtype.kind == "b" else matrix

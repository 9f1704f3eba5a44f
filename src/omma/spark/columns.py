"""Columns of a Spark frame as arrays: Arrow in, NumPy and SciPy out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_positive_int, shown

# Probabilities, labels, and flags of rows with labels; the last two are None without that column.
Rows = tuple[Any, Any, NDArray[np.bool_] | None]


@dataclass(frozen=True)
class Columns:
    """The names of columns; messages name the ``owner``.

    ``eta`` is one column with all probabilities of a row (an array, packed float32, or one number),
    or two columns, of label ids and their probabilities, with zero for all other labels.
    """

    owner: str  # the function that users called
    eta: str | tuple[str, str]
    y: str | None  # true labels, null where they are unknown
    m: int | None  # the number of labels

    @property
    def eta_names(self) -> list[str]:
        """The columns of probabilities."""
        return list(self.eta) if isinstance(self.eta, tuple) else [self.eta]

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return self.eta_names if self.y is None else [*self.eta_names, self.y]

    def read(self, batch: Any) -> Rows:
        """The rows of an Arrow batch."""
        eta = self._eta(batch)
        if self.y is None:
            return eta, None, None
        column = batch.column(self.y)
        known, labels = np.asarray(column.is_valid()), column.drop_null()
        if sparse.issparse(eta) and is_list(labels.type):  # label ids beside label ids
            ids = self._ids(labels, self.y)
            entries = (np.ones(len(ids), np.int8), ids, ends_of(column))
            return eta, sparse.csr_array(entries, shape=eta.shape), known
        values = self._numbers(labels, self.y, np.uint8)
        if values.ndim == 1 and self.m == 1:
            values = values[:, np.newaxis]
        # Rows without labels read as zeros, which ``known`` keeps from being counted.
        y = np.zeros((len(known), *values.shape[1:]), dtype=values.dtype)
        y[known] = values
        return eta, y, known

    def _eta(self, batch: Any) -> Any:
        if isinstance(self.eta, str):
            eta = self._numbers(batch.column(self.eta), self.eta, np.float32)
            return eta[:, np.newaxis] if eta.ndim == 1 else eta
        columns = [batch.column(name) for name in self.eta]
        for column, name in zip(columns, self.eta, strict=True):
            if not is_list(column.type):
                raise TypeError(f"{name} of {self.owner} must hold arrays, got {column.type}")
            self._check_whole(column, name)
        ids, values = columns
        edges = ends_of(ids)
        if not np.array_equal(edges, ends_of(values)):
            raise ValueError(
                f"{self.eta[0]} and {self.eta[1]} of {self.owner} must be as long in every row"
            )
        entries = (
            self._numbers(values.flatten(), self.eta[1], np.float32),
            self._ids(ids, self.eta[0]),
            edges,
        )
        matrix = sparse.csr_array(entries, shape=(len(ids), self.m))
        matrix.sort_indices()  # users list labels in any order
        if not matrix.has_canonical_format:
            raise ValueError(f"{self.eta[0]} of {self.owner} must have each label once in a row")
        return matrix

    def _check_whole(self, column: Any, name: str) -> None:
        if column.null_count:
            raise ValueError(
                f"{name} of {self.owner} must have a value in every row, got null in "
                f"{column.null_count} of {len(column)} rows"
            )

    def _numbers(self, column: Any, name: str, packed: Any) -> Any:
        """Numbers of shape (n,) or (n, m), from arrays or from bytes of the type ``packed``."""
        self._check_whole(column, name)
        kind, m = column.type, int(self.m or 0)
        if is_list(kind):
            lengths = lengths_of(column)
            if (lengths != m).any():
                raise ValueError(
                    f"{name} of {self.owner} must have {m} numbers in every row, got "
                    f"{lengths[lengths != m][0]}"
                )
            return self._numbers(column.flatten(), name, packed).reshape(len(column), m)
        if is_bytes(kind):
            rows, dtype = column.to_pylist(), np.dtype(packed)
            size = dtype.itemsize * m
            wrong = [len(row) for row in rows if len(row) != size]
            if wrong:
                raise ValueError(
                    f"{name} of {self.owner} must have {size} bytes in every row, {m} numbers of "
                    f"the type {dtype}, got {wrong[0]}"
                )
            return np.frombuffer(b"".join(rows), dtype).reshape(len(rows), m)
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or kind == pa.bool_()):
            raise TypeError(f"{name} of {self.owner} must hold numbers, got the type {kind}")
        return column.to_numpy(zero_copy_only=False)

    def _ids(self, column: Any, name: str) -> Any:
        flat = column.flatten()
        if not pa.types.is_integer(flat.type):
            raise TypeError(f"{name} of {self.owner} must hold label ids, got {column.type}")
        ids = self._numbers(flat, name, np.float32)
        wrong = ids[(ids < 0) | (ids >= self.m)]
        if len(wrong):
            raise ValueError(
                f"{name} of {self.owner} must hold label ids below {self.m}, got {wrong[0]}"
            )
        return ids.astype(np.int32, copy=False)

    def first_width(self, batch: Any) -> int:
        """The number of labels of the first row, if eta is one column."""
        assert isinstance(self.eta, str)
        column = batch.column(self.eta)
        if is_list(column.type):
            return int(lengths_of(column)[0])
        return len(column[0].as_py()) // 4 if is_bytes(column.type) else 1  # 4 bytes of a float32


def read_columns(owner: str, eta: Any, y: Any, n_labels: Any) -> Columns:
    """Check the names of columns."""
    if isinstance(eta, list | tuple):
        if len(eta) != 2 or not all(isinstance(name, str) for name in eta):
            raise TypeError(
                f"eta of {owner} must name a column, or those of label ids and of probabilities, "
                f"got {shown(eta)}"
            )
        if n_labels is None:
            raise ValueError(f"n_labels of {owner} must be given where eta is label ids and values")
        eta = tuple(eta)
    elif not isinstance(eta, str):
        raise TypeError(f"eta of {owner} must name a column, got {shown(eta)}")
    if y is not None and not isinstance(y, str):
        raise TypeError(f"y of {owner} must name a column, got {shown(y)}")
    check_positive_int(owner, "n_labels", n_labels, optional=True)
    return Columns(owner, eta, y, n_labels)


def check_there(owner: str, frame: Any, names: list[str]) -> None:
    """Refuse names that the frame does not have."""
    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"{owner} needs the column {name!r}, got a frame with {shown(frame.columns, 200)}"
            )


def is_list(kind: Any) -> bool:
    """Whether a type holds a list of values in each row."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_bytes(kind: Any) -> bool:
    """Whether a type holds bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def lengths_of(column: Any) -> Any:
    """The number of values in each row; a null has none."""
    return column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)


def ends_of(column: Any) -> Any:
    """The start of each row among the flattened values, and the end of the last."""
    return np.concatenate(([0], np.cumsum(lengths_of(column), dtype=np.int64)))


def label_ids(predictions: Any) -> Any:
    """Decisions as an Arrow column of the label ids of each row."""
    if not sparse.issparse(predictions):
        table = predictions if predictions.ndim == 2 else predictions[:, np.newaxis]
        predictions = sparse.csr_array(table)
    # Spark's arrays have 32-bit offsets.
    edges, ids = predictions.indptr.astype(np.int32), predictions.indices.astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(edges), pa.array(ids))


def indicators(column: Any, eta: Any) -> Any:
    """A column of ``label_ids`` as a matrix, sparse if the probabilities are."""
    ids = column.flatten().to_numpy(zero_copy_only=False)
    entries = (np.ones(len(ids), np.int8), ids, ends_of(column))
    matrix = sparse.csr_array(entries, shape=eta.shape)
    return matrix if sparse.issparse(eta) else matrix.toarray()

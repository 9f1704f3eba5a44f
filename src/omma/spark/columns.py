"""Columns of a Spark frame as rows that omma reads: Arrow in, arrays out, nothing row by row."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_positive_int, shown


class Rows(NamedTuple):
    """Some rows: ``known`` says whose labels came; both are None where there is no such column."""

    eta: Any
    y: Any
    known: NDArray[np.bool_] | None


@dataclass(frozen=True)
class Columns:
    """Which columns hold what; ``owner`` is named in messages.

    ``eta`` is one column with all probabilities of a row (an array, packed float32, or one number),
    or the columns of label ids and of their probabilities where all others are zero.
    """

    owner: str
    eta: str | tuple[str, str]
    y: str | None  # true labels, null where they are unknown
    m: int | None  # the number of labels

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        some = list(self.eta) if isinstance(self.eta, tuple) else [self.eta]
        return some if self.y is None else [*some, self.y]

    def read(self, batch: Any) -> Rows:
        """The rows of an Arrow batch."""
        assert self.m is not None
        eta = self._eta(batch, self.m)
        if self.y is None:
            return Rows(eta, None, None)
        column = batch.column(self.y)
        known = np.asarray(column.is_valid())
        y = self._y(column, known, self.m, thin=sparse.issparse(eta))
        return Rows(eta, y, known)

    def _eta(self, batch: Any, m: int) -> Any:
        if isinstance(self.eta, tuple):
            ids, values = self.eta
            return self._thin(batch.column(ids), batch.column(values), m)
        column = self._whole(batch.column(self.eta), self.eta)
        if is_list(column.type):
            return self._lists(column, self.eta, m)
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            return self._packed(column, self.eta, m, np.float32)
        return self._numbers(column, self.eta)[:, np.newaxis]

    def _y(self, column: Any, known: Any, m: int, *, thin: bool) -> Any:
        name, some = self.y or "", column.drop_null()
        if pa.types.is_binary(some.type) or pa.types.is_large_binary(some.type):
            found = self._packed(some, name, m, np.uint8)
        elif is_list(some.type) and thin:
            return self._label_ids(some, known, m)
        elif is_list(some.type):
            found = self._lists(some, name, m)
        else:
            found = self._numbers(some, name)
            found = found[:, np.newaxis] if m == 1 else found
        if known.all():
            return found
        made = np.zeros((len(known), *found.shape[1:]), dtype=found.dtype)
        made[known] = found
        return made

    def _whole(self, column: Any, name: str) -> Any:
        if column.null_count:
            raise ValueError(
                f"{name} of {self.owner} must have a value in every row, got null in "
                f"{column.null_count} of {len(column)} rows"
            )
        return column

    def _numbers(self, column: Any, name: str) -> Any:
        kind = column.type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or kind == pa.bool_()):
            raise TypeError(f"{name} of {self.owner} must hold numbers, got the type {kind}")
        return self._whole(column, name).to_numpy(zero_copy_only=False)

    def _lists(self, column: Any, name: str, m: int) -> Any:
        wrong = np.flatnonzero(lengths_of(column) != m)
        if len(wrong):
            raise ValueError(
                f"{name} of {self.owner} must have {m} numbers in every row, got "
                f"{lengths_of(column)[wrong[0]]}"
            )
        return self._numbers(column.flatten(), name).reshape(len(column), m)

    def _packed(self, column: Any, name: str, m: int, kind: Any) -> Any:
        column = column.cast(pa.large_binary())
        size, edges = np.dtype(kind).itemsize * m, np.diff(offsets_of(column))
        if (edges != size).any():
            raise ValueError(
                f"{name} of {self.owner} must have {size} bytes in every row, {m} numbers of the "
                f"type {np.dtype(kind)}, got {edges[edges != size][0]}"
            )
        start = offsets_of(column)[0]
        content = np.frombuffer(column.buffers()[2] or b"", np.uint8)
        return content[start : start + size * len(column)].view(kind).reshape(len(column), m)

    def _thin(self, indices: Any, values: Any, m: int) -> Any:
        assert isinstance(self.eta, tuple)
        for column, name in zip((indices, values), self.eta, strict=True):
            if not is_list(column.type):
                raise TypeError(f"{name} of {self.owner} must hold arrays, got {column.type}")
            self._whole(column, name)
        edges = ends_of(indices)
        if not np.array_equal(edges, ends_of(values)):
            raise ValueError(
                f"{self.eta[0]} and {self.eta[1]} of {self.owner} must be as long in every row"
            )
        ids = self._ids(indices, self.eta[0], m)
        data = self._numbers(values.flatten(), self.eta[1])
        made = sparse.csr_array((data, ids, edges), shape=(len(indices), m))
        made.sort_indices()
        if not made.has_canonical_format:
            raise ValueError(f"{self.eta[0]} of {self.owner} must have each label once in a row")
        return made

    def _ids(self, column: Any, name: str, m: int) -> Any:
        flat = column.flatten()
        if not pa.types.is_integer(flat.type):
            raise TypeError(f"{name} of {self.owner} must hold label ids, got {column.type}")
        ids = self._numbers(flat, name)
        if len(ids) and not (ids.min() >= 0 and ids.max() < m):
            odd = ids[(ids < 0) | (ids >= m)][0]
            raise ValueError(f"{name} of {self.owner} must hold label ids below {m}, got {odd}")
        return ids.astype(np.int32, copy=False)

    def _label_ids(self, some: Any, known: Any, m: int) -> Any:
        ids = self._ids(some, self.y or "", m)
        lengths = np.zeros(len(known), dtype=np.int64)
        lengths[known] = lengths_of(some)
        edges = np.concatenate(([0], np.cumsum(lengths)))
        return sparse.csr_array((np.ones(len(ids), np.int8), ids, edges), shape=(len(known), m))


def read_columns(owner: str, eta: Any, y: Any, n_labels: Any) -> Columns:
    """Which columns hold what, as users say it."""
    if isinstance(eta, list | tuple):
        if len(eta) != 2 or not all(isinstance(one, str) for one in eta):
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
    """Refuse names that are no columns."""
    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"{owner} needs the column {name!r}, got a frame with {shown(frame.columns, 200)}"
            )


def is_list(kind: Any) -> bool:
    """Whether a type holds as many values in a row as there are."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def offsets_of(column: Any) -> Any:
    """Where rows of packed bytes start and end."""
    read = np.frombuffer(column.buffers()[1] or b"\0" * 8, np.int64)
    return read[column.offset : column.offset + len(column) + 1]


def lengths_of(column: Any) -> Any:
    """How many values each row has."""
    return column.value_lengths().to_numpy(zero_copy_only=False)


def ends_of(column: Any) -> Any:
    """Where rows of values start and end, once they are side by side."""
    return np.concatenate(([0], np.cumsum(lengths_of(column), dtype=np.int64)))


def label_ids(predictions: Any) -> Any:
    """Decisions as an Arrow column of the label ids of each row."""
    if sparse.issparse(predictions):
        edges, ids = predictions.indptr, predictions.indices
    else:
        table = predictions if predictions.ndim == 2 else predictions[:, np.newaxis]
        where, ids = np.nonzero(table)
        edges = np.searchsorted(where, np.arange(len(table) + 1))
    parts = (pa.array(edges.astype(np.int32)), pa.array(ids.astype(np.int32)))
    return pa.ListArray.from_arrays(*parts)


def indicators(column: Any, eta: Any) -> Any:
    """What ``label_ids`` wrote, as a matrix of the kind that probabilities are in."""
    edges, ids = ends_of(column), column.flatten().to_numpy(zero_copy_only=False)
    if sparse.issparse(eta):
        return sparse.csr_array((np.ones(len(ids), np.int8), ids, edges), shape=eta.shape)
    made = np.zeros(eta.shape, dtype=np.int8)
    made[np.repeat(np.arange(len(column)), np.diff(edges)), ids] = 1
    return made

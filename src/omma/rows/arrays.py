"""Probabilities as users give them, laid out for the kernels block by block.

They come as NumPy arrays of any type and order, or as SciPy sparse matrices, read-only or mapped
from a file. What a kernel can read as it is, it reads as it is;
anything else is converted a block of rows at a time, so that no second copy of the data is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.rows.frames import is_missing, values_of

# What a row may weigh: metrics multiply four counts, and these products must remain numbers.
HEAVIEST = 1e60
BLOCK = 1 << 20  # stored numbers handed to a kernel at a time
MORE = 8  # times as many where they are read as they are: some hundredths of a second
SEEN = 1000  # rows that are looked at to guess what wrong numbers mean
MANY = 0.25  # of the numbers must be outside of 0 to 1 before they look like something else

Rows = NDArray[np.int64]


class _Alias:
    """Lets NumPy see read-only memory without the read-only flag.

    Numba compiles every kernel again for read-only arrays. Kernels never write to their input, so
    nothing is lost by hiding the flag from them, and some ten seconds of compilation are saved.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def unflagged(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as a plain array that is not marked read-only."""
    if array.flags.writeable and type(array) is np.ndarray:
        return array
    return np.asarray(_Alias(array)) if array.size else np.array(array)


def as_it_is(array: NDArray[Any], types: tuple[Any, ...]) -> bool:
    """Whether a kernel can read the array without conversion."""
    return array.flags.c_contiguous and array.dtype.isnative and array.dtype.type in types


@dataclass(frozen=True)
class DenseProbabilities:
    """An (n, m) array, one row an instance; ``vector`` when it was given as (n,)."""

    array: NDArray[Any]
    vector: bool

    @cached_property
    def n(self) -> int:
        return int(self.array.shape[0])

    @cached_property
    def m(self) -> int:
        return int(self.array.shape[1])

    @property
    def rows_per_block(self) -> int:
        return max(1, BLOCK // max(1, self.m))

    @property
    def rows_per_run(self) -> int:
        """Rows that a loop takes at a time: more, where nothing is copied for it."""
        as_given = as_it_is(self.array, (np.float32, np.float64))
        return (MORE if as_given else 1) * self.rows_per_block

    def block(self, rows: Rows) -> tuple[NDArray[Any], Rows]:
        """An array that kernels read, and where the wanted rows are in it."""
        if as_it_is(self.array, (np.float32, np.float64)):
            return unflagged(self.array), rows
        taken = np.ascontiguousarray(self.array[rows], dtype=np.float64)
        return taken, np.arange(len(rows), dtype=np.int64)

    def ready(self) -> DenseProbabilities:
        """The same, converted once where kernels cannot read it as it is."""
        if as_it_is(self.array, (np.float32, np.float64)):
            return self
        return DenseProbabilities(np.ascontiguousarray(self.array, dtype=np.float64), self.vector)

    def explain(self, row: int) -> str:
        """What is wrong with a row that a kernel refused."""
        values = np.asarray(self.array[row], dtype=np.float64)
        wrong = int(np.flatnonzero(~((values >= 0) & (values <= 1)))[0])
        said = f"probabilities from 0 to 1, got {values[wrong]:g} in row {row}, label {wrong}"
        return said + meaning(self.array[:SEEN])

    def take(self, rows: Any) -> DenseProbabilities:
        """Some of the rows: ids, flags or a slice."""
        return DenseProbabilities(self.array[rows], self.vector)


@dataclass(frozen=True)
class SparseProbabilities:
    """A CSR matrix; labels that are not stored have probability zero."""

    matrix: Any
    vector: bool = False

    @cached_property
    def n(self) -> int:
        return int(self.matrix.shape[0])

    @cached_property
    def m(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def rows_per_block(self) -> int:
        return max(1, int(BLOCK * self.n / max(1, self.matrix.nnz)))

    @property
    def rows_per_run(self) -> int:
        """Rows that a loop takes at a time."""
        return self.rows_per_block

    def block(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[Any], Rows, Rows]:
        """Indices and probabilities that kernels read, with start and end of each wanted row."""
        indices, data, indptr = self.matrix.indices, self.matrix.data, self.matrix.indptr
        starts = indptr[rows].astype(np.int64)
        ends = indptr[rows + 1].astype(np.int64)
        if as_it_is(indices, (np.int32,)) and as_it_is(data, (np.float32, np.float64)):
            return unflagged(indices), unflagged(data), starts, ends
        entries = entries_of(starts, ends)
        lengths = ends - starts
        ends = np.cumsum(lengths)
        starts = ends - lengths
        taken = indices[entries].astype(np.int32), data[entries].astype(np.float64)
        return *taken, starts, ends

    def ready(self) -> SparseProbabilities:
        """The same, converted once where kernels cannot read it as it is."""
        indices, data = self.matrix.indices, self.matrix.data
        if as_it_is(indices, (np.int32,)) and as_it_is(data, (np.float32, np.float64)):
            return self
        parts = (data.astype(np.float64), indices.astype(np.int32), self.matrix.indptr)
        return SparseProbabilities(csr(parts, self.matrix.shape, type(self.matrix)))

    def explain(self, row: int) -> str:
        """What is wrong with a row that a kernel refused."""
        start, end = self.matrix.indptr[row], self.matrix.indptr[row + 1]
        labels = np.asarray(self.matrix.indices[start:end])
        values = np.asarray(self.matrix.data[start:end], dtype=np.float64)
        wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
        if len(wrong):
            at = int(wrong[0])
            said = f"probabilities from 0 to 1, got {values[at]:g} in row {row}, label {labels[at]}"
            return said + meaning(self.matrix.data[: SEEN * 10])
        return f"sorted label ids below {self.m} in each row, got {shown(labels.tolist())}"

    def take(self, rows: Any) -> SparseProbabilities:
        """Some of the rows: ids, flags or a slice."""
        return SparseProbabilities(self.matrix[rows])


Probabilities = DenseProbabilities | SparseProbabilities


def meaning(values: Any) -> str:
    """What numbers that are no probabilities may be, as the end of a sentence; or nothing."""
    stored = np.ravel(values)
    stored = stored[stored != 0]
    if not len(stored) or not np.isfinite(stored).all():
        return ""
    if stored.min() >= 0 and stored.max() <= 100 and np.median(stored) > 1:
        whole = (stored == np.floor(stored)).all()  # labels or counts, more likely
        return "" if whole else "; if these are percent, divide them by 100"
    outside = ((stored < 0) | (stored > 1)).mean()
    if stored.min() < 0 and outside >= MANY:
        return (
            "; if these are log-odds (logits), pass their sigmoid, 1 / (1 + exp(-x)), or where a "
            "row has one class their softmax"
        )
    return ""


def csr(parts: tuple[Any, ...], shape: tuple[int, int], kind: Any = sparse.csr_array) -> Any:
    """A CSR matrix of (data, indices, indptr), known to be in order, without a copy of any."""
    if parts[1].dtype == parts[2].dtype:
        matrix = kind(parts, shape=shape, copy=False)
    else:  # SciPy would convert one to the type of the other
        matrix = kind(shape, dtype=parts[0].dtype)
        matrix.data, matrix.indices, matrix.indptr = parts
    matrix.has_canonical_format = True
    return matrix


def sound_csr(owner: str, parameter: str, given: Any) -> Any:
    """A sparse matrix in CSR, if it points nowhere but into itself.

    Compiled code of SciPy and of the kernels follows ``indptr`` and ``indices`` without looking,
    and the constructors of SciPy let most of what is wrong with them pass.

    >>> matrix = sparse.csr_array(np.eye(2))
    >>> matrix.indptr[1] = 3
    >>> sound_csr("predict", "eta", matrix)
    Traceback (most recent call last):
    ...
    ValueError: eta of predict must be a sound sparse matrix, got an indptr that goes down in row 1
    """
    if given.ndim != 2:
        raise ValueError(
            f"{parameter} of {owner} must have two dimensions, got shape {given.shape}"
        )
    if given.format not in ("csr", "csc"):  # the others have no indptr of their own
        given = given.tocsr()
    lines, across = given.shape if given.format == "csr" else given.shape[::-1]
    ids, ends = given.indices, given.indptr
    start = f"{parameter} of {owner} must be a sound sparse matrix, got"
    if len(ends) != lines + 1 or ends[0] != 0:
        raise ValueError(
            f"{start} an indptr of {len(ends)} numbers from {shown(ends[:1].tolist())[1:-1]} on "
            f"in place of {lines + 1} from 0 on"
        )
    down = ends[1:] < ends[:-1]
    if down.any():
        kind = "row" if given.format == "csr" else "column"
        raise ValueError(f"{start} an indptr that goes down in {kind} {down.argmax()}")
    if not ends[-1] <= len(ids) == len(given.data):
        raise ValueError(
            f"{start} {len(ids)} indices and {len(given.data)} values where indptr says {ends[-1]}"
        )
    # A negative number is a large one without its sign: one look at each is enough.
    if len(ids) and ids.view(f"u{ids.itemsize}").max() >= across:
        name = "label ids" if given.format == "csr" else "row numbers"
        raise ValueError(
            f"{name} stored in {parameter} of {owner} must be from 0 to {across - 1}, got "
            f"{ids.min()} to {ids.max()}"
        )
    return given.tocsr()


def entries_of(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The positions ``starts[0]:ends[0], starts[1]:ends[1], …`` as one array."""
    lengths = ends - starts
    total = int(lengths.sum())
    shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    entries: NDArray[np.int64] = np.arange(total, dtype=np.int64) + shift
    return entries


def read_probabilities(owner: str, eta: Any) -> Probabilities:
    """Probabilities of a sequence: (n,), (n, m), or sparse of that shape."""
    eta = values_of(owner, "eta", eta)
    if sparse.issparse(eta):
        matrix = sound_csr(owner, "eta", eta)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return SparseProbabilities(check_kind(owner, matrix, matrix.dtype))
    array = from_objects(np.asanyarray(eta))
    check_kind(owner, array, array.dtype)
    if array.ndim == 1:
        return DenseProbabilities(array[:, np.newaxis], vector=True)
    if array.ndim != 2:
        raise ValueError(
            f"eta of {owner} must have the shape (rows, labels), or (rows,) for a binary problem, "
            f"got shape {array.shape}"
        )
    return DenseProbabilities(array, vector=False)


def wrong_row(rows: Probabilities) -> int | None:
    """The first row with anything that is no probability."""
    for _, block in blocks(rows.n, rows.rows_per_block, None):
        if isinstance(rows, DenseProbabilities):
            values = np.asarray(rows.array[block], dtype=np.float64)
            wrong = np.flatnonzero(~((values >= 0) & (values <= 1)).all(axis=1))
        else:
            start, stop = rows.matrix.indptr[[block[0], block[-1] + 1]]
            values = rows.matrix.data[start:stop]
            at = np.flatnonzero(~((values >= 0) & (values <= 1)))
            wrong = np.searchsorted(rows.matrix.indptr[block + 1] - start, at, side="right")
        if len(wrong):
            return int(block[wrong[0]])
    return None


def check_kind(owner: str, values: Any, dtype: Any) -> Any:
    """Only real numbers can be probabilities."""
    if dtype.kind not in "fiub":
        raise TypeError(f"eta of {owner} must hold real numbers, got the type {dtype}")
    return values


def from_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers that came as Python objects as float64, missing ones NaN; anything else as it is."""
    if array.dtype.kind != "O":
        return array
    found = [_number(one) for one in array.ravel().tolist()]
    if any(one is None for one in found):
        return array
    return np.array(found, dtype=np.float64).reshape(array.shape)


def _number(one: Any) -> float | None:
    if is_missing(one):
        return np.nan
    return float(one) if isinstance(one, Real | Decimal | np.bool_) else None


def read_numbers(owner: str, parameter: str, given: Any) -> NDArray[np.float64]:
    """Real numbers of any shape, as float64; text is none, even where it spells one."""
    try:
        found = np.asarray(values_of(owner, parameter, given))
        if found.dtype.kind not in "fiubO" or given is None:
            raise TypeError(f"the type {found.dtype}")
        return found.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:  # of text, or of rows of several lengths
        raise TypeError(f"{parameter} of {owner} must be numbers, got {shown(given)}") from error


def read_weights(owner: str, weights: Any, n: int, parameter: str = "weights") -> NDArray[Any]:
    """One finite weight of at least zero for each row; an empty array stands for none given."""
    if weights is None:
        return np.empty(0)
    array = read_numbers(owner, parameter, weights)
    if array.shape != (n,):
        raise ValueError(
            f"{parameter} of {owner} must have the shape ({n},), got shape {array.shape}"
        )
    wrong = np.flatnonzero(~((array >= 0) & (array <= HEAVIEST)))
    if len(wrong):
        raise ValueError(
            f"{parameter} of {owner} must be finite and at least 0, and at most {HEAVIEST:g}, "
            f"got {array[wrong[0]]:g} in row {wrong[0]}"
        )
    return np.ascontiguousarray(array)


def some_of(array: NDArray[Any], rows: Rows) -> NDArray[Any]:
    """Some rows of an array, without a copy where they follow one another.

    >>> some_of(np.arange(6), np.array([2, 3, 4])).base is None
    False
    >>> some_of(np.arange(6), np.array([2, 4, 3, 5])).tolist()
    [2, 4, 3, 5]
    """
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all():
        return array[rows[0] : rows[-1] + 1]
    return array[rows]


def blocks(n: int, rows_per_block: int, order: Rows | None) -> Iterator[tuple[int, Rows]]:
    """Where each block starts in the sequence, and which rows come in it."""
    for start in range(0, n, rows_per_block):
        stop = min(start + rows_per_block, n)
        rows = np.arange(start, stop, dtype=np.int64) if order is None else order[start:stop]
        yield start, rows

"""Probabilities as NumPy arrays and SciPy matrices, in blocks that kernels read.

Arrays may have any type and order, be read-only, or be mapped from a file. Kernels read float32 and
float64 in place. Any other array is converted a block of rows at a time, to save memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from numbers import Real
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.rows.frames import open_table

# The largest weight of a row: metrics multiply four counts, and these products must stay finite.
HEAVIEST = 1e60
BLOCK = 1 << 20  # numbers that a kernel gets at a time: a copy of them takes 8 MB
SEEN = 1000  # rows from which the meaning of numbers outside of 0 to 1 is guessed
MANY = 0.25  # share of numbers outside of 0 to 1 from which they look like log-odds
SETS_HINT = ": pass labels of rows as sets, such as [{1}, {1, 2}], or indicators of 0 and 1"

Rows = NDArray[np.int64]
# Arguments of kernels in place of absent arrays.
NO_ROWS = np.empty(0, dtype=np.int64)
NO_IDS = np.empty(0, dtype=np.int32)
NO_NUMBERS = np.empty(0)
NO_FLAGS = np.empty(0, dtype=np.uint8)
NUMBERS = (Real, Decimal, np.bool_)
FLOATS = (np.float32, np.float64)  # types for which kernels are compiled


def unflagged(array: NDArray[Any]) -> NDArray[Any]:
    """A plain array that shares the memory, and is not marked read-only.

    Numba compiles every kernel again for read-only arrays. Kernels never write to their input, so
    hiding the flag is safe, and saves about ten seconds of compilation.
    """
    if array.flags.writeable and type(array) is np.ndarray:
        return array
    if not array.size:  # an empty array of a mapped file has no memory to share
        return np.array(array)
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    # NumPy keeps a reference to this object, which keeps one to the owner of the memory.
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=array))


def is_kernel_ready(array: NDArray[Any], types: tuple[Any, ...]) -> bool:
    """Whether a kernel can read the array without conversion."""
    return array.flags.c_contiguous and array.dtype.isnative and array.dtype.type in types


class DenseProbabilities:
    """An (n, m) array of probabilities; ``vector`` says that the user's shape was (n,)."""

    is_sparse = False

    def __init__(self, array: NDArray[Any], vector: bool = False) -> None:
        self.array, self.vector = array, vector
        self.n, self.m = array.shape
        self.rows_per_block = max(1, BLOCK // max(1, self.m))
        self.is_ready = is_kernel_ready(array, FLOATS)

    def block(self, rows: Rows) -> tuple[NDArray[Any], Rows]:
        """An array that kernels read, and the position of each row in it."""
        if self.is_ready:
            return unflagged(self.array), rows
        places = np.arange(len(rows), dtype=np.int64)
        return np.ascontiguousarray(self.array[rows], dtype=np.float64), places

    dense_block = block

    @cached_property
    def wrong_row(self) -> int | None:
        """The first row with anything that is no probability; None where there is none."""
        # NaN is the smallest and the largest of its row; no copy of the array is made.
        low, high = self.array.min(axis=1, initial=0), self.array.max(axis=1, initial=0)
        wrong = ~((low >= 0) & (high <= 1))
        return int(wrong.argmax()) if wrong.any() else None

    def explain(self, row: int) -> str:
        """Describe a row that holds anything but probabilities."""
        return describe_row(row, np.arange(self.m), self.array[row], self.array[:SEEN])

    def take(self, rows: Any) -> DenseProbabilities:
        """A part of the rows: ids, flags or a slice."""
        return DenseProbabilities(self.array[rows], self.vector)


class SparseProbabilities:
    """A CSR matrix of probabilities; labels that are not stored have probability zero.

    Label ids and probabilities are converted if kernels cannot read their types.
    """

    is_sparse = True
    vector = False

    def __init__(self, matrix: Any) -> None:
        data = matrix.data
        data = data if is_kernel_ready(data, FLOATS) else data.astype(np.float64)
        self.matrix = with_int32_ids(matrix, data)
        self.n, self.m = matrix.shape
        self.rows_per_block = max(1, int(BLOCK * self.n / max(1, matrix.nnz)))

    def block(self, rows: Rows) -> tuple[NDArray[np.int32], NDArray[Any], Rows, Rows]:
        """Label ids and probabilities that kernels read, and where each row starts and ends."""
        indices, data = unflagged(self.matrix.indices), unflagged(self.matrix.data)
        return indices, data, *row_bounds(self.matrix, rows)

    def dense_block(self, rows: Rows) -> tuple[NDArray[np.float64], Rows]:
        """The same rows as a dense array, and the position of each row in it."""
        places = np.arange(len(rows), dtype=np.int64)
        return np.ascontiguousarray(self.matrix[rows].toarray(), dtype=np.float64), places

    @cached_property
    def wrong_row(self) -> int | None:
        """The first row with anything that is no probability; None where there is none."""
        values = self.matrix.data[: self.matrix.indptr[-1]]
        if not len(values) or (values.min() >= 0 and values.max() <= 1):  # takes no memory
            return None
        wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
        return int(np.searchsorted(self.matrix.indptr, wrong[0], side="right")) - 1

    def explain(self, row: int) -> str:
        """Describe a row that holds anything but probabilities of rising label ids."""
        start, end = self.matrix.indptr[row], self.matrix.indptr[row + 1]
        labels, values = self.matrix.indices[start:end], self.matrix.data[start:end]
        if ((values >= 0) & (values <= 1)).all():
            return f"sorted label ids below {self.m} in each row, got {shown(labels.tolist())}"
        return describe_row(row, labels, values, self.matrix.data[: SEEN * 10])

    def take(self, rows: Any) -> SparseProbabilities:
        """A part of the rows: ids, flags or a slice."""
        return SparseProbabilities(self.matrix[rows])


Probabilities = DenseProbabilities | SparseProbabilities


def read_probabilities(owner: str, eta: Any) -> Probabilities:
    """Probabilities of a sequence: (n,), (n, m), or sparse of that shape."""
    is_sparse = sparse.issparse(eta)
    values = sound_csr(owner, "eta", eta) if is_sparse else np.asanyarray(eta)
    if values.dtype.kind == "O" and not is_sparse:
        values = from_objects(values)
    if values.dtype.kind not in "fiub":
        raise TypeError(f"eta of {owner} must hold real numbers, got the type {values.dtype}")
    if is_sparse:
        return SparseProbabilities(canonical(values))
    if values.ndim not in (1, 2):
        raise ValueError(
            f"eta of {owner} must have the shape (rows, labels), or (rows,) for a binary problem, "
            f"got shape {values.shape}"
        )
    vector = values.ndim == 1
    return DenseProbabilities(values[:, np.newaxis] if vector else values, vector)


def describe_row(row: int, labels: Any, values: NDArray[Any], sample: Any) -> str:
    """Describe the first value of a row that is no probability; a sample suggests what it is."""
    wrong = ~((values >= 0) & (values <= 1))
    value, label = values[wrong][0], labels[wrong][0]
    return f"probabilities from 0 to 1, got {value:g} in row {row}, label {label}{meaning(sample)}"


def meaning(values: Any) -> str:
    """A guess what numbers outside of 0 to 1 mean, as the end of a sentence; or nothing."""
    stored = np.ravel(values)
    stored = stored[stored != 0]
    if not len(stored) or not np.isfinite(stored).all():
        return ""
    if stored.min() >= 0 and stored.max() <= 100 and np.median(stored) > 1:
        is_whole = (stored == np.floor(stored)).all()  # more likely labels or counts
        return "" if is_whole else "; if these are percent, divide them by 100"
    outside = ((stored < 0) | (stored > 1)).mean()
    if stored.min() < 0 and outside >= MANY:
        return (
            "; if these are log-odds (logits), pass their sigmoid, 1 / (1 + exp(-x)), or where a "
            "row has one class their softmax"
        )
    return ""


# Sparse matrices


def csr(parts: tuple[Any, ...], shape: tuple[int, int], kind: Any = sparse.csr_array) -> Any:
    """A CSR matrix of sorted (data, indices, indptr), without copies."""
    matrix = kind(shape, dtype=parts[0].dtype)
    # SciPy's constructor would check everything, and convert indices to the type of indptr.
    matrix.data, matrix.indices, matrix.indptr = parts
    matrix.has_canonical_format = True
    return matrix


def with_int32_ids(matrix: Any, data: Any = None) -> Any:
    """The same CSR matrix with int32 label ids, which kernels read, and with new ``data`` if given.

    SciPy widens ids to the type of ``indptr`` when it selects rows.
    """
    ids, ends = np.ascontiguousarray(matrix.indices, dtype=np.int32), matrix.indptr
    if ends[-1] < 2**31:  # some methods of SciPy need ids and ends of one type
        ends = ends.astype(np.int32, copy=False)
    return csr((matrix.data if data is None else data, ids, ends), matrix.shape, type(matrix))


def canonical(matrix: Any) -> Any:
    """The CSR matrix, or a copy, with distinct and sorted ids in each row."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def sound_csr(owner: str, parameter: str, matrix: Any) -> Any:
    """Convert a sparse matrix to CSR; refuse one whose indices point outside of it.

    Compiled code of SciPy and of the kernels does not check ``indptr`` and ``indices``, and the
    constructors of SciPy accept most wrong ones.

    >>> matrix = sparse.csr_array(np.eye(2))
    >>> matrix.indptr[1] = 3
    >>> sound_csr("predict", "eta", matrix)
    Traceback (most recent call last):
    ...
    ValueError: eta of predict must be a sound sparse matrix, got an indptr that goes down in row 1
    """
    if matrix.ndim != 2:
        raise ValueError(
            f"{parameter} of {owner} must have two dimensions, got shape {matrix.shape}"
        )
    if matrix.format not in ("csr", "csc"):  # the others have no indptr of their own
        matrix = matrix.tocsr()
    lines, across = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    ids, ends = matrix.indices, matrix.indptr
    start = f"{parameter} of {owner} must be a sound sparse matrix, got"
    if len(ends) != lines + 1 or ends[0] != 0:
        raise ValueError(
            f"{start} an indptr of {len(ends)} numbers from {shown(ends[:1].tolist())[1:-1]} on "
            f"in place of {lines + 1} from 0 on"
        )
    down = ends[1:] < ends[:-1]
    if down.any():
        kind = "row" if matrix.format == "csr" else "column"
        raise ValueError(f"{start} an indptr that goes down in {kind} {down.argmax()}")
    if not ends[-1] <= len(ids) == len(matrix.data):
        raise ValueError(
            f"{start} {len(ids)} indices and {len(matrix.data)} values where indptr says {ends[-1]}"
        )
    # As unsigned numbers, negative ids are large: one comparison finds both errors.
    if len(ids) and ids.view(f"u{ids.itemsize}").max() >= across:
        name = "label ids" if matrix.format == "csr" else "row numbers"
        raise ValueError(
            f"{name} stored in {parameter} of {owner} must be from 0 to {across - 1}, got "
            f"{ids.min()} to {ids.max()}"
        )
    return matrix.tocsr()


def row_bounds(matrix: Any, rows: Rows) -> tuple[Rows, Rows]:
    """Where each row starts and ends in the indices and data of a CSR matrix."""
    return matrix.indptr[rows].astype(np.int64), matrix.indptr[rows + 1].astype(np.int64)


def entries_of(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The positions ``starts[0]:ends[0], starts[1]:ends[1], …`` as one array."""
    lengths = ends - starts
    shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    entries: NDArray[np.int64] = np.arange(int(lengths.sum()), dtype=np.int64) + shift
    return entries


def stored_in(matrix: Any, entries: Any) -> NDArray[np.bool_]:
    """Whether a sparse matrix stores an entry at the place of each entry of another one.

    >>> stored_in(sparse.csr_array([[1, 0, 1]]), sparse.csr_array([[0.5, 0.2, 0]]))
    array([ True, False])
    """

    def places(stored: Any) -> NDArray[np.int64]:
        row, column = stored.tocoo().coords
        return np.asarray(row.astype(np.int64) * stored.shape[1] + column)

    return np.isin(places(entries), places(matrix))


def blocks(n: int, rows_per_block: int, order: Rows | None) -> Iterator[tuple[int, Rows]]:
    """The start of each block in the sequence, and its rows."""
    for start in range(0, n, rows_per_block):
        stop = min(start + rows_per_block, n)
        rows = np.arange(start, stop, dtype=np.int64) if order is None else order[start:stop]
        yield start, rows


# Numbers


def plain_array(argument: str, values: Any, hint: str = SETS_HINT) -> NDArray[Any]:
    """Convert to an array; rows of different lengths are refused, with a hint on label sets."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{argument} must have rows of one length, got {shown(values)}{hint}"
        ) from error


def is_missing(value: Any) -> bool:
    """Whether an object stands for a missing value: None, NaN, or the NA of pandas."""
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


def from_objects(array: NDArray[Any]) -> NDArray[Any]:
    """An array of objects as float64, with NaN for missing; unchanged unless all are numbers."""
    values = array.ravel().tolist()
    # Text is no number, even where it spells one.
    if not all(is_missing(value) or isinstance(value, NUMBERS) for value in values):
        return array
    numbers = [np.nan if is_missing(value) else float(value) for value in values]
    return np.array(numbers, dtype=np.float64).reshape(array.shape)


def read_numbers(owner: str, parameter: str, values: Any) -> NDArray[np.float64]:
    """Real numbers of any shape as float64; text is refused, even where it spells a number."""
    try:
        array = np.asarray(open_table(owner, parameter, values).values)
        if array.dtype.kind not in "fiubO" or values is None:
            raise TypeError(f"the type {array.dtype}")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:  # text, or rows of different lengths
        raise TypeError(f"{parameter} of {owner} must be numbers, got {shown(values)}") from error


def read_weights(owner: str, weights: Any, n: int, parameter: str = "weights") -> NDArray[Any]:
    """One finite weight of at least zero for each row; an empty array stands for no weights."""
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

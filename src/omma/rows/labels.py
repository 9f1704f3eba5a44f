"""True labels, in blocks that kernels read.

Labels may be indicators, dense or sparse, class ids, class names or label sets, and some of them
may be unknown. Classes are matched by name (text or number) if names are known, else by position.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.rows.arrays import (
    Rows,
    canonical,
    csr,
    from_objects,
    is_kernel_ready,
    is_missing,
    plain_array,
    row_bounds,
    sound_csr,
    unflagged,
    with_int32_ids,
)
from omma.rows.frames import InputTable, Names, indicators_of_sets, is_label_sets, open_table

Ids = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]
Flags = NDArray[np.bool_]
BYTES = (np.bool_, np.int8, np.uint8)  # indicators that kernels read in place
WHOLE = re.compile(r"-?[0-9]{1,18}(\.0)?")  # a name that is a number, of a size that int64 holds


@dataclass(frozen=True)
class TrueLabels:
    """Checked true labels; messages name their ``owner``.

    ``values`` is a CSR matrix of ones, or an array of bytes 0 and 1; unknown labels are 0 in it.
    ``known`` flags rows with at least one known label; None stands for all rows. ``missing`` is a
    CSR matrix of the unknown labels in partly labelled rows; None if there are no such rows.
    ``class_ids`` says that y has one class a row.
    """

    owner: str
    values: Any
    m: int
    known: Flags | None = None
    missing: Any = None
    class_ids: bool = False

    @property
    def is_sparse(self) -> bool:
        """Whether labels are stored as CSR."""
        return bool(sparse.issparse(self.values))

    def block(self, rows: Rows) -> Ids:
        """Starts, ends and ids of labels: the t-th row has ``ids[starts[t]:ends[t]]``."""
        if self.is_sparse:
            return *row_bounds(self.values, rows), unflagged(self.values.indices)
        # Row by row, so bisection tells where each row starts.
        row_of, ids = np.nonzero(self.values[rows])
        edges = np.searchsorted(row_of, np.arange(len(rows) + 1))
        return edges[:-1], edges[1:], ids.astype(np.int32)

    def indicators(self, rows: Rows) -> tuple[NDArray[np.uint8], Rows]:
        """Indicators that kernels read, and the position of each row in them."""
        if not self.is_sparse:
            return self.values, rows
        flags = self.values[rows].toarray().astype(np.uint8, copy=False)
        return flags, np.arange(len(rows), dtype=np.int64)

    @property
    def matrix(self) -> Any:
        """All labels as a CSR matrix of ones; rows whose labels are unknown are empty."""
        # In float64, as sums and products of bytes would overflow.
        return sparse.csr_array(self.values, dtype=np.float64)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of labels of each row."""
        by_row = np.diff(self.values.indptr) if self.is_sparse else self.values.sum(axis=1)
        return np.asarray(by_row, dtype=np.int64)

    @cached_property
    def complete(self) -> Flags | None:
        """Flags of rows whose labels are all known; None stands for all rows."""
        if self.missing is None:
            return self.known
        is_whole: Flags = np.diff(self.missing.indptr) == 0
        return is_whole if self.known is None else is_whole & self.known

    def unknown_of(self, rows: Rows) -> Ids | None:
        """The unknown labels of partly labelled rows; None if there are no such rows."""
        if self.missing is None:
            return None
        return *row_bounds(self.missing, rows), self.missing.indices

    @property
    def entries_known(self) -> Flags | None:
        """Whether labels are known: for each row, or for each entry if rows are partly labelled."""
        if self.missing is None:
            return self.known
        known: Flags = ~self.missing.toarray().astype(np.bool_)
        return known if self.known is None else known & self.known[:, np.newaxis]

    def take(self, rows: Any) -> TrueLabels:
        """A part of the rows: ids, flags or a slice."""
        known = None if self.known is None else self.known[rows]
        missing = None if self.missing is None else with_int32_ids(self.missing[rows])
        # All labels of these rows may be known.
        known, missing = _split_rows(known, missing, self.m)
        values = with_int32_ids(self.values[rows]) if self.is_sparse else self.values[rows]
        return replace(self, values=values, known=known, missing=missing)

    def refuse_unknown_rows(self, owner: str) -> None:
        """Refuse rows without known labels."""
        if self.known is None:
            return
        row = int(np.flatnonzero(~self.known)[0])
        sound = f"y of {owner} must hold only 0 and 1"
        if self.class_ids:
            sound = f"class ids in y of {owner} must be whole numbers from 0 to {self.m - 1}"
        flags = "known" if self.missing is None else "known.any(axis=1)"
        raise ValueError(
            f"{sound}, got nan in row {row}, whose labels are unknown: leave such rows out, as "
            f"batch.take(batch.{flags}) does for an omma.Batch"
        )

    def refuse_partly_known(self, owner: str, why: str = "") -> None:
        """Refuse partly labelled rows."""
        if self.missing is None:
            return
        row = int(np.flatnonzero(np.diff(self.missing.indptr))[0])
        raise ValueError(
            f"y of {owner} must have all labels of a row or none{why}, got a part of them in row "
            f"{row}"
        )


def refuse_labels(owner: str, parameter: str, row: int, values: NDArray[Any]) -> None:
    """Raise the error for a row with a value that is neither 0 nor 1."""
    wrong = values[(values != 0) & (values != 1)][0]
    raise ValueError(f"{parameter} of {owner} must hold only 0 and 1, got {wrong} in row {row}")


def read_labels(
    owner: str,
    y: Any,
    n: int,
    m: int,
    parameter: str = "y",
    *,
    known: Any = None,
    listed: bool = False,
) -> TrueLabels:
    """True labels of n rows: indicators (n, m), sparse or not, class ids (n,), or sets of ids.

    Labels that are NaN, or not ``known``, are unknown. ``listed`` converts indicators to CSR, which
    kernels read beside sparse rows.
    """
    # An array of numbers has no label sets.
    if (not isinstance(y, np.ndarray) or y.dtype.kind == "O") and is_label_sets(y):
        y = indicators_of_sets(owner, parameter, y, None, m)
    is_sparse, missing = sparse.issparse(y), None
    if is_sparse:
        values, missing = split_missing(sound_csr(owner, parameter, y))
    else:
        values = plain_array(f"{parameter} of {owner}", y)
        values = from_objects(values) if values.dtype.kind == "O" else values
        if values.dtype.kind not in "fiub":
            raise TypeError(
                f"{parameter} of {owner} must hold numbers, got the type {values.dtype}"
            )
        if values.ndim == 1 and m == 1:  # 0 and 1 of a single label are no class ids
            values = values[:, np.newaxis]
    if values.shape != (n, m) and (m == 1 or values.shape != (n,)):
        shapes = f"({n}, {m})" + (f", or ({n},) for class ids" if m > 1 else f" or ({n},)")
        raise ValueError(
            f"{parameter} of {owner} must have the shape {shapes} to fit eta, "
            f"got shape {tuple(values.shape)}"
        )
    flags = None if known is None else _read_known(owner, values, known)
    # A minimum needs no memory, and is NaN if a value is.
    has_nan = not is_sparse and values.dtype.kind == "f" and np.isnan(values.min(initial=0))
    if not is_sparse and (has_nan or flags is not None):
        is_known = ~np.isnan(values)
        if flags is not None:
            is_known &= flags if flags.shape == values.shape else flags[:, np.newaxis]
        values = np.where(is_known, values, 0)  # an unknown label is stored as no label
        flags = is_known if values.ndim == 1 else is_known.any(axis=1)
        # If all labels of a row are known or none, the flag of the row is enough.
        if values.ndim == 2 and (flags != is_known.all(axis=1)).any():
            missing = with_int32_ids(sparse.csr_array(~is_known, dtype=np.int8))
    flags, missing = _split_rows(flags, missing, m)
    are_classes = values.ndim == 1
    if are_classes:
        values = matrix_of_classes(owner, parameter, values, m, flags)
    elif is_sparse:
        values = _ones(owner, parameter, values, flags)
    else:
        values = _bytes(owner, parameter, values)
        values = with_int32_ids(sparse.csr_array(values)) if listed else values
    return TrueLabels(owner, values, m, flags, missing, are_classes)


def matrix_of_classes(
    owner: str, parameter: str, ids: NDArray[Any], m: int, known: Flags | None = None
) -> Any:
    """Class ids as a CSR matrix of ones, once checked; rows of an unknown class are empty."""
    wrong = np.flatnonzero((ids < 0) | (ids >= m) | (ids != np.floor(ids)))
    if len(wrong):
        raise ValueError(
            f"class ids in {parameter} of {owner} must be whole numbers from 0 to {m - 1}, got "
            f"{ids[wrong[0]]:g} in row {wrong[0]}"
        )
    shape = (len(ids), m)
    # An unknown class was read as 0, and must not be counted as such.
    known = np.ones(len(ids), dtype=np.bool_) if known is None else known
    parts = (np.ones(known.sum(), dtype=np.int8), ids[known], np.append(0, np.cumsum(known)))
    return with_int32_ids(csr(parts, shape))


def _bytes(owner: str, parameter: str, values: NDArray[Any]) -> NDArray[np.uint8]:
    """Indicators as bytes of 0 and 1, without a copy if possible."""
    if is_kernel_ready(values, BYTES):
        flags = unflagged(values).view(np.uint8)
        if flags.max(initial=0) <= 1:
            return flags
        # For NumPy every byte but zero is True; kernels would add it as a number.
    flags = np.ascontiguousarray(values != 0).view(np.uint8)
    wrong = np.flatnonzero((values != flags).any(axis=1))
    if len(wrong):
        refuse_labels(owner, parameter, int(wrong[0]), values[wrong[0]])
    return flags


def _read_known(owner: str, values: Any, known: Any) -> Flags:
    """The argument ``known`` as an array of flags."""
    flags: Flags = np.asarray(open_table(owner, "known", known).values)
    shapes = [values.shape[:1]] if sparse.issparse(values) else [values.shape[:1], values.shape]
    if flags.dtype != np.bool_ or flags.shape not in shapes:
        expected = " or ".join(str(tuple(shape)) for shape in dict.fromkeys(shapes))
        raise ValueError(
            f"known of {owner} must be True or False for each row (or label, where y is dense), "
            f"of shape {expected}, got the shape {flags.shape} of type {flags.dtype}"
        )
    return flags


def _split_rows(known: Flags | None, missing: Any, m: int) -> tuple[Flags | None, Any]:
    """Flags of rows with known labels, and the unknown labels of only these rows."""
    if missing is not None:
        lengths = np.diff(missing.indptr)
        known = lengths < m if known is None else known & (lengths < m)
        if not known.all():  # for a row without any known label, its flag is enough
            flags = np.repeat(known, lengths).astype(np.int8)
            missing = csr((flags, missing.indices, missing.indptr), missing.shape)
            missing.eliminate_zeros()
    all_known = known is None or known.all()
    return None if all_known else known, missing if missing is not None and missing.nnz else None


def _ones(owner: str, parameter: str, matrix: Any, known: Flags | None) -> Any:
    """A sound CSR matrix that stores only ones, with sorted int32 label ids, in known rows."""
    matrix = canonical(matrix)
    wrong = np.flatnonzero((matrix.data != 0) & (matrix.data != 1))
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        refuse_labels(owner, parameter, row, matrix.data[wrong[:1]])
    is_label = matrix.data != 0  # a stored zero is no label
    if known is not None:
        is_label &= np.repeat(known, np.diff(matrix.indptr))
    if not is_label.all():
        matrix = matrix.copy()
        matrix.data = is_label.astype(np.int8)
        matrix.eliminate_zeros()
    return with_int32_ids(matrix)


def split_missing(y: Any) -> tuple[Any, Any]:
    """Labels in CSR without the stored NaN, and a CSR matrix of ones in place of these."""
    if y.dtype.kind != "f" or not np.isnan(y.data).any():
        return y, None
    labels = canonical(y).copy()
    is_nan = np.isnan(labels.data)
    missing = labels.copy()
    missing.data = is_nan.astype(np.int8)
    missing.eliminate_zeros()
    labels.data[is_nan] = 0.0
    return labels, with_int32_ids(missing)


# Classes by name


def read_classes(
    owner: str, y: InputTable, is_reordered: bool, *, are_ids: bool = True
) -> tuple[Any, NDArray[Any] | None]:
    """Labels with class ids in place of class names, and the names of classes in the type of y.

    These names are text, or numbers if all names are numbers, or None if y has class ids.
    ``is_reordered`` says that columns of probabilities were in another order than the labels;
    ``are_ids`` is False if a vector is a row of indicators. The id of a missing class is NaN.

    >>> read_classes("replay", InputTable(["b", "a"], ("a", "b")), False)
    (array([1, 0]), array(['a', 'b'], dtype='<U1'))
    >>> read_classes("replay", InputTable([7, 5], ("5", "7")), False)
    (array([1, 0]), array([5, 7]))
    >>> read_classes("replay", InputTable([0, 1], ("a", "b")), False)
    ([0, 1], None)
    """
    names: Names = y.names or ()
    array = np.empty((0, 0)) if sparse.issparse(y.values) else np.asanyarray(y.values)
    are_ids = are_ids and array.ndim < 2 and y.values is not None
    # A single name is that of a binary label, whose numbers are 0 and 1.
    is_numeric = array.dtype.kind in "fiub"
    numbers = _whole(names) if are_ids and is_numeric and len(names) > 1 else None
    if not names or not are_ids or (is_numeric and numbers is None):
        if is_reordered and not y.is_named and is_numeric:
            raise ValueError(
                f"y of {owner} must be a frame with names where eta has its columns in another "
                f"order than the labels, {shown(list(names))}: name y, or reorder eta"
            )
        return y.values, None if are_ids or not names else np.array(names)
    # Numbers are looked up as they are (5.0 equals 5), and anything else as text.
    classes: NDArray[Any] = np.array(names) if numbers is None else numbers
    known = names if numbers is None else numbers.tolist()
    place_of = {name: float(place) for place, name in enumerate(known)}
    values = array.ravel().tolist()
    keys = values if numbers is not None else [str(value) for value in values]
    for key, value in zip(keys, values, strict=True):
        if key not in place_of and not is_missing(value):
            expected = (
                f"class names in y of {owner} must be among"
                if numbers is None
                else f"class ids in y of {owner} must be names of labels where these are numbers,"
            )
            raise ValueError(f"{expected} {shown(list(names))}, got {shown(value)}")
    places = np.array([place_of.get(key, np.nan) for key in keys]).reshape(array.shape)
    return (places if np.isnan(places).any() else places.astype(np.int64)), classes


def _whole(names: Names) -> NDArray[np.int64] | None:
    """Names as whole numbers; None unless all of them are such. False and True are 0 and 1."""
    flags = {"False": "0", "True": "1"}  # as scikit-learn names the classes of a bool
    texts = [flags.get(name, name) for name in names]
    if not all(WHOLE.fullmatch(text) for text in texts):
        return None
    numbers = np.array([int(text.removesuffix(".0")) for text in texts], dtype=np.int64)
    return numbers if len(np.unique(numbers)) == len(names) else None

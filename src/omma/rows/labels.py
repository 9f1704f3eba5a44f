"""True labels as users give them, laid out for the kernels block by block.

They come as indicators, dense or sparse, or as class ids; some of them may be unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.rows.arrays import (
    Rows,
    as_it_is,
    csr,
    entries_of,
    from_objects,
    some_of,
    sound_csr,
    unflagged,
)
from omma.rows.frames import values_of
from omma.rows.sets import indicators_of_sets, is_label_sets, plain_array

Ids = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def indicated(starts: Rows, ends: Rows, ids: Any, m: int) -> tuple[NDArray[np.uint8], Rows]:
    """Lists of label ids as an array of indicators, and the places of its rows."""
    places = np.arange(len(starts), dtype=np.int64)
    made = np.zeros((len(starts), m), dtype=np.uint8)
    made[np.repeat(places, ends - starts), ids[entries_of(starts, ends)]] = 1
    return made, places


@dataclass(frozen=True)
class Labels:
    """True labels, read a block at a time; ``owner`` and ``parameter`` appear in messages.

    ``known`` says of each row whether labels of it are known; None where some are of all.
    ``missing`` is a CSR matrix of what is unknown in rows that are labelled in part, and None where
    there are no such rows. What is unknown reads as no label. ``checked`` says that all of them
    have been looked at.
    """

    owner: str
    parameter: str
    given: Any
    m: int
    known: NDArray[np.bool_] | None = None
    checked: bool = False
    missing: Any = None

    def known_of(self, rows: Rows) -> NDArray[np.uint8]:
        """Which of some rows have all labels, for the kernels; nothing where all rows have."""
        if self.known is None and self.missing is None:
            return np.empty(0, dtype=np.uint8)
        known = np.ones(len(rows), dtype=np.bool_) if self.known is None else self.known[rows]
        if self.missing is not None:
            indptr = self.missing.indptr
            known = known & (indptr[rows] == indptr[rows + 1])
        return known.astype(np.uint8)

    def unknown_of(self, rows: Rows) -> Ids | None:
        """Labels that are unknown in rows labelled in part; None where there are no such rows."""
        if self.missing is None:
            return None
        indptr = self.missing.indptr
        starts, ends = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        return starts, ends, self.missing.indices.astype(np.int32, copy=False)

    @property
    def entries_known(self) -> NDArray[np.bool_] | None:
        """Whether labels are known: of each row, or of each entry where that is not enough."""
        if self.missing is None:
            return self.known
        known: NDArray[np.bool_] = ~self.missing.toarray().astype(np.bool_)
        return known if self.known is None else known & self.known[:, np.newaxis]

    def block(self, rows: Rows) -> Ids:
        """Label ids of the wanted rows: those of row t are ``ids[starts[t]:ends[t]]``."""
        if sparse.issparse(self.given):
            return self._sparse_block(rows)
        if self.given.ndim == 1:
            return self._class_block(rows)
        return self._dense_block(rows)

    @property
    def class_ids(self) -> bool:
        """Whether labels came as one class id a row."""
        return not sparse.issparse(self.given) and self.given.ndim == 1

    def _class_block(self, rows: Rows) -> Ids:
        ids = self.given[rows]
        some = None if self.known is None else self.known[rows]
        if some is not None:
            ids = np.where(some, ids, 0)
        if not self.checked:
            self._check_ids(ids, rows)
        places = np.arange(len(rows) + 1, dtype=np.int64)
        ends = places[1:] if some is None else places[:-1] + some
        return places[:-1], ends, ids.astype(np.int32, copy=False)

    def _check_ids(self, ids: NDArray[Any], rows: Rows) -> None:
        wrong = np.flatnonzero((ids < 0) | (ids >= self.m) | (ids != np.floor(ids)))
        if len(wrong):
            raise ValueError(
                f"class ids in {self.parameter} of {self.owner} must be whole numbers from 0 to "
                f"{self.m - 1}, got {ids[wrong[0]]} in row {rows[wrong[0]]}"
            )

    @property
    def indicated(self) -> bool:
        """Whether labels came as an array of indicators."""
        return not sparse.issparse(self.given) and self.given.ndim == 2

    def indicators(self, rows: Rows) -> tuple[NDArray[np.uint8], Rows]:
        """Indicators that kernels read, and where the wanted rows are in them."""
        array = self.given
        if not self.indicated:
            return indicated(*self.block(rows), self.m)
        if self.known is None and as_it_is(array, (np.bool_, np.int8, np.uint8)):
            read, wanted = unflagged(array).view(np.uint8), rows
            if self.checked:
                return read, wanted
        else:
            taken = self._known_part(np.ascontiguousarray(array[rows]), rows)
            self._check(taken, rows)
            read, wanted = taken.astype(np.uint8), np.arange(len(rows), dtype=np.int64)
        some = read if wanted is not rows or len(rows) == len(read) else some_of(read, rows)
        if some.size and some.max() > 1:
            self._check(self.given[rows], rows)
            # NumPy takes any byte but zero for True; kernels would count it as a number.
            read, wanted = (read[wanted] != 0).view(np.uint8), np.arange(len(rows), dtype=np.int64)
        return read, wanted

    def _known_part(self, taken: NDArray[Any], rows: Rows) -> NDArray[Any]:
        if self.known is None:
            return taken
        return np.where(self.known[rows][:, np.newaxis], taken, 0)

    def _check(self, taken: NDArray[Any], rows: Rows) -> None:
        wrong = np.flatnonzero(~((taken == 0) | (taken == 1)).all(axis=1))
        if len(wrong):
            at = int(wrong[0])
            refuse_labels(self.owner, self.parameter, int(rows[at]), taken[at])

    def _dense_block(self, rows: Rows) -> Ids:
        read, wanted = self.indicators(rows)
        taken = read if len(wanted) == len(read) and wanted is not rows else read[wanted]
        where, ids = np.nonzero(taken)
        edges = np.searchsorted(where, np.arange(len(rows) + 1))
        return edges[:-1], edges[1:], ids.astype(np.int32)

    def _sparse_block(self, rows: Rows) -> Ids:
        indptr = self.given.indptr
        starts, ends = indptr[rows].astype(np.int64), indptr[rows + 1].astype(np.int64)
        if self.known is not None:
            ends = np.where(self.known[rows], ends, starts)
        return starts, ends, unflagged(self.given.indices)

    def take(self, rows: Any) -> Labels:
        """Those of some of the rows: ids, flags or a slice."""
        known = None if self.known is None else self.known[rows]
        known = None if known is None or known.all() else known
        missing = None if self.missing is None else self.missing[rows]
        missing = None if missing is None or not missing.nnz else missing
        given = self.given[rows]
        if sparse.issparse(given):  # SciPy widens ids to the type of places, where that is wider
            given = _narrow(given)
        return replace(self, given=given, known=known, missing=missing)

    def ready(self, listed: bool) -> Labels:
        """The same, looked at and converted once: lists of ids, or indicators for dense rows."""
        if self.checked or self.known is not None or self.missing is not None:
            return self
        given = self.given
        if sparse.issparse(given):  # looked at when it was read
            return replace(self, checked=True)
        every = np.arange(given.shape[0], dtype=np.int64)
        if given.ndim == 1:
            self._check_ids(given, every)
            return replace(self, given=given.astype(np.int32, copy=False), checked=True)
        if listed:
            made = read_sparse_labels(self.owner, sparse.csr_array(given), self.parameter)
            return replace(self, given=made, checked=True)
        return replace(self, given=self.indicators(every)[0], checked=True)

    def refuse_unknown(self, owner: str) -> None:
        """Say where labels are not known, to whom has no use for such rows."""
        self.refuse_halves(owner)
        self.refuse_without(owner)

    def refuse_without(self, owner: str) -> None:
        """The same of rows of which nothing is known."""
        if self.known is None:
            return
        row = int(np.flatnonzero(~self.known)[0])
        wanted = (
            f"be whole numbers from 0 to {self.m - 1}" if self.class_ids else "hold only 0 and 1"
        )
        flags = "known" if self.missing is None else "known.any(axis=1)"
        raise ValueError(
            f"{'class ids in ' * self.class_ids}{self.parameter} of {owner} must {wanted}, got nan "
            f"in row {row}, whose labels are unknown: leave such rows out, as "
            f"batch.take(batch.{flags}) does for an omma.Batch"
        )

    def refuse_halves(self, owner: str, why: str = "") -> None:
        """Say where a row is labelled in part, to who takes rows with labels and rows without."""
        if self.missing is None:
            return
        row = int(np.flatnonzero(np.diff(self.missing.indptr))[0])
        raise ValueError(
            f"{self.parameter} of {owner} must have all labels of a row or none{why}, got a part "
            f"of them in row {row}"
        )


def refuse_labels(owner: str, parameter: str, row: int, values: NDArray[Any]) -> None:
    """Say which value is neither zero nor one."""
    wrong = values[(values != 0) & (values != 1)][0]
    raise ValueError(f"{parameter} of {owner} must hold only 0 and 1, got {wrong} in row {row}")


def read_sparse_labels(owner: str, given: Any, parameter: str) -> Any:
    """A sound CSR matrix as one that stores nothing but ones, with sorted int32 label ids."""
    if not given.has_canonical_format:
        given = given.copy()
        given.sum_duplicates()
    wrong = np.flatnonzero((given.data != 0) & (given.data != 1))
    if len(wrong):
        row = int(np.searchsorted(given.indptr, wrong[0], side="right")) - 1
        refuse_labels(owner, parameter, row, given.data[wrong[:1]])
    if not given.data.all():
        given = given.copy()
        given.eliminate_zeros()
    return _narrow(given)


def _narrow(given: Any) -> Any:
    """A CSR matrix whose label ids kernels read."""
    if as_it_is(given.indices, (np.int32,)):
        return given
    return csr((given.data, given.indices.astype(np.int32), given.indptr), given.shape)


def read_labels(
    owner: str, y: Any, n: int, m: int, parameter: str = "y", known: Any = None
) -> Labels:
    """True labels of n rows: indicators (n, m), sparse or not, or class ids (n,).

    Labels that are NaN, or not ``known``, are unknown.
    """
    y = values_of(owner, parameter, y)
    if is_label_sets(y):
        y = indicators_of_sets(owner, parameter, y, None, m)
    if sparse.issparse(y):
        y, missing = split_missing(sound_csr(owner, parameter, y))
        given = read_sparse_labels(owner, y, parameter)
    else:
        given = from_objects(plain_array(f"{parameter} of {owner}", y))
        if given.dtype.kind not in "fiub":
            raise TypeError(f"{parameter} of {owner} must hold numbers, got the type {given.dtype}")
        if given.ndim == 1 and m == 1:
            given = given[:, np.newaxis]
    shapes = {(n, 1)} if m == 1 else {(n, m), (n,)}
    if given.shape not in shapes:
        wanted = f"({n}, {m})" + (f", or ({n},) for class ids" if m > 1 else f" or ({n},)")
        raise ValueError(
            f"{parameter} of {owner} must have the shape {wanted} to fit eta, "
            f"got shape {tuple(given.shape)}"
        )
    flags = None if known is None else _flags(owner, given, known)
    if sparse.issparse(given):
        flags, missing = _rows_known(flags, missing, m)
        return Labels(owner, parameter, given, m, flags, missing=missing)
    flags = _known(given, flags)
    if flags is None or flags.ndim == 1:
        return Labels(owner, parameter, given, m, flags)
    unknown = _narrow(sparse.csr_array(~flags, dtype=np.int8))
    some, missing = _rows_known(np.asarray(flags.any(axis=1)), unknown, m)
    cleaned = np.where(flags, given, 0)  # what is unknown reads as no label
    return Labels(owner, parameter, cleaned, m, some, missing=missing)


def _known(given: Any, flags: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Which labels are known: a flag for each row, or where that is not enough for each entry."""
    floats = given.dtype.kind == "f" and given.size
    if floats and np.isnan(np.min(given)):  # a minimum takes no memory of its own
        there = ~np.isnan(given)
        if flags is not None:
            there &= flags if flags.shape == there.shape else flags[:, np.newaxis]
        flags = there
    if flags is None or flags.all():
        return None
    if flags.ndim == 2 and (flags.any(axis=1) == flags.all(axis=1)).all():
        return np.asarray(flags.any(axis=1))
    return flags


def split_missing(y: Any) -> tuple[Any, Any]:
    """Labels in CSR without those that are stored as NaN, and these as a CSR matrix."""
    if y.dtype.kind != "f" or not np.isnan(y.data).any():
        return y, None
    given = y.copy()
    given.sum_duplicates()
    unknown = np.isnan(given.data)
    found = csr((unknown.astype(np.int8), given.indices.copy(), given.indptr.copy()), given.shape)
    found.eliminate_zeros()
    given.data[unknown] = 0.0
    return given, _narrow(found)


def _rows_known(
    known: NDArray[np.bool_] | None, missing: Any, m: int
) -> tuple[NDArray[np.bool_] | None, Any]:
    """Rows of which something is known, and what is unknown of these alone."""
    if missing is None:
        return (None if known is None or known.all() else known), None
    some = np.diff(missing.indptr) < m
    known = some if known is None else known & some
    if not known.all():
        wanted = np.repeat(known, np.diff(missing.indptr)).astype(np.int8)
        missing = csr((wanted, missing.indices, missing.indptr), missing.shape)
        missing.eliminate_zeros()
    return (None if known.all() else known), (missing if missing.nnz else None)


def _flags(owner: str, given: Any, known: Any) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = np.asarray(values_of(owner, "known", known))
    shapes = [given.shape[:1]] if sparse.issparse(given) else [given.shape[:1], given.shape]
    if flags.dtype != np.bool_ or flags.shape not in shapes:
        wanted = " or ".join(str(tuple(shape)) for shape in dict.fromkeys(shapes))
        raise ValueError(
            f"known of {owner} must be True or False for each row (or label, where y is dense), "
            f"of shape {wanted}, got the shape {flags.shape} of type {flags.dtype}"
        )
    return flags

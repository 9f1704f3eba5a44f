"""A batch: probabilities with their labels and weights, read and checked once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import shown
from omma.kernels.replay import BlockGaps, Extras
from omma.rows.arrays import (
    NO_FLAGS,
    NO_IDS,
    NO_NUMBERS,
    NO_ROWS,
    DenseProbabilities,
    Probabilities,
    Rows,
    SparseProbabilities,
    read_probabilities,
    read_weights,
)
from omma.rows.frames import (
    ARRAY,
    OURS,
    Names,
    OutputType,
    check_same_rows,
    open_table,
    read_names,
)
from omma.rows.labels import TrueLabels, read_classes, read_labels

NO_INDICATORS = np.empty((1, 0), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Batch:
    """Probabilities, labels and weights of rows, read and checked once.

    ``omma.replay``, ``omma.comparison.compare``, the ``fit`` of policies and the functions of
    ``omma.calibration`` take a batch in place of eta, y and weights, and then do not read, convert
    and check these again. Make it by ``Batch.of``, and do not change the arrays that you passed.

    Attributes
    ----------
    eta : DenseProbabilities or SparseProbabilities
        Probabilities as kernels read them; ``values`` has them as an array or CSR matrix.
    labels : TrueLabels or None
        True labels, if there are any.
    weights : ndarray
        Weights of the rows; empty if there are none.
    names : tuple of str or None
        Names of the labels.
    restore_type : function
        Converts predictions to the type of the probabilities.
    classes : ndarray or None
        The names of classes in the type that y has; None if y has class ids.
    n, m : int
        The number of rows and of labels.
    is_sparse : bool
        Whether probabilities are sparse.
    class_ids : bool
        Whether labels are one class id a row.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=1000, m=10, seed=0)
    >>> batch = omma.Batch.of(eta, y)
    >>> batch
    <batch of 1000 rows, 10 labels>
    >>> omma.replay(omma.OMMA("macro_f1"), batch).value == omma.replay(
    ...     omma.OMMA("macro_f1"), eta, y
    ... ).value
    True
    """

    eta: Probabilities
    labels: TrueLabels | None = None
    weights: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    names: Names | None = None
    restore_type: OutputType = ARRAY
    classes: NDArray[Any] | None = None
    n: int = field(init=False)
    m: int = field(init=False)
    is_sparse: bool = field(init=False)
    class_ids: bool = field(init=False)

    def __post_init__(self) -> None:
        # A frozen dataclass has no other way to set what follows from its fields.
        self.__dict__.update(
            n=self.eta.n,
            m=self.eta.m,
            is_sparse=self.eta.is_sparse,
            class_ids=self.labels is not None and self.labels.class_ids,
        )

    @classmethod
    def of(
        cls, eta: Any, y: Any = None, weights: Any = None, names: Any = None, *, known: Any = None
    ) -> Batch:
        """Read probabilities, and labels if there are any.

        Parameters
        ----------
        eta, y, weights
            As of ``omma.replay``. Labels that are NaN are unknown, in whole rows or in single
            entries.
        names : sequence of str, optional
            Names of the labels; columns of frames are put in this order.
        known : array-like of bool, of shape (n,) or (n, m), optional
            Which labels are known, as an alternative to NaN.

        Examples
        --------
        >>> import omma
        >>> batch = omma.Batch.of([[0.2, 0.9], [0.4, 0.1]], [[0, 1], [float("nan")] * 2])
        >>> batch.known.tolist(), batch.take(batch.known).n
        ([True, False], 1)
        """
        batch = cls.read("Batch", eta, y, weights, names, known=known)
        read_names("Batch", names, batch.m)
        return batch

    @classmethod
    def read(
        cls,
        owner: str,
        eta: Any,
        y: Any = None,
        weights: Any = None,
        names: Any = None,
        *,
        known: Any = None,
    ) -> Batch:
        """``of`` for callers, which messages name as ``owner``; a batch is returned unchanged."""
        if isinstance(eta, Batch):
            return _passed_on(owner, eta, names, {"y": y, "weights": weights, "known": known})
        names = None if names is None else tuple(str(name) for name in names)
        table = open_table(owner, "eta", eta, names)
        # Names of labels come from the caller, else from eta, else from y.
        true = open_table(owner, "y", y, table.names)
        if not (isinstance(eta, OURS) and isinstance(y, OURS)):  # arrays have no index
            check_same_rows(owner, {"eta": eta, "y": y, "weights": weights})
        y, classes = true.values, None
        if true.names is not None:
            y, classes = read_classes(owner, true, table.is_reordered)
        rows = read_probabilities(owner, table.values)
        labels = None
        if y is not None:
            labels = read_labels(owner, y, rows.n, rows.m, known=known, listed=rows.is_sparse)
        weights = read_weights(owner, weights, rows.n)
        return cls(rows, labels, weights, true.names, table.restore_type, classes)

    @property
    def values(self) -> Any:
        """Probabilities as an array or a CSR matrix, in the shape that the user passed."""
        if isinstance(self.eta, SparseProbabilities):
            return self.eta.matrix
        return self.eta.array[:, 0] if self.eta.vector else self.eta.array

    @property
    def row_weights(self) -> NDArray[Any]:
        """The weight of each row, which is 1 by default."""
        return self.weights if len(self.weights) else np.ones(self.n)

    @property
    def known(self) -> NDArray[np.bool_] | None:
        """Whether the labels of each row (or entry) are known; None if all of them are."""
        return None if self.labels is None else self.labels.entries_known

    @cached_property
    def odd_row(self) -> tuple[int, int] | None:
        """The first row without exactly one label, and its number of labels."""
        if self.labels is None:
            return None
        counts, complete = self.labels.counts, self.labels.complete
        # A row with unknown labels may have one label.
        wrong = np.flatnonzero((counts != 1) & (True if complete is None else complete))
        return (int(wrong[0]), int(counts[wrong[0]])) if len(wrong) else None

    @property
    def one_label_each(self) -> bool:
        """Whether each row has exactly one label."""
        return self.labels is not None and self.odd_row is None

    @cached_property
    def longest(self) -> int:
        """An upper bound of the stored plus true labels of a sparse row; 0 for dense rows."""
        if not isinstance(self.eta, SparseProbabilities):
            return 0
        # Kernels make room for it once; a bound is much faster to compute than the longest row.
        most_stored = np.diff(self.eta.matrix.indptr).max(initial=0)
        most_labels = 0 if self.labels is None else self.labels.counts.max(initial=0)
        return int(most_stored + most_labels)

    def block(self, rows: Rows, *, is_sparse: bool) -> tuple[NDArray[Any], ...]:
        """Probabilities and labels of some rows, as arguments of kernels.

        Sparse rows are lists of label ids. Dense rows, to which sparse probabilities can be
        converted, are an array and the position of each row in it.
        """
        if is_sparse:
            return *self.eta.block(rows), *self.label_ids(rows)
        labels = (NO_INDICATORS, NO_ROWS) if self.labels is None else self.labels.indicators(rows)
        return *self.eta.dense_block(rows), *labels

    def extras(
        self,
        rows: Rows,
        picks: NDArray[Any] = NO_IDS,
        audits: NDArray[np.float64] = NO_NUMBERS,
    ) -> Extras:
        """The arguments of kernels about some rows, other than probabilities and labels."""
        labels = self.labels
        weights = self.weights[rows] if len(self.weights) else self.weights
        # All labels are known, and without gaps kernels are compiled without code for them.
        known, gaps = NO_FLAGS, None
        unknown = None
        if labels is not None:
            unknown = labels.unknown_of(rows)
            if labels.complete is not None:
                known = labels.complete[rows].view(np.uint8)
        if unknown is not None or len(audits):
            lists = (NO_ROWS, NO_ROWS, NO_IDS) if unknown is None else unknown
            gaps = BlockGaps(*lists, audits)
        return Extras(known, labels is not None, gaps, weights, picks)

    def label_ids(self, rows: Rows) -> tuple[NDArray[np.int32], Rows, Rows]:
        """Ids of true labels, and where those of each row start and end; empty without labels."""
        if self.labels is None:
            return NO_IDS, NO_ROWS, NO_ROWS
        starts, ends, ids = self.labels.block(rows)
        return ids, starts, ends

    def check(self, owner: str) -> Batch:
        """Refuse values that are no probabilities, for code that reads rows without a kernel."""
        if self.eta.wrong_row is not None:
            raise ValueError(f"eta of {owner} must hold {self.eta.explain(self.eta.wrong_row)}")
        return self

    def labelled(self, owner: str, y: Any) -> Batch:
        """The same batch with other labels."""
        return replace(self, labels=read_labels(owner, y, self.n, self.m, listed=self.is_sparse))

    def take(self, rows: Any) -> Batch:
        """Select rows by ids, flags or a slice, without new checks.

        Examples
        --------
        >>> import omma
        >>> batch = omma.Batch.of([[0.2, 0.9], [0.4, 0.1], [0.3, 0.7]], [1, 0, 1])
        >>> batch.take([2, 0]).values.tolist()
        [[0.3, 0.7], [0.2, 0.9]]
        """
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            rows = rows if rows.size else rows.astype(np.int64)  # an empty list has no type
        return replace(
            self,
            eta=self.eta.take(rows),
            labels=None if self.labels is None else self.labels.take(rows),
            weights=self.weights[rows] if len(self.weights) else self.weights,
            restore_type=self.restore_type.take(rows),
        )

    def ready(self) -> Batch:
        """The same batch in the type that kernels read, for code that reads it several times."""
        if isinstance(self.eta, SparseProbabilities) or self.eta.is_ready:
            return self
        array = np.ascontiguousarray(self.eta.array, dtype=np.float64)
        return replace(self, eta=DenseProbabilities(array, self.eta.vector))

    def __repr__(self) -> str:
        without = "" if self.labels is not None else ", no y"
        return f"<batch of {self.n} rows, {self.m} labels{without}>"


def read_labelled(
    owner: str,
    eta: Any,
    y: Any,
    weights: Any = None,
    names: Any = None,
    *,
    optional: bool = False,
) -> Batch:
    """Read rows that must have weight, and a known label in one that does.

    ``optional`` means that labels are not needed.
    """
    if y is None and not optional and not isinstance(eta, Batch):
        raise ValueError(f"y of {owner} must be given, got None")
    batch = Batch.read(owner, eta, y, weights, names)
    if not batch.n or not batch.m:
        raise ValueError(
            f"eta of {owner} must have at least one row and label, got {batch.n} rows and "
            f"{batch.m} labels"
        )
    # Means over rows would be 0/0.
    if not batch.row_weights.any():
        raise ValueError(f"weights of {owner} must not all be 0")
    if optional:
        return batch
    if batch.labels is None:
        raise ValueError(f"eta of {owner} must be a batch with labels, got {batch!r}")
    known = batch.labels.known
    if known is not None and not known.any():
        raise ValueError(f"y of {owner} must have labels that are known, got nan alone")
    if known is not None and not batch.row_weights[known].any():
        raise ValueError(f"y of {owner} must have known labels in rows of weight above 0, got none")
    return batch


def _passed_on(owner: str, batch: Batch, names: Any, arguments: dict[str, Any]) -> Batch:
    """Return a batch unchanged; refuse arguments beside it."""
    for parameter, value in arguments.items():
        if value is not None:
            raise TypeError(
                f"{parameter} of {owner} must not be given beside a Batch, which has its own, got "
                f"{shown(value)}"
            )
    if names is not None and batch.names not in (None, tuple(names)):
        raise ValueError(
            f"eta of {owner} must have labels in the order {shown(list(names))}, got a batch with "
            f"{shown(list(batch.names or ()))}"
        )
    return batch

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
    longest_row,
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
    ``omma.calibration`` take a batch in place of eta, y and weights, and then read, convert and
    check nothing again. Make it by ``Batch.of``, and do not change the arrays that it was made of.

    Attributes
    ----------
    eta : DenseProbabilities or SparseProbabilities
        Probabilities as kernels read them; ``values`` has them as an array or CSR matrix.
    labels : TrueLabels or None
        True labels, where they were given.
    weights : ndarray
        Of the rows; empty where none were given.
    names : tuple of str or None
        Of the labels.
    restore_type : function
        Converts predictions to the type that probabilities came in.
    classes : ndarray or None
        The names of classes in the type that y has; None where y has class ids.
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
        """Read probabilities, and labels where there are any.

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
        """``of`` for a caller that messages name as ``owner``; a batch is returned as it is."""
        if isinstance(eta, Batch):
            return _passed_on(owner, eta, names, {"y": y, "weights": weights, "known": known})
        restore_type, classes = ARRAY, None
        # Arrays and sparse matrices have neither names nor an index.
        if names is not None or not (isinstance(eta, OURS) and isinstance(y, OURS)):
            names = None if names is None else tuple(str(name) for name in names)
            table = open_table(owner, "eta", eta, names)
            # Names of labels come from the caller, from eta or from y, whichever has them first.
            true = open_table(owner, "y", y, table.names)
            check_same_rows(owner, {"eta": eta, "y": y, "weights": weights})
            eta, y, names, restore_type = table.values, true.values, true.names, table.restore_type
            if names is not None:
                y, classes = read_classes(owner, true, table.is_reordered)
        rows = read_probabilities(owner, eta)
        labels = None
        if y is not None:
            labels = read_labels(owner, y, rows.n, rows.m, known=known, listed=rows.is_sparse)
        weights = read_weights(owner, weights, rows.n)
        return cls(rows, labels, weights, names, restore_type, classes)

    @property
    def values(self) -> Any:
        """Probabilities as an array or a CSR matrix, of the shape that they came in."""
        if isinstance(self.eta, SparseProbabilities):
            return self.eta.matrix
        return self.eta.array[:, 0] if self.eta.vector else self.eta.array

    @property
    def row_weights(self) -> NDArray[Any]:
        """The weight of each row: one where none were given."""
        return self.weights if len(self.weights) else np.ones(self.n)

    @property
    def known(self) -> NDArray[np.bool_] | None:
        """Whether the labels of each row (or entry) are known; None where all of them are."""
        return None if self.labels is None else self.labels.entries_known

    @cached_property
    def odd_row(self) -> tuple[int, int] | None:
        """The first row without exactly one label, and its number of labels."""
        if self.labels is None or self.labels.class_ids:
            return None
        counts, known = self.labels.counts, self.labels.known_of(np.arange(self.n))
        # A row whose labels are unknown may have one.
        wrong = (counts != 1) & (known != 0 if len(known) else True)
        row = int(wrong.argmax()) if wrong.any() else None
        return None if row is None else (row, int(counts[row]))

    @property
    def one_label_each(self) -> bool:
        """Whether each row has exactly one label."""
        return self.labels is not None and self.odd_row is None

    @cached_property
    def longest(self) -> int:
        """The most labels that a sparse row stores or has, together."""
        if not isinstance(self.eta, SparseProbabilities):
            return 0
        stored, labels = longest_row(self.eta.matrix), self.labels
        if labels is None:
            return stored
        if labels.is_sparse:
            return stored + longest_row(labels.values)
        return stored + int(labels.counts.max(initial=0))

    def block(self, rows: Rows, *, is_sparse: bool) -> tuple[NDArray[Any], ...]:
        """Probabilities and labels of some rows, in the order in which kernels take them.

        Sparse rows are lists of label ids; dense ones, to which sparse probabilities can be
        converted, are arrays with the position of each row in them.
        """
        if is_sparse:
            return *self.eta.block(rows), *self.label_ids(rows)
        if isinstance(self.eta, SparseProbabilities):
            eta = self.eta.dense_block(rows)
        else:
            eta = self.eta.block(rows)
        if self.labels is None:
            return *eta, NO_INDICATORS, NO_ROWS
        return *eta, *self.labels.indicators(rows)

    def extras(
        self,
        rows: Rows,
        picks: NDArray[Any] = NO_IDS,
        audits: NDArray[np.float64] | None = None,
    ) -> Extras:
        """What comes with some rows beside probabilities and labels, as kernels take it."""
        labels = self.labels
        weights = self.weights[rows] if len(self.weights) else self.weights
        known, gaps = NO_FLAGS, None  # without gaps, loops are compiled without what these need
        unknown = None
        if labels is not None:
            known, unknown = labels.known_of(rows), labels.unknown_of(rows)
        if unknown is not None or audits is not None:
            lists = (NO_ROWS, NO_ROWS, NO_IDS) if unknown is None else unknown
            gaps = BlockGaps(*lists, NO_NUMBERS if audits is None else audits)
        return Extras(known, labels is not None, gaps, weights, picks)

    def label_ids(self, rows: Rows) -> tuple[NDArray[np.int32], Rows, Rows]:
        """Ids of true labels, and where those of each row begin and end; empty without labels."""
        if self.labels is None:
            return NO_IDS, NO_ROWS, NO_ROWS
        starts, ends, ids = self.labels.block(rows)
        return ids, starts, ends

    def check(self, owner: str) -> Batch:
        """Refuse anything that is no probability, for code that reads rows without a kernel."""
        if self.eta.wrong_row is not None:
            raise ValueError(f"eta of {owner} must hold {self.eta.explain(self.eta.wrong_row)}")
        return self

    def labelled(self, owner: str, y: Any) -> Batch:
        """The same probabilities with labels that were read after them."""
        return replace(self, labels=read_labels(owner, y, self.n, self.m, listed=self.is_sparse))

    def take(self, rows: Any) -> Batch:
        """A part of the rows, by ids, flags or a slice; nothing is checked again.

        Examples
        --------
        >>> import omma
        >>> batch = omma.Batch.of([[0.2, 0.9], [0.4, 0.1], [0.3, 0.7]], [1, 0, 1])
        >>> batch.take([2, 0]).values.tolist()
        [[0.3, 0.7], [0.2, 0.9]]
        """
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
        return replace(
            self,
            eta=self.eta.take(rows),
            labels=None if self.labels is None else self.labels.take(rows),
            weights=self.weights[rows] if len(self.weights) else self.weights,
            restore_type=self.restore_type.take(rows),
        )

    def ready(self) -> Batch:
        """The same rows, converted once to what kernels read, for code that reads them often."""
        if isinstance(self.eta, SparseProbabilities) or self.eta.is_ready:
            return self
        array = np.ascontiguousarray(self.eta.array, dtype=np.float64)
        return replace(self, eta=DenseProbabilities(array, self.eta.vector))

    def __repr__(self) -> str:
        without = "" if self.labels is not None else ", no y"
        return f"<batch of {self.n} rows, {self.m} labels{without}>"


def read_labelled(owner: str, eta: Any, y: Any, weights: Any = None, names: Any = None) -> Batch:
    """Read rows that must have labels, at least one of them known."""
    if y is None and not isinstance(eta, Batch):
        raise ValueError(f"y of {owner} must be given, got None")
    batch = Batch.read(owner, eta, y, weights, names)
    if not batch.n or not batch.m:
        raise ValueError(
            f"eta of {owner} must have at least one row and label, got {batch.n} rows and "
            f"{batch.m} labels"
        )
    if batch.labels is None:
        raise ValueError(f"eta of {owner} must be a batch with labels, got {batch!r}")
    known = batch.labels.known
    if known is not None and not known.any():
        raise ValueError(f"y of {owner} must have labels that are known, got nan alone")
    return batch


def _passed_on(owner: str, batch: Batch, names: Any, arguments: dict[str, Any]) -> Batch:
    """A batch as it is; refuses arguments beside it."""
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

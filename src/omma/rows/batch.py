"""Probabilities with their labels: read and checked once at the door, then passed on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import shown
from omma.rows.arrays import (
    Probabilities,
    SparseProbabilities,
    blocks,
    read_probabilities,
    read_weights,
    wrong_row,
)
from omma.rows.frames import PLAIN, Look, Names, opened_pair, read_names
from omma.rows.labels import Labels, read_labels


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows to decide or to learn from, in the form that all of omma passes on.

    ``omma.replay``, ``omma.comparison.compare``, the ``fit`` of policies and the functions of
    ``omma.calibration`` take one in place of eta, y and weights: then nothing is opened, converted
    or checked a second time. Make it by ``Batch.of``, and change nothing that it was made of.

    Attributes
    ----------
    eta : DenseProbabilities or SparseProbabilities
        Probabilities as kernels read them; ``values`` has them as an array or CSR matrix.
    labels : Labels or None
        True labels, where they were given.
    weights : ndarray
        Of the rows; empty where none were given.
    names : tuple of str or None
        Of the labels.
    close : function
        Makes predictions look like what was given.
    classes : ndarray or None
        What classes are called, in the kind that y has; None where they are known by their place.

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
    labels: Labels | None = None
    weights: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    names: Names | None = None
    close: Look = PLAIN
    classes: NDArray[Any] | None = None

    @classmethod
    def of(
        cls, eta: Any, y: Any = None, weights: Any = None, names: Any = None, *, known: Any = None
    ) -> Batch:
        """Read probabilities, and labels where there are any.

        Parameters
        ----------
        eta, y, weights
            As of ``omma.replay``. Labels that are NaN are unknown: of whole rows, or of some
            entries.
        names : sequence of str, optional
            Of the labels; columns of frames are put in this order.
        known : array-like of bool, of shape (n,) or (n, m), optional
            Which labels are known, where not by NaN.

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
        """The same for somebody: ``owner`` is named in messages. A batch is passed on as it is."""
        if isinstance(eta, Batch):
            return _passed_on(owner, eta, names, {"y": y, "weights": weights, "known": known})
        wanted = None if names is None else tuple(str(name) for name in names)
        table, y = opened_pair(owner, eta, y, wanted, weights)
        rows = read_probabilities(owner, table.values)
        labels = None if y is None else read_labels(owner, y, rows.n, rows.m, known=known)
        found = read_weights(owner, weights, rows.n)
        return cls(rows, labels, found, table.names, table.close, table.classes)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.eta.n

    @property
    def m(self) -> int:
        """Number of labels."""
        return self.eta.m

    @property
    def thin(self) -> bool:
        """Whether probabilities are sparse."""
        return isinstance(self.eta, SparseProbabilities)

    @property
    def values(self) -> Any:
        """Probabilities as an array or a CSR matrix, of the shape that they were given in."""
        if isinstance(self.eta, SparseProbabilities):
            return self.eta.matrix
        return self.eta.array[:, 0] if self.eta.vector else self.eta.array

    @property
    def class_ids(self) -> bool:
        """Whether labels are one class id a row."""
        return self.labels is not None and self.labels.class_ids

    @property
    def known(self) -> NDArray[np.bool_] | None:
        """Whether the labels of each row (or entry) are known; None where all of them are."""
        return None if self.labels is None else self.labels.entries_known

    @cached_property
    def odd_row(self) -> tuple[int, int] | None:
        """The first row that has not exactly one label, and how many it has."""
        if self.labels is None or self.labels.class_ids:
            return None
        for _, block in blocks(self.n, self.eta.rows_per_block, None):
            starts, ends, _ = self.labels.block(block)
            known = self.labels.known_of(block)
            wrong = np.flatnonzero((ends - starts != 1) & (known != 0 if len(known) else True))
            if len(wrong):
                return int(block[wrong[0]]), int((ends - starts)[wrong[0]])
        return None

    @property
    def one_label_each(self) -> bool:
        """Whether each row has exactly one label."""
        return self.labels is not None and self.odd_row is None

    @cached_property
    def wrong_row(self) -> int | None:
        """The first row with anything that is no probability; kernels look while they read."""
        return wrong_row(self.eta)

    def check(self, owner: str) -> Batch:
        """Refuse anything that is no probability, for who reads it without a kernel."""
        if self.wrong_row is not None:
            raise ValueError(f"eta of {owner} must hold {self.eta.explain(self.wrong_row)}")
        return self

    def labelled(self, owner: str, y: Any, weights: Any = None) -> Batch:
        """The same probabilities with labels, and weights, that were read after them."""
        labels = read_labels(owner, y, self.n, self.m)
        made = replace(self, labels=labels, weights=read_weights(owner, weights, self.n))
        return self._known_right(made)

    def take(self, rows: Any) -> Batch:
        """Some of the rows, by ids, by flags or as a slice; nothing is checked again.

        Examples
        --------
        >>> import omma
        >>> batch = omma.Batch.of([[0.2, 0.9], [0.4, 0.1], [0.3, 0.7]], [1, 0, 1])
        >>> batch.take([2, 0]).values.tolist()
        [[0.3, 0.7], [0.2, 0.9]]
        """
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
        labels = None if self.labels is None else self.labels.take(rows)
        weights = self.weights[rows] if len(self.weights) else self.weights
        part = replace(
            self,
            eta=self.eta.take(rows),
            labels=labels,
            weights=weights,
            close=self.close.take(rows),
        )
        return self._known_right(part)

    def ready(self) -> Batch:
        """The same, converted once to what kernels read fastest, for who reads it many times."""
        labels = None if self.labels is None else self.labels.ready(listed=self.thin)
        eta = self.eta.ready()
        if eta is self.eta and labels is self.labels:
            return self
        return self._known_right(replace(self, eta=eta, labels=labels))

    def _known_right(self, other: Batch) -> Batch:
        """Another with some of these rows: where all of them were right, these are too."""
        for name in ("wrong_row", "odd_row"):
            if self.__dict__.get(name, 0) is None:
                other.__dict__[name] = None
        return other

    def __repr__(self) -> str:
        without = "" if self.labels is not None else ", no y"
        return f"<batch of {self.n} rows, {self.m} labels{without}>"


def _passed_on(owner: str, batch: Batch, names: Any, given: dict[str, Any]) -> Batch:
    """A batch is whole: nothing comes beside it."""
    for parameter, one in given.items():
        if one is not None:
            raise TypeError(
                f"{parameter} of {owner} must not be given beside a Batch, which has its own, got "
                f"{shown(one)}"
            )
    if names is not None and batch.names not in (None, tuple(names)):
        raise ValueError(
            f"eta of {owner} must have labels in the order {shown(list(names))}, got a batch with "
            f"{shown(list(batch.names or ()))}"
        )
    return batch

"""A dataset in the one form that everything else takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_choice, check_number, check_seed, shown
from omma.npz import HIGHEST
from omma.rows.arrays import sound_csr

TASKS = ("binary", "multiclass", "multilabel")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, labels, and where the test part begins.

    Whatever is given is brought to the types below, without a copy where it has them already.

    Parameters
    ----------
    name : str
    task : {"binary", "multiclass", "multilabel"}
    X : CSR or ndarray of shape (n, d)
        Features, as a float32 ``csr_array`` or a C-ordered float32 array.
    y : CSR of shape (n, m), or ndarray of shape (n,)
        Multi-label: indicators, an int8 ``csr_array`` of ones. Otherwise class ids, int64, from 0
        to m − 1; in a binary problem 1 is the class looked for.
    split : int, optional
        Index of the first test row, where the problem has a test part of its own.
    labels : sequence of str, optional
        Names of labels or classes.
    m : int, optional
        Number of labels or classes; by default as many as the labels show.

    Examples
    --------
    >>> import numpy as np
    >>> from omma.datasets import Dataset
    >>> data = Dataset("toy", "multiclass", X=np.eye(10), y=np.arange(10) % 3)
    >>> data
    Dataset('toy', multiclass, 10 rows, 10 features, 3 classes, no split)
    >>> train, test = data.parts()
    >>> train.n, test.n, test.m
    (7, 3, 3)
    """

    name: str
    task: str
    X: Any
    y: Any
    split: int | None = None
    labels: Sequence[str] | None = None
    m: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        check_choice("Dataset", "task", self.task, TASKS)
        features = as_features(self.X)
        target = as_indicators(self.y) if self.task == "multilabel" else as_classes(self.y)
        if features.shape[0] != target.shape[0]:
            raise ValueError(
                f"X and y of Dataset must have as many rows as each other, "
                f"got {features.shape[0]} and {target.shape[0]}"
            )
        if self.split is not None and (
            not isinstance(self.split, Integral) or not 0 < self.split < features.shape[0]
        ):
            raise ValueError(
                f"split of Dataset must leave rows on both sides, so lie between 1 and "
                f"{features.shape[0] - 1}, got {shown(self.split)}"
            )
        names = None if self.labels is None else tuple(str(name) for name in self.labels)
        split = None if self.split is None else int(self.split)
        count = _count(self.task, target, names, self.m)
        brought = {"X": features, "y": target, "split": split, "labels": names, "m": count}
        for attribute, value in brought.items():
            object.__setattr__(self, attribute, value)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def take(self, rows: NDArray[np.int64] | slice) -> Dataset:
        """The rows asked for, in that order, without a split."""
        return replace(self, X=self.X[rows], y=self.y[rows], split=None)

    def parts(self, seed: int = 0, test: float = 0.3) -> tuple[Dataset, Dataset]:
        """Training part and test part.

        The problem's own parts where it has them; else a share ``test`` of the rows is drawn for
        the test part with the seed, and the rows of both parts stand in random order.
        """
        if self.split is not None:
            return self.take(slice(0, self.split)), self.take(slice(self.split, self.n))
        check_number("Dataset.parts", "test", test, low=0.0, high=1.0)
        first = self.n - round(test * self.n)
        if not 0 < first < self.n:
            raise ValueError(
                f"test of Dataset.parts must leave rows in both parts, got {test} of {self.n} rows"
            )
        order = np.random.default_rng(check_seed("Dataset.parts", seed)).permutation(self.n)
        return self.take(order[:first]), self.take(order[first:])

    def __repr__(self) -> str:
        what = "labels" if self.task == "multilabel" else "classes"
        split = "no split" if self.split is None else f"test part from row {self.split}"
        return (
            f"Dataset({self.name!r}, {self.task}, {self.n} rows, {self.d} features, "
            f"{self.m} {what}, {split})"
        )


def as_features(given: Any) -> Any:
    """A float32 CSR array, or a C-ordered float32 array of two dimensions."""
    if sparse.issparse(given):
        return sparse.csr_array(sound_csr("Dataset", "X", given), dtype=np.float32)
    dense = np.ascontiguousarray(given, dtype=np.float32)
    if np.ndim(given) != 2:
        raise ValueError(f"X of Dataset must have rows and columns, got shape {np.shape(given)}")
    return dense


def as_indicators(y: Any) -> Any:
    """An int8 CSR array that stores nothing but ones."""
    if not sparse.issparse(y) and np.ndim(y) != 2:
        raise ValueError(
            f"y of a multi-label Dataset must be an indicator matrix, got shape {np.shape(y)}"
        )
    given = sparse.csr_array(sound_csr("Dataset", "y", y) if sparse.issparse(y) else y)
    if given.nnz and not np.all(given.data == 1):
        given = sparse.csr_array(given, copy=True)
        given.sum_duplicates()
        given.eliminate_zeros()
        if not np.all(given.data == 1):
            odd = given.data[given.data != 1][0]
            raise ValueError(f"y of a multi-label Dataset must be 0 or 1, got {shown(odd.item())}")
    return given.astype(np.int8, copy=False)


def as_classes(y: Any) -> NDArray[np.int64]:
    """Class ids as a vector of int64."""
    given = np.asarray(y)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iub"):
        raise ValueError(
            "y of a Dataset with one class a row must be a vector of whole numbers, "
            f"got shape {given.shape} of {given.dtype}"
        )
    if given.size and (given.min() < 0 or given.max() > HIGHEST):
        odd = given.min() if given.min() < 0 else given.max()
        raise ValueError(f"y of Dataset must be class ids from 0, got {odd}")
    return np.ascontiguousarray(given, dtype=np.int64)


def _count(task: str, y: Any, labels: tuple[str, ...] | None, m: int) -> int:
    """The number of labels, which names and labels must agree with."""
    if task == "multilabel":
        seen = exact = int(y.shape[1])
    else:
        seen = int(y.max()) + 1 if y.size else 0
        exact = 2 if task == "binary" else m or (len(labels) if labels is not None else seen)
    for what, count in (("m", m or exact), ("labels", exact if labels is None else len(labels))):
        if count != exact:
            raise ValueError(f"{what} of Dataset must agree with y, got {count} instead of {exact}")
    if seen > exact:
        raise ValueError(f"y of Dataset must be class ids below {exact}, got {seen - 1}")
    return exact

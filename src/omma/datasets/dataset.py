"""The type of all datasets, and how readers of files make one."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_choice, check_number, check_seed, shown
from omma.datasets.text import bare_name
from omma.npz import HIGHEST
from omma.rows.arrays import sound_csr
from omma.rows.labels import read_labels

LARGEST = float(np.finfo(np.float32).max)  # of features, which are float32
TASKS = ("binary", "multiclass", "multilabel")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, labels, and the row where the test part begins.

    Arguments are converted to the types below; arrays that have them already are not copied.

    Parameters
    ----------
    name : str
    task : {"binary", "multiclass", "multilabel"}
    X : CSR or ndarray of shape (n, d)
        Features, as a float32 ``csr_array`` or a C-ordered float32 array.
    y : CSR of shape (n, m), or ndarray of shape (n,)
        Multi-label: indicators, an int8 ``csr_array`` of ones. Otherwise class ids, int64, from 0
        to m − 1; in a binary problem 1 is the positive class.
    split : int, optional
        Index of the first test row, if the problem has a test part of its own.
    labels : sequence of str, optional
        Names of labels or classes.
    m : int, optional
        Number of labels or classes; by default as many as occur in y.

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
        # A part of the rows may lack some classes, and still has the same m.
        count = _count(self.task, target, names, self.m)
        # A frozen dataclass has no other way to set its fields.
        self.__dict__.update(X=features, y=target, split=split, labels=names, m=count)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    def take(self, rows: NDArray[np.int64] | slice) -> Dataset:
        """Some of the rows, in the given order, without a split."""
        return replace(self, X=self.X[rows], y=self.y[rows], split=None)

    def parts(self, seed: int = 0, test: float = 0.3) -> tuple[Dataset, Dataset]:
        """Training part and test part.

        These are the problem's own parts if it has a split; else a share ``test`` of the rows is
        drawn at random for the test part, and both parts are in random order.
        """
        if self.split is not None:  # results on it can be compared with published ones
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
        noun = "labels" if self.task == "multilabel" else "classes"
        split = "no split" if self.split is None else f"test part from row {self.split}"
        return (
            f"Dataset({self.name!r}, {self.task}, {self.n} rows, {self.d} features, "
            f"{self.m} {noun}, {split})"
        )


def as_features(features: Any) -> Any:
    """A float32 CSR array, or a C-ordered float32 array of two dimensions."""
    if sparse.issparse(features):
        return sparse.csr_array(sound_csr("Dataset", "X", features), dtype=np.float32)
    dense = np.ascontiguousarray(features, dtype=np.float32)
    if np.ndim(features) != 2:
        raise ValueError(f"X of Dataset must have rows and columns, got shape {np.shape(features)}")
    return dense


def as_indicators(y: Any) -> Any:
    """Indicators as an int8 CSR array that stores only ones."""
    if not sparse.issparse(y) and np.ndim(y) != 2:
        raise ValueError(
            f"y of a multi-label Dataset must be an indicator matrix, got shape {np.shape(y)}"
        )
    labels = read_labels("a multi-label Dataset", y, *np.shape(y), listed=True)
    labels.refuse_unknown_rows("a multi-label Dataset")
    labels.refuse_partly_known("a multi-label Dataset")
    return sparse.csr_array(labels.values).astype(np.int8, copy=False)


def as_classes(y: Any) -> NDArray[np.int64]:
    """Class ids as a vector of int64."""
    ids = np.asarray(y)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iub"):
        raise ValueError(
            "y of a Dataset with one class a row must be a vector of whole numbers, "
            f"got shape {ids.shape} of {ids.dtype}"
        )
    if ids.size and (ids.min() < 0 or ids.max() > HIGHEST):
        odd = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"y of Dataset must be class ids from 0, got {odd}")
    return np.ascontiguousarray(ids, dtype=np.int64)


def _count(task: str, y: Any, labels: tuple[str, ...] | None, m: int) -> int:
    """The number of labels or classes; m and the names must agree with y."""
    if task == "multilabel":
        seen = exact = int(y.shape[1])
    else:
        seen = int(y.max()) + 1 if y.size else 0
        # Only m and the names can tell about classes that no row has.
        exact = 2 if task == "binary" else m or (len(labels) if labels is not None else seen)
    counts = {"m": m or exact, "labels": exact if labels is None else len(labels)}
    for parameter, count in counts.items():
        if count != exact:
            raise ValueError(
                f"{parameter} of Dataset must agree with y, got {count} instead of {exact}"
            )
    if seen > exact:
        raise ValueError(f"y of Dataset must be class ids below {exact}, got {seen - 1}")
    return exact


def assemble(
    path: Path,
    features: Sequence[Any],
    targets: Sequence[Any],
    *,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    task: str | None = None,
) -> Dataset:
    """Make a dataset of a training file ``path`` and, maybe, a test file.

    ``features`` and ``targets`` have an item for each file; targets are indicators, or a list with
    the name of each row's class. ``labels`` names the columns of indicators, or the classes in the
    order of their ids; by default classes are sorted, as numbers if all of them are numbers.
    """
    called = name or bare_name(path)
    rows = stack(features)
    if not rows.shape[0]:
        raise ValueError(f"{path}: expected rows, got none")
    split = features[0].shape[0] if len(features) > 1 else None
    if sparse.issparse(targets[0]):
        return Dataset(called, "multilabel", rows, stack(targets), split, labels)
    names = [cell for cells in targets for cell in cells]
    spelled = {name: name if labels else class_name(name) for name in dict.fromkeys(names)}
    classes = labels
    if classes is None:
        distinct = set(spelled.values())
        classes = sorted(distinct, key=float if all(map(is_finite, distinct)) else str)
    place = {name: j for j, name in enumerate(classes)}
    ids = np.fromiter((place[spelled[name]] for name in names), np.int64, len(names))
    guess = "binary" if len(classes) == 2 else "multiclass"
    return Dataset(called, task or guess, rows, ids, split, classes)


def dense(values: Any) -> Any:
    """The values as an array, also if they are a sparse matrix."""
    return values.toarray() if sparse.issparse(values) else values


def stack(blocks: Sequence[Any]) -> Any:
    """Stack blocks of rows; the result is sparse if one of them is, and as wide as the widest."""
    if not any(map(sparse.issparse, blocks)):
        return np.concatenate(blocks)
    wide = [sparse.csr_array(block) for block in blocks]
    width = max(block.shape[1] for block in wide)
    for block in wide:  # no row of the test part may have the last features or labels
        block.resize(block.shape[0], width)
    return wide[0] if len(wide) == 1 else sparse.csr_array(sparse.vstack(wide, format="csr"))


def class_name(text: str) -> str:
    """The name of a class without quotes; +1, 1.0 and 1 are the same class."""
    bare = text.strip().strip("'\"")  # some programs put only classes in quotes
    if not is_finite(bare):
        return bare
    value = float(bare)
    return str(int(value)) if value == int(value) else repr(value)


def is_finite(text: str) -> bool:
    """Whether the text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


class SparseRows:
    """Builds a sparse matrix row by row; entries of one place are added up."""

    def __init__(self, kind: str = "f") -> None:
        self.columns, self.values, self.starts = array("q"), array(kind), array("q", [0])

    def add(self, columns: Sequence[int], values: Sequence[Any]) -> None:
        """Add a row."""
        self.columns.extend(columns)
        self.values.extend(values)
        self.starts.append(len(self.columns))

    def matrix(self, width: int | None = None) -> sparse.csr_array:
        """All rows as a CSR matrix; by default it ends at the last column that occurs."""
        if width is None:
            width = max(self.columns, default=-1) + 1
        # Copies, as entries are added up in place.
        parts = tuple(np.array(part) for part in (self.values, self.columns, self.starts))
        matrix = sparse.csr_array(parts, shape=(len(self.starts) - 1, width))
        matrix.sum_duplicates()
        return matrix

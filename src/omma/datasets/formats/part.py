"""What a reader finds in one file, and how files become a dataset."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.datasets.dataset import Dataset
from omma.datasets.text import bare_name
from omma.npz import HIGHEST


@dataclass(frozen=True)
class Part:
    """Features and labels of one file: indicators, or the name of each row's class."""

    X: Any
    y: Any


def assemble(
    path: Path,
    parts: Sequence[Part],
    *,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    task: str | None = None,
) -> Dataset:
    """One dataset of a training file and, maybe, a test file; called as the first by default.

    ``labels`` names the columns of indicators, or the classes in the order of their ids; without
    it classes are sorted, as numbers where they all are.
    """
    called = name or bare_name(path)
    features = stack([part.X for part in parts])
    if not features.shape[0]:
        raise ValueError(f"{path}: expected rows, got none")
    split = parts[0].X.shape[0] if len(parts) > 1 else None
    if sparse.issparse(parts[0].y):
        target = stack([part.y for part in parts])
        return Dataset(called, "multilabel", features, target, split, labels)
    names = [cell for part in parts for cell in part.y]
    ids, classes = identify(names, labels)
    guess = "binary" if len(classes) == 2 else "multiclass"
    return Dataset(called, task or guess, features, ids, split, classes)


def stack(blocks: Sequence[Any]) -> Any:
    """Blocks of rows as one, sparse if one of them is; sparse ones may differ in width."""
    if not any(map(sparse.issparse, blocks)):
        return np.concatenate(blocks)
    wide = [sparse.csr_array(block) for block in blocks]
    width = max(block.shape[1] for block in wide)
    for block in wide:
        block.resize(block.shape[0], width)
    return wide[0] if len(wide) == 1 else sparse.csr_array(sparse.vstack(wide, format="csr"))


def identify(
    names: Sequence[str], classes: Sequence[str] | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Ids of classes, and their names in the order of ids."""
    if classes is None:
        spelled = {name: class_name(name) for name in dict.fromkeys(names)}
        distinct = set(spelled.values())
        classes = sorted(distinct, key=float if all(map(is_finite, distinct)) else str)
    else:
        spelled = {name: name for name in classes}
    place = {name: j for j, name in enumerate(classes)}
    ids = {name: place[spelled[name]] for name in spelled}
    return np.fromiter((ids[name] for name in names), np.int64, len(names)), tuple(classes)


def class_name(text: str) -> str:
    """A class as it is called: +1, 1.0 and 1 are the same, quotes are not part of it."""
    bare = text.strip().strip("'\"")
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
    """Rows of a sparse matrix, taken one by one; entries of one place are added up."""

    def __init__(self, kind: str = "f") -> None:
        self.columns, self.values, self.starts = array("q"), array(kind), array("q", [0])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def add(self, columns: Sequence[int], values: Sequence[Any]) -> None:
        """One row."""
        self.columns.extend(columns)
        self.values.extend(values)
        self.starts.append(len(self.columns))

    def matrix(self, width: int | None = None) -> sparse.csr_array:
        """All rows; as wide as the last column asks for, unless a width is given."""
        if width is None:
            width = max(self.columns, default=-1) + 1
        # Copies: the sum of entries is taken in place, and narrow indices are half the size.
        values = np.array(self.values)
        indices, starts = (np.array(part, np.int64) for part in (self.columns, self.starts))
        if len(indices) < HIGHEST:
            indices, starts = indices.astype(np.int32), starts.astype(np.int32)
        matrix = sparse.csr_array((values, indices, starts), shape=(len(self), width))
        matrix.sum_duplicates()
        return matrix

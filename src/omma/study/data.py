"""The data of a study: from the folder of data, or made up."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from omma import datasets
from omma._validate import check_choice
from omma.datasets import Dataset
from omma.rows.batch import Batch
from omma.study.suite import Source

GENERATORS = ("like", "long_tail")


class AbsentError(LookupError):
    """A dataset that is known and not there."""


@dataclass(frozen=True)
class Estimates:
    """A sequence to decide: probabilities, labels, and what is known of both.

    ``train`` is the training part, by the estimator that was fitted to it, or another draw of
    made-up data; online there is none. Rows are ``ordered`` as the sequence is where the estimator
    learned along it.
    """

    batch: Batch
    train: Batch | None = None
    report: dict[str, Any] = field(default_factory=dict)  # what the estimator says of itself
    seconds: float = 0.0
    ordered: bool = False


def load(source: Source, folder: Path | None) -> Dataset | Estimates:
    """The data of a source; classes become indicators where the task is multi-label."""
    if source.made:
        return make(source.made)
    found = _stored(source.dataset, folder)
    if source.task == "multilabel" and found.task == "multiclass":
        return as_labels(found)
    if source.task != found.task:
        raise ValueError(
            f"the dataset {source.dataset!r} is {found.task} and cannot be run as {source.task}"
        )
    return found


def make(made: Any) -> Estimates:
    """Made-up data, by the name of what makes them and its options."""
    options = dict(made)
    generator = options.pop("by", None)
    check_choice("made data", "by", generator, GENERATORS)
    draw, seed = getattr(datasets, generator), options.pop("seed", 0)
    drawn = (draw(**options, seed=one) for one in (seed, seed + 1))
    batch, train = (Batch.read("made data", eta, y).ready() for eta, y in drawn)
    return Estimates(batch, train)


def _stored(name: str, folder: Path | None) -> Dataset:
    try:
        return datasets.load(name, folder)
    except FileNotFoundError as error:
        raise AbsentError(str(error)) from error


def as_labels(given: Dataset) -> Dataset:
    """The same data with an indicator for each class."""
    ones = np.ones(given.n, dtype=np.int8)
    y = sparse.csr_array((ones, given.y, np.arange(given.n + 1)), shape=(given.n, given.m))
    return Dataset(given.name, "multilabel", given.X, y, given.split, given.labels)


def checksum(given: Dataset) -> str:
    """Of all numbers, so that other data under the same name are not mistaken for these."""
    sums = [zlib.crc32(part) for array in (given.X, given.y) for part in _buffers(array)]
    return "-".join([f"{one:08x}" for one in sums] + [str(given.split)])


def _buffers(array: Any) -> list[Any]:
    if sparse.issparse(array):
        return [array.data, array.indices, array.indptr]
    return [np.ascontiguousarray(array)]

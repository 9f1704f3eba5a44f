"""Rows of ``labels feature:value feature:value …``, which two formats are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.datasets.formats.part import from_entries
from omma.datasets.formats.text import wrong

BLOCK = 2000  # rows whose numbers are converted in one go
PAIR = "feature:value, a whole number of at least 0 and a finite number"
LABELS = "labels as whole numbers of at least 0 with commas between"

Line = tuple[int, str, str]  # number of the line, its labels, its features
Numbers = tuple[list[int], NDArray[np.int64], NDArray[np.float32]]


def divide(number: int, line: str) -> Line:
    """Labels end at the first blank; a row that begins with a blank or a pair has none."""
    if not line or line[0].isspace():
        return number, "", line
    head, _, tail = line.partition(" ") if "\t" not in line else _at_blank(line)
    return (number, "", line) if ":" in head else (number, head, tail)


def _at_blank(line: str) -> tuple[str, str, str]:
    head, *tail = line.split(None, 1)
    return head, " ", tail[0] if tail else ""


def read_rows(
    path: Path, lines: Iterator[Line], *, with_labels: bool
) -> tuple[sparse.csr_array, Any]:
    """Features, and indicators or else the text before the pairs of each row."""
    texts: list[str] = []
    features, labels = _Collected(), _Collected()
    while block := list(islice(lines, BLOCK)):
        numbers, heads, tails = zip(*block, strict=True)
        features.add(_convert(path, numbers, tails, pairs_of, _explain_pairs))
        if with_labels:
            labels.add(_convert(path, numbers, heads, labels_of, _explain_labels))
        else:
            texts.extend(heads)
    return features.matrix(), labels.indicators() if with_labels else texts


def pairs_of(texts: tuple[str, ...]) -> Numbers:
    """Entries of rows; ValueError if some row is not made of pairs."""
    tokens = " ".join(texts).replace(":", " : ").split()
    if 3 * tokens[1::3].count(":") != len(tokens):
        raise ValueError("not made of pairs")
    count = len(tokens) // 3
    columns = np.fromiter(map(int, tokens[::3]), np.int64, count)
    values = np.fromiter(map(float, tokens[2::3]), np.float32, count)
    if count and (columns.min() < 0 or not np.isfinite(values).all()):
        raise ValueError("out of range")
    return [text.count(":") for text in texts], columns, values


def labels_of(texts: tuple[str, ...]) -> Numbers:
    """Labels of rows as entries of one; ValueError if some are no whole numbers."""
    counts = [text.count(",") + 1 if text else 0 for text in texts]
    joined = ",".join(text for text in texts if text)
    columns = np.fromiter(map(int, joined.split(",") if joined else ()), np.int64, sum(counts))
    if len(columns) and columns.min() < 0:
        raise ValueError("out of range")
    return counts, columns, np.ones(len(columns), np.float32)


def _convert(
    path: Path,
    numbers: tuple[int, ...],
    texts: tuple[str, ...],
    convert: Callable[[tuple[str, ...]], Numbers],
    explain: Callable[[Path, int, str], None],
) -> Numbers:
    """Convert a block; if that fails, go over it line by line to say where and why."""
    try:
        return convert(texts)
    except (ValueError, OverflowError) as error:
        for number, text in zip(numbers, texts, strict=True):
            explain(path, number, text)
        raise wrong(path, numbers[0], f"rows of numbers from here on ({error})", texts[0]) from None


def _explain_pairs(path: Path, number: int, text: str) -> None:
    for token in text.split():
        feature, _, value = token.partition(":")
        try:
            fits = 0 <= int(feature) < 2**63 and math.isfinite(np.float32(value))
        except ValueError:
            fits = False
        if not fits:
            raise wrong(path, number, PAIR, token)


def _explain_labels(path: Path, number: int, text: str) -> None:
    try:
        fits = not text or all(0 <= int(label) < 2**63 for label in text.split(","))
    except ValueError:
        fits = False
    if not fits:
        raise wrong(path, number, LABELS, text)


class _Collected:
    """Entries of blocks of rows, put together at the end."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.columns = [np.empty(0, np.int64)]
        self.values = [np.empty(0, np.float32)]

    def add(self, numbers: Numbers) -> None:
        self.counts.extend(numbers[0])
        self.columns.append(numbers[1])
        self.values.append(numbers[2])

    def matrix(self) -> sparse.csr_array:
        return from_entries(self.counts, np.concatenate(self.columns), np.concatenate(self.values))

    def indicators(self) -> sparse.csr_array:
        matrix = self.matrix()
        matrix.data[:] = 1  # a label named twice is there once
        return matrix.astype(np.int8)

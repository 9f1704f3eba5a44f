"""Streams with known η in the shapes of the OMMA paper's sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from omma._validate import check_positive_int, check_seed, nearest
from omma.datasets.catalogue import CATALOGUE
from omma.datasets.shapes import SHAPES, Shape

BLOCK = 1 << 21  # probabilities drawn at a time
LEAST = -80.0  # log-odds: what is stored is above 0, in single precision too


def like(name: str, rows: int | None = None, *, seed: int = 0) -> tuple[Any, Any]:
    """A stream that looks like one of the OMMA paper's sets, with known probabilities.

    It has the paper's number of labels and rows, about as many labels a row as the set or its
    stand-in, and a tail as long. It is also as hard: deciding at 0.5 or by the top k is within 2
    points of what the paper's Tables 2 and 3 report, on each of their seven metrics (but for G- and
    H-mean of Ledgar, which are 0 there). Labels stand from the commonest to the rarest. Given η
    they are independent; of classes, there is one a row.

    Parameters
    ----------
    name : str
        A set of the paper, as in its results ("YouTube") or in ``CATALOGUE`` ("youtube").
    rows : int, optional
        By default as many as in the paper's test part.
    seed : int

    Returns
    -------
    eta : ndarray of shape (n, m), or CSR
        Probabilities. RCV1X and AmazonCat store 100 a row, float32; the others are zero.
    y : int8 ndarray of shape (n, m) or CSR, or int64 ndarray of shape (n,)
        Labels drawn from eta; class ids for News20, Ledgar-LexGlue and Caltech-256.

    Examples
    --------
    >>> from omma.datasets import like
    >>> eta, y = like("YouTube", rows=1000)
    >>> eta.shape, y.shape
    ((1000, 46), (1000, 46))
    >>> eta, y = like("AmazonCat", rows=1000)
    >>> eta.shape, eta.nnz, y.shape
    ((1000, 13330), 100000, (1000, 13330))
    >>> eta, classes = like("News20", rows=5)
    >>> eta.shape, classes.shape
    ((5, 20), (5,))
    """
    shape = _shape(name)
    n = check_positive_int("like", "rows", rows, optional=True) or shape.rows
    rng = np.random.default_rng(check_seed("like", seed))
    if shape.classes:
        return draw_classes(shape, n, rng)
    if shape.stored is None:
        return draw_labels(shape, n, rng)
    return draw_stored(shape, n, rng)


def _shape(name: str) -> Shape:
    entry = CATALOGUE.get(name)
    paper = name if entry is None else entry.paper
    if paper not in SHAPES:
        raise ValueError(
            f"name of like must be one of {', '.join(SHAPES)}, got {name!r}{nearest(name, SHAPES)}"
        )
    return SHAPES[paper]


# Labels, each by itself


def evidence(
    positive: NDArray[np.bool_],
    share: NDArray[np.float64],
    signal: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Probabilities of labels by Bayes' rule, after a normal observation of each.

    Labels have these shares, and are seen as their ``signal`` (positive) or 0, plus a standard
    normal error. Given what is seen, they are independent with these probabilities, exactly.
    """
    seen = rng.standard_normal(positive.shape) + signal * positive
    log_odds = np.log(share / (1.0 - share)) + signal * seen - signal**2 / 2
    return np.asarray(expit(np.maximum(log_odds, LEAST)))


def draw_labels(
    shape: Shape, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Every probability is kept."""
    frequency = shape.frequencies()
    positive = rng.random((n, shape.m)) < frequency
    signal = shape.signals() * clearness(shape, n, rng)
    return evidence(positive, frequency, signal, rng), positive.astype(np.int8)


def clearness(shape: Shape, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """By how much each row tells more than the mean row, as a column."""
    log = shape.clarity * rng.standard_normal((n, 1)) - shape.clarity**2 / 2
    return np.asarray(np.exp(log))


def draw_stored(
    shape: Shape, n: int, rng: np.random.Generator
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """A fixed number of probabilities a row.

    A row has that many places. The commonest labels have a place of their own; the others share
    places with labels about as common, and a row puts one of them there, in proportion to how
    common it is. So label j is in a place of share F with probability f_j / F, and positive with
    probability f_j, as it should be.
    """
    frequency = shape.frequencies()
    signals = shape.signals()
    first = places(frequency, shape.stored or shape.m)
    block = max(1, BLOCK // len(first))
    parts = [
        _stored_block(min(block, n - start), shape, frequency, signals, first, rng)
        for start in range(0, n, block)
    ]
    columns, eta, positive = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    starts = np.arange(0, eta.size + 1, len(first), dtype=np.int32)
    truth = np.concatenate([[0], np.cumsum(positive.sum(axis=1))]).astype(np.int32)
    ones = np.ones(int(truth[-1]), np.int8)
    size = (n, shape.m)
    return (
        sparse.csr_array((eta.ravel(), columns.ravel(), starts), shape=size),
        sparse.csr_array((ones, columns[positive], truth), shape=size),
    )


def _stored_block(
    n: int,
    shape: Shape,
    frequency: NDArray[np.float64],
    signals: NDArray[np.float64],
    first: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
    """Label in each place, its probability, and whether it is positive."""
    share = np.add.reduceat(frequency, first)
    upper = np.cumsum(frequency)
    lower = upper[first] - frequency[first]
    size = (n, len(first))
    found = np.searchsorted(upper, lower + share * rng.random(size), side="right")
    last = np.append(first[1:], len(frequency)) - 1
    columns = np.clip(found, first, last).astype(np.int32)  # sums round, places do not overlap
    positive = rng.random(size) < share
    signal = signals[columns] * clearness(shape, n, rng)
    return columns, evidence(positive, share, signal, rng).astype(np.float32), positive


def places(frequency: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The first label of each place; frequencies fall, and shared places have like sums."""
    if len(frequency) <= count:
        return np.arange(len(frequency))
    rest = np.cumsum(frequency[::-1])[::-1]  # of this label and all rarer ones
    left = np.maximum(count - np.arange(len(frequency)), 1)
    own = int(np.argmax(frequency * left < rest))  # the first that has less than its part
    shares = rest[own] * np.arange(count - own) / (count - own)
    cut = np.searchsorted(rest[own] - rest[own:], shares)
    return np.concatenate([np.arange(own), own + cut])


# Classes, one a row


def draw_classes(
    shape: Shape, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The same with one class a row: probabilities add up to one."""
    share = shape.frequencies()
    chosen = rng.choice(shape.m, n, p=share / share.sum())
    signal = shape.signals() * clearness(shape, n, rng)
    seen = rng.standard_normal((n, shape.m))
    seen[np.arange(n), chosen] += signal[np.arange(n), chosen]
    log = np.log(share) + signal * seen - signal**2 / 2
    if shape.kin:
        log += _pairs(shape, chosen, rng)
    powers = np.exp(log - log.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True), chosen


def _pairs(shape: Shape, chosen: NDArray[np.int64], rng: np.random.Generator) -> Any:
    """What a further observation of each pair of classes adds to their log-odds."""
    pair = np.minimum(np.arange(shape.m), np.arange(shape.m)[::-1])
    seen = rng.standard_normal((len(chosen), pair.max() + 1))
    seen[np.arange(len(chosen)), pair[chosen]] += shape.kin
    return (shape.kin * seen)[:, pair]

"""Where Frank-Wolfe starts: a rule from which it goes on mixing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Weights = tuple[NDArray[np.float64], NDArray[np.float64]]

STARTS = ("top", "random")


def top(k: int | None, m: int) -> Weights:
    """What is done before anything is known: the 0.5 threshold, or the top k."""
    return np.ones(m), np.full(m, -0.5 if k is None else 0.0)


def at_random(m: int, seed: int, run: int = 0) -> Weights:
    """A classifier drawn at random: slopes in [0, 1), offsets in [-1/2, 1/2), of each label.

    So start the runs behind the paper's tables. Each run has draws of its own.
    """
    generator = np.random.default_rng((seed, run))
    return generator.random(m), generator.random(m) - 0.5


def start_at(start: str, k: int | None, m: int, seed: int, run: int = 0) -> Weights:
    """The start of that name."""
    return top(k, m) if start == "top" else at_random(m, seed, run)

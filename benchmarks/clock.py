"""Timing on a noisy machine: the best of several runs, rivals taking turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def seconds_of(call: Callable[[], Any]) -> float:
    """How long one call takes, on the clock of this thread.

    All that is timed here runs in one thread. A wall clock would also count the time in which
    other programs had the core, and long calls, which cannot slip in between, most of all.
    """
    started = time.thread_time()
    call()
    return time.thread_time() - started


def race(
    *calls: Callable[[], Any], rounds: int = 5, at_least: float = 0.5, at_most: int = 200
) -> list[float]:
    """The best seconds of each call; they take turns, so that all meet the same noise.

    At least ``rounds`` rounds are run, more until ``at_least`` seconds have passed.
    """
    best = [np.inf] * len(calls)
    started = time.perf_counter()
    done = 0
    while done < rounds or (done < at_most and time.perf_counter() - started < at_least):
        best = [min(so_far, seconds_of(call)) for so_far, call in zip(best, calls, strict=True)]
        done += 1
    return best


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """How time grows: the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])

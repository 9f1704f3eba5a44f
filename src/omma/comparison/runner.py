"""One run of a comparison, and what is kept of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma.comparison.results import Curve
from omma.evaluation import replay
from omma.metrics import Metric
from omma.policies import Policy
from omma.rows.batch import Batch

KEPT = 1 << 28  # bytes of counts that wait for curves to be asked for


class Key(NamedTuple):
    """What a run is known by."""

    policy: str
    metric: str
    prior: float | None
    seed: int | None


@dataclass(frozen=True)
class Task:
    """One run: a policy, and the metric that judges it."""

    key: Key
    policy: Policy
    metric: Metric


@dataclass(frozen=True)
class Outcome:
    """What is kept of a run."""

    value: float
    seconds: float
    rows: NDArray[np.int64]
    curve: Curve


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(data: Batch, checkpoints: int | ArrayLike, later: bool, task: Task) -> Outcome:
    """One run; its curve is worked out at once, or later if asked for."""
    trace = replay(
        task.policy,
        data,
        metric=task.metric,
        seed=task.key.seed,
        predictions=False,
        checkpoints=checkpoints,
    )
    value, history = trace.value, trace.history
    assert value is not None
    assert history is not None
    curve = history if later and not task.metric.needs_matrix else history.values
    return Outcome(value, trace.seconds, history.rows, curve)


def small(runs: int, checkpoints: int | ArrayLike, m: int) -> bool:
    """Whether counts at all checkpoints may be kept, and curves be worked out when asked for.

    That takes as long as a short replay, and in Python, so that other threads have to wait.
    """
    places = int(checkpoints) if isinstance(checkpoints, Integral) else np.size(checkpoints)
    return runs * places * m * 24 <= KEPT

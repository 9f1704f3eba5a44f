"""Runs side by side, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._run import Progress
from omma.comparison.arguments import Data
from omma.comparison.results import Curve
from omma.evaluation import progress_bar, replay
from omma.metrics import Metric
from omma.policies import Policy

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


def run(data: Data, checkpoints: int | ArrayLike, later: bool, task: Task) -> Outcome:
    """One run; its curve is worked out at once, or later if asked for."""
    trace = replay(
        task.policy,
        data.eta,
        data.y,
        metric=task.metric,
        seed=task.key.seed,
        weights=data.weights,
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


def run_all(
    tasks: list[Task], run: Callable[[Task], Outcome], n_jobs: int, progress: bool
) -> dict[Key, Outcome]:
    """Outcomes of all tasks; where Ctrl-C came, of those that had finished by then."""
    # Threads, not processes: kernels let other threads run while they work, and threads share the
    # data, which processes would have to copy. What is kept depends on the task alone, never on
    # which thread ran it or when.
    pool = ThreadPoolExecutor(n_jobs, thread_name_prefix="omma-compare")
    futures: list[Future[Outcome]] = []
    with progress_bar(len(tasks), "runs", progress) as advance:
        try:
            for task in tasks:
                futures.append(pool.submit(run, task))
                if advance is not None:
                    futures[-1].add_done_callback(partial(_count, advance))
            for future in futures:
                _await(future)
        except KeyboardInterrupt:
            if not any(map(_finished, futures)):
                raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return {
        task.key: future.result()
        for task, future in zip(tasks, futures, strict=False)
        if _finished(future)
    }


def _await(future: Future[Outcome]) -> None:
    """Wait for a run, and raise what it raised."""
    while not future.done():
        wait((future,), timeout=0.5)  # without a timeout Windows would not see Ctrl-C
    future.result()


def _count(advance: Progress, future: Future[Outcome]) -> None:
    advance(int(not future.cancelled()))


def _finished(future: Future[Outcome]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None

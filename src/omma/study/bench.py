"""Performs the runs of a suite: each becomes a job that leaves a record."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from omma.evaluation import replay
from omma.metrics import metric as find_metric
from omma.policies import Policy
from omma.policies.frank_wolfe import ConvergenceWarning
from omma.study.estimates import Desk, Estimates
from omma.study.jobs import Job, Outcome, Summary, perform
from omma.study.policies import TRAINED, make
from omma.study.suite import Run, Suite

CACHE = "estimates"  # the folder beside the records
WARM = 64  # rows: enough for each part of a policy to be compiled


@dataclass(frozen=True)
class Performed:
    """What became of a suite: the summary of its jobs, and why datasets were left out."""

    summary: Summary
    skipped: dict[str, str]


def run(
    suite: Suite,
    out: str | Path,
    *,
    data: str | Path | None = None,
    n_jobs: int = 1,
    progress: bool | Callable[[int, int], None] = False,
    report: Callable[[str], None] | None = None,
) -> Performed:
    """Perform all runs of a suite that have no record yet.

    Datasets that are not there are left out, with a sentence each.

    Parameters
    ----------
    suite : Suite
    out : path
        Where records go; estimates are kept in its folder ``estimates``.
    data : path, optional
        The folder of data; default what the environment variable ``OMMA_DATA`` names.
    n_jobs : int
        How many runs at a time; take 1 where times have to be undisturbed.
    progress : bool or function
        Show a progress bar on standard error; a function is called a few times a second with how
        many runs are done, and how many there are to do.
    report : function, optional
        Called with a sentence for each failure, and for each estimator that is fitted.

    Examples
    --------
    >>> from omma import study
    >>> found = study.run(study.suite("smoke").limited(seeds=1), "records-of-smoke")
    >>> print(found.summary)
    32 done, 0 there before, 0 failed
    """
    bench = Bench(Desk(None if data is None else Path(data), Path(out) / CACHE, report))
    skipped = bench.desk.absent(one.source for one in suite.runs)
    runs = [one for one in suite.runs if one.source.dataset not in skipped]
    jobs = [Job(one.suite, one.spec, one.label, partial(bench.run, one)) for one in runs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper stops early, too
        summary = perform(jobs, out, n_jobs=n_jobs, progress=progress, report=report)
    return Performed(summary, skipped)


class Bench:
    """Where runs are performed; policies fitted to the training part are fitted once."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._lock = Lock()
        self._fitted: dict[Any, tuple[Policy, float]] = {}
        self._warmed: set[Any] = set()

    def run(self, run: Run) -> Outcome:
        """One run, its times taken apart."""
        given = self.desk.estimates(run.source, run.seed)
        metric = find_metric(run.metric)
        compile_seconds = self._warm(run, given)
        policy, fit_seconds = self._policy(run, given)
        trace = replay(
            policy,
            given.batch,
            metric=metric,
            seed=None if given.ordered else run.seed,
            predictions=False,
            checkpoints=run.checkpoints,
        )
        replayed = time.perf_counter()
        counts, history = trace.counts, trace.history
        assert counts is not None
        assert history is not None
        result = {
            "value": trace.value,
            "rows": given.batch.n,
            "history": {"rows": history.rows, "values": history.values},
            "counts": {
                **{name: getattr(counts, name) for name in ("tp", "predicted", "positive")},
                "n": float(counts.n),
            },
            "names": given.batch.names,
        }
        seconds = {
            "compile": compile_seconds,
            "estimate": given.seconds,
            "run": trace.seconds,
            "evaluate": time.perf_counter() - replayed,
        }
        if run.policy in TRAINED:
            seconds["fit"] = fit_seconds
        return Outcome(result, seconds, {"name": run.source.estimator["name"], **given.report})

    def _warm(self, run: Run, given: Estimates) -> float:
        """Decide a few rows first, so that compiling is not timed as running."""
        key = (run.policy, run.metric, run.k, type(given.batch.values))
        with self._lock:
            if key in self._warmed:
                return 0.0
            self._warmed.add(key)
            started = time.perf_counter()
            few = given.batch.take(slice(WARM))
            policy = make(run.policy, find_metric(run.metric), run.k, run.prior, few)
            replay(policy, few, metric=run.metric, predictions=False, checkpoints=1)
            return time.perf_counter() - started

    def _policy(self, run: Run, given: Estimates) -> tuple[Policy, float]:
        """The policy, and how long fitting it took."""
        metric = find_metric(run.metric)
        if run.policy not in TRAINED:
            return make(run.policy, metric, run.k, run.prior, options=run.options), 0.0
        key = (repr(run.source), run.policy, run.metric, run.k)
        with self._lock:  # all sequences share it, and the first of them fits it
            if key not in self._fitted:
                started = time.perf_counter()
                policy = make(run.policy, metric, run.k, None, given.train)
                self._fitted[key] = policy, time.perf_counter() - started
            return self._fitted[key]

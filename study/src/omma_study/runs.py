"""Performs the runs of a suite in parallel; each leaves a record."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import joblib

import omma
from omma_study.config import Run, Suite, make_policy
from omma_study.estimates import EstimateCache
from omma_study.policies import POLICIES, TRAINED
from omma_study.records import Record, key_of, make, scan, to_json, write

CACHE = "estimates"  # the folder of estimates beside the records
WARM = 64  # rows: enough for each part of a policy to be compiled
# Called with an iterable of records as they come, and their number; yields them.
Progress = Callable[[Iterable[Record], int], Iterable[Record]]


@dataclass(frozen=True)
class Job:
    """A run that is to be done: its description, and a function that returns its record's parts.

    >>> Job("mine", {"policy": "omma"}, "OMMA", lambda: {"result": {"value": 0.7}}).label
    'OMMA'
    """

    suite: str
    spec: Mapping[str, Any]
    label: str
    run: Callable[[], Mapping[str, Any]] = field(repr=False, compare=False)
    kind: str = "study"

    def record(self) -> Record:
        """Run it; an error becomes a record, so that other runs continue."""
        make_record = partial(make, self.suite, self.spec, self.label, kind=self.kind)
        try:
            record = make_record(**self.run())
            to_json(record)  # NaN and infinity are an error of this run
        except Exception as error:
            return make_record(error=error)
        return record


@dataclass(frozen=True)
class Summary:
    """How many jobs were done, had a record before, failed, or were not begun.

    ``missing`` says why datasets were left out.
    """

    done: int
    skipped: int
    failed: int
    left: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        words = f"{self.done} done, {self.skipped} there before, {self.failed} failed"
        return words + (f", {self.left} not begun" if self.left else "")


def perform(
    jobs: Sequence[Job],
    folder: str | Path,
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
    missing: Mapping[str, str] | None = None,
) -> Summary:
    """Carry out jobs and append a record of each to a file in the folder.

    A job whose record has a result is skipped; one that failed is tried again. After Ctrl-C what
    has finished is kept. Jobs run in threads: compiled code lets others run, and they share data.

    >>> jobs = [Job("mine", {"seed": s}, "a", lambda: {"result": {"value": 1.0}}, "auto")
    ...         for s in (0, 1)]
    >>> print(perform(jobs, "folder-of-perform"))
    2 done, 0 there before, 0 failed
    >>> print(perform(jobs, "folder-of-perform"))
    0 done, 2 there before, 0 failed
    """
    Path(folder).mkdir(parents=True, exist_ok=True)  # an error here comes before hours of work
    warn = report or (lambda sentence: None)
    # Only keys are kept: the records of a whole study do not fit into memory.
    finished = {key_of(record) for record in scan(folder, bad=warn) if record["result"]}
    todo = [job for job in jobs if key_of(vars(job)) not in finished]
    # Records come as runs finish, so that each is written at once.
    parallel = joblib.Parallel(n_jobs, prefer="threads", return_as="generator_unordered")
    records = parallel(joblib.delayed(job.record)() for job in todo)
    done = failed = 0
    try:
        with warnings.catch_warnings():
            # Frank-Wolfe warns where it stops early, as the paper's does.
            warnings.simplefilter("ignore", UserWarning)
            for record in progress(records, len(todo)) if progress else records:
                write(folder, record)
                done += record["error"] is None
                if error := record["error"]:
                    failed += 1
                    spec = " ".join(str(value) for value in record["spec"].values())
                    # The rest of the message is in the record.
                    first = (error["message"].splitlines() or [""])[0]
                    warn(f"{record['suite']} {spec} failed with {error['type']}: {first}")
    except KeyboardInterrupt:  # the summary says that some are left
        records.close()
    left = len(todo) - done - failed
    return Summary(done, len(jobs) - len(todo), failed, left, missing or {})


def run(
    suite: Suite,
    out: str | Path,
    *,
    data: str | Path | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
) -> Summary:
    """Perform all runs of a suite that have no record yet.

    Parameters
    ----------
    suite : Suite
    out : path
        Where records go; estimates are kept in its folder ``estimates``.
    data : path, optional
        The folder of data; default what the environment variable ``OMMA_DATA`` names. Datasets
        that are not there are left out, with a sentence each.
    n_jobs : int
        How many runs at a time; take 1 where times have to be undisturbed.
    progress : function, optional
        Called with an iterable of records and their number; yields them again.
    report : function, optional
        Called with a sentence for each failure, and for each estimator that is fitted.

    Examples
    --------
    >>> import omma_study
    >>> print(omma_study.run(omma_study.suite("smoke").limited(seeds=1), "records-of-smoke"))
    32 done, 0 there before, 0 failed
    """
    runner = PolicyRunner(EstimateCache(data, Path(out) / CACHE, report))
    # All data are looked up before the first run, so that all that is missing is reported at once.
    missing = runner.cache.missing(run.source for run in suite.runs)
    jobs = [
        Job(run.suite, run.spec, POLICIES[run.policy].title, partial(runner.run, run))
        for run in suite.runs
        if run.source.dataset not in missing
    ]
    return perform(jobs, out, n_jobs=n_jobs, progress=progress, report=report, missing=missing)


class PolicyRunner:
    """Runs policies on estimates; trained policies are fitted once for all sequences."""

    def __init__(self, cache: EstimateCache) -> None:
        self.cache = cache
        self._lock = Lock()
        self._trained: dict[Any, tuple[Any, float]] = {}
        self._warm: set[Any] = set()

    def run(self, run: Run) -> dict[str, Any]:
        """One run: the parts of its record, with seconds of each step."""
        estimates = self.cache.estimates(run.source, run.seed)
        policy = make_policy(run.policy, omma.metric(run.metric), run.k, run.prior, run.options)
        if getattr(policy, "expectation", None) == "plug_in":
            # The authors' code divides counts by the length of the whole sequence from the first
            # row.
            policy = replace(policy, rows=estimates.batch.n)
        seconds = {"compile": 0.0, "estimate": estimates.seconds}
        key = (repr(run.source), run.policy, run.metric, run.k)
        with self._lock:
            # All sequences share a trained policy, and the first of them fits it.
            if POLICIES[run.policy].kind == TRAINED:
                if key not in self._trained:
                    train, started = estimates.train or (), time.perf_counter()
                    self._trained[key] = policy.fit(*train), time.perf_counter() - started
                policy, seconds["fit"] = self._trained[key]
            # Decide a few rows first, so that compiling is not timed as running. Dense and sparse
            # rows, and each metric, compile loops of their own.
            if key not in self._warm:
                self._warm.add(key)
                started = time.perf_counter()
                first_rows = estimates.batch.take(slice(WARM))
                omma.replay(policy, first_rows, metric=run.metric, predictions=False, checkpoints=1)
                seconds["compile"] = time.perf_counter() - started
        trace = omma.replay(
            policy,
            estimates.batch,
            metric=run.metric,
            # Where the estimator learned along the sequence, its order is that of the rows.
            seed=None if estimates.ordered else run.seed,
            predictions=False,
            checkpoints=run.checkpoints,
        )
        replayed = time.perf_counter()
        counts, history = trace.counts, trace.history
        assert counts is not None
        assert history is not None
        result = {
            "value": trace.value,
            "rows": estimates.eta.shape[0],
            "history": {"rows": history.rows, "values": history.values},
            "counts": {
                **{name: getattr(counts, name) for name in ("tp", "predicted", "positive")},
                "n": float(counts.n),
            },
            "names": estimates.names,
        }
        # The running values of the history are computed when they are asked for.
        seconds |= {"run": trace.seconds, "evaluate": time.perf_counter() - replayed}
        estimator = {"name": run.source.estimator["name"], **estimates.report}
        return {"result": result, "seconds": seconds, "estimator": estimator}


def once_a_minute(
    say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> Progress:
    """For logs: say at most once a minute how many runs are done.

    >>> lines, times = [], iter([0.0, 30.0, 60.0, 90.0, 120.0])
    >>> for _ in once_a_minute(lines.append, lambda: next(times))(range(4), 20): pass
    >>> lines
    ['2 of 20 runs, 1 min, about 9 min left', '4 of 20 runs, 2 min, about 8 min left']
    """

    def progress(records: Iterable[Record], total: int) -> Iterator[Record]:
        start = last_told = clock()
        for done, record in enumerate(records, start=1):
            yield record
            now = clock()
            if now - last_told >= 60 and done < total:  # at the end a summary follows
                last_told, spent = now, (now - start) / 60
                left = spent * (total - done) / done
                say(f"{done:,} of {total:,} runs, {spent:.0f} min, about {left:.0f} min left")

    return progress

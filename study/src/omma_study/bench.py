"""Performs the runs of a suite side by side: each becomes a job, and leaves a record."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from omma._pool import run_all
from omma._validate import check_positive_int
from omma.evaluation import replay
from omma.metrics import metric as find_metric
from omma.policies import Policy
from omma.policies.frank_wolfe import ConvergenceWarning
from omma_study.estimates import Desk, Estimates
from omma_study.policies import TRAINED, make as make_policy
from omma_study.records import Record, make, path_of, read_file, write
from omma_study.suite import Run, Suite

CACHE = "estimates"  # the folder beside the records
WARM = 64  # rows: enough for each part of a policy to be compiled


@dataclass(frozen=True)
class Outcome:
    """What a job gives back: its result, its times, and what the estimator says of itself."""

    result: Mapping[str, Any]
    seconds: Mapping[str, float] = field(default_factory=dict)
    estimator: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Job:
    """One run to be: what it is known by, and the function that performs it.

    >>> Job("mine", {"policy": "omma"}, "OMMA", lambda: Outcome({"value": 0.7})).label
    'OMMA'
    """

    suite: str
    spec: Mapping[str, Any]
    label: str
    run: Callable[[], Outcome] = field(repr=False, compare=False)
    kind: str = "study"


@dataclass(frozen=True)
class Summary:
    """What became of a list of jobs: their numbers, and the records of failures."""

    done: int
    skipped: int
    failures: tuple[Record, ...]
    left: int = 0

    @property
    def failed(self) -> int:
        """How many jobs ended with an error."""
        return len(self.failures)

    @property
    def total(self) -> int:
        """How many jobs there were."""
        return self.done + self.skipped + self.failed + self.left

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C came before the end."""
        return self.left > 0

    def __str__(self) -> str:
        parts = [f"{self.done} done", f"{self.skipped} there before", f"{self.failed} failed"]
        return ", ".join(parts + [f"{self.left} not begun"] * self.interrupted)


def perform(
    jobs: Iterable[Job],
    folder: str | Path,
    *,
    n_jobs: int = 1,
    progress: bool | Callable[[int, int], None] = False,
    report: Callable[[str], None] | None = None,
) -> Summary:
    """Carry out jobs and write a record of each into a folder.

    A job whose record is there and has a result is skipped; one that failed is tried again. An
    error becomes a record, and the others go on. After Ctrl-C running jobs finish, no other
    begins, and what has finished is kept. They run in threads: compiled code lets others run, and
    they share data. Options are those of ``omma_study.run``.

    >>> jobs = [Job("mine", {"seed": s}, "a", lambda: Outcome({"value": 1.0})) for s in (0, 1)]
    >>> print(perform(jobs, "folder-of-perform"))
    2 done, 0 there before, 0 failed
    >>> print(perform(jobs, "folder-of-perform"))
    0 done, 2 there before, 0 failed
    """
    check_positive_int("perform", "n_jobs", n_jobs)
    every = list(jobs)
    _check_distinct(every)
    todo = [job for job in every if not _finished(job, Path(folder))]
    if todo:  # a folder that cannot be made is known before hours of work, not after
        Path(folder).mkdir(parents=True, exist_ok=True)
    records: list[Record] = []

    def keep(job: Job, record: Record) -> None:
        records.append(record)
        if record["error"] is not None and report is not None:
            report(_sentence(record))

    run_all(todo, lambda job: _run(job, Path(folder)), keep, n_jobs=n_jobs, progress=progress)
    failures = tuple(record for record in records if record["error"] is not None)
    return Summary(
        done=len(records) - len(failures),
        skipped=len(every) - len(todo),
        failures=failures,
        left=len(todo) - len(records),
    )


def _run(job: Job, folder: Path) -> Record:
    """One job and its record."""
    try:
        found = job.run()
        record = _record(job, result=found.result, seconds=found.seconds, estimator=found.estimator)
        write(folder, record)
    except Exception as error:  # any failure of one run is recorded, and the others go on
        record = _record(job, error=error)
        write(folder, record)
    return record


def _record(job: Job, **parts: Any) -> Record:
    return make(job.suite, job.spec, job.label, kind=job.kind, **parts)


def _finished(job: Job, folder: Path) -> bool:
    path = path_of(folder, job.suite, job.kind, job.spec)
    if not path.exists():
        return False
    try:
        return read_file(path)[0]["result"] is not None
    except ValueError:  # half a file, or another's: it is written anew
        return False


def _check_distinct(jobs: list[Job]) -> None:
    seen: set[Path] = set()
    for job in jobs:
        path = path_of("", job.suite, job.kind, job.spec)
        if path in seen:
            raise ValueError(f"jobs of perform must differ in their spec, got {path.stem} twice")
        seen.add(path)


def _sentence(record: Record) -> str:
    stem = path_of("", record["suite"], record["kind"], record["spec"]).stem
    error = record["error"]
    first = error["message"].splitlines()[0] if error["message"] else ""
    return f"{stem} failed with {error['type']}: {first}"


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
    >>> import omma_study as study
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
            policy = make_policy(run.policy, find_metric(run.metric), run.k, run.prior, few)
            replay(policy, few, metric=run.metric, predictions=False, checkpoints=1)
            return time.perf_counter() - started

    def _policy(self, run: Run, given: Estimates) -> tuple[Policy, float]:
        """The policy, and how long fitting it took."""
        metric = find_metric(run.metric)
        if run.policy not in TRAINED:
            return make_policy(run.policy, metric, run.k, run.prior, options=run.options), 0.0
        key = (repr(run.source), run.policy, run.metric, run.k)
        with self._lock:  # all sequences share it, and the first of them fits it
            if key not in self._fitted:
                started = time.perf_counter()
                policy = make_policy(run.policy, metric, run.k, None, given.train)
                self._fitted[key] = policy, time.perf_counter() - started
            return self._fitted[key]

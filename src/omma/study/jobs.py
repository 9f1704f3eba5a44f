"""A list of jobs, carried out side by side; each leaves a record, be it of its failure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omma._pool import run_all
from omma._validate import check_positive_int
from omma.study.records import Record, make, path_of, read_file, write


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
    they share data. Options are those of ``omma.study.run``.

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

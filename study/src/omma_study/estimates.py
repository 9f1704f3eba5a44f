"""Data of a study, and their probabilities by an estimator: made once, kept, shared by all runs."""

import hashlib
import json
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from omma import npz
from omma._validate import check_choice
from omma.datasets import Dataset
from omma.rows.batch import Batch
from omma_study import datasets
from omma_study.policies import KNOWN, make_estimator
from omma_study.records import versions
from omma_study.suite import Source

GENERATORS = ("like", "long_tail")
Found = TypeVar("Found")
Made = tuple[Mapping[str, Any], Mapping[str, Any]]  # arrays, and what the estimator says of itself
TEST = 0.3  # the share of test rows where there is no split, as in the paper
SPLIT_SEED = 0
NAMES = ("eta", "train")  # of the arrays that are kept
HELD = 2  # of the latest in memory: runs come ordered by their source


@dataclass(frozen=True)
class Estimates:
    """A sequence to decide: probabilities, labels, and what is known of both.

    ``train`` is the training part, by the estimator that was fitted to it, or another draw of
    made-up data; online there is none. Rows are ``ordered`` as the sequence is where the estimator
    learned along it.
    """

    batch: Batch
    train: Batch | None = None
    report: dict[str, Any] = field(default_factory=dict)  # what the estimator says of itself
    seconds: float = 0.0
    ordered: bool = False


def load(source: Source, folder: Path | None) -> Dataset | Estimates:
    """The data of a source; classes become indicators where the task is multi-label."""
    if source.made:
        return make(source.made)
    found = datasets.load(source.dataset, folder)
    if source.task == "multilabel" and found.task == "multiclass":
        return as_labels(found)
    if source.task != found.task:
        raise ValueError(
            f"the dataset {source.dataset!r} is {found.task} and cannot be run as {source.task}"
        )
    return found


def make(made: Any) -> Estimates:
    """Made-up data, by the name of what makes them and its options."""
    options = dict(made)
    generator = options.pop("by", None)
    check_choice("made data", "by", generator, GENERATORS)
    draw, seed = getattr(datasets, generator), options.pop("seed", 0)
    drawn = (draw(**options, seed=one) for one in (seed, seed + 1))
    batch, train = (Batch.read("made data", eta, y).ready() for eta, y in drawn)
    return Estimates(batch, train)


def as_labels(given: Dataset) -> Dataset:
    """The same data with an indicator for each class."""
    ones = np.ones(given.n, dtype=np.int8)
    y = sparse.csr_array((ones, given.y, np.arange(given.n + 1)), shape=(given.n, given.m))
    return Dataset(given.name, "multilabel", given.X, y, given.split, given.labels)


def checksum(given: Dataset) -> str:
    """Of all numbers, so that other data under the same name are not mistaken for these."""
    sums = [zlib.crc32(part) for array in (given.X, given.y) for part in _buffers(array)]
    return "-".join([f"{one:08x}" for one in sums] + [str(given.split)])


def _buffers(array: Any) -> list[Any]:
    if sparse.issparse(array):
        return [array.data, array.indices, array.indptr]
    return [np.ascontiguousarray(array)]


@dataclass(frozen=True)
class Stored:
    """Arrays, dense or CSR, what the estimator said, and how long it took."""

    arrays: Mapping[str, Any]
    report: dict[str, Any]
    seconds: float


class Desk:
    """Gives out estimates: from memory, from its folder, or from the estimator."""

    def __init__(
        self, data: Path | None, folder: Path, report: Callable[[str], None] | None = None
    ) -> None:
        self.data = data
        self.folder = folder
        self.report = report
        self._lock = Lock()
        self._held: dict[Any, Any] = {}

    def dataset(self, source: Source) -> Dataset | Estimates:
        """The data of a source."""
        key = ("data", source.dataset, source.task, repr(source.made))
        return self._once(key, lambda: load(source, self.data))

    def absent(self, sources: Iterable[Source]) -> dict[str, str]:
        """A sentence for each dataset that is not there."""
        found: dict[str, str] = {}
        for source in {repr(one): one for one in sources}.values():
            try:
                self.dataset(source)
            except FileNotFoundError as error:
                found[source.dataset] = str(error)
        return found

    def estimates(self, source: Source, seed: int) -> Estimates:
        """What a run decides on; with an online estimator, each seed has its own."""
        given = self.dataset(source)
        if source.estimator["name"] == KNOWN:
            return _known(source, given)
        if isinstance(given, Estimates):
            raise ValueError(
                f"the dataset {source.dataset!r} has no features: its estimator must be {KNOWN!r}"
            )
        if source.protocol == "online":
            return self._once((repr(source), seed), lambda: self._online(source, given, seed))
        return self._once(repr(source), lambda: self._fixed(source, given))

    def _once(self, key: Any, make: Callable[[], Found]) -> Found:
        """Made by one thread while others wait: an estimator uses all cores by itself."""
        with self._lock:
            if key not in self._held:
                self._held[key] = make()
                for old in list(self._held)[: -2 * HELD]:
                    del self._held[old]
            found: Found = self._held[key]
            return found

    def _fixed(self, source: Source, given: Dataset) -> Estimates:
        train, test = given.parts(seed=SPLIT_SEED, test=TEST)
        if source.max_train is not None and source.max_train < train.n:
            order = np.random.default_rng(SPLIT_SEED).permutation(train.n)
            train = train.take(np.sort(order[: source.max_train]))
        found = self._kept(source, given, {}, partial(_fit, source, train, test))
        report = {**found.report, "train_rows": train.n}
        return Estimates(
            _batch(found.arrays["eta"], test),
            _batch(found.arrays["train"], train),
            report,
            found.seconds,
        )

    def _online(self, source: Source, given: Dataset, seed: int) -> Estimates:
        order = np.random.default_rng(seed).permutation(given.n)
        rows = replace(given, X=given.X[order], y=given.y[order], split=None)
        found = self._kept(source, given, {"seed": seed}, partial(_along, source, rows))
        batch = _batch(found.arrays["eta"], rows)
        return Estimates(batch, None, found.report, found.seconds, ordered=True)

    def _kept(
        self, source: Source, given: Dataset, more: dict[str, Any], make: Callable[[], Made]
    ) -> Stored:
        known_by = {
            "source": source.spec,
            "data": checksum(given),
            "versions": versions(),
            **more,
        }
        text = json.dumps(known_by, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        estimator = source.estimator["name"]
        path = self.folder / f"{Path(source.dataset).name}-{estimator}-{digest}.npz"
        found = _read(path)
        if found is None:
            if self.report is not None:
                rows = f"{given.n:,} rows"
                self.report(f"Estimating {source.dataset} by {estimator}, {rows}")
            started = time.perf_counter()
            arrays, said = make()
            found = Stored(arrays, dict(said), time.perf_counter() - started)
            _write(path, found)
        return found


def _write(path: Path, kept: Stored) -> None:
    """Write all, or nothing; without pickles."""
    said = json.dumps({"report": kept.report, "seconds": kept.seconds}, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    npz.write(path, {"said": said, **kept.arrays})


def _read(path: Path) -> Stored | None:
    """What was kept; nothing where there is no such file, or half of one."""
    if not path.exists():
        return None
    try:
        with npz.opened(path) as archive:
            said = archive.json("said")
            arrays: dict[str, Any] = {}
            for name in NAMES:
                if name in archive:
                    arrays[name] = archive.array(name)
                elif f"{name}_indptr" in archive:
                    arrays[name] = archive.csr(name)
            return Stored(arrays, dict(said["report"]), float(said["seconds"]))
    except (ValueError, KeyError, TypeError):
        return None


def _batch(eta: Any, given: Dataset) -> Batch:
    """Probabilities with the labels of a part of the data, and their names."""
    names = None if given.labels is None else tuple(given.labels)
    return replace(Batch.read("the study", eta, given.y).ready(), names=names)


def _fit(source: Source, train: Dataset, test: Dataset) -> Made:
    # The training part may lack classes that the test part has.
    more = {"n_labels": train.m} if train.task == "multiclass" else {}
    fitted = make_estimator(source.estimator).fit(train.X, train.y, **more)
    arrays = {"eta": fitted.predict_proba(test.X), "train": fitted.predict_proba(train.X)}
    return arrays, fitted.report


def _along(source: Source, rows: Dataset) -> Made:
    eta, report = make_estimator(source.estimator).estimates(rows.X, rows.y)
    return {"eta": eta}, report


def _known(source: Source, given: Dataset | Estimates) -> Estimates:
    """Probabilities that labels were drawn with."""
    if not isinstance(given, Estimates):
        raise ValueError(
            f"the probabilities of the dataset {source.dataset!r} are not known: it needs an "
            f"estimator other than {KNOWN!r}"
        )
    return replace(given, train=None) if source.protocol == "online" else given

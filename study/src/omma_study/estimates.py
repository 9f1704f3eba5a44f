"""Datasets of a study and estimates of their probabilities, made once and shared by all runs."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import joblib
import numpy as np

import omma
from omma.datasets import Dataset, long_tail
from omma_study.checks import choice
from omma_study.config import KNOWN, Source, make_estimator
from omma_study.datasets import like, load
from omma_study.estimators.linear import indicators
from omma_study.records import versions

# Generators of synthetic data by the name that suites use.
GENERATORS: dict[str, Callable[..., Any]] = {"like": like, "long_tail": long_tail}
TEST = 0.3  # the share of test rows where there is no split, as in the paper
# Sequences are shuffled by their own seeds; the split is the same for all.
SPLIT_SEED = 0
IN_MEMORY = 4  # datasets and estimates; runs are ordered by source, so few are needed


@dataclass(frozen=True)
class Estimates:
    """Probabilities and labels of the rows that policies decide.

    ``train`` holds those of the training part, for policies that are fitted: by the estimator that
    was fitted to the same rows or, for synthetic data, another draw. Online there is none. If the
    estimator learned along the sequence, the rows are ``ordered`` as in that sequence.
    """

    eta: Any
    y: Any
    train: tuple[Any, Any] | None = None  # eta and y
    names: Sequence[str] | None = None  # of labels
    report: Mapping[str, Any] = field(default_factory=dict)  # of the estimator
    seconds: float = 0.0
    ordered: bool = False

    @cached_property
    def batch(self) -> omma.Batch:
        """The rows, converted once for all runs."""
        return omma.Batch.of(self.eta, self.y)


def _fitted(estimator: Any, train: Dataset, test: Dataset, versions: Any) -> Estimates:
    """Estimates of the test part, by an estimator that is fitted to the training part."""
    started = time.perf_counter()
    # The training part may lack classes that the test part has.
    options = {"n_labels": train.m} if train.task == "multiclass" else {}
    model = make_estimator(estimator).fit(train.X, train.y, **options)
    eta, train_eta = model.predict_proba(test.X), model.predict_proba(train.X)
    report, seconds = {**model.report, "train_rows": train.n}, time.perf_counter() - started
    return Estimates(eta, test.y, (train_eta, train.y), test.labels, report, seconds)


def _along(estimator: Any, rows: Dataset, versions: Any) -> Estimates:
    """Estimates along a sequence, by an estimator that learns row by row."""
    started = time.perf_counter()
    eta, report = make_estimator(estimator).estimates(rows.X, rows.y)
    seconds = time.perf_counter() - started
    return Estimates(eta, rows.y, None, rows.labels, report, seconds, ordered=True)


class EstimateCache:
    """Estimates, kept in memory and in a folder."""

    def __init__(
        self, data: str | Path | None, folder: Path, report: Callable[[str], None] | None = None
    ) -> None:
        self.data = data
        self.report = report
        # A study that is resumed, and other suites, read estimates from this folder.
        memory = joblib.Memory(folder, verbose=0)
        self._fitted, self._along = memory.cache(_fitted), memory.cache(_along)
        self._lock = RLock()
        self._latest: dict[str, Any] = {}

    def missing(self, sources: Iterable[Source]) -> dict[str, str]:
        """A sentence for each dataset that is not there."""
        sentences: dict[str, str] = {}
        # Sources are not hashable, as options are dictionaries.
        for source in {repr(source): source for source in sources}.values():
            try:
                self.dataset(source)
            except FileNotFoundError as error:
                sentences[source.dataset] = str(error)
        return sentences

    def dataset(self, source: Source) -> Dataset | Estimates:
        """The data of a source; classes become labels if the task is multi-label."""
        key = f"{source.dataset} {source.task} {source.made}"
        return self.once(key, lambda: self._load(source))

    def estimates(self, source: Source, seed: int) -> Estimates:
        """The estimates for a run; with an online estimator, each seed has its own."""
        data = self.dataset(source)
        known = source.estimator["name"] == KNOWN
        # Synthetic data come with their probabilities; real data need an estimator.
        if known != isinstance(data, Estimates):
            raise ValueError(
                f"the estimator of {source.dataset!r} must {'not ' * known}be {KNOWN!r}: its "
                f"probabilities are {'not ' * known}known"
            )
        if isinstance(data, Estimates):
            return replace(data, train=None) if source.protocol == "online" else data
        online = source.protocol == "online"
        key = f"{source} {seed}" if online else f"{source}"
        return self.once(key, lambda: self._estimated(source, data, seed if online else None))

    def _estimated(self, source: Source, data: Dataset, seed: int | None) -> Estimates:
        """Estimates along the sequence of a seed or, without a seed, of the test part."""
        if seed is not None:
            rows = data.take(np.random.default_rng(seed).permutation(data.n))
            return self._call(self._along, source, rows)
        train, test = data.parts(seed=SPLIT_SEED, test=TEST)
        if source.max_train is not None and source.max_train < train.n:
            # The rows that are drawn keep their order.
            order = np.random.default_rng(SPLIT_SEED).permutation(train.n)
            train = train.take(np.sort(order[: source.max_train]))
        return self._call(self._fitted, source, train, test)

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """The value of a key, from memory or made now; only one thread at a time makes any.

        An estimator uses all cores by itself.
        """
        with self._lock:
            value = self._latest.pop(key) if key in self._latest else make()
            self._latest[key] = value  # at the end, as the least recently used goes first
            for old in list(self._latest)[:-IN_MEMORY]:
                del self._latest[old]
            return value

    def _call(self, cached: Any, source: Source, *parts: Dataset) -> Any:
        # joblib finds results by arguments and code. Other versions of packages round differently.
        arguments = (dict(source.estimator), *parts, versions())
        if self.report is not None and not cached.check_call_in_cache(*arguments):
            rows = f"{sum(part.n for part in parts):,} rows"
            self.report(f"Estimating {source.dataset} by {source.estimator['name']}, {rows}")
        return cached(*arguments)

    def _load(self, source: Source) -> Dataset | Estimates:
        if source.made:
            options = dict(source.made)
            draw = GENERATORS[choice("by of made-up data", options.pop("by", None), GENERATORS)]
            seed = options.pop("seed", 0)
            eta, y = draw(**options, seed=seed)
            # Another draw is the training part of policies that are fitted.
            return Estimates(eta, y, train=draw(**options, seed=seed + 1))
        data = load(source.dataset, self.data)
        if source.task == "multilabel" and data.task == "multiclass":
            return replace(data, task="multilabel", y=indicators(data.y, data.m))
        if source.task != data.task:
            raise ValueError(
                f"the dataset {source.dataset!r} is {data.task} and cannot be run as {source.task}"
            )
        return data

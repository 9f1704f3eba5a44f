"""What is run: sets, estimators, distortions and metrics, and everybody on the same sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

from omma._validate import nearest
from omma.comparison.protocol import PRIORS
from omma.evaluation import replay
from omma.metrics import Metric, metric as find_metric
from omma.policies import OMMA, ROSTER, Auto, Policy
from omma.rows.batch import Batch
from omma.study.auto.distort import AS_IS, DISTORTIONS, distorted
from omma.study.bench import CACHE, Performed
from omma.study.estimates import Desk
from omma.study.jobs import Job, Outcome, perform
from omma.study.suite import SEEDS, Source
from omma.tables import plain

SUITE = "auto"
USUAL_PRIOR = 1e-6
TREES = "boosted"

_MULTILABEL: Mapping[str, Any] = {"name": "logistic", "C": 1.0}
_MANY: Mapping[str, Any] = {"name": "logistic", "C": 1.0, "solver": "newton"}
_TEXT: Mapping[str, Any] = {"name": "logistic", "C": 10.0, "solver": "newton"}
_CLASSES: Mapping[str, Any] = {"name": "multinomial", "C": 1.0}
_TREES: Mapping[str, Any] = {"name": TREES, "rounds": 20}
SOURCES = (  # the quickest first: an early end leaves whole sets
    Source("yeast", "multilabel", "fixed", _MULTILABEL),
    Source("yeast", "multilabel", "fixed", _TREES),
    Source("mammography", "binary", "fixed", _MULTILABEL),
    Source("mammography", "binary", "fixed", _TREES),
    Source("rcv1_subsets", "multilabel", "fixed", _TEXT),
    Source("news20", "multiclass", "fixed", {"name": "multinomial", "C": 10.0}),
    Source("kddcup99", "multiclass", "fixed", _CLASSES, max_train=20_000),
    Source("kddcup99", "multiclass", "fixed", _TREES, max_train=20_000),
    Source("youtube_deepwalk", "multilabel", "fixed", _MULTILABEL),
    Source("youtube_deepwalk", "multilabel", "fixed", _TREES, max_train=8000),
    Source("imdb", "multilabel", "fixed", _MULTILABEL),
    Source("delicious", "multilabel", "fixed", _MANY),
    Source("eurlex4k", "multilabel", "fixed", {**_TEXT, "truncate": 0.01, "keep": 100}),
    Source("covtype", "multiclass", "fixed", _CLASSES, max_train=60_000),
    Source("covtype", "multiclass", "fixed", _TREES, max_train=20_000),
)
DATASETS = tuple(dict.fromkeys(one.dataset for one in SOURCES))
METRICS: dict[str, tuple[tuple[str, int | None], ...]] = {
    "multilabel": (
        ("micro_f1", None),
        ("macro_f1", None),
        ("macro_f1", 3),
        ("macro_recall", 3),
        ("macro_precision", 3),
        ("macro_gmean", None),
        ("macro_hmean", None),
    ),
    "multiclass": (
        ("macro_f1", 1),
        ("macro_f1", 3),
        ("macro_recall", 3),
        ("macro_precision", 3),
        ("multiclass_gmean", None),
        ("multiclass_hmean", None),
        ("multiclass_qmean", None),
    ),
    "binary": (("f1", None), ("mcc", None), ("gmean", None), ("hmean", None)),
}


def contenders(metric: Metric, k: int | None, priors: Sequence[float]) -> dict[str, Policy]:
    """Everybody that decides a cell, by name: a λ follows the name where it was chosen."""
    budget = 1 if metric.multiclass else k
    found = {"baseline": ROSTER["baseline"].policy(metric, budget, 0.0)}
    for prior in priors:
        found[f"omma {plain(prior)}"] = OMMA(metric, k, prior=prior)
        found[f"omma_eta {plain(prior)}"] = OMMA(metric, k, "estimates", prior)
    found["both"] = OMMA(metric, k, "both")
    found["calibrated"] = OMMA(metric, k, "estimates", calibration="online")
    found["auto"] = Auto(metric, k)
    return found


def distortions_of(source: Source) -> tuple[str, ...]:
    """Trees are off by themselves; they are taken as they come."""
    return (AS_IS,) if source.estimator["name"] == TREES else tuple(DISTORTIONS)


@dataclass(frozen=True)
class Plan:
    """How much is run."""

    sources: tuple[Source, ...]
    seeds: int = SEEDS
    priors: tuple[float, ...] = PRIORS

    def specs(self) -> Iterator[tuple[Source, dict[str, Any]]]:
        """All runs; distortions come outermost, so that each is made once."""
        for source in self.sources:
            for distortion in distortions_of(source):
                for seed in range(self.seeds):
                    for metric, k in METRICS[source.task]:
                        yield (
                            source,
                            {
                                **source.spec,
                                "distortion": distortion,
                                "metric": metric,
                                "k": k,
                                "priors": list(self.priors),
                                "seed": seed,
                            },
                        )


def size() -> int:
    """How many records a whole run leaves."""
    return sum(1 for _ in Plan(SOURCES).specs())


def run(
    out: str | Path,
    *,
    data: str | Path | None = None,
    datasets: Iterable[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    sources: Sequence[Source] = SOURCES,
    n_jobs: int = 1,
    progress: bool | Callable[[int, int], None] = False,
    report: Callable[[str], None] | None = None,
) -> Performed:
    """Perform all that has no record yet, and keep a record of each sequence of each cell.

    Parameters
    ----------
    out : path
        Where records go; estimates are kept in its folder ``estimates``.
    data : path, optional
        The folder of data; default what the environment variable ``OMMA_DATA`` names. Sets that are
        not there are left out, with a sentence each.
    datasets : iterable of str, optional
        These sets only.
    seeds : int, optional
        How many sequences; default 5.
    quick : bool
        One sequence and one λ: a first look.
    sources : sequence of Source
        What to run on, where not on the sets of the suite.
    n_jobs, progress, report
        As for ``omma.study.run``.
    """
    chosen = _chosen(tuple(sources), datasets)
    wanted = seeds if seeds is not None else 1 if quick else SEEDS
    bench = Bench(Desk(None if data is None else Path(data), Path(out) / CACHE, report))
    skipped = bench.desk.absent(chosen)
    kept = tuple(one for one in chosen if one.dataset not in skipped)
    plan = Plan(kept, wanted, (USUAL_PRIOR,) if quick else PRIORS)
    jobs = [
        Job(SUITE, spec, "Auto", partial(bench.run, source, spec), kind="auto")
        for source, spec in plan.specs()
    ]
    return Performed(perform(jobs, out, n_jobs=n_jobs, progress=progress, report=report), skipped)


def _chosen(sources: tuple[Source, ...], datasets: Iterable[str] | None) -> tuple[Source, ...]:
    if datasets is None:
        return sources
    wanted, known = list(datasets), list(dict.fromkeys(one.dataset for one in sources))
    for one in wanted:
        if one not in known:
            hint = nearest(one, known) or f"; it has {', '.join(known)}"
            raise ValueError(f"the suite {SUITE!r} has no dataset {one!r}{hint}")
    return tuple(one for one in sources if one.dataset in wanted)


class Bench:
    """Where cells are run; the rows of the last distortion are kept for the next run."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._lock = Lock()
        self._held: tuple[Any, Batch] | None = None

    def run(self, source: Source, spec: Mapping[str, Any]) -> Outcome:
        """Everybody on one sequence of one cell."""
        batch = self._rows(source, spec["distortion"])
        metric, started = find_metric(spec["metric"]), perf_counter()
        values = {
            name: replay(
                policy, batch, metric=metric, seed=spec["seed"], predictions=False, checkpoints=0
            ).value
            for name, policy in contenders(metric, spec["k"], spec["priors"]).items()
        }
        result = {"values": values, "rows": batch.n, "labels": batch.m}
        return Outcome(result, {"run": perf_counter() - started})

    def _rows(self, source: Source, distortion: str) -> Batch:
        key = (repr(source), distortion)
        with self._lock:
            if self._held is None or self._held[0] != key:
                given = self.desk.estimates(source, 0)
                self._held = key, distorted(given.batch, distortion)
            return self._held[1]

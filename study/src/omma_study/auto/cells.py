"""What is run: sets, estimators, distortions and metrics, and everybody on the same sequences."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from omma._validate import nearest
from omma.comparison.protocol import PRIORS
from omma.evaluation import replay
from omma.metrics import Metric, metric as find_metric
from omma.metrics.target import parse_target
from omma.policies import OMMA, ROSTER, Auto, Policy
from omma.rows.batch import Batch
from omma.tables import plain
from omma_study.bench import CACHE, Job, Outcome, Performed, perform
from omma_study.estimates import Desk
from omma_study.suite import SEEDS, Source

Floats = NDArray[np.float64]
NEAR = 1e-7
SPREAD = 3.0  # powers of labels are from a third to three
POWERS_SEED = 0


def _moved(scale: float, shift: float, values: Floats, places: Any, m: int) -> Floats:
    """Logits that are scaled and shifted."""
    near = np.clip(values, NEAR, 1.0 - NEAR)
    found: Floats = expit(scale * (np.log(near) - np.log1p(-near)) + shift)
    return found


def _powers(values: Floats, places: Any, m: int) -> Floats:
    """A random power for each label: not of the shape of any logistic calibration."""
    drawn = np.random.default_rng(POWERS_SEED).uniform(-1.0, 1.0, m)
    found: Floats = values ** (SPREAD ** drawn[places])
    return found


AS_IS = "as is"
DISTORTIONS: dict[str, Callable[[Floats, Any, int], Floats] | None] = {
    AS_IS: None,
    "logits × 0.5": partial(_moved, 0.5, 0.0),
    "logits × 2": partial(_moved, 2.0, 0.0),
    "logits + 1.5": partial(_moved, 1.0, 1.5),
    "logits − 1.5": partial(_moved, 1.0, -1.5),
    "powers by label": _powers,
}


def distorted(batch: Batch, name: str) -> Batch:
    """The same rows and labels, probabilities moved; zeros stay zeros, as they are no candidates.

    >>> import omma
    >>> batch = omma.Batch.of([[0.5, 0.0]], [[1, 0]])
    >>> distorted(batch, "logits + 1.5").values.round(2)
    array([[0.82, 0.  ]])
    """
    change = DISTORTIONS[name]
    if change is None:
        return batch
    values = batch.values
    if sparse.issparse(values):
        moved = values.astype(np.float64)
        moved.data = np.where(values.data > 0, change(moved.data, values.indices, batch.m), 0.0)
    else:
        table = np.asarray(values, dtype=np.float64).reshape(batch.n, batch.m)
        moved = np.where(table > 0, change(table, np.arange(batch.m), batch.m), 0.0)
        moved = moved.reshape(values.shape)
    read = Batch.read("the study", moved)
    return replace(batch, eta=read.eta, close=read.close).ready()


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
METRICS = {
    "multilabel": (
        "micro_f1", "macro_f1", "macro_f1@3", "macro_recall@3", "macro_precision@3",
        "macro_gmean", "macro_hmean",
    ),
    "multiclass": (
        "macro_f1@1", "macro_f1@3", "macro_recall@3", "macro_precision@3",
        "multiclass_gmean", "multiclass_hmean", "multiclass_qmean",
    ),
    "binary": ("f1", "mcc", "gmean", "hmean"),
}  # fmt: skip


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


def specs(
    sources: Iterable[Source], seeds: int = SEEDS, priors: Sequence[float] = PRIORS
) -> Iterator[tuple[Source, dict[str, Any]]]:
    """All runs; distortions come outermost, so that each is made once."""
    for source in sources:
        # Trees are off by themselves; they are taken as they come.
        told = (AS_IS,) if source.estimator["name"] == TREES else DISTORTIONS
        targets = map(parse_target, METRICS[source.task])
        for distortion, seed, (metric, k) in product(told, range(seeds), targets):
            yield (
                source,
                {
                    **source.spec,
                    "distortion": distortion,
                    "metric": metric,
                    "k": k,
                    "priors": list(priors),
                    "seed": seed,
                },
            )


def size() -> int:
    """How many records a whole run leaves."""
    return sum(1 for _ in specs(SOURCES))


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
        As for ``omma_study.run``.
    """
    chosen = _chosen(tuple(sources), datasets)
    wanted = seeds if seeds is not None else 1 if quick else SEEDS
    bench = Bench(Desk(None if data is None else Path(data), Path(out) / CACHE, report))
    skipped = bench.desk.absent(chosen)
    kept = [one for one in chosen if one.dataset not in skipped]
    jobs = [
        Job(SUITE, spec, "Auto", partial(bench.run, source, spec), kind="auto")
        for source, spec in specs(kept, wanted, (USUAL_PRIOR,) if quick else PRIORS)
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

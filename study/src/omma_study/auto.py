"""``omma.Auto`` against OMMA with every feedback and λ, probabilities as they are and distorted.

A cell is a dataset, a distortion of its probabilities and a metric; its values are means over
sequences. ``Auto`` is judged by the better of OMMA and OMMA(η̂) with the usual λ.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import expit, logit

import omma
from omma_study.checks import choice
from omma_study.config import PRIORS, SEEDS, Source, read_target
from omma_study.estimates import EstimateCache
from omma_study.paper import title
from omma_study.policies import POLICIES
from omma_study.records import Record
from omma_study.runs import CACHE, Job, Progress, Summary, perform
from omma_study.tables import Table, plain
from omma_study.verdicts import judged, lost_cells, means

SUITE = "auto"
TITLE = "Auto against OMMA with every feedback and λ, probabilities as they are and distorted"
USUAL_PRIOR = 1e-6
TREES = "boosted"
LEAST = 1e-7  # probabilities are clipped to this distance from 0 and 1 before their logit
AS_IS = "as is"
OF_TREES = "boosted trees as they come"
# Constants of Auto were chosen on these sets, before the grid was run.
DESIGN = ("yeast", "youtube_deepwalk", "rcv1_subsets", "news20", "covtype")
LABELS, ESTIMATES = f"omma {plain(USUAL_PRIOR)}", f"omma_eta {plain(USUAL_PRIOR)}"

_LINEAR = {"name": "logistic", "C": 1.0}
_TEXT = {"name": "logistic", "C": 10.0}
_CLASSES = {"name": "multinomial", "C": 1.0}
_TREES = {"name": TREES, "rounds": 20}
SOURCES = (  # the quickest first: an early end leaves whole sets
    Source("yeast", "multilabel", "fixed", _LINEAR),
    Source("yeast", "multilabel", "fixed", _TREES),
    Source("mammography", "binary", "fixed", _LINEAR),
    Source("mammography", "binary", "fixed", _TREES),
    Source("rcv1_subsets", "multilabel", "fixed", _TEXT),
    Source("news20", "multiclass", "fixed", {**_CLASSES, "C": 10.0}),
    Source("kddcup99", "multiclass", "fixed", _CLASSES, max_train=20_000),
    Source("kddcup99", "multiclass", "fixed", _TREES, max_train=20_000),
    Source("youtube_deepwalk", "multilabel", "fixed", _LINEAR),
    Source("youtube_deepwalk", "multilabel", "fixed", _TREES, max_train=8000),
    Source("imdb", "multilabel", "fixed", _LINEAR),
    Source("delicious", "multilabel", "fixed", _LINEAR),
    Source("eurlex4k", "multilabel", "fixed", {**_TEXT, "truncate": 0.01, "keep": 100}),
    Source("covtype", "multiclass", "fixed", _CLASSES, max_train=60_000),
    Source("covtype", "multiclass", "fixed", _TREES, max_train=20_000),
)
DATASETS = tuple(dict.fromkeys(source.dataset for source in SOURCES))
# Those of the paper's tables; of one label, the usual ones.
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


def _logits(scale: float, shift: float, eta: Any, labels: Any, m: int) -> Any:
    return expit(scale * logit(np.clip(eta, LEAST, 1.0 - LEAST)) + shift)


def _powers(eta: Any, labels: Any, m: int) -> Any:
    """A random power from 1/3 to 3 for each label: not the shape of a logistic calibration."""
    return eta ** (3.0 ** np.random.default_rng(0).uniform(-1.0, 1.0, m)[labels])


DISTORTIONS: dict[str, Callable[..., Any]] = {
    AS_IS: lambda eta, labels, m: eta,
    "logits × 0.5": partial(_logits, 0.5, 0.0),
    "logits × 2": partial(_logits, 2.0, 0.0),
    "logits + 1.5": partial(_logits, 1.0, 1.5),
    "logits − 1.5": partial(_logits, 1.0, -1.5),
    "powers by label": _powers,
}


def distorted(eta: Any, name: str) -> Any:
    """Distorted probabilities; zeros stay zeros, as such labels are no candidates.

    >>> distorted(np.array([[0.5, 0.0]]), "logits + 1.5").round(2)
    array([[0.82, 0.  ]])
    """
    change = DISTORTIONS[name]
    if sparse.issparse(eta):
        moved = eta.astype(np.float64)
        moved.data = np.where(eta.data > 0, change(moved.data, eta.indices, eta.shape[1]), 0.0)
        return moved
    # Columns are labels; one label may come as a vector.
    table = np.atleast_2d(np.asarray(eta, dtype=np.float64).T).T
    m = table.shape[1]
    return np.where(table > 0, change(table, np.arange(m), m), 0.0).reshape(np.shape(eta))


def contenders(target: str, priors: Sequence[float]) -> dict[str, omma.Policy]:
    """The policies of a cell by name; λ follows the name where it was chosen."""
    metric, k = read_target(target)
    policies: dict[str, omma.Policy] = {"baseline": POLICIES["baseline"].make(metric, k, 0.0)}
    for prior in priors:
        policies[f"omma {plain(prior)}"] = omma.OMMA(metric, k, prior=prior)
        policies[f"omma_eta {plain(prior)}"] = omma.OMMA(metric, k, "estimates", prior)
    # Two parts of Auto, each by itself.
    policies["both"] = omma.OMMA(metric, k, "both")
    policies["calibrated"] = omma.OMMA(metric, k, "estimates", calibration="online")
    policies["auto"] = omma.Auto(metric, k)
    return policies


def specs(
    sources: Iterable[Source], seeds: int = SEEDS, priors: Sequence[float] = PRIORS
) -> Iterator[tuple[Source, dict[str, Any]]]:
    """All runs; distortions come before seeds, so that each is made once."""
    for source in sources:
        # Probabilities of trees are wrong already and are not distorted.
        names = (AS_IS,) if source.estimator["name"] == TREES else DISTORTIONS
        for distortion, seed, target in product(names, range(seeds), METRICS[source.task]):
            metric, _, k = target.partition("@")
            cell = {"distortion": distortion, "metric": metric, "k": int(k) if k else None}
            yield source, {**source.spec, **cell, "priors": list(priors), "seed": seed}


def run_cell(cache: EstimateCache, source: Source, spec: Mapping[str, Any]) -> dict[str, Any]:
    """All policies on one sequence of one cell."""

    def distort() -> omma.Batch:
        estimates = cache.estimates(source, 0)
        return omma.Batch.of(distorted(estimates.eta, spec["distortion"]), estimates.y)

    batch = cache.once(f"{source} {spec['distortion']}", distort)
    started = perf_counter()
    options: dict[str, Any] = {"seed": spec["seed"], "predictions": False, "checkpoints": 0}
    policies = contenders(title(spec["metric"], spec["k"]), spec["priors"])
    values = {
        name: omma.replay(policy, batch, metric=spec["metric"], **options).value
        for name, policy in policies.items()
    }
    result = {"values": values, "rows": batch.n, "labels": batch.m}
    return {"result": result, "seconds": {"run": perf_counter() - started}}


def run(
    out: str | Path,
    *,
    data: str | Path | None = None,
    datasets: Iterable[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
    sources: Sequence[Source] = SOURCES,
    n_jobs: int = 1,
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
) -> Summary:
    """Perform all runs without a record; ``quick`` is one sequence and one λ.

    ``datasets`` are those to run on, of ``sources``. The other options are those of
    ``omma_study.run``.
    """
    known = list(dict.fromkeys(source.dataset for source in sources))
    names = [choice(f"a dataset of {SUITE}", name, known) for name in datasets or known]
    cache = EstimateCache(data, Path(out) / CACHE, report)
    # A dataset may have several sources: a linear model, and trees.
    chosen = [source for source in sources if source.dataset in names]
    missing = cache.missing(chosen)
    available = [source for source in chosen if source.dataset not in missing]
    amount = seeds or (1 if quick else SEEDS), (USUAL_PRIOR,) if quick else PRIORS
    jobs = [
        Job(SUITE, spec, "Auto", partial(run_cell, cache, source, spec), kind="auto")
        for source, spec in specs(available, *amount)
    ]
    return perform(jobs, out, n_jobs=n_jobs, progress=progress, report=report, missing=missing)


def cells(records: Iterable[Record]) -> pd.DataFrame:
    """A row for each cell: the mean over sequences of each policy, and comparisons of these.

    ``better`` is the better of labels and estimates with the usual λ, ``hindsight`` the best λ
    and feedback, ``gain`` what ``Auto`` adds to the better one. Of a set that was run quickly and
    in full, the latter counts.
    """
    rows = [
        {
            "dataset": spec["dataset"],
            "distortion": OF_TREES if spec["estimator"]["name"] == TREES else spec["distortion"],
            "metric": title(spec["metric"], spec["k"]),
            "n_priors": len(spec["priors"]),
            "sequences": 1,
            **record["result"]["values"],
        }
        for record in records
        if record["kind"] == "auto" and record["result"]
        for spec in [record["spec"]]
    ]
    runs = pd.DataFrame(rows)
    keys = ["dataset", "distortion", "metric"]
    # A quick run has one λ; where there are full ones, they count alone.
    full = runs[runs["n_priors"] == runs.groupby(keys)["n_priors"].transform("max")]
    groups = full.drop(columns="n_priors").groupby(keys, sort=False)
    table = groups.mean().assign(sequences=groups["sequences"].sum()).reset_index()
    table = judged(table, LABELS, ESTIMATES)
    # Either feedback with any λ.
    table["hindsight"] = table[[name for name in table if name.startswith("omma")]].max(axis=1)
    table["design"] = table["dataset"].isin(DESIGN)
    # Tables list distortions as they are defined, not by the alphabet.
    order = {name: place for place, name in enumerate((*DISTORTIONS, OF_TREES))}
    return table.sort_values("distortion", key=lambda names: names.map(order), kind="stable")


def goals(cells: pd.DataFrame) -> pd.DataFrame:
    """The goals for ``Auto`` in the order in which they were set, and whether each holds."""
    as_is = cells.loc[cells["distortion"] == AS_IS, "gain"]
    below = "cells at most half a point below the better of OMMA and OMMA(η̂)"
    hindsight = (cells["auto"] - cells["hindsight"]).mean()
    goals = pd.DataFrame(
        [
            (below, 95.0, 100 * (~cells["lost"]).mean(), "%"),
            ("mean gain over the better of the two", 2.5, 100 * cells["gain"].mean(), "points"),
            ("the same where probabilities are as they are", 0.5, 100 * as_is.mean(), "points"),
            ("mean difference to the best λ and feedback in hindsight", 0.0, 100 * hindsight,
             "points"),
        ],
        columns=["goal", "target", "reached", "unit"],
    )  # fmt: skip
    # If all probabilities were distorted, the third goal has no value.
    goals = goals.dropna()
    # What is shown decides: two digits.
    return goals.assign(holds=goals["reached"].round(2) >= goals["target"])


COLUMNS = {
    "baseline": "0.5 / top-k",
    LABELS: "OMMA",
    ESTIMATES: "OMMA(η̂)",
    "better": "better of both",
    "hindsight": "best λ, either",
    "both": "both",
    "calibrated": "calibrated",
    "auto": "Auto",
}


def tables(records: list[Record]) -> list[Table]:
    """Goals, means by distortion, by metric and by set, and the lost cells."""
    if not any(record["kind"] == "auto" and record["result"] for record in records):
        return []
    all_cells = cells(records)
    design = all_cells["design"]
    parts = {"all sets": all_cells}
    if design.any() and not design.all():
        parts |= {"sets of the design": all_cells[design], "other sets": all_cells[~design]}
    tables = [_goals_table(name, part) for name, part in parts.items()]
    by_set = all_cells.rename(columns={"dataset": "set"})
    for head in ("distortion", "metric", "set"):
        frame = means(by_set, head, COLUMNS, lambda group: {"lost": str(group["lost"].sum())})
        tables.append(Table(f"Means by {head}, in %", frame))
    if all_cells["lost"].any():
        columns = {name: COLUMNS[name] for name in (LABELS, ESTIMATES, "auto")}
        tables.append(lost_cells(by_set, ["set", "distortion", "metric"], columns))
    return tables


def _goals_table(name: str, part: pd.DataFrame) -> Table:
    rows = [
        {
            "goal": line.goal,
            "to reach": f"{line.target:g} {line.unit}",
            "reached": f"{line.reached:.2f} {line.unit}",
            "": "yes" if line.holds else "no",
        }
        for line in goals(part).itertuples()
    ]
    return Table(f"Goals, {name} ({len(part)} cells)", pd.DataFrame(rows))

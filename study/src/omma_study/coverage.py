"""How often the intervals of ``omma.choose`` hold: simulation from probabilities of real models.

    python -m omma_study.coverage --data DATA --out RECORDS

DATA is the folder of the study's sets. A logistic model is fitted to a part of a set, and its
probabilities of other rows, the pool, are taken for the truth. Rows of the pool are drawn with
replacement and get labels by these probabilities. ``choose`` sees the rows with the probabilities
of the same model, which are then calibrated, or with those of a forest, which are not. The value
of the rule that it returns is known exactly: its expected counts over the pool.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import omma
from omma_study.config import read_target
from omma_study.records import Record, make, write
from omma_study.small import MODELS, dense, estimates, read_study
from omma_study.theory import Discrete

SUITE = "coverage"
FITTED, POOL = 5000, 20_000  # at most so many rows to fit models to, and to draw samples from
MOST_LABELS = 20
DRAWS = {200: 40, 500: 40, 2000: 20, 10_000: 12}  # simulated samples of each size in each cell
OF_BINARY = 2  # times as many draws: one label takes a fraction of the time
# The goals: at least this share of intervals holds; values are at most this much too high.
GOAL, GOAL_OPTIMISM = 0.93, {200: 0.01, 500: 0.005, 2000: 0.005, 10_000: 0.005}
# A set, and of a set with several labels or classes the one that is the binary problem.
SETS: dict[str, tuple[tuple[str, int | None], ...]] = {
    "binary": (("mammography", None), ("covtype", 4), ("yeast", 3)),
    "classes": (("covtype", None), ("news20", None)),
    "labels": (("yeast", None), ("imdb", None), ("youtube_deepwalk", None)),
}
# Metrics, each alone and under limits.
CELLS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "binary": (
        ("f1", None), ("mcc", None), ("gmean", None),
        ("f1", "recall >= 0.7"), ("recall", "predicted_rate <= 0.05"),
    ),
    "classes": (
        ("macro_f1@1", None), ("multiclass_gmean", None), ("multiclass_accuracy", None),
        ("multiclass_gmean", "multiclass_accuracy >= 0.6"),
    ),
    "labels": (
        ("micro_f1", None), ("macro_f1", None), ("macro_mcc", None), ("macro_f1@3", None),
        ("macro_recall@3", None), ("macro_precision@3", None),
        ("macro_f1", "labels_per_row <= 2"), ("macro_f1", "micro_precision >= 0.4"),
    ),
}  # fmt: skip


class Population(NamedTuple):
    """Rows that samples are drawn from: a model's probabilities, and the true distribution."""

    eta: NDArray[np.float64]
    truth: Discrete

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Probabilities and labels of n rows."""
        rows = rng.integers(len(self.eta), size=n)
        eta, y = self.eta[rows], self.truth.draw_labels(self.truth.points[rows], rng)
        if self.truth.multiclass:
            return eta, y.argmax(axis=1)
        return (eta, y) if self.truth.m > 1 else (eta[:, 0], y[:, 0])

    def counts(self, rule: omma.Rule) -> omma.Counts:
        """The expected counts of a rule, for one row."""
        return self.truth.counts_of(np.reshape(rule.predict(self.eta), self.eta.shape))


def populations(
    task: str, name: str, of: int | None, data: Path
) -> Iterator[tuple[str, Population]]:
    """The pool of a set, with probabilities of each model."""
    features, y = read_study(data / name)
    if of is not None:
        y = (y == of).astype(int) if y.ndim == 1 else y[:, of]
    elif y.ndim == 2:
        y = y[:, np.argsort(-y.sum(axis=0), kind="stable")[:MOST_LABELS]]
    order = np.random.default_rng(0).permutation(len(y))[: FITTED + POOL]
    part = min(FITTED, len(order) // 2)
    features, y = dense(features[order]), y[order]
    eta = {}
    for model_name in ("logistic", "forest"):
        values, _ = estimates(MODELS[model_name], features, y, part)
        eta[model_name] = values.reshape(len(values), -1)
    truth = Discrete(eta["logistic"], multiclass=task == "classes")
    for model_name, values in eta.items():
        yield model_name, Population(values, truth)


def simulate(
    population: Population, target: str, limit: str | None, n: int, draws: int
) -> dict[str, Any]:
    """The share of intervals that hold, and by how much values are too high on average."""
    metric, k = read_target(target)
    m = population.truth.m
    # The threshold 0.5 or, with a budget, the k most probable labels: what ``baseline`` is.
    simple = omma.Rule(np.ones(m), np.full(m, -0.5 if k is None else 0.0), k)
    simple_value = metric.value(population.counts(simple))
    # Samples of their own for each cell, so that means over cells tell more than those of one.
    rng = np.random.default_rng([n, *f"{target} {limit}".encode()])
    outcomes = []
    for seed in range(draws):
        eta, y = population.draw(n, rng)
        choice = omma.choose(eta, y, target, subject_to=limit, seed=seed)
        best, behind = choice.best, choice["baseline"]
        counts = population.counts(choice.rule)
        true = metric.value(counts)
        outcome = {
            "covered": _is_within(true, best.interval),
            "optimism": best.value - true,
            "out_of_fold": best.out_of_fold - true,  # of the value that was not corrected
            "width": best.interval[1] - best.interval[0],
        }
        if best.name != "baseline":
            outcome["lead_covered"] = _is_within(simple_value - true, behind.behind_interval)
        for status in best.limits:
            outcome["limit_covered"] = _is_within(status.limit.value(counts), status.interval)
        outcomes.append(outcome)
    means = pd.DataFrame(outcomes, dtype=float).mean().round(5)
    return {"draws": draws, **means.to_dict()}


def _is_within(value: float, ends: tuple[float, float]) -> bool:
    """Whether an interval holds a value, up to a rounding."""
    return ends[0] - 1e-9 <= value <= ends[1] + 1e-9


def run(data: Path, sizes: Iterable[int]) -> Iterator[Record]:
    """A record for each cell: a set, a model, a metric with its limit, and a number of rows."""
    for task, name, of in [(task, *part) for task, sets in SETS.items() for part in sets]:
        title = name if of is None else f"{name}, label {of}"
        draws_times = OF_BINARY if task == "binary" else 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # solvers that have not converged
            pools = list(populations(task, name, of, data))
        for (model, population), (target, limit), n in product(pools, CELLS[task], sizes):
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # rare labels may lack positives
                result = simulate(population, target, limit, n, DRAWS[n] * draws_times)
            spec = {"task": task, "set": title, "model": model, "metric": target,
                    "limit": limit, "rows": n}  # fmt: skip
            seconds = {"cpu": time.process_time() - start}
            yield make(SUITE, spec, "choose", kind=SUITE, result=result, seconds=seconds)


def cells(records: Iterable[Record]) -> pd.DataFrame:
    """A row for each cell."""
    return pd.DataFrame([{**record["spec"], **record["result"]} for record in records])


def mean(frame: pd.DataFrame, column: str) -> float:
    """The mean of a column over simulated samples; NaN where no cell has it."""
    known = frame.dropna(subset=[column])
    return float(np.average(known[column], weights=known["draws"])) if len(known) else np.nan


def summary(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Coverage in % and mean optimism in points for each number of rows; misses are bold.

    >>> cell = {"metric": "f1", "rows": 200, "draws": 40, "covered": 0.9, "optimism": 0.004}
    >>> summary(pd.DataFrame([cell]), ["metric"])["200 rows"].tolist()
    ['**90.0** / +0.4']
    """
    lines = []
    for names, group in frame.groupby(by, sort=False):
        line = dict(zip(by, names, strict=True))
        for rows, cell in group.groupby("rows"):
            covered, optimism = mean(cell, "covered"), mean(cell, "optimism")
            share, points = f"{100 * covered:.1f}", f"{100 * optimism:+.1f}"
            share = share if covered >= GOAL else f"**{share}**"
            points = points if abs(optimism) <= GOAL_OPTIMISM[int(rows)] else f"**{points}**"
            line[f"{rows:,} rows"] = f"{share} / {points}"
        lines.append(line)
    return pd.DataFrame(lines)


@click.command()
@click.option("--data", type=Path, required=True)
@click.option("--rows", type=int, multiple=True, default=list(DRAWS))
@click.option("--out", type=Path, required=True)
def main(data: Path, rows: tuple[int, ...], out: Path) -> None:
    """Run all cells, and write a record of each into a folder."""
    for record in run(data, rows):
        write(out, record)
        spec, result = record["spec"], record["result"]
        click.echo(f"{' '.join(str(part) for part in spec.values())}: {result}")


if __name__ == "__main__":
    main()

"""How often the intervals of ``omma.choose`` cover the truth, and how optimistic its values are.

Rows are drawn from a large pool of probabilities and labels; the truth is the metric of the chosen
rule on the whole pool. A pool of your own is an archive with ``eta`` and ``y``. Without one, labels
are drawn from known probabilities, and rules see these distorted and with noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

import omma
from benchmarks.measure import Table

Array = NDArray[Any]
POOL = 50_000


class Case(NamedTuple):
    """A kind of data, with what rules are chosen by."""

    kind: str
    metric: str
    subject_to: str | None = None


CASES = (
    Case("binary", "f1"),
    Case("binary", "mcc"),
    Case("binary", "gmean"),
    Case("binary", "f1", "precision >= 0.6"),
    Case("classes", "multiclass_gmean"),
    Case("classes", "multiclass_balanced_accuracy"),
    Case("classes", "macro_f1@1"),
    Case("labels", "macro_f1"),
    Case("labels", "micro_f1"),
    Case("labels", "macro_f1@3"),
    Case("labels", "macro_gmean"),
    Case("labels", "macro_precision@3"),
    Case("labels", "macro_f1", "micro_precision >= 0.5"),
    Case("labels", "micro_f1", "labels_per_row <= 2"),
)


def pool_of(kind: str, seed: int = 0) -> tuple[Array, Array]:
    """Probabilities as a model might give them, and labels."""
    rng = np.random.default_rng(seed)
    if kind == "classes":
        scores = rng.normal(size=(POOL, 6)) * 2.0 - 0.7 * np.arange(6)
        share = softmax(scores, axis=1).cumsum(axis=1)
        y = (rng.random((POOL, 1)) > share).sum(axis=1)
        return softmax(0.8 * scores + rng.normal(size=scores.shape) * 0.3, axis=1), y
    eta, y = omma.datasets.long_tail(n=POOL, m=3 if kind == "binary" else 20, seed=seed)
    noisy = expit(0.8 * logit(eta) + 0.3 * rng.normal(size=eta.shape) - 0.2)
    return (noisy[:, 2], y[:, 2]) if kind == "binary" else (noisy, y)


def judged(eta: Array, y: Array, case: Case, n: int, repeats: int) -> Array:
    """Means of: whether the intervals of value and lead cover, optimism, and width; in %."""
    results = []
    for seed in range(repeats):
        rows = np.random.default_rng(seed).choice(len(eta), n, replace=False)
        choice = omma.choose(eta[rows], y[rows], case.metric, subject_to=case.subject_to, seed=seed)
        k, m, best = choice.rule.k, choice.rule.m, choice.best
        simple = omma.Rule(np.ones(m), np.full(m, -0.5 if k is None else 0.0), k)
        truth, baseline = (value_of(rule, eta, y, case.metric) for rule in (choice.rule, simple))
        low, high = best.interval
        behind = choice["baseline"].behind_interval
        covers_lead = behind[0] - 1e-9 <= baseline - truth <= behind[1] + 1e-9
        results.append((low <= truth <= high, covers_lead, best.value - truth, high - low))
    return 100.0 * np.mean(results, axis=0)


def value_of(rule: omma.Rule, eta: Array, y: Array, name: str) -> float:
    """The metric of a rule on the whole pool."""
    metric, _ = omma.metrics.read_target(name)
    decided = rule.predict(eta.reshape(len(eta), -1))
    if y.ndim == 1 and rule.m > 1:
        return metric.value(omma.Counts.from_labels(y, decided.argmax(axis=1), n_labels=rule.m))
    return metric.value(omma.Counts.from_labels(y.reshape(len(y), -1), decided))


def coverage(
    repeats: int = 100,
    rows: tuple[int, ...] = (200, 500, 2000, 10_000),
    kinds: tuple[str, ...] = ("binary", "classes", "labels"),
    metric: str | None = None,
    pool: str | None = None,
    subject_to: str | None = None,
) -> Iterator[Table]:
    """A line for each case and number of rows; a pool of one's own needs a metric."""
    cases = [case for case in CASES if case.kind in kinds and metric in (None, case.metric)]
    if pool is not None:
        cases = [Case(Path(pool).stem, str(metric), subject_to)]
    table = Table("Intervals of choose", f"means of {repeats} draws, in % and points")
    for case in cases:
        if pool is None:
            eta, y = pool_of(case.kind)
        else:
            with np.load(pool) as archive:
                eta, y = archive["eta"], archive["y"]
        for n in rows:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                covered, leads, optimism, width = judged(eta, y, case, n, repeats)
            table.rows.append(
                {
                    "data": case.kind,
                    "metric": case.metric,
                    "limit": case.subject_to or "",
                    "rows": n,
                    "covered, %": round(covered, 1),
                    "lead, %": round(leads, 1),
                    "optimism": f"{optimism:+.2f}",
                    "width": round(width, 1),
                }
            )
    yield table

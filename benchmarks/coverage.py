"""How often the intervals of ``omma.choose`` cover the truth, and how optimistic its values are.

    python -m benchmarks.coverage [--repeats 100] [--rows 200 500] [--cases labels] [--metric f1]
    python -m benchmarks.coverage --pool pool.npz --metric macro_f1 [--subject-to "..."]

Rows are drawn from a large pool of probabilities and labels; the truth is the metric of the chosen
rule on the whole pool. A pool of your own is an archive with ``eta`` and ``y``. Without one, labels
are drawn from known probabilities, and rules see these distorted and with noise.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy.special import expit, logit, softmax

import omma

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


def coverage(eta: Array, y: Array, case: Case, n: int, repeats: int) -> Array:
    """Means of: whether the intervals of value and lead cover, optimism, and width; in %."""
    results = []
    for seed in range(repeats):
        rows = np.random.default_rng(seed).choice(len(eta), n, replace=False)
        choice = omma.choose(eta[rows], y[rows], case.metric, subject_to=case.subject_to, seed=seed)
        k, m, best = choice.rule.k, choice.rule.m, choice.best
        simple = omma.Rule(np.ones(m), np.full(m, -0.5 if k is None else 0.0), k)
        truth, other = (value_of(rule, eta, y, case.metric) for rule in (choice.rule, simple))
        low, high = best.interval
        behind = choice["baseline"].behind_interval
        covers_lead = behind[0] - 1e-9 <= other - truth <= behind[1] + 1e-9
        results.append((low <= truth <= high, covers_lead, best.value - truth, high - low))
    return 100.0 * np.mean(results, axis=0)


def value_of(rule: omma.Rule, eta: Array, y: Array, name: str) -> float:
    """The metric of a rule on the whole pool."""
    metric, _ = omma.metrics.read_target(name)
    decided = rule.predict(eta.reshape(len(eta), -1))
    if y.ndim == 1 and rule.m > 1:
        return metric.value(omma.Counts.from_labels(y, decided.argmax(axis=1), n_labels=rule.m))
    return metric.value(omma.Counts.from_labels(y.reshape(len(y), -1), decided))


def main() -> None:
    """Print a table, a line for each case and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 500, 2000, 10_000])
    parser.add_argument("--cases", nargs="+", default=["binary", "classes", "labels"])
    parser.add_argument("--pool", type=Path)
    parser.add_argument("--metric")
    parser.add_argument("--subject-to")
    options = parser.parse_args()
    cases = tuple(
        case
        for case in CASES
        if case.kind in options.cases and options.metric in (None, case.metric)
    )
    if options.pool is not None:
        cases = (Case(options.pool.stem, options.metric, options.subject_to),)
    warnings.simplefilter("ignore")
    console = Console(highlight=False, width=120)
    layout = "{:8} {:28} {:24} {:>7} {:>10} {:>8} {:>9} {:>6}"
    heads = ("data", "metric", "limit", "rows", "covered, %", "lead, %", "optimism", "width")
    console.print(layout.format(*heads))
    for case in cases:
        if options.pool is None:
            eta, y = pool_of(case.kind)
        else:
            with np.load(options.pool) as archive:
                eta, y = archive["eta"], archive["y"]
        for n in options.rows:
            covered, leads, optimism, width = coverage(eta, y, case, n, options.repeats)
            numbers = (f"{covered:.1f}", f"{leads:.1f}", f"{optimism:+.2f}", f"{width:.1f}")
            limit = case.subject_to or ""
            console.print(layout.format(case.kind, case.metric, limit, f"{n:,}", *numbers))


if __name__ == "__main__":
    main()

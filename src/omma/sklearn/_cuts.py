"""Cuts tuned on labels, for estimators whose probabilities are no probabilities.

A rule is the best one where probabilities are right, and calibration can only bend and shift them;
where that is not what is wrong, the cut that is best on labelled rows may be far better.
It may also fit the accidents of those rows: so it is worth what it gets on rows that it was not
tuned on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.metrics import LabelMetric, Macro, Metric
from omma.policies import OMMA, Auto, TunedThresholds
from omma.rows.batch import Batch
from omma.rule import Rule

CUTS = 200  # tried at most between two classes: more would tell apart no more than accidents


def tuned_rule(policy: OMMA | Auto, sample: Batch) -> Rule | None:
    """The rule with the best cuts for the sample; None where cuts do not make a rule."""
    metric = policy.objective
    if policy.feedback == "estimates" or not metric.compiles:
        return None
    if policy.budget is None and isinstance(metric, Macro | LabelMetric):
        return TunedThresholds(metric).fit(sample).decision
    if policy.budget == 1 and sample.m == 2 and not sample.thin and sample.class_ids:
        cut = _best_cut(metric, sample.values[:, 1], sample)
        return Rule(np.ones(2), np.array([0.0, 1.0 - 2.0 * cut]), 1)  # p + 1 − 2·cut > 1 − p
    return None


def halves(sample: Batch, seed: int) -> tuple[Batch, Batch]:
    """Two random halves of the rows."""
    order = np.random.default_rng(seed).permutation(sample.n)
    middle = len(order) // 2
    return sample.take(order[:middle]), sample.take(order[middle:])


def _best_cut(metric: Metric, p: NDArray[Any], sample: Batch) -> float:
    """The probability of the second of two classes above which it is best to predict it."""
    assert sample.labels is not None
    weight = sample.weights if len(sample.weights) else np.ones(len(p))
    order = np.argsort(-p, kind="stable")
    falling, weight, y = p[order].astype(np.float64), weight[order], sample.labels.given[order]
    ends = np.flatnonzero(np.diff(falling) < 0)  # cut between different probabilities only
    if not len(ends):
        return 0.5
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, CUTS).astype(np.int64))]
    tp, predicted = np.cumsum(weight * y)[ends], np.cumsum(weight)[ends]
    positive, n = float(weight @ y), float(weight.sum())
    worth = [
        metric.value(_counts(t, found, positive, n, metric.needs_matrix))
        for t, found in zip(tp.tolist(), predicted.tolist(), strict=True)
    ]
    best = ends[int(np.argmax(worth))]
    return float((falling[best] + falling[best + 1]) / 2)


def _counts(tp: float, predicted: float, positive: float, n: float, matrix: bool) -> Counts:
    """Counts of both classes, from those of the second."""
    fp, fn = predicted - tp, positive - tp
    tn = n - predicted - fn
    return Counts(
        [tn, tp],
        [n - predicted, predicted],
        [n - positive, positive],
        n,
        [[tn, fp], [fn, tp]] if matrix else None,
    )

"""Thresholds averaged over bootstrap samples.

The best cut of a small sample is noisy: near its maximum the metric is flat, and a handful of rows
decide where the maximum is. ``bagged_rule`` averages over bootstrap samples: the rule predicts as
many rows as their best cuts do, by the geometric mean. Out-of-bag rows compare these cuts with the
rule of calibrated probabilities. Where that rule does as well, the two are averaged: calibration
has bias where probabilities are wrong, but less variance.

Between two classes, any metric is decided by a cut through the ranking of the second class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.metrics import LabelMetric, Macro, Metric
from omma.policies.omma import OMMA
from omma.policies.thresholds import (
    Floats,
    Ints,
    RankedLabel,
    ranked_labels,
    threshold_rule,
)
from omma.rows.batch import Batch
from omma.rule import Rule

RESAMPLES = 30  # bootstrap samples that are averaged
CANDIDATES = 500  # cuts tried from either end of the ranks, at most: dense where few are predicted
BLOCK = 2_000_000  # weights of bootstrap samples in memory at a time


def learns_from_labels(policy: OMMA) -> bool:
    """Whether a policy may be tuned on labels, and its metric be computed at many cells."""
    return policy.feedback != "estimates" and policy.objective.compiles


def has_cuts(policy: OMMA) -> bool:
    """Whether each label has its own threshold; a budget ranks a row's labels instead."""
    no_budget = policy.budget is None and policy.at_most is None
    by_label = isinstance(policy.objective, Macro | LabelMetric)
    return no_budget and by_label and learns_from_labels(policy)


@dataclass(frozen=True)
class CutTask:
    """Labels, each decided by a cut, and the metric as a mean over them.

    With ``two_classes``, the only ranked label is the second of two classes.
    """

    labels: list[RankedLabel]
    weight: Floats
    metric: Metric
    two_classes: bool = False

    @classmethod
    def of(cls, policy: OMMA, sample: Batch) -> CutTask | None:
        """Rank the sample; None where the rules of the policy are not cuts."""
        metric, weight = policy.objective, sample.row_weights
        if has_cuts(policy):
            return cls(list(ranked_labels(sample, range(sample.m))), weight, metric)
        two_classes = policy.budget == 1 and sample.m == 2 and sample.class_ids
        if two_classes and not sample.is_sparse and learns_from_labels(policy):
            return cls(list(ranked_labels(sample, range(1, 2))), weight, metric, True)
        return None

    def values(self, cells: Floats) -> Floats:
        """The metric at cells (tp, predicted, positive, n) of one label, of shape (4, ...)."""
        of_one_label = cells[:3, ..., np.newaxis]
        tp, predicted, positive = both_classes(cells) if self.two_classes else of_one_label
        values = self.metric.values(tp, predicted, positive, cells[3])
        if self.metric.needs_matrix:  # gains of pairs of classes are added, linear in their counts
            worth = np.einsum("ij,ij...->...", self.metric.matrix, class_pairs(cells))
            values = values + worth / cells[3]
        return values

    def counts(self, cells: Floats) -> Counts:
        """Counts of (tp, predicted, positive, n) of each label, of shape (labels, 4)."""
        tp, predicted, positive = both_classes(cells[0]) if self.two_classes else cells.T[:3]
        paired = self.two_classes and self.metric.needs_matrix
        pairs = class_pairs(cells[0]) if paired else None
        return Counts(tp, predicted, positive, float(cells[0, 3]), pairs)

    def rule(self, predicted: Floats) -> Rule:
        """The rule that predicts this number of rows of each label."""
        pairs = zip(self.labels, predicted.tolist(), strict=True)
        thresholds = np.array([label.threshold(count) for label, count in pairs])
        if self.two_classes:  # p + 1 − 2·threshold > 1 − p; no threshold is above 1
            return Rule(np.ones(2), np.array([0.0, 1.0 - 2.0 * min(float(thresholds[0]), 2.0)]), 1)
        return threshold_rule(thresholds)


def class_pairs(cells: Floats) -> Floats:
    """Counts of (true, predicted) pairs of two classes, of shape (2, 2, ...)."""
    tp, predicted, positive, n = cells
    tn = np.maximum(n - predicted - positive + tp, 0.0)  # weights add up to more by a rounding
    return np.array([[tn, predicted - tp], [positive - tp, tp]])


def both_classes(cells: Floats) -> Floats:
    """tp, predicted and positive of both of two classes: of shape (3, ..., 2)."""
    _, predicted, positive, n = cells
    (tn, _), (_, tp) = class_pairs(cells)
    first, second = (tn, n - predicted, n - positive), (tp, predicted, positive)
    return np.stack((first, second), axis=-1)


def bagged_rule(
    policy: OMMA,
    sample: Batch,
    calibrated: Rule,
    seed: int,
    value: Callable[[Counts], float],
) -> Rule:
    """The rule of cuts averaged over bootstrap samples.

    Where labels are not decided by cuts, or where no cuts are better on the sample, it returns
    ``calibrated``, the rule made of probabilities.
    """
    task = CutTask.of(policy, sample)
    if task is None:
        return calibrated
    decided = calibrated.predict(sample.values)
    standing = np.asarray(decided.sum(axis=0), dtype=np.int64).reshape(-1)
    standing = standing[1:] if task.two_classes else standing

    def is_better(cells: Floats) -> bool:
        tuned, stands = (value(task.counts(of_labels)) for of_labels in cells)
        return tuned > stands

    # If cuts are not better even on the sample itself, resampling cannot help.
    _, (on_sample, _) = resample(task, standing, np.ones((1, sample.n), dtype=np.uint8))
    if not is_better(on_sample):
        return calibrated
    predicted, (_, out_of_bag) = resample(task, standing, bootstrap_samples(sample.n, seed))
    # Geometric means, of counts with a half added so that none is zero.
    logs = np.log(predicted + 0.5).mean(axis=1)
    if not is_better(out_of_bag):
        logs = (logs + np.log(standing + 0.5)) / 2.0
    return task.rule(np.exp(logs) - 0.5)


def bootstrap_samples(n: int, seed: int) -> NDArray[np.uint8]:
    """How often each row is in each bootstrap sample."""
    rng = np.random.default_rng(seed)
    times = np.empty((RESAMPLES, n), dtype=np.uint8)
    for bag in times:  # a byte each: no row is drawn 256 times
        bag[:] = np.minimum(np.bincount(rng.integers(n, size=n), minlength=n), 255)
    return times


def resample(task: CutTask, standing: Ints, times: NDArray[np.uint8]) -> tuple[Ints, Floats]:
    """Find the best cut of each label in each bootstrap sample, and compare it with a fixed one.

    ``standing`` is the fixed cut of each label. Returns the number of rows that each best cut
    predicts, of shape (labels, samples), and cells summed over samples, of shape (2, 2, labels, 4):
    in the bag and out of it, by the best and by the fixed cuts.
    """
    predicted = np.empty((len(task.labels), len(times)), dtype=np.int64)
    sums = np.zeros((2, 2, len(task.labels), 4))
    for j, (label, cut) in enumerate(zip(task.labels, standing.tolist(), strict=True)):
        cuts = candidate_cuts(label, cut)
        place = int(np.searchsorted(cuts, cut))
        # Several samples at a time, but at least one, however many rows there are.
        block = max(1, BLOCK // max(len(label.true), 1))
        for start in range(0, len(times), block):
            drawn = times[start : start + block]
            in_bag = label.cells(cuts, drawn * task.weight)
            out_of_bag = label.cells(cuts, (drawn == 0) * task.weight)
            best = np.nan_to_num(task.values(in_bag), nan=-np.inf).argmax(axis=1)
            # A sample in which the label never or always occurs has no best cut.
            positive, n = in_bag[2, :, 0], in_bag[3, :, 0]
            best = np.where((positive > 0) & (positive < n), best, place)
            predicted[j, start : start + block] = cuts[best]
            samples = np.arange(len(drawn))
            for i, cells in enumerate((in_bag, out_of_bag)):
                sums[i, 0, j] += cells[:, samples, best].sum(axis=1)
                sums[i, 1, j] += cells[:, :, place].sum(axis=1)
    return predicted, sums


def candidate_cuts(label: RankedLabel, standing: int) -> Ints:
    """Cuts to try: all cuts, or where there are many, cuts in steps of about one per cent."""
    cuts = label.cuts
    if len(cuts) > 2 * CANDIDATES:
        steps = np.unique(np.geomspace(1, len(cuts), CANDIDATES).astype(np.int64)) - 1
        cuts = cuts[np.union1d(steps, len(cuts) - 1 - steps)]
    return np.union1d(cuts, [0, standing])

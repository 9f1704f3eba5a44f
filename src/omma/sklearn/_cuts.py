"""Labels that are decided by a cut of their own, and cuts that do not hang on a few rows.

A cut takes the most probable rows of a label, so many of them. Where each label is decided by
itself that is any macro metric; of two classes it is every metric, by the rank of the second.

The cut that is best on a sample is decided by accident: near the top the metric is flat, and a
handful of rows say where its highest point is. So rows are drawn again and again (the bootstrap),
each drawing has a best cut, and the geometric mean of how many rows these take is a steadier one.
Rows that a drawing left out tell what cuts are worth on rows that they were not tuned on. Where the
rule made of probabilities does as well there, half of it is mixed in: it is wrong where they are
wrong, but scatters less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.counts import Counts
from omma.metrics import LabelMetric, Macro, Metric, metric as find_metric
from omma.metrics.averages import OverClasses
from omma.policies import OMMA, Auto
from omma.policies.tuned import rule_of_cuts
from omma.rows.batch import Batch
from omma.rule import Rule

DRAWINGS = 30
PLACES = 500  # looked at, at most, from either end of the ranks: dense where few rows are taken
TOGETHER = 2_000_000  # numbers that are worked on at a time

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Worth = Callable[[Floats, Floats, Floats, Floats], Floats]


@dataclass(frozen=True)
class Ranked:
    """The rows in which a label has a probability, the most probable first.

    ``true`` is 1 in all rows that have the label, in their own order.
    """

    rows: Ints
    values: Floats
    true: Floats

    @property
    def cuts(self) -> Ints:
        """How many rows may be taken: equal probabilities are taken together."""
        ends = np.flatnonzero(np.diff(self.values) < 0) + 1
        return np.unique(np.concatenate(([0], ends, [len(self.values)])))

    def threshold(self, taken: float) -> float:
        """A probability between the rows that are taken and those that are not."""
        if taken < 0.5:
            return np.inf
        return float(np.interp(taken + 0.5, np.arange(1, len(self.values) + 1), self.values))


@dataclass(frozen=True)
class Cuts:
    """Every label of a sample by rank.

    ``worth`` is the metric of some cuts of one label, by true positives, predicted and positive
    rows and all rows; the metric is their mean over labels. ``two`` says that there are two
    classes, of which the second is ranked.
    """

    labels: list[Ranked]
    weight: Floats
    worth: Worth
    two: bool
    matrix: bool

    @classmethod
    def of(cls, policy: OMMA | Auto, sample: Batch) -> Cuts | None:
        """Rank the sample; None where cuts do not make a rule."""
        metric = policy.objective
        if policy.feedback == "estimates" or not metric.compiles:
            return None
        weight = sample.weights if len(sample.weights) else np.ones(sample.n)
        if policy.at_most is not None:  # labels of a row are ranked against each other
            return None
        if policy.budget is None and isinstance(metric, Macro | LabelMetric):
            single = metric.of if isinstance(metric, Macro) else metric
            assert isinstance(single, LabelMetric)
            labels = _ranked(sample, range(sample.m))
            return cls(labels, weight, single.of_cells, False, False)
        if policy.budget == 1 and sample.m == 2 and not sample.thin and sample.class_ids:
            worth = worth_of_two(metric)
            return cls(_ranked(sample, range(1, 2)), weight, worth, True, metric.needs_matrix)
        return None

    def taken_by(self, rule: Rule, sample: Batch) -> Ints:
        """How many rows of each label a rule takes."""
        decided = rule.predict(sample.values)
        taken = np.asarray(decided.sum(axis=0), dtype=np.int64).reshape(-1)
        return taken[1:] if self.two else taken

    def counts(self, cells: Floats) -> Counts:
        """Counts of (tp, predicted, positive, n) of each label, the last alike for all."""
        tp, predicted, positive, n = cells.T
        if not self.two:
            return Counts(tp, predicted, positive, float(n[0]))
        return counts_of_two(cells[0].tolist(), self.matrix)

    def rule(self, taken: Floats) -> Rule:
        """The rule that takes so many rows of each label; a label of which none has no slope."""
        pairs = zip(self.labels, taken.tolist(), strict=True)
        at = np.array([label.threshold(wanted) for label, wanted in pairs])
        if self.two:  # p + 1 − 2·cut > 1 − p; no cut is above 1
            return Rule(np.ones(2), np.array([0.0, 1.0 - 2.0 * min(float(at[0]), 2.0)]), 1)
        return rule_of_cuts(at)


def halves(sample: Batch, seed: int) -> tuple[Batch, Batch]:
    """Two random halves of the rows."""
    order = np.random.default_rng(seed).permutation(sample.n)
    middle = len(order) // 2
    return sample.take(order[:middle]), sample.take(order[middle:])


def worth_of_two(metric: Metric) -> Worth:
    """The metric of two classes, by counts of the second."""
    if isinstance(metric, Macro):
        single = metric.of
        assert isinstance(single, LabelMetric)

        def both(tp: Floats, predicted: Floats, positive: Floats, n: Floats) -> Floats:
            rest = np.maximum(n - predicted - positive + tp, 0.0)
            other = single.of_cells(rest, n - predicted, n - positive, n)
            return np.asarray((single.of_cells(tp, predicted, positive, n) + other) / 2)

        return both
    if isinstance(metric, OverClasses) and metric.smoothing is None and metric.kind != "kappa":
        name = "min_recall_specificity" if metric.kind == "min_recall" else metric.kind
        same = find_metric(name)  # of two classes, the recall of the first is specificity
        assert isinstance(same, LabelMetric)
        return same.of_cells

    def each(tp: Floats, predicted: Floats, positive: Floats, n: Floats) -> Floats:
        cells = np.broadcast_arrays(tp, predicted, positive, n)
        every = zip(*(cell.ravel().tolist() for cell in cells), strict=True)
        found = [metric.value(counts_of_two(one, metric.needs_matrix)) for one in every]
        return np.array(found).reshape(cells[0].shape)

    return each


def counts_of_two(cells: Sequence[float], matrix: bool) -> Counts:
    """Counts of both classes, from (tp, predicted, positive, n) of the second."""
    tp, predicted, positive, n = cells
    fp, fn = predicted - tp, positive - tp
    tn = max(n - predicted - fn, 0.0)  # weights may add up to more by a rounding
    return Counts(
        [tn, tp],
        [n - predicted, predicted],
        [n - positive, positive],
        n,
        [[tn, fp], [fn, tp]] if matrix else None,
    )


def _ranked(sample: Batch, wanted: range) -> list[Ranked]:
    """Rows where a label has a probability above zero, for each label that is wanted."""
    assert sample.labels is not None
    given = sample.labels.given
    given = sparse.csc_array(given) if sparse.issparse(given) else given
    if sample.thin:
        columns = sparse.csc_array(sample.values)
        columns.sort_indices()
    else:
        dense = np.asarray(sample.eta.array, dtype=np.float64).reshape(sample.n, -1)  # type: ignore[union-attr]
    found = []
    for j in wanted:
        if sample.thin:
            at = slice(columns.indptr[j], columns.indptr[j + 1])
            rows, values = columns.indices[at].astype(np.int64), columns.data[at].astype(np.float64)
        else:
            rows, values = np.arange(sample.n), dense[:, j]
        rows, values = rows[values > 0], values[values > 0]
        order = np.argsort(-values, kind="stable")
        found.append(Ranked(rows[order], values[order], _true(given, sample.n, j)))
    return found


def _true(given: Any, n: int, j: int) -> Floats:
    """1 in the rows that have label j."""
    if sparse.issparse(given):
        found = np.zeros(n)
        at = slice(given.indptr[j], given.indptr[j + 1])
        found[given.indices[at]] = given.data[at]
        return found
    return np.asarray(given[:, j] if given.ndim == 2 else given == j, dtype=np.float64)


def steady_rule(
    policy: OMMA | Auto,
    sample: Batch,
    standing: Rule,
    seed: int,
    worth: Callable[[Counts], float],
) -> Rule:
    """The rule to decide by, where ``standing`` was made of probabilities.

    It is ``standing`` itself where labels are not decided by cuts, or where no cuts are better on
    the sample.
    """
    cuts = Cuts.of(policy, sample)
    if cuts is None:
        return standing
    stands = cuts.taken_by(standing, sample)
    exact = Drawn.of(cuts, stands, np.ones((1, sample.n), dtype=np.uint8))
    if not worth(cuts.counts(exact.tuned)) > worth(cuts.counts(exact.standing)):
        return standing
    several = Drawn.of(cuts, stands, drawings(sample.n, seed))
    taken = several.mean
    if not worth(cuts.counts(several.tuned_left)) > worth(cuts.counts(several.standing_left)):
        taken = np.sqrt((taken + 0.5) * (stands + 0.5)) - 0.5
    return cuts.rule(taken)


def drawings(n: int, seed: int) -> NDArray[np.uint8]:
    """How often each row is in each drawing of n rows."""
    rng = np.random.default_rng(seed)
    drawn = (np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(DRAWINGS))
    return np.stack([np.minimum(one, 255).astype(np.uint8) for one in drawn])


@dataclass(frozen=True)
class Drawn:
    """The best cut of each label in each drawing, and a standing one.

    ``taken`` has how many rows each cut takes, (labels, drawings). The others are (labels, 4), true
    positives, predicted, positive and all rows, of the best cuts and of the standing ones: on rows
    as they were drawn, and on those that were left out; summed over drawings.
    """

    taken: Ints
    tuned: Floats
    standing: Floats
    tuned_left: Floats
    standing_left: Floats

    @classmethod
    def of(cls, cuts: Cuts, stands: Ints, drawn: NDArray[np.uint8]) -> Drawn:
        """Look at every label."""
        pairs = zip(cuts.labels, stands.tolist(), strict=True)
        found = [_of_label(cuts, label, at, drawn) for label, at in pairs]
        taken = np.stack([one for one, _ in found])
        cells = np.stack([one for _, one in found], axis=1)
        return cls(taken, *cells)

    @property
    def mean(self) -> Floats:
        """The geometric mean of how many rows are taken."""
        return np.asarray(np.exp(np.log(self.taken + 0.5).mean(axis=1)) - 0.5)


def _of_label(
    cuts: Cuts, label: Ranked, stands: int, drawn: NDArray[np.uint8]
) -> tuple[Ints, Floats]:
    """The best cut of one label in each drawing, and the four kinds of cells."""
    places = places_of(label, stands)
    at = int(np.searchsorted(places, stands))
    block = max(1, TOGETHER // max(len(label.true), 1))
    taken, sums = [], np.zeros((4, 4))
    for start in range(0, len(drawn), block):
        here = drawn[start : start + block]
        kept = _Cells.of(label, places, here * cuts.weight)
        left = _Cells.of(label, places, (here == 0) * cuts.weight)
        best = kept.best(cuts)
        # A drawing without the label, or with nothing else, says nothing.
        best = np.where((kept.positive > 0) & (kept.positive < kept.n), best, at)
        taken.append(places[best])
        standing = np.full(len(here), at)
        pairs = ((kept, best), (kept, standing), (left, best), (left, standing))
        sums += np.array([cells.sum(chosen) for cells, chosen in pairs])
    return np.concatenate(taken), sums


def places_of(label: Ranked, stands: int) -> Ints:
    """Numbers of rows to try: all there are, or so many that steps are about one per cent."""
    found = label.cuts
    if len(found) > 2 * PLACES:
        steps = np.unique(np.geomspace(1, len(found), PLACES).astype(np.int64)) - 1
        found = found[np.union1d(steps, len(found) - 1 - steps)]
    return np.union1d(found, [0, stands])


@dataclass(frozen=True)
class _Cells:
    """What each place of one label would count in some drawings."""

    tp: Floats
    predicted: Floats
    positive: Floats
    n: Floats

    @classmethod
    def of(cls, label: Ranked, places: Ints, weight: Floats) -> _Cells:
        ranked = weight[:, label.rows]
        tp, predicted = _up_to(places, ranked * label.true[label.rows]), _up_to(places, ranked)
        return cls(tp, predicted, weight @ label.true, weight.sum(axis=1))

    def best(self, cuts: Cuts) -> Ints:
        """Of equals, the fewest rows."""
        cells = (self.tp, self.predicted, self.positive[:, np.newaxis], self.n[:, np.newaxis])
        worth = cuts.worth(*(np.broadcast_to(cell, self.tp.shape).ravel() for cell in cells))
        worth = np.nan_to_num(worth.reshape(self.tp.shape), nan=-np.inf)
        return np.asarray(worth.argmax(axis=1))

    def sum(self, chosen: Ints) -> Floats:
        """Of one place in each drawing, over all of these."""
        every = np.arange(len(chosen))
        picked = self.tp[every, chosen], self.predicted[every, chosen], self.positive, self.n
        return np.array([cell.sum() for cell in picked])


def _up_to(places: Ints, weight: Floats) -> Floats:
    """Sums of the first so many of each row."""
    if places[-1] == 0:
        return np.zeros((len(weight), len(places)))
    parts = np.add.reduceat(weight[:, : places[-1]], places[:-1], axis=1)
    return np.concatenate((np.zeros((len(weight), 1)), parts.cumsum(axis=1)), axis=1)

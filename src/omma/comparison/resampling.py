"""Counts and metric values of all resamples of the rows at once.

Rows are weighted by independent Exp(1) draws (the Bayesian bootstrap), with the same weights for
every rule. Rows fall at random into at most a thousand groups first: that estimates the same spread
as weighting rows one by one, at a cost that does not grow with their number. One matrix product of
weights and groups then gives every count of every draw.

What to expect of each rule on new rows follows from these values: the best of several rules is
picked on the rows that judge it, so its value there is too high. Of rules that are equal on new
rows, the luckiest wins. Resamples tell by how much. Intervals are made on the logit scale, so that
no end leaves the range of the metric, and are widened by Student's t where a few groups of rows
carry most of the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit, ndtri, stdtrit

from omma.counts import Counts
from omma.metrics import LabelMetric, Macro, Metric, Micro, OverClasses
from omma.metrics.averages import KINDS
from omma.metrics.binary import RECALL, Rate, mean_of
from omma.metrics.scoring import value_range
from omma.rows.batch import Batch

GROUPS = 1000  # at most; each stands for some rows
ROOM = 1 << 22  # counts held at a time: 32 MB
PSEUDO_COUNT = 0.125  # mean of what smoothing adds to a cell of a 2x2 table
LEAST_RATE = 1e-12  # a smoothed rate, before a geometric mean takes its logarithm
# Hits that smoothing adds where classes are averaged by logarithms or inverses: with these numbers
# the means of the draws are nearly unbiased, E log Gamma(o + 1) ≈ log(o + 1/2) and
# E 1 / Gamma(o + 2) = 1 / (o + 1). With fewer, a class of few hits pulls the mean down twice.
HITS = {"geometric": 1.0, "harmonic": 2.0}
TWO_SIDED = 0.975  # 95 % on both sides
LEAST_DEGREES = 3.0  # of freedom: with fewer, Student's t is wider than any range
EDGE = 1e-3  # how near to an end of its range the middle of an interval may lie
COLLAPSING = ("geometric", "harmonic", "minimum")  # means that are 0 where a part of them is
LEVEL = ("arithmetic", "quadratic")  # means in which labels without positives count as 0
Array = NDArray[np.float64]
Range = tuple[float, float]


class Cells(NamedTuple):
    """Counts of every draw and rule: cells of shape (draws, rules, m), others (draws, rules)."""

    tp: Array
    predicted: Array
    positive: Array
    n: Array
    share: Array  # of the rows, those in which a label is known
    gains: Array  # what pairs of classes are worth, by metrics that have a table of costs

    @property
    def known(self) -> list[Array]:
        """(tp, predicted, positive, n) of each label, over the rows in which it is known."""
        return [self.share * cell for cell in (*self[:3], self.n[..., np.newaxis])]

    def values(self, metric: Metric) -> Array:
        """The metric of each draw and rule."""
        return metric.values(*self[:4]) + self.gains / self.n


class Resampler:
    """Judges the decisions of several rules on the same resamples of the rows.

    Parameters
    ----------
    data : Batch
        Rows of which each has a label that is known.
    decisions : list of CSR matrices of shape (n, m)
        One for each rule.
    metric : Metric
    seed : int

    Attributes
    ----------
    labels, missing : CSR matrix of shape (n, m)
        The true labels, and a mask of the unknown ones.
    everywhere : ndarray of shape (rules, m)
        What each rule predicts: that is known of all labels, whether they are or not.
    whole : Cells
        The counts of each rule on all rows, as a single draw.
    """

    def __init__(self, data: Batch, decisions: list[Any], metric: Metric, seed: int) -> None:
        self.metric, self.n, self.m, self.rules = metric, data.n, data.m, len(decisions)
        assert data.labels is not None
        self.labels, missing = data.labels.matrix, data.labels.missing
        self.missing = sparse.csr_array((self.n, self.m) if missing is None else missing)
        self.rng = np.random.default_rng(seed)
        weight = data.row_weights
        self.everywhere = np.array([weight @ predicted for predicted in decisions])
        # Smoothing adds parts of a row, so rows must weigh what they are worth: their number is
        # Kish's effective sample size. No metric changes where all weights are multiplied.
        self.scale = weight.sum() / (weight**2).sum()
        weight = weight * self.scale
        # Columns: ones, labels, which labels are unknown, then of each rule what it predicts and
        # hits where labels are known, then of each rule what its decisions are worth by costs.
        columns = [np.ones((self.n, 1)), self.labels, self.missing]
        for predicted in decisions:
            judged = predicted - predicted.multiply(self.missing)
            columns += [judged, self.labels.multiply(judged)]
        gains = np.zeros((self.n, self.rules))
        if metric.needs_matrix:
            pairs = [(self.labels.indices, predicted.indices) for predicted in decisions]
            gains = np.stack([metric.matrix[pair] for pair in pairs], axis=1)
        self.groups = min(self.n, GROUPS)
        group = self.rng.permutation(self.n) % self.groups
        entries = (weight, (group, np.arange(self.n)))
        by_group = sparse.csr_array(entries, shape=(self.groups, self.n))
        sums = by_group @ sparse.hstack([*columns, gains], format="csr")
        # Dense products are far faster, where there is room.
        self.sums = sums.toarray() if self.groups * sums.shape[1] <= ROOM else sums
        self.total = np.asarray(sums.sum(axis=0)).reshape(1, -1)
        self.whole = self._cells(self.total)
        # What smoothing needs: how the metric is made of rates, and the mean of each rate.
        self.terms = [(weight, part, structure(part)) for weight, part in metric.parts]
        rates = [rate for *_, (of_term, _, _) in self.terms for rate in of_term]
        self.levels = {rate: _level(rate, self.whole) for rate in rates}

    def _cells(self, sums: Array) -> Cells:
        """Counts by sums of the columns; labels that are known in part count in proportion."""
        draws, end = len(sums), 1 + 2 * self.m * (1 + self.rules)
        n, gains = np.broadcast_to(sums[:, :1], (draws, self.rules)), sums[:, end:]
        by_label = sums[:, 1:end].reshape(draws, 2 * (1 + self.rules), self.m)
        known = 1.0 - by_label[:, 1:2] / n[:, :1, np.newaxis]
        share = np.where(known > 1e-9, known, 1.0)  # a label never known never occurs
        positive = by_label[:, :1] / share
        predicted, tp = by_label[:, 2::2] / share, by_label[:, 3::2] / share
        return Cells(tp, predicted, np.broadcast_to(positive, tp.shape), n, share, gains)

    @property
    def values(self) -> Array:
        """The metric of each rule on the rows as they are."""
        return np.asarray(self.whole.values(self.metric)[0])

    def counts(self, rule: int) -> Counts:
        """Counts of a rule on all rows, each label in proportion to the rows where it is known."""
        tp, predicted, positive, n = (cell[0, rule] / self.scale for cell in self.whole[:4])
        return Counts(tp, predicted, positive, float(n))

    def known(self, rule: int) -> list[Array]:
        """(tp, predicted, positive, n) of each label, over the rows in which it is known."""
        return [cell[0, rule] / self.scale for cell in self.whole.known]

    def _blocks(self, draws: int) -> Iterator[slice]:
        """All draws at once; with very many labels, some at a time."""
        step = max(1, ROOM // self.sums.shape[1])
        for start in range(0, draws, step):
            yield slice(start, min(start + step, draws))

    def draw(self, draws: int) -> tuple[Array, Array, Array]:
        """The metric of every rule on resamples of the rows: three arrays of shape (rules, draws).

        The first has plain values. The second has pseudo-counts, as a few rows are no certainty.
        The third is smoothed with levels that differ more between rules: it is for differences.
        """
        weights = self.rng.standard_exponential((draws, self.groups))
        weights *= self.groups / weights.sum(axis=1, keepdims=True)  # as many rows in every draw
        results = []
        for block in self._blocks(draws):
            cells = self._cells(weights[block] @ self.sums)
            smooth = self._smoothed(cells, correlation=1.0)
            # Without levels there is nothing to draw apart.
            apart = self._smoothed(cells, correlation=0.5) if self.levels else smooth
            results.append((cells.values(self.metric), smooth, apart))
        raw, smooth, apart = (np.concatenate(part).T for part in zip(*results, strict=True))
        return raw, smooth, apart

    def left_out(self, rule: int) -> Array:
        """The metric of one rule without each of the groups: the jackknife."""
        values = []
        for block in self._blocks(self.groups):
            group = self.sums[block]
            others = self.total - (group.toarray() if sparse.issparse(group) else group)
            values.append(self._cells(others).values(self.metric)[:, rule])
        return np.concatenate(values)

    def _smoothed(self, cells: Cells, correlation: float) -> Array:
        """Values with random pseudo-counts; ``correlation`` is that of the levels of two rules.

        A metric of one 2x2 table (one label, or micro) gets Gamma(1/8) in each cell. A mean of
        rates o/u over labels or classes becomes a mean of (o + a) / (u + a + b) with a ~ Gamma(l)
        and b ~ Gamma(1 - l): a label that was never seen is worth l, not 0. The level l is
        uncertain too, logit l = logit r + N(0, 1) in each draw, where r is the mean rate of labels
        that occur. In geometric means over classes a ~ Gamma(1), in harmonic ones a ~ Gamma(2).
        """
        total = cells.gains / cells.n
        for weight, part, (rates, inner, outer) in self.terms:
            if rates:
                total = total + weight * self._of_rates(rates, inner, outer, cells, correlation)
            else:
                total = total + weight * self._of_tables(part, cells)
        return total

    def _of_rates(
        self, rates: tuple[Rate, ...], inner: str, outer: str, cells: Cells, correlation: float
    ) -> Array:
        """Metrics that are means of rates: each rate of each label is smoothed by itself."""
        draws, rules = cells.n.shape
        smoothed = []
        for rate in rates:
            shared = self.rng.standard_normal((draws, 1)) * np.sqrt(correlation)
            own = self.rng.standard_normal((draws, rules)) * np.sqrt(1.0 - correlation)
            level = expit(logit(self.levels[rate]) + shared + own)[..., np.newaxis]
            over, under = _fraction(rate, cells)
            hits = self.rng.gamma(HITS.get(outer, level), size=cells.tp.shape)
            misses = self.rng.gamma(1.0 - level, size=cells.tp.shape)
            smoothed.append(np.maximum((over + hits) / (under + hits + misses), LEAST_RATE))
        of_labels = mean_of(inner, np.stack(smoothed))
        return mean_of(outer, np.moveaxis(of_labels, -1, 0))

    def _of_tables(self, metric: Metric, cells: Cells) -> Array:
        """Metrics of 2x2 tables: of one label, pooled over labels, or one for each label."""
        tp, predicted, positive = cells.tp, cells.predicted, cells.positive
        if isinstance(metric, OverClasses):
            # Parts of a row that are right, and of one that is wrong, spread as the classes are.
            right, wrong = self.rng.gamma(2 * PSEUDO_COUNT, size=(2, *cells.n.shape, 1))
            spread = positive / np.maximum(positive.sum(axis=-1, keepdims=True), 1.0)
            both = (right + wrong) * spread
            smooth = (tp + right * spread, predicted + both, positive + both)
            return metric.values(*smooth, cells.n + (right + wrong)[..., 0])
        if not isinstance(metric, Macro | Micro | LabelMetric):
            # Costs have no counts, and in a mean weighted by occurrence rare labels hardly matter.
            return metric.values(tp, predicted, positive, cells.n)
        tables = cells.known
        if isinstance(metric, Micro):
            # Pooled first: pseudo-counts go into one table, in place of one for each label. Labels
            # that are known in part count in proportion, and the table as the rows that are known.
            share, n = cells.share.mean(axis=-1, keepdims=True), self.m * cells.n[..., np.newaxis]
            pooled = [cell.sum(axis=-1, keepdims=True) for cell in (tp, predicted, positive)]
            tables = [share * cell for cell in (*pooled, n)]
        hit, alarm, miss, neither = self.rng.gamma(PSEUDO_COUNT, size=(4, *tables[0].shape))
        adds = (hit, hit + alarm, hit + miss, hit + alarm + miss + neither)
        tables = [cell + more for cell, more in zip(tables, adds, strict=True)]
        of = metric if isinstance(metric, LabelMetric) else metric.of
        return np.asarray(of.of_cells(*tables).mean(axis=-1))  # type: ignore[arg-type]


def structure(metric: Metric) -> tuple[tuple[Rate, ...], str, str]:
    """How a metric, or one term of a sum of them, is made of rates.

    Returns the rates of each label or class, none where it is no mean of them; the mean of the
    rates of a label; and the mean over labels or classes.
    """
    if isinstance(metric, OverClasses):
        # Accuracy, MCC and kappa are of the whole table of classes.
        is_mean = not metric.single_label and metric.kind != "accuracy"
        return (RECALL,) if is_mean else (), "rate", KINDS[metric.kind].mean
    if not isinstance(metric, Macro):
        return (), "", ""
    # G-mean and its kin are means of two rates, F1 and others a single one.
    return metric.of.rates, metric.of.mean, "arithmetic"


def _fraction(rate: Rate, cells: Cells) -> list[Array]:
    """Numerator and denominator of a rate, over the rows in which each label is known."""
    # A difference may be below zero by a rounding.
    return [np.maximum(part, 0.0) for part in rate.sums(*cells.known)]


def _level(rate: Rate, whole: Cells) -> Array:
    """The mean rate of the labels that occur, for each rule; labels of few rows count less."""
    over, under = (part[0] for part in _fraction(rate, whole))
    # A label of few rows says little of the level: its weight is u / (u + 1).
    weight = (whole.positive[0] > 0.0) * under / (under + 1.0)
    rates = np.divide(over, under, out=np.zeros(over.shape), where=under > 0.0)
    level = (weight * rates).sum(axis=-1) / np.maximum(weight.sum(axis=-1), 1e-9)
    return np.asarray(np.clip(level, 0.01, 0.99))  # so that its logit is finite


# Values and intervals on new rows


def estimates(
    sample: Resampler, draws: int, best: int, eligible: NDArray[np.bool_]
) -> list[tuple[float, Range, float, Range]]:
    """What to expect of each rule on new rows: value, interval, lag behind the best, interval.

    ``best`` was picked by its value on the rows, among the rules that are ``eligible``: with
    limits, those that hold them.
    """
    values, ends = sample.values, value_range(sample.metric)
    widest = ends[1] - ends[0]
    raw, smooth, apart = sample.draw(draws)
    quantile = _quantile(sample.left_out(best))
    means = [(inner, outer) for *_, (_, inner, outer) in sample.terms]
    compared, compared_draws = values, raw
    if any(mean in COLLAPSING for pair in means for mean in pair):
        # The plain value tells little where hits are missing by chance.
        compared, compared_draws = smooth.mean(axis=1), smooth
    gaps = compared[best] - compared
    # A rule that is behind stays so; one that is ahead, and breaks a limit, is taken as it is.
    leads = np.maximum(gaps - optimism(compared_draws, best, eligible), np.minimum(gaps, 0.0))
    leads[best] = 0.0
    least, most = _around(leads, apart[best] - apart, quantile, (-widest, widest))
    # So the table adds up: no other rule is shown above the best by chance alone.
    centres = smooth[best].mean() - optimism(smooth, best, eligible) - leads
    low, high = _around(centres, smooth, quantile, ends)
    if any(outer in LEVEL for _, outer in means):
        # The plain value errs to the other side: labels without positives count as 0 in it.
        spread = quantile * raw.std(axis=1, ddof=1)
        lowest = values - spread
        lowest[best] -= optimism(raw, best, eligible)
        low, high = np.minimum(low, lowest), np.maximum(high, values + spread)
    low[values <= ends[0]] = ends[0]  # nothing was right, and perhaps nothing is
    low, high = np.clip(low, *ends), np.clip(high, *ends)
    # From 0.0, so that the best has no lag of -0.0.
    columns = (np.clip(centres, low, high), low, high, 0.0 - leads, 0.0 - most, 0.0 - least)
    return [
        (value, (lower, upper), behind, (worst, nearest))
        for value, lower, upper, behind, worst, nearest in np.transpose(columns).tolist()
    ]


def optimism(draws: Array, best: int, eligible: NDArray[np.bool_]) -> float:
    """By how much the value of the best rule is too high because it was picked.

    In each resample some rule leads: this is the mean of how much its value there exceeds its own
    mean. Gaps between rules are shrunk by 1 - s²/d², as far as noise of deviation s explains a gap
    of d: rules that seem apart by chance compete as equals.
    """
    draws = draws[eligible]
    best = int(eligible[:best].sum())
    means = draws.mean(axis=1)
    # What a rule has in a resample above its own mean is chance.
    excess = draws - means[:, np.newaxis]
    gaps = np.maximum(means[best] - means, 0.0)
    noise = (draws[best] - draws).std(axis=1, ddof=1)
    gaps *= np.clip(1.0 - (noise / np.maximum(gaps, 1e-12)) ** 2, 0.0, 1.0)
    leaders = (excess - gaps[:, np.newaxis]).argmax(axis=0)
    return float(excess[leaders, np.arange(draws.shape[1])].mean())


def _around(centres: Array, draws: Array, quantile: float, ends: Range) -> tuple[Array, Array]:
    """Intervals around centres, as wide as quantiles of the draws; none leaves the range."""
    low, high = ends
    if not np.isfinite(high - low):
        below, above = _spread(draws, quantile)
        return centres - below, centres + above
    # Draws at an end of the range would be infinite on the logit scale.
    shares = np.clip((draws - low) / (high - low), 1e-9, 1.0 - 1e-9)
    middle = logit(np.clip((centres - low) / (high - low), EDGE, 1.0 - EDGE))
    below, above = _spread(logit(shares), quantile)
    return low + (high - low) * expit(middle - below), low + (high - low) * expit(middle + above)


def _spread(draws: Array, quantile: float) -> tuple[Array, Array]:
    """How far intervals reach below and above: quantiles of draws, stretched by Student's t.

    Near an end of the range draws are skewed, and a standard deviation would reach too far.
    """
    lower, median, upper = np.quantile(draws, (1.0 - TWO_SIDED, 0.5, TWO_SIDED), axis=1)
    stretch = quantile / ndtri(TWO_SIDED)
    return stretch * (median - lower), stretch * (upper - median)


def _quantile(left_out: Array) -> float:
    """How many standard errors a 95 % interval reaches to each side, by the jackknife.

    A variance that rests on groups of kurtosis k is known as by 2g / (k - 1) degrees of freedom.
    """
    apart = left_out - left_out.mean()
    squares = max((apart**2).sum(), 1e-100)  # all groups may be alike
    kurtosis = len(apart) * (apart**4).sum() / squares**2
    degrees = max(2.0 * len(apart) / max(kurtosis - 1.0, 1e-9), LEAST_DEGREES)
    return float(stdtrit(min(degrees, 1e6), TWO_SIDED))

"""What to expect of each rule on new rows: values and leads, corrected for the choice of the best.

The best of several rules is picked on the rows that judge it, so its value there is too high: of
rules that are equal on new rows, the luckiest wins. Resamples tell by how much. Intervals are made
on the logit scale, so that no end leaves the range of the metric, and are widened by Student's t
where a few groups of rows carry most of the value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri, stdtrit

from omma.comparison.resampling import Resampler, structure
from omma.metrics import Binary, Costs, Metric, Minimum, OverClasses, Sum

TWO_SIDED = 0.975  # 95 % on both sides
LEAST_DEGREES = 3.0  # of freedom: with fewer, Student's t is wider than any range
EDGE = 1e-3  # how near to an end of its range the middle of an interval may lie
COLLAPSING = ("geometric", "harmonic", "minimum")  # means that are 0 where a part of them is
LEVEL = ("arithmetic", "quadratic")  # means in which labels without positives count as 0
Array = NDArray[np.float64]
Range = tuple[float, float]


def estimates(
    sample: Resampler, draws: int, best: int, eligible: NDArray[np.bool_]
) -> list[tuple[float, Range, float, Range]]:
    """What to expect of each rule on new rows: value, interval, lag behind the best, interval.

    ``best`` was picked by its value on the rows, among the rules that are ``eligible``: with
    limits, those that hold them.
    """
    metric, values = sample.metric, sample.values
    ends = value_range(metric)
    widest = ends[1] - ends[0]
    raw, smooth, apart = sample.draw(draws)
    quantile = _quantile(sample.left_out(best))
    expected = smooth[best].mean() - optimism(smooth, best, eligible)
    means = [structure(term)[1:] for _, term in metric.parts]
    compared, compared_draws = values, raw
    if any(mean in COLLAPSING for pair in means for mean in pair):
        # The plain value tells little where hits are missing by chance.
        compared, compared_draws = smooth.mean(axis=1), smooth
    luck = optimism(compared_draws, best, eligible)
    result = []
    for rule, value in enumerate(values):
        gap = compared[best] - compared[rule]
        # A rule that is behind stays so; one that is ahead, and breaks a limit, is taken as it is.
        lead = 0.0 if rule == best else float(max(gap - luck, min(gap, 0.0)))
        least, most = _around(lead, apart[best] - apart[rule], quantile, (-widest, widest))
        # So the table adds up: no other rule is shown above the best because luck left it alone.
        centre = expected - lead
        low, high = _around(centre, smooth[rule], quantile, ends)
        if any(outer in LEVEL for _, outer in means):
            # The plain value errs to the other side: labels without positives count as 0 in it.
            spread = quantile * raw[rule].std(ddof=1)
            curse = optimism(raw, best, eligible) if rule == best else 0.0
            low, high = min(low, value - curse - spread), max(high, value + spread)
        if value <= ends[0]:
            low = ends[0]  # nothing was right, and perhaps nothing is
        low, high = (float(np.clip(end, *ends)) for end in (low, high))
        centre = float(np.clip(centre, low, high))
        result.append((centre, (low, high), 0.0 - lead, (0.0 - most, 0.0 - least)))
    return result


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
    luck = draws - means[:, np.newaxis]
    gaps = np.maximum(means[best] - means, 0.0)
    noise = (draws[best] - draws).std(axis=1, ddof=1)
    gaps *= np.clip(1.0 - (noise / np.maximum(gaps, 1e-12)) ** 2, 0.0, 1.0)
    leaders = (luck - gaps[:, np.newaxis]).argmax(axis=0)
    return float(luck[leaders, np.arange(draws.shape[1])].mean())


def _around(centre: float, draws: Array, quantile: float, ends: Range) -> Range:
    """An interval about a centre by the quantiles of draws, which stays within its range."""
    low, high = ends
    if not np.isfinite(high - low):
        below, above = _spread(draws, quantile)
        return centre - below, centre + above
    # Draws at an end of the range would be infinite on the logit scale.
    shares = np.clip((draws - low) / (high - low), 1e-9, 1.0 - 1e-9)
    middle = logit(np.clip((centre - low) / (high - low), EDGE, 1.0 - EDGE))
    below, above = _spread(logit(shares), quantile)
    return low + (high - low) * expit(middle - below), low + (high - low) * expit(middle + above)


def _spread(draws: Array, quantile: float) -> Range:
    """How far an interval reaches below and above: quantiles of draws, stretched by Student's t.

    Near an end of the range draws are skewed, and a standard deviation would reach too far.
    """
    lower, median, upper = np.quantile(draws, (1.0 - TWO_SIDED, 0.5, TWO_SIDED))
    stretch = quantile / ndtri(TWO_SIDED)
    return stretch * (median - lower), stretch * (upper - median)


def _quantile(left_out: Array) -> float:
    """Standard errors on either side of 95 %, by values without each group of rows.

    A variance that rests on groups of kurtosis k is known as by 2g / (k - 1) degrees of freedom.
    """
    apart = left_out - left_out.mean()
    squares = max((apart**2).sum(), 1e-100)  # all groups may be alike
    kurtosis = len(apart) * (apart**4).sum() / squares**2
    degrees = max(2.0 * len(apart) / max(kurtosis - 1.0, 1e-9), LEAST_DEGREES)
    return float(stdtrit(min(degrees, 1e6), TWO_SIDED))


def value_range(metric: Metric) -> Range:
    """The lowest and the highest value of a metric, as far as that is known.

    >>> import omma
    >>> value_range(omma.metric("macro_f1")), value_range(omma.metric("micro_mcc"))
    ((0.0, 1.0), (-1.0, 1.0))
    >>> value_range(omma.metric("macro_recall") - omma.metric("macro_mcc"))
    (-1.0, 2.0)
    """
    if isinstance(metric, Sum):
        parts = [sorted(weight * end for end in value_range(part)) for weight, part in metric.parts]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)
    if isinstance(metric, Costs):
        return float(metric.worth.min()), float(metric.worth.max())
    of = getattr(metric, "of", metric)  # a mean over labels has the range of a label's metric
    if isinstance(of, Minimum):
        return 0.0, 1.0
    if isinstance(of, Binary):
        return (-1.0 if of.mean == "correlation" else 0.0), 1.0
    if isinstance(of, OverClasses):
        return (-1.0 if of.kind in ("mcc", "kappa") else 0.0), 1.0
    return -np.inf, np.inf  # of a metric that a user wrote

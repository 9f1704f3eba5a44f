"""What is maximized: its kind is a type, its coefficients are numbers.

A metric of one label is a ``Ratio``, a mean of recall and specificity, a ``Correlation``, the
``Smaller`` of two ratios, or a user's ``Own``. An objective is an average of one of these over
labels (``MacroTerm``, ``WeightedTerm``), one at the counts averaged over labels (``MicroTerm``), a
metric of classes, a fixed rule, or a ``SumOfTerms``.

This file has the kinds, and for a metric ψ of one label its ``value`` and its ``partials``: the
slope ∂ψ/∂tp and the offset ∂ψ/∂predicted of the paper's prediction rule, Eq. (5). Both work on
fractions (counts / n), with ε in denominators as in the paper. ``gains`` and ``classes`` make
averages of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import EPSILON, TINY

Form = tuple[float, float, float, float]  # a linear form over (tp, predicted, positive, n)


class Ratio(NamedTuple):
    """A ratio of two linear forms."""

    over: Form
    under: Form
    epsilon: float


class Arithmetic(NamedTuple):
    """(r + s) / 2 of recall r and specificity s: balanced accuracy."""

    epsilon: float


class Geometric(NamedTuple):
    """√(r s) of recall and specificity; over classes, of their rates."""

    epsilon: float


class Harmonic(NamedTuple):
    """2 r s / (r + s) of recall and specificity; over classes, of their rates."""

    epsilon: float


class Quadratic(NamedTuple):
    """1 − √(((1 − r)² + (1 − s)²) / 2) of recall and specificity; over classes, of their rates."""

    epsilon: float


class Steep(NamedTuple):
    """Over classes, the mean (Σ rate⁻³ / m)^(−1/3), which follows the smallest rates."""

    epsilon: float


class Correlation(NamedTuple):
    """Matthews: covariance over the root of the product of the two variances."""

    epsilon: float


class Smaller(NamedTuple):
    """The smaller of two rates; ``gamma`` smooths it, a negative one by the number of rows.

    ``rows`` is the number of rows that the smoothing is for; zero is the number seen so far.
    """

    first: Ratio
    second: Ratio
    gamma: float
    rows: float


class Own(NamedTuple):
    """A user's own metric: compiled functions of the fractions (tp, predicted, positive, whole).

    ``partials`` returns slope and offset, ``value`` the value; None where psi does not compile.
    """

    partials: Any
    value: Any


class OwnValue(NamedTuple):
    """The value of a user's own metric, as a first-class function of the same fractions."""

    value: Any


class Change(NamedTuple):
    """What one more row would change of a metric of one label, in place of its derivatives.

    Counts are divided by ``rows``; zero stands for the rows so far, the present one included.
    """

    of: Any
    rows: float


class MacroTerm(NamedTuple):
    """The mean over labels of a metric of one label."""

    weight: float
    of: Any


class MicroTerm(NamedTuple):
    """A metric of one label at the counts averaged over labels."""

    weight: float
    of: Any


class WeightedTerm(NamedTuple):
    """The mean over labels of a metric of one label, weighted by how often each label occurs."""

    weight: float
    of: Any


class Classes(NamedTuple):
    """A mean of one rate over classes; its derivatives only in proportion, as a ranking needs."""

    weight: float
    of: Any  # Geometric, Harmonic, Quadratic or Steep
    rate: Ratio


class WeighedClasses(NamedTuple):
    """The same with the factor that all classes share: it ranks nothing, but matters in a sum."""

    weight: float
    of: Any
    rate: Ratio


class Smallest(NamedTuple):
    """The smallest rate over classes, smoothed as ``Smaller`` is."""

    weight: float
    rate: Ratio
    gamma: float
    rows: float


class Kappa(NamedTuple):
    """Cohen's kappa over classes."""

    weight: float
    epsilon: float


class ClassCorrelation(NamedTuple):
    """The Matthews correlation over classes."""

    weight: float
    epsilon: float


class MacroThreshold(NamedTuple):
    """OFO's own rule, a threshold for each label."""

    weight: float


class MicroThreshold(NamedTuple):
    """OFO's own rule, one threshold for all labels."""

    weight: float


class LabelForm(NamedTuple):
    """A positive multiple of slope and offset that is linear in a label's counts.

    Without a budget only the sign of a gain decides, so a common positive factor may be left out:
    what remains of the usual metrics has no division, and a further metric compiles nothing.
    Each form is over (tp, predicted, positive, n) as fractions, with a constant (ε) at its end.
    """

    slope: tuple[float, float, float, float, float]
    offset: tuple[float, float, float, float, float]
    clamped: float  # 1 where slope may not fall below −offset: tn rounded below zero


class MeanForm(NamedTuple):
    """The same at counts averaged over labels: one slope and one offset for all of them."""

    slope: tuple[float, float, float, float, float]
    offset: tuple[float, float, float, float, float]
    clamped: float


class FixedRules(NamedTuple):
    """Rules that never change, shape (rules, 2, m): slopes and offsets of each."""

    rules: Any


class Nothing(NamedTuple):
    """Gains come from elsewhere, as from a matrix of costs."""

    weight: float


class CostMatrix(NamedTuple):
    """An objective, and what predicting j is worth where i is true, shape (m, m)."""

    of: Any
    matrix: Any


class SumOfTerms(NamedTuple):
    """Two objectives added."""

    of: Any
    rest: Any


class PlugIn(NamedTuple):
    """A ``MacroTerm``, valued at the counts that one more row would leave.

    Counts are divided by ``rows`` as in ``Change``.
    """

    of: Any
    rows: float


EVERY_CLASS = (WeighedClasses, Smallest, Kappa, ClassCorrelation)  # these sum over classes


def looks_at_every_class(objective: Any) -> bool:
    """Whether an objective looks at all classes, not only at those that a row stores."""
    if isinstance(objective, SumOfTerms):
        return looks_at_every_class(objective.of) or looks_at_every_class(objective.rest)
    return isinstance(objective, EVERY_CLASS)


def linearized(objective: Any) -> Any:
    """The objective whose derivatives are a rule: what is plugged in has none of its own."""
    if isinstance(objective, SumOfTerms):
        return SumOfTerms(linearized(objective.of), linearized(objective.rest))
    return objective.of if isinstance(objective, PlugIn) else objective


def with_epsilon(kind: Any, epsilon: float) -> Any:
    """A kind whose every ε is another number; a user's own metric has none of ours."""
    if not hasattr(kind, "_replace"):
        return kind
    parts = {name: with_epsilon(getattr(kind, name), epsilon) for name in kind._fields}
    return kind._replace(**{**parts, **({"epsilon": epsilon} if "epsilon" in parts else {})})


def sign_form(objective: Any) -> Any:
    """What decides without a budget: a form where the objective has one, else the objective.

    For a rate O/U the gain has the sign of (o U − u O)·(η, 1), where o and u are the coefficients
    of O and U by tp and by predicted. For the geometric mean of recall and specificity it has that
    of (tp + tn) η − tp, and for their arithmetic mean that of (n + 2ε) η − (positive + ε).
    """
    of = getattr(objective, "of", None)
    if not isinstance(objective, MacroTerm | MicroTerm) or objective.weight <= 0.0:
        return objective
    if isinstance(of, Ratio):
        over, under = np.array((*of.over, 0.0)), np.array((*of.under, of.epsilon))
        slope, offset = over[0] * under - under[0] * over, over[1] * under - under[1] * over
    elif isinstance(of, Geometric):
        slope = np.array((2.0, -1.0, -1.0, 1.0, 0.0))
        offset = np.array((-1.0, 0.0, 0.0, 0.0, 0.0))
    elif isinstance(of, Arithmetic):
        slope = np.array((0.0, 0.0, 0.0, 1.0, 2.0 * of.epsilon))
        offset = np.array((0.0, 0.0, -1.0, 0.0, -of.epsilon))
    else:
        return objective
    kind = MeanForm if isinstance(objective, MicroTerm) else LabelForm
    clamped = float(isinstance(of, Geometric))
    return kind(tuple(slope.tolist()), tuple(offset.tolist()), clamped)


# Rates, and recall with specificity.


@helper
def linear(form, tp, predicted, positive, n):
    """A linear form."""
    return form[0] * tp + form[1] * predicted + form[2] * positive + form[3] * n


@helper
def rate_partials(rate, tp, predicted, positive, n):
    """The value of a rate O/U, and its derivatives (o − (O/U) u) / U by tp and by predicted."""
    over, under = rate.over, rate.under
    inverse = 1.0 / (linear(under, tp, predicted, positive, n) + rate.epsilon)
    value = linear(over, tp, predicted, positive, n) * inverse
    return value, (over[0] - value * under[0]) * inverse, (over[1] - value * under[1]) * inverse


@helper
def recall_and_specificity(kind, tp, predicted, positive, n):
    """Recall tp / P and specificity tn / N, and the derivative of each by its numerator."""
    by_tp = 1.0 / (positive + kind.epsilon)
    by_tn = 1.0 / (n - positive + kind.epsilon)
    return tp * by_tp, (n - predicted - positive + tp) * by_tn, by_tp, by_tn


# Values. Greedy decisions and line searches compare them, with the same small constants as
# derivatives have; reported values come from ``omma.metrics`` and have no constants added.


@by_kind
def value(kind, rows, tp, predicted, positive, n):
    """The value of a metric of one label at fractions; ``rows`` is their number, for smoothing."""


@value.case(Ratio)
def value_of_rate(kind, rows, tp, predicted, positive, n):
    return rate_partials(kind, tp, predicted, positive, n)[0]


@value.case(Arithmetic)
def value_of_arithmetic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 0.5 * (r + s)


@value.case(Geometric)
def value_of_geometric(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return np.sqrt(max(r, 0.0) * max(s, 0.0))


@value.case(Harmonic)
def value_of_harmonic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 2.0 * r * s / (r + s + kind.epsilon)


@value.case(Quadratic)
def value_of_quadratic(kind, rows, tp, predicted, positive, n):
    r, s, _, _ = recall_and_specificity(kind, tp, predicted, positive, n)
    return 1.0 - np.sqrt(0.5 * ((1.0 - r) * (1.0 - r) + (1.0 - s) * (1.0 - s)))


@value.case(Correlation)
def value_of_correlation(kind, rows, tp, predicted, positive, n):
    spread = max(predicted * (n - predicted) * positive * (n - positive), 0.0)
    return (tp * n - predicted * positive) / (np.sqrt(spread) + kind.epsilon)


@value.case(Smaller)
def value_of_smaller(kind, rows, tp, predicted, positive, n):
    a, b, slope, offset, share, gamma = mixed_rates(kind, rows, tp, predicted, positive, n)
    return share * a + (1.0 - share) * b + 0.5 * gamma * product(slope, offset, slope, offset)


@value.case(Own)
@value.case(OwnValue)
def value_of_own(kind, rows, tp, predicted, positive, n):
    return kind.value(tp, predicted, positive, n)


# Derivatives.


@by_kind
def partials(kind, point, tp, predicted, positive):
    """Slope and offset of a metric of one label at fractions; ``point`` knows how many rows."""


@partials.case(Ratio)
def partials_of_rate(kind, point, tp, predicted, positive):
    _, slope, offset = rate_partials(kind, tp, predicted, positive, point.whole)
    return slope, offset


@helper
def together(by_tp, by_tn):
    """Slope and offset: a true positive adds to both numerators, a prediction takes from tn."""
    return by_tp + by_tn, -by_tn


@partials.case(Arithmetic)
def partials_of_arithmetic(kind, point, tp, predicted, positive):
    _, _, by_tp, by_tn = recall_and_specificity(kind, tp, predicted, positive, point.whole)
    return together(0.5 * by_tp, 0.5 * by_tn)


@partials.case(Geometric)
def partials_of_geometric(kind, point, tp, predicted, positive):
    """By tp it is √(tn / (P N tp)) / 2, by tn the same with tp and tn exchanged: one root for both.

    Rounding may leave a count a little below zero, where a square root is no number.
    """
    n = point.whole
    tn = max(n - predicted - positive + tp, 0.0)
    tp = max(tp, 0.0)
    present, absent = positive + kind.epsilon, n - positive + kind.epsilon
    product = (present * absent) * ((tp + TINY * present) * (tn + TINY * absent))
    half = 0.5 / np.sqrt(product)
    return together(tn * half, tp * half)


@partials.case(Harmonic)
def partials_of_harmonic(kind, point, tp, predicted, positive):
    r, s, by_tp, by_tn = recall_and_specificity(kind, tp, predicted, positive, point.whole)
    inverse = 1.0 / (r + s + kind.epsilon)
    scale = 2.0 * inverse * inverse
    return together(scale * s * (s + kind.epsilon) * by_tp, scale * r * (r + kind.epsilon) * by_tn)


@partials.case(Quadratic)
def partials_of_quadratic(kind, point, tp, predicted, positive):
    r, s, by_tp, by_tn = recall_and_specificity(kind, tp, predicted, positive, point.whole)
    r_miss, s_miss = 1.0 - r, 1.0 - s
    inverse = 0.5 / (np.sqrt(0.5 * (r_miss * r_miss + s_miss * s_miss)) + kind.epsilon)
    return together(r_miss * inverse * by_tp, s_miss * inverse * by_tn)


@partials.case(Correlation)
def partials_of_correlation(kind, point, tp, predicted, positive):
    n = point.whole
    covariance = tp * n - predicted * positive
    predicted_variance = predicted * (n - predicted)
    positive_variance = positive * (n - positive)
    root = np.sqrt(max(predicted_variance * positive_variance, 0.0))
    inverse = 1.0 / (root + kind.epsilon)
    # The root's own derivative is infinite at zero: ε stops it there.
    root_by_predicted = 0.5 * positive_variance * (n - 2.0 * predicted) / max(root, kind.epsilon)
    return n * inverse, -(positive + covariance * inverse * root_by_predicted) * inverse


@partials.case(Own)
def partials_of_own(kind, point, tp, predicted, positive):
    return kind.partials(tp, predicted, positive, point.whole)


@partials.case(Smaller)
def partials_of_smaller(kind, point, tp, predicted, positive):
    _, _, slope, offset, _, _ = mixed_rates(kind, point.rows, tp, predicted, positive, point.whole)
    return slope, offset


@helper
def divisor_of(fixed_rows, rows):
    """By what counts are divided, and the number of rows so divided."""
    if fixed_rows > 0.0:
        return fixed_rows, rows / fixed_rows
    return rows, 1.0


@partials.case(Change)
def partials_of_change(kind, point, tp, predicted, positive):
    """The expected value after one more row, per row, as a function of η (the paper's Greedy).

    Predicting the label gains ``η·(v(1,1,1) − v(0,0,1)) + (1 − η)·(v(0,1,0) − v(0,0,0))``, where
    v(t, p, q) is the value with t, p and q more in tp, predicted and positive: linear in η.
    """
    of, n = kind.of, point.rows
    rows = point.whole / point.inverse  # the prior included
    divisor, whole = divisor_of(kind.rows, rows + 1.0)
    step = 1.0 / divisor
    keep = rows * step
    tp, predicted, positive = tp * keep, predicted * keep, positive * keep
    absent = value(of, n, tp, predicted + step, positive, whole)
    absent -= value(of, n, tp, predicted, positive, whole)
    present = value(of, n, tp + step, predicted + step, positive + step, whole)
    present -= value(of, n, tp, predicted, positive + step, whole)
    return (present - absent) * divisor, absent * divisor


# The smaller of two rates: a kink, and its Moreau-Yosida smoothing (the paper's Remark on
# non-smooth metrics and its Appendix). At fixed label frequencies the minimum is concave. Smoothed
# by γ it is
#
#     ψ_γ(C) = max over C' of ψ(C') − ‖C − C'‖² / 2γ
#            = min over mixtures w of w·f + γ/2 ‖Σ w_i ∇f_i‖²
#
# for rates f that are linear in tp and fp, the two cells that decisions change; the norm is over
# these. Its gradient is that of the minimizing mixture.


@helper
def smoothing_at(gamma, fixed_rows, rows):
    """γ, and what γ·L is where it follows the number of rows (else zero).

    The bound of the paper is best at γ = √(2 (1 + ln n) / n) / L.
    """
    if gamma >= 0.0:
        return gamma, 0.0
    n = max(fixed_rows if fixed_rows > 0.0 else rows, 1.0)
    return 0.0, np.sqrt(2.0 * (1.0 + np.log(n)) / n)


@helper
def gamma_of(smoothing, steepness):
    """γ where the minimum is ``steepness``-Lipschitz."""
    gamma, scale = smoothing
    return scale / steepness if scale > 0.0 else gamma


@helper
def product(a_slope, a_offset, b_slope, b_offset):
    """The scalar product of two gradients by tp and fp."""
    return (a_slope + a_offset) * (b_slope + b_offset) + a_offset * b_offset


@helper
def mixed_rates(pair, rows, tp, predicted, positive, n):
    """Both rates, slope and offset of the minimizing mixture, the first rate's share, and γ."""
    a, a_slope, a_offset = rate_partials(pair.first, tp, predicted, positive, n)
    b, b_slope, b_offset = rate_partials(pair.second, tp, predicted, positive, n)
    a_square = product(a_slope, a_offset, a_slope, a_offset)
    b_square = product(b_slope, b_offset, b_slope, b_offset)
    both = product(a_slope, a_offset, b_slope, b_offset)
    smoothing = smoothing_at(pair.gamma, pair.rows, rows)
    gamma = gamma_of(smoothing, np.sqrt(max(a_square, b_square)))
    bend = gamma * (a_square - 2.0 * both + b_square)
    if bend > 0.0:
        share = min(max((b - a + gamma * (b_square - both)) / bend, 0.0), 1.0)
    else:
        share = 0.5 if a == b else np.float64(a < b)
    b_share = 1.0 - share
    slope = share * a_slope + b_share * b_slope
    offset = share * a_offset + b_share * b_offset
    return a, b, slope, offset, share, gamma


RECALL = Ratio((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), EPSILON)

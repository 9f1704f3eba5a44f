"""Objectives as named tuples: the class is the kind of metric, the fields are its coefficients.

A metric of one label is a ``Ratio``, a mean of recall and specificity, a ``Correlation``, the
``Smaller`` of two ratios, or a user's ``Own``. An objective is the average of such a metric over
labels (``MacroTerm``, ``WeightedTerm``), the metric at counts averaged over labels (``MicroTerm``),
a metric over classes, a fixed rule, or a ``SumOfTerms``.

This file defines the kinds. For a metric ψ of one label it has the ``value`` and the ``partials``:
the slope ∂ψ/∂tp = α and the offset ∂ψ/∂predicted = −β of the paper's prediction rule, Eq. (5). Both
take fractions (counts / n), with ε in denominators as in the paper (Remark 4.4). ``gains`` and
``classes`` combine them into Eq. (6). The metrics include those of the paper's Table 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omma.kernels.jit import by_kind, helper
from omma.kernels.layout import EPSILON, TINY

Form = tuple[float, float, float, float]  # coefficients of (tp, predicted, positive, n)


class Ratio(NamedTuple):
    """A ratio of two linear forms, ``over`` / (``under`` + ε), such as precision or F1."""

    over: Form
    under: Form
    epsilon: float


class Arithmetic(NamedTuple):
    """(r + s) / 2 of recall r and specificity s: balanced accuracy."""

    epsilon: float


class Geometric(NamedTuple):
    """√(r s) of recall r and specificity s; over classes, the mean of their rates."""

    epsilon: float


class Harmonic(NamedTuple):
    """2 r s / (r + s) of recall r and specificity s; over classes, the mean of their rates."""

    epsilon: float


class Quadratic(NamedTuple):
    """1 − √(((1 − r)² + (1 − s)²) / 2) of recall r, specificity s; or of the rates of classes."""

    epsilon: float


class Steep(NamedTuple):
    """Over classes: the power mean (Σ rate⁻³ / m)^(−1/3), dominated by the smallest rates."""

    epsilon: float


class Correlation(NamedTuple):
    """Matthews correlation: the covariance over the square root of the product of variances."""

    epsilon: float


class Smaller(NamedTuple):
    """The smaller of two rates, smoothed by γ = ``gamma``; 0 is no smoothing.

    If ``gamma`` is negative, γ follows from the number of rows (``smoothing_at``). That number is
    ``rows``, or the number of rows so far if ``rows`` is 0.
    """

    first: Ratio
    second: Ratio
    gamma: float
    rows: float


class Own(NamedTuple):
    """A user's metric: compiled functions of the fractions (tp, predicted, positive, whole).

    ``partials`` returns (slope, offset). ``value`` returns the value; it is None if psi does not
    compile.
    """

    partials: Any
    value: Any


class OwnValue(NamedTuple):
    """The value of a user's metric, as a first-class function of the same fractions."""

    value: Any


class Change(NamedTuple):
    """The change of a label's metric by one more row, instead of its derivatives: exact Greedy.

    Counts are divided by ``rows``; 0 means the number of rows so far plus the current row.
    """

    of: Any
    rows: float


class MacroTerm(NamedTuple):
    """The mean over labels of ``of``, a metric of one label, times ``weight``."""

    weight: float
    of: Any


class MicroTerm(NamedTuple):
    """``of``, a metric of one label, at the counts averaged over labels, times ``weight``."""

    weight: float
    of: Any


class WeightedTerm(NamedTuple):
    """The mean of ``of`` over labels, weighted by label frequency, times ``weight``."""

    weight: float
    of: Any


class Classes(NamedTuple):
    """A mean of one rate over classes, with derivatives up to a factor that all classes share.

    The factor is positive, so it does not change the ranking of classes.
    """

    weight: float
    of: Any  # the mean: Geometric, Harmonic, Quadratic or Steep
    rate: Ratio


class WeighedClasses(NamedTuple):
    """As ``Classes``, with the shared factor: it matters in a sum of terms and next to prices."""

    weight: float
    of: Any
    rate: Ratio


class Smallest(NamedTuple):
    """The smallest rate over classes; ``gamma`` and ``rows`` smooth it as in ``Smaller``."""

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
    """The rule of OFO with a threshold for each label."""

    weight: float


class MicroThreshold(NamedTuple):
    """The rule of OFO with one threshold for all labels."""

    weight: float


class LabelForm(NamedTuple):
    """Slope and offset up to a positive factor, as linear forms in the counts of a label.

    Without a budget only the sign of a gain matters, so a common positive factor can be dropped.
    For the usual metrics the rest has no division, and another metric with such a form needs no
    compiling. A form has coefficients for the fractions (tp, predicted, positive, n) and a constant
    (with ε).
    """

    slope: tuple[float, float, float, float, float]
    offset: tuple[float, float, float, float, float]
    clamped: float  # 1 if slope must be ≥ −offset (the G-mean): rounding may give tn < 0


class MeanForm(NamedTuple):
    """As ``LabelForm``, at counts averaged over labels: all labels share slope and offset."""

    slope: tuple[float, float, float, float, float]
    offset: tuple[float, float, float, float, float]
    clamped: float


class FixedRules(NamedTuple):
    """Rules that never change: ``rules``, shape (rules, 2, m), has slopes and offsets."""

    rules: Any


class Nothing(NamedTuple):
    """No objective: slope and offset are zero; gains come from elsewhere, such as a cost matrix."""

    weight: float


class CostMatrix(NamedTuple):
    """An objective plus ``matrix``, shape (m, m): the value of predicting j if i is true."""

    of: Any
    matrix: Any


class SumOfTerms(NamedTuple):
    """The sum of two objectives."""

    of: Any
    rest: Any


class PlugIn(NamedTuple):
    """The plug-in Greedy for a ``MacroTerm``: its value at the expected counts after one more row.

    Counts are divided by ``rows`` as in ``Change``.
    """

    of: Any
    rows: float


EVERY_CLASS = (WeighedClasses, Smallest, Kappa, ClassCorrelation)  # gains need sums over classes


def looks_at_every_class(objective: Any) -> bool:
    """Whether the gains of an objective need all classes, not only those stored in a row."""
    if isinstance(objective, SumOfTerms):
        return looks_at_every_class(objective.of) or looks_at_every_class(objective.rest)
    return isinstance(objective, EVERY_CLASS)


def linearized(objective: Any) -> Any:
    """Replace each ``PlugIn``, which has no derivatives, by its ``MacroTerm``."""
    if isinstance(objective, SumOfTerms):
        return SumOfTerms(linearized(objective.of), linearized(objective.rest))
    return objective.of if isinstance(objective, PlugIn) else objective


def with_epsilon(kind: Any, epsilon: float) -> Any:
    """Replace every ε of an objective; a user's metric (``Own``) has none and stays."""
    if not hasattr(kind, "_replace"):
        return kind
    parts = {name: with_epsilon(getattr(kind, name), epsilon) for name in kind._fields}
    return kind._replace(**{**parts, **({"epsilon": epsilon} if "epsilon" in parts else {})})


def sign_form(objective: Any) -> Any:
    """Return the form that decides without a budget, or the objective itself if it has no form.

    The gain has the same sign as

        (o_tp U − u_tp O) η + (o_predicted U − u_predicted O)    for a rate O/U
        (tp + tn) η − tp                                         for √(recall · specificity)
        (n + 2ε) η − (positive + ε)                              for (recall + specificity) / 2

    where o and u are the coefficients of O and U.
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


# Rates, recall and specificity. Arguments are fractions: counts / n.


@helper
def linear(form, tp, predicted, positive, n):
    """Evaluate a linear form at (tp, predicted, positive, n)."""
    return form[0] * tp + form[1] * predicted + form[2] * positive + form[3] * n


@helper
def rate_partials(rate, tp, predicted, positive, n):
    """Return the value of a rate O/U, and its derivatives by tp and by predicted.

    The derivatives are (o − (O/U) u) / U, with the coefficients o and u of tp or of predicted.
    """
    over, under = rate.over, rate.under
    inverse = 1.0 / (linear(under, tp, predicted, positive, n) + rate.epsilon)
    value = linear(over, tp, predicted, positive, n) * inverse
    return value, (over[0] - value * under[0]) * inverse, (over[1] - value * under[1]) * inverse


@helper
def recall_and_specificity(kind, tp, predicted, positive, n):
    """Return recall tp / P and specificity tn / N, and the derivative of each by its numerator.

    P = positive and N = n − positive are the denominators, each plus ε.
    """
    by_tp = 1.0 / (positive + kind.epsilon)
    by_tn = 1.0 / (n - positive + kind.epsilon)
    return tp * by_tp, (n - predicted - positive + tp) * by_tn, by_tp, by_tn


# Values, with the same ε as derivatives. Greedy and line searches compare them. Reported values
# come from ``omma.metrics`` and have no ε.


@by_kind
def value(kind, rows, tp, predicted, positive, n):
    """The value of a metric of one label at fractions.

    ``n`` is the fraction of all rows (1, or 0 before the first row). ``rows`` is the number of
    rows; only smoothing uses it.
    """


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


# Derivatives: α and −β of Eq. (5).


@by_kind
def partials(kind, point, tp, predicted, positive):
    """Slope ∂ψ/∂tp and offset ∂ψ/∂predicted of a metric of one label at fractions: Eq. (5).

    ``point`` is a ``gains.Point``; ``point.whole`` is the fraction n of all rows.
    """


@partials.case(Ratio)
def partials_of_rate(kind, point, tp, predicted, positive):
    _, slope, offset = rate_partials(kind, tp, predicted, positive, point.whole)
    return slope, offset


@helper
def together(by_tp, by_tn):
    """Return slope and offset from the derivatives by tp and by tn.

    tn = n − predicted − positive + tp: one more tp raises tn too, one more prediction lowers it.
    """
    return by_tp + by_tn, -by_tn


@partials.case(Arithmetic)
def partials_of_arithmetic(kind, point, tp, predicted, positive):
    _, _, by_tp, by_tn = recall_and_specificity(kind, tp, predicted, positive, point.whole)
    return together(0.5 * by_tp, 0.5 * by_tn)


@partials.case(Geometric)
def partials_of_geometric(kind, point, tp, predicted, positive):
    """By tp the derivative is √(tn / (P N tp)) / 2; by tn it is the same with tp and tn exchanged.

    Both share one square root. Rounding may leave a count slightly below zero, where a square root
    would be NaN.
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
    # The derivative of the square root is infinite at zero; ε bounds it.
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
    """Return the number that counts are divided by, and the fraction ``whole`` of all rows."""
    if fixed_rows > 0.0:
        return fixed_rows, rows / fixed_rows
    return rows, 1.0


@partials.case(Change)
def partials_of_change(kind, point, tp, predicted, positive):
    """Expected change of the value by one more row, as in Greedy (Appendix A of the paper).

    Predicting the label gains ``η·(v(1,1,1) − v(0,0,1)) + (1 − η)·(v(0,1,0) − v(0,0,0))``, where
    v(t, p, q) is the value after adding t to tp, p to predicted and q to positive. This is linear
    in η. It is multiplied by the divisor, which makes it comparable to a derivative.
    """
    of, n = kind.of, point.rows
    rows = point.whole / point.inverse  # including the prior
    divisor, whole = divisor_of(kind.rows, rows + 1.0)
    step = 1.0 / divisor
    keep = rows * step
    tp, predicted, positive = tp * keep, predicted * keep, positive * keep
    absent = value(of, n, tp, predicted + step, positive, whole)
    absent -= value(of, n, tp, predicted, positive, whole)
    present = value(of, n, tp + step, predicted + step, positive + step, whole)
    present -= value(of, n, tp, predicted, positive + step, whole)
    return (present - absent) * divisor, absent * divisor


# The smaller of two rates is not smooth. It is replaced by its Moreau-Yosida smoothing (Remark 4.2
# and Appendix B.2 of the paper). At fixed label frequencies the minimum is concave, and smoothed
# by γ it is
#
#     ψ_γ(C) = max over C' of ψ(C') − ‖C − C'‖² / 2γ
#            = min over mixtures w of w·f + γ/2 ‖Σ w_i ∇f_i‖²
#
# for rates f that are linear in tp and fp. Decisions change only these two cells, and the norm is
# over them. The gradient of ψ_γ is the gradient of the minimizing mixture.


@helper
def smoothing_at(gamma, fixed_rows, rows):
    """Return γ and 0; or 0 and γ·L if γ follows from the number of rows n.

    The bound of Appendix B.2 is smallest at γ = √(2 a (1 + ln n) / n) / L, with a = 1 here.
    """
    if gamma >= 0.0:
        return gamma, 0.0
    n = max(fixed_rows if fixed_rows > 0.0 else rows, 1.0)
    return 0.0, np.sqrt(2.0 * (1.0 + np.log(n)) / n)


@helper
def gamma_of(smoothing, steepness):
    """Return γ if the minimum is L-Lipschitz, where L is ``steepness``."""
    gamma, scale = smoothing
    return scale / steepness if scale > 0.0 else gamma


@helper
def product(a_slope, a_offset, b_slope, b_offset):
    """The scalar product of two gradients by (tp, fp).

    predicted = tp + fp, so the gradient by (tp, fp) is (slope + offset, offset).
    """
    return (a_slope + a_offset) * (b_slope + b_offset) + a_offset * b_offset


@helper
def mixed_rates(pair, rows, tp, predicted, positive, n):
    """Mix the two rates of ``Smaller`` with the weights that minimize the smoothed value.

    Returns both rates, slope and offset of the mixture, the weight of the first rate, and γ.
    """
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
        # Without smoothing, or if both gradients are equal: only the smaller rate counts.
        share = 0.5 if a == b else np.float64(a < b)
    b_share = 1.0 - share
    slope = share * a_slope + b_share * b_slope
    offset = share * a_offset + b_share * b_offset
    return a, b, slope, offset, share, gamma


RECALL = Ratio((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), EPSILON)

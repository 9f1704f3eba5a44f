"""Slope and offset of each label for an objective: the paper's prediction rules, Eq. (5) and (6).

Predicting label j gains slope_j·η_j + offset_j on the linearized metric, with slope_j = α_j and
offset_j = −β_j. ``prepare`` computes once per row what all labels share. ``slope_and_offset``
computes slope and offset of one label from that and from the counts of the label.

Loops over rows get an objective only as addresses of compiled functions and the numbers that these
read. So a loop is compiled once for all metrics, and a metric once for all loops. If an objective
is a single term without prices, one function computes the gains of a row and flags the predicted
labels in one pass (``decider``). Otherwise one function for each term writes slopes and offsets
(``weigher``). Terms and prices are added, and ``select`` flags labels by the sums.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from omma.kernels.jit import (
    NUMBERS,
    address_of,
    as_array,
    by_address,
    by_kind,
    call,
    config,
    helper,
    read_as,
)
from omma.kernels.layout import (
    OFFSET,
    POINT,
    POSITIVE,
    PREDICTED,
    SLOPE,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    TERM_OFFSET,
    TERM_SLOPE,
    TOTALS,
    TP,
    VALUES,
    WORK,
    N,
    padded,
)
from omma.kernels.objectives import (
    CostMatrix,
    FixedRules,
    LabelForm,
    MacroTerm,
    MacroThreshold,
    MeanForm,
    MicroTerm,
    MicroThreshold,
    Nothing,
    Own,
    PlugIn,
    SumOfTerms,
    WeightedTerm,
    divisor_of,
    linear,
    partials,
    value,
)
from omma.kernels.select import DECIDER, flag_best, flag_gain, rank_gain

# Positions in row POINT of ``work``, after the totals that decisions use.
PRIOR: int = TOTALS  # λ
LABELS: int = TOTALS + 1  # m


class Point(NamedTuple):
    """The counts at which a gradient is taken, and the prior and the number of rows to use."""

    totals: Any  # (TOTALS,): the totals that decisions use
    rows: float  # the weight of the rows, without the prior
    prior: float  # λ, added to each of the four cells of each label
    whole: float  # the fraction of all rows: 1, or 0 before the first row without a prior
    inverse: float  # 1 / (rows + 4 λ), or 1 if whole is 0
    m: int  # the number of labels
    cells: Any  # (3, labels): tp, predicted and positive of the row's labels, without the prior


@helper
def point_at(totals, prior, m, cells):
    """Make the point for ``totals`` (TOTALS,) and ``cells`` (3, labels).

    Before the first row, and without a prior, every fraction is zero.
    """
    rows = totals[N] + 4.0 * prior
    if rows > 0.0:
        return Point(totals, totals[N], prior, 1.0, 1.0 / rows, m, cells)
    return Point(totals, totals[N], prior, 0.0, 1.0, m, cells)


@helper
def fractions(point, tp, predicted, positive):
    """Add the prior to the counts of a label and divide by the number of rows.

    λ is added to each of the four cells (Remark 4.4 of the paper): tp + λ, predicted + 2λ,
    positive + 2λ, and n + 4λ.
    """
    prior, inverse = point.prior, point.inverse
    return (
        (tp + prior) * inverse,
        (predicted + 2.0 * prior) * inverse,
        (positive + 2.0 * prior) * inverse,
    )


@helper
def label_fractions(point, j):
    """Return the fractions (tp, predicted, positive) of the label at position j."""
    cells = point.cells
    return fractions(point, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j])


@helper
def mean_fractions(point):
    """Return the fractions (tp, predicted, positive) averaged over labels, from ``totals``."""
    m, totals, prior, inverse = point.m, point.totals, point.prior, point.inverse
    return (
        (totals[SUM_TP] + m * prior) * inverse / m,
        (totals[SUM_PREDICTED] + 2.0 * m * prior) * inverse / m,
        (totals[SUM_POSITIVE] + 2.0 * m * prior) * inverse / m,
    )


# Slope and offset of one label. Of the paper's Section 2: macro-ψ = (1/m) Σ_j ψ(C_j) and
# micro-ψ = ψ((1/m) Σ_j C_j), so both have a factor 1/m.


@by_kind
def prepare(objective, point):
    """Compute what all labels of a row share; the result is ``common`` in ``slope_and_offset``."""


@by_kind
def slope_and_offset(objective, common, point, eta, tp, predicted, positive):
    """Return slope and offset of a label: α_j and −β_j of Eq. (6).

    ``eta`` is the probability of the label; ``tp``, ``predicted`` and ``positive`` are its counts
    without the prior.
    """


@prepare.case(MacroTerm)
def prepare_macro(objective, point):
    return objective.weight / point.m


@slope_and_offset.case(MacroTerm)
def weigh_macro(objective, common, point, eta, tp, predicted, positive):
    slope, offset = partials(objective.of, point, *fractions(point, tp, predicted, positive))
    return common * slope, common * offset


@prepare.case(MicroTerm)
def prepare_micro(objective, point):
    """Each label changes the mean counts equally, so all labels share slope and offset."""
    slope, offset = partials(objective.of, point, *mean_fractions(point))
    weight = objective.weight / point.m
    return weight * slope, weight * offset


@slope_and_offset.case(MicroTerm)
def weigh_micro(objective, common, point, eta, tp, predicted, positive):
    return common


@prepare.case(WeightedTerm)
def prepare_weighted(objective, point):
    """The weight of a label is its share of all positives.

    Decisions do not change the shares, so these have no derivative.
    """
    occurrences = point.totals[SUM_POSITIVE] + 2.0 * point.m * point.prior
    return objective.weight / occurrences if occurrences > 0.0 else 0.0


@slope_and_offset.case(WeightedTerm)
def weigh_weighted(objective, common, point, eta, tp, predicted, positive):
    slope, offset = partials(objective.of, point, *fractions(point, tp, predicted, positive))
    share = common * (positive + 2.0 * point.prior)
    return share * slope, share * offset


# Forms: without a budget, only the sign of a gain matters.


@helper
def over_counts(form, point):
    """Convert a form over fractions into a form over counts: three coefficients and a constant."""
    tp, predicted, positive = form[0], form[1], form[2]
    prior = point.prior * (tp + 2.0 * predicted + 2.0 * positive)
    inverse = point.inverse
    constant = form[3] * point.whole + form[4] + prior * inverse
    return tp * inverse, predicted * inverse, positive * inverse, constant


@helper
def evaluate_forms(slope_form, offset_form, clamped, tp, predicted, positive):
    slope = linear(slope_form, tp, predicted, positive, 1.0)
    offset = linear(offset_form, tp, predicted, positive, 1.0)
    # For the G-mean, slope = tp + tn and offset = −tp. Rounding may give tn < 0.
    return -offset if clamped & (slope < -offset) else slope, offset


@prepare.case(LabelForm)
def prepare_form(objective, point):
    slope, offset = over_counts(objective.slope, point), over_counts(objective.offset, point)
    return slope, offset, objective.clamped != 0.0


@slope_and_offset.case(LabelForm)
def weigh_form(objective, common, point, eta, tp, predicted, positive):
    slope, offset, clamped = common
    return evaluate_forms(slope, offset, clamped, tp, predicted, positive)


@prepare.case(MeanForm)
def prepare_mean_form(objective, point):
    m, totals = point.m, point.totals
    slope, offset = over_counts(objective.slope, point), over_counts(objective.offset, point)
    mean = totals[SUM_TP] / m, totals[SUM_PREDICTED] / m, totals[SUM_POSITIVE] / m
    return evaluate_forms(slope, offset, objective.clamped != 0.0, *mean)


@slope_and_offset.case(MeanForm)
def weigh_mean_form(objective, common, point, eta, tp, predicted, positive):
    return common


# OFO predicts if η b − a ≥ 0, where a = tp + λ and b = predicted + positive + λ. Without λ, the
# threshold a / b is half of the F1 so far.


@prepare.case(MacroThreshold)
def prepare_macro_threshold(objective, point):
    return point.prior


@slope_and_offset.case(MacroThreshold)
def weigh_macro_threshold(objective, common, point, eta, tp, predicted, positive):
    return predicted + positive + common, -(tp + common)


@prepare.case(MicroThreshold)
def prepare_micro_threshold(objective, point):
    totals, prior = point.totals, point.m * point.prior  # λ for each label
    return totals[SUM_PREDICTED] + totals[SUM_POSITIVE] + prior, -(totals[SUM_TP] + prior)


@slope_and_offset.case(MicroThreshold)
def weigh_micro_threshold(objective, common, point, eta, tp, predicted, positive):
    return common


# The plug-in Greedy: the gain is not linear in η, so the offset has all of it.


@prepare.case(PlugIn)
def prepare_plug_in(objective, point):
    """Return the weight of a label, the inverse of the divisor, and the fraction of all rows."""
    divisor, whole_rows = divisor_of(objective.rows, point.whole / point.inverse + 1.0)
    return divisor * objective.of.weight / point.m, 1.0 / divisor, whole_rows


@slope_and_offset.case(PlugIn)
def weigh_plug_in(objective, common, point, eta, tp, predicted, positive):
    """Return the plug-in gain: the value at expected counts with the prediction, minus without it.

    This gain is not linear in η, so the slope is 0 and the offset is the gain. It is multiplied by
    the divisor, as in ``Change``.
    """
    weight, inverse, whole_rows = common
    of, n, prior = objective.of.of, point.rows, point.prior
    tp, predicted = tp + prior, predicted + 2.0 * prior
    positive = (positive + 2.0 * prior + eta) * inverse
    hit, chosen = (tp + eta) * inverse, (predicted + 1.0) * inverse
    with_it = value(of, n, hit, chosen, positive, whole_rows)
    without = value(of, n, tp * inverse, predicted * inverse, positive, whole_rows)
    return 0.0, weight * (with_it - without)


@prepare.case(Nothing)
def prepare_nothing(objective, point):
    return 0.0


@slope_and_offset.case(Nothing)
def weigh_nothing(objective, common, point, eta, tp, predicted, positive):
    return 0.0, 0.0


# Objectives in the form that loops over rows use.


class CompiledTerms(NamedTuple):
    """Terms to add up: for each, the address of its function (``weigher``) and its numbers."""

    functions: Any  # (terms,) int64: addresses
    numbers: Any  # (terms, numbers) float64: coefficients, padded with zeros


def compiled(objective: Any) -> Any:
    """Convert an objective to ``CompiledTerms`` for loops over rows; ``FixedRules`` stay."""
    if isinstance(objective, FixedRules):
        return objective
    terms = list(terms_of(objective))
    rows = [flat(term) for term in terms]
    numbers = np.zeros((len(rows), max(map(len, rows))))
    for row, coefficients in zip(numbers, rows, strict=True):
        row[: len(coefficients)] = coefficients
    addresses = [address_of(weigher(term)) for term in terms]
    functions: Any = addresses if config.DISABLE_JIT else np.array(addresses, np.int64)
    return CompiledTerms(functions, numbers)


def deciding_alone(term: Any, with_budget: bool) -> tuple[Any, NDArray[np.float64]]:
    """Return the address of the decider of a single term, and the numbers it reads."""
    return address_of(decider(term, with_budget)), np.array(flat(term))


def terms_of(objective: Any) -> Any:
    """Yield the terms that an objective adds up."""
    if isinstance(objective, SumOfTerms):
        yield from terms_of(objective.of)
        yield from terms_of(objective.rest)
    else:
        yield objective


def flat(term: Any) -> list[float]:
    """List all numbers of a term in order; a user's function is replaced by 0."""
    if isinstance(term, tuple):
        return [number for part in term for number in flat(part)]
    return [float(term) if isinstance(term, float | int) else 0.0]


def zeros(term: Any) -> Any:
    """Return a term of the same kind with all numbers zero: the template to compile for."""
    if isinstance(term, Own):
        return term
    if isinstance(term, tuple):
        parts = map(zeros, term)
        return type(term)(*parts) if hasattr(term, "_fields") else tuple(parts)
    return 0.0


@helper
def point_in(rows, cells):
    """Read the point from row POINT of ``rows``, which is ``work`` (WORK, stride).

    ``cells``, shape (3, stride), has the counts of the row's labels.
    """
    point = rows[POINT]
    return point_at(point, point[PRIOR], np.int64(point[LABELS]), cells)


# Compiled functions by kind. Entries are never removed: kernels hold only addresses.
_COMPILED: dict[tuple[str, str], Any] = {}


def once(make: Any, term: Any, *options: Any) -> Any:
    """Return ``make(template, *options)`` for a kind of term, compiled once per kind."""
    template = zeros(term)
    # Named tuples of different classes with equal numbers compare equal; their reprs differ.
    key = (make.__name__, repr((template, options)))
    if key not in _COMPILED:
        _COMPILED[key] = make(template, *options)
    return _COMPILED[key]


def weigher(term: Any) -> Any:
    """Return the compiled function that writes slopes and offsets for a kind of term."""
    return once(make_weigher, term)


def decider(term: Any, with_budget: bool) -> Any:
    """Return the compiled function that flags labels by a kind of term."""
    return once(make_decider, term, with_budget)


def make_weigher(template: Any) -> Any:
    """Compile the function that writes slopes and offsets for terms of one kind.

    Its parameters are pointers to the numbers of the term, the counts (3, stride) and ``work``
    (WORK, stride); then stride, width, and the row of ``work`` for slopes (offsets go to the next
    row).
    """

    def weigh_row(numbers, cells, work, stride, width, slope):
        term, rows = read_as(numbers, template), as_array(work, (WORK, stride))
        point = point_in(rows, as_array(cells, (3, stride)))
        common, cells_at = prepare(term, point), point.cells
        for i in range(padded(width)):
            counts = cells_at[TP, i], cells_at[PREDICTED, i], cells_at[POSITIVE, i]
            rows[slope, i], rows[slope + 1, i] = slope_and_offset(
                term, common, point, rows[VALUES, i], *counts
            )
        return 0

    kinds = (NUMBERS, NUMBERS, NUMBERS, types.intp, types.intp, types.intp)
    return by_address(weigh_row, *kinds, kept=not has_own(template))


def make_decider(template: Any, with_budget: bool) -> Any:
    """Compile the function that flags labels by the gains of one term: Eq. (5) and (6) in one pass.

    Its parameters are those of ``select.DECIDER``.
    """

    def decide_row(numbers, cells, work, stride, width, budget, always_candidates):
        term, rows = read_as(numbers, template), as_array(work, (WORK, stride))
        point = point_in(rows, as_array(cells, (3, stride)))
        common, cells_at = prepare(term, point), point.cells
        for i in range(padded(width)):
            eta = rows[VALUES, i]
            counts = cells_at[TP, i], cells_at[PREDICTED, i], cells_at[POSITIVE, i]
            slope, offset = slope_and_offset(term, common, point, eta, *counts)
            if with_budget:  # a constant of the closure: only one branch is compiled
                rank_gain(rows, i, slope * eta + offset, eta > 0.0)
            else:
                flag_gain(rows, i, slope * eta + offset, eta > 0.0)
        if with_budget:
            return flag_best(budget, rows, padded(width))
        return np.intp(0)

    return by_address(decide_row, *DECIDER, kept=not has_own(template))


def has_own(term: Any) -> bool:
    """Whether a term calls a user's functions; these are compiled again in each process."""
    return isinstance(term, Own) or (isinstance(term, tuple) and any(map(has_own, term)))


@by_kind
def write_slopes(objective, cells, memory, labels, pick, width):
    """Write slope and offset of a row's labels to SLOPE and OFFSET of ``memory.work``.

    ``cells``, shape (3, width), has the counts that decisions use. ``labels`` lists the ids of the
    row's labels, and is None for a dense row. ``pick`` is the index of the fixed rule to use.
    """


@write_slopes.case(np.ndarray)
def weigh_nothing_before(objective, cells, memory, labels, pick, width):
    """A decider (``make_decider``) computes slopes and offsets itself."""


@write_slopes.case(CompiledTerms)
def weigh_terms(objective, cells, memory, labels, pick, width):
    work = memory.work
    for term in range(len(objective.functions)):
        # The first term is written to the sum (SLOPE, OFFSET); the others are added to it.
        slope = SLOPE if term == 0 else TERM_SLOPE
        numbers = objective.numbers[term]
        call(objective.functions[term], numbers, cells, work, work.shape[1], width, slope)
        if term > 0:
            for i in range(width):
                work[SLOPE, i] += work[TERM_SLOPE, i]
                work[OFFSET, i] += work[TERM_OFFSET, i]


@write_slopes.case(FixedRules)
def weigh_fixed(objective, cells, memory, labels, pick, width):
    work, rules = memory.work, objective.rules
    count = rules.shape[2] if labels is None else labels.shape[0]
    for i in range(count):
        j = i if labels is None else labels[i]
        work[SLOPE, i], work[OFFSET, i] = rules[pick, 0, j], rules[pick, 1, j]


@write_slopes.case(CostMatrix)
def weigh_costs(objective, cells, memory, labels, pick, width):
    """Add Σ_i η_i G_ij to the offset of every label j: the expected value of predicting j.

    Rows with a cost matrix are dense, and every label is a candidate.
    """
    work, matrix = memory.work, objective.matrix
    write_slopes(objective.of, cells, memory, labels, pick, width)
    for i in range(matrix.shape[0]):
        eta = work[VALUES, i]
        if eta > 0.0:
            for j in range(matrix.shape[0]):
                work[OFFSET, j] += eta * matrix[i, j]


@by_kind
def flag_labels(objective, select, budget, always_candidates, cells, work, width):
    """Flag the predicted labels of a row; returns whether there are fewer candidates than k.

    Writes ``work[FLAGS]``. ``select`` is the address of a function with the parameters
    ``select.DECIDER``.
    """


@flag_labels.case()
def flag_by_weights(objective, select, budget, always_candidates, cells, work, width):
    stride = work.shape[1]
    return call(select, work, cells, work, stride, width, budget, always_candidates) != 0


@flag_labels.case(np.ndarray)
def flag_by_term(objective, select, budget, always_candidates, cells, work, width):
    stride = work.shape[1]
    return call(select, objective, cells, work, stride, width, budget, always_candidates) != 0

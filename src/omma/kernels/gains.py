"""Slope and offset of each label for an objective: the paper's prediction rules, Eq. (5) and (6).

Predicting label j gains slope_j·η_j + offset_j on the linearized metric. ``prepare`` works out once
a row what all labels share; ``weigh`` makes slope and offset of one label from that and from the
label's own counts; ``write_weights`` does so for all labels of a row.

Loops over rows know an objective only as ``Weighed``: the address of a compiled function for each
of its terms, and the numbers that the function reads. So a loop is compiled once for all metrics,
and a metric once for all loops.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from omma.kernels.jit import (
    NUMBERS,
    address_of,
    as_array,
    by_address,
    by_kind,
    call,
    config,
    helper,
    numbers_at,
    read_as,
)
from omma.kernels.layout import (
    OFFSET,
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

# `point`, an array: the totals that decisions look at, then these.
PRIOR: int = TOTALS  # λ
LABELS: int = TOTALS + 1  # m
POINT: int = TOTALS + 2


class Point(NamedTuple):
    """Where a gradient is taken: counts, with the prior added, as fractions of the rows."""

    totals: Any  # (TOTALS,) that decisions look at
    rows: float  # their number, or weight
    prior: float  # λ, added to each of the four cells of each label
    whole: float  # all rows as a fraction of themselves: 1, or 0 before the first
    inverse: float  # one over the number of rows, the prior included
    m: int
    cells: Any  # (3, labels): tp, predicted and positive of the labels at hand


@helper
def point_at(totals, prior, m, cells):
    """Before the first row, and without a prior, every fraction is zero."""
    rows = totals[N] + 4.0 * prior
    if rows > 0.0:
        return Point(totals, totals[N], prior, 1.0, 1.0 / rows, m, cells)
    return Point(totals, totals[N], prior, 0.0, 1.0, m, cells)


@helper
def fractions(point, tp, predicted, positive):
    """Counts of a label, the prior included, as fractions of the rows."""
    prior, inverse = point.prior, point.inverse
    return (
        (tp + prior) * inverse,
        (predicted + 2.0 * prior) * inverse,
        (positive + 2.0 * prior) * inverse,
    )


@helper
def label_fractions(point, j):
    """Fractions of the label at position j."""
    cells = point.cells
    return fractions(point, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j])


@helper
def mean_fractions(point):
    """Fractions averaged over labels."""
    m, totals, prior, inverse = point.m, point.totals, point.prior, point.inverse
    return (
        (totals[SUM_TP] + m * prior) * inverse / m,
        (totals[SUM_PREDICTED] + 2.0 * m * prior) * inverse / m,
        (totals[SUM_POSITIVE] + 2.0 * m * prior) * inverse / m,
    )


# Slope and offset of one label.


@by_kind
def prepare(objective, point):
    """What all labels of a row share."""


@by_kind
def weigh(objective, ready, point, tp, predicted, positive):
    """Slope and offset of a label with these counts."""


@prepare.case(MacroTerm)
def prepare_macro(objective, point):
    return objective.weight / point.m


@weigh.case(MacroTerm)
def weigh_macro(objective, ready, point, tp, predicted, positive):
    slope, offset = partials(objective.of, point, *fractions(point, tp, predicted, positive))
    return ready * slope, ready * offset


@prepare.case(MicroTerm)
def prepare_micro(objective, point):
    """Each label moves the mean counts alike."""
    slope, offset = partials(objective.of, point, *mean_fractions(point))
    weight = objective.weight / point.m
    return weight * slope, weight * offset


@weigh.case(MicroTerm)
def weigh_micro(objective, ready, point, tp, predicted, positive):
    return ready


@prepare.case(WeightedTerm)
def prepare_weighted(objective, point):
    """The weight of a label is its share of all occurrences: decisions do not change it."""
    occurrences = point.totals[SUM_POSITIVE] + 2.0 * point.m * point.prior
    return objective.weight / occurrences if occurrences > 0.0 else 0.0


@weigh.case(WeightedTerm)
def weigh_weighted(objective, ready, point, tp, predicted, positive):
    slope, offset = partials(objective.of, point, *fractions(point, tp, predicted, positive))
    share = ready * (positive + 2.0 * point.prior)
    return share * slope, share * offset


# Forms, which decide by signs alone.


@helper
def over_counts(form, point):
    """A form over fractions as one over counts: three coefficients, and a constant."""
    tp, predicted, positive = form[0], form[1], form[2]
    prior = point.prior * (tp + 2.0 * predicted + 2.0 * positive)
    inverse = point.inverse
    constant = form[3] * point.whole + form[4] + prior * inverse
    return tp * inverse, predicted * inverse, positive * inverse, constant


@helper
def evaluate_forms(slope_form, offset_form, clamped, tp, predicted, positive):
    slope = linear(slope_form, tp, predicted, positive, 1.0)
    offset = linear(offset_form, tp, predicted, positive, 1.0)
    return -offset if clamped & (slope < -offset) else slope, offset


@prepare.case(LabelForm)
def prepare_form(objective, point):
    slope, offset = over_counts(objective.slope, point), over_counts(objective.offset, point)
    return slope, offset, objective.clamped != 0.0


@weigh.case(LabelForm)
def weigh_form(objective, ready, point, tp, predicted, positive):
    slope, offset, clamped = ready
    return evaluate_forms(slope, offset, clamped, tp, predicted, positive)


@prepare.case(MeanForm)
def prepare_mean_form(objective, point):
    m, totals = point.m, point.totals
    slope, offset = over_counts(objective.slope, point), over_counts(objective.offset, point)
    mean = totals[SUM_TP] / m, totals[SUM_PREDICTED] / m, totals[SUM_POSITIVE] / m
    return evaluate_forms(slope, offset, objective.clamped != 0.0, *mean)


@weigh.case(MeanForm)
def weigh_mean_form(objective, ready, point, tp, predicted, positive):
    return ready


# OFO predicts where η b − a ≥ 0: a counts true positives, b labels and predictions, both from the
# prior.


@prepare.case(MacroThreshold)
def prepare_macro_threshold(objective, point):
    return point.prior


@weigh.case(MacroThreshold)
def weigh_macro_threshold(objective, ready, point, tp, predicted, positive):
    return predicted + positive + ready, -(tp + ready)


@prepare.case(MicroThreshold)
def prepare_micro_threshold(objective, point):
    totals, prior = point.totals, point.m * point.prior  # one prior for each label
    return totals[SUM_PREDICTED] + totals[SUM_POSITIVE] + prior, -(totals[SUM_TP] + prior)


@weigh.case(MicroThreshold)
def weigh_micro_threshold(objective, ready, point, tp, predicted, positive):
    return ready


# All labels of a row.


@by_kind
def write_weights(objective, point, values, slope, offset, count):
    """Write slope and offset of the labels at hand; ``values`` are their probabilities."""


@write_weights.case()
def write_linear_weights(objective, point, values, slope, offset, count):
    ready, cells = prepare(objective, point), point.cells
    for i in range(count):
        counts = cells[TP, i], cells[PREDICTED, i], cells[POSITIVE, i]
        slope[i], offset[i] = weigh(objective, ready, point, *counts)


@write_weights.case(PlugIn)
def write_plug_in_gains(objective, point, values, slope, offset, count):
    """Per row: the value at the expected counts with the label, less that without it.

    The gain is no line in η, so the offset has all of it.
    """
    average, cells = objective.of, point.cells
    of, n, prior = average.of, point.rows, point.prior
    divisor, whole = divisor_of(objective.rows, point.whole / point.inverse + 1.0)
    weight, inverse = divisor * average.weight / point.m, 1.0 / divisor
    for i in range(count):
        tp, predicted = cells[TP, i] + prior, cells[PREDICTED, i] + 2.0 * prior
        positive = (cells[POSITIVE, i] + 2.0 * prior + values[i]) * inverse
        hit, chosen = (tp + values[i]) * inverse, (predicted + 1.0) * inverse
        with_it = value(of, n, hit, chosen, positive, whole)
        without = value(of, n, tp * inverse, predicted * inverse, positive, whole)
        slope[i], offset[i] = 0.0, weight * (with_it - without)


# Objectives as loops over rows know them.


class Weighed(NamedTuple):
    """Terms that are added up, each a function (``make_weigher``) and the numbers it reads."""

    functions: Any  # (terms,) int64: addresses
    numbers: Any  # (terms, numbers)


def compiled(objective: Any) -> Any:
    """An objective as loops over rows know it: ``Weighed``, or ``FixedRules`` as it is."""
    if isinstance(objective, FixedRules):
        return objective
    terms = list(terms_of(objective))
    functions = [weigher(term) for term in terms]
    rows = [flat(term) for term in terms]
    numbers = np.zeros((len(rows), max(map(len, rows), default=0)))
    for row, coefficients in zip(numbers, rows, strict=True):
        row[: len(coefficients)] = coefficients
    addresses = [address_of(function) for function in functions]
    return Weighed(addresses if config.DISABLE_JIT else np.array(addresses, np.int64), numbers)


def terms_of(objective: Any) -> Any:
    """The terms that an objective adds up."""
    if isinstance(objective, SumOfTerms):
        yield from terms_of(objective.of)
        yield from terms_of(objective.rest)
    elif not isinstance(objective, Nothing):
        yield objective


def flat(term: Any) -> list[float]:
    """All numbers of a term, one after another; a user's function takes the place of one."""
    if isinstance(term, tuple):
        return [number for part in term for number in flat(part)]
    return [float(term) if isinstance(term, float | int) else 0.0]


def zeros(term: Any) -> Any:
    """A term of the same kind whose numbers are all zero: it says what to compile."""
    if isinstance(term, Own):
        return term
    if isinstance(term, tuple):
        parts = map(zeros, term)
        return type(term)(*parts) if hasattr(term, "_fields") else tuple(parts)
    return 0.0


# By kind, and never emptied: kernels keep addresses alone.
_WEIGHERS: dict[str, Any] = {}


def weigher(term: Any) -> Any:
    """The compiled function that writes slopes and offsets for a kind of term."""
    template = zeros(term)
    # Named tuples of different classes with the same numbers are equal; their texts are not.
    key = repr(template)
    if key not in _WEIGHERS:
        _WEIGHERS[key] = make_weigher(template)
    return _WEIGHERS[key]


def make_weigher(template: Any) -> Any:
    """Compile ``write_weights`` for terms of one kind; it is kept on disk as other entries are."""

    def weigh_row(numbers, point, cells, stride, work, work_stride, slope, count):
        term, at = read_as(numbers, template), as_array(point, POINT)
        counts, rows = as_array(cells, (3, stride)), as_array(work, (WORK, work_stride))
        where = point_at(at, at[PRIOR], np.int64(at[LABELS]), counts)
        write_weights(term, where, rows[VALUES], rows[slope], rows[slope + 1], count)
        return 0

    # A user's functions are compiled anew in each process, and so is what calls them.
    kept = not has_own(template)
    kinds = (NUMBERS,) * 3 + (types.intp, NUMBERS) + (types.intp,) * 3
    return by_address(weigh_row, *kinds, kept=kept)


def has_own(term: Any) -> bool:
    """Whether a term calls a user's functions."""
    return isinstance(term, Own) or (isinstance(term, tuple) and any(map(has_own, term)))


@by_kind
def weigh_labels(objective, cells, memory, labels, pick, width):
    """Write slope and offset of a row's labels into ``work``.

    ``cells`` are the counts that decisions look at. ``labels`` are the ids of the row's labels,
    None where it has all of them; ``pick`` chooses among fixed rules.
    """


@weigh_labels.case(Weighed)
def weigh_terms(objective, cells, memory, labels, pick, width):
    work, point = memory.work, memory.point
    terms = len(objective.functions)
    if terms == 0:
        for i in range(width):
            work[SLOPE, i] = work[OFFSET, i] = 0.0
    for term in range(terms):
        # The first term is written where the sum is wanted, the others are added to it.
        slope = SLOPE if term == 0 else TERM_SLOPE
        numbers = objective.numbers[term]
        call(
            objective.functions[term], numbers_at(numbers), numbers_at(point), numbers_at(cells),
            cells.shape[1], numbers_at(work), work.shape[1], slope, width,
        )  # fmt: skip
        if term > 0:
            for i in range(width):
                work[SLOPE, i] += work[TERM_SLOPE, i]
                work[OFFSET, i] += work[TERM_OFFSET, i]


@weigh_labels.case(FixedRules)
def weigh_fixed(objective, cells, memory, labels, pick, width):
    work, rules = memory.work, objective.rules
    count = rules.shape[2] if labels is None else labels.shape[0]
    for i in range(count):
        j = i if labels is None else labels[i]
        work[SLOPE, i], work[OFFSET, i] = rules[pick, 0, j], rules[pick, 1, j]


@weigh_labels.case(CostMatrix)
def weigh_costs(objective, cells, memory, labels, pick, width):
    """Σ_i η_i G_ij for every label j; rows with costs are dense, and every label is a candidate."""
    work, matrix = memory.work, objective.matrix
    weigh_labels(objective.of, cells, memory, labels, pick, width)
    for i in range(matrix.shape[0]):
        eta = work[VALUES, i]
        if eta > 0.0:
            for j in range(matrix.shape[0]):
                work[OFFSET, j] += eta * matrix[i, j]

"""Slope and offset of each label for an objective: the paper's prediction rules, Eq. (5) and (6).

Predicting label j gains slope_j·η_j + offset_j on the linearized metric. ``prepare`` works out once
a row what all labels share; ``weigh`` makes slope and offset of one label from that and from the
label's own counts.

Loops over rows know an objective only by addresses of compiled functions, and the numbers that
these read. So a loop is compiled once for all metrics, and a metric once for all loops. Where one
term decides by itself, one function weighs the labels of a row and flags those that are predicted
(``decider``), in one pass. Else there is a function for each term that writes slopes and offsets
(``weigher``): terms and prices add up, and ``select`` flags what gains by the sums.
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

# The row POINT of ``work``: the totals that decisions look at, then these.
PRIOR: int = TOTALS  # λ
LABELS: int = TOTALS + 1  # m


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
def weigh(objective, ready, point, eta, tp, predicted, positive):
    """Slope and offset of a label with this probability and these counts."""


@prepare.case(MacroTerm)
def prepare_macro(objective, point):
    return objective.weight / point.m


@weigh.case(MacroTerm)
def weigh_macro(objective, ready, point, eta, tp, predicted, positive):
    slope, offset = partials(objective.of, point, *fractions(point, tp, predicted, positive))
    return ready * slope, ready * offset


@prepare.case(MicroTerm)
def prepare_micro(objective, point):
    """Each label moves the mean counts alike."""
    slope, offset = partials(objective.of, point, *mean_fractions(point))
    weight = objective.weight / point.m
    return weight * slope, weight * offset


@weigh.case(MicroTerm)
def weigh_micro(objective, ready, point, eta, tp, predicted, positive):
    return ready


@prepare.case(WeightedTerm)
def prepare_weighted(objective, point):
    """The weight of a label is its share of all occurrences: decisions do not change it."""
    occurrences = point.totals[SUM_POSITIVE] + 2.0 * point.m * point.prior
    return objective.weight / occurrences if occurrences > 0.0 else 0.0


@weigh.case(WeightedTerm)
def weigh_weighted(objective, ready, point, eta, tp, predicted, positive):
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
def weigh_form(objective, ready, point, eta, tp, predicted, positive):
    slope, offset, clamped = ready
    return evaluate_forms(slope, offset, clamped, tp, predicted, positive)


@prepare.case(MeanForm)
def prepare_mean_form(objective, point):
    m, totals = point.m, point.totals
    slope, offset = over_counts(objective.slope, point), over_counts(objective.offset, point)
    mean = totals[SUM_TP] / m, totals[SUM_PREDICTED] / m, totals[SUM_POSITIVE] / m
    return evaluate_forms(slope, offset, objective.clamped != 0.0, *mean)


@weigh.case(MeanForm)
def weigh_mean_form(objective, ready, point, eta, tp, predicted, positive):
    return ready


# OFO predicts where η b − a ≥ 0: a counts true positives, b labels and predictions, both from the
# prior.


@prepare.case(MacroThreshold)
def prepare_macro_threshold(objective, point):
    return point.prior


@weigh.case(MacroThreshold)
def weigh_macro_threshold(objective, ready, point, eta, tp, predicted, positive):
    return predicted + positive + ready, -(tp + ready)


@prepare.case(MicroThreshold)
def prepare_micro_threshold(objective, point):
    totals, prior = point.totals, point.m * point.prior  # one prior for each label
    return totals[SUM_PREDICTED] + totals[SUM_POSITIVE] + prior, -(totals[SUM_TP] + prior)


@weigh.case(MicroThreshold)
def weigh_micro_threshold(objective, ready, point, eta, tp, predicted, positive):
    return ready


# A value plugged in: the gain is no line in η, so the offset has all of it.


@prepare.case(PlugIn)
def prepare_plug_in(objective, point):
    """The numbers of rows to divide by, and what a label weighs."""
    divisor, whole_rows = divisor_of(objective.rows, point.whole / point.inverse + 1.0)
    return divisor * objective.of.weight / point.m, 1.0 / divisor, whole_rows


@weigh.case(PlugIn)
def weigh_plug_in(objective, ready, point, eta, tp, predicted, positive):
    """Per row: the value at the expected counts with the label, less that without it."""
    weight, inverse, whole_rows = ready
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


@weigh.case(Nothing)
def weigh_nothing(objective, ready, point, eta, tp, predicted, positive):
    return 0.0, 0.0


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
    rows = [flat(term) for term in terms]
    numbers = np.zeros((len(rows), max(map(len, rows))))
    for row, coefficients in zip(numbers, rows, strict=True):
        row[: len(coefficients)] = coefficients
    addresses = [address_of(weigher(term)) for term in terms]
    return Weighed(addresses if config.DISABLE_JIT else np.array(addresses, np.int64), numbers)


def deciding_alone(term: Any, with_budget: bool) -> tuple[Any, NDArray[np.float64]]:
    """The address of the function that decides rows by a term, and the numbers it reads."""
    return address_of(decider(term, with_budget)), np.array(flat(term))


def terms_of(objective: Any) -> Any:
    """The terms that an objective adds up."""
    if isinstance(objective, SumOfTerms):
        yield from terms_of(objective.of)
        yield from terms_of(objective.rest)
    else:
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


@helper
def point_in(rows, cells):
    """The point of a row's scratch space ``rows``; ``cells`` are counts of its labels."""
    point = rows[POINT]
    return point_at(point, point[PRIOR], np.int64(point[LABELS]), cells)


# By kind, and never emptied: kernels keep addresses alone.
_COMPILED: dict[tuple[str, str], Any] = {}


def once(make: Any, term: Any, *options: Any) -> Any:
    """What ``make`` compiles for a kind of term."""
    template = zeros(term)
    # Named tuples of different classes with the same numbers are equal; their texts are not.
    key = (make.__name__, repr((template, options)))
    if key not in _COMPILED:
        _COMPILED[key] = make(template, *options)
    return _COMPILED[key]


def weigher(term: Any) -> Any:
    """The compiled function that writes slopes and offsets for a kind of term."""
    return once(make_weigher, term)


def decider(term: Any, with_budget: bool) -> Any:
    """The compiled function that flags labels by a kind of term."""
    return once(make_decider, term, with_budget)


def make_weigher(template: Any) -> Any:
    """Compile what writes slopes and offsets for terms of one kind."""

    def weigh_row(numbers, cells, work, stride, width, slope):
        term, rows = read_as(numbers, template), as_array(work, (WORK, stride))
        point = point_in(rows, as_array(cells, (3, stride)))
        ready, cells_at = prepare(term, point), point.cells
        for i in range(padded(width)):
            counts = cells_at[TP, i], cells_at[PREDICTED, i], cells_at[POSITIVE, i]
            rows[slope, i], rows[slope + 1, i] = weigh(term, ready, point, rows[VALUES, i], *counts)
        return 0

    kinds = (NUMBERS, NUMBERS, NUMBERS, types.intp, types.intp, types.intp)
    return by_address(weigh_row, *kinds, kept=not has_own(template))


def make_decider(template: Any, with_budget: bool) -> Any:
    """Compile what flags labels by the gains of one term: Eq. (5) and (6), in one pass."""

    def decide_row(numbers, cells, work, stride, width, budget, always_candidates):
        term, rows = read_as(numbers, template), as_array(work, (WORK, stride))
        point = point_in(rows, as_array(cells, (3, stride)))
        ready, cells_at = prepare(term, point), point.cells
        for i in range(padded(width)):
            eta = rows[VALUES, i]
            counts = cells_at[TP, i], cells_at[PREDICTED, i], cells_at[POSITIVE, i]
            slope, offset = weigh(term, ready, point, eta, *counts)
            if with_budget:  # the same for all rows: one of both is compiled
                rank_gain(rows, i, slope * eta + offset, eta > 0.0)
            else:
                flag_gain(rows, i, slope * eta + offset, eta > 0.0)
        if with_budget:
            return flag_best(budget, rows, padded(width))
        return np.intp(0)

    return by_address(decide_row, *DECIDER, kept=not has_own(template))


def has_own(term: Any) -> bool:
    """Whether a term calls a user's functions: they are compiled anew in each process."""
    return isinstance(term, Own) or (isinstance(term, tuple) and any(map(has_own, term)))


@by_kind
def weigh_labels(objective, cells, memory, labels, pick, width):
    """Write slope and offset of a row's labels into ``work``.

    ``cells`` are the counts that decisions look at. ``labels`` are the ids of the row's labels,
    None where it has all of them; ``pick`` chooses among fixed rules.
    """


@weigh_labels.case(np.ndarray)
def weigh_nothing_before(objective, cells, memory, labels, pick, width):
    """What decides by itself weighs by itself."""


@weigh_labels.case(Weighed)
def weigh_terms(objective, cells, memory, labels, pick, width):
    work = memory.work
    for term in range(len(objective.functions)):
        # The first term is written where the sum is wanted, the others are added to it.
        slope = SLOPE if term == 0 else TERM_SLOPE
        numbers = objective.numbers[term]
        call(objective.functions[term], numbers, cells, work, work.shape[1], width, slope)
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


@by_kind
def flag_labels(objective, select, budget, always_candidates, cells, work, width):
    """Flag the labels of a row that are predicted; returns whether there are too few candidates.

    ``select`` is the address of a function (``select.DECIDER``).
    """


@flag_labels.case()
def flag_by_weights(objective, select, budget, always_candidates, cells, work, width):
    stride = work.shape[1]
    return call(select, work, cells, work, stride, width, budget, always_candidates) != 0


@flag_labels.case(np.ndarray)
def flag_by_term(objective, select, budget, always_candidates, cells, work, width):
    stride = work.shape[1]
    return call(select, objective, cells, work, stride, width, budget, always_candidates) != 0

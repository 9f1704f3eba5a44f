"""Slope and offset of each label for an objective: the paper's prediction rules, Eq. (5) and (6).

Predicting label j gains slope_j·η_j + offset_j on the linearized metric. ``prepare`` works out once
a row what all labels share; ``weigh`` makes slope and offset of one label from that and from the
label's own counts. ``gain`` is what decisions rank. ``fill_extras`` is for objectives that know
more of a label than its counts.
"""

from typing import Any, NamedTuple

from numba.extending import overload

from omma.kernels.counts import see
from omma.kernels.jit import INLINED, by_kind, helper
from omma.kernels.layout import (
    EXTRA_OFFSET,
    EXTRA_SLOPE,
    SEEN,
    SUM_POSITIVE,
    SUM_PREDICTED,
    SUM_TP,
    VALUES,
    N,
)
from omma.kernels.objectives import (
    Costs,
    Fixed,
    LabelForm,
    Macro,
    MacroThreshold,
    MeanForm,
    Micro,
    MicroThreshold,
    Own,
    PlugIn,
    Sum,
    Weighted,
    divisor_of,
    linear,
    partials,
    value,
)


class Point(NamedTuple):
    """Where a gradient is taken: counts, with the prior added, as fractions of the rows."""

    totals: Any  # (TOTALS,) that decisions look at
    rows: float  # their number, or weight
    prior: float  # λ, added to each of the four cells of each label
    whole: float  # all rows as a fraction of themselves: 1, or 0 before the first
    inverse: float  # one over the number of rows, the prior included
    m: int
    feedback: Any  # says which counts of a label decisions look at (``counts``)
    columns: Any  # (fields, labels): what is kept of all labels


@helper
def point_at(totals, prior, m, feedback, columns):
    """Before the first row, and without a prior, every fraction is zero."""
    rows = totals[N] + 4.0 * prior
    if rows > 0.0:
        return Point(totals, totals[N], prior, 1.0, 1.0 / rows, m, feedback, columns)
    return Point(totals, totals[N], prior, 0.0, 1.0, m, feedback, columns)


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
def mean_fractions(point):
    """The same, averaged over labels."""
    m, totals, prior, inverse = point.m, point.totals, point.prior, point.inverse
    return (
        (totals[SUM_TP] + m * prior) * inverse / m,
        (totals[SUM_PREDICTED] + 2.0 * m * prior) * inverse / m,
        (totals[SUM_POSITIVE] + 2.0 * m * prior) * inverse / m,
    )


@by_kind
def prepare(objective, point):
    """What all labels of a row share."""


@by_kind
def weigh(objective, ready, point, tp, predicted, positive):
    """Slope and offset of a label with these counts."""


@prepare.case()
def prepare_nothing(objective, point):
    """Objectives whose labels share nothing."""
    return 0.0


@weigh.case()
def weigh_nothing(objective, ready, point, tp, predicted, positive):
    """Objectives that add all by ``add_extras``."""
    return 0.0, 0.0


@prepare.case(Macro)
def prepare_macro(objective, point):
    return objective.weight / point.m


@weigh.case(Macro)
def weigh_macro(objective, ready, point, tp, predicted, positive):
    slope, offset = partials(objective.of, point, *fractions(point, tp, predicted, positive))
    return ready * slope, ready * offset


@prepare.case(Micro)
def prepare_micro(objective, point):
    """Each label moves the mean counts alike."""
    slope, offset = partials(objective.of, point, *mean_fractions(point))
    weight = objective.weight / point.m
    return weight * slope, weight * offset


@weigh.case(Micro)
def weigh_micro(objective, ready, point, tp, predicted, positive):
    return ready


@prepare.case(Weighted)
def prepare_weighted(objective, point):
    """The weight of a label is its share of all occurrences: decisions do not change it."""
    occurrences = point.totals[SUM_POSITIVE] + 2.0 * point.m * point.prior
    return objective.weight / occurrences if occurrences > 0.0 else 0.0


@weigh.case(Weighted)
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


@weigh.case(MacroThreshold)
def weigh_macro_threshold(objective, ready, point, tp, predicted, positive):
    return predicted + positive + point.prior, -(tp + point.prior)


@prepare.case(MicroThreshold)
def prepare_micro_threshold(objective, point):
    totals, prior = point.totals, point.m * point.prior  # one prior for each label
    return totals[SUM_PREDICTED] + totals[SUM_POSITIVE] + prior, -(totals[SUM_TP] + prior)


@weigh.case(MicroThreshold)
def weigh_micro_threshold(objective, ready, point, tp, predicted, positive):
    return ready


# Objectives that hold others.


@prepare.case(Sum)
def prepare_sum(objective, point):
    return prepare(objective.of, point), prepare(objective.rest, point)


@weigh.case(Sum)
def weigh_sum(objective, ready, point, tp, predicted, positive):
    slope, offset = weigh(objective.of, ready[0], point, tp, predicted, positive)
    more_slope, more_offset = weigh(objective.rest, ready[1], point, tp, predicted, positive)
    return slope + more_slope, offset + more_offset


@prepare.case(PlugIn)
@prepare.case(Costs)
def prepare_inner(objective, point):
    return prepare(objective.of, point)


@weigh.case(PlugIn)
@weigh.case(Costs)
def weigh_inner(objective, ready, point, tp, predicted, positive):
    return weigh(objective.of, ready, point, tp, predicted, positive)


# Gains.


@by_kind
def gain(objective, ready, point, eta, tp, predicted, positive, slope, offset):
    """What predicting a label of probability η gains; ``slope`` and ``offset`` are extras."""


@gain.case()
def linear_gain(objective, ready, point, eta, tp, predicted, positive, slope, offset):
    own_slope, own_offset = weigh(objective, ready, point, tp, predicted, positive)
    return (own_slope + slope) * eta + (own_offset + offset)


@by_kind
def difference(objective, point, inverse, whole, cells, eta):
    """How much one more prediction, right with probability η, changes an objective.

    ``cells`` times ``inverse`` are fractions, of which all rows make ``whole``.
    """


@difference.case(Macro)
def difference_of_macro(objective, point, inverse, whole, cells, eta):
    tp, predicted, positive = cells
    positive *= inverse
    of, n = objective.of, point.rows
    with_it = value(of, n, (tp + eta) * inverse, (predicted + 1.0) * inverse, positive, whole)
    without = value(of, n, tp * inverse, predicted * inverse, positive, whole)
    return objective.weight / point.m * (with_it - without)


@difference.case(Sum)
def difference_of_sum(objective, point, inverse, whole, cells, eta):
    first = difference(objective.of, point, inverse, whole, cells, eta)
    return first + difference(objective.rest, point, inverse, whole, cells, eta)


@gain.case(PlugIn)
def plug_in_gain(objective, ready, point, eta, tp, predicted, positive, slope, offset):
    """Per row: the value at the expected counts with the label, less that without it."""
    prior, rows = point.prior, point.whole / point.inverse + 1.0
    divisor, whole = divisor_of(objective.rows, rows)
    cells = tp + prior, predicted + 2.0 * prior, positive + 2.0 * prior + eta
    return divisor * difference(objective.of, point, 1.0 / divisor, whole, cells, eta)


# Extras: what an objective adds to single labels. The case of an objective without extras returns
# None, so that loops over labels do not read their columns.


@by_kind
def fill_extras(objective, point, columns, work, labels, pick, width):
    """Write extras of a row's labels into ``work``; returns a pair of zeros, or None without any.

    ``labels`` are the ids of the row's labels, None where it has all of them; ``pick`` chooses
    among fixed rules.
    """


@fill_extras.case()
def fill_no_extras(objective, point, columns, work, labels, pick, width):
    return None


@fill_extras.case(Fixed)
@fill_extras.case(Costs)
@fill_extras.case(Sum)
@fill_extras.case(Macro, Own)
@fill_extras.case(Micro, Own)
@fill_extras.case(Weighted, Own)
def fill_some_extras(objective, point, columns, work, labels, pick, width):
    clear_extras(work, width)
    add_extras(objective, point, columns, work, labels, pick, width)
    return 0.0, 0.0


@helper
def clear_extras(work, width):
    for i in range(width):
        work[EXTRA_SLOPE, i] = work[EXTRA_OFFSET, i] = 0.0


@by_kind
def add_extras(objective, point, columns, work, labels, pick, width):
    """Add the extras of an objective."""


@add_extras.case()
def add_nothing(objective, point, columns, work, labels, pick, width):
    pass


@helper
def label_at(labels, i):
    """The label at a position of a row."""
    return i if labels is None else labels[i]


@helper
def stored(labels, m):
    """How many labels a row has."""
    return m if labels is None else labels.shape[0]


@add_extras.case(Fixed)
def add_rules(objective, point, columns, work, labels, pick, width):
    for i in range(stored(labels, point.m)):
        j = label_at(labels, i)
        work[EXTRA_SLOPE, i] += objective.rules[pick, 0, j]
        work[EXTRA_OFFSET, i] += objective.rules[pick, 1, j]


@add_extras.case(Costs)
def add_costs(objective, point, columns, work, labels, pick, width):
    """Σ_i η_i G_ij for every label j; rows with costs are dense, and every label is a candidate."""
    add_extras(objective.of, point, columns, work, labels, pick, width)
    for i in range(point.m):
        eta = work[VALUES, i]
        if eta > 0.0:
            for j in range(point.m):
                work[EXTRA_OFFSET, j] += eta * objective.matrix[i, j]


@add_extras.case(Sum)
def add_sum(objective, point, columns, work, labels, pick, width):
    add_extras(objective.of, point, columns, work, labels, pick, width)
    add_extras(objective.rest, point, columns, work, labels, pick, width)


# A user's own metric is called once a row, for all labels of the row: its slopes and offsets come
# back in place of tp and predicted.


@helper
def call_own(own, work, whole, count):
    tp, predicted, positive = work[SEEN], work[SEEN + 1], work[SEEN + 2]
    call_partials(own.partials, tp, predicted, positive, whole, count)


@add_extras.case(Macro, Own)
def add_own_macro(objective, point, columns, work, labels, pick, width):
    add_own(objective.of, objective.weight / point.m, 0.0, point, columns, work, width)


@add_extras.case(Weighted, Own)
def add_own_weighted(objective, point, columns, work, labels, pick, width):
    add_own(objective.of, 0.0, prepare_weighted(objective, point), point, columns, work, width)


@helper
def add_own(own, weight, by_positive, point, columns, work, width):
    """Each label's slope and offset, times ``weight + by_positive·positive``."""
    for i in range(width):
        tp, predicted, positive = see(point.feedback, columns, point.rows, i)
        work[SEEN, i], work[SEEN + 1, i], work[SEEN + 2, i] = fractions(
            point, tp, predicted, positive
        )
    call_own(own, work, point.whole, width)
    for i in range(width):
        share = weight
        if by_positive > 0.0:
            _, _, positive = see(point.feedback, columns, point.rows, i)
            share += by_positive * (positive + 2.0 * point.prior)
        work[EXTRA_SLOPE, i] += share * work[SEEN, i]
        work[EXTRA_OFFSET, i] += share * work[SEEN + 1, i]


@add_extras.case(Micro, Own)
def add_own_micro(objective, point, columns, work, labels, pick, width):
    weight = objective.weight / point.m
    work[SEEN, 0], work[SEEN + 1, 0], work[SEEN + 2, 0] = mean_fractions(point)
    call_own(objective.of, work, point.whole, 1)
    for i in range(width):
        work[EXTRA_SLOPE, i] += weight * work[SEEN, 0]
        work[EXTRA_OFFSET, i] += weight * work[SEEN + 1, 0]


def call_partials(partials, tp, predicted, positive, whole, count):
    """Call a user's derivatives; with the compiler switched off they are a plain function."""
    partials(tp, predicted, positive, whole, count)


@overload(call_partials, jit_options=INLINED)
def _overload_call_partials(partials, tp, predicted, positive, whole, count):
    def call(partials, tp, predicted, positive, whole, count):
        partials(tp.ctypes, predicted.ctypes, positive.ctypes, whole, count)

    return call


# Own metrics add all by extras.


@prepare.case(Macro, Own)
@prepare.case(Micro, Own)
@prepare.case(Weighted, Own)
def prepare_own(objective, point):
    return 0.0


@weigh.case(Macro, Own)
@weigh.case(Micro, Own)
@weigh.case(Weighted, Own)
def weigh_own(objective, ready, point, tp, predicted, positive):
    return 0.0, 0.0


# Candidates.


@by_kind
def is_candidate(objective, eta, i, m):
    """Whether a label may be chosen: its probability is above zero, except with costs."""


@is_candidate.case()
def is_probable(objective, eta, i, m):
    return eta > 0.0


@is_candidate.case(Costs)
def is_label(objective, eta, i, m):
    """Columns are padded: not every position is a label."""
    return i < m

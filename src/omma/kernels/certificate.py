"""What the best decision on each row is worth on a tangent of the metric, and what makes one.

A tangent is ``weights`` (3, m): slope, offset and the derivative by frequency of every label, with
an ``intercept``. A row with probabilities η is worth

    intercept + Σ over labels of by_positive·η + Σ over the best decision of (slope·η + offset)

and where its labels y are known, ``off`` is what putting them in place of η would change.

Beyond slope and offset a tangent needs the derivative by how often a label occurs, taken by
differences of the value: decisions do not move label frequencies, so no rule needs it, but an
estimate of what a metric can reach does, because frequencies are estimated too. Of a minimum the
tangent is that of the mixture of its rates, which lies above the minimum and closer to it than the
smoothing that the mixture comes from.
"""

from typing import Final

from omma.kernels.classes import smallest_value
from omma.kernels.gains import label_fractions, mean_fractions, point_at
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.layout import FLAGS, VALUES, padded
from omma.kernels.objectives import (
    MacroTerm,
    MicroTerm,
    Smaller,
    Smallest,
    mixed_rates,
    rate_partials,
    value,
)
from omma.kernels.replay import decide_labels, fill_up, read_values
from omma.kernels.row import decide

STEP: Final = 1e-5  # of the frequency itself

SLOPE, OFFSET, BY_POSITIVE = range(3)

# What is summed up over rows of weight w, worth u, off by d; from KNOWN_W on, of rows whose labels
# are known.
SUM_W, SUM_WW, SUM_WU, SUM_WWU, SUM_WWUU = range(5)
KNOWN_W, KNOWN_WW, SUM_WD, SUM_WWD, SUM_WWDD = range(5, 10)
ROWS_USED, SUMMED = 10, 11


@helper
def add_row(w, worth, sums):
    """Add what a row is worth."""
    sums[SUM_W] += w
    sums[SUM_WW] += w * w
    sums[SUM_WU] += w * worth
    sums[SUM_WWU] += w * w * worth
    sums[SUM_WWUU] += w * w * worth * worth
    sums[ROWS_USED] += 1.0


@helper
def add_labels(w, off, sums):
    """Add by what its labels differ from its probabilities."""
    sums[KNOWN_W] += w
    sums[KNOWN_WW] += w * w
    sums[SUM_WD] += w * off
    sums[SUM_WWD] += w * w * off
    sums[SUM_WWDD] += w * w * off * off


@helper
def certify(labels, count, true, row, weights, intercept, sums, place, work):
    """Add what a decided row is worth; ``labels`` is None where it has all of them."""
    expected, worth = 0.0, intercept  # expected: what depends on labels, at their probabilities
    for i in range(count):
        j = i if labels is None else labels[i]
        flag = work[FLAGS, i]
        expected += work[VALUES, i] * (weights[BY_POSITIVE, j] + flag * weights[SLOPE, j])
        worth += flag * weights[OFFSET, j]
    add_row(row[0], worth + expected, sums)
    if row[1]:
        off = -expected
        for i in range(true.shape[0]):
            j, flag = true[i], 0.0
            if labels is None:
                flag = work[FLAGS, j]
            elif place[j] < count and labels[place[j]] == j:
                flag = work[FLAGS, place[j]]
            off += weights[BY_POSITIVE, j] + flag * weights[SLOPE, j]
        add_labels(row[0], off, sums)


@helper
def weight_and_known(extras, t):
    """The weight of row t, and whether its labels are known."""
    weight = extras.weights[t] if extras.weights.shape[0] > 0 else 1.0
    known = extras.known.shape[0] == 0 or extras.known[t] != 0
    return weight, extras.labelled and known


@entry
def certify_dense(
    eta, rows, true_ids, true_starts, true_ends, extras, spec, memory, weights, intercept, sums
):  # fmt: skip
    """Add what rows of every label are worth to ``sums``; ``spec`` decides by the tangent."""
    work, width = memory.work, padded(memory.work.shape[1])
    for t in range(rows.shape[0]):
        read_values(eta[rows[t]], work[VALUES])
        if decide(spec, memory, None, None, 0, width):
            fill_up(spec.budget, work[FLAGS])
        row = weight_and_known(extras, t)
        first, last = (true_starts[t], true_ends[t]) if row[1] else (0, 0)
        true = true_ids[first:last]
        certify(None, spec.m, true, row, weights, intercept, sums, None, work)


@entry
def certify_sparse(
    indices, data, starts, ends, true_ids, true_starts, true_ends, extras, sparse, spec, memory,
    weights, intercept, sums,
):  # fmt: skip
    """Add what rows of stored labels are worth to ``sums``."""
    for t in range(starts.shape[0]):
        labels, values = indices[starts[t] : ends[t]], data[starts[t] : ends[t]]
        count, _ = decide_labels(labels, values, 0, sparse, spec, memory)
        row = weight_and_known(extras, t)
        first, last = (true_starts[t], true_ends[t]) if row[1] else (0, 0)
        true, row_labels = true_ids[first:last], sparse.ids[:count]
        certify(row_labels, count, true, row, weights, intercept, sums, sparse.place, memory.work)


# Derivatives by label frequencies.


@by_kind
def value_where(of, point, at, positive):
    """A metric of one label at given fractions, but for how often the label occurs."""


@value_where.case()
def value_itself(of, point, at, positive):
    return value(of, point.rows, at[0], at[1], positive, point.whole)


@value_where.case(Smaller)
def value_of_mixture(of, point, at, positive):
    """Of a minimum's mixture, at the share that its rates have at those fractions."""
    _, _, _, _, share, _ = mixed_rates(of, point.rows, at[0], at[1], at[2], point.whole)
    a, _, _ = rate_partials(of.first, at[0], at[1], positive, point.whole)
    b, _, _ = rate_partials(of.second, at[0], at[1], positive, point.whole)
    return share * a + (1.0 - share) * b


@helper
def by_frequency(of, point, at):
    """The derivative of a metric of one label by the label's frequency."""
    h = STEP * at[2]
    if h <= 0.0:
        return 0.0
    up, down = value_where(of, point, at, at[2] + h), value_where(of, point, at, at[2] - h)
    return (up - down) / (2.0 * h)


@by_kind
def add_slopes(objective, point, out):
    """Add the derivative by each label's frequency."""


@add_slopes.case(MacroTerm)
def add_macro(objective, point, out):
    for j in range(point.m):
        slope = by_frequency(objective.of, point, label_fractions(point, j))
        out[j] += objective.weight / point.m * slope


@add_slopes.case(MicroTerm)
def add_micro(objective, point, out):
    slope = by_frequency(objective.of, point, mean_fractions(point))
    for j in range(point.m):
        out[j] += objective.weight / point.m * slope


@entry
def by_positive(objective, prior, cells, totals, out):
    """Add the derivatives of an average over labels, at counts (3, m), to ``out`` (m,)."""
    add_slopes(objective, point_at(totals, prior, cells.shape[1], cells), out)


@by_kind
def mixture(objective, point):
    """The mixture of a minimum's rates."""


@mixture.case(MicroTerm)
def mixture_micro(objective, point):
    at = mean_fractions(point)
    return value_where(objective.of, point, at, at[2])


@mixture.case(MacroTerm)
def mixture_macro(objective, point):
    total = 0.0
    for j in range(point.m):
        at = label_fractions(point, j)
        total += value_where(objective.of, point, at, at[2])
    return total / point.m


@mixture.case(Smallest)
def mixture_smallest(objective, point):
    return smallest_value(objective, point, False)


@entry
def mixture_of(objective, prior, cells, totals):
    """The mixture of a minimum's rates, at counts (3, m)."""
    return mixture(objective, point_at(totals, prior, cells.shape[1], cells))

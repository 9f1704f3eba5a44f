"""What the best decision on each row is worth on a tangent of the metric, and what makes one.

A tangent is ``weights`` (slope, offset and the derivative by frequency, of every label) with an
``intercept``. A row with probabilities η is worth

    intercept + Σ over labels of by_positive·η + Σ over the best decision of (slope·η + offset)

and where its labels y are known, ``off`` is what putting them in place of η would change.

Beyond slope and offset a tangent needs the derivative by how often a label occurs, taken by
differences of the value: decisions do not move label frequencies, so no rule needs it, but who
estimates what a metric can reach does, because frequencies are estimated too. And of a minimum it
is the mixture of its rates, which lies above the minimum, and closer to it than the smoothing that
the mixture comes from.
"""

import numpy as np

from omma.kernels import minimum
from omma.kernels.decide import CHOSEN, widen
from omma.kernels.jit import by_kind, entry, helper
from omma.kernels.kinds import Macro, Micro, Smaller, Smallest
from omma.kernels.layout import FLAGS, GAINS, VALUES, N
from omma.kernels.one_label import value
from omma.kernels.point import fractions, mean_fractions, point_at
from omma.kernels.pointer import EVERYTHING, called
from omma.kernels.select import choose_nonnegative

STEP = 1e-5  # of the frequency itself

SLOPE, OFFSET, BY_POSITIVE = range(3)

# What is summed up over rows of weight w, worth u, off by d; from KNOWN_W on, of rows whose labels
# are known.
SUM_W, SUM_WW, SUM_WU, SUM_WWU, SUM_WWUU = range(5)
KNOWN_W, KNOWN_WW, SUM_WD, SUM_WWD, SUM_WWDD = range(5, 10)
ROWS_USED, SUMMED = 10, 11


@helper
def certify_row(labels, count, t, true, row_weights, weights, intercept, decider, sums, work):
    """Add what one row is worth: decide what gains most on the tangent, and add that up."""
    scratch, ids = work
    chosen = ids[CHOSEN]
    values, gains, flags = scratch[VALUES], scratch[GAINS], scratch[FLAGS]
    for position in range(count):
        j = labels[position] if labels.shape[0] > 0 else position
        gain = weights[SLOPE, j] * values[position] + weights[OFFSET, j]
        gains[position] = gain if values[position] > 0.0 else -np.inf
    if decider.select == 0:
        found = choose_nonnegative(gains, count, labels, chosen)
    else:
        found = called(decider.select, (decider.budget, scratch, count, labels, chosen))
    for i in range(found):
        flags[chosen[i]] = 1.0
    expected = 0.0  # what depends on labels, at their probabilities
    for position in range(count):
        j = labels[position] if labels.shape[0] > 0 else position
        each = weights[BY_POSITIVE, j] + flags[j] * weights[SLOPE, j]
        expected += values[position] * each
    worth = intercept + expected
    for i in range(found):
        worth += weights[OFFSET, chosen[i]]
    w = row_weights[t] if row_weights.shape[0] > 0 else 1.0
    sums[SUM_W] += w
    sums[SUM_WW] += w * w
    sums[SUM_WU] += w * worth
    sums[SUM_WWU] += w * w * worth
    sums[SUM_WWUU] += w * w * worth * worth
    sums[ROWS_USED] += 1.0
    if true.starts.shape[0] > 0 and (true.known.shape[0] == 0 or true.known[t] != 0):
        off = -expected
        for i in range(true.starts[t], true.ends[t]):
            j = true.ids[i]
            off += weights[BY_POSITIVE, j] + flags[j] * weights[SLOPE, j]
        sums[KNOWN_W] += w
        sums[KNOWN_WW] += w * w
        sums[SUM_WD] += w * off
        sums[SUM_WWD] += w * w * off
        sums[SUM_WWDD] += w * w * off * off
    for i in range(found):
        flags[chosen[i]] = 0.0


@entry("the certificate of dense rows")
def certify_dense(eta, rows, true, row_weights, weights, intercept, decider, sums, scratch, ids):
    """Add what rows of every label are worth to ``sums``."""
    for j in range(scratch.shape[1]):
        scratch[FLAGS, j] = 0.0
    for t in range(rows.shape[0]):
        widen(eta[rows[t]], scratch[VALUES])
        certify_row(
            EVERYTHING, eta.shape[1], t, true, row_weights, weights, intercept, decider, sums,
            (scratch, ids),
        )  # fmt: skip


@entry("the certificate of sparse rows")
def certify_sparse(
    indices, data, starts, ends, true, row_weights, weights, intercept, decider, sums, scratch,
    ids,
):  # fmt: skip
    """Add what rows of stored labels are worth to ``sums``."""
    for j in range(scratch.shape[1]):
        scratch[FLAGS, j] = 0.0
    for t in range(starts.shape[0]):
        labels = indices[starts[t] : ends[t]]
        widen(data[starts[t] : ends[t]], scratch[VALUES])
        certify_row(
            labels, labels.shape[0], t, true, row_weights, weights, intercept, decider, sums,
            (scratch, ids),
        )  # fmt: skip


@by_kind
def value_where(of, point, at, positive):
    """A metric of one label at given fractions, but for how often the label occurs."""


@value_where.case()
def value_itself(of, point, at, positive):
    return value(of, point.totals[N], at[0], at[1], positive, point.whole)


@value_where.case(Smaller)
def value_of_mixture(of, point, at, positive):
    """Of a minimum's mixture, at the share that its rates have at those fractions."""
    smoothing = minimum.smoothing_at(of.gamma, of.rows, point.totals[N])
    share = minimum.share_of_first(of, smoothing, at[0], at[1], at[2], point.whole)
    return minimum.mixed(of, share, at[0], at[1], positive, point.whole)


@helper
def slope_of(of, point, at):
    """The derivative of a metric of one label by the label's frequency."""
    h = STEP * at[2]
    if h <= 0.0:
        return 0.0
    up, down = value_where(of, point, at, at[2] + h), value_where(of, point, at, at[2] - h)
    return (up - down) / (2.0 * h)


@by_kind
def add_slopes(term, point, out):
    """Add the derivative by each label's frequency."""


@add_slopes.case(Macro)
def add_macro(term, point, out):
    weight = term.weight / out.shape[0]
    for j in range(out.shape[0]):
        out[j] += weight * slope_of(term.of, point, fractions(point, j))


@add_slopes.case(Micro)
def add_micro(term, point, out):
    slope = slope_of(term.of, point, mean_fractions(point))
    for j in range(out.shape[0]):
        out[j] += term.weight / out.shape[0] * slope


@entry("the slopes")
def by_positive(term, prior, cells, totals, out):
    """Add the derivatives of a term that is an average over labels."""
    add_slopes(term, point_at(cells, totals, prior), out)


@by_kind
def mixture(term, point):
    """The mixture of a minimum's rates."""


@mixture.case(Micro)
def mixture_micro(term, point):
    at = mean_fractions(point)
    return value_where(term.of, point, at, at[2])


@mixture.case(Macro)
def mixture_macro(term, point):
    m = point.cells.shape[1]
    total = 0.0
    for j in range(m):
        at = fractions(point, j)
        total += value_where(term.of, point, at, at[2])
    return total / m


@mixture.case(Smallest)
def mixture_smallest(term, point):
    smoothing = minimum.smoothing_at(term.gamma, term.rows, point.totals[N])
    return minimum.value_of_classes(term.rate, smoothing, point, False)


@entry("the mixture")
def mixture_of(term, prior, cells, totals):
    """The mixture of a minimum's rates, at some counts."""
    return mixture(term, point_at(cells, totals, prior))

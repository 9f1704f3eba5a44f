"""The value of the best decisions under a tangent of the metric, and parts of the tangent.

A tangent has ``weights``, shape (3, m): slope, offset and the derivative by label frequency of
every label; and an ``intercept``. A row with probabilities η has the value

    worth = intercept + Σ_j by_positive_j η_j + Σ over predicted labels of (slope_j η_j + offset_j)

where the prediction is the best one under the tangent, Eq. (3). If the labels y of the row are
known, ``off`` is the change of that value if y replaces η.

A rule needs only slope and offset, because decisions do not change label frequencies. An estimate
of the best reachable metric also needs the derivative by label frequency, because the frequencies
are estimated too. It is a finite difference of the value. For a minimum of rates, the tangent is
that of the minimizing mixture of the rates. The mixture lies above the minimum, and closer to it
than the smoothing that the mixture comes from.
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

STEP: Final = 1e-5  # step of the finite difference, relative to the label frequency

# Rows of ``weights``.
SLOPE, OFFSET, BY_POSITIVE = range(3)

# Positions in ``sums``: sums over rows of w, w², w u, w² u and w² u² for the weight w and the value
# u = worth; then, over labelled rows only, of w, w², w d, w² d and w² d² for d = off; and the
# number of rows.
SUM_W, SUM_WW, SUM_WU, SUM_WWU, SUM_WWUU = range(5)
KNOWN_W, KNOWN_WW, SUM_WD, SUM_WWD, SUM_WWDD = range(5, 10)
ROWS_USED, SUMMED = 10, 11


@helper
def add_row(w, worth, sums):
    """Add the value ``worth`` of a row with weight w to ``sums``, shape (SUMMED,)."""
    sums[SUM_W] += w
    sums[SUM_WW] += w * w
    sums[SUM_WU] += w * worth
    sums[SUM_WWU] += w * w * worth
    sums[SUM_WWUU] += w * w * worth * worth
    sums[ROWS_USED] += 1.0


@helper
def add_labels(w, off, sums):
    """Add the difference ``off`` between labels and probabilities of a row to ``sums``."""
    sums[KNOWN_W] += w
    sums[KNOWN_WW] += w * w
    sums[SUM_WD] += w * off
    sums[SUM_WWD] += w * w * off
    sums[SUM_WWDD] += w * w * off * off


@helper
def certify(labels, count, true, row, weights, intercept, sums, place, work):
    """Add the value of a decided row to ``sums``.

    ``work`` has VALUES and FLAGS of the row, in its first ``count`` positions. ``labels`` lists
    their label ids, and is None for a dense row. ``place`` gives the position of each label
    (``replay.Sparse``). ``true`` lists the ids of the true labels. ``row`` is (weight, whether all
    labels are known).
    """
    # ``expected`` is the part of the value that depends on labels, at their probabilities.
    expected, worth = 0.0, intercept
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
    """Return the weight of row t, and whether all of its labels are known."""
    weight = extras.weights[t] if extras.weights.shape[0] > 0 else 1.0
    known = extras.known.shape[0] == 0 or extras.known[t] != 0
    return weight, extras.labelled and known


@entry
def certify_dense(
    eta, rows, true_ids, true_starts, true_ends, extras, spec, memory, weights, intercept, sums
):  # fmt: skip
    """Add the values of dense rows to ``sums``, shape (SUMMED,).

    ``eta``, ``rows``, the lists of true labels and ``extras`` are as in ``replay``. ``spec``
    decides by the tangent ``weights``, ``intercept``, as a fixed rule.
    """
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
    """Add the values of sparse rows to ``sums``, shape (SUMMED,).

    The lists of stored and of true labels are as in ``replay_sparse``; otherwise as in
    ``certify_dense``.
    """
    for t in range(starts.shape[0]):
        labels, values = indices[starts[t] : ends[t]], data[starts[t] : ends[t]]
        count, _ = decide_labels(labels, values, 0, sparse, spec, memory)
        row = weight_and_known(extras, t)
        first, last = (true_starts[t], true_ends[t]) if row[1] else (0, 0)
        true, row_labels = true_ids[first:last], sparse.ids[:count]
        certify(row_labels, count, true, row, weights, intercept, sums, sparse.place, memory.work)


# Derivatives by label frequencies (fractions of positives).


@by_kind
def value_where(of, point, at, positive):
    """The value of a metric of one label at the fractions ``at``, with another label frequency.

    ``at`` is (tp, predicted, positive), and ``positive`` replaces its last number.
    """


@value_where.case()
def value_itself(of, point, at, positive):
    return value(of, point.rows, at[0], at[1], positive, point.whole)


@value_where.case(Smaller)
def value_of_mixture(of, point, at, positive):
    """The minimizing mixture of two rates, with its shares at ``at`` held fixed."""
    _, _, _, _, share, _ = mixed_rates(of, point.rows, at[0], at[1], at[2], point.whole)
    a, _, _ = rate_partials(of.first, at[0], at[1], positive, point.whole)
    b, _, _ = rate_partials(of.second, at[0], at[1], positive, point.whole)
    return share * a + (1.0 - share) * b


@helper
def by_frequency(of, point, at):
    """The derivative of a metric of one label by label frequency, by central differences."""
    h = STEP * at[2]
    if h <= 0.0:
        return 0.0
    up, down = value_where(of, point, at, at[2] + h), value_where(of, point, at, at[2] - h)
    return (up - down) / (2.0 * h)


@by_kind
def add_slopes(objective, point, out):
    """Add the derivative by the frequency of each label to ``out``, shape (m,)."""


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
    """Add the derivatives of an objective by label frequencies to ``out``, shape (m,).

    They are taken at counts ``cells`` (3, m) with ``totals`` (TOTALS,), plus the prior.
    """
    add_slopes(objective, point_at(totals, prior, cells.shape[1], cells), out)


@by_kind
def mixture(objective, point):
    """The value of the minimizing mixture of rates."""


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
    """The value of the minimizing mixture of rates, at counts ``cells`` (3, m) plus the prior."""
    return mixture(objective, point_at(totals, prior, cells.shape[1], cells))

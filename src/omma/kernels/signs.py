"""Rows without a budget, decided by the sign of a gain alone: nothing is divided, little compiled.

A label is predicted where its gain, slope times probability plus offset, is at least zero. Of a
rate, and of the arithmetic and geometric mean of recall and specificity, both slope and offset are
a positive number times a form that is linear in the label's counts: of F1 the sign is that of
``(predicted + positive) eta - tp``. So these metrics are numbers to one loop, which is compiled
once for all of them; ``forms`` makes the numbers.

Decisions are those of the kernels that work out gains, to the bit. The two ways round
differently, by less than ``SURE`` times the largest that a form can be. Where a sign is nearer to
zero than that, as where gain and loss are equal, the loop stops before the row, and says so:
whoever called it has the row decided by its gains.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omma.kernels.eights import FLAGS, any_of, count_flags, keep_counts
from omma.kernels.jit import entry, helper
from omma.kernels.kinds import Arithmetic, Fixed, Geometric, Macro, Micro, Rate
from omma.kernels.lanes import LANES, eight_at, eight_of, put_eight, spread, times_plus, where
from omma.kernels.layout import POSITIVE, PREDICTED, SUM_POSITIVE, SUM_PREDICTED, SUM_TP, TP, N

SURE: Final = 2.0**-44  # some hundred roundings
LEAST_ROWS: Final = 1e-15  # products of four counts must remain numbers
MOST_ROWS: Final = 1e15
LEAST_EPSILON: Final = 1e-12  # or rounding could make a denominator negative

# Where the numbers of a metric stand: what the prior adds to the rows, how near to zero a sign is
# not sure, whether counts are averaged over labels; then two forms over (tp, predicted, positive,
# n) as fractions of the rows, each with what the prior adds to it, times the number of rows; and
# whether gains hold true negatives above zero, which counts of labels do by themselves.
PRIOR: Final = 0
NEAR: Final = 1
AT_MEAN: Final = 2
SLOPE: Final = 3
OFFSET: Final = 8
CLAMPED: Final = 13

Form = tuple[float, float, float, float]


def forms(term: Any, prior: float) -> NDArray[np.float64] | None:
    """The numbers of a term whose signs are those of two forms; None of any other.

    >>> from omma.kernels.kinds import Correlation
    >>> f1 = Rate((2.0, 0.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0), 1e-9)
    >>> forms(Macro(1.0, f1), 1.0)[[PRIOR, AT_MEAN]].tolist()
    [4.0, 0.0]
    >>> forms(Macro(1.0, Correlation(1e-9)), 1.0) is None
    True
    """
    if isinstance(term, Fixed):
        return _constant(term.rules)
    if not isinstance(term, Macro | Micro) or not term.weight > 0.0:
        return None
    of, one = term.of, (0.0, 0.0, 0.0, 1.0)
    if not isinstance(of, Rate | Geometric | Arithmetic) or not of.epsilon >= LEAST_EPSILON:
        return None
    if isinstance(of, Rate):
        over, under = of.over, _sum(1.0, of.under, of.epsilon, one)
        slope = _sum(over[0], under, -under[0], over)
        offset = _sum(over[1], under, -under[1], over)
        largest = (abs(over[0]) + abs(over[1])) * sum(map(abs, under))
        largest += (abs(under[0]) + abs(under[1])) * sum(map(abs, over))
    elif isinstance(of, Geometric):
        slope, offset, largest = (2.0, -1.0, -1.0, 1.0), (-1.0, 0.0, 0.0, 0.0), 6.0
    else:
        slope, offset = (0.0, 0.0, 0.0, 1.0 + 2.0 * of.epsilon), (0.0, 0.0, -1.0, -of.epsilon)
        largest = 2.0 + 3.0 * of.epsilon
    head = (4.0 * prior, SURE * largest, float(isinstance(term, Micro)))
    both = (*slope, _added(slope, prior), *offset, _added(offset, prior))
    return np.array((*head, *both, float(isinstance(of, Geometric))))


def _constant(rules: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The numbers of one rule that is the same for all labels: its signs are always sure."""
    if len(rules) != 1 or (rules[0] != rules[0, :, :1]).any():
        return None
    slope, offset = rules[0, :, 0]
    return np.array((1.0, -1.0, 1.0, 0.0, 0.0, 0.0, slope, 0.0, 0.0, 0.0, 0.0, offset, 0.0, 0.0))


def _sum(a: float, p: Form, b: float, q: Form) -> Form:
    return a * p[0] + b * q[0], a * p[1] + b * q[1], a * p[2] + b * q[2], a * p[3] + b * q[3]


def _added(form: Form, prior: float) -> float:
    return prior * (form[0] + 2.0 * form[1] + 2.0 * form[2])


@helper
def forms_now(numbers, totals, m):
    """Whether there are rows, and not too many, and both forms at their number."""
    total = totals[N] + numbers[PRIOR]
    scale = 1.0 / total
    fine = (total > LEAST_ROWS) & (total < MOST_ROWS)
    s, f = SLOPE, OFFSET
    s0, s1, s2 = scale * numbers[s], scale * numbers[s + 1], scale * numbers[s + 2]
    f0, f1, f2 = scale * numbers[f], scale * numbers[f + 1], scale * numbers[f + 2]
    s3, f3 = numbers[s + 3] + scale * numbers[s + 4], numbers[f + 3] + scale * numbers[f + 4]
    if numbers[AT_MEAN] != 0.0:  # then they are the same for all labels
        share = 1.0 / m
        tp, predicted, positive = totals[SUM_TP], totals[SUM_PREDICTED], totals[SUM_POSITIVE]
        s3 += (s0 * tp + s1 * predicted + s2 * positive) * share
        f3 += (f0 * tp + f1 * predicted + f2 * positive) * share
        s0 = s1 = s2 = f0 = f1 = f2 = 0.0
    return fine, s0, s1, s2, s3, f0, f1, f2, f3


@helper
def judge(gain, value, near, flags, at, unsure):
    """Flag those of eight labels that gain; returns ones where this or another eight is unsure."""
    some = value > 0.0
    put_eight(flags, at, where((gain >= 0.0) & some, 1.0, 0.0))
    return where((abs(gain) <= near) & some, 1.0, unsure)


@helper
def doubt(value, wrong):
    """Ones where a number of this or another eight is no probability."""
    return where((value >= 0.0) & (value <= 1.0), wrong, 1.0)


@helper
def flag_alike(eta, row, m, slope, offset, near, flags):
    """Decide a row by forms that are the same for all labels; returns what is wrong and unsure."""
    wrong = unsure = spread(0.0)
    for at in range(0, flags.shape[0], LANES):
        value = eight_of(eta, row, at, m - at)
        wrong = doubt(value, wrong)
        # Rounded twice, as gains are: those of a constant rule are always taken to be sure.
        unsure = judge(slope * value + offset, value, near, flags, at, unsure)
    return any_of(wrong), any_of(unsure)


@helper
def flag_each(eta, row, m, cells, slopes, offsets, near):
    """The same by the forms of each label."""
    (s0, s1, s2, s3), (f0, f1, f2, f3), flags = slopes, offsets, cells[FLAGS]
    wrong = unsure = spread(0.0)
    for at in range(0, flags.shape[0], LANES):
        value = eight_of(eta, row, at, m - at)
        wrong = doubt(value, wrong)
        tp, predicted = eight_at(cells[TP], at), eight_at(cells[PREDICTED], at)
        positive = eight_at(cells[POSITIVE], at)
        slope = times_plus(s0, tp, times_plus(s1, predicted, times_plus(s2, positive, s3)))
        offset = times_plus(f0, tp, times_plus(f1, predicted, times_plus(f2, positive, f3)))
        unsure = judge(times_plus(slope, value, offset), value, near, flags, at, unsure)
    return any_of(wrong), any_of(unsure)


@entry("the dense replay")
def replay_by_sign(
    eta, rows, true, true_rows, numbers, level, totals, places, kept, kept_rows, cells, out
):  # fmt: skip
    """Replay rows of every label; returns how many, with a minus and one less where one is unsure.

    A row that turns out wrong or unsure has changed nothing.
    """
    m, taken, near, alike = eta.shape[1], 0, numbers[NEAR], numbers[AT_MEAN] != 0.0
    for t in range(rows.shape[0]):
        row = rows[t]
        fine, s0, s1, s2, s3, f0, f1, f2, f3 = forms_now(numbers, totals, m)
        if not fine:
            return -1 - t
        if alike:
            wrong, unsure = flag_alike(eta, row, m, s3, f3, near, cells[FLAGS])
        else:
            each = (s0, s1, s2, s3), (f0, f1, f2, f3)
            wrong, unsure = flag_each(eta, row, m, cells, *each, near)
        if wrong:
            return t
        if unsure:
            return -1 - t
        count_flags(cells, totals, level, true, true_rows[t], m, out, row)
        if taken < places.shape[0] and places[taken] == t + 1:
            keep_counts(cells, kept[taken])
            kept_rows[taken] = totals[N]
            taken += 1
    return rows.shape[0]


@entry("the sparse replay")
def replay_stored_by_sign(
    indices, data, starts, ends, rows, true_starts, true_ends, true_ids, numbers, level, cells,
    totals, places, kept, kept_rows, flags, chosen, listed, out,
):  # fmt: skip
    """The same for rows of stored labels, of which the chosen ones are listed one after another.

    How many are those of row t goes into ``out[rows[t], 0]``. ``flags`` are zeros over all labels,
    and left so.
    """
    m, taken, near, written = cells.shape[1], 0, numbers[NEAR], 0
    for t in range(rows.shape[0]):
        fine, s0, s1, s2, s3, f0, f1, f2, f3 = forms_now(numbers, totals, m)
        if not fine:
            return -1 - t
        last, found, unsure = -1, 0, 0
        for e in range(starts[t], ends[t]):
            j, value = indices[e], np.float64(data[e])
            if not ((j > last) & (j < m) & (value >= 0.0) & (value <= 1.0)):
                return t
            last = j
            tp, predicted, positive = cells[0, j], cells[1, j], cells[2, j]
            gain = (s0 * tp + s1 * predicted + s2 * positive + s3) * value
            gain += f0 * tp + f1 * predicted + f2 * positive + f3
            unsure += (abs(gain) <= near) & (value > 0.0)
            chosen[found] = j  # kept only if the next line moves on: no branch to mispredict
            found += (gain >= 0.0) & (value > 0.0)
        if unsure > 0:
            return -1 - t
        totals[N] += 1.0
        for i in range(found):
            j = chosen[i]
            cells[1, j] += 1.0
            flags[j] = 1.0
            if out.shape[0] > 0:
                listed[written + i] = j
        hits = 0
        for e in range(true_starts[t], true_ends[t]):
            j = true_ids[e]
            cells[2, j] += 1.0
            cells[0, j] += flags[j]
            hits += flags[j] != 0.0
        for i in range(found):
            flags[chosen[i]] = 0.0
        if level > 0:
            totals[SUM_TP] += hits
            totals[SUM_PREDICTED] += found
            totals[SUM_POSITIVE] += true_ends[t] - true_starts[t]
        if out.shape[0] > 0:
            out[rows[t], 0] = found
            written += found
        if taken < places.shape[0] and places[taken] == t + 1:
            keep_counts(cells, kept[taken])
            kept_rows[taken] = totals[N]
            taken += 1
    return rows.shape[0]


@entry("a dense decision")
def decide_by_sign(eta, numbers, cells, totals, out):
    """Decide one row of every label into ``out``; 0 where eta is wrong, -1 where it is unsure."""
    fine, s0, s1, s2, s3, f0, f1, f2, f3 = forms_now(numbers, totals, eta.shape[0])
    wrong, unsure, near = 0, 0, numbers[NEAR]
    for j in range(eta.shape[0]):
        value, tp, predicted, positive = eta[j], cells[0, j], cells[1, j], cells[2, j]
        gain = (s0 * tp + s1 * predicted + s2 * positive + s3) * value
        gain += f0 * tp + f1 * predicted + f2 * positive + f3
        wrong += not ((value >= 0.0) & (value <= 1.0))
        unsure += (abs(gain) <= near) & (value > 0.0)
        out[j] = np.int8((gain >= 0.0) & (value > 0.0))
    if wrong > 0:
        return 0
    return 1 if fine & (unsure == 0) else -1

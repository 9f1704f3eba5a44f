"""Single rows, called from Python: the same ``decide`` and ``learn`` as in a replay.

Arguments come one by one: to hand over a named tuple takes half a microsecond, which is longer than
deciding a row.
"""

import numpy as np

from omma.kernels.calibrate import calibrate
from omma.kernels.jit import entry, helper
from omma.kernels.layout import FLAGS, PRESENT, VALUES, padded
from omma.kernels.replay import (
    FIRST,
    Sparse,
    decide_labels,
    fill_up,
    learn_labels,
    list_chosen,
    read_values,
    set_decided,
    write_flags,
)
from omma.kernels.row import Memory, Row, Spec, decide, learn


@entry
def decide_dense(
    eta, pick, out, objective, prior, budget, always_candidates, select, feedback, sums, m,
    columns, totals, work, calibrator, pace, limits, window,
):  # fmt: skip
    """Decide one row of every label into ``out``; False where eta holds no probabilities."""
    if read_values(eta, work[VALUES]) > 0:
        return False
    spec = Spec(objective, prior, budget, always_candidates, select, feedback, sums, m)
    memory = Memory(columns, columns, totals, work, calibrator, pace, limits, window)
    if decide(spec, memory, None, None, pick, padded(work.shape[1])):
        fill_up(budget, work[FLAGS])
    write_flags(work[FLAGS], out)
    return True


@helper
def read_indicators(values, column):
    """Copy zeros and ones; returns how many are neither."""
    wrong = 0
    for j in range(values.shape[0]):
        value = np.float64(values[j])
        column[j] = value
        wrong += (value != 0.0) & (value != 1.0)
    return wrong


@entry
def learn_dense(
    eta, true, decided, weight, labelled, late, gaps, objective, prior, budget,
    always_candidates, select, feedback, sums, m, columns, totals, work, calibrator, pace, limits,
    window,
):  # fmt: skip
    """Learn one row of every label; False, and nothing changed, where indicators are not 0 and 1.

    ``eta`` and ``true`` may be empty where they are not counted.
    """
    wrong = read_indicators(decided, work[FLAGS]) + read_indicators(true, work[PRESENT])
    if wrong > 0:
        return False
    spec = Spec(objective, prior, budget, always_candidates, select, feedback, sums, m)
    memory = Memory(columns, columns, totals, work, calibrator, pace, limits, window)
    read_values(eta, work[VALUES])
    width = padded(work.shape[1])
    calibrate(calibrator, columns, work, width)
    row = Row(weight, labelled, late, gaps)
    learn(calibrator, pace, limits, window, gaps, spec, memory, row, None, None, width)
    return True


@entry
def decide_sparse(
    labels, values, pick, out, ids, place, objective, prior, budget, always_candidates, select,
    feedback, sums, m, columns, table, totals, work, calibrator, pace, limits, window,
):  # fmt: skip
    """Decide one row of stored labels: lists the chosen ones in ``out`` and returns their number.

    It is −1 where a value is no probability, −2 where label ids do not rise or are no labels.
    """
    spec, sparse = (
        Spec(objective, prior, budget, always_candidates, select, feedback, sums, m),
        Sparse(ids, place),
    )
    memory = Memory(columns, table, totals, work, calibrator, pace, limits, window)
    count, _ = decide_labels(labels, values, pick, sparse, spec, memory)
    if count < 0:
        return count
    return np.int64(list_chosen(count, labels.shape[0], sparse, work, out, FIRST))


@entry
def learn_sparse(
    labels, values, true, chosen, weight, labelled, late, gaps, ids, place, objective, prior,
    budget, always_candidates, select, feedback, sums, m, columns, table, totals, work,
    calibrator, pace, limits, window,
):  # fmt: skip
    """Learn one row of stored labels."""
    spec, sparse = (
        Spec(objective, prior, budget, always_candidates, select, feedback, sums, m),
        Sparse(ids, place),
    )
    memory = Memory(columns, table, totals, work, calibrator, pace, limits, window)
    count = set_decided(labels, values, chosen, sparse, spec, memory)
    learn_labels(count, true, Row(weight, labelled, late, gaps), sparse, spec, memory)

"""Single rows, called from Python: the same ``decide`` and ``learn`` as in a replay.

The fields of ``Spec`` and ``Memory`` (``row``) are passed one by one. Passing a named tuple takes
half a microsecond, which is longer than the decision of a row. For a dense row ``columns`` is also
the table of all labels, so there is no ``table``. ``single`` writes to the same arrays as
``replay``.
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
    """Decide one dense row; returns False if eta contains a value that is not a probability.

    ``eta``, shape (m,), holds the probabilities. ``pick`` is the index of the fixed rule to use.
    The decision is written to ``out``, shape (m,), int8.
    """
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
    """Copy 0/1 indicators into a row of ``work``; returns how many values are neither 0 nor 1."""
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
    """Learn from one dense row; returns False, and changes no state, if an indicator is not 0 or 1.

    ``eta`` (probabilities), ``true`` (labels) and ``decided`` (the decision) have shape (m,).
    ``eta`` may be empty if probabilities are not used, ``true`` if the row is not ``labelled``.
    ``weight``, ``labelled``, ``late`` and ``gaps`` are the fields of ``row.Row``.
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
    """Decide one sparse row; lists the predicted labels in ``out`` and returns their number.

    ``labels``, shape (stored,), int32, holds rising label ids and ``values``, shape (stored,),
    their probabilities. ``out`` (int32) needs room for all predicted labels. ``ids`` and ``place``
    are scratch space (``replay.Sparse``). Returns −1 if a value is not a probability, and −2 if
    label ids do not rise or are out of range.
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
    """Learn from one sparse row.

    ``labels`` and ``values`` are as in ``decide_sparse``. ``true`` and ``chosen`` list the ids of
    the true and of the predicted labels, int32. The other arguments are as in ``learn_dense``.
    """
    spec, sparse = (
        Spec(objective, prior, budget, always_candidates, select, feedback, sums, m),
        Sparse(ids, place),
    )
    memory = Memory(columns, table, totals, work, calibrator, pace, limits, window)
    count = set_decided(labels, values, chosen, sparse, spec, memory)
    learn_labels(count, true, Row(weight, labelled, late, gaps), sparse, spec, memory)

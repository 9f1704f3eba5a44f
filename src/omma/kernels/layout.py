"""The position of each number in the float64 arrays that policies pass to kernels.

``columns``, shape (fields, width): the numbers stored for each label. ``width`` is the number of
labels rounded up to a multiple of eight. ``counts``, ``calibrate`` and ``row.hide`` write them.
``totals``, shape (SETS, TOTALS): the number of rows, and sums over labels, of each set of counts.
``work``, shape (WORK, width): scratch space for the current row.

There are four sets of counts. Set s has three columns (true positives, predicted, positive), which
start at column 3·s, and row s of ``totals``:

- OWN: the main counts of a policy. They count labels if the feedback is labels. They count the
  probabilities of all rows if the feedback is estimates or both.
- TRUE: labels of the labelled rows, if OWN counts probabilities.
- KNOWN: probabilities of the labelled rows, if the feedback is both.
- LIFETIME: labels of all labelled rows, if OWN decays or slides. Reported values come from them.
"""

from typing import Any, Final

import numpy as np

from omma.kernels.jit import helper

LANES: Final = 8  # labels that one vector instruction processes

TP, PREDICTED, POSITIVE = range(3)
# NumPy integers, not Python constants: Numba would compile a function again for each constant.
WHICH: Any = map(np.int64, range(4))
OWN, TRUE, KNOWN, LIFETIME = WHICH
SETS: Final = 4
# Columns after the four sets of counts. ``calibrate`` writes the next four.
BIAS: Final = 12  # b_j, the bias of label j in calibration
PRECISION: Final = 13  # h_j, the sum of curvatures of b_j
MEAN: Final = 14  # z̄_j, the mean logit of the label's probabilities
ENTRIES: Final = 15  # n_j, the weight of the rows in that mean
# ``row.hide`` writes the other columns.
MISSED: Final = 16  # weight of counted rows in which the label was unknown, for OWN
UNREPORTED: Final = 17  # the same weight without decay, for values reported from TRUE or LIFETIME
# Three columns for partial feedback, where only the labels of predicted entries are observed.
# c is the (calibrated) probability of an entry.
UNSEEN: Final = 18  # Σ c over entries whose labels were not observed
AUDITED_LABELS: Final = 19  # Σ y over entries that were audited and not predicted
AUDITED_VALUES: Final = 20  # Σ c over the same audited entries
FIELDS: Final = 21

# Columns of ``totals``: the weight of rows, and sums over labels.
N, SUM_TP, SUM_PREDICTED, SUM_POSITIVE = range(4)
TOTALS: Final = 4
SUMS: Final = 1  # the value of ``sums`` if a policy keeps sums over labels

# Rows of ``work``.
VALUES: Final = 0  # probabilities, calibrated if there is a calibrator; 0 means not a candidate
LOGITS: Final = 1  # logits of the probabilities before calibration
FLAGS: Final = 2  # 1 where the label is predicted
PRESENT: Final = 3  # 1 where the label is true
SLOPE: Final = 4  # predicting label j gains slope_j·η_j + offset_j
OFFSET: Final = 5
LEARNED: Final = 4  # reuses SLOPE after the decision: probabilities by the learned calibration
DECISION_COUNTS: Final = 6  # three rows: corrected tp, predicted and positive, used for decisions
RANKS: Final = 9  # ranks of gains for top-k: int64 stored in the bits of a float64
TERM_SLOPE: Final = 10  # slope and offset of a single term, if the objective has several
TERM_OFFSET: Final = 11
POINT: Final = 12  # first six numbers: totals, λ and m at the point of the gradient (``gains``)
WORK: Final = 13

# ``pace`` of a decaying policy: the weight of the current row, its growth factor per row, and how
# often all counts were divided by LARGEST_UNIT to prevent overflow.
UNIT, GROWTH, ERAS = range(3)
PACE: Final = 3
LARGEST_UNIT: Final = 2.0**100

EPSILON: Final = (
    1e-9  # ε of the paper (Remark 4.4): added to the denominators of a metric in gradients
)
TINY: Final = 1e-18  # keeps the derivative of a square root finite at zero
# Probabilities are clipped to [LEAST, MOST] before their logit is taken. Near zero, float32 still
# separates very small probabilities, and rare labels are ranked there. Near one it does not.
LEAST: Final = 1e-12
MOST: Final = 1.0 - 1e-7


@helper
def padded(count):
    """Round a number of labels up to a multiple of LANES.

    Loops call it even on widths that are already padded: the compiler then knows that no labels are
    left over, and emits no loop for them.
    """
    return (count + LANES - 1) & -LANES

"""Where each number stands in the arrays that policies hand to kernels.

``columns``, shape (fields, width): what is kept of each label; ``width`` is the number of labels
rounded up to a multiple of eight. ``totals``, shape (SETS, TOTALS): the number of rows, and sums
over labels. ``work``, shape (WORK, width): scratch space of the row at hand.

There are four sets of counts. A set has three columns (true positives, predicted, positive), which
begin at column 3·set, and one row of ``totals``:

- OWN: the counts that a policy keeps first. With labels as feedback they count labels; with
  estimates, or with both, they count probabilities of all rows.
- TRUE: labels of the rows whose labels came, where OWN counts probabilities.
- KNOWN: probabilities of the rows whose labels came, where feedback is both.
- JUDGED: labels of all rows, where OWN decays or slides: what reported values are of.
"""

from typing import Any, Final

import numpy as np

from omma.kernels.jit import helper

LANES: Final = 8  # labels that vector instructions take at once

TP, PREDICTED, POSITIVE = range(3)
# Whole numbers of NumPy have a type; for constants, functions would be compiled anew for each.
WHICH: Any = map(np.int64, range(4))
OWN, TRUE, KNOWN, JUDGED = WHICH
SETS: Final = 4
# Columns after those of the four sets.
BIAS: Final = 12  # b_j of calibration
PRECISION: Final = 13  # how much is known of b_j
MEAN: Final = 14  # mean logit of the label's probabilities, z̄_j
ENTRIES: Final = 15  # weight of the rows in that mean, n_j
MISSED: Final = 16  # weight of rows in which a label was unknown, where only labels are counted
UNREPORTED: Final = 17  # the same beside TRUE or JUDGED, for reported values
# Where labels are seen only where they were predicted (three columns):
UNSEEN: Final = 18  # Σ c over entries whose labels nobody saw
AUDITED_LABELS: Final = 19  # labels of entries that were audited and not predicted
AUDITED_VALUES: Final = 20  # Σ c over the same entries
FIELDS: Final = 21

# A row of `totals`.
N, SUM_TP, SUM_PREDICTED, SUM_POSITIVE = range(4)
TOTALS: Final = 4
SUMS: Final = 1  # what ``sums`` is where sums over labels are kept

# Rows of `work`.
VALUES: Final = 0  # probabilities, calibrated where there is a calibrator; 0 is no candidate
LOGITS: Final = 1  # of the probabilities as they came
FLAGS: Final = 2  # 1 where the label is predicted
PRESENT: Final = 3  # 1 where the label is true
SLOPE: Final = 4  # of each label: predicting it gains slope·η + offset
OFFSET: Final = 5
LEARNED: Final = 4  # later, in the place of slopes: probabilities by all that was learned
SEEN: Final = 6  # three rows: tp, predicted and positive that decisions look at, where corrected
RANKS: Final = 9  # of gains, as whole numbers in the same bits, for the choice under a budget
TERM_SLOPE: Final = 10  # of one of several terms of an objective
TERM_OFFSET: Final = 11
POINT: Final = 12  # the first six: where the gradient is taken (``gains``)
WORK: Final = 13

# `pace`, where the past decays: the weight of a row now, by what it grows after each row, and how
# often all was divided by LARGEST_UNIT so that it stays a number.
UNIT, GROWTH, ERAS = range(3)
PACE: Final = 3
LARGEST_UNIT: Final = 2.0**100

EPSILON: Final = (
    1e-9  # added to denominators of fractions where a gradient is taken (the paper's ε)
)
TINY: Final = 1e-18  # keeps the infinite slope of a square root at zero a number
# Probabilities are kept between these before their logits are taken. Below, single precision tells
# numbers apart that differ by much: rare labels are ranked there. Near one it does not.
LEAST: Final = 1e-12
MOST: Final = 1.0 - 1e-7


@helper
def padded(count):
    """A number of labels rounded up to whole lanes.

    Loops ask for it also where it changes nothing: compilers then know that no label is left over.
    """
    return (count + LANES - 1) & -LANES

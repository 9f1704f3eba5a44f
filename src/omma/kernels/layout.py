"""Where each number stands in the arrays that policies hand to kernels."""

from __future__ import annotations

from typing import Final

# Rows of `cells`, a (3, m) array: what is known of each label.
TP: Final = 0
PREDICTED: Final = 1
POSITIVE: Final = 2

# `totals`: the number of rows, and sums over labels for the metrics that need them.
N: Final = 0
SUM_TP: Final = 1
SUM_PREDICTED: Final = 2
SUM_POSITIVE: Final = 3
SUM_CROSS: Final = 4  # of predicted * positive
SUM_PREDICTED_SQUARED: Final = 5
SUM_POSITIVE_SQUARED: Final = 6
TOTALS: Final = 7

# Which of the sums over labels a metric asks for.
NO_SUMS: Final = 0
SUMS: Final = 1
SUMS_AND_PRODUCTS: Final = 2

# Columns of a metric's table, one row a term: weight * average(rate or mean).
WEIGHT: Final = 0
AVERAGE: Final = 1
MEAN: Final = 2
RATE_AT: Final = 3  # numerator, then denominator, each over (tp, predicted, positive, n)
SECOND_AT: Final = 11  # a second rate, for the smaller of two
GAMMA: Final = 19  # smoothing of a minimum: zero is none, AUTO follows the number of rows
ROWS: Final = 20  # the number of rows that AUTO is for; zero is those seen so far
TERM: Final = 21
AUTO: Final = -1.0

# Averages: of the metric over labels, of the counts over labels, of a rate over classes.
MACRO: Final = 0
MICRO: Final = 1
CLASSES: Final = 2

# A rate; means, or the minimum, of recall and specificity or of a rate over classes; no mean.
RATE: Final = 0
ARITHMETIC: Final = 1
GEOMETRIC: Final = 2
HARMONIC: Final = 3
QUADRATIC: Final = 4
CORRELATION: Final = 5
KAPPA: Final = 6
ONLINE_F: Final = 7  # no mean: the threshold by which OFO follows the F-measure
MINIMUM: Final = 8

# Added to denominators of fractions where a gradient is taken, as in the paper.
EPSILON: Final = 1e-9
# Keeps the infinite slope of a square root at zero a number.
TINY: Final = 1e-18

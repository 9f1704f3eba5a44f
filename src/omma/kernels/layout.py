"""Where each number stands in the arrays that policies hand to kernels."""

from typing import Final

# Rows of `cells`, a (3, m) array: what is known of each label.
TP, PREDICTED, POSITIVE = range(3)

# `totals`: the number of rows, and sums over labels for the metrics that need them.
N, SUM_TP, SUM_PREDICTED, SUM_POSITIVE = range(4)
SUM_CROSS, SUM_PREDICTED_SQUARED, SUM_POSITIVE_SQUARED = range(4, 7)  # cross: predicted * positive
TOTALS: Final = 7

# Which of the sums over labels a metric asks for; zero asks for none.
SUMS: Final = 1
SUMS_AND_PRODUCTS: Final = 2

# Rows of float64 scratch space, each as long as there are labels.
VALUES: Final = 0  # the row's probabilities, widened to float64, and calibrated
GAINS: Final = 1
FLAGS: Final = 2  # over all labels: one where the row's label is chosen
CHOSEN_GAINS: Final = 3
GATHERED: Final = 4  # three rows: counts gathered for a sparse row
LOGITS: Final = 7  # of the probabilities as given
PRESENT: Final = 8  # over all labels: one where a row has the label; zeros between sparse rows
SINGLE: Final = 9  # two rows, over all labels: what limits on one label add to slope and offset
PRICED: Final = 11  # two rows: what all limits add to slope and offset at each position of a row
ONES: Final = 13  # ones: the degree to which true labels are present
EIGHTS: Final = 14  # where in a row, and which of eight labels there, may be chosen
SCRATCH: Final = 15

# How the past fades: the weight of a row now, what it grows by after each row, and how often all
# was divided by LARGEST_UNIT so that it stays a number.
UNIT: Final = 0
GROWTH: Final = 1
ERAS: Final = 2
PACE: Final = 3
LARGEST_UNIT: Final = 2.0**100

# Added to denominators of fractions where a gradient is taken, as in the paper.
EPSILON: Final = 1e-9
# Probabilities are kept between these before their logits are taken. Below, single precision tells
# numbers apart that differ by much: rare labels are ranked there. Near one it does not.
LEAST: Final = 1e-12
MOST: Final = 1.0 - 1e-7
# Keeps the infinite slope of a square root at zero a number.
TINY: Final = 1e-18

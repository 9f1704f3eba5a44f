"""A metric's slope and offset at some label, in two steps for every kind of term.

``prepare`` works out once a row what all labels share: coefficients with the prior put in, the
derivatives at mean counts, the factor of a mean over classes. ``weigh`` is the loop's body: from
that and the label's own counts it makes slope and offset. So a loop over labels is one loop, of
vector instructions, without arrays in between, and computes the same bits for a label wherever
its counts come from: all labels of a dense row, or those gathered for a sparse one.

The cases of both are in the files ``slopes_of_…``; ``gradient`` has them all.
"""

from __future__ import annotations

from omma.kernels.jit import by_kind


@by_kind
def prepare(term, point, pick):
    """What all labels of a row share; ``pick`` chooses among fixed rules."""


@by_kind
def weigh(term, ready, point, j, tp, predicted, positive):
    """Slope and offset of label j, with these counts."""

"""Slope and offset of every label, for every kind of term."""

from omma.kernels import slopes_of_classes  # noqa: F401 (it adds its cases)
from omma.kernels.jit import entry
from omma.kernels.layout import POSITIVE, PREDICTED, TP
from omma.kernels.point import point_at
from omma.kernels.slopes import prepare, weigh

__all__ = ["gradient", "prepare", "weigh"]


@entry("the rule")
def gradient(term, prior, cells, totals, slope, offset):
    """Write slope and offset of every label."""
    point = point_at(cells, totals, prior)
    ready = prepare(term, point, 0)
    for j in range(slope.shape[0]):
        slope[j], offset[j] = weigh(
            term, ready, point, j, cells[TP, j], cells[PREDICTED, j], cells[POSITIVE, j]
        )

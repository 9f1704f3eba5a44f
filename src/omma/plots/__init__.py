"""Pictures of how a metric develops along a sequence; the only package that imports matplotlib."""

from omma.plots.bands import Band, plot_bands, plot_priors
from omma.plots.choice import plot_choice
from omma.plots.curve import plot_curve, plot_frontier, plot_reliability
from omma.plots.frames import require_matplotlib, save, spread
from omma.plots.palette import FIXED, LEARNING, color_of
from omma.plots.running import plot_limits, plot_panels, plot_running

__all__ = [
    "FIXED",
    "LEARNING",
    "Band",
    "color_of",
    "plot_bands",
    "plot_choice",
    "plot_curve",
    "plot_frontier",
    "plot_limits",
    "plot_panels",
    "plot_priors",
    "plot_reliability",
    "plot_running",
    "require_matplotlib",
    "save",
    "spread",
]

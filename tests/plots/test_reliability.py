"""The reliability picture shows what was measured."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import omma
from omma.calibration import reliability
from omma.plots import plot_reliability


@pytest.mark.parametrize("strategy", ["width", "mass"])
def test_points_are_the_curve_in_percent(strategy):
    eta, y = omma.datasets.long_tail(n=500, m=6, seed=0)
    curves = {
        "true": reliability(eta, y, strategy=strategy),
        "squared": reliability(eta**2, y, strategy=strategy),
    }
    figure = plot_reliability(curves, title="Two models")
    above, below = figure.axes
    lines = [line for line in above.lines if line.get_marker() == "o"]
    for line, curve in zip(lines, curves.values(), strict=True):
        full = curve.count > 0
        np.testing.assert_array_equal(line.get_xdata(), 100 * curve.predicted[full])
        np.testing.assert_array_equal(line.get_ydata(), 100 * curve.observed[full])
    diagonal = above.lines[0]
    np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
    for steps, curve in zip(below.patches, curves.values(), strict=True):
        np.testing.assert_array_equal(steps.get_data().values, np.maximum(curve.count, 0.5))
    words = [text.get_text() for text in above.get_legend().get_texts()]
    error = 100 * curves["true"].expected_error
    assert words[0] == f"true: off by {error:.2f} on average"


def test_one_value_and_no_curve():
    curve = reliability(np.full((5, 1), 0.4), [[0], [1], [0], [1], [0]], strategy="mass")
    assert plot_reliability({"constant": curve}).axes[1].patches[0].get_data().values.tolist() == [
        5
    ]
    with pytest.raises(ValueError, match="curves of plot_reliability"):
        plot_reliability({})


def test_one_axes_shows_the_curve_and_two_also_the_counts():
    curve = reliability(*omma.datasets.long_tail(n=500, m=6, seed=0))
    figure = Figure()
    first, second, third = figure.subplots(3)
    assert plot_reliability({"alone": curve}, ax=first) is figure
    assert first.get_xlabel() == "probability, %"
    plot_reliability({"both": curve}, ax=[second, third])
    assert (second.get_xlabel(), third.get_xlabel()) == ("", "probability, %")
    assert len(third.patches) == 1
    with pytest.raises(ValueError, match="2 in all, got 3"):
        plot_reliability({"three": curve}, ax=[first, second, third])

"""Pictures: what they show is what was measured."""

import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import omma
from omma import plots

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def traces():
    eta, y = omma.datasets.long_tail(n=400, m=6, seed=0)
    return {
        "half": omma.replay(omma.Threshold(0.5), eta, y, metric="macro_f1"),
        "learned": omma.replay(omma.OMMA("macro_f1"), eta, y),
        "unlabelled": omma.replay(omma.OMMA("macro_f1", feedback="estimates"), eta, y),
    }


def test_curves_are_the_history_in_percent(traces):
    ax = plots.plot_running(traces, Figure().add_subplot())
    assert [line.get_label() for line in ax.lines] == list(traces)
    for line, trace in zip(ax.lines, traces.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), trace.history.rows)
        np.testing.assert_array_equal(line.get_ydata(), 100 * trace.history.values)


def test_axes_say_what_they_show(traces):
    ax = plots.plot_running(traces, Figure().add_subplot())
    assert ax.get_xlabel() == "rows"
    assert ax.get_ylabel() == "macro_f1 so far, %"
    named = plots.plot_running(traces, Figure().add_subplot(), name="F1@2")
    assert named.get_ylabel() == "F1@2 so far, %"


def test_each_curve_ends_in_its_value_and_name(traces):
    ax = plots.plot_running(traces, Figure().add_subplot())
    expected = [f"{100 * trace.value:.1f}  {name}" for name, trace in traces.items()]
    assert [text.get_text() for text in ax.texts] == expected


def test_labels_of_curves_do_not_touch(traces):
    figure = plots.plot_panels({"macro_f1": traces, "again": traces, "third": traces})
    figure.canvas.draw()
    assert len(figure.axes) == 3
    for ax in figure.axes:
        boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
        for lower, upper in pairwise(boxes):
            assert lower.y1 <= upper.y0
        for box in boxes:
            assert box.x1 <= figure.bbox.x1


def test_fixed_rules_are_grey_and_learning_ones_in_colour(traces):
    ax = plots.plot_running(traces, Figure().add_subplot())
    colors = [line.get_color() for line in ax.lines]
    assert colors == [plots.FIXED[0], plots.color_of("omma"), plots.color_of("omma")]
    assert len({line.get_linestyle() for line in ax.lines[1:]}) == 2


def test_a_new_figure_is_made_where_none_is_given(traces):
    import matplotlib.pyplot as plt

    ax = plots.plot_running({"learned": traces["learned"]})
    assert ax.figure.number in plt.get_fignums()
    plt.close(ax.figure)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_save(traces, tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    plots.save(plots.plot_panels({"macro_f1": traces}, columns=1, title="One"), path)
    assert path.stat().st_size > 1000


def test_a_picture_that_fails_leaves_the_one_before(traces, tmp_path):
    figure = plots.plot_panels({"macro_f1": traces}, columns=1, title="One")
    plots.save(figure, tmp_path / "plain")
    assert (tmp_path / "plain.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "a.nosuch").write_text("before")
    with pytest.raises(ValueError, match="nosuch"):
        plots.save(figure, tmp_path / "a.nosuch")
    assert (tmp_path / "a.nosuch").read_text() == "before"
    assert len([*tmp_path.iterdir()]) == 2


def test_traces_must_share_a_metric_and_have_a_history(traces):
    eta, y = omma.datasets.long_tail(n=50, m=6, seed=0)
    other = omma.replay(omma.OMMA("micro_f1"), eta, y)
    with pytest.raises(ValueError, match="measured by one metric, got macro_f1, micro_f1"):
        plots.plot_running({**traces, "other": other})
    unlabelled = omma.replay(omma.OMMA("macro_f1", feedback="estimates"), eta)
    with pytest.raises(ValueError, match="must have a history, 'blind' has none"):
        plots.plot_running({"blind": unlabelled})
    with pytest.raises(ValueError, match="at least one trace"):
        plots.plot_running({})


def test_missing_matplotlib_says_what_to_install(traces, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "omma-learn\[plots\]"'):
        plots.plot_running(traces)
    with pytest.raises(ImportError, match=r'pip install "omma-learn\[plots\]"'):
        plots.plot_panels({"macro_f1": traces})


@pytest.mark.parametrize(
    "values", [[1.0], [1.0, 1.0, 1.0], [3.0, 1.0, 1.1, 9.0], [0.0, 0.5, 1.0, 1.5, 7.0, 7.2]]
)
def test_spread_keeps_order_and_distance(values):
    places = plots.spread(values, 1.0)
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(places)[order]) >= 1.0 - 1e-12).all()
    assert np.mean(places) == pytest.approx(np.mean(values))


def test_what_is_attainable_is_drawn_with_its_interval():
    eta, y = omma.datasets.long_tail(n=400, m=6, seed=0)
    trace = omma.replay(omma.OMMA("macro_gmean"), eta, y, gap=True)
    ax = plots.plot_running({"learned": trace}, Figure().add_subplot(), gap=True)
    assert [line.get_label() for line in ax.lines] == ["attainable", "learned"]
    values = [np.nan if gap is None else 100 * gap.attainable for gap in trace.history.gaps]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), values)
    assert len(ax.collections) == 1
    ratio = omma.replay(omma.OMMA("macro_f1"), eta, y, gap=True)
    ax = plots.plot_running({"learned": ratio}, Figure().add_subplot(), gap=True)
    assert ax.lines[0].get_label() == "attainable?"


def test_without_a_gap_nothing_attainable_is_drawn(traces):
    with pytest.raises(ValueError, match="traces of plot_running must have a gap: replay one"):
        plots.plot_running(traces, Figure().add_subplot(), gap=True)
    eta, y = omma.datasets.long_tail(n=12, m=6, seed=0)
    short = omma.replay(omma.OMMA("macro_gmean"), eta, y, gap=True)
    with pytest.raises(ValueError, match="replayed with gap=True have too few rows"):
        plots.plot_running({"short": short}, Figure().add_subplot(), gap=True)


def test_a_figure_of_its_own_has_room_for_the_names_of_curves(traces):
    import matplotlib.pyplot as plt

    trace = next(iter(traces.values()))
    long = "a policy with a name of many words"
    ax = plots.plot_running({long: trace})
    ax.figure.canvas.draw()
    (text,) = (text for text in ax.texts if text.get_text().endswith(long))
    assert text.get_window_extent().x1 <= ax.figure.bbox.x1
    plt.close(ax.figure)


def test_panels_are_drawn_on_axes_of_the_caller(traces):
    eta, y = (array[:, :2] for array in omma.datasets.long_tail(n=400, m=3, seed=0))
    limited = omma.replay(omma.Auto("macro_recall", subject_to="micro_precision >= 0.8"), eta, y)
    band = plots.Band(np.array([10, 20]), np.array([0.4, 0.5]), np.array([0.02, 0.01]))
    bands = {"macro_f1": {"OMMA": band}, "micro_f1": {"OMMA": band}}
    curve = omma.curve(eta, y, "macro_f1", bootstrap=0)
    draws = [
        lambda ax: plots.plot_panels({"a": traces, "b": traces}, ax=ax),
        lambda ax: plots.plot_bands(bands, ax=ax),
        lambda ax: plots.plot_priors(bands, [10, 20], ax=ax),
        lambda ax: plots.plot_limits({"limited": limited}, ax=ax),
        lambda ax: curve.plot(ax=ax),
    ]
    for draw in draws:
        figure = Figure()
        axes = figure.subplots(1, 2)
        assert draw(axes) is figure
        assert figure.axes == list(axes)
        assert all(ax.lines for ax in axes)
        with pytest.raises(ValueError, match="must be an Axes for each panel, 2 in all, got 1"):
            draw(axes[0])


def test_a_choice_is_drawn_on_axes_of_the_caller():
    ax = Figure().add_subplot()
    bars = {"0.5": (30.0, 28.0, 32.0), "Auto": (42.0, 40.0, 44.0)}
    assert plots.plot_choice(bars, "Auto", title="macro_f1", ax=ax) is ax.figure
    assert [text.get_text() for text in ax.texts] == ["30.00", "42.00"]
    assert ax.get_title(loc="left") == "macro_f1"
    assert ax.figure.axes == [ax]

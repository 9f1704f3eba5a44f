"""Pictures of limits and frontiers: what can be read off them."""

import numpy as np
import pytest
from click.testing import CliRunner

import omma
from omma.cli import main
from omma.frontiers import Frontier

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from matplotlib.figure import Figure

from omma.plots import plot_frontier, plot_limits


def payments(n=2000):
    rng = np.random.default_rng(0)
    eta = 1 / (1 + np.exp(-(2.5 * rng.normal(size=n) - 6)))
    return eta, (rng.random(n) < eta).astype(int)


def drawn(found):
    ax = Figure().add_subplot()
    plot_frontier(found, ax)
    ax.figure.canvas.draw()
    return ax


def test_numbers_of_a_limit_stand_in_full():
    """Not as what is to be added to another number, which would stand in the title."""
    eta, y = omma.datasets.long_tail(n=2000, m=3, seed=0)
    policy = omma.Auto("macro_f1", subject_to="labels_per_row <= 1")
    figure = plot_limits({"Auto": omma.replay(policy, eta, y, checkpoints=[1500, 2000])})
    figure.canvas.draw()
    assert all(ax.yaxis.get_offset_text().get_text() == "" for ax in figure.axes)


def test_a_limit_may_be_unknown_to_the_end():
    """Precision is 0/0 where nothing is predicted: the name is there, and no line leads to it."""
    eta, y = omma.datasets.long_tail(n=500, m=3, seed=0)
    policy = omma.Auto("macro_recall", subject_to="micro_precision >= 0.8")
    never = omma.FixedRule(omma.Rule(np.ones(3), -2 * np.ones(3)))
    traces = {
        "limited": omma.replay(policy, eta, y),
        "never": omma.replay(never, eta, y, metric="macro_recall"),
    }
    figure = plot_limits(traces)
    figure.canvas.draw()
    unknown = next(text for text in figure.axes[1].texts if text.get_text().endswith("never"))
    assert unknown.arrow_patch is None
    assert np.isfinite(unknown.xyann).all()


def test_bounds_below_one_percent_can_be_read():
    ax = drawn(omma.frontier(*payments(), "recall", "predicted_rate", bounds=[0.001, 0.004]))
    low, high = ax.get_xlim()
    texts = {one.get_text() for one in ax.get_xticklabels() if low <= one.get_position()[0] <= high}
    assert len(texts) >= 3


def test_bounds_that_are_not_met_are_named():
    eta, y = omma.datasets.long_tail(n=500, m=4, seed=0)
    found = omma.frontier(eta, y, "macro_f1", "micro_precision", bounds=[0.3, 0.95], k=2)
    texts = [one.get_text() for one in drawn(found).texts]
    assert found.met.tolist() == [True, False]
    assert texts == ["without a limit", "bound not met"]


def test_a_limit_that_only_nothing_meets_is_left_out():
    limit = omma.at_least("precision", 0.99).named(None, 1, "test")
    numbers = (np.array([0.5, 0.99]), np.array([0.4, 0.0]), np.array([0.5, np.nan]))
    ax = drawn(Frontier(omma.metric("recall"), limit, *numbers, (0.1, 1.0)))
    assert [one.get_text() for one in ax.texts] == ["without a limit"]


@pytest.mark.parametrize(
    ("metric", "k", "said"),
    [("recall", None, "no threshold does better"), ("macro_f1", None, "by thresholds tuned under"),
     ("macro_f1", 1, "one pass of Auto"), ("micro_f1", None, "one pass of Auto")],
)  # fmt: skip
def test_a_frontier_says_what_decided(metric, k, said):
    eta, y = payments(200) if metric == "recall" else omma.datasets.long_tail(n=200, m=3, seed=0)
    assert said in omma.frontier(eta, y, metric, "micro_precision", bounds=[0.5], k=k).how


def test_evaluate_draws_how_limits_went(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = zip(("eta.csv", "labels.csv"), payments(300), strict=True)
    for name, values in pairs:
        np.savetxt(name, values, header="fraud", comments="", fmt="%.4f")
    seen = {}
    monkeypatch.setattr("omma.plots.plot_limits", lambda traces: seen.update(traces) or Figure())
    files = ("--eta", "eta.csv", "--labels", "labels.csv", "--plot", "limits.png")
    given = ("evaluate", *files, "--metric", "recall", "--subject-to", "predicted_rate <= 0.1")
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0, result.output
    assert len(seen["Auto"].history.rows) == 50

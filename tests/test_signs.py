"""Rows decided by the sign of a gain are those that the gains decide, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from streams import dense
from tests import naive

import omma
from omma.kernels import replay, signs
from omma.policies.desk import Desk
from omma.running import plan, runner, sinks, worth
from omma.running.runner import Runner

BY_SIGNS = [
    f"{way}_{name}"
    for way in ("macro", "micro")
    for name in (
        "accuracy", "balanced_accuracy", "precision", "recall", "specificity", "f1", "jaccard",
        "gmean",
    )
]  # fmt: skip
LAYOUTS = {
    "float64": np.float64,
    "float32": np.float32,
    "csr": sparse.csr_array,
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Signs decide few rows, too."""
    monkeypatch.setattr(worth, "MOST", 0)


def by_gains(monkeypatch):
    monkeypatch.setattr(Runner, "_signs", None)


def everything(trace):
    return (
        dense(trace.predictions),
        trace.state.cells,
        trace.state.totals,
        trace.history.values,
        np.stack([counts.tp for counts in trace.history._counts]),
    )


def stream(seed, n, m, grid):
    """Probabilities; on a coarse grid gain and loss are often equal."""
    rng = np.random.default_rng(seed)
    eta = rng.random((n, m)) ** 2
    eta = eta if grid is None else np.round(eta * grid) / grid
    return eta, (rng.random((n, m)) < eta).astype(np.int8)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    m=st.sampled_from([1, 3, 16, 17, 63, 64, 65, 130]),
    grid=st.sampled_from([None, None, 2, 4, 10]),
    name=st.sampled_from(BY_SIGNS),
    layout=st.sampled_from(list(LAYOUTS)),
    prior=st.sampled_from([0.0, 1e-6, 1.0]),
    epsilon=st.sampled_from([1e-9, 1e-12, 1e-13, 0.1]),
    order=st.sampled_from([None, 1]),
)
def test_signs_decide_as_gains_do(seed, m, grid, name, layout, prior, epsilon, order):
    eta, y = stream(seed, 60, m, grid)
    eta = LAYOUTS[layout](eta)
    policy = omma.OMMA(name, prior=prior, epsilon=epsilon)
    options = {"seed": order, "checkpoints": 7}
    found = everything(omma.replay(policy, eta, y, **options))
    with pytest.MonkeyPatch.context() as patch:
        by_gains(patch)
        wanted = everything(omma.replay(policy, eta, y, **options))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["macro_f1", "macro_gmean", "micro_jaccard"])
def test_they_are_the_textbook_s(name):
    eta, y = stream(3, 30, 4, None)
    wanted, *_ = naive.omma(naive.utility(name), eta, y)
    np.testing.assert_array_equal(omma.replay(omma.OMMA(name), eta, y).predictions, wanted)


def refuse(*_):
    raise AssertionError("gains are not needed here")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_other_kernel_is_needed(monkeypatch, layout):
    for name in ("replay_dense", "replay_sparse"):
        monkeypatch.setattr(sinks, name, refuse)
    monkeypatch.setattr(plan, "deciding", refuse)
    eta, y = stream(0, 50, 20, None)
    for name in BY_SIGNS:
        if name.endswith("accuracy") or name.endswith("recall"):
            continue  # with no negatives, or no positives, gains are often exactly zero
        assert omma.replay(omma.OMMA(name), LAYOUTS[layout](eta), y).value > 0
    assert omma.replay(omma.Threshold(0.5), LAYOUTS[layout](eta), y, metric="macro_f1").value > 0


def test_a_further_metric_compiles_nothing():
    eta, y = stream(1, 50, 20, None)
    omma.replay(omma.OMMA("macro_f1"), eta, y)
    kernels = (signs.replay_by_sign, replay.replay_dense)
    if not hasattr(kernels[0], "signatures"):
        pytest.skip("the compiler is switched off")
    before = [len(one.signatures) for one in kernels]
    for name in ("macro_gmean", "macro_jaccard", "micro_f1"):
        omma.replay(omma.OMMA(name), eta, y)
    assert [len(one.signatures) for one in kernels] == before


def test_rows_that_are_not_sure_go_by_gains(monkeypatch):
    """At a half, accuracy gains as much as it loses."""
    came = []
    feed = runner.Runner.feed_by_gains

    def noted(self, rows, *rest):
        came.append(rows.tolist())
        return feed(self, rows, *rest)

    monkeypatch.setattr(runner.Runner, "feed_by_gains", noted)
    eta = np.full((20, 2), 0.25)
    eta[[3, 10, 12, 13]] = 0.5
    trace = omma.replay(omma.OMMA("macro_accuracy"), eta, (eta > 0.4).astype(int))
    assert [rows for rows in came if rows] == [[3], [10, 11], [12, 13, 14, 15]]
    assert trace.predictions.sum(axis=1).tolist() == [2 * (t in (3, 10, 12, 13)) for t in range(20)]
    assert trace.counts.n == 20


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_wrong_row_is_named(layout):
    eta, y = stream(2, 40, 5, None)
    eta[17, 2] = 1.5
    with pytest.raises(ValueError, match=r"eta of replay of OMMA must hold .* got 1.5 in row 17"):
        omma.replay(omma.OMMA("macro_f1"), LAYOUTS[layout](eta), y)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (omma.OMMA("macro_hmean"), "a metric of another kind"),
        (omma.OMMA("macro_f1", k=2), "a budget"),
        (omma.OMMA("macro_f1", epsilon=1e-13), "a denominator that may round to zero"),
        (omma.OMMA("macro_f1", at_most=2), "an upper bound"),
        (omma.OMMA("macro_f1", subject_to="micro_precision >= 0.5"), "a limit"),
        (omma.Auto("macro_f1"), "calibration"),
        (omma.Forgetting(omma.OMMA("macro_f1"), 10), "a past that fades"),
        (omma.Window(omma.OMMA("macro_f1"), 10), "a window"),
        (omma.Greedy("macro_f1"), "differences in place of derivatives"),
    ],
)
def test_what_takes_gains(policy, why):
    assert policy.plan(4).signs is None, why


def test_weights_and_labels_that_are_not_known_take_gains(monkeypatch):
    monkeypatch.setattr(sinks, "replay_by_sign", refuse)
    eta, y = stream(4, 40, 5, None)
    policy = omma.OMMA("macro_f1")
    omma.replay(policy, eta, y, weights=np.ones(40))
    omma.replay(omma.OMMA("macro_f1", feedback="estimates"), eta)
    missing = y.astype(float)
    missing[3, 1] = np.nan
    omma.replay(policy, eta, missing)


@pytest.mark.parametrize("name", BY_SIGNS)
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_single_rows(name, feedback, monkeypatch):
    eta, y = stream(5, 40, 6, 4)
    policy = omma.OMMA(name, feedback=feedback)
    learner = omma.OnlineClassifier(policy, n_labels=6)
    desk = Desk(policy.stepper(6), policy.init(6))
    found = []
    for row, true in zip(eta, y, strict=True):
        found.append(learner.predict(row))
        learner.update(true)
        assert desk.decide(row.tolist()) == found[-1].tolist()
        desk.count(np.flatnonzero(true).tolist(), 1.0)
    by_gains(monkeypatch)
    wanted = omma.replay(policy, eta, y)
    np.testing.assert_array_equal(found, wanted.predictions)
    np.testing.assert_array_equal(learner.state.cells, wanted.state.cells)


def test_a_single_row_that_is_wrong():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=2)
    with pytest.raises(ValueError, match=r"eta of predict must hold .* got -1"):
        learner.predict(np.array([0.5, -1.0]))

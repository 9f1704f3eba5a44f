"""Auto's rows decided by the sign of a gain are those that the gains decide, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import omma
from omma.kernels.calibrate import INTERCEPT, LABELLED, SLOPE
from omma.running import sinks, worth
from omma.running.runner import Runner, run
from omma.running.sequence import Sequence

BY_SIGNS = [
    f"{way}_{name}"
    for way in ("macro", "micro")
    for name in ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "jaccard", "gmean")
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Signs decide few rows, too."""
    monkeypatch.setattr(worth, "MOST", 0)


def stream(seed, n, m, grid=None):
    """Probabilities, some of them zero; on a coarse grid gain and loss may be equal."""
    rng = np.random.default_rng(seed)
    eta = rng.random((n, m)) ** 2 * (rng.random((n, m)) < 0.9)
    eta = eta if grid is None else np.round(eta * grid) / grid
    return eta, (rng.random((n, m)) < eta**1.5).astype(np.int8)


def by_gains(monkeypatch):
    monkeypatch.setattr(Runner, "_signs", None)


def assert_same(one, other):
    np.testing.assert_array_equal(one.predictions, other.predictions)
    assert one.state == other.state
    assert one.value == other.value
    np.testing.assert_array_equal(one.history.values, other.history.values)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    m=st.sampled_from([1, 3, 16, 17, 63, 64, 65, 130]),
    grid=st.sampled_from([None, None, 2, 10]),
    name=st.sampled_from(BY_SIGNS),
    single=st.booleans(),
)
def test_the_same_as_by_gains(seed, m, grid, name, single):
    eta, y = stream(seed, 60, m, grid)
    eta = eta.astype(np.float32) if single else eta
    policy = omma.Auto(name)
    found = omma.replay(policy, eta, y, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        by_gains(patch)
        assert_same(found, omma.replay(policy, eta, y, seed=seed))


def test_a_tie_is_left_to_the_gains(monkeypatch):
    """Where a first row has one half throughout, accuracy neither gains nor loses."""
    eta, y = stream(1, 200, 20)
    eta[0] = 0.5
    signs = omma.replay(omma.Auto("macro_accuracy"), eta, y)
    assert signs.predictions[0].all()
    by_gains(monkeypatch)
    assert_same(signs, omma.replay(omma.Auto("macro_accuracy"), eta, y))


def test_less_than_no_true_negatives(monkeypatch):
    """Corrected counts may leave that, of which gains make none; at one nothing is lost then."""
    policy = omma.Auto("macro_gmean")
    eta, y = np.ones((1, 1)), np.ones((1, 1), dtype=np.int8)

    def decided():
        state = policy.plan(1).start(1)
        for counted in (state, state.labels, state.known):
            counted.cells[:] = [[5.0], [10.0], [6.0]]  # tp, predicted, positive
            counted.totals[0] = 10.0
        state.calibration.shared[[SLOPE, LABELLED]] = 20.0, 10.0
        given = Sequence(omma.Batch.of(eta, y))
        return run("Auto", policy.plan(1), given, state=state).predictions

    signs = decided()
    by_gains(monkeypatch)
    np.testing.assert_array_equal(signs, decided())
    assert signs.all()


def from_state(policy, eta, y, change):
    """Rows replayed after others, of which the state was changed by hand."""
    before = omma.replay(policy, eta[:40], y[:40]).state
    change(before)
    given = Sequence(omma.Batch.of(eta[40:], y[40:]))
    return run("Auto", policy.plan(eta.shape[1]), given, state=before)


def wild(state):
    """Biases far beyond what labels ask for, to both sides."""
    state.calibration.bias[::2] = 800.0
    state.calibration.bias[1::2] = -900.0


def nearly_wild(state):
    """Biases which leave what loops without a clamp take within few rows."""
    state.calibration.bias[:] = 59.0
    state.calibration.shared[SLOPE] = 20.0


def far_for_all(state):
    """What all labels are corrected by is as far, and biases too."""
    state.calibration.bias[:] = -300.0
    state.calibration.shared[[SLOPE, INTERCEPT]] = 20.0, -400.0


def far_for_all_alone(state):
    """Far by itself, biases as they are."""
    state.calibration.shared[[SLOPE, INTERCEPT]] = 20.0, -650.0


def out_of_order(state):
    """More true positives than predictions, as a difference of counts may have."""
    for counted in (state, state.labels, state.known):
        counted.cells[0] += 30.0


def hit_unexpectedly(state):
    """Hits where probabilities expected none."""
    for counted in (state, state.known):
        counted.cells[0] = 0.0
    state.labels.cells[0] = np.minimum(state.cells[1], state.labels.cells[2])


def less_than_known(state):
    """Precisions below zero, as a difference of states may have: one half moves a bias by 1000."""
    state.calibration.shared[[SLOPE, INTERCEPT]] = 1.0, 0.0
    state.calibration.bias[:] = 0.0
    state.calibration.precision[:] = -4.25 + 0.5**11


def more_than_rows(state):
    """More positives than rows, as a difference of states may have."""
    for counted in (state, state.labels, state.known):
        counted.totals[0] = 1.0


def negative_sums(state):
    """Less than nothing of all labels, too."""
    for counted in (state, state.labels, state.known):
        counted.totals[1:4] *= -1.0


ODD = [wild, nearly_wild, far_for_all, far_for_all_alone, out_of_order, hit_unexpectedly]
ODD += [less_than_known, more_than_rows, negative_sums]


@pytest.mark.parametrize("change", ODD)
@pytest.mark.parametrize("k", [None, 4])
@pytest.mark.parametrize(
    "name",
    [
        "macro_f1",
        "macro_precision",
        "macro_gmean",
        "macro_balanced_accuracy",
        "micro_f1",
        "micro_balanced_accuracy",
    ],
)
def test_states_that_no_rows_make_are_decided_as_by_gains(monkeypatch, change, k, name):
    eta, y = stream(5, 200, 21)
    eta[40] = 0.5
    policy = omma.Auto(name, k=k)
    signs = from_state(policy, eta, y, change)
    by_gains(monkeypatch)
    monkeypatch.setattr(Runner, "_ranked", False)
    gains = from_state(policy, eta, y, change)
    np.testing.assert_array_equal(signs.predictions, gains.predictions)
    assert signs.state == gains.state


def test_labels_may_tell_apart_what_is_nearly_sure(monkeypatch):
    """A steep slope and an intercept far below zero: of a tiny probability no sigmoid is left."""
    rng = np.random.default_rng(9)
    logits = rng.uniform(11.9, 12.1, (20_000, 64))
    y = (logits > 12.0).astype(np.int8)
    logits[-5:, ::2], y[-5:, ::2] = -27.6, 0
    eta, policy = 1.0 / (1.0 + np.exp(-logits)), omma.Auto("macro_f1")
    signs = omma.replay(policy, eta, y)
    learned = signs.state.calibration
    assert learned.slope * -27.6 + learned.shared[INTERCEPT] < -710.0
    by_gains(monkeypatch)
    assert_same(signs, omma.replay(policy, eta, y))


@pytest.mark.parametrize("name", ["macro_f1", "macro_precision", "macro_gmean"])
def test_a_label_may_be_true_before_it_has_a_probability(monkeypatch, name):
    """Then what was counted is looked at in place of what was expected, which is nothing."""
    eta, y = stream(6, 300, 12)
    eta[:150, 3:] = 0.0
    y[:150, 3:] = 1
    signs = omma.replay(omma.Auto(name), eta, y)
    by_gains(monkeypatch)
    assert_same(signs, omma.replay(omma.Auto(name), eta, y))


@pytest.mark.parametrize("k", [None, 2])
def test_minus_zero_is_zero(k):
    eta, y = stream(7, 100, 19)
    assert (eta == 0.0).any()
    zero = omma.replay(omma.Auto("macro_f1", k=k), eta, y)
    assert_same(zero, omma.replay(omma.Auto("macro_f1", k=k), np.where(eta == 0.0, -0.0, eta), y))


@pytest.mark.parametrize("name", ["macro_f1", "macro_precision", "macro_gmean"])
def test_where_rounding_decides_the_gains_do(monkeypatch, name):
    """Probabilities at the thresholds themselves: two ways to work out a gain have other signs."""
    rng, m, policy = np.random.default_rng(8), 400, omma.Auto(name)

    def state():
        made = policy.plan(m).start(m)
        predicted, positive = rng.uniform(1, 50, m).round(), rng.uniform(1, 50, m)
        for counted in (made, made.labels, made.known):
            counted.cells[:] = np.minimum(predicted, positive) / 3.0, predicted, positive
            counted.totals[0] = 100.0
        return made

    found = state()
    rule = policy._rule(found)
    eta = np.clip(-rule.offset / rule.slope, 0.0, 1.0)[np.newaxis]
    given = Sequence(omma.Batch.of(eta, np.zeros((1, m), dtype=np.int8)))
    signs = run("Auto", policy.plan(m), given, state=found.copy())
    by_gains(monkeypatch)
    gains = run("Auto", policy.plan(m), given, state=found.copy())
    np.testing.assert_array_equal(signs.predictions, gains.predictions)
    assert 0 < gains.predictions.sum() < m


def test_gains_are_not_asked_for(monkeypatch):
    eta, y = stream(2, 200, 20)
    expected = omma.replay(omma.Auto("macro_f1"), eta, y)
    monkeypatch.setattr(sinks, "replay_dense", None)  # whoever calls it fails
    assert_same(expected, omma.replay(omma.Auto("macro_f1"), eta, y))


def test_rows_without_labels_are_left_to_the_gains():
    """After them probabilities of all rows are no longer those of rows with labels."""
    eta, y = stream(3, 120, 20)
    policy = omma.Auto("macro_f1")
    some = omma.replay(policy, eta, np.where(np.arange(120)[:, None] == 50, np.nan, y))
    learner = omma.OnlineClassifier(policy, 20)
    for t, row in enumerate(eta):
        np.testing.assert_array_equal(learner.predict(row), some.predictions[t])
        learner.update(None if t == 50 else y[t])
    assert learner.state == some.state
    assert not some.state.all_labelled
    assert omma.replay(policy, eta, y).state.all_labelled


def test_rows_fed_after_some_without_labels_are_left_to_the_gains(monkeypatch):
    eta, y = stream(9, 60, 20)
    plan, rows = omma.Auto("macro_f1").plan(20), np.arange(60)
    unknown = Sequence(omma.Batch.of(eta, np.full(y.shape, np.nan)))
    given = Sequence(omma.Batch.of(eta, y))

    def fed():
        runner = Runner("test", plan, given.eta)
        runner.feed(rows[:20], given.true(rows[:20]))
        runner.feed(rows[20:30], unknown.true(rows[20:30]))
        runner.feed(rows[30:], given.true(rows[30:]))
        return runner.result(0.0)

    signs = fed()
    by_gains(monkeypatch)
    gains = fed()
    np.testing.assert_array_equal(signs.predictions, gains.predictions)
    assert signs.state == gains.state


def test_a_wrong_row_is_refused():
    eta, y = stream(4, 30, 70)
    eta[20, 66] = 1.5
    with pytest.raises(ValueError, match="must hold"):
        omma.replay(omma.Auto("macro_f1"), eta, y)

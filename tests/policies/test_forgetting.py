"""What omma.Forgetting alone promises; what it shares with a window is tested once, for both."""

import numpy as np
import pytest
from naive_baselines import class_stream, dense, stepped, stream
from scipy import sparse
from test_looking_back import POLICIES, ids

import omma


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_dividing_by_a_power_of_two_changes_no_decision(policy):
    """The first rows of a stream are as good as forgotten: so a fresh one decides the same."""
    eta, y = stream(2, 700, 5)
    fading = omma.Forgetting(policy, 2)
    long = omma.replay(fading, eta, y)
    assert long.state.pace[2] == 3  # 700 rows are 350 half-lives
    assert 1 <= long.state.unit < 2.0**100
    if policy.feedback != "both":  # what calibration learned stays, however old
        short = omma.replay(fading, eta[-300:], y[-300:])
        np.testing.assert_array_equal(long.predictions[-100:], short.predictions[-100:])
    assert np.isfinite(long.rule.thresholds).all()


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_late_labels_fade_from_when_they_come(policy, thin):
    """Estimates count from the decision; a label makes nothing older where its row has done so."""
    n = 202  # at 200 rows the unit becomes too large, and all is divided
    eta, y = stream(4, n, 4, zeros=0.0)
    learner, feedback = omma.OnlineClassifier(omma.Forgetting(policy, 2), 4), policy.feedback
    shape = sparse.csr_array if thin else np.asarray
    comes = np.arange(n) + np.random.default_rng(0).integers(0, 9, n)
    comes[::5] = -1  # some never do
    made, labelled = {}, []
    for t in range(n):
        made[t] = dense(learner.predict(shape(eta[[t]]), id=t))[0]
        for late in np.flatnonzero(comes == t).tolist():
            learner.update(shape(y[[late]]), id=late)
            labelled.append((t, late))
    came, which = np.array(labelled).T
    age = np.arange(len(labelled))[::-1] + 1 if feedback == "labels" else n - 1 - came
    now, keep = learner.state.now(), 0.5**0.5
    found = now if feedback == "labels" else now.labels
    chosen = np.array([made[one] for one in which])
    every = np.array([chosen * y[which], chosen, y[which]])
    np.testing.assert_allclose(found.cells, np.einsum("cij,i", every, keep**age), rtol=1e-9)
    if feedback == "estimates":
        chosen = np.array([made[t] for t in range(n)])
        every = np.array([chosen * eta, chosen, eta])
        expected = np.einsum("cij,i", every, keep ** (n - np.arange(0.0, n)))
        np.testing.assert_allclose(now.cells, expected, rtol=1e-9)
    assert learner.counts == omma.Counts.from_labels(
        y[which], np.array([made[one] for one in which])
    )


def test_a_spoiled_pace_is_refused():
    state = omma.Forgetting(omma.OMMA("macro_f1"), 3).init(2)
    arrays = state.copy().arrays()
    for pace in (
        [0.0, arrays["pace"][1], 0.0],
        [1.0, 2.0, 0.0],
        [2.0**101, arrays["pace"][1], 0.0],
    ):
        with pytest.raises(ValueError, match="pace of a state must"):
            state.restore({**arrays, "pace": np.array(pace)})


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_streams_of_the_same_time_add_up(policy):
    """Row i of either counts for growth ** i, also where one was divided and the other was not."""
    eta, y = stream(2, 480, 4)
    fading = omma.Forgetting(policy, 2)
    one = omma.replay(fading, eta[:240], y[:240]).state
    other = omma.replay(fading, eta[240:420], y[240:420]).state
    both = one + other
    assert both.rows == pytest.approx(one.rows + other.rows * 2.0**-30)
    assert (other + one).rows == both.rows
    assert both.truth.rows == 420
    alike = one.now() + other.now()
    assert alike.rows == pytest.approx(one.rows + other.rows)
    empty = fading.init(4)
    for name, found in (one + empty).arrays().items():
        np.testing.assert_allclose(found, one.arrays()[name], rtol=1e-12)


def test_different_half_lives_do_not_add_up():
    one, other = (omma.Forgetting(omma.OMMA("macro_f1"), life).init(2) for life in (3, 4))
    with pytest.raises(ValueError, match="half-lives of 3 and 4 rows"):
        one + other
    with pytest.raises(ValueError, match="same number of labels and kind"):
        one + omma.OMMA("macro_f1").init(2)


@pytest.mark.parametrize(
    "policy",
    [omma.OMMA("multiclass_mcc"), omma.OFO("micro", feedback="estimates"), omma.OMMA("macro_mcc")],
    ids=repr,
)
def test_other_kinds_of_metric_fade_as_states_are_multiplied(policy):
    """Sums over labels and sums of products too, past a division by 2 ** 100."""
    eta, classes = class_stream(1, 150, 5)
    y = np.eye(5, dtype=np.int8)[classes]
    trace = omma.replay(omma.Forgetting(policy, 1), eta, y)
    learner = omma.OnlineClassifier(policy, 5)
    for row, true, made in zip(eta, y, trace.predictions, strict=True):
        np.testing.assert_array_equal(learner.predict(row), made)
        learner.update(true)
        learner.state = learner.state * 0.5
    found = trace.state.now()
    np.testing.assert_allclose(found.cells, learner.state.cells, rtol=1e-12, atol=1e-30)
    np.testing.assert_allclose(found.totals, learner.state.totals, rtol=1e-9, atol=1e-30)


def test_prices_of_limits_fade_too():
    """They look at counts in the same unit: another one changes no decision, and no price."""
    eta, y = stream(2, 500, 5, zeros=0.0)
    limits = ["micro_precision >= 0.7", "macro_recall >= 0.5"]
    policy = omma.OMMA("macro_f1", subject_to=limits)
    learner = omma.OnlineClassifier(omma.Forgetting(policy, 20), 5)
    stepped(learner, eta[:400], y[:400])
    assert [one.name for one in learner.limits] == ["micro_precision", "macro_recall"]
    other = omma.OnlineClassifier(omma.Forgetting(policy, 20), 5)
    other.state = learner.state.now()
    made = [stepped(one, eta[400:], y[400:]) for one in (learner, other)]
    np.testing.assert_array_equal(*made)
    np.testing.assert_allclose(learner.state.prices.mu, other.state.prices.mu, rtol=1e-6)
    slow = omma.replay(policy, eta, y).state.prices
    assert (learner.state.prices.spread < 0.5 * slow.spread).all()

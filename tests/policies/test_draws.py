"""The draw for a row: the same when asked twice, anew for another row, alike in every layout."""

import naive_baselines as twins
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import LAYOUTS, dense, row_of, stepped, stream

import omma
from omma.policies.mixture import fingerprints


def mixture(m, share=0.5, seed=0):
    """All labels that may occur with some probability, none otherwise."""
    rules = (omma.Rule(np.zeros(m), np.ones(m)), omma.Rule(np.zeros(m), -np.ones(m)))
    return omma.Mixture(rules, [share, 1 - share], "macro_f1", seed)


def rows(n=4000, m=3, seed=1):
    return np.random.default_rng(seed).uniform(0.01, 0.99, (n, m))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_serving_by_predict_alone_draws_each_rule_by_its_share(share, layout):
    eta = LAYOUTS[layout](rows(1500))
    learner = omma.OnlineClassifier(mixture(3, share), n_labels=3)
    first = [dense(learner.predict(row_of(eta, t))).ravel()[0] for t in range(1500)]
    again = [dense(learner.predict(row_of(eta, t))).ravel()[0] for t in range(1500)]
    assert np.mean(first) == pytest.approx(share, abs=0.05)
    assert first == again  # asking changes nothing


def test_replays_draw_each_rule_by_its_share():
    eta = rows()
    trace = omma.replay(mixture(3, 0.3), eta, np.zeros_like(eta, dtype=int))
    assert trace.predictions[:, 0].mean() == pytest.approx(0.3, abs=0.03)


def test_equal_rows_draw_anew_once_something_was_counted():
    eta = np.full((2000, 3), 0.4)
    trace = omma.replay(mixture(3), eta, np.zeros_like(eta, dtype=int))
    assert trace.predictions[:, 0].mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_are_replays(layout):
    eta, y = stream(3, n=80)
    given = LAYOUTS[layout](eta)
    trace = omma.replay(mixture(4, seed=7), given, y)
    learner = omma.OnlineClassifier(mixture(4, seed=7), n_labels=4)
    np.testing.assert_array_equal(stepped(learner, given, y), dense(trace.predictions))


def test_a_batch_draws_for_each_of_its_places():
    eta, y = stream(4, n=60)
    learner = omma.OnlineClassifier(mixture(4, seed=2), n_labels=4)
    trace = omma.replay(mixture(4, seed=2), eta, y)
    np.testing.assert_array_equal(learner.predict(eta), trace.predictions)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_fingerprints_are_the_twins_in_every_layout(seed):
    eta, _ = stream(seed, n=6, m=5, zeros=0.5)
    theirs = [twins.fingerprint(row) for row in eta]
    for make in LAYOUTS.values():
        found = fingerprints(omma.rows.arrays.read_probabilities("test", make(eta)))
        np.testing.assert_array_equal(found, theirs)
    single = eta.astype(np.float32)
    found = fingerprints(omma.rows.arrays.read_probabilities("test", single))
    np.testing.assert_array_equal(found, [twins.fingerprint(row) for row in single])


def test_fingerprints_are_even_and_tell_places_apart():
    found = fingerprints(omma.rows.arrays.read_probabilities("test", rows()))
    assert (found >= 0).all()
    assert (found < 1).all()
    counted, _ = np.histogram(found, bins=10, range=(0, 1))
    assert counted.min() > 320  # of 400 each
    moved = np.array([[0.5, 0.0, 0.25], [0.0, 0.5, 0.25], [0.25, 0.0, 0.5]])
    assert len(set(fingerprints(omma.rows.arrays.read_probabilities("test", moved)))) == 3


def test_a_mixture_replaced_while_rows_are_decided_does_not_touch_them(monkeypatch):
    """Another thread may run Frank-Wolfe meanwhile: then there are more rules."""
    policy = omma.OnlineFrankWolfe("macro_f1")
    state, eta = policy.init(3), np.full((50, 3), 0.6)
    halves = state.mixture

    def fingerprints_later(eta, order=None):
        state.mixture = np.stack((np.ones((9, 3)), -np.ones((9, 3))), axis=1), np.full(9, 1 / 9)
        return fingerprints(eta, order)

    monkeypatch.setattr("omma.policies.mixture.fingerprints", fingerprints_later)
    assert policy.decide_rows(state, eta).all()
    state.mixture = halves
    assert policy.predict(state, eta[0]).all()

"""omma.step: pure, and what it returns adds up."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import class_stream, dense, stream
from scipy import sparse

import omma

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
LABELS = omma.OMMA("macro_f1", prior=1.0)
SOFT = omma.OMMA("micro_f1", feedback="estimates")
BOTH = omma.Auto("macro_f1")
POLICIES = [LABELS, SOFT, BOTH, omma.Forgetting(LABELS, 7), omma.Forgetting(BOTH, 7)]


def close(first, second, rtol=1e-12):
    one, other = first.arrays(), second.arrays()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, atol=rtol, err_msg=name)


def split(eta, y, parts=3):
    edges = np.linspace(0, len(eta), parts + 1).astype(int)
    return [(eta[a:b], y[a:b]) for a, b in pairwise(edges)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{type(p).__name__}-{p.feedback}")
def test_state_and_delta_are_the_state_after_the_batch(policy, layout):
    eta, y = stream(1, 90, 5, zeros=0.3)
    weights = np.random.default_rng(0).random(60)
    state = omma.replay(policy, LAYOUTS[layout](eta[:30]), y[:30]).state
    before = state.copy()
    batch = LAYOUTS[layout](eta[30:])
    predictions, delta = omma.step(policy, state, batch, y[30:], weights)
    assert state == before
    learner = omma.OnlineClassifier(policy, 5)
    learner.state.restore(state.arrays())
    np.testing.assert_array_equal(dense(learner.predict(batch)), dense(predictions))
    learner.update(y[30:], weight=weights)
    close(state + delta, learner.state, 1e-10 if policy.feedback == "both" else 1e-12)


@given(st.sampled_from(POLICIES[:3]), st.sampled_from(sorted(LAYOUTS)), st.integers(0, 10_000))
@settings(max_examples=25)
def test_what_batches_add_may_be_added_in_any_order(policy, layout, seed):
    eta, y = stream(seed, 60, 5, zeros=0.3)
    state = policy.init(5)
    first, second, third = (
        omma.step(policy, state, LAYOUTS[layout](part), true)[1] for part, true in split(eta, y)
    )
    same = (lambda a, b: close(a, b, 1e-9)) if policy is BOTH else close
    same(first + second, second + first)
    same((first + second) + third, first + (second + third))
    same(first + state, first)
    same(state + first + second - second, state + first)
    if policy is LABELS:  # whole numbers add up exactly
        assert (first + second) + third == third + (second + first)


@pytest.mark.parametrize("policy", [LABELS, SOFT])
def test_the_prior_counts_once(policy):
    eta, y = stream(3, 60, 5)
    state, whole = policy.init(5), policy.init(5)
    rule = omma.Rule([1.0] * 5, [-0.3] * 5)
    parts = []
    for part, true in split(eta, y):
        one = omma.OnlineClassifier(policy, 5)
        one.update(true, prediction=rule.predict(part), eta=part)
        parts.append(one.state)
    whole = omma.OnlineClassifier(policy, 5)
    whole.update(y, prediction=rule.predict(eta), eta=eta)
    for part in parts:
        state = state + part
    np.testing.assert_allclose(policy.rule(state).thresholds, whole.rule.thresholds, rtol=1e-12)


def test_classes_and_sums_of_products_add_up():
    policy = omma.OMMA("multiclass_mcc")
    eta, ids = class_stream(2, 60, 4)
    state = policy.init(4)
    for start in range(0, 60, 20):
        rows = slice(start, start + 20)
        learner = omma.OnlineClassifier(policy, 4)
        learner.state.restore(state.arrays())
        learner.predict(eta[rows])
        learner.update(ids[rows])
        state = state + omma.step(policy, state, eta[rows], ids[rows])[1]
        assert state == learner.state  # not one bit between them


def test_without_labels_only_estimates_count():
    eta, _ = stream(1, 20, 5)
    predictions, delta = omma.step(LABELS, LABELS.init(5), eta)
    assert delta == LABELS.init(5)
    assert predictions.shape == eta.shape
    assert omma.step(SOFT, SOFT.init(5), eta)[1].rows == 20
    labels = omma.step(BOTH, BOTH.init(5), eta)[1].labels
    assert labels.rows == 0


def test_no_rows_add_nothing():
    state = BOTH.init(5)
    predictions, delta = omma.step(BOTH, state, np.empty((0, 5)), np.empty((0, 5)))
    assert predictions.shape == (0, 5)
    close(state + delta, state)


def test_a_first_batch_on_nothing_is_warned_about():
    policy = omma.OMMA("macro_f1", prior=0.0)
    eta, y = stream(1, 20, 5, zeros=0.0)
    with pytest.warns(UserWarning, match="step decides its first batch on nothing"):
        predictions, delta = omma.step(policy, policy.init(5), eta, y)
    assert predictions.all()
    omma.step(policy, delta, eta, y)  # has something to look at, and says nothing


def test_batches_of_twenty_thousand_rows_lose_little():
    """The table of quality against merge interval: +0.16 % lost at 20,000 rows, prior 1."""
    rng = np.random.default_rng(0)
    n, m = 100_000, 60
    means = np.geomspace(0.3, 0.004, m)
    eta = rng.beta(means * 2, (1 - means) * 2, size=(n, m)).astype(np.float32)
    y = (rng.random((n, m)) < eta).astype(np.int8)
    sequential = omma.replay(LABELS, eta, y).value
    state, made = LABELS.init(m), np.empty((n, m), dtype=np.int8)
    for start in range(0, n, 20_000):
        rows = slice(start, start + 20_000)
        made[rows], delta = omma.step(LABELS, state, eta[rows], y[rows])
        state = state + delta
    frozen = omma.metric("macro_f1").score(y, made)
    assert (sequential - frozen) / sequential <= 0.002


def test_what_cannot_be_stepped_is_refused():
    eta, y = stream(1, 20, 5)
    state = LABELS.init(5)
    with pytest.raises(TypeError, match="policy of step must be a policy"):
        omma.step("macro_f1", state, eta, y)
    mixed = omma.OnlineFrankWolfe("macro_f1")
    with pytest.raises(TypeError, match="state of step must be counts only"):
        omma.step(mixed, mixed.init(5), eta, y)
    with pytest.raises(TypeError, match="state of step must be one that"):
        omma.step(SOFT, state, eta, y)
    with pytest.raises(ValueError, match="eta of step must have 5 labels"):
        omma.step(LABELS, state, eta[:, :3], y[:, :3])
    with pytest.raises(ValueError, match="eta of step must hold probabilities"):
        omma.step(LABELS, state, eta * 2, y)
    with pytest.raises(ValueError, match="y of step"):
        omma.step(LABELS, state, eta, y * 2)
    assert state == LABELS.init(5)

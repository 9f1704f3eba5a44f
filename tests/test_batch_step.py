"""Batches decided in parts: the same state, however they were cut."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import stream
from scipy import sparse

import omma
from omma.batch_step import WorkerPart, handed_out, merged, settled

LIMITS = [
    "micro_precision >= 0.7",
    "labels_per_row <= 1.5",
    "recall[1] >= 0.6",
    "macro_recall >= 0.5",
]
POLICIES = [
    omma.OMMA("macro_f1", prior=1.0),
    omma.Forgetting(omma.OMMA("macro_f1", prior=1.0), 20),
    omma.OMMA("micro_f1", feedback="estimates"),
]


def run(policy, eta, y, size, cuts):
    """Batches of ``size`` rows, each spread over some workers by ``cuts``."""
    state = policy.init(eta.shape[1])
    for start in range(0, len(eta), size):
        rows = np.arange(start, min(start + size, len(eta)))
        parts = [rows[cuts[rows] == worker] for worker in np.unique(cuts[rows])]
        state = merged(state, [counted(policy, state, eta[part], y[part]) for part in parts])
    return state


def counted(policy, state, eta, y):
    """What a worker adds that sees its rows in two pieces."""
    part = WorkerPart(policy, handed_out(state))
    half = len(eta) // 2
    part.decide(eta[:half], y[:half])
    part.decide(eta[half:], y[half:])
    return part.delta


def assert_close(one, other, rtol):
    first, second = one.arrays(), other.arrays()
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol, rtol, err_msg=name)


@given(st.sampled_from(POLICIES), st.integers(1, 40), st.integers(0, 10_000))
@settings(max_examples=30)
def test_it_does_not_matter_who_counted_what(policy, size, seed):
    eta, y = stream(seed, 60, 4)
    rng = np.random.default_rng(seed)
    alone, spread = (run(policy, eta, y, size, rng.integers(0, w, 60)) for w in (1, 5))
    if policy.feedback == "labels":
        assert alone == spread
    else:
        assert_close(alone, spread, 1e-9)


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_one_worker_holds_limits_as_a_stream_does(feedback):
    policy = omma.OMMA("macro_f1", prior=1.0, feedback=feedback, subject_to=LIMITS)
    eta, y = stream(3, 80, 4)
    trace = omma.replay(policy, eta, y)
    for size in (80, 30):
        state = run(policy, eta, y, size, np.zeros(80))
        assert_close(state, trace.state, 1e-9)


def test_fading_by_batches_is_fading_by_rows_in_batches_of_one():
    policy = omma.Forgetting(omma.OMMA("macro_f1", prior=1.0), 20)
    eta, y = stream(3, 80, 4)
    state = run(policy, eta, y, 1, np.zeros(80))
    assert_close(state, omma.replay(policy, eta, y).state.now(), 1e-12)


def test_limits_hold_in_batches():
    """A floor on precision is met about as well as in a stream, once prices have moved."""
    eta, y = omma.datasets.long_tail(n=40_000, m=20, seed=0)
    policy = omma.Auto("macro_recall", subject_to="micro_precision >= 0.8")
    state = run(policy, eta, y, 500, np.arange(40_000) % 2)
    precision = omma.metric("micro_precision")
    counts = state.truth
    found = counts.cells[0].sum() / counts.cells[1].sum()
    alone = precision.value(omma.replay(policy, eta, y).counts)
    assert found > 0.78, (found, alone)


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[2], omma.Auto("macro_f1")])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_labels_that_come_later_count_as_in_a_learner(policy, make):
    eta, y = stream(5, 40, 4)
    eta = make(eta)
    learner = omma.OnlineClassifier(policy, 4)
    predictions = learner.predict(eta, ids=list(range(40)))
    learner.update(y, ids=list(range(40)))
    first = omma.step(policy, policy.init(4), eta)[1]
    state = merged(policy.init(4), [first])
    state = merged(state, [settled(policy, state, eta, y, predictions)])
    assert_close(state, learner.state, 1e-9)


def test_labels_that_come_later_leave_prices_where_they_are():
    eta, y = omma.datasets.long_tail(n=2000, m=5, seed=0)
    policy = omma.Auto("macro_recall", k=1, subject_to="micro_precision >= 0.9")
    state = run(policy, eta, y, 500, np.arange(2000) % 2)
    predictions = policy.decide_rows(state, eta[:10])
    after = merged(state, [settled(policy, handed_out(state), eta[:10], y[:10], predictions)])
    assert state.prices.mu[0] > 100.0
    np.testing.assert_allclose(after.prices.mu, state.prices.mu)
    np.testing.assert_allclose(after.prices.mean, state.prices.mean)

"""OFO is two counters and their ratio, and OMMA's rule for F1."""

from itertools import product

import naive
import naive_baselines as twins
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import FEEDBACK, LAYOUTS, PRIORS, agree, stream

import omma

AVERAGES = ("macro", "micro")
ways = pytest.mark.parametrize(("average", "feedback"), list(product(AVERAGES, FEEDBACK)))


# The textbook


@ways
@pytest.mark.parametrize("prior", PRIORS)
def test_decisions_are_those_of_the_two_counters(average, feedback, prior):
    for seed, layout in product(range(3), LAYOUTS.values()):
        eta, y = stream(seed, n=40)
        theirs, above = twins.ofo(eta, y, average, feedback, prior)
        policy = omma.OFO(average, feedback=feedback, prior=prior)
        ours = omma.replay(policy, layout(eta), y).predictions
        learner = omma.OnlineClassifier(policy, n_labels=4)
        np.testing.assert_array_equal(twins.stepped(learner, layout(eta), y), twins.dense(ours))
        assert agree(ours, theirs, above, None, tolerance=1e-9) == len(eta)


@ways
@given(seed=st.integers(0, 10**6), prior=st.sampled_from(PRIORS))
@settings(max_examples=25)
def test_weighted_rows_count_by_their_weight(average, feedback, seed, prior):
    eta, y = stream(seed, n=25, m=3)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], size=len(eta))
    weights[-1] = 1.0
    theirs, above = twins.ofo(eta, y, average, feedback, prior, weights)
    policy = omma.OFO(average, feedback=feedback, prior=prior)
    ours = omma.replay(policy, eta, y, weights=weights).predictions
    agree(ours, theirs, above, None, tolerance=1e-9)


@ways
def test_thresholds_are_a_over_b(average, feedback):
    eta, y = stream(4)
    trace = omma.replay(omma.OFO(average, feedback=feedback, prior=0.1), eta, y)
    tp, predicted, positive = trace.state.cells
    prior = 0.1
    if average == "micro":
        tp, predicted, positive = (np.full(4, cell.sum()) for cell in (tp, predicted, positive))
        prior = 4 * 0.1  # one for each label
    expected = (tp + prior) / (predicted + positive + prior)
    np.testing.assert_allclose(trace.rule.thresholds, expected, rtol=1e-12)
    assert trace.value == pytest.approx(naive.value(f"{average}_f1", y, trace.predictions))


def test_without_a_prior_a_label_is_predicted_until_it_is_counted():
    eta, y = np.full((3, 2), 1e-6), np.zeros((3, 2), dtype=int)
    trace = omma.replay(omma.OFO(prior=0.0), eta, y)
    assert trace.predictions.tolist() == [[1, 1]] * 3  # a stays 0: no threshold is above it
    y[0] = 1
    trace = omma.replay(omma.OFO(prior=0.0), eta, y)
    assert trace.predictions.tolist() == [[1, 1], [0, 0], [0, 0]]


def test_with_a_prior_thresholds_start_at_one():
    learner = omma.OnlineClassifier(omma.OFO(), n_labels=2)
    np.testing.assert_array_equal(learner.rule.thresholds, 1.0)
    assert learner.predict([0.999, 1.0]).tolist() == [0, 1]


# OMMA for F1


def started_from(policy, cells, n):
    """A learner that has counted n rows."""
    learner = omma.OnlineClassifier(policy, n_labels=cells.shape[1])
    learner.state.cells[...] = cells
    learner.state.totals[:4] = [n, *cells.sum(axis=1)]
    return learner


@st.composite
def some_counts(draw, m=3):
    """Counts of n rows of which every label was hit, missed and falsely predicted at times."""
    hits, false, missed = draw(
        st.lists(st.tuples(*[st.integers(1, 30)] * 3), min_size=m, max_size=m).map(np.transpose)
    )
    return np.array([hits, hits + false, hits + missed], dtype=float), 100.0


@pytest.mark.parametrize("prior", [0.0, 1e-9, 1e-8])
@pytest.mark.parametrize("average", AVERAGES)
@given(counts=some_counts(), seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_from_equal_counts_it_is_omma_for_f1_step_by_step(average, prior, counts, seed):
    eta, y = stream(seed, n=30, m=3, zeros=0.1)
    ofo = started_from(omma.OFO(average, prior=prior), *counts)
    other = started_from(omma.OMMA(f"{average}_f1", prior=prior), *counts)
    for row, true in zip(eta, y, strict=True):
        np.testing.assert_allclose(ofo.rule.thresholds, other.rule.thresholds, rtol=1e-6)
        ours, theirs = ofo.predict(row), other.predict(row)
        hangs_on_a_tie = abs(row / other.rule.thresholds - 1) < 1e-6
        np.testing.assert_array_equal(ours[~hangs_on_a_tie], theirs[~hangs_on_a_tie])
        ofo.update(true, prediction=theirs)
        other.update(true, prediction=theirs)
        np.testing.assert_array_equal(ofo.state.cells, other.state.cells)


def test_over_a_whole_sequence_it_is_close_to_omma_for_f1():
    eta, y = omma.datasets.long_tail(n=3000, m=8, seed=1)
    for average, feedback in product(AVERAGES, FEEDBACK):
        ofo = omma.replay(omma.OFO(average, feedback=feedback), eta, y)
        other = omma.replay(omma.OMMA(f"{average}_f1", feedback=feedback), eta, y)
        assert (ofo.predictions == other.predictions).mean() > 0.98
        np.testing.assert_allclose(ofo.rule.thresholds, other.rule.thresholds, atol=0.02)


# What it is not


def test_it_has_no_budget_and_refuses_class_ids():
    eta, _ = stream()
    with pytest.raises(ValueError, match="pass k=1"):
        omma.replay(omma.OFO(), eta, np.zeros(len(eta), dtype=int))


@pytest.mark.parametrize(
    "options", [{"average": "macr"}, {"feedback": "label"}, {"prior": -1.0}, {"prior": np.nan}]
)
def test_wrong_options_are_refused_by_name(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} of OFO must be"):
        omma.OFO(**options)

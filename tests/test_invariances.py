"""What must hold for any stream, whatever the metric."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from strategies import CLASSES, MANY, class_stream, dense, stream

import omma
from omma import Counts

names = st.sampled_from([*MANY, *CLASSES])
budgets = st.sampled_from([None, 1, 2, 5])
seeds = st.integers(0, 10**6)
feedbacks = st.sampled_from(["labels", "estimates"])
layouts = st.sampled_from([np.asarray, sparse.csr_array])
some = settings(max_examples=60)


def policy_and_rows(name, k, feedback, seed, n=30):
    metric = omma.metric(name)
    policy = omma.OMMA(name, k=None if metric.single_label else k, feedback=feedback)
    eta, y = class_stream(seed, n, 5) if metric.multiclass else stream(seed, n, 5)
    return policy, eta, y


@given(names, budgets, feedbacks, layouts, seeds)
@some
def test_renaming_labels_renames_predictions(name, k, feedback, layout, seed):
    # A budget that zeros fill up goes by the order of labels; so none are drawn here.
    metric = omma.metric(name)
    k = None if metric.single_label else k
    eta, y = class_stream(seed, 30, 5) if metric.multiclass else stream(seed, 30, 5, zeros=0.0)
    order = np.random.default_rng(seed).permutation(5)
    renamed = order.argsort()[y] if y.ndim == 1 else y[:, order]
    # A large prior keeps sums over labels, which round differently in another order, off ties.
    policy = omma.OMMA(name, k=k, feedback=feedback, prior=0.1)
    before = omma.replay(policy, layout(eta), y)
    after = omma.replay(policy, layout(eta[:, order]), renamed)
    np.testing.assert_array_equal(dense(before.predictions)[:, order], dense(after.predictions))
    np.testing.assert_array_equal(before.counts.tp[order], after.counts.tp)
    assert after.value == pytest.approx(before.value, rel=1e-12)


@given(names, st.integers(1, 5), feedbacks, layouts, seeds)
@some
def test_a_budget_is_spent_exactly(name, k, feedback, layout, seed):
    policy, eta, y = policy_and_rows(name, k, feedback, seed)
    predictions = omma.replay(policy, layout(eta), y).predictions
    assert set(dense(predictions).sum(axis=1).tolist()) == {policy.budget}


@given(names, budgets, feedbacks, layouts, seeds)
@some
def test_counts_are_those_of_the_predictions(name, k, feedback, layout, seed):
    policy, eta, y = policy_and_rows(name, k, feedback, seed)
    trace = omma.replay(policy, layout(eta), y, seed=seed)
    assert trace.counts == Counts.from_labels(y, trace.predictions, n_labels=5)
    halves = [Counts.from_labels(y[part], dense(trace.predictions)[part], n_labels=5)
              for part in (slice(0, 13), slice(13, None))]  # fmt: skip
    assert trace.counts == halves[0] + halves[1]
    assert trace.value == policy.metric.value(trace.counts)


@given(names, feedbacks, layouts, seeds, st.sampled_from([0.0, 1e-6, 1.0]))
@some
def test_what_cannot_be_is_never_predicted(name, feedback, layout, seed, prior):
    eta, y = stream(seed, 30, 5, zeros=0.5)
    if omma.metric(name).multiclass:
        name = "macro_recall"  # gains from every prediction
    policy = omma.OMMA(name, feedback=feedback, prior=prior)
    assert not dense(omma.replay(policy, layout(eta), y).predictions)[eta == 0].any()


@given(names, st.integers(1, 4), feedbacks, layouts, seeds)
@some
def test_labels_alike_in_everything_go_to_the_lowest(name, k, feedback, layout, seed):
    # Of two labels that are twins in every row, the second is never preferred.
    metric = omma.metric(name)
    rng = np.random.default_rng(seed)
    eta = rng.random((1, 6)).round(1)
    eta[:, 3:] = eta[:, :3]
    k = 1 if metric.single_label else k
    first = dense(omma.OnlineClassifier(omma.OMMA(name, k=k), 6).predict(layout(eta)))[0]
    candidates = eta[0] > 0
    for j in range(3):
        if candidates[j]:
            assert first[j] >= first[j + 3]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", [*MANY, *CLASSES])
def test_rows_that_tie_everywhere_take_the_lowest_labels(name, layout):
    k = 1 if omma.metric(name).single_label else 2
    predictions = omma.OnlineClassifier(omma.OMMA(name, k=k), 20).predict(
        layout(np.full((3, 20), 0.3))
    )
    assert np.flatnonzero(dense(predictions)[0]).tolist() == list(range(k))


@given(names, budgets, feedbacks, seeds)
@some
def test_dense_and_sparse_rows_give_the_same_bits(name, k, feedback, seed):
    policy, eta, y = policy_and_rows(name, k, feedback, seed)
    wide = omma.replay(policy, eta, y, seed=seed)
    thin = omma.replay(policy, sparse.csr_array(eta), y, seed=seed)
    np.testing.assert_array_equal(thin.predictions.toarray(), wide.predictions)
    assert thin.counts == wide.counts
    assert thin.rule == wide.rule
    assert thin.state == wide.state


@given(names, seeds)
@settings(max_examples=20)
def test_a_longer_stream_begins_as_a_shorter_one(name, seed):
    policy, eta, y = policy_and_rows(name, 2, "labels", seed)
    whole = omma.replay(policy, eta, y).predictions
    start = omma.replay(policy, eta[:11], y[:11]).predictions
    np.testing.assert_array_equal(whole[:11], start)


def test_omma_beats_the_half_on_what_it_maximizes():
    eta, y = omma.datasets.long_tail(n=4000, m=20, seed=0)
    for name in ("macro_f1", "macro_gmean", "macro_mcc", "micro_jaccard"):
        half = omma.replay(omma.Threshold(0.5), eta, y, metric=name)
        assert omma.replay(omma.OMMA(name), eta, y).value > half.value + 0.02
    top = omma.replay(omma.TopK(3), eta, y, metric="macro_f1")
    assert omma.replay(omma.OMMA("macro_f1", k=3), eta, y).value > top.value + 0.01

"""Cuts of drawn rows: against a slow twin, against what they replace, and at the edges."""

import naive_cuts
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

import omma
from omma.policies import OMMA, Auto
from omma.rows.batch import Batch

pytest.importorskip("sklearn", reason="omma.sklearn needs the extra 'sklearn'")

from omma.policies.bagged_thresholds import (
    CANDIDATES,
    CutTask,
    bootstrap_samples,
    candidate_cuts,
    resample,
)
from omma.sklearn._rule_search import find_rule

probabilities = st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.5, 0.8, 1.0])
row = st.tuples(probabilities, st.integers(0, 1), st.sampled_from([0.5, 1.0, 2.0]))


@settings(deadline=None, max_examples=40)
@given(st.lists(row, min_size=1, max_size=12), st.sampled_from(["f1", "gmean", "mcc"]), st.data())
def test_drawn_cuts_are_those_of_the_slow_twin(rows, name, data):
    eta, y, weights = (np.array(column) for column in zip(*rows, strict=True))
    sample = Batch.read("test", eta, y, weights).ready()
    cuts = CutTask.of(Auto(name), sample)
    threshold = data.draw(probabilities.filter(bool))
    stands = int((eta >= threshold).sum())
    drawn = bootstrap_samples(len(eta), seed=data.draw(st.integers(0, 99)))[:5]
    predicted, (_, out_of_bag) = resample(cuts, np.array([stands]), drawn)

    def value(tp, predicted, positive, n):
        cells = map(np.atleast_1d, (tp, predicted, positive, n))
        return float(omma.metric(name).of_cells(*cells)[0])

    given_to = (eta.tolist(), y.tolist(), weights.tolist(), drawn.tolist(), stands)
    taken, tuned, standing = naive_cuts.steady_taken(value, *given_to)
    assert np.exp(np.log(predicted + 0.5).mean(axis=1)) - 0.5 == pytest.approx([taken])
    assert out_of_bag[0, 0] == pytest.approx(tuned)
    assert out_of_bag[1, 0] == pytest.approx(standing)


@pytest.mark.parametrize(
    "name",
    [*(f"multiclass_{kind}" for kind in ("accuracy", "balanced_accuracy", "gmean", "hmean",
       "qmean", "min_recall", "mcc", "kappa")), "macro_f1", "macro_gmean",
     omma.metrics.costs([[0.0, -1.0], [-5.0, 1.0]]),
     omma.metrics.costs([[0.0, -1.0], [-5.0, 1.0]]) + 0.5 * omma.metric("multiclass_gmean")],
)  # fmt: skip
def test_what_a_cut_between_two_classes_is_worth(name):
    rng = np.random.default_rng(0)
    metric = omma.metric(name)
    table = rng.integers(0, 20, (40, 4)).astype(float)  # tn, fp, fn, tp
    table[:3] = [0, 5, 0, 5], [5, 0, 5, 0], [9, 0, 0, 9]
    tn, fp, fn, tp = table.T
    cells = np.array((tp, tp + fp, tp + fn, tn + fp + fn + tp))
    pairs = table.reshape(-1, 2, 2)
    each = [metric.value(omma.Counts.from_confusion(one)) for one in pairs]
    task = CutTask([], np.ones(1), metric, two_classes=True)
    assert task.values(cells) == pytest.approx(each)
    assert [metric.value(task.counts(one[np.newaxis])) for one in cells.T] == pytest.approx(each)


def expected(threshold, eta, truth):
    """F1 of a threshold in expectation."""
    taken = eta >= threshold
    return 2 * truth[taken].sum() / (taken.sum() + truth.sum())


def test_drawn_cuts_are_worth_more_than_exact_ones():
    rng = np.random.default_rng(0)
    worth = []
    for seed in range(20):
        truth = rng.beta(0.4, 3.0, 6000)
        said = np.where(truth > 0.3, truth**0.3, 0.2 * truth)  # no curve of two numbers undoes it
        y = (rng.random(6000) < truth).astype(int)
        few, rest = slice(150), slice(150, None)
        sample = Batch.read("test", said[few], y[few]).ready()
        steady = find_rule(Auto("f1"), sample, seed)[0].rule
        exact = omma.TunedThresholds("f1").fit(sample).decision
        worth.append([expected(r.thresholds[0], said[rest], truth[rest]) for r in (steady, exact)])
    steady, exact = np.mean(worth, axis=0)
    assert steady > exact + 0.005


def test_cuts_take_over_where_probabilities_are_ranks_alone():
    rng = np.random.default_rng(1)
    truth = rng.beta(0.3, 3.0, 8000)
    y = (rng.random(8000) < truth).astype(int)
    said = 0.5 + 0.4 * np.argsort(np.argsort(truth)) / 8000  # none is below one half
    sample = Batch.read("test", said[:2000], y[:2000]).ready()
    found = find_rule(Auto("f1"), sample, 0)[0].rule.thresholds[0]
    best = max(expected(t, said[2000:], truth[2000:]) for t in np.linspace(0.5, 0.9, 200))
    assert expected(found, said[2000:], truth[2000:]) > 0.97 * best


def test_sparse_rows_have_the_cuts_of_dense_ones():
    eta, y = omma.datasets.long_tail(n=600, m=8, seed=0)
    eta = np.where(eta < 0.05, 0.0, eta)
    thin, _ = find_rule(
        Auto("macro_f1"), Batch.read("t", sparse.csr_array(eta), sparse.csr_array(y)).ready(), 0
    )
    full, _ = find_rule(Auto("macro_f1"), Batch.read("t", eta, y).ready(), 0)
    np.testing.assert_allclose(thin.rule.thresholds, full.rule.thresholds, rtol=1e-9)


def test_many_rows_are_tried_at_some_places_only():
    rng = np.random.default_rng(0)
    eta = rng.random(40_000)
    sample = Batch.read("test", eta, (rng.random(40_000) < eta**4).astype(int)).ready()
    label = CutTask.of(Auto("f1"), sample).labels[0]
    places = candidate_cuts(label, 12_345)
    assert len(places) <= 2 * CANDIDATES + 1
    assert {0, 1, 2, 12_345, 39_999, 40_000} <= set(places.tolist())
    middle = places[(places > 100) & (places < 39_900)]
    assert np.max(np.diff(middle) / np.minimum(middle[1:], 40_000 - middle[:-1])) < 0.05
    found = find_rule(Auto("f1"), sample, 0)[0].rule.thresholds[0]
    best = max(np.linspace(0.3, 0.9, 200), key=lambda t: expected(t, eta, eta**4))
    assert expected(found, eta, eta**4) > 0.998 * expected(best, eta, eta**4)


@pytest.mark.parametrize("y", [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1], [1, 0, 1, 1]])
def test_labels_that_are_never_or_always_there(y):
    sample = Batch.read("test", np.array([0.2, 0.2, 0.6, 0.9]), np.array(y)).ready()
    for name in ("f1", "recall", "precision", "accuracy"):
        found = find_rule(Auto(name), sample, 0)[0]
        assert found.counts.n == 4
        assert found.counts.positive.tolist() == [sum(y)]
        assert not np.isnan(found.rule.thresholds).any()


def test_a_metric_that_takes_every_row_is_left_to_take_every_row():
    eta, y = omma.datasets.long_tail(n=400, m=3, seed=2)
    found = find_rule(Auto("macro_recall"), Batch.read("t", eta, y).ready(), 0)[0]
    assert found.rule.predict(eta).all()


def test_estimates_alone_are_never_tuned_on_labels():
    eta, y = omma.datasets.long_tail(n=200, m=3, seed=2)
    policy = OMMA("macro_f1", feedback="estimates")
    assert CutTask.of(policy, Batch.read("t", eta, y).ready()) is None

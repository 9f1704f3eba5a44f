"""Rows without labels in a replay: who learns from estimates goes by these, and counts the rest."""

from functools import partial

import numpy as np
import pytest
from naive_baselines import class_stream, stream
from scipy import sparse
from streams import dense

import omma

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
POLICIES = {
    "auto": omma.Auto("macro_f1"),
    "auto at most two": omma.Auto("macro_f1", at_most=2),
    "auto at 2": omma.Auto("micro_f1", k=2),
    "omma of estimates": omma.OMMA("macro_f1", feedback="estimates"),
    "greedy of estimates": omma.Greedy("macro_f1", k=2, feedback="estimates"),
    "online_fw of estimates": omma.OnlineFrankWolfe("macro_f1", feedback="estimates"),
}


def given(n=300, share=0.6):
    """Probabilities, labels that are NaN where they are unknown, and where they are known."""
    eta, y = stream(5, n, 6)
    known = np.random.default_rng(0).random(n) < share
    return eta, np.where(known[:, np.newaxis], y, np.nan), known


def stepped(policy, eta, y, known, order=None, **options):
    """The same, a row at a time."""
    learner = omma.OnlineClassifier(policy, n_labels=eta.shape[1], **options)
    made = np.zeros(eta.shape, dtype=np.int8)
    for t in range(eta.shape[0]) if order is None else order:
        made[t] = dense(learner.predict(eta[[t]] if sparse.issparse(eta) else eta[t])).ravel()
        learner.update(y[[t]] if known[t] else None)
    return made, learner


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_a_replay_is_updates_without_labels(policy, layout):
    eta, y, known = given()
    eta = LAYOUTS[layout](eta)
    trace = omma.replay(policy, eta, y)
    made, learner = stepped(policy, eta, y, known)
    np.testing.assert_array_equal(dense(trace.predictions), made)
    assert trace.counts == learner.counts
    np.testing.assert_array_equal(trace.state.cells, learner.state.cells)
    np.testing.assert_array_equal(trace.state.totals, learner.state.totals)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_rows_with_labels_are_counted(layout):
    eta, y, known = given()
    trace = omma.replay(omma.Auto("macro_f1"), LAYOUTS[layout](eta), y, seed=1)
    assert trace.counts.n == known.sum()
    true, decided = y[known].astype(np.int8), dense(trace.predictions)[known]
    assert trace.counts == omma.Counts.from_labels(true, decided)
    order = np.random.default_rng(1).permutation(len(known))
    for place, value in zip(trace.history.rows, trace.history.values, strict=True):
        rows = order[:place][known[order[:place]]]
        counts = omma.Counts.from_labels(y[rows].astype(np.int8), dense(trace.predictions)[rows])
        assert value == trace.metric.value(counts)


def test_what_is_known_may_be_said_beside_sparse_labels():
    eta, y, known = given()
    batch = omma.Batch.of(sparse.csr_array(eta), sparse.csr_array(np.nan_to_num(y)), known=known)
    trace = omma.replay(omma.Auto("macro_f1"), batch)
    same = omma.replay(omma.Auto("macro_f1"), sparse.csr_array(eta), y)
    assert trace.counts == same.counts
    np.testing.assert_array_equal(dense(trace.predictions), dense(same.predictions))


def test_no_row_with_labels_is_no_labels():
    eta, y, _ = given()
    trace = omma.replay(omma.Auto("macro_f1"), eta, np.full(y.shape, np.nan))
    without = omma.replay(omma.Auto("macro_f1"), eta)
    np.testing.assert_array_equal(trace.predictions, without.predictions)
    assert trace.counts.n == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("metric", ["multiclass_gmean", "multiclass_mcc"])
def test_classes(metric, layout):
    eta, ids = class_stream(4, 200, 5)
    known = np.random.default_rng(2).random(200) < 0.5
    policy = omma.Auto("multiclass_gmean")
    trace = omma.replay(policy, LAYOUTS[layout](eta), np.where(known, ids, np.nan), metric=metric)
    decided = dense(trace.predictions)[known]
    pairs = trace.metric.needs_matrix
    expected = omma.Counts.from_labels(ids[known], decided, n_labels=5, matrix=pairs)
    assert trace.counts == expected


def test_indicators_of_one_class_may_be_unknown():
    eta, ids = class_stream(4, 200, 5)
    known = np.arange(200) % 3 > 0
    y = np.where(known[:, np.newaxis], np.eye(5)[ids], np.nan)
    trace = omma.replay(omma.Auto("multiclass_gmean"), eta, y)
    assert trace.counts.n == known.sum()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gap_takes_labels_where_there_are_any(layout):
    eta, y, known = given(600)
    eta, policy = LAYOUTS[layout](eta), omma.Auto("macro_f1")
    trace = omma.replay(policy, eta, y, gap=True)
    _, learner = stepped(policy, eta, y, known, gap=True)
    assert trace.gap == learner.gap
    labels = omma.replay(policy, eta, np.nan_to_num(y), gap=True)
    assert trace.gap != labels.gap


def test_costs_are_those_of_labelled_rows_also_if_a_stretch_of_rows_has_none():
    eta, y = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0.0, np.nan, 1.0]
    costs = omma.metrics.costs([[0, -1], [-20, 0]])
    policy = omma.OMMA("macro_f1", k=1, feedback="estimates")
    trace = omma.replay(policy, eta, y, metric=costs, checkpoints=[1, 2, 3])
    assert trace.history.values.tolist() == [0.0, 0.0, -10.0]
    assert trace.value == -10.0


def test_a_fixed_rule_is_judged_by_rows_with_labels():
    eta, y, known = given()
    trace = omma.replay(omma.Threshold(0.3), eta, y, metric="macro_f1")
    of_known = omma.replay(omma.Threshold(0.3), eta[known], y[known], metric="macro_f1")
    assert trace.counts == of_known.counts


def test_frank_wolfe_on_estimates_needs_no_labels():
    eta, y, _ = given()
    fit = omma.FrankWolfe("macro_f1", feedback="estimates").fit
    for one, other in zip(fit(eta, y).rules, fit(eta).rules, strict=True):
        np.testing.assert_array_equal(one.slope, other.slope)


def test_who_learns_from_labels_refuses_rows_without():
    eta, y, _ = given()
    with pytest.raises(ValueError, match="whose labels are unknown"):
        omma.replay(omma.OMMA("macro_f1"), eta, y)


def nan_stepped(metric, eta, y, rows=1):
    """A learner that is given labels as they stand in a column, NaN where they are unknown."""
    learner = omma.OnlineClassifier(omma.Auto(metric), 1 if eta.ndim == 1 else eta.shape[1])
    for t in range(0, len(eta), rows):
        learner.predict(eta[t] if rows == 1 else eta[t : t + rows])
        learner.update(y[t] if rows == 1 else y[t : t + rows])
    return learner


@pytest.mark.parametrize("of", [list, np.asarray])
def test_nan_is_an_unknown_label_where_there_is_one(of):
    eta, y, known = given()
    eta, column = eta[:, 0].copy(), of(y[:, 0])
    learner = nan_stepped("f1", eta, column)
    assert learner.state == omma.replay(omma.Auto("f1"), eta, column).state
    assert learner.counts.n == known.sum()
    several = nan_stepped("f1", eta[:, np.newaxis], y[:, :1], rows=10)
    assert several.counts.n == known.sum()
    policy, state = omma.Auto("f1"), omma.Auto("f1").init(1)
    for row, true in zip(eta, y[:, :1], strict=True):
        policy.update(state, [row], true, policy.predict(state, [row]))
    assert state == learner.state


def test_nan_is_an_unknown_class_and_floats_are_classes():
    eta, ids = class_stream(7, 60, 4)
    column = np.where(np.arange(60) % 3 == 0, np.nan, ids)
    learner = nan_stepped("multiclass_gmean", eta, column)
    assert learner.state == omma.replay(omma.Auto("multiclass_gmean"), eta, column).state
    assert learner.counts.n == 40
    assert nan_stepped("multiclass_gmean", eta, column, rows=10).counts.n == 40
    learner.predict(eta[0], id="late")
    learner.update(np.nan, id="late")
    assert learner.counts.n == 40
    assert not list(learner.waiting)
    named = omma.OnlineClassifier(omma.Auto("multiclass_gmean"), 3, names=["a", "b", "c"])
    named.predict(eta[:2, :3])
    named.update(["b", None])
    assert named.counts.n == 1
    for wrong in (1.5, -1.0, 4.0, np.inf):
        learner.predict(eta[0])
        with pytest.raises(ValueError, match="class ids in y of update must be whole numbers"):
            learner.update(wrong)
    labels = omma.OnlineClassifier(omma.OMMA("multiclass_gmean"), 4)
    labels.predict(eta[0])
    with pytest.raises(ValueError, match=r"as omma\.Auto, learns without labels"):
        labels.update(np.nan)


@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "macro_gmean", "macro_mcc"])
@pytest.mark.parametrize("kind", [omma.Auto, partial(omma.OMMA, feedback="estimates")])
def test_what_probabilities_expect_is_near_the_truth_where_they_are_right(name, kind):
    eta, y = omma.datasets.long_tail(n=4000, m=10, seed=3)
    trace = omma.replay(kind(name), eta)
    assert trace.value is None
    assert "expected by probabilities" in repr(trace)
    true = trace.metric.value(omma.Counts.from_labels(y, trace.predictions))
    assert trace.expected_value == pytest.approx(true, abs=0.02)


def test_labels_that_come_correct_what_probabilities_expect():
    """Probabilities that are far too low expect far too little, until labels tell."""
    eta, y = omma.datasets.long_tail(n=4000, m=10, seed=3)
    some = y.astype(float)
    some[np.arange(4000) % 4 > 0] = np.nan
    far, near = (
        omma.replay(omma.Auto("macro_recall", k=2), eta**3, labels).expected_value
        for labels in (None, some)
    )
    trace = omma.replay(omma.Auto("macro_recall", k=2), eta**3, some)
    true = trace.metric.value(omma.Counts.from_labels(y, trace.predictions))
    assert abs(near - true) < 0.05 < abs(far - true)


def test_nothing_is_expected_where_labels_alone_are_counted():
    eta, y = omma.datasets.long_tail(n=100, m=5, seed=0)
    assert omma.replay(omma.OMMA("macro_f1"), eta, y).expected_value is None
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), n_labels=5)
    assert learner.expected_value is None

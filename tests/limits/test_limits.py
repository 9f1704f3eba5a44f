"""Limits against their slow twin, in every layout and feedback, stepped, saved and merged."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import class_stream, stepped, stream
from naive_limits import LimitedAuto, Plain, Price
from scipy import sparse
from streams import dense

import omma
from omma.kernels.limits import TRUST, WEIGHT
from omma.policies import policy_from_json

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
M = 6
ONE = {
    "micro_precision": ("micro_precision >= 0.8", [("micro_precision", 0.8, None)]),
    "micro_recall": ("micro_recall >= 0.9", [("micro_recall", 0.9, None)]),
    "micro_specificity": ("micro_specificity >= 0.9", [("micro_specificity", 0.9, None)]),
    "few alarms": ("micro_specificity >= 0.98", [("micro_specificity", 0.98, None)]),
    "micro_accuracy": ("micro_accuracy >= 0.8", [("micro_accuracy", 0.8, None)]),
    "micro_f1": ("micro_f1 >= 0.7", [("micro_f1", 0.7, None)]),
    "out of reach": ("micro_f1 >= 0.99", [("micro_f1", 0.99, None)]),
    "labels_per_row": ("labels_per_row <= 1", [("labels_per_row", 1.0, None)]),
    "one precision": ("precision[2] >= 0.8", [("precision", 0.8, 2)]),
    "one recall": ("recall[3] >= 0.9", [("recall", 0.9, 3)]),
    "one share": ("predicted_rate[1] <= 0.2", [("predicted_rate", 0.2, 1)]),
    "macro_recall": ("macro_recall >= 0.8", [("macro_recall", 0.8, None)]),
    "three": (
        ["labels_per_row <= 2", "recall[0] >= 0.7", omma.at_least("micro_precision", 0.6)],
        [("labels_per_row", 2.0, None), ("recall", 0.7, 0), ("micro_precision", 0.6, None)],
    ),
}


def prices(spec):
    return [Price(kind, bound, M, j) for kind, bound, j in spec]


def followed(slow, eta, y, known=None):
    """Decisions of the slow twin of Auto, with limits."""
    made = np.zeros(eta.shape, dtype=np.int8)
    for t, row in enumerate(eta):
        made[t, slow.predict(row)] = 1
        ids = np.flatnonzero(y[t]) if known is None or known[t] else None
        slow.update(ids, np.flatnonzero(made[t]))
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("limit", ONE)
def test_auto_decides_as_the_equations_say(limit, layout):
    text, spec = ONE[limit]
    eta, y = stream(3, 200, M, zeros=0.0)
    eta = np.clip(eta**1.7, 1e-6, 1 - 1e-6)
    ours = omma.replay(omma.Auto("macro_f1", subject_to=text), LAYOUTS[layout](eta), y)
    slow = LimitedAuto("macro_f1", M, prices(spec))
    np.testing.assert_array_equal(dense(ours.predictions), followed(slow, eta, y))
    np.testing.assert_allclose(ours.state.prices.mu, [one.mu for one in slow.prices], rtol=1e-6)
    np.testing.assert_allclose(ours.state.prices.spread, [one.V for one in slow.prices], rtol=1e-6)
    np.testing.assert_allclose(ours.state.prices.mean, [one.mean for one in slow.prices], rtol=1e-6)


@pytest.mark.parametrize("budget", [{"k": 2}, {"at_most": 2}], ids=str)
def test_with_a_budget(budget):
    text, spec = ["micro_precision >= 0.7", "recall[3] >= 0.8"], [
        ("micro_precision", 0.7, None), ("recall", 0.8, 3)
    ]  # fmt: skip
    eta, y = stream(5, 200, M, zeros=0.0)
    ours = omma.replay(omma.Auto("macro_f1", subject_to=text, **budget), eta, y)
    slow = LimitedAuto("macro_f1", M, prices(spec), **budget)
    np.testing.assert_array_equal(ours.predictions, followed(slow, eta, y))
    np.testing.assert_allclose(ours.state.prices.mu, [one.mu for one in slow.prices], rtol=1e-6)


@pytest.mark.parametrize("limit", ONE)
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_omma_with_weights(feedback, limit):
    text, spec = ONE[limit]
    eta, y = stream(4, 200, M, zeros=0.1)
    weights = np.random.default_rng(0).integers(1, 4, 200) / 2.0
    policy = omma.OMMA("macro_f1", feedback=feedback, subject_to=text)
    ours = omma.replay(policy, eta, y, weights=weights)
    slow = Plain("macro_f1", M, prices(spec), feedback)
    for t, row in enumerate(eta):
        yhat = slow.predict(row)
        np.testing.assert_array_equal(ours.predictions[t], yhat)
        slow.update(row, y[t], yhat, weights[t])
    np.testing.assert_allclose(ours.state.prices.mu, [one.mu for one in slow.prices], rtol=1e-6)
    thin = omma.replay(policy, sparse.csr_array(eta), y, weights=weights)
    assert thin.state == ours.state


def test_rows_without_labels_move_only_what_is_predicted():
    text, spec = ONE["three"]
    eta, y = stream(6, 150, M, zeros=0.0)
    known = np.random.default_rng(0).random(150) < 0.4
    slow = LimitedAuto("macro_f1", M, prices(spec))
    theirs = followed(slow, eta, y, known)
    learner = omma.OnlineClassifier(omma.Auto("macro_f1", subject_to=text), M)
    for t, row in enumerate(eta):
        np.testing.assert_array_equal(learner.predict(row), theirs[t])
        before = learner.state.prices.mu.copy()
        learner.update(y[t] if known[t] else None)
        if not known[t]:
            assert (learner.state.prices.mu[1:] == before[1:]).all()
    np.testing.assert_allclose(learner.state.prices.mu, [one.mu for one in slow.prices])
    per_row, of_label, _ = learner.limits
    assert per_row.value == pytest.approx(theirs.sum() / 150)  # known of all rows
    assert of_label.value == pytest.approx((theirs * y)[known, 0].sum() / y[known, 0].sum())


@given(
    st.sampled_from(sorted(ONE)),
    st.sampled_from([omma.Auto, omma.OMMA]),
    st.integers(0, 10_000),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_dense_is_sparse_and_steps_are_a_replay(limit, policy, seed, weighted):
    eta, y = stream(seed, 40, M, zeros=0.4)
    weights = np.random.default_rng(seed).random(40) * 3 if weighted else None
    chosen = policy("macro_f1", subject_to=ONE[limit][0])
    wide = omma.replay(chosen, eta, y, weights=weights)
    thin = omma.replay(chosen, sparse.csr_array(eta), y, weights=weights)
    assert wide.state == thin.state
    for layout in LAYOUTS.values():
        learner = omma.OnlineClassifier(chosen, M)
        made = stepped(learner, layout(eta), layout(y), weights)
        np.testing.assert_array_equal(made, wide.predictions)
        assert learner.state == wide.state


@pytest.mark.parametrize("feedback", ["estimates", "both"])
def test_other_feedback_steps_as_it_replays(feedback):
    eta, y = stream(8, 60, M, zeros=0.3)
    policy = omma.OMMA("micro_f1", feedback=feedback, subject_to=ONE["three"][0])
    whole = omma.replay(policy, eta, y)
    for layout in LAYOUTS.values():
        learner = omma.OnlineClassifier(policy, M)
        stepped(learner, layout(eta), layout(y))
        assert learner.state == whole.state


def test_estimates_need_no_labels_and_hold_on_estimates():
    eta, _ = stream(9, 4000, M, zeros=0.0)
    policy = omma.OMMA("macro_recall", feedback="estimates", subject_to="micro_precision >= 0.8")
    trace = omma.replay(policy, eta)
    (held,) = trace.limits
    assert held.value == pytest.approx((trace.predictions * eta).sum() / trace.predictions.sum())
    assert abs(held.excess) < 0.005


def test_one_label():
    eta, y = stream(10, 4000, 1, zeros=0.0)
    for text in ("precision >= 0.8", "micro_precision >= 0.8"):
        trace = omma.replay(omma.Auto("recall", subject_to=text), eta[:, 0], y[:, 0])
        assert abs(trace.limits[0].excess) < 0.02
    alarms = omma.replay(omma.Auto("f1", subject_to="predicted_rate <= 0.1"), eta[:, 0], y[:, 0])
    assert alarms.predictions.mean() == pytest.approx(0.1, abs=0.003)


@pytest.mark.parametrize("metric", ["multiclass_gmean", "multiclass_min_recall", "macro_f1"])
def test_classes(metric):
    eta, ids = class_stream(4, 4000, 5, sharpness=0.3)
    free = omma.replay(omma.Auto(metric, k=1), eta, ids)
    bound = (
        omma.metrics.recall.of_cells(
            free.counts.tp, free.counts.predicted, free.counts.positive, 4000
        )[2]
        + 0.1
    )
    limited = omma.replay(omma.Auto(metric, k=1, subject_to=f"recall[2] >= {bound}"), eta, ids)
    assert limited.predictions.sum() == 4000
    assert limited.limits[0].excess < 0.01 < free.value


def test_a_mean_that_stands_for_a_minimum_has_true_derivatives():
    rng = np.random.default_rng(0)
    positive = rng.uniform(20, 200, 5)
    tp = positive * rng.uniform(0.3, 0.9, 5)
    plan = omma.Auto("multiclass_min_recall", subject_to="recall[0] >= 0.5").plan(5)
    from omma.counts import state_of
    from omma.engine import Engine
    from omma.plan import Plan

    def mean(hits):
        return np.mean((hits / positive) ** -3.0) ** (-1 / 3)

    state = state_of(omma.Counts(tp, tp, positive, 1000))
    slope, _ = Engine(Plan(1, plan.term), state).rule(settled=True)
    step = 1e-3
    numeric = [
        (mean(tp + step * one) - mean(tp - step * one)) / (2 * step) * 1000 for one in np.eye(5)
    ]
    np.testing.assert_allclose(slope, numeric, rtol=1e-4)


def test_what_prices_start_from():
    """Dearer the surer rows must be, cheap for a label that is predicted seldom, else one."""
    texts = {
        "micro_precision >= 0.9": 0.7 * 9,
        "micro_precision >= 0.5": 1.0,
        "micro_precision >= 1": 0.7 * 49,
        "micro_precision <= 0.9": 1.0,
        "precision[2] >= 0.9": 0.7 * 9 / np.sqrt(M),
        "predicted_rate[2] <= 0.1": 0.3 / np.sqrt(M),
        "micro_specificity >= 0.99": 10.0,
        "micro_specificity >= 0.8": 1.0,
        "micro_specificity >= 1": 1000.0,
        "micro_specificity <= 0.99": 1.0,
        "specificity[2] >= 0.99": 10.0 / np.sqrt(M),
        "labels_per_row <= 1": 1.0,
        "micro_recall >= 0.9": 1.0,
    }
    for text, weight in texts.items():
        plan = omma.Auto("macro_f1", subject_to=text).plan(M)
        assert plan.limits.numbers[0, WEIGHT] == pytest.approx(weight)
        assert plan.limits.numbers[0, TRUST] == 20.0  # calibrated: worth as much as labels
        assert omma.OMMA("macro_f1", subject_to=text).plan(M).limits.numbers[0, TRUST] == 0.0


# A state with prices in files, copies and sums.


def test_saved_and_pickled(tmp_path):
    eta, y = stream(11, 80, M, zeros=0.2)
    policy = omma.Auto("macro_f1", subject_to=[*ONE["three"][0], "macro_recall >= 0.5"])
    learner, whole = (omma.OnlineClassifier(policy, M) for _ in range(2))
    stepped(learner, eta[:40], y[:40])
    learner.save(tmp_path / "learner.omma")
    read = omma.OnlineClassifier.load(tmp_path / "learner.omma")
    unpickled = pickle.loads(pickle.dumps(learner))
    stepped(whole, eta, y)
    for one in (read, unpickled):
        assert one.policy == learner.policy
        assert one.state == learner.state
        stepped(one, eta[40:], y[40:])
        assert one.state == whole.state
    assert policy_from_json(policy.to_json()) == policy


@pytest.mark.parametrize("feedback", ["labels", "estimates", "both"])
def test_merged(feedback):
    eta, y = stream(12, 300, M, zeros=0.1)
    policy = omma.OMMA(
        "macro_f1", feedback=feedback, subject_to=["macro_recall >= 0.9", "micro_precision >= 0.7"]
    )
    first, second = (
        omma.replay(policy, eta[part], y[part]).state for part in (slice(0, 100), slice(100, 300))
    )
    both = first + second
    a, b = first.prices, second.prices
    np.testing.assert_allclose(
        both.prices.mean, (a.mean * a.spread + b.mean * b.spread) / (a.spread + b.spread)
    )
    np.testing.assert_allclose(both.prices.spread, a.spread + b.spread)
    np.testing.assert_allclose(
        both.prices.mu, (a.mu * a.spread + b.mu * b.spread) / (a.spread + b.spread)
    )
    counted = both.limited.cells
    np.testing.assert_allclose(both.prices.rates[0], (counted[0] / counted[2]).sum())
    assert both.copy() == both
    half = both * 0.5
    np.testing.assert_array_equal(half.prices.mu, both.prices.mu)
    np.testing.assert_allclose(half.prices.spread, both.prices.spread / 2)


def test_states_of_other_limits_do_not_add_up():
    eta, y = stream(12, 40, M)
    texts = (["labels_per_row <= 1"], ["labels_per_row <= 1", "micro_recall >= 0.1"],
             ["macro_recall >= 0.1"])  # fmt: skip
    policies = [omma.Auto("macro_f1", subject_to=one) for one in texts]
    states = [omma.replay(policy, eta, y).state for policy in policies]
    learner = omma.OnlineClassifier(policies[0], M)
    before = learner.state.copy()
    for other, said in ((states[1], "got 1 and 2"), (states[2], "got 1 and 1, of which one is on")):
        for adds in (states[0].__add__, states[0].__sub__, learner.merge):
            with pytest.raises(ValueError, match=f"for the same limits only, {said}"):
                adds(other)
    assert learner.state == before


def test_counts_merged_into_a_learner():
    eta, y = stream(13, 100, M, zeros=0.1)
    policy = omma.OMMA("macro_f1", subject_to="macro_recall >= 0.9")
    learner = omma.OnlineClassifier(policy, M)
    stepped(learner, eta[:50], y[:50])
    price = learner.state.prices.mu.copy()
    learner.merge(omma.replay(policy, eta[50:], y[50:]).counts)
    assert learner.counts.n == 100
    np.testing.assert_array_equal(learner.state.prices.mu, price)
    recall = learner.counts.tp / learner.counts.positive
    assert learner.state.prices.rates[0] == pytest.approx(recall.sum())


@pytest.mark.parametrize("policy", [omma.Auto, omma.OMMA])
def test_rows_are_decided_at_the_last_price_and_a_rule_at_the_mean(policy):
    eta, y = stream(14, 300, M, zeros=0.2)
    trace = omma.replay(policy("macro_f1", k=2, subject_to=ONE["three"][0][1:]), eta, y)
    rows = stream(15, 50, M, zeros=0.2)[0]
    learner_like = [trace.policy.predict(trace.state, row) for row in rows]
    np.testing.assert_array_equal(trace.policy.decide_rows(trace.state, rows), learner_like)
    settled = trace.state.copy()
    assert not np.allclose(settled.prices.mu, settled.prices.settled, rtol=0.01)
    settled.prices.mu[:] = settled.prices.settled
    at_the_mean = [trace.policy.predict(settled, row) for row in rows]
    np.testing.assert_array_equal(trace.rule.predict(rows), at_the_mean)


def test_a_state_whose_prices_have_no_mean_is_refused():
    policy = omma.Auto("macro_f1", subject_to="labels_per_row <= 1")
    arrays = policy.init(M).arrays()
    del arrays["prices_mean"]
    with pytest.raises(ValueError, match="mean of a state must be finite numbers of shape"):
        policy.init(M).restore(arrays)

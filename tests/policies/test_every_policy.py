"""What every policy guarantees, each in turn: a new one is picked up, or fails here."""

import copy
import json
import pickle
import warnings
from itertools import product

import naive_baselines as twins
import numpy as np
import pytest
from naive_baselines import FEEDBACK, LAYOUTS, PRIORS, class_stream, row_of, stepped, stream
from scipy import sparse

import omma
from omma.policies import POLICIES, policy_from_json
from omma.policies.fixed import FixedPolicy

M = 4
HALF = omma.Rule([1.0, 2.0, 0.5, 1.0], [-0.5, -0.3, -0.4, -0.1])
BEST_TWO = omma.Rule([1.0, 2.0, 0.5, 1.0], [-0.5, -0.3, -0.4, -0.1], k=2)
OTHER_TWO = omma.Rule([1.0, 0.5, 2.0, 1.0], [0.0, 0.0, 0.0, 0.0], k=2)


def of_metric(kind):
    """Policies of a metric: with and without a budget, from labels and from estimates."""
    return [kind("macro_f1", k, feedback) for k, feedback in product((None, 1, 3), FEEDBACK)]


MADE = {
    "Auto": [
        omma.Auto("macro_f1"),
        omma.Auto("macro_precision", 2),
        omma.Auto("micro_f1", at_most=2),
        omma.Auto("multiclass_kappa"),
    ],
    "OMMA": [
        *of_metric(omma.OMMA),
        omma.OMMA("macro_f1", feedback="both"),
        omma.OMMA("macro_gmean", calibration="online"),
        omma.OMMA("micro_gmean", 2),
        omma.OMMA("multiclass_kappa"),
    ],
    "Greedy": [*of_metric(omma.Greedy), omma.Greedy("multiclass_balanced_accuracy")],
    "OFO": [omma.OFO(average, feedback) for average in ("macro", "micro") for feedback in FEEDBACK],
    "OnlineFrankWolfe": [
        *of_metric(omma.OnlineFrankWolfe),
        omma.OnlineFrankWolfe("multiclass_gmean", first=5, growth=1.5, seed=3),
        omma.OnlineFrankWolfe("macro_hmean", 1, history=15),
    ],
    "Threshold": [omma.Threshold(0.4)],
    "TopK": [omma.TopK(1), omma.TopK(3)],
    "FixedRule": [
        omma.FixedRule(HALF),
        omma.FixedRule(BEST_TWO, omma.metric("micro_f1")),
        omma.FixedRule(omma.Rule([0.0] * M, [0.0] * M, 1, np.eye(M) - 0.2)),
    ],
    "Mixture": [
        omma.Mixture((HALF, omma.Rule(np.ones(M), -np.full(M, 0.2))), [0.3, 0.7], "macro_f1"),
        omma.Mixture((BEST_TWO, OTHER_TWO), [0.5, 0.5], seed=9),
    ],
}
CASES = [policy for policies in MADE.values() for policy in policies]
every = pytest.mark.parametrize("policy", CASES, ids=lambda policy: repr(policy)[:70])
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def test_every_policy_is_tried_here():
    # Wrappers have tests of their own.
    assert {*MADE, "Forgetting", "Window"} == set(POLICIES), "add examples of a policy to MADE"
    assert all(type(one).__name__ == name for name, made in MADE.items() for one in made)


def judge(policy):
    """A metric to measure a policy by that has none of its own."""
    return policy.objective or "macro_f1"


def data(policy, seed=0, n=50):
    """Rows and labels that the policy can be given, an empty row and an unseen label included."""
    if policy.objective is not None and policy.objective.multiclass:
        return class_stream(seed, n, M)
    eta, y = stream(seed, n, M, zeros=0.4)
    eta[3] = 0.0
    y[:, 2] = 0
    return eta, y


def learner_of(policy):
    return omma.OnlineClassifier(policy, M, metric=judge(policy))


def replayed(policy, eta, y=None, **options):
    return omma.replay(policy, eta, y, metric=judge(policy), **options)


def arrays_of(learner):
    return learner.state.arrays()


def assert_same_arrays(first, second):
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


# Asking changes nothing


@every
@layouts
def test_predicting_is_pure(policy, layout):
    eta, y = data(policy)
    eta = LAYOUTS[layout](eta)
    learner = learner_of(policy)
    stepped(learner, eta[:20], y[:20])
    before, rule = copy.deepcopy(arrays_of(learner)), learner.rule
    first = [twins.dense(learner.predict(row_of(eta, t))) for t in range(20, 30)]
    learner.predict(eta[20:30])
    again = [twins.dense(learner.predict(row_of(eta, t))) for t in range(20, 30)]
    np.testing.assert_array_equal(first, again)
    assert_same_arrays(before, arrays_of(learner))
    assert rule == learner.rule


@every
@pytest.mark.parametrize("width", [M - 1, 9 * M])
def test_rows_of_another_number_of_labels_are_refused(policy, width):
    with pytest.raises(ValueError, match=f"must have {M} labels.*, got {width}"):
        learner_of(policy).predict(np.full((3, width), 0.5))


@every
def test_what_is_returned_or_given_may_be_changed_afterwards(policy):
    eta, y = data(policy)
    expected = replayed(policy, eta, y)
    learner, eta, y = learner_of(policy), eta.copy(), y.copy()
    for t in range(len(eta)):
        row, labels = eta[t].copy(), np.array(y[t])
        prediction = learner.predict(row)
        row[...] = 0.123
        prediction[...] = 1 - prediction
        learner.update(labels)
        labels[...] = 1 - labels
    assert learner.counts == expected.counts
    assert learner.rule == expected.rule


# Steps and replays


@every
@layouts
def test_stepping_is_replaying(policy, layout):
    for seed, (order, weighted) in enumerate([(None, False), (7, True)]):
        eta, y = data(policy, seed)
        eta = LAYOUTS[layout](eta)
        weights = np.random.default_rng(seed).choice([0.3, 1.0, 2.0], 50) if weighted else None
        rows = None if order is None else np.random.default_rng(order).permutation(50)
        trace = replayed(policy, eta, y, seed=order, weights=weights)
        learner = learner_of(policy)
        np.testing.assert_array_equal(
            stepped(learner, eta, y, weights, rows), twins.dense(trace.predictions)
        )
        assert trace.counts == learner.counts
        assert trace.rule == learner.rule
        assert trace.value == learner.value == trace.metric.value(trace.counts)
        np.testing.assert_array_equal(trace.state.cells, learner.state.cells)
        np.testing.assert_array_equal(trace.state.totals, learner.state.totals)


@every
@layouts
def test_a_seed_is_a_permutation(policy, layout):
    eta, y = data(policy)
    order = np.random.default_rng(11).permutation(len(eta))
    seeded = replayed(policy, LAYOUTS[layout](eta), y, seed=11)
    given = replayed(policy, LAYOUTS[layout](eta[order]), y[order])
    np.testing.assert_array_equal(
        twins.dense(seeded.predictions)[order], twins.dense(given.predictions)
    )
    assert seeded.counts == given.counts
    assert seeded.rule == given.rule
    np.testing.assert_array_equal(seeded.history.values, given.history.values)


@every
def test_counts_and_history_are_those_of_the_predictions(policy):
    eta, y = data(policy)
    trace = replayed(policy, eta, y, checkpoints=[1, 10, 50])
    for rows, value in zip(trace.history.rows, trace.history.values, strict=True):
        made = trace.predictions[:rows]
        true = twins.one_hot(y[:rows], M) if y.ndim == 1 else y[:rows]
        assert value == pytest.approx(trace.metric.score(true, made))
    assert trace.history.values[-1] == trace.value


@every
def test_keeping_no_predictions_changes_nothing_else(policy):
    eta, y = data(policy)
    kept, dropped = replayed(policy, eta, y), replayed(policy, eta, y, predictions=False)
    assert dropped.predictions is None
    assert kept.counts == dropped.counts
    assert kept.rule == dropped.rule


@every
@layouts
def test_the_rule_decides_the_next_row(policy, layout):
    eta, y = data(policy)
    eta = LAYOUTS[layout](eta)
    learner = learner_of(policy)
    for t in range(30):
        rules = rules_of(policy, learner)
        chosen = twins.dense(learner.predict(row_of(eta, t)))
        decided = [twins.dense(rule.predict(row_of(eta, t))) for rule in rules]
        assert any(np.array_equal(chosen, expected) for expected in decided)
        learner.update(y[t])


def rules_of(policy, learner):
    """The rule, or those of which the row itself draws one."""
    if isinstance(policy, omma.Mixture):
        return policy.rules
    if isinstance(policy, omma.OnlineFrankWolfe):
        return [omma.Rule(*weights, policy.budget) for weights in learner.state.mixture[0]]
    return [learner.rule]


# Copies


def by_json(policy):
    return policy_from_json(json.loads(json.dumps(policy.to_json())))


def by_pickle(policy):
    return pickle.loads(pickle.dumps(policy))


@every
@pytest.mark.parametrize("copied", [by_json, by_pickle, copy.deepcopy])
def test_a_copied_policy_does_the_same(policy, copied):
    eta, y = data(policy)
    other = copied(policy)
    assert type(other) is type(policy)
    assert other.to_json() == policy.to_json()
    first, second = replayed(policy, eta, y), replayed(other, eta, y)
    np.testing.assert_array_equal(first.predictions, second.predictions)
    assert first.rule == second.rule


def by_file(learner, folder):
    learner.save(folder / "learner.npz")
    return omma.OnlineClassifier.load(folder / "learner.npz")


@every
@layouts
@pytest.mark.parametrize(
    "copied", [by_file, lambda learner, _: by_pickle(learner)], ids=["file", "pickle"]
)
def test_a_copied_learner_goes_on_the_same(policy, layout, copied, tmp_path):
    eta, y = data(policy)
    eta = LAYOUTS[layout](eta)
    learner = learner_of(policy)
    stepped(learner, eta[:25], y[:25])
    learner.predict(row_of(eta, 25))  # waits for its label
    other = copied(learner, tmp_path)
    for one in (learner, other):
        one.update(y[25])
    np.testing.assert_array_equal(*(stepped(one, eta[26:], y[26:]) for one in (learner, other)))
    assert learner.counts == other.counts
    assert learner.value == other.value
    assert learner.rule == other.rule
    assert_same_arrays(arrays_of(learner), arrays_of(other))


@every
def test_equal_states_are_equal(policy):
    eta, y = data(policy)
    first, second = learner_of(policy), learner_of(policy)
    stepped(first, eta[:15], y[:15])
    stepped(second, eta[:15], y[:15])
    assert first.state == second.state
    assert first.state == first.state.copy()
    stepped(second, eta[15:17], y[15:17])
    assert first.state != second.state


NUMPY_NUMBERS = [
    omma.OMMA("macro_f1", k=np.int64(2), prior=np.float32(0.5)),
    omma.Greedy("macro_f1", k=np.int64(2)),
    omma.OFO(prior=np.float32(0.5)),
    omma.OnlineFrankWolfe("macro_f1", k=np.int32(2), history=np.int64(9), first=np.float32(3)),
    omma.Threshold(np.float32(0.25)),
    omma.TopK(np.int64(2)),
    omma.Mixture((HALF,), [1.0], seed=np.int64(3)),
]


@pytest.mark.parametrize("policy", NUMPY_NUMBERS, ids=lambda policy: type(policy).__name__)
def test_options_that_are_numpy_numbers_are_saved_too(policy, tmp_path):
    assert type(by_json(policy)) is type(policy)
    learner = omma.OnlineClassifier(policy, M)
    assert by_file(learner, tmp_path).policy.to_json() == policy.to_json()


# Labels that are not known


@every
@layouts
def test_labels_may_be_left_out_exactly_where_nothing_is_learnt_from_them(policy, layout):
    eta, y = data(policy)
    eta = LAYOUTS[layout](eta)
    is_fixed = isinstance(policy, FixedPolicy)
    learns_from_labels = policy.feedback == "labels" and not is_fixed
    assert policy.needs_labels == learns_from_labels
    if learns_from_labels:
        with pytest.raises(ValueError, match="y of replay must be given"):
            replayed(policy, eta)
        return
    without = replayed(policy, eta)
    assert without.value is None
    assert without.counts is None
    if policy.feedback == "both":  # what labels there are correct it
        return
    expected = replayed(policy, eta, y)
    np.testing.assert_array_equal(*(twins.dense(t.predictions) for t in (without, expected)))
    assert without.rule == expected.rule


@every
@layouts
def test_a_learner_may_go_without_labels_with_estimates_alone(policy, layout):
    eta = LAYOUTS[layout](data(policy)[0])
    learner = learner_of(policy)
    if policy.feedback == "labels":
        learner.predict(row_of(eta, 0))
        with pytest.raises(ValueError, match="y of update must be given"):
            learner.update()
        return
    predictions = stepped(learner, eta)
    np.testing.assert_array_equal(predictions, twins.dense(replayed(policy, eta).predictions))
    assert learner.value is None


# Budgets


@every
@layouts
def test_a_budget_is_met_in_every_row(policy, layout):
    eta, y = data(policy)
    eta[5, 1:] = 0.0  # fewer candidates than k
    eta = LAYOUTS[layout](eta)
    predictions = twins.dense(replayed(policy, eta, y).predictions)
    if policy.budget is not None:
        np.testing.assert_array_equal(predictions.sum(axis=1), policy.budget)
    elif layout == "csr":
        assert (predictions <= (eta.toarray() > 0)).all()
    else:
        assert (predictions <= (eta > 0)).all()


WITH_BUDGETS = [
    omma.OMMA("macro_f1", 5),
    omma.Greedy("macro_f1", 5),
    omma.OnlineFrankWolfe("macro_f1", 5),
    omma.TopK(5),
]


@pytest.mark.parametrize("policy", WITH_BUDGETS, ids=lambda policy: type(policy).__name__)
def test_a_budget_above_the_number_of_labels_is_refused(policy):
    eta, y = stream()
    message = "must be at most the number of labels, which is 4, got 5"
    with pytest.raises(ValueError, match=message):
        omma.replay(policy, eta, y, metric="macro_f1")
    with pytest.raises(ValueError, match=message):
        omma.OnlineClassifier(policy, 4)


@pytest.mark.parametrize("policy", [*MADE["FixedRule"], *MADE["Mixture"]], ids=repr)
def test_rules_for_another_number_of_labels_are_refused(policy):
    eta, y = stream(m=5)
    with pytest.raises(ValueError, match="for 4 labels, got 5"):
        replayed(policy, eta, y)
    with pytest.raises(ValueError, match="for 4 labels, got 5"):
        omma.OnlineClassifier(policy, 5)


# Odd rows


@every
def test_rows_that_store_nothing_and_labels_never_seen_do_no_harm(policy):
    if policy.objective is not None and policy.objective.single_label:
        pytest.skip("needs one class a row")
    eta, y = sparse.csr_array((30, M)), np.zeros((30, M), dtype=np.int8)
    for labels in (y, sparse.csr_array(y)):
        trace = replayed(policy, eta, labels)
        expected = np.zeros(M) if policy.budget is None else np.arange(M) < policy.budget
        if not np.any(getattr(getattr(policy, "decision", None), "matrix", None)):
            np.testing.assert_array_equal(trace.predictions.toarray(), np.tile(expected, (30, 1)))
        assert np.isfinite(trace.value)
        assert np.isfinite(trace.rule.slope).all()


WITH_PRIORS = [
    (kind, name, k, feedback)
    for kind, names in (
        (omma.OMMA, ("macro_gmean", "micro_mcc", "multiclass_hmean", "multiclass_mcc")),
        (omma.Greedy, ("macro_gmean", "macro_mcc", "macro_precision")),
        (omma.OnlineFrankWolfe, ("macro_gmean", "micro_mcc", "multiclass_hmean", "multiclass_mcc")),
    )
    for name, k, feedback in product(names, (None, 1), FEEDBACK)
]


@pytest.mark.parametrize("prior", PRIORS)
@layouts
def test_no_prior_makes_a_number_that_is_none(prior, layout):
    policies = [kind(name, k, feedback, prior) for kind, name, k, feedback in WITH_PRIORS]
    policies += [omma.OFO(one.average, one.feedback, prior) for one in MADE["OFO"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for policy in policies:
            eta, y = data(policy, n=30)
            trace = replayed(policy, LAYOUTS[layout](eta), y)
            assert np.isfinite(trace.value), policy
            for numbers in (trace.rule.slope, trace.rule.offset, trace.state.cells):
                assert np.isfinite(numbers).all(), policy


# A metric


def test_a_fixed_rule_takes_the_name_of_a_metric():
    eta, y = stream()
    named, given = omma.FixedRule(HALF, "macro_f1"), omma.FixedRule(HALF, omma.metric("macro_f1"))
    assert omma.replay(named, eta, y).value == omma.replay(given, eta, y).value

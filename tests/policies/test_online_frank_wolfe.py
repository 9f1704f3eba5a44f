"""Online Frank-Wolfe runs the offline algorithm on what it has seen, on schedule, and draws."""

import copy
import pickle
import warnings
from itertools import product

import naive
import naive_baselines as twins
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import FEEDBACK, LAYOUTS, class_stream, row_of, stepped, stream
from scipy import sparse

import omma
from omma.policies import ConvergenceWarning, UnsupportedMetricError

SCHEDULES = [(10.0, 1.1), (1.0, 1.0), (2.5, 1.5), (7.0, 2.0), (30.0, 1.0)]
ways = pytest.mark.parametrize(("feedback", "layout"), list(product(FEEDBACK, LAYOUTS)))


def learner_of(policy, m=4):
    return omma.OnlineClassifier(policy, n_labels=m)


def same_state(first, second):
    """Everything but the rows kept, which a replay has no need to keep."""
    arrays = second.arrays()
    for name, array in first.arrays().items():
        if not name.startswith("kept_"):
            np.testing.assert_array_equal(array, arrays[name], err_msg=name)


# The schedule


def test_runs_come_after_ten_rows_then_eleven_then_twelve():
    assert twins.run_rows(80) == [10, 21, 33, 46, 61, 77]


@pytest.mark.parametrize(("first", "growth"), SCHEDULES)
def test_runs_are_made_on_schedule(first, growth):
    eta, y = stream(0, n=80)
    policy = omma.OnlineFrankWolfe("macro_f1", first=first, growth=growth, max_iter=2)
    learner = learner_of(policy)
    runs = []
    for t in range(80):
        learner.predict(eta[t])
        learner.update(y[t])
        runs.append(learner.state.runs)
    assert [t + 1 for t in range(80) if np.diff(runs, prepend=0)[t]] == twins.run_rows(
        80, first, growth
    )
    assert omma.replay(policy, eta, y).state.runs == runs[-1]


@pytest.mark.parametrize("k", [None, 1, 3])
def test_before_the_first_run_it_is_the_half_threshold_or_the_top_k(k):
    eta, y = stream(1, n=30)
    expected = naive.threshold(eta) if k is None else naive.top_k(eta, k)
    trace = omma.replay(omma.OnlineFrankWolfe("macro_f1", k=k), eta, y)
    np.testing.assert_array_equal(trace.predictions[:10], expected[:10])
    late = omma.replay(omma.OnlineFrankWolfe("macro_f1", k=k, first=31), eta, y)
    np.testing.assert_array_equal(late.predictions, expected)
    assert late.state.runs == 0


# The textbook: the offline algorithm, again and again


def offline(name, eta, y, k, feedback, prior=1e-6):
    """A function that fits the offline algorithm to some rows."""

    def fit(rows):
        policy = omma.FrankWolfe(name, k, feedback, prior, "top", max_iter=20, tolerance=1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = policy.fit(eta[rows], y[rows])
        return [(rule.slope, rule.offset) for rule in found.rules], found.shares

    return fit


TASKS = [
    *[(name, k) for name in ("macro_f1", "macro_gmean", "micro_f1", "macro_mcc")
      for k in (None, 1, 3)],
    *[(f"multiclass_{name}", 1) for name in ("gmean", "hmean", "qmean", "kappa", "mcc")],
]  # fmt: skip


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize(("name", "k"), TASKS)
def test_decisions_are_those_of_offline_runs(name, k, feedback):
    for seed, history in ((2, None), (3, 15)):
        make = class_stream if name.startswith("multiclass_") else stream
        eta, y = make(seed, n=70)
        fit = offline(name, eta, y, k, feedback)
        theirs = twins.online_frank_wolfe(fit, eta, y, k, history=history, seed=seed)
        policy = omma.OnlineFrankWolfe(name, k, feedback, history=history, seed=seed)
        for layout in LAYOUTS.values():
            ours = omma.replay(policy, layout(eta), y).predictions
            np.testing.assert_array_equal(twins.dense(ours), theirs)


# Stepping is replaying


@ways
@given(
    task=st.sampled_from(TASKS),
    history=st.sampled_from([None, 1, 12]),
    order=st.sampled_from([None, 5]),
    weighted=st.booleans(),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=15)
def test_stepping_is_replaying(feedback, layout, task, history, order, weighted, seed):
    name, k = task
    make = class_stream if name.startswith("multiclass_") else stream
    eta, y = make(seed, n=50)
    eta = LAYOUTS[layout](eta)
    weights = np.random.default_rng(seed).choice([0.3, 1.0, 2.0], size=50) if weighted else None
    rows = None if order is None else np.random.default_rng(order).permutation(50)
    policy = omma.OnlineFrankWolfe(name, k, feedback, history=history, seed=seed)
    trace = omma.replay(policy, eta, y, seed=order, weights=weights)
    learner = learner_of(policy)
    np.testing.assert_array_equal(
        stepped(learner, eta, y, weights, rows), twins.dense(trace.predictions)
    )
    assert trace.counts == learner.counts
    assert trace.rule == learner.rule
    assert trace.value == learner.value
    same_state(trace.state, learner.state)


def test_dense_and_sparse_rows_are_decided_alike():
    for feedback, k in product(FEEDBACK, (None, 2)):
        eta, y = stream(4, n=90, zeros=0.5)
        policy = omma.OnlineFrankWolfe("macro_f1", k, feedback)
        first, second = (
            omma.replay(policy, layout(eta), labels)
            for layout, labels in ((np.asarray, y), (sparse.csr_array, sparse.csr_array(y)))
        )
        np.testing.assert_array_equal(first.predictions, second.predictions.toarray())
        same_state(first.state, second.state)


def test_single_precision_is_widened_alike_by_steps_and_replays():
    eta, y = stream(5, n=60)
    eta = eta.astype(np.float32)
    policy = omma.OnlineFrankWolfe("macro_hmean", 1, "estimates")
    trace, learner = omma.replay(policy, eta, y), learner_of(policy)
    np.testing.assert_array_equal(stepped(learner, eta, y), trace.predictions)
    same_state(trace.state, learner.state)


def test_labels_may_be_left_out_with_estimates_alone():
    eta, y = stream(6, n=60)
    policy = omma.OnlineFrankWolfe("macro_f1", feedback="estimates")
    with_labels, without = omma.replay(policy, eta, y), omma.replay(policy, eta)
    np.testing.assert_array_equal(with_labels.predictions, without.predictions)
    np.testing.assert_array_equal(stepped(learner_of(policy), eta), without.predictions)
    assert without.value is None


def test_a_learner_may_see_dense_and_sparse_rows_in_turn():
    eta, y = stream(7, n=40)
    policy = omma.OnlineFrankWolfe("macro_f1", 2)
    learner, predictions = learner_of(policy), []
    for t in range(40):
        row = sparse.csr_array(eta[[t]]) if t % 2 else eta[t]
        predictions.append(twins.dense(learner.predict(row)).ravel())
        learner.update(y[t])
    np.testing.assert_array_equal(predictions, omma.replay(policy, eta, y).predictions)


def test_rows_of_no_weight_count_for_nothing():
    eta, y = stream(8, n=60)
    weights = np.r_[np.zeros(25), np.ones(35)]
    trace = omma.replay(omma.OnlineFrankWolfe("macro_f1"), eta, y, weights=weights)
    assert np.isfinite(trace.value)
    np.testing.assert_array_equal(trace.predictions[:25], naive.threshold(eta[:25]))


def test_each_row_of_a_matrix_has_a_draw_of_its_own():
    learner = learner_of(omma.OnlineFrankWolfe("macro_f1"), m=3)
    offsets = np.where(np.eye(3), 0.0, -1.0)  # each rule predicts one label
    rules, expected = np.stack((np.ones((3, 3)), offsets), axis=1), np.array([0.2, 0.7, 0.1])
    learner.state.mixture = rules, expected
    found = learner.predict(np.full((2000, 3), 0.5)).argmax(axis=1)
    shares = np.bincount(found, minlength=3) / 2000
    np.testing.assert_allclose(shares, expected, atol=0.03)
    again = learner.predict(np.full((2000, 3), 0.5)).argmax(axis=1)
    np.testing.assert_array_equal(again, found)  # who asks twice gets the same answer


def test_labels_may_come_late():
    eta, y = stream(9, n=60)
    policy = omma.OnlineFrankWolfe("macro_f1", 2)
    learner = learner_of(policy)
    for start in range(0, 60, 5):  # five decisions, then their labels
        rows = range(start, start + 5)
        made = [learner.predict(eta[t]) for t in rows]
        for t, prediction in zip(rows, made, strict=True):
            learner.update(y[t], prediction=prediction, eta=eta[t])
    assert learner.counts.n == 60
    assert learner.state.runs == len(twins.run_rows(60))
    with pytest.raises(ValueError, match="eta of update must be given"):
        learner.update(y[0], prediction=made[0])


# Mid-stream


def reloaded(learner, folder):
    learner.save(folder / "learner.npz")
    return omma.OnlineClassifier.load(folder / "learner.npz")


def pickled(learner, _):
    return pickle.loads(pickle.dumps(learner))


@pytest.mark.parametrize("again", [reloaded, pickled, lambda learner, _: copy.deepcopy(learner)])
@ways
def test_a_copy_goes_on_as_if_nothing_had_happened(feedback, layout, again, tmp_path):
    eta, y = stream(10, n=60)
    eta = LAYOUTS[layout](eta)
    policy = omma.OnlineFrankWolfe("macro_hmean", 1, feedback, history=40, seed=3)
    whole, learner = learner_of(policy), learner_of(policy)
    expected = stepped(whole, eta, y)
    for t in range(60):
        predicted = learner.predict(row_of(eta, t))
        if t in (0, 5, 25):  # a prediction is waiting for its label
            learner = again(learner, tmp_path)
        np.testing.assert_array_equal(twins.dense(predicted).ravel(), expected[t])
        learner.update(y[t])
    same_state(whole.state, learner.state)
    assert whole.counts == learner.counts


def test_a_copied_state_goes_its_own_way():
    eta, y = stream(11, n=60)
    learner = learner_of(omma.OnlineFrankWolfe("macro_f1"))
    stepped(learner, eta[:30], y[:30])
    before = learner.state.copy()
    stepped(learner, eta[30:], y[30:])
    assert before.rows == 30
    np.testing.assert_array_equal(before.arrays()["kept_values"], eta[:30][eta[:30] > 0])
    assert len(learner.state.arrays()["kept_weights"]) == 60


def test_a_state_equals_one_that_saw_the_same():
    eta, y = stream(12, n=30)
    first, second = (learner_of(omma.OnlineFrankWolfe("macro_f1")) for _ in range(2))
    for learner in (first, second):
        stepped(learner, eta, y)
    assert first.state == second.state
    stepped(first, eta, y)
    assert first.state != second.state


def test_a_file_holds_each_kept_row_once(tmp_path):
    eta, y = stream(13, n=200)
    learner = learner_of(omma.OnlineFrankWolfe("macro_f1"))
    stepped(learner, eta, y)
    learner.save(tmp_path / "learner.npz")
    with np.load(tmp_path / "learner.npz") as archive:
        numbers = [name for name in archive.files if archive[name].dtype.kind == "f"]
        assert [name for name in numbers if archive[name].size == (eta > 0).sum()] == [
            "state_kept_values"
        ]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("state_fixed", lambda fixed: fixed[:, :, :1]),
        ("state_shares", lambda shares: np.ones(len(shares) + 5)),
        ("state_kept_true", lambda ids: ids + 10**6),
        ("state_kept_true_ends", lambda ends: ends + 10**6),
        ("state_kept_indices", lambda ids: ids - 1),
        ("state_kept_ends", lambda ends: ends[::-1]),
        ("state_kept_values", lambda values: values[:2]),
        ("state_kept_weights", lambda weights: np.append(weights, np.ones(50))),
    ],
)
def test_a_file_that_would_lead_kernels_astray_is_refused(name, change, tmp_path):
    eta, y = stream(14, n=30)
    learner = learner_of(omma.OnlineFrankWolfe("macro_f1"))
    stepped(learner, eta, y)
    learner.save(tmp_path / "learner.npz")
    with np.load(tmp_path / "learner.npz") as archive:
        arrays = dict(archive)
    arrays[name] = change(arrays[name])
    np.savez(tmp_path / "changed.npz", **arrays)
    with pytest.raises(ValueError, match="is not a whole omma learner"):
        omma.OnlineClassifier.load(tmp_path / "changed.npz")


# What is kept


@pytest.mark.parametrize("layout", LAYOUTS)
def test_history_bounds_what_is_kept(layout):
    eta, y = stream(17, n=400)
    learner = learner_of(omma.OnlineFrankWolfe("macro_f1", history=20, max_iter=2))
    stepped(learner, LAYOUTS[layout](eta), y)
    assert len(learner.state.arrays()["kept_weights"]) == 20


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_a_row_without_labels_is_kept_if_its_probabilities_are_counted(feedback):
    eta, y = stream(17, n=30)
    policy = omma.OnlineFrankWolfe("macro_f1", feedback=feedback)
    state = policy.init(eta.shape[1])
    for t, (row, labels) in enumerate(zip(eta, y, strict=True)):
        policy.update(state, row, None if t % 3 else labels, policy.predict(state, row))
    assert len(state.arrays()["kept_weights"]) == state.rows == (10 if feedback == "labels" else 30)


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"first": 0.5},
        {"growth": 0.9},
        {"max_iter": 0},
        {"tolerance": -1.0},
        {"history": 0},
        {"seed": -1},
    ],
    ids=str,
)
def test_wrong_options_are_refused_by_name(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} of OnlineFrankWolfe must be"):
        omma.OnlineFrankWolfe("macro_f1", **options)


def test_costs_are_refused_because_their_best_rule_is_known():
    with pytest.raises(UnsupportedMetricError, match="OMMA has it at once"):
        omma.OnlineFrankWolfe(omma.metrics.costs([[1, 0], [0, 2]]))


def test_another_seed_draws_otherwise():
    eta, y = stream(7, n=300)
    first, second = (
        omma.replay(omma.OnlineFrankWolfe("macro_hmean", 1, "estimates", seed=seed), eta, y)
        for seed in (0, 1)
    )
    assert (first.predictions != second.predictions).any()

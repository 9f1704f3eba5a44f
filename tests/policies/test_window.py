"""What omma.Window alone promises; what it shares with forgetting is tested once, for both."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import class_stream, dense, stepped, stream
from scipy import sparse
from test_looking_back import POLICIES, ids

import omma
from omma.kernels.window import END, FIRST

LENGTHS = st.sampled_from([1, 2, 7, 50, 1000])


def cells_of(y, made):
    return np.stack([(y * made).sum(axis=0), made.sum(axis=0), y.sum(axis=0)])


@given(LENGTHS, st.integers(0, 10_000))
@settings(max_examples=25)
def test_labels_are_taken_off_to_the_last_bit(rows, seed):
    eta, y = stream(seed, 150, 4)
    trace = omma.replay(omma.Window(POLICIES[0], rows), eta, y)
    np.testing.assert_array_equal(trace.state.cells, cells_of(y[-rows:], trace.predictions[-rows:]))
    assert trace.state.rows == min(rows, 150)
    assert trace.counts == omma.Counts.from_labels(y, trace.predictions)


def test_sums_over_labels_leave_too():
    eta, classes = class_stream(1, 150, 5)
    y = np.eye(5, dtype=np.int8)[classes]
    policy = omma.OMMA("micro_f1", k=1)
    trace = omma.replay(omma.Window(policy, 40), eta, y)
    rest = omma.Counts.from_labels(y[-40:], trace.predictions[-40:])
    learner = omma.OnlineClassifier(policy, 5)
    learner.merge(rest)
    np.testing.assert_array_equal(trace.state.totals, learner.state.totals)


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_late_labels_stay_for_as_many_rows_as_others(policy, thin):
    """Estimates count from the decision, labels from when they come; both for 20 rows."""
    eta, y = stream(4, 120, 4, zeros=0.0)
    learner, feedback = omma.OnlineClassifier(omma.Window(policy, 20), 4), policy.feedback
    shape = sparse.csr_array if thin else np.asarray
    made, decided, labelled = {}, [], []
    for t in range(120):
        made[t] = dense(learner.predict(shape(eta[[t]]), id=t))[0]
        decided.append(t)
        for late in (t - 7, t - 11) if t % 3 == 0 else ():
            if late >= 0 and late not in [one for _, one in labelled]:
                learner.update(shape(y[[late]]), id=late)
                labelled.append((t, late))
    every = [one for _, one in labelled]
    if feedback == "labels":
        inside = every[-20:]
    else:
        inside = [one for time, one in labelled if time > 119 - 20]
        rows = decided[-20:]
        expected = cells_of(eta[rows], np.array([made[t] for t in rows]))
        exact = slice(1, 2) if feedback == "both" else slice(3)  # calibrated ones are others
        np.testing.assert_allclose(learner.state.cells[exact], expected[exact], rtol=1e-12)
    found = learner.state if feedback == "labels" else learner.state.labels
    chosen = np.array([made[t] for t in inside])
    np.testing.assert_array_equal(found.cells, cells_of(y[inside], chosen))
    assert learner.counts == omma.Counts.from_labels(
        y[every], np.array([made[one] for one in every])
    )


def test_spoiled_rows_are_refused():
    policy = omma.Window(omma.Auto("macro_f1"), 5)
    eta, y = stream(2, 30, 3)
    state = omma.replay(policy, eta, y).state
    arrays = state.copy().arrays()
    for name, spoil in {
        "recent_ids": lambda one: one + 7,
        "recent_values": lambda one: one * np.nan,
        "recent_rows": lambda one: one[:-1],
        "recent_weights": lambda one: -one,
        "recent_numbers": lambda one: one + 1,
        "pace": lambda one: one * 0.0,
    }.items():
        with pytest.raises(ValueError, match=r"window|pace"):
            policy.init(3).restore({**arrays, name: spoil(arrays[name])})
    with pytest.raises(ValueError, match="recent_ids of a state must be given"):
        policy.init(3).restore({k: one for k, one in arrays.items() if k != "recent_ids"})


def memory_of(window):
    arrays = [*window.lists.values(), window.numbers]
    return sum(array.nbytes for array in arrays)


def test_memory_does_not_grow_with_the_stream():
    """Room for at most twice what is held, and for a block of rows."""
    eta, y = stream(1, 30_000, 4)
    policy = omma.Window(omma.Auto("macro_f1"), 500)
    short, long = (omma.replay(policy, eta[:n], y[:n]).state.window for n in (6_000, 30_000))
    assert memory_of(long) <= 1.2 * memory_of(short)
    learner = omma.OnlineClassifier(policy, 4)
    stepped(learner, eta[:5_000], y[:5_000])
    window = learner.state.window
    assert window.numbers[END] - window.numbers[FIRST] == 500
    held = 500 * (24 + 4 * (2 + 2) + 12 * 4)
    assert memory_of(window) < 2.5 * held


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_limits_look_at_the_window(feedback):
    eta, y = stream(6, 430, 5, zeros=0.0)  # some rows after all was counted anew
    limits = ["micro_precision >= 0.7", "macro_recall >= 0.6"]
    policy = omma.Window(omma.OMMA("macro_f1", feedback=feedback, subject_to=limits), 50)
    trace = omma.replay(policy, eta, y)
    assert [one.name for one in trace.limits] == ["micro_precision", "macro_recall"]
    learner = omma.OnlineClassifier(policy, 5)
    np.testing.assert_array_equal(stepped(learner, eta, y), trace.predictions)
    rates = trace.state.prices.rates
    cells = trace.state.limited.cells
    np.testing.assert_allclose(rates[0], (cells[0] / cells[2]).sum(), rtol=1e-9)
    assert rates[1] == 5
    forever = omma.replay(policy.policy, eta, y).state.prices
    assert (trace.state.prices.spread < 0.5 * forever.spread).all()


def test_no_count_falls_below_zero_by_rounding():
    rng = np.random.default_rng(0)
    eta = np.where(rng.random((300, 4)) < 0.3, rng.random((300, 4)), 0.0)
    policy = omma.Window(omma.OMMA("macro_f1", feedback="estimates"), 10)
    learner = omma.OnlineClassifier(policy, 4)
    for row in eta:
        learner.predict(row)
        learner.update()
        assert (learner.state.cells >= 0).all()


def test_states_of_windows_do_not_add_up():
    policy = omma.Window(omma.OMMA("macro_f1"), 5)
    with pytest.raises(TypeError, match="states can be added where they are counts only"):
        policy.init(2) + policy.init(2)
    with pytest.raises(TypeError, match="cannot be multiplied"):
        policy.init(2) * 0.5
    with pytest.raises(TypeError, match="state of step must be counts only"):
        omma.step(policy, policy.init(2), [[0.5, 0.5]], [[0, 1]])
    learner = omma.OnlineClassifier(policy, 2)
    with pytest.raises(TypeError, match="merge of OnlineClassifier cannot add"):
        learner.merge(omma.Counts([3, 1], [4, 4], [5, 2], 20))

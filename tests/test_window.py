"""omma.Window against its slow twin, and what it promises."""

import pickle

import naive_window
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import LAYOUTS, class_stream, dense, stepped, stream
from scipy import sparse

import omma
from omma.kernels.slide import END, FIRST

POLICIES = [
    omma.OMMA("macro_f1", prior=0.1),
    omma.OMMA("micro_f1", feedback="estimates"),
    omma.Auto("macro_f1"),
]
SOME = st.sampled_from(POLICIES)
LENGTHS = st.sampled_from([1, 2, 7, 50, 1000])


def ids(policy):
    return f"{type(policy).__name__}-{policy.feedback}"


def cells_of(y, made):
    return np.stack([(y * made).sum(axis=0), made.sum(axis=0), y.sum(axis=0)])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows", [1, 20, 10_000])
@pytest.mark.parametrize("policy", POLICIES[:2], ids=ids)
def test_omma_decides_as_if_the_last_rows_were_added_up(policy, rows, layout):
    eta, y = stream(5, 250, 6)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], len(eta))
    slow = naive_window.OMMA(policy.metric.name, 6, rows, policy.feedback, policy.prior)
    made = np.zeros(eta.shape, dtype=np.int8)
    for t, row in enumerate(eta):
        made[t] = slow.predict(row)
        slow.update(row, y[t], made[t], weights[t])
    window = omma.Window(policy, rows)
    ours = omma.replay(window, LAYOUTS[layout](eta), y, weights=weights)
    np.testing.assert_array_equal(dense(ours.predictions), made)
    np.testing.assert_allclose(ours.state.cells, [slow.tp, slow.q, slow.p], rtol=1e-9, atol=1e-12)
    assert ours.state.rows == pytest.approx(slow.n)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows", [3, 60])
def test_auto_decides_as_if_the_last_rows_were_added_up(rows, layout):
    eta, y = stream(3, 250, 6, zeros=0.1)
    eta = np.clip(eta**1.7, 0.0, 1 - 1e-6)
    known = np.random.default_rng(1).random(len(eta)) < 0.7
    slow = naive_window.Auto("macro_f1", 6, rows)
    learner = omma.OnlineClassifier(omma.Window(omma.Auto("macro_f1"), rows), 6)
    for t, row in enumerate(eta):
        stored = np.flatnonzero(row)
        theirs = slow.predict(row[stored], stored)
        ours = dense(learner.predict(LAYOUTS[layout](row[np.newaxis])))[0]
        np.testing.assert_array_equal(np.flatnonzero(ours), theirs)
        slow.update(np.flatnonzero(y[t]) if known[t] else None)
        learner.update(LAYOUTS[layout](y[[t]]) if known[t] else None)
    now, near = learner.state, {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(now.cells, [slow.tp_a, slow.q, slow.pos_a], **near)
    np.testing.assert_array_equal(now.labels.cells[[0, 2]], [slow.tp_y, slow.pos_y])
    np.testing.assert_allclose(now.known.cells[[0, 2]], [slow.tp_e, slow.pos_e], **near)
    np.testing.assert_allclose(now.calibration.shared[:2], slow.theta, rtol=1e-7)
    np.testing.assert_allclose(now.calibration.bias, slow.b, rtol=1e-6, atol=1e-9)


@given(SOME, LENGTHS, st.integers(0, 10_000))
@settings(max_examples=25)
def test_dense_is_sparse_and_steps_are_a_replay(policy, rows, seed):
    eta, y = stream(seed, 130, 5, zeros=0.4)
    window = omma.Window(policy, rows)
    wide, thin = omma.replay(window, eta, y), omma.replay(window, sparse.csr_array(eta), y)
    np.testing.assert_array_equal(wide.predictions, dense(thin.predictions))
    assert wide.state == thin.state
    learner = omma.OnlineClassifier(window, 5)
    np.testing.assert_array_equal(stepped(learner, eta, y), wide.predictions)
    assert learner.state == wide.state
    late = omma.OnlineClassifier(window, 5)
    stepped(late, sparse.csr_array(eta), sparse.csr_array(y))
    assert late.state == wide.state


@given(LENGTHS, st.integers(0, 10_000))
@settings(max_examples=25)
def test_labels_are_taken_off_to_the_last_bit(rows, seed):
    eta, y = stream(seed, 150, 4)
    trace = omma.replay(omma.Window(POLICIES[0], rows), eta, y)
    np.testing.assert_array_equal(trace.state.cells, cells_of(y[-rows:], trace.predictions[-rows:]))
    assert trace.state.rows == min(rows, 150)
    assert trace.counts == omma.Counts.from_labels(y, trace.predictions)


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_a_window_longer_than_the_stream_takes_nothing_off(policy):
    eta, y = stream(2, 300, 5)
    plain, window = omma.replay(policy, eta, y), omma.replay(omma.Window(policy, 10**12), eta, y)
    np.testing.assert_array_equal(plain.predictions, window.predictions)
    np.testing.assert_allclose(plain.state.cells, window.state.cells, rtol=1e-9)
    assert plain.counts == window.counts
    assert plain.value == window.value


def test_sums_over_labels_and_products_leave_too():
    eta, classes = class_stream(1, 150, 5)
    y = np.eye(5, dtype=np.int8)[classes]
    policy = omma.OMMA("multiclass_mcc")
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


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_it_can_be_saved_and_pickled(policy, tmp_path):
    eta, y = stream(2, 400, 5)
    window = omma.Window(policy, 30)
    learner = omma.OnlineClassifier(window, 5)
    stepped(learner, eta[:350], y[:350])
    learner.save(tmp_path / "window.npz")
    read = omma.OnlineClassifier.load(tmp_path / "window.npz")
    twin = pickle.loads(pickle.dumps(learner))
    assert read.policy == window
    assert read.state == twin.state == learner.state == learner.state.copy()
    after = [stepped(one, eta[350:], y[350:]) for one in (learner, read, twin)]
    np.testing.assert_array_equal(after[0], after[1])
    np.testing.assert_array_equal(after[0], after[2])
    assert read.state == learner.state


def test_a_journal_resumes_it(tmp_path):
    eta, y = stream(2, 60, 3)
    learner = omma.OnlineClassifier(omma.Window(omma.Auto("macro_f1"), 10), 3)
    with omma.Journal(tmp_path / "j", learner, snapshot_every=25):
        for t, row in enumerate(eta):
            learner.predict(row, id=t)
            if t >= 4:
                learner.update(y[t - 4], id=t - 4)
    with omma.Journal.resume(tmp_path / "j") as journal:
        assert journal.learner.state == learner.state
        assert list(journal.learner.waiting) == list(learner.waiting)


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
        "recent_pace": lambda one: one * 0.0,
    }.items():
        with pytest.raises(ValueError, match=r"window|pace"):
            policy.init(3).restore({**arrays, name: spoil(arrays[name])})
    with pytest.raises(ValueError, match="recent_ids of a state must be given"):
        policy.init(3).restore({k: one for k, one in arrays.items() if k != "recent_ids"})


def test_memory_does_not_grow_with_the_stream():
    """Room for at most twice what is held, and for a block of rows."""
    eta, y = stream(1, 30_000, 4)
    policy = omma.Window(omma.Auto("macro_f1"), 500)
    short, long = (omma.replay(policy, eta[:n], y[:n]).state.window for n in (6_000, 30_000))
    assert long.nbytes <= 1.2 * short.nbytes
    learner = omma.OnlineClassifier(policy, 4)
    stepped(learner, eta[:5_000], y[:5_000])
    window = learner.state.window
    assert window.numbers[END] - window.numbers[FIRST] == 500
    held = 500 * (24 + 4 * (2 + 2) + 12 * 4)
    assert window.nbytes < 2.5 * held


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_limits_look_at_the_window(feedback):
    eta, y = stream(6, 400, 5, zeros=0.0)
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


def test_what_has_no_counts_is_refused():
    with pytest.raises(TypeError, match="policy of Window must be an OMMA, Auto or OFO"):
        omma.Window(omma.Greedy("macro_f1"))
    with pytest.raises(ValueError, match=r"rows of Window must be a whole number of at least 1"):
        omma.Window(omma.OMMA("macro_f1"), 0)
    with pytest.raises(TypeError, match="rows of Window"):
        omma.Window(omma.OMMA("macro_f1"), 2.5)


def test_it_recovers_where_labels_become_rare():
    rng = np.random.default_rng(0)
    eta = np.concatenate([rng.beta(2, 3, (4000, 6)), rng.beta(0.15, 12.0, (4000, 6))])
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    rest, metric = slice(4000, 8000), omma.metric("macro_f1")
    policy = omma.OMMA("macro_f1")
    forever, window = (
        metric.score(y[rest], omma.replay(one, eta, y).predictions[rest])
        for one in (policy, omma.Window(policy, 500))
    )
    assert window > 1.5 * forever

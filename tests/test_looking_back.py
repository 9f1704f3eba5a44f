"""What ``omma.Forgetting`` and ``omma.Window`` promise alike, each against its slow twin."""

import pickle
from typing import Any, NamedTuple

import naive_forgetting
import naive_window
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import LAYOUTS, dense, stepped, stream
from scipy import sparse

import omma


class Way(NamedTuple):
    """A way to look at the recent past alone, and how far back it looks in these tests.

    ``lengths`` begin with the shortest there is; half-lives of 1 and 1.7 rows are so short that
    all is divided by 2 ** 100 within a few hundred rows.
    """

    make: Any
    naive: Any
    lengths: tuple[float, ...]
    endless: float
    wrong: tuple[tuple[type[Exception], Any, str], ...]

    def now(self, state):
        """Counts as the twin has them."""
        return state.now() if self.make is omma.Forgetting else state


WAYS = {
    "forgetting": Way(
        omma.Forgetting,
        naive_forgetting,
        (1, 1.7, 20, 300.5),
        1e15,
        (
            (ValueError, 0.5, r"half_life of Forgetting must be .* at least 1"),
            (ValueError, np.inf, r"half_life of Forgetting must be"),
            (TypeError, "long", "half_life of Forgetting"),
        ),
    ),
    "window": Way(
        omma.Window,
        naive_window,
        (1, 7, 60, 10_000),
        10**12,
        (
            (ValueError, 0, r"rows of Window must be a whole number of at least 1"),
            (TypeError, 2.5, "rows of Window"),
        ),
    ),
}
POLICIES = [
    omma.OMMA("macro_f1", prior=0.1),
    omma.OMMA("micro_f1", feedback="estimates"),
    omma.OMMA("macro_f1", feedback="both", at_most=2),
    omma.Auto("macro_f1"),
]
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
NEAR = {"rtol": 1e-9, "atol": 1e-12}


def ids(policy):
    return f"{type(policy).__name__}-{policy.feedback}"


every_policy = pytest.mark.parametrize("policy", POLICIES, ids=ids)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", range(4))
@every_way
@pytest.mark.parametrize("policy", POLICIES[:2], ids=ids)
def test_omma_decides_as_its_twin(policy, way, which, layout):
    eta, y = stream(5, 250, 6)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], len(eta))
    length = way.lengths[which]
    slow = way.naive.OMMA(policy.metric.name, 6, length, policy.feedback, policy.prior)
    made = np.zeros(eta.shape, dtype=np.int8)
    for t, row in enumerate(eta):
        made[t] = slow.predict(row)
        slow.update(row, y[t], made[t], weights[t])
    ours = omma.replay(way.make(policy, length), LAYOUTS[layout](eta), y, weights=weights)
    np.testing.assert_array_equal(dense(ours.predictions), made)
    now = way.now(ours.state)
    np.testing.assert_allclose(now.cells, [slow.tp, slow.q, slow.p], **NEAR)
    assert now.rows == pytest.approx(slow.n)
    assert ours.state.rows == pytest.approx(slow.n)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", [0, 2])
@every_way
def test_auto_decides_as_its_twin(way, which, layout):
    eta, y = stream(3, 250, 6, zeros=0.1)
    eta = np.clip(eta**1.7, 0.0, 1 - 1e-6)
    known = np.random.default_rng(1).random(len(eta)) < 0.7
    slow = way.naive.Auto("macro_f1", 6, way.lengths[which])
    policy = way.make(omma.Auto("macro_f1"), way.lengths[which])
    learner = omma.OnlineClassifier(policy, 6)
    for t, row in enumerate(eta):
        stored = np.flatnonzero(row)
        theirs = slow.predict(row[stored], stored)
        ours = dense(learner.predict(LAYOUTS[layout](row[np.newaxis])))[0]
        np.testing.assert_array_equal(np.flatnonzero(ours), theirs)
        slow.update(np.flatnonzero(y[t]) if known[t] else None)
        learner.update(LAYOUTS[layout](y[[t]]) if known[t] else None)
    now = way.now(learner.state)
    np.testing.assert_allclose(now.cells, [slow.tp_a, slow.q, slow.pos_a], **NEAR)
    np.testing.assert_allclose(now.labels.cells[[0, 2]], [slow.tp_y, slow.pos_y], **NEAR)
    np.testing.assert_allclose(now.known.cells[[0, 2]], [slow.tp_e, slow.pos_e], **NEAR)
    np.testing.assert_allclose(now.calibration.shared[:3], slow.theta, rtol=1e-7)
    np.testing.assert_allclose(now.calibration.bias, slow.b, rtol=1e-6, atol=1e-9)


@given(
    st.sampled_from(POLICIES),
    st.sampled_from(list(WAYS.values())),
    st.integers(0, 3),
    st.integers(0, 10_000),
)
@settings(max_examples=50)
def test_dense_is_sparse_and_steps_are_a_replay(policy, way, which, seed):
    eta, y = stream(seed, 130, 5, zeros=0.4)
    around = way.make(policy, way.lengths[which])
    wide, thin = omma.replay(around, eta, y), omma.replay(around, sparse.csr_array(eta), y)
    np.testing.assert_array_equal(wide.predictions, dense(thin.predictions))
    assert wide.state == thin.state
    learner = omma.OnlineClassifier(around, 5)
    np.testing.assert_array_equal(stepped(learner, eta, y), wide.predictions)
    assert learner.state == wide.state
    other = omma.OnlineClassifier(around, 5)
    stepped(other, sparse.csr_array(eta), sparse.csr_array(y))
    assert other.state == wide.state


@every_way
@every_policy
def test_what_decisions_were_worth_is_not_forgotten(policy, way):
    eta, y = stream(2, 300, 5)
    trace = omma.replay(way.make(policy, 10), eta, y, checkpoints=[100, 300])
    assert trace.counts == omma.Counts.from_labels(y, trace.predictions)
    assert trace.value == trace.history.values[-1]
    half = omma.Counts.from_labels(y[:100], trace.predictions[:100])
    assert trace.history.values[0] == trace.metric.value(half)
    learner = omma.OnlineClassifier(way.make(policy, 10), 5)
    stepped(learner, eta, y)
    assert (learner.counts, learner.value) == (trace.counts, trace.value)


@every_way
@every_policy
def test_one_that_looks_back_very_far_forgets_nothing(policy, way):
    eta, y = stream(2, 300, 5)
    plain, around = (omma.replay(one, eta, y) for one in (policy, way.make(policy, way.endless)))
    np.testing.assert_array_equal(plain.predictions, around.predictions)
    np.testing.assert_allclose(plain.state.cells, around.state.cells, rtol=1e-9)
    assert (plain.counts, plain.value) == (around.counts, around.value)


@every_way
@every_policy
def test_it_can_be_saved_and_pickled(policy, way, tmp_path):
    eta, y = stream(2, 400, 5)
    around = way.make(policy, 3)
    learner = omma.OnlineClassifier(around, 5)
    stepped(learner, eta[:350], y[:350])
    learner.save(tmp_path / "one.npz")
    read = omma.OnlineClassifier.load(tmp_path / "one.npz")
    twin = pickle.loads(pickle.dumps(learner))
    assert read.policy == around
    assert read.state == twin.state == learner.state == learner.state.copy()
    after = [stepped(one, eta[350:], y[350:]) for one in (learner, read, twin)]
    np.testing.assert_array_equal(after[0], after[1])
    np.testing.assert_array_equal(after[0], after[2])
    assert read.state == learner.state


@every_way
def test_a_journal_resumes_it(way, tmp_path):
    eta, y = stream(2, 60, 3)
    learner = omma.OnlineClassifier(way.make(omma.Auto("macro_f1"), 10), 3)
    with omma.Journal(tmp_path / "j", learner, snapshot_every=25):
        for t, row in enumerate(eta):
            learner.predict(row, id=t)
            if t >= 4:
                learner.update(y[t - 4], id=t - 4)
    with omma.Journal.resume(tmp_path / "j") as journal:
        assert journal.learner.state == learner.state
        assert list(journal.learner.waiting) == list(learner.waiting)


@every_way
def test_it_recovers_where_labels_become_rare(way):
    rng = np.random.default_rng(0)
    eta = np.concatenate([rng.beta(2, 3, (4000, 6)), rng.beta(0.15, 12.0, (4000, 6))])
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    rest, metric, policy = slice(4000, 8000), omma.metric("macro_f1"), omma.OMMA("macro_f1")
    forever, recent = (
        metric.score(y[rest], omma.replay(one, eta, y).predictions[rest])
        for one in (policy, way.make(policy, 200))
    )
    assert recent > 1.5 * forever


@every_way
def test_what_is_wrong_is_refused(way):
    name = way.make.__name__
    for inside in (omma.Greedy("macro_f1"), way.make(omma.OMMA("macro_f1")), "macro_f1"):
        with pytest.raises(TypeError, match=f"policy of {name} must be an OMMA, Auto or OFO"):
            way.make(inside)
    for error, length, sentence in way.wrong:
        with pytest.raises(error, match=sentence):
            way.make(omma.OMMA("macro_f1"), length)

"""omma.Forgetting against its slow twin, and what it promises."""

import pickle

import naive_forgetting
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import class_stream, dense, stepped, stream
from scipy import sparse

import omma

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
POLICIES = [
    omma.OMMA("macro_f1", prior=0.1),
    omma.OMMA("micro_f1", feedback="estimates"),
    omma.OMMA("macro_f1", feedback="both", at_most=2),
    omma.Auto("macro_f1"),
]
SOME = st.sampled_from(POLICIES)
# So short that all is divided by 2 ** 100 within a few hundred rows, and so long that it never is.
HALF_LIVES = st.sampled_from([1, 1.7, 5, 1000])


def ids(policy):
    return f"{type(policy).__name__}-{policy.feedback}"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("half_life", [1, 20, 300.5])
@pytest.mark.parametrize("policy", POLICIES[:2], ids=ids)
def test_omma_decides_as_if_all_counts_were_multiplied(policy, half_life, layout):
    eta, y = stream(5, 250, 6)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.5], len(eta))
    slow = naive_forgetting.OMMA(policy.metric.name, 6, half_life, policy.feedback, policy.prior)
    made = np.zeros(eta.shape, dtype=np.int8)
    for t, row in enumerate(eta):
        made[t] = slow.predict(row)
        slow.update(row, y[t], made[t], weights[t])
    fading = omma.Forgetting(policy, half_life)
    ours = omma.replay(fading, LAYOUTS[layout](eta), y, weights=weights)
    np.testing.assert_array_equal(dense(ours.predictions), made)
    now = ours.state.now()
    np.testing.assert_allclose(now.cells, [slow.tp, slow.q, slow.p], rtol=1e-9)
    assert now.rows == pytest.approx(slow.n)
    assert ours.state.rows == pytest.approx(slow.n)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("half_life", [1, 20, 300.5])
def test_auto_decides_as_if_all_counts_were_multiplied(half_life, layout):
    eta, y = stream(3, 250, 6, zeros=0.1)
    eta = np.clip(eta**1.7, 0.0, 1 - 1e-6)
    known = np.random.default_rng(1).random(len(eta)) < 0.7
    slow = naive_forgetting.Auto("macro_f1", 6, half_life)
    learner = omma.OnlineClassifier(omma.Forgetting(omma.Auto("macro_f1"), half_life), 6)
    for t, row in enumerate(eta):
        stored = np.flatnonzero(row)
        theirs = slow.predict(row[stored], stored)
        ours = dense(learner.predict(LAYOUTS[layout](row[np.newaxis])))[0]
        np.testing.assert_array_equal(np.flatnonzero(ours), theirs)
        slow.update(np.flatnonzero(y[t]) if known[t] else None)
        learner.update(LAYOUTS[layout](y[[t]]) if known[t] else None)
    now = learner.state.now()
    np.testing.assert_allclose(now.cells, [slow.tp_a, slow.q, slow.pos_a], rtol=1e-9)
    np.testing.assert_allclose(now.labels.cells[[0, 2]], [slow.tp_y, slow.pos_y], rtol=1e-9)
    np.testing.assert_allclose(now.known.cells[[0, 2]], [slow.tp_e, slow.pos_e], rtol=1e-9)
    np.testing.assert_allclose(now.calibration.shared[:2], slow.theta, rtol=1e-7)
    np.testing.assert_allclose(now.calibration.bias, slow.b, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(now.calibration.precision, slow.h - 4.0, rtol=1e-6, atol=1e-12)


@given(SOME, HALF_LIVES, st.integers(0, 10_000))
@settings(max_examples=25)
def test_dense_is_sparse_and_steps_are_a_replay(policy, half_life, seed):
    eta, y = stream(seed, 130, 5, zeros=0.4)
    fading = omma.Forgetting(policy, half_life)
    wide, thin = omma.replay(fading, eta, y), omma.replay(fading, sparse.csr_array(eta), y)
    np.testing.assert_array_equal(wide.predictions, dense(thin.predictions))
    assert wide.state == thin.state
    learner = omma.OnlineClassifier(fading, 5)
    np.testing.assert_array_equal(stepped(learner, eta, y), wide.predictions)
    assert learner.state == wide.state
    late = omma.OnlineClassifier(fading, 5)
    stepped(late, sparse.csr_array(eta), sparse.csr_array(y))
    assert late.state == wide.state


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_what_decisions_were_worth_is_not_forgotten(policy):
    eta, y = stream(2, 300, 5)
    trace = omma.replay(omma.Forgetting(policy, 10), eta, y, checkpoints=[100, 300])
    assert trace.counts == omma.Counts.from_labels(y, trace.predictions)
    assert trace.value == trace.history.values[-1]
    half = omma.Counts.from_labels(y[:100], trace.predictions[:100])
    assert trace.history.values[0] == trace.metric.value(half)
    learner = omma.OnlineClassifier(omma.Forgetting(policy, 10), 5)
    stepped(learner, eta, y)
    assert (learner.counts, learner.value) == (trace.counts, trace.value)


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_a_very_long_half_life_forgets_nothing(policy):
    eta, y = stream(2, 300, 5)
    plain, fading = omma.replay(policy, eta, y), omma.replay(omma.Forgetting(policy, 1e15), eta, y)
    np.testing.assert_array_equal(plain.predictions, fading.predictions)
    np.testing.assert_allclose(plain.state.cells, fading.state.cells, rtol=1e-9)


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_dividing_by_a_power_of_two_changes_no_decision(policy):
    """The first rows of a stream are as good as forgotten: so a fresh one decides the same."""
    eta, y = stream(2, 700, 5)
    fading = omma.Forgetting(policy, 2)
    long = omma.replay(fading, eta, y)
    assert long.state.pace[2] == 3  # 700 rows are 350 half-lives
    assert 1 <= long.state.unit < 2.0**100
    if policy.feedback != "both":  # what calibration learned stays, however old
        short = omma.replay(fading, eta[-300:], y[-300:])
        np.testing.assert_array_equal(long.predictions[-100:], short.predictions[-100:])
    assert np.isfinite(long.rule.thresholds).all()


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_late_labels_fade_from_when_they_come(policy, thin):
    """Estimates count from the decision; a label makes nothing older where its row has done so."""
    n = 202  # at 200 rows the unit becomes too large, and all is divided
    eta, y = stream(4, n, 4, zeros=0.0)
    learner, feedback = omma.OnlineClassifier(omma.Forgetting(policy, 2), 4), policy.feedback
    shape = sparse.csr_array if thin else np.asarray
    comes = np.arange(n) + np.random.default_rng(0).integers(0, 9, n)
    comes[::5] = -1  # some never do
    made, labelled = {}, []
    for t in range(n):
        made[t] = dense(learner.predict(shape(eta[[t]]), id=t))[0]
        for late in np.flatnonzero(comes == t).tolist():
            learner.update(shape(y[[late]]), id=late)
            labelled.append((t, late))
    came, which = np.array(labelled).T
    age = np.arange(len(labelled))[::-1] + 1 if feedback == "labels" else n - 1 - came
    now, keep = learner.state.now(), 0.5**0.5
    found = now if feedback == "labels" else now.labels
    chosen = np.array([made[one] for one in which])
    every = np.array([chosen * y[which], chosen, y[which]])
    np.testing.assert_allclose(found.cells, np.einsum("cij,i", every, keep**age), rtol=1e-9)
    if feedback == "estimates":
        chosen = np.array([made[t] for t in range(n)])
        every = np.array([chosen * eta, chosen, eta])
        expected = np.einsum("cij,i", every, keep ** (n - np.arange(0.0, n)))
        np.testing.assert_allclose(now.cells, expected, rtol=1e-9)
    assert learner.counts == omma.Counts.from_labels(
        y[which], np.array([made[one] for one in which])
    )


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_it_can_be_saved_and_pickled(policy, tmp_path):
    eta, y = stream(2, 400, 5)
    fading = omma.Forgetting(policy, 3)
    learner = omma.OnlineClassifier(fading, 5)
    stepped(learner, eta[:350], y[:350])
    learner.save(tmp_path / "fading.npz")
    read = omma.OnlineClassifier.load(tmp_path / "fading.npz")
    twin = pickle.loads(pickle.dumps(learner))
    assert read.policy == fading
    assert read.state == twin.state == learner.state
    after = [stepped(one, eta[350:], y[350:]) for one in (learner, read, twin)]
    np.testing.assert_array_equal(after[0], after[1])
    np.testing.assert_array_equal(after[0], after[2])


def test_a_spoiled_pace_is_refused():
    state = omma.Forgetting(omma.OMMA("macro_f1"), 3).init(2)
    arrays = state.copy().arrays()
    for pace in (
        [0.0, arrays["pace"][1], 0.0],
        [1.0, 2.0, 0.0],
        [2.0**101, arrays["pace"][1], 0.0],
    ):
        with pytest.raises(ValueError, match="pace of a state must"):
            state.restore({**arrays, "pace": np.array(pace)})


@pytest.mark.parametrize("policy", POLICIES, ids=ids)
def test_streams_of_the_same_time_add_up(policy):
    """Row i of either counts for growth ** i, also where one was divided and the other was not."""
    eta, y = stream(2, 480, 4)
    fading = omma.Forgetting(policy, 2)
    one = omma.replay(fading, eta[:240], y[:240]).state
    other = omma.replay(fading, eta[240:420], y[240:420]).state
    both = one + other
    assert both.rows == pytest.approx(one.rows + other.rows * 2.0**-30)
    assert (other + one).rows == both.rows
    assert both.truth.rows == 420
    alike = one.now() + other.now()
    assert alike.rows == pytest.approx(one.rows + other.rows)
    empty = fading.init(4)
    for name, found in (one + empty).arrays().items():
        np.testing.assert_allclose(found, one.arrays()[name], rtol=1e-12)


def test_different_half_lives_do_not_add_up():
    one, other = (omma.Forgetting(omma.OMMA("macro_f1"), life).init(2) for life in (3, 4))
    with pytest.raises(ValueError, match="half-lives of 3 and 4 rows"):
        one + other
    with pytest.raises(ValueError, match="same number of labels and kind"):
        one + omma.OMMA("macro_f1").init(2)


def test_it_recovers_where_labels_become_rare():
    rng = np.random.default_rng(0)
    eta = np.concatenate([rng.beta(2, 3, (4000, 6)), rng.beta(0.15, 12.0, (4000, 6))])
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    rest, metric = slice(4000, 8000), omma.metric("macro_f1")
    value = {
        name: metric.score(y[rest], omma.replay(policy, eta, y).predictions[rest])
        for name, policy in (
            ("for ever", omma.OMMA("macro_f1")),
            ("fading", omma.Forgetting(omma.OMMA("macro_f1"), 200)),
        )
    }
    assert value["fading"] > 1.5 * value["for ever"]


@pytest.mark.parametrize(
    "policy",
    [omma.OMMA("multiclass_mcc"), omma.OFO("micro", feedback="estimates"), omma.OMMA("macro_mcc")],
    ids=repr,
)
def test_other_kinds_of_metric_fade_as_states_are_multiplied(policy):
    """Sums over labels and sums of products too, past a division by 2 ** 100."""
    eta, classes = class_stream(1, 150, 5)
    y = np.eye(5, dtype=np.int8)[classes]
    trace = omma.replay(omma.Forgetting(policy, 1), eta, y)
    learner = omma.OnlineClassifier(policy, 5)
    for row, true, made in zip(eta, y, trace.predictions, strict=True):
        np.testing.assert_array_equal(learner.predict(row), made)
        learner.update(true)
        learner.state = learner.state * 0.5
    found = trace.state.now()
    np.testing.assert_allclose(found.cells, learner.state.cells, rtol=1e-12, atol=1e-30)
    np.testing.assert_allclose(found.totals, learner.state.totals, rtol=1e-9, atol=1e-30)


def test_prices_of_limits_fade_too():
    """They look at counts in the same unit: another one changes no decision, and no price."""
    eta, y = stream(2, 500, 5, zeros=0.0)
    limits = ["micro_precision >= 0.7", "macro_recall >= 0.5"]
    policy = omma.OMMA("macro_f1", subject_to=limits)
    learner = omma.OnlineClassifier(omma.Forgetting(policy, 20), 5)
    stepped(learner, eta[:400], y[:400])
    assert [one.name for one in learner.limits] == ["micro_precision", "macro_recall"]
    other = omma.OnlineClassifier(omma.Forgetting(policy, 20), 5)
    other.state = learner.state.now()
    made = [stepped(one, eta[400:], y[400:]) for one in (learner, other)]
    np.testing.assert_array_equal(*made)
    np.testing.assert_allclose(learner.state.prices.mu, other.state.prices.mu, rtol=1e-6)
    slow = omma.replay(policy, eta, y).state.prices
    assert (learner.state.prices.spread < 0.5 * slow.spread).all()


def test_what_cannot_fade_is_refused():
    with pytest.raises(TypeError, match="policy of Forgetting must be an OMMA, Auto or OFO"):
        omma.Forgetting(omma.Greedy("macro_f1"))
    with pytest.raises(TypeError, match="policy of Forgetting"):
        omma.Forgetting("macro_f1")
    with pytest.raises(ValueError, match=r"half_life of Forgetting must be .* at least 1"):
        omma.Forgetting(omma.OMMA("macro_f1"), 0.5)
    with pytest.raises(TypeError, match="half_life of Forgetting"):
        omma.Forgetting(omma.OMMA("macro_f1"), "long")

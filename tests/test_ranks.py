"""Dense rows with a budget, eight labels at a time, are decided as by gains one by one."""

import warnings

import naive
import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import stream

import omma
from omma.kernels.layout import GAINS, SCRATCH
from omma.kernels.select import choose, lower_bound
from omma.running import sinks, worth
from omma.running.runner import Runner, run
from omma.running.sequence import Sequence

METRICS = (
    "macro_f1",
    "macro_precision",
    "macro_gmean",
    "macro_hmean",
    "macro_qmean",
    "macro_mcc",
    "macro_balanced_accuracy",
    "micro_f1",
    "micro_mcc",
    "weighted_f1",
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Eights decide from the first row."""
    monkeypatch.setattr(worth, "MOST", 0)


def replayed(policy, eta, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return omma.replay(policy, eta, y, **given)


def assert_same(one, other):
    np.testing.assert_array_equal(one.predictions, other.predictions)
    kept, expected = one.state.arrays(), other.state.arrays()
    assert kept.keys() == expected.keys()
    for name in kept:
        np.testing.assert_array_equal(kept[name], expected[name], err_msg=name)
    np.testing.assert_array_equal(one.history.values, other.history.values)
    np.testing.assert_array_equal(one.history.rows, other.history.rows)


def by_gains(policy, eta, y, **given):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "_ranked", False)
        return replayed(policy, eta, y, **given)


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(METRICS),
    st.integers(1, 40),
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from([0.0, 1e-6, 1.0]),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_the_same_bits_as_by_gains(metric, m, k, exact, prior, kind, seed, calibrated):
    rng = np.random.default_rng(seed)
    eta = rng.random((25, m)).astype(kind)
    eta[rng.random(eta.shape) < 0.3] = 0.0  # no candidates
    eta[rng.random(25) < 0.3] = 0.5  # ties
    y = (rng.random(eta.shape) < 0.3).astype(np.int8)
    budget = {"k": min(k, m)} if exact else {"at_most": min(k, m)}
    policy = omma.OMMA(metric, prior=prior, **budget)
    if calibrated:
        policy = omma.Auto(metric, **budget)
    given_ = {"seed": 3, "checkpoints": [1, 7, 25]}
    assert_same(replayed(policy, eta, y, **given_), by_gains(policy, eta, y, **given_))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("budget", [{"k": 3}, {"at_most": 3}], ids=str)
@pytest.mark.parametrize("make", [omma.OMMA, omma.Auto], ids=lambda make: make.__name__)
def test_rows_of_many_labels_and_their_rest(metric, budget, make):
    for m in (16, 64, 65, 203):
        eta, y = stream(m, n=40, m=m)
        policy = make(metric, **budget)
        assert_same(replayed(policy, eta, y), by_gains(policy, eta, y))


def test_it_is_this_loop_that_decides(monkeypatch):
    ran = []
    for name in ("replay_by_ranks", "replay_corrected_by_ranks"):
        real = getattr(sinks.DenseSink, name)

        def noted(self, *given, real=real):
            ran.append(len(given[0]))
            return real(self, *given)

        monkeypatch.setattr(sinks.DenseSink, name, noted)
    eta, y = stream(1, n=30, m=9)
    for policy in (omma.OMMA("macro_f1", k=2), omma.Auto("micro_f1", at_most=3)):
        replayed(policy, eta, y)
        assert sum(ran) == 30
        ran.clear()
    for other in (
        omma.OMMA("macro_f1", k=2, feedback="estimates"),
        omma.OMMA("macro_min_recall_specificity", k=2),
        omma.OMMA("macro_f1"),
        omma.TopK(2),
    ):
        replayed(other, eta, y, metric="macro_f1")
    replayed(omma.OMMA("macro_f1", k=2), eta, y, weights=np.ones(30))
    some = np.where(np.arange(30)[:, np.newaxis] % 3 == 0, np.nan, y)
    replayed(omma.Auto("macro_f1", k=2), eta, some)
    assert ran == []


@pytest.mark.parametrize("metric", ["macro_f1", "micro_f1", "macro_gmean"])
def test_the_same_as_the_textbook(metric):
    eta, y = stream(5, n=60, m=21)
    trace = replayed(omma.OMMA(metric, k=3), eta, y)
    expected, _ = naive.omma(naive.utility(metric), eta, y, k=3)
    np.testing.assert_array_equal(trace.predictions, expected)


@pytest.mark.parametrize("make", [omma.OMMA, omma.Auto], ids=lambda make: make.__name__)
@pytest.mark.parametrize("wrong", [1.5, -0.25, np.nan, np.inf])
def test_a_wrong_row_is_named(make, wrong):
    eta, y = stream(2, n=30, m=11)
    eta[17, 10] = wrong
    with pytest.raises(ValueError, match=f"got {wrong:g} in row 17, label 10"):
        replayed(make("macro_f1", k=2), eta, y)


def test_a_stream_goes_on_where_it_was():
    eta, y = stream(2, n=40, m=11)
    whole = replayed(omma.Auto("macro_f1", k=2), eta, y)
    learner = omma.OnlineClassifier(omma.Auto("macro_f1", k=2), n_labels=11)
    for row, labels in zip(eta, y, strict=True):
        learner.predict(row)
        learner.update(labels)
    for name, kept in learner.state.arrays().items():
        np.testing.assert_array_equal(kept, whole.state.arrays()[name], err_msg=name)


def test_rows_that_are_filled_up_are_counted():
    eta, y = stream(2, n=30, m=11)
    eta[[3, 9]] = 0.0
    eta[12, 1:] = 0.0
    for make in (omma.OMMA, omma.Auto):
        with pytest.warns(UserWarning, match="3 of 30 rows of replay have fewer than k=2"):
            omma.replay(make("macro_f1", k=2), eta, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        omma.replay(omma.OMMA("macro_f1", at_most=2), eta, y)


def test_rows_after_some_without_labels_are_decided_as_by_gains():
    eta, y = stream(2, n=40, m=11)
    policy = omma.Auto("macro_f1", k=2)
    some = np.where(np.arange(20)[:, np.newaxis] % 3 == 0, np.nan, y[:20])
    before = replayed(policy, eta[:20], some).state
    assert not before.all_labelled
    ends = []
    for fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not fast:
                patch.setattr(Runner, "_ranked", False)
            rest = Sequence(omma.Batch.of(eta[20:], y[20:]))
            ends.append(run("test", policy.plan(11), rest, state=before.copy()))
    np.testing.assert_array_equal(ends[0].predictions, ends[1].predictions)
    for name, kept in ends[0].state.arrays().items():
        np.testing.assert_array_equal(kept, ends[1].state.arrays()[name], err_msg=name)


@numba.njit(error_model="numpy")
def choose_of(budget, scratch, count, chosen):
    low = lower_bound(scratch, count, abs(budget)) if count >= 16 and abs(budget) <= 8 else -np.inf
    return choose(budget, scratch, count, low, chosen)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 40), st.integers(1, 12), st.booleans(), st.integers(0, 2**32 - 1))
def test_ties_go_to_the_lowest_labels(m, k, exact, seed):
    rng = np.random.default_rng(seed)
    gains = rng.integers(-2, 3, m).astype(np.float64)
    candidates = rng.random(m) < 0.8
    scratch, chosen = np.zeros((SCRATCH, m)), np.empty(m, dtype=np.int32)
    scratch[GAINS] = np.where(candidates, gains, -np.inf)
    found = choose_of(k if exact else -k, scratch, m, chosen)
    able = np.flatnonzero(candidates if exact else candidates & (gains >= 0.0))
    best = sorted(able, key=lambda j: (-gains[j], j))[:k]
    assert chosen[:found].tolist() == sorted(best)

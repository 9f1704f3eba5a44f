"""Tuned thresholds are the best cuts there are, label by label."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from naive_baselines import LAYOUTS, class_stream, one_hot, stream
from scipy import sparse
from strategies import own_f1

import omma
from omma.policies import UnsupportedMetricError

METRICS = sorted(naive.BINARY)


@st.composite
def samples(draw):
    """A few rows with many equal probabilities, zeros, labels never or always true, weights."""
    n, m = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    eta = draw(hnp.arrays(np.float64, (n, m), elements=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])))
    y = draw(hnp.arrays(np.int8, (n, m), elements=st.integers(0, 1)))
    for j in range(m):
        fate = draw(st.sampled_from([None, None, 0, 1]))
        if fate is not None:
            y[:, j] = fate
    exact = st.sampled_from([0.25, 0.5, 1.0, 3.0])  # sums without rounding, so that 0/0 is that
    weights = draw(st.none() | hnp.arrays(np.float64, n, elements=exact))
    return eta, y, weights


def every_cut(eta):
    """Decisions of one label at every threshold that makes a difference; the last is none."""
    cuts = [*np.unique(eta[eta > 0]), np.inf]
    return cuts, [((eta >= cut) & (eta > 0)).astype(int) for cut in cuts]


@pytest.mark.parametrize("name", METRICS)
@given(sample=samples())
@settings(max_examples=25)
def test_no_cut_of_any_label_is_better(name, sample):
    eta, y, weights = sample
    tuned = omma.TunedThresholds(f"macro_{name}").fit(eta, y, weights=weights)
    for j in range(eta.shape[1]):
        cuts, decisions = every_cut(eta[:, j])
        worth = [naive.value(name, y[:, j], decision, weights) for decision in decisions]
        threshold = tuned.decision.thresholds[j]
        assert threshold in cuts
        assert worth[cuts.index(threshold)] == pytest.approx(max(worth), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
@given(sample=samples())
@settings(max_examples=15)
def test_of_equal_cuts_the_highest_is_taken(name, sample):
    eta, y, _ = sample
    tuned = omma.TunedThresholds(f"macro_{name}").fit(eta, y)
    for j in range(eta.shape[1]):
        cuts, decisions = every_cut(eta[:, j])
        worth = [naive.value(name, y[:, j], decision) for decision in decisions]
        near = [cut for cut, one in zip(cuts, worth, strict=True) if one > max(worth) - 1e-12]
        exact = [cut for cut, one in zip(cuts, worth, strict=True) if one == max(worth)]
        assert max(exact) <= tuned.decision.thresholds[j] <= max(near)


@given(sample=samples(), name=st.sampled_from(METRICS))
@settings(max_examples=60)
def test_sparse_and_dense_samples_give_the_same_thresholds(sample, name):
    eta, y, weights = sample
    policy = omma.TunedThresholds(f"macro_{name}")
    expected = policy.fit(eta, y, weights=weights).decision
    stored = sparse.csr_array(np.where(eta == 0, 0.7, eta))  # zeros stored as well as left out
    stored.data[np.ravel(eta == 0)] = 0.0
    for given_eta in (sparse.csr_array(eta), stored, sparse.csc_array(eta)):
        for labels in (y, sparse.csr_array(y)):
            assert policy.fit(given_eta, labels, weights=weights).decision == expected


@pytest.mark.parametrize("name", METRICS)
def test_weights_that_do_not_add_up_exactly_do_no_harm(name):
    for seed in range(3):
        eta, y = stream(seed, n=100, m=2, zeros=0.0)
        weights = np.random.default_rng(seed).random(100)
        tuned = omma.TunedThresholds(f"macro_{name}").fit(eta, y, weights=weights)
        for j in range(2):
            _, decisions = every_cut(eta[:, j])
            metric = omma.metric(name)
            worth = [metric.score(y[:, j], one, weights) for one in decisions[::10]]
            found = (eta[:, j] >= tuned.decision.thresholds[j]).astype(int)
            assert metric.score(y[:, j], found, weights) >= max(worth) - 1e-12


def test_what_it_returns_is_a_policy_that_reaches_the_best_value():
    eta, y = stream(0, n=60)
    tuned = omma.TunedThresholds("macro_f1").fit(eta, y)
    assert isinstance(tuned, omma.FixedRule)
    best = [
        max(naive.value("f1", y[:, j], decision) for decision in every_cut(eta[:, j])[1])
        for j in range(4)
    ]
    for layout in LAYOUTS.values():
        assert omma.replay(tuned, layout(eta), y).value == pytest.approx(np.mean(best))
    assert omma.replay(tuned, eta, y).metric.name == "macro_f1"


def test_a_label_never_true_is_never_predicted_for_f1():
    eta, y = stream(1)
    y[:, 2] = 0
    tuned = omma.TunedThresholds("macro_f1").fit(eta, y)
    assert tuned.decision.thresholds[2] == np.inf
    assert omma.replay(tuned, eta, y).predictions[:, 2].sum() == 0


def test_a_label_of_no_probability_is_never_predicted():
    eta, y = np.zeros((4, 2)), np.ones((4, 2), dtype=int)
    for layout in LAYOUTS.values():
        tuned = omma.TunedThresholds("macro_recall").fit(layout(eta), y)
        assert tuned.decision.thresholds.tolist() == [np.inf, np.inf]


def test_single_precision_thresholds_are_reached_by_their_own_rows():
    eta, y = stream(2, n=50)
    eta = eta.astype(np.float32)
    expected = omma.TunedThresholds("macro_f1").fit(eta.astype(np.float64), y)
    tuned = omma.TunedThresholds("macro_f1").fit(eta, y)
    assert tuned.decision == expected.decision
    assert omma.replay(tuned, eta, y).value == omma.replay(expected, eta.astype(float), y).value


def test_one_label_may_come_as_a_vector():
    eta, y = stream(3, n=40, m=1)
    tuned = omma.TunedThresholds("gmean").fit(eta[:, 0], y[:, 0])
    worth = [naive.value("gmean", y[:, 0], decision) for decision in every_cut(eta[:, 0])[1]]
    assert omma.replay(tuned, eta[:, 0], y[:, 0]).value == pytest.approx(max(worth))


def test_a_metric_of_your_own_is_tuned_alike():
    eta, y = stream(4)
    metric = omma.metrics.custom(own_f1, average="macro")
    expected = omma.TunedThresholds("macro_f1").fit(eta, y).decision
    assert omma.TunedThresholds(metric).fit(eta, y).decision == expected


@pytest.mark.parametrize(
    "metric",
    ["micro_f1", "multiclass_gmean", "multiclass_accuracy", omma.metrics.costs([[1, 0], [0, 1]])],
    ids=str,
)
def test_metrics_that_do_not_decompose_are_refused_by_name(metric):
    with pytest.raises(UnsupportedMetricError) as refusal:
        omma.TunedThresholds(metric)
    assert "macro_" in str(refusal.value)
    assert omma.metric(metric).name in str(refusal.value)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.1, 1.5])
def test_what_is_no_probability_is_refused(layout, wrong):
    eta, y = stream(5)
    eta[7, 2] = wrong
    with pytest.raises(ValueError, match=r"eta of TunedThresholds\.fit must hold .*7.*2"):
        omma.TunedThresholds("macro_f1").fit(LAYOUTS[layout](eta), y)


def test_an_empty_sample_is_refused():
    with pytest.raises(ValueError, match=r"eta of TunedThresholds\.fit must"):
        omma.TunedThresholds("macro_f1").fit(np.empty((0, 3)), np.empty((0, 3)))


def test_a_sample_without_weight_is_refused():
    eta, y = stream(6)
    with pytest.raises(ValueError, match=r"weights of TunedThresholds\.fit must"):
        omma.TunedThresholds("macro_f1").fit(eta, y, weights=np.zeros(len(eta)))


def test_labels_must_be_given():
    with pytest.raises(ValueError, match=r"y of TunedThresholds\.fit must be given"):
        omma.TunedThresholds("macro_f1").fit(stream()[0], None)


def test_class_ids_are_refused_as_they_are_by_a_replay_without_a_budget():
    eta, y = class_stream()
    policy = omma.TunedThresholds("macro_f1")
    assert policy.fit(eta, one_hot(y, 4)).decision.k is None
    with pytest.raises(ValueError, match="class ids"):
        policy.fit(eta, y)

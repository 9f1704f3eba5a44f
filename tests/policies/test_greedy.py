"""Greedy is the expected metric with the present row counted in, and close to OMMA."""

from decimal import Decimal
from itertools import product

import naive
import naive_baselines as twins
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import (
    FEEDBACK,
    LAYOUTS,
    PRIORS,
    agree,
    class_stream,
    dense,
    one_hot,
    stepped,
    stream,
)
from strategies import own_f1, own_gmean

import omma
from omma.policies import UnsupportedMetricError, policy_from_json

METRICS = (
    "f1",
    "precision",
    "recall",
    "jaccard",
    "gmean",
    "hmean",
    "qmean",
    "mcc",
    "balanced_accuracy",
)
BUDGETS = (None, 1, 3)


# The expected value, literally


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize("name", METRICS)
def test_decisions_are_those_of_the_expected_value(name, feedback):
    compared = total = 0
    for seed, (k, prior) in enumerate(product(BUDGETS, PRIORS)):
        eta, y = stream(seed, n=16)
        theirs, gains = twins.greedy(naive.BINARY[name], eta, y, k, feedback, prior)
        policy = omma.Greedy(f"macro_{name}", k=k, feedback=feedback, prior=prior)
        for layout in LAYOUTS.values():
            ours = omma.replay(policy, layout(eta), y).predictions
            if prior in (0.0, 1e-3):
                learner = omma.OnlineClassifier(policy, n_labels=4)
                steps = twins.stepped(learner, layout(eta), y)
                np.testing.assert_array_equal(steps, twins.dense(ours))
            compared += agree(ours, theirs, gains, k)
            total += len(eta)
    assert compared >= 0.8 * total  # ties must not have hidden the comparison


@pytest.mark.parametrize("expectation", ["exact", "plug_in"])
@pytest.mark.parametrize("name", ["f1", "precision", "gmean", "mcc"])
def test_counts_are_divided_by_the_rows_that_will_come(name, expectation):
    twin = {"exact": twins.expected, "plug_in": twins.at_expected}[expectation]
    for k, feedback in product((None, 3), FEEDBACK):
        eta, y = stream(7, n=30)
        options = {"k": k, "feedback": feedback, "prior": 1e-3}
        theirs, gains = twins.greedy(
            naive.BINARY[name], eta, y, **options, expectation=twin, eps=1e-2, rows=30
        )
        policy = omma.Greedy(
            f"macro_{name}", **options, expectation=expectation, rows=30, epsilon=1e-2
        )
        for layout in LAYOUTS.values():
            ours = twins.dense(omma.replay(policy, layout(eta), y).predictions)
            learner = omma.OnlineClassifier(policy, n_labels=4)
            np.testing.assert_array_equal(twins.stepped(learner, layout(eta), y), ours)
            assert agree(ours, theirs, gains, k) >= 24
    with pytest.raises(ValueError, match="rows of Greedy must be a whole number of at least 1"):
        omma.Greedy("macro_f1", rows=0)


@given(
    name=st.sampled_from(METRICS),
    k=st.sampled_from(BUDGETS),
    feedback=st.sampled_from(FEEDBACK),
    prior=st.sampled_from(PRIORS[1:]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_weighted_rows_count_by_their_weight(name, k, feedback, prior, seed):
    eta, y = stream(seed, n=15)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], size=len(eta))
    weights[-1] = 1.0
    theirs, gains = twins.greedy(naive.BINARY[name], eta, y, k, feedback, prior, weights)
    policy = omma.Greedy(f"macro_{name}", k=k, feedback=feedback, prior=prior)
    agree(omma.replay(policy, eta, y, weights=weights).predictions, theirs, gains, k)


@pytest.mark.parametrize("k", BUDGETS)
@pytest.mark.parametrize("name", METRICS)
def test_no_other_prediction_has_a_larger_expected_utility(name, k):
    """The expectation of the whole macro metric over all outcomes of a row: 8 × 8 cases."""
    psi = naive.utility(f"macro_{name}")
    policy = omma.Greedy(f"macro_{name}", k=k, prior=0.1)
    for seed in range(6):
        eta, y = stream(seed, n=7, m=3, zeros=0.0)
        learner = omma.OnlineClassifier(policy, n_labels=3)
        ours = twins.stepped(learner, eta, y)
        counts = naive.cells(y[:-1], ours[:-1]) + 0.1
        worth = {
            p: twins.expected_utility(psi, counts, eta[-1], np.array(p))
            for p in twins.allowed(3, k)
        }
        assert worth[tuple(ours[-1])] >= max(worth.values()) - 1e-12


@pytest.mark.parametrize("prior", PRIORS[1:])
def test_one_label_is_decided_by_its_own_metric(prior):
    for name in METRICS:
        eta, y = stream(5, n=30, m=1, zeros=0.0)
        theirs, gains = twins.greedy(naive.BINARY[name], eta, y, prior=prior)
        trace = omma.replay(omma.Greedy(name, prior=prior), eta[:, 0], y[:, 0])
        assert agree(trace.predictions[:, None], theirs, gains, None) == 30, name


@pytest.mark.parametrize("feedback", FEEDBACK)
def test_classes_may_be_judged_by_their_mean_recall(feedback):
    eta, y = class_stream(3)
    theirs, gains = twins.greedy(naive.recall, eta, one_hot(y, 4), 1, feedback)
    policy = omma.Greedy("multiclass_balanced_accuracy", feedback=feedback)
    assert agree(omma.replay(policy, eta, y).predictions, theirs, gains, 1) == len(eta)


def test_sums_of_macro_metrics_are_supported():
    def both(*cells_and_eps):
        return 0.5 * naive.f1(*cells_and_eps) + 2 * naive.recall(*cells_and_eps)

    metric = 0.5 * omma.metric("macro_f1") + 2 * omma.metric("macro_recall")
    for seed, k in enumerate(BUDGETS):
        eta, y = stream(seed)
        theirs, gains = twins.greedy(both, eta, y, k)
        ours = omma.replay(omma.Greedy(metric, k=k), eta, y).predictions
        assert agree(ours, theirs, gains, k) == len(eta)


def test_a_metric_of_your_own_is_supported():
    metric = omma.metrics.custom(own_gmean, average="macro")
    eta, y = stream(6)
    theirs, gains = twins.greedy(naive.gmean, eta, y, 3, prior=0.1)
    ours = omma.replay(omma.Greedy(metric, k=3, prior=0.1), eta, y)
    assert agree(ours.predictions, theirs, gains, 3) == len(eta)
    catalogue = omma.Greedy("macro_gmean", k=3, prior=0.1)
    same = omma.replay(catalogue, eta, y)
    np.testing.assert_array_equal(ours.predictions, same.predictions)
    np.testing.assert_allclose(ours.rule.slope, same.rule.slope, rtol=1e-9)
    np.testing.assert_allclose(ours.rule.offset, same.rule.offset, rtol=1e-9)


# Closeness to OMMA

FRACTIONS = np.array([[0.2, 0.05, 0.01], [0.3, 0.15, 0.04], [0.35, 0.1, 0.02]])
ETA = np.linspace(0.05, 0.95, 10)
TIMES = np.array([1_000, 3_000, 10_000, 30_000, 100_000])


def gains_after(policy, t):
    """Gains of every label at some probabilities, after t rows of fixed fractions."""
    state = policy.init(3)
    state.cells[...] = FRACTIONS * t
    state.totals[0] = t
    rule = policy.rule(state)
    return np.multiply.outer(ETA, rule.slope) + rule.offset


def order_of(differences):
    """The exponent of a power of t that fits the differences best."""
    return np.polyfit(np.log(TIMES), np.log(differences), 1)[0]


@pytest.mark.parametrize("name", METRICS)
def test_gains_approach_those_of_omma_as_one_over_t(name):
    """Per row, that is; the expected values themselves agree up to 1/t², as the paper says."""
    policies = (omma.Greedy(f"macro_{name}"), omma.OMMA(f"macro_{name}"))
    apart = [
        abs(np.subtract(*(gains_after(policy, t) for policy in policies))).max() for t in TIMES
    ]
    assert order_of(apart) == pytest.approx(-1, abs=0.03)


@pytest.mark.parametrize("name", METRICS)
def test_expected_values_approach_the_linearized_ones_as_one_over_t_squared(name):
    f = naive.BINARY[name]
    tp, predicted, positive = FRACTIONS
    cells = np.stack((tp, predicted - tp, positive - tp, 1 - predicted - positive + tp), axis=1)
    apart = []
    for t in TIMES:
        linear = gains_after(omma.OMMA(f"macro_{name}", prior=0.0), t) / (t + 1)
        for i, eta in enumerate(ETA):
            for j, label in enumerate(cells * t):
                with_it, without = (twins.expected(f, label, eta, p) for p in (1, 0))
                linear[i, j] -= (with_it - without) / 3
        apart.append(abs(linear).max())
    assert order_of(apart) == pytest.approx(-2, abs=0.03)


# Refusals


def own_f1_gradient(tp, fp, fn, tn):
    whole = 2 * tp + fp + fn + 1e-9
    return 2 / whole - 4 * tp / whole**2, -2 * tp / whole**2, -2 * tp / whole**2, 0.0


def by_decimals(tp, fp, fn, tn):
    return float(Decimal(2 * tp) / Decimal(2 * tp + fp + fn + 1e-9))


def by_names(tp, fp, fn, tn):
    return own_f1(**{"tp": tp, "fp": fp, "fn": fn, "tn": tn})


MACRO_AND_MICRO = omma.metric("macro_f1") + omma.metric("micro_f1")


@pytest.mark.parametrize(
    "metric",
    [
        "micro_f1",
        "multiclass_accuracy",
        "multiclass_gmean",
        "multiclass_kappa",
        MACRO_AND_MICRO,
        omma.metrics.costs([[1, 0], [0, 2]]),
        omma.metrics.custom(own_f1, average="micro"),
    ],
    ids=lambda metric: getattr(metric, "name", metric),
)
def test_metrics_that_do_not_decompose_are_refused_by_name(metric):
    with pytest.raises(UnsupportedMetricError) as refusal:
        omma.Greedy(metric)
    message = str(refusal.value)
    assert omma.metric(metric).name in message
    assert "macro_" in message
    assert "multiclass_balanced_accuracy" in message


@pytest.mark.parametrize("psi", [by_decimals, by_names])  # unknown types, unknown bytecode
def test_a_metric_whose_value_does_not_compile_is_refused(psi):
    metric = omma.metrics.custom(psi, average="macro", gradient=own_f1_gradient)
    with pytest.raises(UnsupportedMetricError, match=f"must compile.*macro_{psi.__name__}"):
        omma.Greedy(metric)


# The plug-in: the metric at expected counts, whose gain is not linear in η


def plug_in(metric="macro_f1", **options):
    return omma.Greedy(metric, expectation="plug_in", **options)


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize("name", ["f1", "precision", "gmean", "mcc"])
def test_decisions_are_those_of_the_metric_at_expected_counts(name, feedback):
    compared = total = 0
    f = naive.BINARY[name]
    for seed, (k, prior) in enumerate(product((None, 3), PRIORS)):
        eta, y = stream(seed, n=30)
        theirs, gains = twins.greedy(f, eta, y, k, feedback, prior, expectation=twins.at_expected)
        policy = plug_in(f"macro_{name}", k=k, feedback=feedback, prior=prior)
        for layout in LAYOUTS.values():
            ours = dense(omma.replay(policy, layout(eta), y).predictions)
            learner = omma.OnlineClassifier(policy, n_labels=4)
            np.testing.assert_array_equal(stepped(learner, layout(eta), y), ours)
            compared += agree(ours, theirs, gains, k)
            total += len(eta)
    assert compared >= 0.8 * total


def test_it_is_not_the_exact_expectation():
    eta, y = stream(2, n=60)
    first, second = (
        omma.replay(omma.Greedy("macro_f1", expectation=one, prior=1e-3), eta, y).predictions
        for one in ("exact", "plug_in")
    )
    assert (first != second).any()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("k", [None, 2])
def test_a_matrix_is_decided_on_the_present_counts(layout, k):
    eta, y = stream(3, n=50)
    learner = omma.OnlineClassifier(plug_in(k=k, prior=0.1), n_labels=4)
    stepped(learner, eta[:20], y[:20])
    before = learner.state.copy()
    together = dense(learner.predict(LAYOUTS[layout](eta[20:])))
    np.testing.assert_array_equal(together, [learner.predict(row) for row in eta[20:]])
    assert learner.state == before
    with pytest.raises(ValueError, match="must have 4 labels, got 3"):
        learner.predict(np.full((2, 3), 0.5))


def test_its_rule_is_ommas():
    eta, y = stream(4)
    learner = omma.OnlineClassifier(plug_in(), n_labels=4)
    stepped(learner, eta, y)
    assert learner.rule == omma.OMMA("macro_f1").rule(learner.state)


def test_weights_count_rows_and_not_the_present_one():
    eta, y = stream(5, n=40)
    weights = np.random.default_rng(5).choice([0.5, 1.0, 3.0], size=40)
    theirs, gains = twins.greedy(
        naive.f1, eta, y, None, "labels", 0.1, weights, expectation=twins.at_expected
    )
    ours = omma.replay(plug_in(prior=0.1), eta, y, weights=weights).predictions
    assert agree(ours, theirs, gains, None) == 40


def test_sums_and_your_own_metrics_are_supported():
    eta, y = stream(6, n=40)
    total = omma.metric("macro_f1") + 0.5 * omma.metric("macro_gmean")

    def f(*cells):
        return naive.f1(*cells) + 0.5 * naive.gmean(*cells)

    theirs, gains = twins.greedy(f, eta, y, 2, prior=0.1, expectation=twins.at_expected)
    ours = omma.replay(plug_in(total, k=2, prior=0.1), eta, y).predictions
    assert agree(ours, theirs, gains, 2) == 40
    own = omma.metrics.custom(own_gmean, average="macro")
    first, second = (
        omma.replay(plug_in(metric, k=2, prior=0.1), eta, y).predictions
        for metric in (own, "macro_gmean")
    )
    np.testing.assert_array_equal(first, second)


def test_it_is_saved_and_checked():
    made = plug_in(k=2)
    assert policy_from_json(made.to_json()) == made
    old = {key: one for key, one in made.to_json().items() if key != "expectation"}
    assert policy_from_json(old) == omma.Greedy("macro_f1", 2)
    with pytest.raises(ValueError, match="expectation of Greedy must be"):
        omma.Greedy("macro_f1", expectation="plugin")

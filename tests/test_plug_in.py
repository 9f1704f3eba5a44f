"""The plug-in Greedy: the metric at expected counts, whose gain is no line in η."""

from itertools import product

import naive
import naive_baselines as twins
import numpy as np
import pytest
from naive_baselines import FEEDBACK, LAYOUTS, PRIORS, agree, dense, stepped, stream
from strategies import own_gmean

import omma
from omma.policies import policy_from_json


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

"""One algorithm, three ways: from the textbook, row by row, and replayed at once.

Steps and replays of every metric agree to the last bit (`test_engine` has the other policies). The
textbook twin computes gradients by other means, so a decision that hangs on a gain of less than a
ten-millionth may fall otherwise; from there on the two see different counts, and are compared no
further.
"""

from itertools import product

import naive
import numpy as np
import pytest
from scipy import sparse
from strategies import BINARY, CLASSES, MANY, class_stream, dense, one_hot, stepwise, stream

import omma

M = 3
BUDGETS = (None, 1, 2, M)
FEEDBACK = ("labels", "estimates")
PRIORS = (0.0, 1e-6, 1e-3, 0.1, 1.0)
LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
# At no counts at all these are roots of zero: their finite differences are merely huge.
ROOTS = ("gmean", "qmean", "mcc")


def smooth(name):
    """Not a minimum: at its kinks, such as the start, finite differences are one of many truths."""
    return "min_recall" not in name


def agree(ours, theirs, gains, k, tolerance=1e-7):
    """Compare decisions row by row up to the first that hangs on a tie; how many were compared."""
    for t, (mine, its) in enumerate(zip(ours, theirs, strict=True)):
        if (mine != its).any():
            differing = gains[t][mine != its]
            gap = np.ptp(differing) if k else abs(differing).max()
            assert gap <= tolerance * abs(gains[t]).max(), f"row {t}: {mine} is not {its}"
            return t
    return len(ours)


def same_to_the_last_bit(policy, eta, y):
    """Replay, step, compare everything; returns the trace."""
    trace = omma.replay(policy, eta, y)
    predictions, learner = stepwise(policy, eta, y)
    np.testing.assert_array_equal(dense(trace.predictions), predictions)
    assert trace.counts == learner.counts
    assert trace.rule == learner.rule
    assert trace.state == learner.state
    assert trace.value == learner.value
    return trace


ways = pytest.mark.parametrize(("feedback", "layout"), list(product(FEEDBACK, LAYOUTS)))


@ways
@pytest.mark.parametrize("name", MANY)
def test_many_labels_replayed_and_stepped_are_one(name, feedback, layout):
    for seed, (k, prior) in enumerate(product(BUDGETS, PRIORS)):
        eta, y = stream(seed, n=10, m=M)
        policy = omma.OMMA(name, k=k, feedback=feedback, prior=prior)
        same_to_the_last_bit(policy, LAYOUTS[layout](eta), y)


@ways
@pytest.mark.parametrize("name", CLASSES)
def test_classes_replayed_and_stepped_are_one(name, feedback, layout):
    budgets = (None, 1) if omma.metric(name).single_label else BUDGETS
    for seed, (k, prior) in enumerate(product(budgets, PRIORS)):
        eta, y = class_stream(seed, n=10, m=M)
        policy = omma.OMMA(name, k=k, feedback=feedback, prior=prior)
        same_to_the_last_bit(policy, LAYOUTS[layout](eta), y)


@ways
@pytest.mark.parametrize("name", BINARY)
def test_one_label_replayed_and_stepped_is_one(name, feedback, layout):
    for seed, prior in enumerate(PRIORS):
        eta, y = stream(seed, n=15, m=1)
        policy = omma.OMMA(name, feedback=feedback, prior=prior)
        same_to_the_last_bit(policy, LAYOUTS[layout](eta), y)


@pytest.mark.parametrize("policy", [omma.TopK(2), omma.Threshold(0.3)], ids=repr)
def test_fixed_rules_replayed_stepped_and_textbook_are_one(policy):
    eta, y = stream(3, n=60)
    expected = naive.top_k(eta, 2) if policy.budget else naive.threshold(eta, 0.3)
    for layout in LAYOUTS.values():
        trace = omma.replay(policy, layout(eta), y, metric="macro_f1")
        predictions, learner = stepwise(policy, layout(eta), y)
        np.testing.assert_array_equal(dense(trace.predictions), expected)
        np.testing.assert_array_equal(predictions, expected)
        assert trace.counts == learner.counts


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize("name", [name for name in [*BINARY, *MANY] if smooth(name)])
def test_replays_are_the_textbook(name, feedback):
    binary = name in BINARY
    compared = total = 0
    cases = list(enumerate(product((None,) if binary else BUDGETS, PRIORS)))
    if not binary:  # half of the cases with labels, the other half with estimates: it is slow
        cases = cases[FEEDBACK.index(feedback) :: 2]
    for seed, (k, prior) in cases:
        if prior == 0 and name.endswith(ROOTS):
            continue
        eta, y = stream(seed + 100, n=16, m=1 if binary else M)
        policy = omma.OMMA(name, k=k, feedback=feedback, prior=prior)
        theirs, gains = naive.omma(naive.utility(name), eta, y, k, feedback, prior)
        ours = omma.replay(policy, eta, y).predictions
        compared += agree(ours, theirs, gains, k)
        total += len(eta)
    assert compared >= 0.8 * total  # ties must not have hidden the comparison


@pytest.mark.parametrize("beta", [0.5, 2])
def test_replays_of_fbeta_are_the_textbook(beta):
    for average, k in product(("macro", "micro"), (None, 2)):
        eta, y = stream(7, n=40)
        metric = getattr(omma.metrics, average)(omma.metrics.fbeta(beta))
        psi = getattr(naive, average)(naive.fbeta(beta))
        theirs, gains = naive.omma(psi, eta, y, k)
        ours = omma.replay(omma.OMMA(metric, k=k), sparse.csr_array(eta), y).predictions
        assert agree(ours.toarray(), theirs, gains, k) == len(eta)


def test_replays_of_weighted_rows_are_the_textbook():
    eta, y = stream(8, n=40)
    weights = np.random.default_rng(8).choice([0.5, 1.0, 3.0], size=len(eta))
    for name, k, feedback in product(("macro_f1", "micro_gmean"), (None, 2), FEEDBACK):
        theirs, gains = naive.omma(naive.utility(name), eta, y, k, feedback, weights=weights)
        policy = omma.OMMA(name, k=k, feedback=feedback)
        ours = omma.replay(policy, eta, y, weights=weights).predictions
        assert agree(ours, theirs, gains, k) == len(eta)


def matrix_of_prior(m, prior):
    """A confusion matrix that counts for each class what the prior adds: tp λ, the margins 2λ."""
    return prior * (np.eye(m) + (1 - np.eye(m)) / (m - 1))


@pytest.mark.parametrize("feedback", FEEDBACK)
@pytest.mark.parametrize("name", [name for name in CLASSES if smooth(name)])
def test_replays_of_classes_are_the_textbook(name, feedback):
    compared = total = 0
    for seed, (prior, m) in enumerate(product((0.01, 0.1, 1.0), (2, 4))):
        eta, y = class_stream(seed, n=20, m=m)
        start = matrix_of_prior(m, prior)
        psi = naive.utility(name)
        theirs, gains = naive.omma_multiclass(psi, eta, one_hot(y, m), 1, feedback, start=start)
        ours = omma.replay(omma.OMMA(name, feedback=feedback, prior=prior), eta, y).predictions
        # Epsilon stands elsewhere in some of the means, which matters by 1e-9 / prior.
        compared += agree(ours, theirs, gains - gains.min(axis=1)[:, None], 1, tolerance=1e-6)
        total += len(eta)
    assert compared >= 0.8 * total


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_with_costs_a_class_of_probability_zero_may_be_the_cheapest(layout):
    """Class 2, "ask somebody", never occurs and always costs little; classes 0 and 1 are unsure."""
    matrix = np.array([[1.0, -9.0, 0.0], [-9.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    eta, y = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]), np.array([0, 0])
    policy = omma.OMMA(omma.metrics.costs(matrix))
    trace = omma.replay(policy, layout(eta), y)
    decided = trace.predictions.toarray() if layout is sparse.csr_array else trace.predictions
    assert decided.argmax(axis=1).tolist() == (eta @ matrix).argmax(axis=1).tolist() == [2, 0]
    assert trace.classes.tolist() == [2, 0]
    learner = omma.OnlineClassifier(policy, n_labels=3)
    assert [int(np.argmax(learner.predict(row))) for row in eta] == [2, 0]


def test_costs_are_the_textbook():
    eta, y = class_stream(5, n=30, m=3)
    matrix = np.array([[2.0, -1.0, 0.0], [-3.0, 1.0, 0.5], [0.0, -0.25, 4.0]])
    trace = omma.replay(omma.OMMA(omma.metrics.costs(matrix)), eta, y)
    np.testing.assert_array_equal(trace.classes, (eta @ matrix).argmax(axis=1))
    found = naive.confusion(one_hot(y, 3), trace.predictions)
    np.testing.assert_array_equal(trace.counts.matrix, found)
    assert trace.value == pytest.approx((matrix * found).sum() / 30)


@pytest.mark.parametrize("prior", PRIORS)
def test_ofo_falls_out_of_omma(prior):
    """For F1 the threshold is tp / (positive + predicted), prior included."""
    eta, y = stream(9, n=50, zeros=0.0)
    trace = omma.replay(omma.OMMA("macro_f1", prior=prior), eta, y)
    counts = trace.counts
    expected = (counts.tp + prior) / (counts.positive + counts.predicted + 4 * prior)
    np.testing.assert_allclose(trace.rule.thresholds, expected, rtol=1e-6)


def test_without_a_prior_everything_possible_is_predicted_first():
    eta, y = stream(10, zeros=0.3)
    first = omma.replay(omma.OMMA("macro_f1", prior=0.0), eta, y).predictions[0]
    np.testing.assert_array_equal(first, eta[0] > 0)

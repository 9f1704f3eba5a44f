"""What the short cuts for dense rows were once wrong about."""

import numpy as np
import pytest
from scipy import sparse

import omma
from omma.metrics import Binary, Macro, Micro, Rate
from omma.running import worth
from omma.running.runner import Runner

RNG = np.random.default_rng(0)
ETA = RNG.random((60, 4))
Y = (RNG.random((60, 4)) < ETA).astype(np.int8)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(worth, "MOST", 0)


def by_gains(policy, eta, y, **given):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "_signs", None)
        patch.setattr(Runner, "_ranked", False)
        return omma.replay(policy, eta, y, **given)


@pytest.mark.parametrize("make", [omma.OMMA, omma.Auto], ids=lambda make: make.__name__)
@pytest.mark.parametrize("k", [None, 2])
def test_a_true_byte_counts_once_whatever_it_is(make, k):
    flags = (Y.astype(np.uint8) * 255).view(np.bool_)
    policy = make("macro_f1", k=k)
    expected = omma.replay(policy, ETA, Y)
    found = omma.replay(policy, ETA, flags)
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    assert found.value == expected.value
    learner = omma.OnlineClassifier(policy, n_labels=4)
    for row, labels in zip(ETA, flags, strict=True):
        learner.predict(row)
        learner.update(labels)
    assert learner.value == expected.value


@pytest.mark.parametrize("average", [Macro, Micro], ids=lambda one: one.__name__)
@pytest.mark.parametrize("make", [omma.OMMA, omma.Auto], ids=lambda make: make.__name__)
def test_a_metric_may_fall_with_true_positives(average, make):
    error = Binary(
        "error", "(fp + fn) / n", "rate", Rate((-2.0, 1.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    )
    policy = make(average(error))
    found, expected = omma.replay(policy, ETA, Y), by_gains(policy, ETA, Y)
    np.testing.assert_array_equal(found.predictions, expected.predictions)
    assert found.value == expected.value


@pytest.mark.parametrize("weight", [1e-100, 1e-80, 1e-20, 1.0])
def test_rows_of_next_to_no_weight_are_decided_alike(weight):
    policy = omma.OMMA("macro_gmean", prior=0)
    expected = omma.replay(policy, ETA, Y, weights=np.full(60, weight))
    learner = omma.OnlineClassifier(policy, n_labels=4)
    for t, (row, labels) in enumerate(zip(ETA, Y, strict=True)):
        np.testing.assert_array_equal(learner.predict(row), expected.predictions[t])
        learner.update(labels, weight=weight)


def test_a_constant_rule_rounds_as_it_does_elsewhere():
    rule = omma.Rule([3.0] * 9, [-(3.0 * 0.1)] * 9)  # zero when rounded twice, less when once
    eta, y = np.full((5, 9), 0.1), np.ones((5, 9), dtype=np.int8)
    assert rule.predict(eta).all()
    found = omma.replay(omma.FixedRule(rule), eta, y, metric="macro_f1")
    assert found.predictions.all()


@pytest.mark.parametrize(
    "policy",
    [
        omma.OMMA("micro_f1", feedback="estimates"),
        omma.Auto("micro_f1"),
        omma.Auto("micro_f1", k=9),
    ],
    ids=repr,
)
def test_sums_over_many_labels_have_the_bits_of_sparse_rows(policy):
    rng = np.random.default_rng(1)
    eta = rng.random((50, 37))
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    dense = omma.replay(policy, eta, y)
    assert dense.predictions.sum(axis=1).min() > 8  # so that a lane has several
    thin = omma.replay(policy, sparse.csr_array(eta), y)
    for name, kept in dense.state.arrays().items():
        np.testing.assert_array_equal(kept, thin.state.arrays()[name], err_msg=name)

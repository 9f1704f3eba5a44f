"""What the short cuts for dense rows were once wrong about."""

import numpy as np
import pytest

import omma
from omma.metrics import Binary, Macro, Micro, Rate
from omma.running import plan, worth

RNG = np.random.default_rng(0)
ETA = RNG.random((60, 4))
Y = (RNG.random((60, 4)) < ETA).astype(np.int8)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(worth, "MOST", 0)


def by_gains(policy, eta, y, **given):
    with pytest.MonkeyPatch.context() as patch:
        for name, nothing in (
            ("signs", None),
            ("corrected_signs", None),
            ("ranked", False),
            ("corrected_ranked", False),
        ):
            patch.setattr(plan.Plan, name, nothing)
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

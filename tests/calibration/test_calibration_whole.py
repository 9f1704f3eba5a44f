"""Calibration by all rows at once: the best of its kind, whatever the order and the layout."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_auto import logits, whole_gradient
from naive_baselines import class_stream, stream
from scipy import sparse
from scipy.special import expit

import omma
from omma.calibration import OnlineCalibrator
from omma.calibration.whole import calibration_of


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 6))
def test_nothing_nearby_is_better(seed, n, m):
    """The penalized log-loss has one minimum: there its gradient is zero."""
    eta, y = stream(seed, n, m)
    weights = np.random.default_rng(seed).integers(0, 4, n).astype(float)
    found = calibration_of(omma.Batch.of(eta, y, weights))
    gradient = whole_gradient(eta, y, weights, found.shared[:3], found.bias)
    inside = (found.shared[:2] > 0.05) & (found.shared[:2] < 1000.0)
    assert np.abs(gradient[np.append(inside, np.full(1 + m, True))]).max() < 1e-3


def test_weights_are_repeated_rows_and_sparse_is_dense():
    eta, y = stream(3, 60, 5)
    times = np.random.default_rng(0).integers(0, 3, 60)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(60), times))
    many = calibration_of(omma.Batch.of(eta[order], y[order]))
    for layout, truth in (
        (np.asarray, y),
        (sparse.csr_array, y),
        (np.asarray, sparse.csr_array(y)),
    ):
        one = calibration_of(omma.Batch.of(layout(eta), truth, times.astype(float)))
        for name, array in vars(one).items():
            np.testing.assert_allclose(array, getattr(many, name), rtol=1e-6, atol=1e-6)


def calibrated(found, eta):
    """Calibrated logits of labels."""
    a, b, biases, s = found.curve
    assert s == 6.0
    return a * logits(eta) + b + biases


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_classes_are_labels(layout):
    eta, ids = class_stream(0, 80, 4)
    one = calibration_of(omma.Batch.of(layout(eta), ids))
    same = calibration_of(omma.Batch.of(eta, np.eye(4)[ids]))
    np.testing.assert_allclose(one.bias, same.bias, atol=1e-9)


def test_it_ends_where_the_online_one_goes_and_the_latter_goes_on_from_there():
    eta, y = omma.datasets.long_tail(n=20_000, m=5, seed=0)
    wrong = 1 / (1 + ((1 - eta) / eta) ** 2 * np.exp(-1.0))  # twice the logit, plus one
    online = OnlineCalibrator(5)
    online.update(wrong, y)
    whole = calibration_of(omma.Batch.of(wrong, y))
    assert whole.slope == pytest.approx(0.5, abs=0.02)
    assert online.slope == pytest.approx(whole.slope, abs=0.02)
    assert whole.rows == 20_000
    np.testing.assert_allclose(online.predict(wrong), expit(calibrated(whole, wrong)), atol=0.01)
    later = OnlineCalibrator.from_arrays(vars(whole))
    later.update(wrong[:100], y[:100])
    assert later.slope == pytest.approx(whole.slope, abs=0.01)


def test_confident_and_wrong_does_not_overshoot():
    eta = np.full((40, 2), 1e-9)
    y = np.ones((40, 2), dtype=np.int8)
    found = calibration_of(omma.Batch.of(eta, y))
    assert np.isfinite(found.shared).all()
    gradient = whole_gradient(eta, y, np.ones(40), found.shared[:3], found.bias)
    inside = (found.shared[:2] > 0.05) & (found.shared[:2] < 1000.0)
    assert np.abs(gradient[np.append(inside, np.full(3, True))]).max() < 1e-3

"""Calibration: scikit-learn's figures, dense and sparse alike."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss as sklearn_log_loss

import omma
from omma.calibration import Reliability, brier, expected_error, log_loss, reliability
from omma.calibration.reliability import CalibrationCheck
from omma.calibration.whole import calibration_of
from omma.rows import arrays


def made(seed=0, n=200, m=5, density=0.7):
    rng = np.random.default_rng(seed)
    eta = rng.random((n, m)) ** 2 * (rng.random((n, m)) < density)
    y = (rng.random((n, m)) < np.sqrt(eta) * 0.9 + 0.02).astype(np.int8)
    return eta, y


def assert_curve_of_scikit_learn(curve, eta, y, **options):
    observed, predicted = calibration_curve(np.ravel(y), np.ravel(eta), **options)
    full = curve.count > 0
    np.testing.assert_allclose(curve.observed[full], observed, rtol=1e-12)
    np.testing.assert_allclose(curve.predicted[full], predicted, rtol=1e-12)
    assert curve.count.sum() == np.size(eta)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@settings(max_examples=30)
@given(seed=st.integers(0, 500), bins=st.integers(1, 20), density=st.sampled_from([0.3, 0.9, 1.0]))
def test_curves_are_those_of_scikit_learn(layout, seed, bins, density):
    eta, y = made(seed, n=60, density=density)
    assert_curve_of_scikit_learn(reliability(layout(eta), layout(y), bins), eta, y, n_bins=bins)
    assert_curve_of_scikit_learn(
        reliability(layout(eta), y, bins, label=2), eta[:, 2], y[:, 2], n_bins=bins
    )


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("density", [1.0, 0.6])
def test_bins_of_equal_mass(layout, density):
    eta, y = made(1, density=density)
    curve = reliability(layout(eta), y, 8, strategy="mass")
    expected = np.unique(np.quantile(eta.ravel(), np.linspace(0, 1, 9)))
    np.testing.assert_allclose(curve.edges, expected, atol=1e-15)
    if density == 1.0:
        assert curve.count.tolist() == [125] * 8
    assert curve.count.sum() == eta.size


def test_all_probabilities_alike():
    curve = reliability(np.full((4, 1), 0.3), [[0], [1], [1], [0]], 5, strategy="mass")
    assert curve.count.tolist() == [4]
    assert curve.observed.tolist() == [0.5]
    assert curve.expected_error == pytest.approx(0.2)
    nothing = reliability(sparse.csr_array((4, 2)), np.eye(4, 2), 5, strategy="mass")
    assert (nothing.count.tolist(), nothing.observed.tolist()) == ([8], [0.25])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, ">f8", np.uint8])
def test_probabilities_of_any_type_are_read(dtype):
    eta, y = np.array([[0.5, 0.0, 0.25], [1.0, 0.5, 0.0]]).astype(dtype), np.eye(2, 3)
    expected = brier(eta.astype(np.float64), y)
    assert brier(eta, y) == expected
    whole = calibration_of(omma.Batch.of(eta, y))
    assert whole.bias.tolist() == calibration_of(omma.Batch.of(eta.astype(float), y)).bias.tolist()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_losses_are_those_of_scikit_learn(layout):
    eta, y = made(2)
    eta = np.clip(eta, 0, 0.999)
    flat = np.ravel(y), np.clip(np.ravel(eta), 1e-15, 1)
    assert log_loss(layout(eta), layout(y)) == pytest.approx(sklearn_log_loss(*flat))
    assert brier(layout(eta), y) == pytest.approx(brier_score_loss(*flat))


def test_losses_of_classes_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.ones(4), size=100)
    ids = rng.integers(4, size=100)
    assert log_loss(eta, ids) == pytest.approx(sklearn_log_loss(ids, eta))
    assert log_loss(sparse.csr_array(eta), ids) == pytest.approx(sklearn_log_loss(ids, eta))
    assert brier(eta, ids) == pytest.approx(((eta - np.eye(4)[ids]) ** 2).sum(axis=1).mean())
    assert_curve_of_scikit_learn(reliability(eta, ids), eta, np.eye(4)[ids], n_bins=10)


def test_one_label_as_a_vector():
    eta, y = made(3, m=1)
    assert log_loss(eta[:, 0], y[:, 0]) == log_loss(eta, y)
    assert expected_error(eta[:, 0], y[:, 0]) == expected_error(eta, y)


def test_expected_error_is_the_weighted_distance():
    eta, y = made(4)
    total = 0.0
    for low in np.arange(10) / 10:
        inside = (eta >= low) & (eta < low + 0.1 - 1e-12)
        if inside.any():
            total += inside.sum() * abs(eta[inside].mean() - y[inside].mean())
    assert expected_error(eta, y) == pytest.approx(total / eta.size, abs=1e-9)
    truth = (np.random.default_rng(0).random((40_000, 1)) < 0.3).astype(int)
    assert expected_error(np.full((40_000, 1), 0.3), truth) < 0.01


def test_certainties_are_finite():
    assert log_loss([[0.0], [1.0]], [[1], [0]]) == pytest.approx(-np.log(1e-15), rel=1e-2)
    hidden = sparse.csr_array((2, 1))
    assert log_loss(hidden, [[1], [0]]) == pytest.approx(-np.log(1e-15) / 2)


def test_blocks_do_not_matter(monkeypatch):
    eta, y = made(5)
    whole = [
        (log_loss(e, y), brier(e, y), reliability(e, y).observed.tolist())
        for e in (eta, sparse.csr_array(eta))
    ]
    monkeypatch.setattr(arrays, "BLOCK", 64)
    parts = [
        (log_loss(e, y), brier(e, y), reliability(e, y).observed.tolist())
        for e in (eta, sparse.csr_array(eta))
    ]
    for one, other in zip(whole, parts, strict=True):
        assert one[:2] == pytest.approx(other[:2])
        assert one[2] == other[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: log_loss([[0.5, 1.2]], [[1, 0]]), "eta of log_loss must hold probabilities"),
        (lambda: brier([[0.5]], [[2]]), "y of brier must hold only 0 and 1"),
        (lambda: reliability([[0.5]], [[1]], 0), "bins of reliability"),
        (lambda: reliability([[0.5]], [[1]], strategy="mas"), "did you mean 'mass'"),
        (lambda: reliability([[0.5]], [[1]], label=1), "label of reliability"),
        (lambda: expected_error(np.empty((0, 2)), np.empty((0, 2))), "at least one row"),
        (lambda: log_loss([[0.5, 0.5]], [3]), "class ids in y of log_loss"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


# A forest on a rare event: what it said, and what was true, by deciles; the base rate is 5 %.
SAID = np.array([0.0014, 0.004, 0.008, 0.013, 0.019, 0.027, 0.037, 0.050, 0.085, 0.26])
TRUE = np.array([0.0124, 0.010, 0.010, 0.012, 0.014, 0.017, 0.020, 0.023, 0.070, 0.32])


def forest(n, rng, true=TRUE):
    """Rows of the forest, or of one whose words were true."""
    decile = np.arange(n) % 10
    y = (rng.random(n) < true[decile]).astype(int)
    return omma.Batch.of(SAID[decile] * rng.uniform(0.99, 1.01, n), y)


@pytest.mark.parametrize(("n", "least"), [(2000, 0.4), (5000, 0.95), (10_000, 1.0)])
def test_a_forest_that_is_off_where_rates_are_small_does_not_look_calibrated(n, least):
    rng = np.random.default_rng(0)
    found = [CalibrationCheck.of(forest(n, rng)).is_off for _ in range(40)]
    assert np.mean(found) >= least
    by_mistake = [CalibrationCheck.of(forest(n, rng, SAID)).is_off for _ in range(200)]
    assert np.mean(by_mistake) <= 0.035  # two tests at 1 %, and three standard errors


def test_all_bins_together_find_what_no_bin_shows():
    """Each bin is off by a little more than a standard error, and all to the same side."""
    count, share = np.full(10, 400), np.linspace(0.1, 0.9, 10)
    off = share + 1.6 * np.sqrt(share * (1 - share) / count)
    curve = Reliability(np.linspace(0, 1, 11), share, off, count)
    assert not curve.beyond_chance.any()
    assert curve.p_value < 0.01
    right = Reliability(np.linspace(0, 1, 11), share, share, count)
    assert right.p_value > 0.99


def test_of_few_rows_nothing_is_said():
    for eta, y in (([0.1, 0.4, 0.8], [0, 1, 1]), ([0.02] * 50, [0] * 50), ([0.7], [1])):
        check = CalibrationCheck.of(omma.Batch.of(eta, y))
        assert check.is_thin
        assert not check.is_off
        assert not check.looks_calibrated
        assert str(check).startswith("Too few labels to say whether")
    # Few rows are enough for what is far off.
    check = CalibrationCheck.of(omma.Batch.of([0.001] * 20, [1] * 5 + [0] * 15))
    assert check.is_off
    assert str(check).startswith("The probabilities do not look calibrated")


def test_a_larger_unit_of_weights_is_no_more_evidence():
    rng = np.random.default_rng(1)
    eta = rng.uniform(0.2, 0.4, 300)
    y = (rng.random(300) < eta).astype(int)
    plain = CalibrationCheck.of(omma.Batch.of(eta, y))
    heavy = CalibrationCheck.of(omma.Batch.of(eta, y, np.full(300, 1000.0)))
    assert heavy.looks_calibrated == plain.looks_calibrated
    assert heavy.chance_error == pytest.approx(plain.chance_error, rel=0.05)

"""Logits and their inverse of the kernels, against NumPy's in more digits."""

import numba
import numpy as np
import pytest

from omma.kernels.calibrate import LARGE, logit, sigmoid
from omma.kernels.layout import LEAST, MOST

DIGITS = 1e-12
UNIT = np.finfo(np.float64).eps
# With fewer bits there is nothing to compare with, as on some processors.
more_digits = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > UNIT / 1000, reason="no floats of more digits here"
)


@numba.njit(error_model="numpy")
def of_all(given, inverse):
    out = np.empty_like(given)
    if inverse:
        for i in range(given.shape[0]):
            out[i] = sigmoid(given[i])
    else:
        for i in range(given.shape[0]):
            out[i] = logit(given[i])
    return out


@more_digits
def test_logits_are_exact_to_twelve_digits():
    rng = np.random.default_rng(0)
    small = 10.0 ** rng.uniform(-12, 0, 20_000)
    eta = np.concatenate((rng.random(20_000), small, 1.0 - small, np.linspace(0.3, 0.7, 4001)))
    eta = np.clip(eta, LEAST, MOST)
    wide = eta.astype(np.longdouble)
    expected = np.log(wide / (1.0 - wide))
    found = of_all(eta, False)
    apart = np.abs(expected) > 0.1  # nearer to one half, the rounding of 1 - eta is more of it
    assert np.abs(found[apart] / expected[apart] - 1.0).max() < DIGITS
    assert np.abs(found - expected)[~apart].max() < DIGITS / 10
    ends = of_all(np.array([0.0, LEAST / 2, LEAST, 0.5, MOST, 1.0]), False)
    least, most = np.log(LEAST), np.log(MOST / (1.0 - MOST))
    assert ends == pytest.approx([least, least, least, 0.0, most, most], rel=1e-9)


@more_digits
def test_sigmoids_are_exact_to_twelve_digits():
    rng = np.random.default_rng(1)
    x = np.concatenate((rng.normal(size=20_000), rng.uniform(-LARGE, LARGE, 20_000), [0.0]))
    expected = 1.0 / (1.0 + np.exp(-x.astype(np.longdouble)))
    found = of_all(x, True)
    assert np.abs(found / expected - 1.0).max() < DIGITS
    assert found.max() <= 1.0
    assert found[-1] == 0.5
    ends = of_all(np.array([-1e300, -LARGE, LARGE, 1e300]), True)
    assert ends[0] == ends[1] > 0.0
    assert ends[2] == ends[3] == 1.0


def test_both_rise_and_one_undoes_the_other():
    eta = np.linspace(1e-6, 1.0 - 1e-6, 10_001)
    logits = of_all(eta, False)
    assert (np.diff(logits) > 0.0).all()
    assert of_all(logits, True) == pytest.approx(eta, rel=2 * DIGITS)
    assert logits == pytest.approx(-logits[::-1], rel=1e-9, abs=1e-15)

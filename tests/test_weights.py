"""A row of weight w counts as w rows, in comparisons and in figures of calibration too."""

import numpy as np
import pytest
import sklearn.metrics as skl
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import omma
from omma.calibration import brier, expected_error, log_loss, reliability


@st.composite
def weighed(draw):
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    eta = draw(hnp.arrays(float, (n, m), elements=st.sampled_from([0.0, 0.1, 0.25, 0.7, 1.0])))
    y = draw(hnp.arrays(np.int8, (n, m), elements=st.integers(0, 1)))
    weights = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    weights[0] = 2
    return eta, y, weights


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@given(case=weighed())
@settings(max_examples=50)
def test_calibration_counts_a_row_as_often_as_it_weighs(layout, case):
    eta, y, weights = case
    again = np.repeat(np.arange(len(eta)), weights)
    for figure in (brier, log_loss, expected_error):
        found = figure(layout(eta), y, weights=weights)
        assert found == pytest.approx(figure(layout(eta[again]), y[again]))
    found = reliability(layout(eta), y, bins=4, weights=weights)
    expected = reliability(layout(eta[again]), y[again], bins=4)
    np.testing.assert_allclose(found.count, expected.count)
    np.testing.assert_allclose(found.predicted, expected.predicted)
    np.testing.assert_allclose(found.observed, expected.observed)


def test_calibration_agrees_with_scikit_learn():
    g = np.random.default_rng(0)
    eta, weights = g.random(100), g.random(100)
    y = (g.random(100) < eta).astype(int)
    assert brier(eta, y, weights=weights) == pytest.approx(
        skl.brier_score_loss(y, eta, sample_weight=weights)
    )
    assert log_loss(eta, y, weights=weights) == pytest.approx(
        skl.log_loss(y, eta, sample_weight=weights)
    )


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_bins_of_equal_mass_hold_equal_weight(layout):
    g = np.random.default_rng(0)
    eta, weights = g.random((2000, 1)), g.integers(0, 5, 2000)
    eta[:100] = 0
    found = reliability(layout(eta), eta < 0.5, bins=5, strategy="mass", weights=weights)
    np.testing.assert_allclose(found.count / weights.sum(), 0.2, atol=0.01)


def test_weights_that_say_nothing_are_refused():
    with pytest.raises(ValueError, match="weights of brier must not all be 0"):
        brier([0.5], [1], weights=[0.0])
    with pytest.raises(ValueError, match="weights of log_loss must have the shape"):
        log_loss([0.5], [1], weights=[1.0, 2.0])


def test_a_comparison_weighs_rows():
    eta, y = omma.datasets.long_tail(n=300, m=5, seed=0)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    found = omma.compare(
        eta, y, ["macro_f1"], ["baseline", "omma"], weights=weights, seeds=[1], priors=1e-6
    )
    for name, policy in (("baseline", omma.Threshold(0.5)), ("omma", omma.OMMA("macro_f1"))):
        trace = omma.replay(policy, eta, y, metric="macro_f1", seed=1, weights=weights)
        assert found.cell(name, "macro_f1").mean == trace.value
    plain = omma.compare(eta, y, ["macro_f1"], ["baseline"], seeds=[1], priors=1e-6)
    assert plain.cell("baseline", "macro_f1").mean != found.cell("baseline", "macro_f1").mean
    with pytest.raises(ValueError, match="weights of compare must have the shape"):
        omma.compare(eta, y, weights=[1.0])

"""Derivatives of whole metrics are those of the values that kernels compute, ε and λ included."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import omma
from omma.counts import state_of
from omma.kernels.objectives import with_epsilon
from omma.kernels.value import evaluate

NAMES = ["gmean", "hmean", "qmean", "kappa", "mcc", "accuracy", "balanced_accuracy"]
SUMS = {
    "kappa_beside_f1": omma.metric("multiclass_kappa") + 2 * omma.metric("macro_f1"),
    "mcc_beside_hmean": omma.metric("multiclass_mcc") - omma.metric("multiclass_hmean"),
}
METRICS = {name: omma.metric(f"multiclass_{name}") for name in NAMES} | SUMS


def value(metric, cells, n, prior, epsilon):
    """The metric as kernels value it: prior added, ε in place."""
    state = state_of(omma.Counts(*cells, n))
    term = with_epsilon(metric.term(exact=True), epsilon)
    return evaluate(term, prior, state.cells, state.totals)


def differences(metric, cells, n, prior, epsilon, cell, step=1e-4):
    """By the fraction of one cell of each label, the others held."""
    found = []
    for j in range(cells.shape[1]):
        low, high = cells.copy(), cells.copy()
        low[cell, j] -= step
        high[cell, j] += step
        rise = value(metric, high, n, prior, epsilon) - value(metric, low, n, prior, epsilon)
        found.append(rise / (2 * step) * (n + 4 * prior))
    return np.array(found)


def inner_cells(seed, m=4):
    """Counts of classes, one a row, with every count well above zero."""
    rng = np.random.default_rng(seed)
    confusion = rng.uniform(2, 10, (m, m)) + 15 * np.eye(m)
    return np.stack((np.diag(confusion), confusion.sum(0), confusion.sum(1))), confusion.sum()


@pytest.mark.parametrize("prior", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("name", METRICS)
@given(seed=st.integers(0, 10**6), epsilon=st.sampled_from([1e-9, 1e-6, 1e-2, 0.2]))
@settings(max_examples=10)
def test_slope_and_offset_are_differences_of_the_value(name, prior, seed, epsilon):
    cells, n = inner_cells(seed)
    counts = omma.Counts(*cells, n)
    if name == "qmean":  # the gradient alone has ε beside its root, which the value has not
        epsilon = min(epsilon, 1e-6)
    slope, offset = METRICS[name].gradient(counts, prior, epsilon=epsilon)
    for cell, found in ((0, slope), (1, offset)):
        expected = differences(METRICS[name], cells, n, prior, epsilon, cell)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["macro_mcc", "micro_mcc", "macro_gmean", "macro_f1"])
def test_so_they_are_for_metrics_of_labels(name):
    metric, (cells, n) = omma.metric(name), inner_cells(3)
    for prior, epsilon in ((0.0, 1e-9), (0.5, 1e-9), (0.5, 1e-3)):
        slope, offset = metric.gradient(omma.Counts(*cells, n), prior, epsilon=epsilon)
        for cell, found in ((0, slope), (1, offset)):
            expected = differences(metric, cells, n, prior, epsilon, cell)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_kappa_with_another_total_than_its_fellows():
    """With rows that have no class yet, shares of classes are not fractions of the rows."""
    cells, n = inner_cells(5)
    metric = METRICS["kappa_beside_f1"]
    slope, offset = metric.gradient(omma.Counts(*cells, 2 * n), 0.3)
    for cell, found in ((0, slope), (1, offset)):
        expected = differences(metric, cells, 2 * n, 0.3, 1e-9, cell)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_epsilon_of_hmean_is_on_the_cell():
    """m / Σ positive / (tp + ε), in fractions."""
    cells, n = inner_cells(7)
    tp, _, positive = cells / n
    eps = 0.03
    slope, offset = omma.metric("multiclass_hmean").gradient(omma.Counts(*cells, n), epsilon=eps)
    whole = (positive / (tp + eps)).sum()
    np.testing.assert_allclose(slope, 4 / whole**2 * positive / (tp + eps) ** 2)
    np.testing.assert_array_equal(offset, 0.0)
    assert value(omma.metric("multiclass_hmean"), cells, n, 0.0, eps) == pytest.approx(4 / whole)


def test_no_hit_and_no_row_leave_hmean_a_number():
    counts = omma.Counts([0.0, 5.0, 0.0], [0.0, 9.0, 3.0], [0.0, 8.0, 4.0], 12)
    slope, offset = omma.metric("multiclass_hmean").gradient(counts)
    assert np.isfinite([slope, offset]).all()

"""Bounds as the paper writes them."""

import math

import numpy as np
import pytest

from omma_study.theory import (
    Constants,
    Smoothing,
    Task,
    estimates_bound,
    frequency_bound,
    omma_bound,
    smoothed_bound,
)
from omma_study.theory.simulations.bounds import first_useful

FEW = Constants(1.5, 4.0)


def test_the_main_bound_and_that_of_estimates():
    for n in (1, 10, 12_345):
        expected = 4.0 * 3 * (1 + math.log(n)) / n + 2 * math.sqrt(2) * 1.5 * 0.01
        assert omma_bound(n, FEW, Task.multilabel(3), error=0.01) == pytest.approx(expected)
        expected = 4.0 * (2 + math.log(n)) / n
        assert estimates_bound(n, FEW, Task.multiclass()) == pytest.approx(expected)


def test_the_best_gamma_is_the_one_for_which_the_bound_is_least():
    task, form, n = Task.multilabel(2), Smoothing(alpha=0.7, beta=0.5), 5000

    def bound(gamma):
        return form.beta * task.a * (1 + math.log(n)) / (gamma * n) + form.alpha * gamma

    best = form.best_gamma(n, task)
    assert bound(best) <= min(bound(0.99 * best), bound(1.01 * best))
    assert smoothed_bound(n, 1.0, task, form) == pytest.approx(bound(best))
    moreau = 3.0 * math.sqrt(2 * task.a * (1 + math.log(n)) / n)
    assert smoothed_bound(n, 3.0, task) == pytest.approx(moreau)


def test_the_bound_that_depends_on_frequencies():
    n, m, rarest, error = 10_000, 3, 0.2, 0.05
    a, b = 3, math.sqrt(2)
    expected = (
        (2 + 12 * a * 1.5 * math.sqrt(math.log(n))) / math.sqrt(n)
        + 4.0 * a * (1 + math.log(n)) / n
        + 2 * b * 1.5 / n
        + m * math.sqrt(n) * math.exp(-(rarest**2) * math.sqrt(n) / 2)
        + 1 / n
        + 2 * b * 1.5 * error
    )
    assert frequency_bound(n, FEW, Task.multilabel(3), m, rarest, error) == pytest.approx(expected)
    assert first_useful("recall", 0.1) < first_useful("recall", 0.01)


def test_arrays_and_infinity():
    rows = np.array([10, 100, 1000])
    bounds = omma_bound(rows, FEW, Task.multiclass())
    assert bounds.shape == (3,)
    assert (np.diff(bounds) < 0).all()
    endless = Constants(math.inf, math.inf)
    assert omma_bound(10, endless, Task.multiclass()) == math.inf


def test_bad_input():
    with pytest.raises(ValueError, match="n of omma_bound must be at least 1, got 0"):
        omma_bound(0, FEW, Task.multiclass())
    with pytest.raises(ValueError, match="error of a bound must be"):
        omma_bound(10, FEW, Task.multiclass(), error=-1.0)

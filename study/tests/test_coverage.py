"""``omma_study.coverage``: samples follow the true probabilities, and values are expected ones."""

import numpy as np
import pytest

import omma
from omma_study.coverage import Population, simulate
from omma_study.theory import Discrete


def population(classes=False, m=3):
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.ones(m), 400) if classes else rng.beta(1, 2, (400, m))
    return Population(eta**1.5, Discrete(eta, multiclass=classes))


@pytest.mark.parametrize("classes", [False, True])
def test_samples_follow_the_true_probabilities(classes):
    pool = population(classes)
    eta, y = pool.draw(20_000, np.random.default_rng(1))
    assert eta.shape == (20_000, 3)
    rates = np.bincount(y, minlength=3) / 20_000 if classes else y.mean(axis=0)
    assert rates == pytest.approx(pool.truth.frequencies, abs=0.015)


def test_a_rule_is_judged_by_expected_counts():
    pool = population(m=1)
    rule = omma.Rule(np.ones(1), np.full(1, -0.3))
    counts = pool.counts(rule)
    predicted = pool.eta >= 0.3
    assert counts.predicted == pytest.approx(predicted.mean(axis=0))
    assert counts.tp == pytest.approx((pool.truth.points * predicted).mean(axis=0))


def test_a_cell_says_how_often_intervals_hold():
    result = simulate(population(), "macro_f1", "labels_per_row <= 1", 60, 3)
    assert result["draws"] == 3
    assert 0.0 <= result["covered"] <= 1.0
    assert abs(result["optimism"]) < 0.3
    assert "limit_covered" in result

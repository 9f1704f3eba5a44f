"""Known distributions, their best classifiers, and regret measured on them."""

import numpy as np
import pytest
from scipy import integrate, stats

import omma
from omma_study.theory import (
    Beta,
    Discrete,
    Independent,
    LogisticNormal,
    Problem,
    Softmax,
    exhaustive,
    measure,
    optimum,
    utilities,
)
from omma_study.theory.regret import counts_at, fitted_rate


@pytest.mark.parametrize("cut", [0.0, 0.03, 0.4, 0.97])
def test_marginals_are_integrated(cut):
    density = stats.beta(0.5, 2.0).pdf
    expected = [integrate.quad(f, cut, 1)[0] for f in (density, lambda x: x * density(x))]
    assert Beta(0.5, 2.0).above(cut) == pytest.approx(expected, abs=1e-7)
    marginal = LogisticNormal(-1.0, 1.5)
    drawn = marginal.quantiles((np.arange(200_000) + 0.5) / 200_000)
    expected = [(drawn >= cut).mean(), (drawn * (drawn >= cut)).mean()]
    assert marginal.above(cut) == pytest.approx(expected, abs=2e-5)


def test_draws_have_the_frequencies():
    rng = np.random.default_rng(0)
    points = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    for distribution in (
        Independent(Beta(0.5, 2.0), LogisticNormal(-1.0, 2.0)),
        Softmax([0.0, -1.0, -2.0], 1.0),
        Discrete(points, [1, 3], multiclass=True),
    ):
        stream = distribution.draw(40_000, rng)
        assert stream.y.mean(axis=0) == pytest.approx(distribution.frequencies, abs=0.01)
        assert stream.eta.mean(axis=0) == pytest.approx(distribution.frequencies, abs=0.01)
        if distribution.multiclass:
            assert (stream.y.sum(axis=1) == 1).all()


def test_counts_of_a_rule_are_those_of_many_rows():
    rng = np.random.default_rng(1)
    labels = Independent(Beta(0.5, 2.0), LogisticNormal(-1.0, 2.0))
    classes = Softmax([0.0, -1.0, -2.0], 1.0)
    cases = [
        (labels, omma.Rule(np.array([2.0, 1.0]), np.array([-0.5, -0.3]))),
        (labels, omma.Rule(np.array([2.0, 1.0]), np.array([-0.5, -0.3]), 1)),
        (classes, omma.Rule(np.array([1.0, 2.0, 3.0]), np.zeros(3), 1)),
    ]
    for distribution, rule in cases:
        eta = distribution.draw(100_000, rng).eta
        decided = rule.predict(eta)
        counts = distribution.counts(rule)
        assert counts.predicted == pytest.approx(decided.mean(axis=0), abs=0.01)
        assert counts.tp == pytest.approx((eta * decided).mean(axis=0), abs=0.01)


@pytest.mark.parametrize("name", ["f1", "gmean", "hmean", "jaccard"])
def test_the_best_threshold_is_that_of_a_scan(name):
    distribution, metric = Independent(Beta(0.5, 2.0)), omma.metric(name)
    best = optimum(metric, distribution)
    cuts = np.linspace(0.001, 0.999, 2000)
    scanned = [
        metric.value(distribution.counts(omma.Rule(np.ones(1), np.array([-cut])))) for cut in cuts
    ]
    assert best.value >= max(scanned) - 1e-12
    assert best.value == pytest.approx(max(scanned), abs=1e-5)
    assert 0 <= best.gap + 1e-12 <= 1e-8


def test_mixtures_beat_single_classifiers_of_a_support():
    support = Discrete([[0.6, 0.4], [0.2, 0.8], [0.5, 0.5]], [3, 1, 1], multiclass=True)
    metric = omma.metric("multiclass_hmean")
    alone, mixed = exhaustive(metric, support, 1), optimum(metric, support, 1)
    assert alone.value < mixed.value <= alone.value + 0.2
    assert mixed.gap <= 1e-6
    with pytest.raises(ValueError, match="exhaustive can try"):
        exhaustive(metric, Discrete(np.full((20, 2), 0.5)), 1)


def test_what_is_subtracted_is_zero_on_average_and_most_of_the_noise():
    distribution, metric = Independent(Beta(0.5, 2.0)), omma.metric("f1")
    problem = Problem(distribution, metric, optimum(metric, distribution))
    rows, sequences = [200, 2000], 200
    measured = measure(problem, omma.OMMA("f1"), rows, sequences, seed=7)
    plain = np.empty((sequences, 2))
    for i in range(sequences):
        stream = distribution.draw(2000, np.random.default_rng((7, i)))
        decided = omma.replay(omma.OMMA("f1"), stream.eta, stream.y).predictions
        seen = counts_at(stream.y, decided, np.array(rows))
        plain[i] = [problem.best.value - metric.value(counts) for counts in seen]
    difference = plain - measured.policy
    error = difference.std(axis=0) / np.sqrt(sequences)
    assert (np.abs(difference.mean(axis=0)) < 3.5 * error).all()
    assert (measured.policy.std(axis=0) < 0.6 * plain.std(axis=0)).all()
    assert (measured.policy.std(axis=0)[1] < 0.35 * plain.std(axis=0)[1]).all()


def test_regret_of_a_smooth_concave_utility_falls_as_1_over_n():
    distribution, metric = Independent(Beta(0.5, 2.0)), utilities.geometric().metric
    problem = Problem(distribution, metric, optimum(metric, distribution))
    rows = [100, 300, 1000, 3000, 10_000, 30_000]
    measured = measure(problem, omma.OMMA(metric), rows, 24, seed=0)
    rate = fitted_rate(measured.rows, measured.regret, start=100)
    # ln n / n falls as n^-0.88 on this stretch, 1/n as n^-1.
    assert rate.low < -0.88 < rate.high + 0.1
    assert -1.05 < rate.exponent < -0.75
    assert (measured.policy.mean(axis=0) > measured.regret.mean(axis=0)).all()  # by concavity


def test_a_curve_that_crosses_zero_has_no_rate():
    rows = np.array([1000, 2000, 4000])
    assert fitted_rate(rows, np.array([[1e-3, -1e-3, 1e-3], [1e-3, 0.0, 1e-4]])) is None


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Discrete([1.5]), "points of Discrete must be rows of probabilities"),
        (lambda: Discrete([0.5], [-1.0]), "weights a number of at least 0"),
        (lambda: Discrete([[0.5, 0.2]], multiclass=True), "add up to 1"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()

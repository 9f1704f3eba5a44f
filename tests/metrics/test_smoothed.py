"""Minima of rates: supergradients, and their Moreau-Yosida smoothing."""

import math
import pickle

import numpy as np
import pytest
from scipy import optimize, sparse
from strategies import interior_counts

import omma
from omma import Counts
from omma.metrics import minimum, smoothed, smoothed_value

LABEL = {
    "rates": omma.metric("min_recall_specificity"),
    "cells": minimum("tp", "tn"),
    "mixed": minimum("accuracy", "recall"),
}
PARTS = {  # the same minima from the definition: fractions at fixed frequency p
    "rates": lambda tp, fp, p: min(tp / p, 1 - fp / (1 - p)),
    "cells": lambda tp, fp, p: min(tp, 1 - p - fp),
    "mixed": lambda tp, fp, p: min(tp + 1 - p - fp, tp / p),
}
EVERY = {
    **{f"binary_{name}": one for name, one in LABEL.items()},
    **{f"macro_{name}": omma.metrics.macro(one) for name, one in LABEL.items()},
    **{f"micro_{name}": omma.metrics.micro(one) for name, one in LABEL.items()},
    "classes": omma.metric("multiclass_min_recall"),
}


def counts_of(metric, seed):
    if metric.multiclass:
        matrix = np.random.default_rng(seed).dirichlet(np.full(16, 2.0)).reshape(4, 4)
        return Counts.from_confusion(100 * matrix)
    return interior_counts(seed, m=1 if metric.binary else 3)


def at_the_same_frequencies(counts, rng):
    """Other counts that a classifier could have on the same rows."""
    tp = counts.positive * rng.random(counts.m)
    fp = (counts.n - counts.positive) * rng.random(counts.m)
    return Counts(tp, tp + fp, counts.positive, counts.n)


def balanced(counts):
    """Counts at the kink: every rate is one half."""
    half = counts.positive / 2
    return Counts(half, half + (counts.n - counts.positive) / 2, counts.positive, counts.n)


@pytest.mark.parametrize("metric", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("gamma", [None, 0.02])
def test_it_lies_below_its_supergradient_everywhere(metric, gamma):
    used = metric if gamma is None else smoothed(metric, gamma)
    rng = np.random.default_rng(0)
    for seed in range(6):
        start = counts_of(metric, seed)
        start = balanced(start) if seed % 2 else start
        slope, offset = used.gradient(start)
        here = smoothed_value(used, start)
        for _ in range(30):
            other = at_the_same_frequencies(start, rng)
            step = slope @ (other.tp - start.tp) + offset @ (other.predicted - start.predicted)
            assert smoothed_value(used, other) <= here + step / start.n + 1e-7


def test_at_a_kink_of_classes_all_that_are_smallest_share():
    slope, offset = omma.metric("multiclass_min_recall").gradient(
        Counts([5, 5, 9], [10, 10, 10], [10, 10, 10], 30)
    )
    np.testing.assert_allclose(slope, [1.5, 1.5, 0.0], rtol=1e-6)
    assert not offset.any()


def envelope(name, tp, fp, p, gamma):
    """The Moreau-Yosida smoothing by its definition, maximized by brute force."""

    def loss(step):
        inside = PARTS[name](tp + step[0], fp + step[1], p)
        return (step @ step) / (2 * gamma) - inside

    tries = [
        optimize.minimize(
            loss, start, method="Nelder-Mead", options={"xatol": 1e-11, "fatol": 1e-13}
        ).fun
        for start in (np.zeros(2), np.array([gamma, -gamma]))
    ]
    return -min(tries)


@pytest.mark.parametrize("name", LABEL)
@pytest.mark.parametrize("gamma", [0.003, 0.05, 1.0])
def test_smoothing_is_moreau_yosida(name, gamma):
    for seed in range(4):
        counts = interior_counts(seed, m=1)
        tp, fp, p = (float(cell[0] / counts.n) for cell in (counts.tp, counts.fp, counts.positive))
        found = smoothed_value(smoothed(LABEL[name], gamma), counts)
        assert found == pytest.approx(envelope(name, tp, fp, p, gamma), abs=1e-6)


@pytest.mark.parametrize("gamma", [1e-4, 0.01, 0.3])
def test_smoothing_over_classes_is_moreau_yosida(gamma):
    metric = smoothed("multiclass_min_recall", gamma)
    for seed in range(4):
        counts = counts_of(metric, seed)
        p, tp = counts.positive / counts.n, counts.tp / counts.n
        # max over tp', v of v - |tp' - tp|² / 2γ with v <= tp'/p: each tp' goes up just as needed.
        best = optimize.minimize_scalar(
            lambda v, p=p, tp=tp: (np.maximum(v * p - tp, 0) ** 2).sum() / (2 * gamma) - v,
            bounds=(0, 40), method="bounded", options={"xatol": 1e-12},
        )  # fmt: skip
        assert smoothed_value(metric, counts) == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize("metric", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("options", [{"gamma": 0.02}, {"gamma": "auto"}, {"rows": 5000}])
def test_smoothed_gradient_is_the_slope_of_the_smoothed_value(metric, options):
    used = smoothed(metric, **options)
    for seed in range(3):
        counts = counts_of(metric, seed)
        gradients = dict(zip(("tp", "predicted"), used.gradient(counts), strict=True))
        for cell, found in gradients.items():
            for j in range(counts.m):
                ends = []
                for h in (1e-6, -1e-6):
                    moved = counts.copy()
                    getattr(moved, cell)[j] += h * counts.n
                    ends.append(smoothed_value(used, moved))
                assert found[j] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-5)


def test_it_exceeds_the_minimum_by_at_most_half_gamma_times_the_square_of_the_steepness():
    for seed in range(10):
        counts = interior_counts(seed, m=1)
        p = float(counts.positive[0] / counts.n)
        plain = LABEL["rates"].value(counts)
        gap = smoothed_value(smoothed(LABEL["rates"], 0.01), counts) - plain
        assert -1e-7 <= gap <= 0.005 / min(p, 1 - p) ** 2 + 1e-7


def test_auto_is_the_papers_gamma():
    counts = interior_counts(3, m=1)
    p = float(counts.positive[0] / counts.n)
    steepness = max(1 / p, 1 / (1 - p))
    for rows, n in ((None, counts.n), (777, 777)):
        gamma = math.sqrt(2 * (1 + math.log(n)) / n) / steepness
        auto, fixed = smoothed(LABEL["rates"], rows=rows), smoothed(LABEL["rates"], gamma)
        assert smoothed_value(auto, counts) == pytest.approx(smoothed_value(fixed, counts))
        np.testing.assert_allclose(auto.gradient(counts), fixed.gradient(counts), rtol=1e-6)


def test_what_it_says_of_itself():
    for metric in EVERY.values():
        assert (metric.concave, metric.smooth) == (True, False)
        assert (smoothed(metric).concave, smoothed(metric).smooth) == (True, True)
        assert (metric.linear, smoothed(metric).linear_fractional) == (False, False)
        counts = counts_of(metric, 1)
        assert smoothed(metric).value(counts) == metric.value(counts)
    assert not minimum("precision", "recall").concave
    assert smoothed(smoothed("min_recall_specificity", 1.0)) == smoothed("min_recall_specificity")
    assert smoothed("multiclass_min_recall").name == "smoothed_multiclass_min_recall"
    weighted = omma.metrics.Weighted(minimum("recall", "specificity"))
    assert smoothed(weighted).name == "weighted_smoothed_min_recall_specificity"


POLICIES = {
    "binary": omma.OMMA(smoothed("min_recall_specificity")),
    "macro": omma.OMMA(smoothed("macro_min_recall_specificity"), k=2),
    "macro_fixed": omma.OMMA(smoothed("macro_min_recall_specificity", 0.01)),
    "micro": omma.OMMA(smoothed("micro_min_recall_specificity", rows=60), feedback="estimates"),
    "own": omma.OMMA(smoothed(omma.metrics.macro(minimum("tp", "tn"))), k=1),
    "greedy": omma.Greedy(smoothed("macro_min_recall_specificity"), k=2),
    "classes": omma.OMMA(smoothed("multiclass_min_recall")),
    "kinked": omma.OMMA("multiclass_min_recall"),
    "sum": omma.OMMA(smoothed("multiclass_min_recall") + omma.metric("macro_f1")),
}


def stream(policy, n=60, m=5):
    rng = np.random.default_rng(4)
    if policy.objective.binary:
        eta = rng.beta(1, 3, (n, 1))
        return eta, (rng.random((n, 1)) < eta).astype(np.int8)
    eta = rng.dirichlet(np.full(m, 0.5), n)
    eta[eta < 0.05] = 0
    y = np.zeros((n, m), dtype=np.int8)
    y[np.arange(n), [rng.choice(m, p=row / row.sum()) for row in eta]] = 1
    return eta, y


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_stepping_is_replaying_dense_and_sparse(policy, tmp_path):
    eta, y = stream(policy)
    trace = omma.replay(policy, eta, y)
    thin = omma.replay(policy, sparse.csr_array(eta), sparse.csr_array(y))
    assert np.array_equal(thin.predictions.toarray(), trace.predictions)
    assert thin.state == trace.state
    learner = omma.OnlineClassifier(policy, eta.shape[1])
    for t, (row, true) in enumerate(zip(eta, y, strict=True)):
        assert np.array_equal(learner.predict(row), trace.predictions[t])
        learner.update(true)
        if t == 30:
            learner.save(tmp_path / "half.npz")
            learner = pickle.loads(pickle.dumps(omma.OnlineClassifier.load(tmp_path / "half.npz")))
    assert learner.state == trace.state
    assert learner.value == trace.value
    assert learner.policy == policy


def test_smoothing_finds_what_the_kink_hides():
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.array([4.0, 1.0, 0.4]), 4000)
    y = np.array([rng.choice(3, p=row) for row in eta])
    kinked = omma.replay(omma.OMMA("multiclass_min_recall"), eta, y).value
    smooth = omma.replay(omma.OMMA(smoothed("multiclass_min_recall")), eta, y).value
    most = omma.replay(omma.TopK(1), eta, y, metric="multiclass_min_recall").value
    assert smooth > kinked > most


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: smoothed("macro_f1"), "must be a minimum of rates.*got macro_f1"),
        (lambda: smoothed(minimum("precision", "recall")), "denominators.*min.precision, recall"),
        (lambda: smoothed("min_recall_specificity", 0), "gamma of smoothed.*above 0, got 0"),
        (lambda: smoothed("min_recall_specificity", "big"), "a number or 'auto', got 'big'"),
        (lambda: smoothed("min_recall_specificity", 0.1, rows=9), "rows of smoothed goes with"),
        (lambda: smoothed("min_recall_specificity", rows=0), "rows of smoothed must be a whole"),
        (lambda: minimum("gmean", "recall"), "a part of minimum must be a rate.*got 'gmean'"),
        (lambda: minimum("recal", "tn"), "a part of minimum must be a rate.*got 'recal'"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(make, says):
    with pytest.raises((ValueError, TypeError), match=says):
        make()


def test_a_smoothed_metric_in_json_may_leave_out_its_options():
    short = omma.metrics.metric_from_json({"smoothed": "min_recall_specificity"})
    assert short == omma.metrics.smoothed("min_recall_specificity")

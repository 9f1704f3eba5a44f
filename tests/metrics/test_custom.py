"""A user's own metric: compiled, derived, checked, and as good as a built-in one."""

import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from scipy import sparse
from strategies import (
    dense,
    interior_counts,
    own_f1,
    own_gmean,
    own_jaccard,
    stepwise,
    stream,
)

import omma
from omma import Counts
from omma.kernels.custom import Dual
from omma.metrics import custom

ORIGINALS = {own_f1: "f1", own_jaccard: "jaccard", own_gmean: "gmean"}
# Each function and average is compiled apart, which takes seconds: so not all pairs of them.
COPIES = [(own_f1, "macro"), (own_jaccard, "micro"), (own_gmean, "macro")]


def random_fractions(count=20):
    return np.random.default_rng(0).dirichlet((2, 2, 2, 2), size=count)


# The same as a built-in metric


@pytest.mark.parametrize(("psi", "average"), COPIES)
def test_a_copy_has_the_value_and_gradient_of_the_original(psi, average):
    ours = custom(psi, average=average)
    original = omma.metric(f"{average}_{ORIGINALS[psi]}")
    for seed in range(5):
        counts = interior_counts(seed)
        assert ours.value(counts) == pytest.approx(original.value(counts), rel=1e-6)
        for prior in (0.0, 0.1):
            found, expected = ours.gradient(counts, prior), original.gradient(counts, prior)
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_copy_decides_as_the_original_row_by_row():
    eta, y = stream(1, n=60)
    for k in (None, 2):
        original = omma.OMMA("micro_jaccard", k=k)
        ours, _ = stepwise(omma.OMMA(custom(own_jaccard, average="micro"), k=k), eta, y)
        np.testing.assert_array_equal(ours, omma.replay(original, eta, y).predictions)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_copy_replays_as_the_original_and_as_its_steps(layout):
    eta, y = stream(2, n=60)
    metric = custom(own_f1, average="macro")
    for k, feedback in ((None, "labels"), (2, "labels"), (None, "estimates")):
        policy = omma.OMMA(metric, k=k, feedback=feedback)
        original = omma.OMMA("macro_f1", k=k, feedback=feedback)
        trace = omma.replay(policy, layout(eta), y)
        expected = omma.replay(original, layout(eta), y)
        np.testing.assert_array_equal(dense(trace.predictions), dense(expected.predictions))
        assert trace.counts == expected.counts
        assert trace.value == pytest.approx(expected.value, rel=1e-6)
        if feedback == "labels":
            steps, learner = stepwise(policy, layout(eta), y)
            np.testing.assert_array_equal(steps, dense(trace.predictions))
            assert learner.rule == trace.rule


def test_without_an_average_it_is_a_metric_of_one_label():
    metric = custom(own_jaccard)
    assert metric.binary
    assert metric.name == "own_jaccard"
    assert omma.metrics.macro(metric) == custom(own_jaccard, average="macro")
    assert omma.metrics.micro(metric).name == "micro_own_jaccard"
    y, p = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    assert metric.score(y, p) == pytest.approx(1 / 3)


def test_a_value_of_no_number_is_zero_division():
    def precision(tp, fp, fn, tn):
        return tp / (tp + fp)

    never = Counts([0.0, 2.0], [0.0, 2.0], [3.0, 3.0], 10)
    for psi in (precision, numba.njit(precision)):
        metric = custom(psi, average="macro")
        assert metric.value(never) == 0.5
        assert metric.value(never, zero_division=1.0) == 1.0


def test_rounding_never_makes_a_fraction_negative():
    # n - predicted - positive + tp is a hair below zero here; a root of it is no number.
    counts = Counts([0.1 + 0.2], [0.1 + 0.2], [0.3], 0.3)
    assert counts.tn[0] <= 0

    def roots(tp, fp, fn, tn):
        return math.sqrt(tn) + math.sqrt(fn)

    assert custom(roots).value(counts) == pytest.approx(0.0, abs=1e-7)


# What may be written


def expressions(x, y):
    return (
        x + y, 2 + x, x - 1, 2 - x, x * y, 3 * x, x / y, 3 / x, -x, +x, abs(x - y), np.abs(y - x),
        x**2, x**0.5, x**-1, x**0, 2.0**x, x**y, np.power(x, 2), np.negative(x),
        math.sqrt(x), np.sqrt(x), math.log(x), np.log(x), math.exp(x), np.exp(x),
        min(x, y), max(x, y), min(x, 0.1), max(0, x), np.minimum(x, y), np.maximum(y, x),
        np.add(x, y), np.subtract(x, 1.0), np.multiply(2.0, x), np.divide(x, y),
    )  # fmt: skip


compiled_expressions = numba.njit(expressions)


@numba.njit
def derived(x, y, out):
    found = compiled_expressions(Dual(x, 1.0, 0.0), Dual(y, 0.0, 1.0))
    for i, one in enumerate(found):
        out[i, 0], out[i, 1], out[i, 2] = one.value, one.along_tp, one.along_predicted


def test_duals_follow_the_rules_of_calculus():
    step = 1e-6
    for x, y in ((0.3, 0.7), (0.7, 0.3), (0.05, 0.9)):
        out = np.empty((len(expressions(x, y)), 3))
        derived(x, y, out)
        by_x = np.subtract(expressions(x + step, y), expressions(x - step, y)) / (2 * step)
        by_y = np.subtract(expressions(x, y + step), expressions(x, y - step)) / (2 * step)
        np.testing.assert_allclose(out[:, 0], expressions(x, y), rtol=1e-14)
        np.testing.assert_allclose(out[:, 1], by_x, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(out[:, 2], by_y, rtol=1e-7, atol=1e-8)


def branches(tp, fp, fn, tn):
    if tp > fp and not fn >= 0.5:
        return tp * tn
    if tp == fp or tn != tn or fp <= 0.05:
        return tp - fp
    return max(tp, 0.7 * fn) / (min(fp, tn) + 1)


def a_loop(tp, fp, fn, tn):
    total = tp
    for _ in range(3):
        total = total + fp
    return tp / total


def a_guard(tp, fp, fn, tn):
    if tp + fp == 0:
        return 0.0
    return tp / (tp + fp)


def a_guard_of_an_integer(tp, fp, fn, tn):
    return tp / (tp + fp) if tp + fp > 0 else 0


def a_default(tp, fp, fn, tn):
    value = 0.0
    if tp > 0.01:
        value = tp / (tp + fp)
    return value


def in_place(tp, fp, fn, tn):
    total = tp
    total += fp
    total *= 2
    return tp / total


def constants(tp, fp, fn, tn):
    return 0.25


WRITTEN = [branches, a_loop, a_guard, a_guard_of_an_integer, a_default, in_place, constants]


@pytest.mark.parametrize("psi", WRITTEN, ids=lambda psi: psi.__name__)
def test_branches_loops_and_guards_may_be_used(psi):
    metric = custom(psi)
    for tp, fp, fn, tn in random_fractions():
        counts = Counts([tp], [tp + fp], [tp + fn], 1.0)
        (slope,), (offset,) = metric.gradient(counts)
        step = 1e-7

        def at(more, fewer, cells=(tp, fp, fn, tn)):
            tp, fp, fn, tn = cells
            return psi(tp + more, fp - more + fewer, fn - more, tn + more - fewer)

        assert metric.value(counts) == pytest.approx(psi(tp, fp, fn, tn))
        assert slope == pytest.approx((at(step, 0) - at(-step, 0)) / (2 * step), abs=1e-5)
        assert offset == pytest.approx((at(0, step) - at(0, -step)) / (2 * step), abs=1e-5)


def test_a_kink_at_a_round_number_is_no_wrong_gradient():
    def recall_beyond_half(tp, fp, fn, tn):
        return max(tp / (tp + fn), 0.5)

    slope, offset = custom(recall_beyond_half).gradient(Counts([3], [4], [5], 10))
    assert slope[0] == pytest.approx(2.0)
    assert offset[0] == 0.0


def test_a_function_may_hold_values_and_call_compiled_ones():
    square = numba.njit(lambda x: x * x)

    def weighted(weight):
        def psi(tp, fp, fn, tn):
            return weight * square(tp) - fp

        return psi

    for weight in (1.0, 5.0):
        metric = custom(weighted(weight))
        assert metric.value(Counts([2], [3], [4], 10)) == pytest.approx(weight * 0.04 - 0.1)


# What cannot be compiled, and the way out


def unknown_function(tp, fp, fn, tn):
    return math.gamma(1 + tp) * own_f1(tp, fp, fn, tn)


def text(tp, fp, fn, tn):
    return {"f1": tp}["f1"]


def three_arguments(tp, fp, fn):
    return tp


@pytest.mark.parametrize("psi", [unknown_function, text, three_arguments])
def test_what_cannot_be_compiled_is_refused_with_reason_and_way_out(psi):
    message = rf"psi of custom must compile, and {psi.__name__} does not: \S.*; pass gradient="
    with pytest.raises(ValueError, match=message):
        custom(psi)


class Callable:
    def __call__(self, tp, fp, fn, tn):
        return tp


def test_an_object_that_is_no_plain_function_is_refused_with_a_way_out():
    with pytest.raises((TypeError, ValueError), match="psi of custom"):
        custom(Callable())


def gradient_of_f1(tp, fp, fn, tn):
    under = 2 * tp + fp + fn + 1e-9
    other = -2 * tp / under**2
    return 2 / under + 2 * other, other, other, 0.0


def uncompilable_f1(tp, fp, fn, tn):
    return {"f1": own_f1(tp, fp, fn, tn)}["f1"]


def test_a_gradient_is_the_way_out():
    metric = custom(uncompilable_f1, gradient=gradient_of_f1, average="macro")
    counts = interior_counts(3)
    original = omma.metric("macro_f1")
    assert metric.value(counts) == pytest.approx(original.value(counts), rel=1e-6)
    np.testing.assert_allclose(metric.gradient(counts), original.gradient(counts), rtol=1e-9)


def test_a_wrong_gradient_is_refused():
    def wrong(tp, fp, fn, tn):
        by_tp, by_fp, by_fn, by_tn = 2.0, -1.0, -1.0, 0.0
        return by_tp, by_fp, by_fn, by_tn

    with pytest.raises(ValueError, match="gradient of own_f1 must match its differences: at"):
        custom(own_f1, gradient=wrong)


def test_a_gradient_that_cannot_be_compiled_is_refused():
    def gradient(tp, fp, fn, tn):
        return [math.gamma(tp)] * 4

    with pytest.raises(ValueError, match="gradient of custom must compile, and gradient"):
        custom(own_f1, gradient=gradient)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_returns_no_number_is_refused(value):
    def psi(tp, fp, fn, tn):
        return tp * value

    with pytest.raises(ValueError, match="must return a finite number"):
        custom(psi)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"average": "mean"}, ValueError), ({"gradient": 3}, TypeError)],
)
def test_wrong_options_are_named(options, error):
    with pytest.raises(error, match=f"{next(iter(options))} of custom must be"):
        custom(own_f1, **options)
    with pytest.raises(TypeError, match="psi of custom must be a function"):
        custom("f1")


# Sums


def test_own_metrics_add_up_with_others():
    # A mean over classes must keep its size here, though alone it may lose a common factor.
    f1, gmean = custom(own_f1, average="macro"), omma.metric("multiclass_gmean")
    total = gmean - 0.5 * f1
    rng = np.random.default_rng(0)
    counts = Counts.from_confusion(rng.dirichlet(np.full(9, 2.0)).reshape(3, 3))
    assert total.value(counts) == pytest.approx(gmean.value(counts) - 0.5 * f1.value(counts))
    rule = omma.OMMA(total, prior=0.0).rule(omma.metrics.base.state_of(counts))
    for i, found in enumerate((rule.slope, rule.offset)):
        expected = gmean.gradient(counts)[i] - 0.5 * f1.gradient(counts)[i]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_sum_of_own_metrics_decides_as_one_of_the_originals():
    eta, y = stream(2, n=40)
    ours = custom(own_f1, average="macro") - 0.5 * custom(own_gmean, average="macro")
    originals = omma.metric("macro_f1") - 0.5 * omma.metric("macro_gmean")
    steps, _ = stepwise(omma.OMMA(ours), eta, y)
    np.testing.assert_array_equal(steps, omma.replay(omma.OMMA(originals), eta, y).predictions)


# Pickling


def test_a_policy_with_an_own_metric_pickles():
    metric = custom(own_f1, average="macro", concave=True)
    for one in (metric, 0.5 * metric + omma.metric("micro_f1")):
        policy = omma.OMMA(one, k=2)
        again = pickle.loads(pickle.dumps(policy))
        assert again == policy
        assert again.metric.name == one.name
        assert again.metric.concave == one.concave
        assert again.metric.value(interior_counts(1)) == one.value(interior_counts(1))


def test_a_pickled_policy_wakes_up_in_another_process(tmp_path):
    metric = custom(own_f1, average="macro")
    counts = interior_counts(2)
    work = (metric, (counts.tp, counts.predicted, counts.positive, counts.n))
    (tmp_path / "work.pickle").write_bytes(pickle.dumps(work))
    script = (
        "import pickle, sys, omma;"
        "metric, counts = pickle.load(open(sys.argv[1], 'rb'));"
        "sys.stdout.write(repr((metric.name, metric.value(omma.Counts(*counts)))))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "work.pickle")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == repr((metric.name, metric.value(counts)))


def test_registering_twice_compiles_once():
    assert custom(own_f1) is custom(own_f1)
    assert custom(own_f1, name="other") != custom(own_f1)

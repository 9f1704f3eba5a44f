"""A metric against the threshold, against a brute-force twin."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from strategies import close

import omma

SUMS = {"binary": ("f1", "recall"), "macro": ("macro_f1", "macro_gmean")}
chances = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))


@st.composite
def cases(draw, m=None):
    n = draw(st.integers(1, 12))
    m = draw(st.integers(1, 3)) if m is None else m
    eta = draw(hnp.arrays(float, (n, m), elements=chances))
    y = draw(hnp.arrays(np.int8, (n, m), elements=st.integers(0, 1)))
    exact = st.sampled_from([0.5, 1.0, 2.0])
    weights = draw(st.none() | hnp.arrays(float, n, elements=exact))
    return eta, y, weights


def few(n, m, seed):
    """Rows of a few labels."""
    return omma.datasets.long_tail(n=n, m=m, labels_per_row=0.4 * m, seed=seed)


def brute(metric, eta, y, weights, threshold):
    """Decide every row, and score."""
    return metric.score(y, ((eta >= threshold) & (eta > 0)).astype(int), weights)


@pytest.mark.parametrize("name", ["f1", "precision", "mcc", "gmean", "accuracy"])
@given(case=cases(m=1))
@settings(max_examples=40)
def test_one_label_is_what_brute_force_finds(name, case):
    eta, y, weights = (case[0][:, 0], case[1][:, 0], case[2])
    metric = omma.metric(name)
    (line,) = omma.curve(eta, y, name, weights=weights, bootstrap=0)
    assert set(line.thresholds) == {np.inf, *eta[eta > 0]}
    expected = [brute(metric, eta, y, weights, one) for one in line.thresholds]
    assert line.values == close(expected)
    assert line.value == close(max(expected))


@pytest.mark.parametrize("name", ["macro_f1", "macro_mcc"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@given(case=cases())
@settings(max_examples=30)
def test_a_macro_metric_has_a_line_for_each_label(name, layout, case):
    eta, y, weights = case
    curve = omma.curve(layout(eta), y, name, weights=weights, bootstrap=0)
    of = omma.metric(name).of
    for j, line in enumerate(curve):
        for threshold, value in zip(line.thresholds, line.values, strict=True):
            assert value == close(brute(of, eta[:, j], y[:, j], weights, threshold))
    mean = np.mean([line.value for line in curve])
    made = curve.rule.predict(eta)
    assert omma.metric(name).score(y, made, weights) == close(mean)


@pytest.mark.parametrize("name", ["micro_f1", "micro_gmean"])
@given(case=cases())
@settings(max_examples=40)
def test_a_micro_metric_has_one_threshold_for_all(name, case):
    eta, y, weights = case
    curve = omma.curve(eta, y, name, weights=weights, bootstrap=0)
    (line,) = curve
    assert set(line.thresholds) == {np.inf, *eta[eta > 0]}
    for threshold, value in zip(line.thresholds, line.values, strict=True):
        assert value == close(brute(omma.metric(name), eta, y, weights, threshold))
    assert omma.metric(name).score(y, curve.rule.predict(eta), weights) == close(line.value)


@given(case=cases(m=2), between=st.floats(0, 1))
@settings(max_examples=40)
def test_between_thresholds_the_upper_one_counts(case, between):
    eta, y, weights = case
    line = omma.curve(eta, y, "macro_f1", weights=weights, bootstrap=0)[1]
    expected = brute(omma.metric("f1"), eta[:, 1], y[:, 1], weights, between)
    assert line.value_at(between) == close(expected)


@pytest.mark.parametrize("names", SUMS.values(), ids=SUMS)
def test_sums_of_one_kind_have_curves(names):
    eta, y = few(60, 1, 1)
    mixed = omma.metric(names[0]) + 0.5 * omma.metric(names[1])
    (line,) = omma.curve(eta, y, mixed, bootstrap=0)
    expected = [brute(mixed, eta, y, None, one) for one in line.thresholds]
    assert line.values == close(expected)


def test_own_metrics_have_curves():
    eta, y = few(80, 2, 1)
    own = omma.metrics.custom(lambda tp, fp, fn, tn: tp / (tp + fp + 2 * fn), name="own")
    line = omma.curve(eta, y, omma.metrics.macro(own), bootstrap=0)[0]
    expected = [brute(own, eta[:, 0], y[:, 0], None, one) for one in line.thresholds[:-1]]
    assert line.values[:-1] == close(expected)


def test_the_best_is_that_of_tuned_thresholds():
    eta, y = omma.datasets.long_tail(n=500, m=5, seed=3)
    curve = omma.curve(eta, y, "macro_f1", bootstrap=0)
    assert curve.rule == omma.TunedThresholds("macro_f1").fit(eta, y).decision


def test_classes_are_labels_of_their_own():
    eta, _ = omma.datasets.long_tail(n=100, m=3, seed=0)
    ids = np.random.default_rng(0).integers(0, 3, 100)
    by_id = omma.curve(eta, ids, "macro_f1", bootstrap=0)
    by_row = omma.curve(eta, np.eye(3, dtype=int)[ids], "macro_f1", bootstrap=0)
    for one, other in zip(by_id, by_row, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


# The band


def naive_band(eta, y, metric, line, draws, level, seed):
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        weight = generator.multinomial(len(eta), np.full(len(eta), 1 / len(eta)))
        found.append([brute(metric, eta, y, weight, one) for one in line.thresholds])
    return np.quantile(found, ((1 - level) / 2, (1 + level) / 2), axis=0)


def test_the_band_is_that_of_rows_drawn_anew():
    eta, y = few(50, 2, 0)
    curve = omma.curve(eta, y, "macro_f1", bootstrap=30, level=0.8, seed=5)
    f1 = omma.metric("f1")
    for j, line in enumerate(curve):
        np.testing.assert_array_equal(line.at, np.arange(len(line.thresholds)))
        low, high = naive_band(eta[:, j], y[:, j], f1, line, 30, 0.8, 5)
        np.testing.assert_allclose(line.low, low, atol=1e-12)
        np.testing.assert_allclose(line.high, high, atol=1e-12)


def test_the_same_seed_draws_the_same_band_and_another_another():
    eta, y = few(200, 1, 0)
    one, same, other = (omma.curve(eta, y, "f1", seed=seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.low, same.low)
    assert (one.low != other.low).any()
    np.testing.assert_array_equal(one.values, other.values)


def test_many_thresholds_have_a_band_at_some():
    g = np.random.default_rng(0)
    eta = g.random(3000)
    (line,) = omma.curve(eta, g.random(3000) < eta, "f1", bootstrap=10)
    assert len(line.thresholds) == 3001
    assert 200 <= len(line.at) == len(line.low) == len(line.high) <= 400
    assert np.diff(line.thresholds[line.at][:-1]).max() < 0.01  # no wide gaps
    assert line.at[0] == 0
    assert line.at[-1] == 3000


# Names, pictures, errors


def test_lines_have_the_names_of_labels():
    eta, y = omma.datasets.long_tail(n=100, m=3, seed=0)
    frame = pd.DataFrame(eta, columns=["sports", "news", "music"])
    curve = omma.curve(frame, y, "macro_f1", labels=["music", 0], bootstrap=0)
    assert [line.name for line in curve] == ["music", "sports"]
    assert curve["sports"] is curve[1]
    assert curve.rule is None
    assert omma.curve(frame, y, "macro_f1", bootstrap=0).rule.names == ("sports", "news", "music")
    with pytest.raises(KeyError, match="a curve has lines for"):
        curve["news"]
    assert repr(curve).startswith("<curve of macro_f1, best music: ")


def test_the_picture_has_a_panel_a_label_and_marks_the_best():
    eta, y = omma.datasets.long_tail(n=300, m=4, seed=0)
    curve = omma.curve(eta, y, "macro_f1", bootstrap=20)
    figure = curve.plot(title="what any threshold would give")
    assert len(figure.axes) == 4
    for ax, line in zip(figure.axes, curve, strict=True):
        marked = ax.lines[1]
        assert marked.get_xdata()[0] == line.threshold
        assert marked.get_ydata()[0] == pytest.approx(100 * line.value)
    figure.canvas.draw()


def test_a_label_that_is_never_worth_predicting_can_be_drawn():
    curve = omma.curve([0.2, 0.4, 0.9], [0, 0, 0], "accuracy", bootstrap=5)
    assert curve[0].threshold == np.inf
    assert curve.rule.predict([0.2, 0.4, 0.9]).sum() == 0
    curve.plot().canvas.draw()


ETA, Y = np.array([[0.2, 0.5], [0.7, 0.1]]), np.array([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((ETA, Y, "multiclass_gmean"), {}, "metric of curve must be one of one label, a macro_"),
        ((ETA, Y, "f1"), {}, r"f1 is a metric of one label, got 2 columns"),
        ((ETA + 1, Y, "macro_f1"), {}, "eta of curve must hold probabilities from 0 to 1"),
        ((ETA, Y[:1], "macro_f1"), {}, "y of curve must have the shape"),
        ((ETA[:0], Y[:0], "macro_f1"), {}, "at least one row"),
        ((ETA, Y, "macro_f1"), {"bootstrap": -1}, "bootstrap of curve must be a whole number"),
        ((ETA, Y, "macro_f1"), {"level": 2.0}, "level of curve must be a number from 0 to 1"),
        ((ETA, Y, "macro_f1"), {"labels": [2]}, r"labels of curve must be among \[0, 1\]"),
        ((ETA, Y, "micro_f1"), {"labels": [0]}, "labels of curve must be None for a micro_"),
        ((ETA, Y, "macro_f1"), {"weights": [1.0]}, "weights of curve must have the shape"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        omma.curve(*arguments, **options)


def test_too_many_lines_for_a_picture_get_a_sentence():
    eta, y = omma.datasets.long_tail(n=30, m=25, seed=0)
    with pytest.raises(ValueError, match="must have from 1 to 24 lines, got 25"):
        omma.curve(eta, y, "macro_f1", bootstrap=0).plot()


def test_a_curve_without_a_bootstrap_is_drawn_without_a_band():
    pytest.importorskip("matplotlib")
    eta, y = omma.datasets.long_tail(n=100, m=4, seed=0)
    axes = omma.curve(eta, y, "macro_f1", bootstrap=0).plot().axes
    assert [ax.get_ylim()[0] for ax in axes] == [0.0] * 4

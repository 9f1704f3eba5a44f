"""Every metric of the catalogue: values, scores, derivatives and what it says of itself."""

from itertools import product

import naive
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn import metrics as skl
from strategies import (
    BINARY,
    CLASSES,
    MANY,
    class_pairs,
    close,
    confusion_matrix,
    interior_counts,
    label_pairs,
    one_hot,
    row_weights,
)

import omma
from omma import Counts

FBETA = {0.5: naive.fbeta(0.5), 2: naive.fbeta(2)}
few = settings(max_examples=20)


# Values


@pytest.mark.parametrize("name", BINARY)
@given(pair=label_pairs(m=1), data=st.data())
@few
def test_value_of_one_label_is_the_textbook_one(name, pair, data):
    weights = data.draw(row_weights(len(pair[0])))
    expected = naive.value(name, *pair, weights)
    counts = Counts.from_labels(*pair, sample_weight=weights)
    assert omma.metric(name).value(counts) == close(expected)
    vectors = pair[0][:, 0], pair[1][:, 0]
    assert omma.metric(name).score(*vectors, weights) == close(expected)


@pytest.mark.parametrize("name", MANY)
@given(pair=label_pairs(), data=st.data())
@few
def test_value_of_many_labels_is_the_textbook_one(name, pair, data):
    weights = data.draw(row_weights(len(pair[0])))
    expected = naive.value(name, *pair, weights)
    assert omma.metric(name).score(*pair, weights) == close(expected)
    assert omma.metric(name).score(*map(sparse.csr_array, pair), weights) == close(expected)


@pytest.mark.parametrize("name", CLASSES)
@given(triple=class_pairs(), data=st.data())
@few
def test_value_of_classes_is_the_textbook_one(name, triple, data):
    true, predicted, m = triple
    weights = data.draw(row_weights(len(true)))
    expected = naive.value(name, one_hot(true, m), one_hot(predicted, m), weights)
    assert omma.metric(name).score(true, predicted, weights, n_labels=m) == close(expected)


@pytest.mark.parametrize("beta", FBETA)
@given(pair=label_pairs())
@few
def test_value_of_fbeta_is_the_textbook_one(beta, pair):
    fractions = naive.label_fractions(naive.cells(*pair))
    for average in ("macro", "micro"):
        ours = getattr(omma.metrics, average)(omma.metrics.fbeta(beta))
        expected = getattr(naive, average)(FBETA[beta])(fractions)
        assert ours.score(*pair) == close(float(expected))


@given(pair=label_pairs())
@few
def test_macro_is_the_mean_of_its_labels(pair):
    counts = Counts.from_labels(*pair)
    for name in BINARY:
        cells = (counts.tp, counts.predicted, counts.positive, counts.n)
        each = omma.metric(name).of_cells(*cells)
        columns = zip(*(y.T for y in pair), strict=True)
        assert each == close([omma.metric(name).score(*column) for column in columns])


@pytest.mark.parametrize("zero_division", [0.0, 0.25, 1.0])
def test_zero_division_is_what_an_undefined_rate_is_worth(zero_division):
    never = Counts([0.0], [0.0], [0.0], 10)  # neither true nor predicted
    for name in ("precision", "recall", "f1", "jaccard", "mcc"):
        assert omma.metric(name).value(never, zero_division) == zero_division
        both = Counts([0.0, 4.0], [0.0, 4.0], [0.0, 4.0], 10)  # the label stays in the mean
        mean = close((zero_division + 1) / 2)
        assert omma.metrics.macro(name).value(both, zero_division) == mean
    always = Counts([10.0], [10.0], [10.0], 10)
    assert omma.metric("specificity").value(always, zero_division) == zero_division


def test_a_label_that_always_occurs_has_no_noise_in_its_value():
    # Weights that do not add up exactly must not turn 0/0 into a ratio of rounding errors.
    weights = np.random.default_rng(0).random(1001)
    ones, ids = np.ones(1001, dtype=int), np.zeros(1001, dtype=int)
    for name in ("specificity", "balanced_accuracy", "gmean", "hmean", "qmean", "mcc"):
        expected = naive.value(name, ones, ones)
        assert omma.metric(name).score(ones, ones, weights) == close(expected), name
    for name in CLASSES:
        expected = naive.value(name, one_hot(ids, 3), one_hot(ids, 3))
        assert omma.metric(name).score(ids, ids, weights, n_labels=3) == close(expected), name


# scikit-learn


def balanced(y, p, w):
    """The mean recall of both classes; scikit-learn's own function leaves out absent ones."""
    return skl.recall_score(y, p, labels=[0, 1], average="macro", sample_weight=w, zero_division=0)


SKLEARN = {
    "accuracy": lambda y, p, w: skl.accuracy_score(y, p, sample_weight=w),
    "balanced_accuracy": balanced,
    "precision": lambda y, p, w: skl.precision_score(y, p, sample_weight=w, zero_division=0),
    "recall": lambda y, p, w: skl.recall_score(y, p, sample_weight=w, zero_division=0),
    "specificity": lambda y, p, w: skl.recall_score(
        y, p, pos_label=0, sample_weight=w, zero_division=0
    ),
    "f1": lambda y, p, w: skl.f1_score(y, p, sample_weight=w, zero_division=0),
    "f0.5": lambda y, p, w: skl.fbeta_score(y, p, beta=0.5, sample_weight=w, zero_division=0),
    "f2": lambda y, p, w: skl.fbeta_score(y, p, beta=2, sample_weight=w, zero_division=0),
    "jaccard": lambda y, p, w: skl.jaccard_score(y, p, sample_weight=w, zero_division=0),
    "mcc": lambda y, p, w: skl.matthews_corrcoef(y, p, sample_weight=w),
}
OURS = {name: omma.metric(name) for name in SKLEARN if name in omma.metrics.NAMES} | {
    "f0.5": omma.metrics.fbeta(0.5),
    "f2": omma.metrics.fbeta(2.0),
}


@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
@pytest.mark.parametrize("name", SKLEARN)
@given(pair=label_pairs(), data=st.data())
@few
def test_scores_of_labels_are_scikit_learns(name, pair, data):
    true, predicted = pair
    n, m = true.shape
    weights = data.draw(row_weights(n))
    columns = [SKLEARN[name](true[:, j], predicted[:, j], weights) for j in range(m)]
    pooled = None if weights is None else np.repeat(weights, m)
    of_all = SKLEARN[name](true.ravel(), predicted.ravel(), pooled)
    ours = OURS[name]
    assert ours.score(true[:, 0], predicted[:, 0], weights) == close(columns[0])
    assert omma.metrics.macro(ours).score(*pair, weights) == close(np.mean(columns))
    assert omma.metrics.micro(ours).score(*pair, weights) == close(of_all)


@pytest.mark.parametrize("average", ["macro", "micro"])
@given(pair=label_pairs(m=3), data=st.data())
@few
def test_averages_are_scikit_learns_own(average, pair, data):
    weights = data.draw(row_weights(len(pair[0])))
    options = {"average": average, "sample_weight": weights, "zero_division": 0}
    functions = {
        "f1": skl.f1_score,
        "precision": skl.precision_score,
        "recall": skl.recall_score,
        "jaccard": skl.jaccard_score,
    }
    for name, function in functions.items():
        ours = omma.metric(f"{average}_{name}").score(*pair, weights)
        assert ours == close(function(*pair, **options)), name
    right = 1 - skl.hamming_loss(*pair, sample_weight=weights)
    assert omma.metric(f"{average}_accuracy").score(*pair, weights) == close(right)


@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
@given(triple=class_pairs(), data=st.data())
@settings(max_examples=60)
def test_scores_of_classes_are_scikit_learns(triple, data):
    true, predicted, m = triple
    weights = data.draw(row_weights(len(true)))
    every = {"labels": range(m), "sample_weight": weights}
    of_all = {**every, "average": "macro", "zero_division": 0}

    def ours(name):
        return omma.metric(name).score(true, predicted, weights, n_labels=m)

    assert ours("multiclass_accuracy") == close(
        skl.accuracy_score(true, predicted, sample_weight=weights)
    )
    recall = close(skl.recall_score(true, predicted, **of_all))
    assert ours("multiclass_balanced_accuracy") == recall
    assert ours("macro_recall") == recall
    assert ours("macro_f1") == close(skl.f1_score(true, predicted, **of_all))
    assert ours("macro_jaccard") == close(skl.jaccard_score(true, predicted, **of_all))
    assert ours("multiclass_mcc") == close(
        skl.matthews_corrcoef(true, predicted, sample_weight=weights)
    )
    if len(set(true) | set(predicted)) > 1:  # else 0/0: see the next test
        kappa = skl.cohen_kappa_score(true, predicted, **every)
        assert ours("multiclass_kappa") == close(kappa)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_where_scikit_learn_decides_zero_by_zero_otherwise():
    """The whole list: here 0/0 counts as 0 and its label stays in the mean."""
    ones = np.array([1, 1])
    # A class that never occurs is left out of scikit-learn's balanced accuracy.
    assert skl.balanced_accuracy_score(ones, ones) == 1
    assert omma.metric("balanced_accuracy").score(ones, ones) == 0.5
    assert omma.metric("multiclass_balanced_accuracy").score(ones, ones, n_labels=2) == 0.5
    # A class that is predicted and never true: zero_division=nan leaves it out here too.
    true, predicted = np.array([0, 2]), np.array([0, 1])
    assert skl.balanced_accuracy_score(true, predicted) == 0.5
    ours = omma.metric("multiclass_balanced_accuracy")
    assert ours.score(true, predicted) == close(1 / 3)
    assert ours.score(true, predicted, zero_division=np.nan) == 0.5
    # Kappa of one class only is no number there.
    assert np.isnan(skl.cohen_kappa_score(ones, ones))
    assert omma.metric("multiclass_kappa").score(ones, ones) == 0
    # And the Jaccard, precision, recall and F of nothing are 0 in both.
    nothing = np.zeros(2, dtype=int)
    for name in ("precision", "recall", "f1", "jaccard", "mcc"):
        assert SKLEARN[name](nothing, nothing, None) == omma.metric(name).score(nothing, nothing)
        assert omma.metric(name).score(nothing, nothing) == 0


# Derivatives

SUMS = {
    "macro": 0.5 * omma.metric("macro_f1") + 2 * omma.metric("micro_precision"),
    "minus": omma.metric("macro_gmean") - omma.metrics.micro(omma.metrics.fbeta(2)) / 4,
    "classes": omma.metric("multiclass_gmean") + 3 * omma.metric("multiclass_hmean"),
    "agreement": omma.metric("multiclass_mcc") - 0.5 * omma.metric("multiclass_kappa"),
    "quadratic": omma.metric("multiclass_qmean") + omma.metric("macro_mcc"),
}
EVERY = {
    **{name: omma.metric(name) for name in (*BINARY, *MANY, *CLASSES)},
    **{f"macro_f{beta}": omma.metrics.macro(omma.metrics.fbeta(beta)) for beta in FBETA},
    **{f"micro_f{beta}": omma.metrics.micro(omma.metrics.fbeta(beta)) for beta in FBETA},
    **{f"sum_{name}": one for name, one in SUMS.items()},
}
every = pytest.mark.parametrize("metric", EVERY.values(), ids=EVERY)


def some_counts(metric, seed):
    """Counts well inside: a confusion matrix's for metrics of classes, else of labels."""
    rng = np.random.default_rng(seed)
    if metric.multiclass:
        return Counts.from_confusion(100 * rng.dirichlet(np.full(9, 3.0)).reshape(3, 3))
    return interior_counts(seed, m=1 if metric.binary else 3)


def shifted(counts, cell, j, step):
    moved = counts.copy()
    getattr(moved, cell)[j] += step * counts.n
    return moved


@every
def test_gradient_is_the_slope_of_the_value(metric):
    for seed in range(4):
        counts = some_counts(metric, seed)
        slope, offset = metric.gradient(counts)
        for (cell, derivative), j in product(
            (("tp", slope), ("predicted", offset)), range(counts.m)
        ):
            up, down = (metric.value(shifted(counts, cell, j, h)) for h in (1e-5, -1e-5))
            assert derivative[j] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", [*BINARY, *MANY])
def test_gradient_is_the_textbook_one(name):
    metric = omma.metric(name)
    for seed in range(4):
        counts = some_counts(metric, seed)
        fractions = np.stack((counts.tp, counts.fp, counts.fn, counts.tn), axis=1) / counts.n
        expected = naive.slope_offset(naive.utility(name), fractions, 1e-9)
        # Where exactly epsilon stands matters by as much as epsilon itself.
        np.testing.assert_allclose(metric.gradient(counts), expected, rtol=1e-7, atol=1e-7)


# Roots are infinitely steep there, a minimum has a kink, accuracy is written without a denominator.
OTHERWISE = {"gmean", "qmean", "mcc", "accuracy", "min_recall_specificity"}


@pytest.mark.parametrize("name", sorted({*BINARY} - OTHERWISE))
def test_gradient_where_nothing_was_counted_is_one_by_epsilon(name):
    slope, offset = naive.slope_offset(naive.utility(name), np.zeros((1, 4)), 1e-9)
    ours = omma.metric(name).gradient(Counts.zeros(1))
    np.testing.assert_allclose(ours, (slope, offset), rtol=1e-9)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_gains_of_classes_differ_as_in_the_textbook(name, m):
    rng = np.random.default_rng(m)
    matrix = rng.dirichlet(np.full(m * m, 2.0)).reshape(m, m)
    eta = rng.dirichlet(np.ones(m))
    slope, offset = omma.metric(name).gradient(Counts.from_confusion(matrix))
    ours = slope * eta + offset
    theirs = naive.multiclass_gains(naive.utility(name), matrix, eta, 1e-9)
    # One constant, the same for every class, is free.
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), rtol=1e-5, atol=1e-9)


@every
def test_a_prior_is_four_more_counts_of_each_label(metric):
    counts, prior = some_counts(metric, 1), 3.0
    more = Counts(
        counts.tp + prior, counts.predicted + 2 * prior, counts.positive + 2 * prior,
        counts.n + 4 * prior,
    )  # fmt: skip
    np.testing.assert_allclose(
        metric.gradient(counts, prior), metric.gradient(more), rtol=1e-9, atol=1e-12
    )


@every
def test_gradient_does_not_depend_on_how_many_rows_were_counted(metric):
    counts = some_counts(metric, 2)
    np.testing.assert_allclose(metric.gradient(counts), metric.gradient(counts * 7), rtol=1e-9)


@every
def test_the_rule_of_a_policy_is_a_positive_multiple_of_the_gradient(metric):
    policy = omma.OMMA(metric, prior=0.0)
    counts = some_counts(metric, 3)
    state = omma.metrics.base.state_of(counts)
    rule = policy.rule(state)
    slope, offset = metric.gradient(counts)
    factor = np.linalg.norm(slope) / np.linalg.norm(rule.slope)
    np.testing.assert_allclose(rule.slope * factor, slope, rtol=1e-9)
    np.testing.assert_allclose(rule.offset * factor, offset, rtol=1e-9)


# Sums


@pytest.mark.parametrize("metric", SUMS.values(), ids=SUMS)
def test_a_sum_has_the_sum_of_values_and_gradients(metric):
    counts = some_counts(metric, 4)
    parts = [(weight, part) for weight, part in metric.terms]
    assert metric.value(counts) == close(sum(w * part.value(counts) for w, part in parts))
    for i in range(2):
        expected = sum(w * part.gradient(counts)[i] for w, part in parts)
        np.testing.assert_allclose(metric.gradient(counts)[i], expected, rtol=1e-9)


@pytest.mark.parametrize("name", CLASSES)
def test_a_metric_keeps_its_size_beside_costs(name):
    metric = omma.metric(name)
    matrix = np.array([[1.0, -1.0, 0.0], [0.0, 2.0, -3.0], [-2.0, 0.0, 1.0]])
    counts = some_counts(metric, 6)
    rule = omma.OMMA(metric + omma.metrics.costs(matrix), prior=0.0).rule(
        omma.metrics.base.state_of(counts)
    )
    slope, offset = metric.gradient(counts)
    np.testing.assert_array_equal(rule.matrix, matrix)
    np.testing.assert_allclose(rule.slope, slope, rtol=1e-9)
    np.testing.assert_allclose(rule.offset, offset, rtol=1e-9)


def test_metrics_add_up_as_numbers_do():
    counts = interior_counts(5)
    a, b = omma.metric("macro_f1"), omma.metric("micro_recall")
    x, y = a.value(counts), b.value(counts)
    for metric, expected in (
        (a + b, x + y),
        (a - b, x - y),
        (-a, -x),
        (a * 3, 3 * x),
        (3 * a, 3 * x),
        (np.float64(0.5) * a, x / 2),
        (a / 4, x / 4),
        (2 * (a - 3 * (b + a)), 2 * (x - 3 * (y + x))),
    ):
        assert metric.value(counts) == close(expected), metric.name


def test_every_metric_reads_back_from_json():
    for name, metric in EVERY.items():
        assert omma.metrics.metric_from_json(metric.to_json()) == metric, name


# What a metric says of itself: always at fixed label frequencies


def halfway(metric, rng):
    """Two feasible counts and the one in between, with the same label frequencies."""
    if metric.multiclass:
        positive = 100 * rng.dirichlet(np.full(3, 2.0))
        a, b = (confusion_matrix(rng, positive) for _ in range(2))
        return [Counts.from_confusion(matrix) for matrix in (a, b, (a + b) / 2)]
    m = 1 if metric.binary else 3
    positive = 100 * rng.uniform(0.1, 0.9, size=m)
    ends = []
    for _ in range(2):
        recall, alarm = rng.beta(0.5, 0.5, size=(2, m)).clip(1e-3, 1 - 1e-3)
        tp = recall * positive
        ends.append((tp, tp + alarm * (100 - positive)))
    tp, predicted = (np.stack(pair) for pair in zip(*ends, strict=True))
    points = [(tp[0], predicted[0]), (tp[1], predicted[1]), (tp.mean(0), predicted.mean(0))]
    return [Counts(*point, positive, 100) for point in points]


def bends(metric, tries=200):
    """Over many triples: value in between, minus mean, least and greatest of the ends' values."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(tries):
        a, b, middle = (metric.value(counts) for counts in halfway(metric, rng))
        found.append((middle - (a + b) / 2, middle - min(a, b), middle - max(a, b)))
    return np.array(found).T


def holds(metric):
    """Which of concave, linear and linear-fractional no triple speaks against."""
    above_mean, above_least, above_greatest = bends(metric)
    tiny = 1e-9
    # A ratio of linear forms is monotone along a line: in between is neither more nor less.
    between = (above_least >= -tiny) & (above_greatest <= tiny)
    shapes = above_mean >= -tiny, abs(above_mean) <= tiny, between
    return tuple(bool(shape.all()) for shape in shapes)


@pytest.mark.parametrize("name", [*BINARY, *MANY, *CLASSES])
def test_flags_tell_the_shape_of_the_metric(name):
    metric = omma.metric(name)
    assert (metric.concave, metric.linear, metric.linear_fractional) == holds(metric)


@pytest.mark.parametrize("metric", SUMS.values(), ids=SUMS)
def test_flags_of_a_sum_promise_nothing_false(metric):
    promised = (metric.concave, metric.linear, metric.linear_fractional)
    assert all(true for said, true in zip(promised, holds(metric), strict=True) if said)


def steepness(metric, tries=40):
    """The greatest change of the gradient over a small distance, close to some corner."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for i in range(tries):
        hit, alarm = divmod(i % 4, 2)  # all or nothing is found, all or no negatives are predicted
        points = []
        for inner, scale in zip(halfway(metric, rng)[:2], (1e-5, 5e-6), strict=True):
            tp = (1 - scale) * hit * inner.positive + scale * inner.tp
            fp = (1 - scale) * alarm * (100 - inner.positive) + scale * inner.fp
            points.append(Counts(tp, tp + fp, inner.positive, 100))
        a, b = points
        change = np.subtract(metric.gradient(a), metric.gradient(b))
        moved = np.stack((a.tp - b.tp, a.predicted - b.predicted)) / 100
        worst = max(worst, np.linalg.norm(change) / np.linalg.norm(moved))
    return worst


@pytest.mark.parametrize("name", [*BINARY, *MANY])
def test_smooth_metrics_have_a_gradient_that_never_jumps(name):
    metric = omma.metric(name)
    jump = steepness(metric)
    assert metric.smooth == (jump < 1e3), f"smooth={jump < 1e3} fits {name}: see Metric.smooth"


@pytest.mark.parametrize("name", [*omma.metrics.NAMES, "f2", "macro_f0.5", "micro_f2"])
def test_a_metric_can_be_a_key(name):
    assert {omma.metric(name): name}[omma.metric(name)] == name

"""The live certificate: what any decisions could still gain."""

import pickle

import naive
import numpy as np
import pytest
from scipy import optimize, sparse

import omma
from omma.certificate.tangent import tangent
from omma.metrics import smoothed
from omma.metrics.base import state_of

M = 3
STREAMS = 120
SMOOTH = smoothed("macro_min_recall_specificity")


# A known world: rows are drawn from a few kinds, each with its own probabilities.


def world(classes):
    rng = np.random.default_rng(3)
    kinds = rng.dirichlet(np.full(M, 0.7), 8) if classes else rng.beta(0.6, 1.8, (8, M))
    return rng.dirichlet(np.full(8, 3.0)), kinds


def best(name, k, shares, kinds):
    """ψ(C*) by a general solver: how often to predict each label for each kind of row."""

    def value(flat):
        often = shares[:, np.newaxis] * flat.reshape(kinds.shape)
        tp, predicted, positive = (often * kinds).sum(0), often.sum(0), shares @ kinds
        if name.startswith("multiclass_"):
            return float(np.prod(tp / positive) ** (1 / len(tp)))
        cells = np.array([tp, predicted - tp, positive - tp, 1 - predicted - positive + tp]).T
        return float(naive.utility(name)(cells))

    budget = {"type": "eq", "fun": lambda flat: flat.reshape(kinds.shape).sum(1) - k}
    found = [
        optimize.minimize(
            lambda flat: -value(flat), start, method="SLSQP", bounds=[(0, 1)] * kinds.size,
            constraints=[] if k is None else [budget], options={"maxiter": 500, "ftol": 1e-12},
        )
        for start in (np.full(kinds.size, (k or 2) / M), np.linspace(0.3, 0.6, kinds.size))
    ]  # fmt: skip
    return max(-one.fun for one in found)


def stream(shares, kinds, n, seed, classes):
    rng = np.random.default_rng(seed)
    eta = kinds[rng.choice(len(shares), n, p=shares)]
    if classes:
        return eta, (rng.random((n, 1)) > eta.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return eta, (rng.random(eta.shape) < eta).astype(np.int8)


def gaps(policy, name, k, n, streams, classes=False):
    """Gap and truth on each of many streams."""
    shares, kinds = world(classes)
    star = best(name, 1 if classes else k, shares, kinds)
    for seed in range(streams):
        eta, y = stream(shares, kinds, n, 1000 + seed, classes)
        options = {"metric": name, "predictions": False, "checkpoints": 0}
        trace = omma.replay(policy, eta, y, gap=True, **options)
        yield trace.gap, star - trace.value


COVERED = {
    "linear": ("micro_accuracy", 2, omma.OMMA("micro_accuracy", k=2)),
    "geometric": ("macro_gmean", None, omma.OMMA("macro_gmean")),
    "quadratic@1": ("macro_qmean", 1, omma.OMMA("macro_qmean", k=1)),
    "fixed": ("macro_gmean", 2, omma.TopK(2)),
    "classes": ("multiclass_gmean", None, omma.OMMA("multiclass_gmean")),
}


@pytest.mark.parametrize("case", COVERED)
def test_the_interval_covers_what_could_really_be_gained(case):
    name, k, policy = COVERED[case]
    every = list(gaps(policy, name, k, 1000, STREAMS, case == "classes"))
    assert not any(gap.heuristic for gap, _ in every)
    covered = np.mean([gap.interval[0] <= true <= gap.interval[1] for gap, true in every])
    below = np.mean([true <= gap.upper for gap, true in every])
    # 95% on 120 streams, with four standard deviations of chance on either side.
    assert covered >= 0.87
    assert below >= 0.87
    errors = np.array([gap.value - true for gap, true in every])
    assert errors.std() == pytest.approx(np.mean([gap.error for gap, _ in every]), rel=0.25)
    assert abs(errors.mean()) < max(0.5 * errors.std(), 0.001)  # tight, not only an upper bound


@pytest.mark.parametrize("n", [60, 200])
def test_few_rows_of_rare_labels_do_not_push_it_below_the_truth(n):
    def gap(rows, seed):
        eta, y = omma.datasets.long_tail(rows, 20, seed=seed)
        options = {"gap": True, "predictions": False, "checkpoints": 0}
        return omma.replay(omma.OMMA("macro_gmean"), eta, y, **options).gap

    star = gap(60_000, 77).attainable
    every = [gap(n, 200 + seed) for seed in range(60)]
    below = np.mean([star <= one.attainable + 1.644854 * one.error for one in every])
    assert below >= 0.87


def test_a_minimum_is_bounded_from_above_and_closely():
    every = list(gaps(omma.OMMA(SMOOTH), "macro_min_recall_specificity", None, 1000, 20))
    off = np.array([gap.value - true for gap, true in every])
    assert np.mean([true <= gap.upper for gap, true in every]) >= 0.8
    assert -0.002 < off.mean() < 0.02


def test_it_closes_for_omma_and_stays_open_for_a_wrong_threshold():
    shares, kinds = world(classes=False)
    true = best("macro_gmean", None, shares, kinds)
    eta, y = stream(shares, kinds, 40_000, 5, classes=False)
    places = [500, 5000, 40_000]
    learned = omma.replay(omma.OMMA("macro_gmean"), eta, y, gap=True, checkpoints=places)
    half = omma.replay(
        omma.Threshold(0.5), eta, y, metric="macro_gmean", gap=True, checkpoints=places
    )
    assert abs(learned.gap.value) < 0.005
    assert half.gap.interval[0] > 0.1
    assert learned.gap.attainable == half.gap.attainable == pytest.approx(true, abs=0.003)
    errors = [gap.error for gap in half.history.gaps]
    assert errors == sorted(errors, reverse=True)
    assert half.history.gaps[-1] == half.gap
    assert half.gap.value == half.gap.attainable - half.value


# The tangent itself

EVERY = ["gmean", "macro_f1", "macro_gmean", "macro_mcc", "micro_hmean", "macro_precision"]
CLASSES = ["accuracy", "balanced_accuracy", "gmean", "hmean", "qmean", "kappa", "mcc"]
TANGENTS = [
    *[omma.metric(name) for name in EVERY],
    *[omma.metric(f"multiclass_{name}") for name in CLASSES],
    omma.metric("macro_f1") - 0.5 * omma.metric("multiclass_gmean"),
    omma.metrics.custom(lambda tp, fp, fn, tn: tp * tn - fp * fn, average="macro", name="area"),
]


@pytest.mark.parametrize("metric", TANGENTS, ids=lambda metric: metric.name)
def test_the_tangent_is_the_metric_to_first_order(metric):
    rng = np.random.default_rng(1)
    m = 1 if metric.binary else M
    size, shape = (4, (2, 2)) if m == 1 else (M * M, (M, M))
    here, there = (100 * rng.dirichlet(np.full(size, 3.0)).reshape(shape) for _ in range(2))

    def counts(share):
        mixed = omma.Counts.from_confusion(here + share * (there - here))
        if m > 1:
            return mixed
        return omma.Counts(mixed.tp[1:], mixed.predicted[1:], mixed.positive[1:], mixed.n)

    weights, intercept = tangent(metric, state_of(counts(0)), 0.0)

    def line(share):
        at = counts(share)
        cells = np.stack((at.tp, at.predicted, at.positive)) / at.n
        return intercept + (weights * cells).sum()

    assert line(0) == pytest.approx(metric.value(counts(0)), abs=1e-7)
    differences = (metric.value(counts(1e-5)) - metric.value(counts(-1e-5))) / 2e-5
    assert line(1) - line(0) == pytest.approx(differences, rel=1e-4, abs=1e-6)


def test_the_tangent_of_a_minimum_is_a_mixture_above_it():
    rng = np.random.default_rng(2)
    for metric in (SMOOTH, smoothed("multiclass_min_recall", 0.01)):
        start = omma.Counts.from_confusion(100 * rng.dirichlet(np.full(9, 3.0)).reshape(3, 3))
        weights, intercept = tangent(metric, state_of(start), 0.0)
        for _ in range(50):
            tp = start.positive * rng.random(3)
            predicted = tp + (start.n - start.positive) * rng.random(3)
            other = omma.Counts(tp, predicted, start.positive, start.n)
            cells = np.stack((other.tp, other.predicted, other.positive)) / other.n
            assert intercept + (weights * cells).sum() >= metric.value(other) - 1e-6


# One algorithm, two ways


def worth(weights, intercept, eta, k):
    """What a row is worth, by looking at every decision."""
    m = len(eta)
    decisions = [np.array([number >> j & 1 for j in range(m)]) for number in range(2**m)]
    allowed = [one for one in decisions if k is None or one.sum() == k]
    allowed = [one for one in allowed if k is not None or not (one & (eta == 0)).any()]
    slope, offset, by_positive = weights
    return intercept + by_positive @ eta + max(one @ (slope * eta + offset) for one in allowed)


@pytest.mark.parametrize("k", [None, 1, 2])
def test_the_mean_worth_of_a_block_is_that_of_the_best_of_all_decisions(k):
    shares, kinds = world(classes=False)
    eta, y = stream(shares, kinds, 24, 1, classes=False)
    learner = omma.OnlineClassifier(omma.OMMA("macro_gmean", k=k), M, gap=True)
    worths = []
    for row, true in zip(eta[:20], y[:20], strict=True):
        learner.predict(row)
        learner.update(true)
    weights, intercept = learner._certificate.weights.copy(), learner._certificate.intercept
    for row, true in zip(eta[20:], y[20:], strict=True):
        learner.predict(row)
        learner.update(true)
        worths.append(worth(weights, intercept, row, k))
    sums = learner._certificate.tangents[-1]
    assert sums[0] == 4
    assert sums[2] / 4 == pytest.approx(np.mean(worths), rel=1e-12)


WAYS = {
    "macro": omma.OMMA("macro_gmean"),
    "micro@2": omma.OMMA("micro_f1", k=2),
    "estimates": omma.OMMA("macro_f1", feedback="estimates"),
    "minimum": omma.OMMA("macro_min_recall_specificity", k=1),
    "classes": omma.OMMA("multiclass_kappa"),
    "fixed": omma.TopK(1),
}


@pytest.mark.parametrize("case", WAYS)
def test_stepping_is_replaying_dense_and_sparse(case, tmp_path):
    policy = WAYS[case]
    shares, kinds = world(classes=True)
    eta, ids = stream(shares, kinds, 90, 2, classes=True)
    eta = np.where(eta < 0.02, 0.0, eta)
    y = np.eye(M, dtype=np.int8)[ids]
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y))
    places = [10, 50, 90]
    options = {"metric": policy.objective or "macro_hmean", "weights": weights, "gap": True}
    trace = omma.replay(policy, eta, y, checkpoints=places, **options)
    thin = omma.replay(policy, sparse.csr_array(eta), y, checkpoints=places, **options)
    plain = omma.replay(policy, eta, y, metric=options["metric"], weights=weights)
    assert plain.gap is None
    assert plain.history.gaps == ()
    assert np.array_equal(plain.predictions, trace.predictions)
    learner = omma.OnlineClassifier(policy, M, metric=options["metric"], gap=True)
    sparse_learner = omma.OnlineClassifier(policy, M, metric=options["metric"], gap=True)
    for t in range(len(eta)):
        for one, row in ((learner, eta[t]), (sparse_learner, sparse.csr_array(eta[[t]]))):
            one.predict(row)
            one.update(y[t] if one is learner else sparse.csr_array(y[[t]]), weight=weights[t])
        if t + 1 in places:
            assert learner.gap == trace.history.gaps[places.index(t + 1)]
        if t == 40:
            learner.save(tmp_path / "half.npz")
            learner = pickle.loads(pickle.dumps(omma.OnlineClassifier.load(tmp_path / "half.npz")))
    assert trace.history.gaps[0] is None
    assert learner.gap == trace.gap
    assert sparse_learner.gap == thin.gap
    for name in ("attainable", "value", "error", "disagreement"):
        assert getattr(thin.gap, name) == pytest.approx(getattr(trace.gap, name), rel=1e-9)
    assert (thin.gap.rows, thin.gap.heuristic) == (trace.gap.rows, trace.gap.heuristic)


def test_no_labels_no_value_but_what_is_attainable():
    shares, kinds = world(classes=False)
    eta, y = stream(shares, kinds, 600, 4, classes=False)
    policy = omma.OMMA("macro_gmean", feedback="estimates")
    blind, seeing = omma.replay(policy, eta, gap=True), omma.replay(policy, eta, y, gap=True)
    assert blind.gap.attainable == seeing.gap.attainable
    assert blind.gap.value is None
    assert np.isnan(blind.gap.disagreement)
    with pytest.raises(ValueError, match="where labels are known"):
        _ = blind.gap.upper
    with pytest.raises(ValueError, match="where labels are known"):
        _ = blind.gap.interval


def test_wrong_probabilities_are_noticed():
    shares, kinds = world(classes=False)
    eta, y = stream(shares, kinds, 3000, 4, classes=False)
    policy = omma.OMMA("macro_gmean")
    right, wrong = (omma.replay(policy, given, y, gap=True).gap for given in (eta, eta**2))
    assert abs(right.disagreement) < 4
    assert not right.heuristic
    assert wrong.heuristic
    assert "calibrate" in wrong.reason
    assert "calibrate" in str(wrong)


def test_it_says_where_it_is_only_heuristic():
    shares, kinds = world(classes=False)
    eta, y = stream(shares, kinds, 200, 4, classes=False)
    says = {
        ("macro_gmean", 2): (False, "macro_gmean is concave"),
        ("macro_f1", None): (True, "a ratio for each label"),
        ("macro_f1", 2): (True, "macro_f1 is not concave: it says"),
        ("macro_mcc", None): (True, "macro_mcc is not concave: it says"),
    }
    for (name, k), (heuristic, words) in says.items():
        gap = omma.replay(omma.OMMA(name, k=k), eta, y, gap=True).gap
        assert gap.heuristic == heuristic
        assert words in gap.reason


def test_what_cannot_be_is_said_in_a_sentence():
    eta, y = np.full((3, 2), 0.5), np.array([0, 1, 0])
    with pytest.raises(ValueError, match="gap of replay needs a metric of label counts, got costs"):
        omma.replay(omma.OMMA(omma.metrics.costs([[1, 0], [0, 1]])), eta, y, gap=True)
    with pytest.raises(ValueError, match="gap of OnlineClassifier needs a metric, and Threshold"):
        omma.OnlineClassifier(omma.Threshold(0.5), 2, gap=True)
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 2, gap=True)
    assert learner.gap is None
    with pytest.raises(ValueError, match=r"eta of update must be given.*whose gap needs it"):
        learner.update([1, 0], prediction=[1, 0])
    assert omma.OnlineClassifier(omma.OMMA("macro_f1"), 2).gap is None

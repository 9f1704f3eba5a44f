"""The certificate where labels never occur, rows weigh unequally, or files are spoiled."""

import numpy as np
import pytest
from scipy import sparse

import omma
from omma.certificate.gap import doubt_of_metric
from omma.certificate.tangent import tangent
from omma.metrics.base import state_of
from omma.metrics.scoring import value_range

ROWS, M = 6000, 6
ETA, Y = omma.datasets.long_tail(n=ROWS, m=M, seed=0)
NUMBERS = ("attainable", "value", "error", "disagreement")


def with_columns(probability):
    """As many labels again, all with one probability, and what they are."""
    more = np.full((ROWS, M), float(probability))
    drawn = (np.random.default_rng(1).random(more.shape) < more).astype(np.int8)
    return np.hstack((ETA, more)), np.hstack((Y, drawn))


def gap_of(metric, eta=ETA, y=Y, k=None, **options):
    return omma.replay(omma.OMMA(metric, k=k), eta, y, gap=True, **options).gap


def numbers(gap):
    return [getattr(gap, name) for name in NUMBERS]


# Labels that never, or always, occur: a rate of 0/0 is zero whatever is decided.

SETTLED = {  # the best value of one label that never occurs, and of one that always does
    "macro_gmean": (0.0, 0.0),
    "macro_hmean": (0.0, 0.0),
    "macro_balanced_accuracy": (0.5, 0.5),
    "macro_qmean": (1 - 0.5**0.5, 1 - 0.5**0.5),
    "macro_recall": (0.0, 1.0),
    "macro_specificity": (1.0, 0.0),
    "macro_accuracy": (1.0, 1.0),
    "macro_min_recall_specificity": (0.0, 0.0),
    "macro_f1": (0.0, 1.0),
    "macro_mcc": (0.0, 0.0),
}


@pytest.mark.parametrize("name", SETTLED)
def test_settled_labels_have_the_value_of_reports(name):
    alone = gap_of(name)
    for probability, settled in zip((0, 1), SETTLED[name], strict=True):
        eta, y = with_columns(probability)
        gap = gap_of(name, eta, y)
        assert gap.attainable == pytest.approx((alone.attainable + settled) / 2, abs=1e-6)
        assert gap.value == pytest.approx(alone.value / 2, abs=1e-6)
        assert gap.error == pytest.approx(alone.error / 2, rel=1e-6, abs=1e-11)
        assert gap.heuristic == alone.heuristic
        thin = gap_of(name, sparse.csr_array(eta), sparse.csr_array(y))
        assert numbers(thin) == pytest.approx(numbers(gap), rel=1e-9, abs=1e-12)


def test_a_budget_is_not_spent_on_labels_that_never_occur():
    eta, y = with_columns(0)
    gap, alone = gap_of("macro_recall", eta, y, k=2), gap_of("macro_recall", k=2)
    assert gap.attainable == pytest.approx(alone.attainable / 2, abs=1e-9)
    assert not gap.heuristic


CLASSES = {"gmean": 0.0, "hmean": 0.0, "min_recall": 0.0, "balanced_accuracy": None, "qmean": None}


@pytest.mark.parametrize("kind", CLASSES)
def test_the_recall_of_a_class_that_never_occurs_is_zero(kind):
    rng = np.random.default_rng(4)
    eta = rng.dirichlet(np.full(3, 0.6), 4000)
    ids = (rng.random((4000, 1)) > eta.cumsum(axis=1)[:, :-1]).sum(axis=1)
    trace = omma.replay(
        omma.OMMA(f"multiclass_{kind}"), np.hstack((eta, np.zeros((4000, 1)))), ids, gap=True
    )
    assert not trace.gap.heuristic
    assert trace.gap.value == pytest.approx(0.0, abs=0.01)
    if CLASSES[kind] is not None:
        assert trace.gap.attainable == CLASSES[kind]
    elif kind == "balanced_accuracy":
        plain = omma.replay(omma.OMMA("multiclass_balanced_accuracy"), eta, ids, gap=True).gap
        assert trace.gap.attainable == pytest.approx(0.75 * plain.attainable, abs=1e-6)


def test_sums_and_micro_metrics_know_settled_labels_too():
    nothing = np.zeros((100, 3))
    y = nothing.astype(np.int8)
    assert gap_of("micro_gmean", nothing, y).attainable == 0.0
    assert gap_of("micro_accuracy", nothing, y).attainable == pytest.approx(1.0)
    eta, y = with_columns(0)
    both = omma.metric("macro_gmean") + 0.5 * omma.metric("macro_recall")
    assert gap_of(both, eta, y).attainable == pytest.approx(gap_of(both).attainable / 2, abs=1e-6)


def test_a_metric_of_ones_own_has_its_value_for_settled_labels():
    def product(tp, fp, fn, tn):
        return (tp / (tp + fn)) * (tn / (tn + fp)) + 0.5 * tn

    own = omma.metrics.custom(product, average="macro", name="product")
    state = state_of(omma.Counts([0.0, 5.0], [4.0, 5.0], [0.0, 10.0], 10.0))  # never and always
    weights, intercept = tangent(own, state, 0.1)
    np.testing.assert_allclose(weights, [[0, 0], [0, 0], [0, 0]], atol=1e-9)
    assert intercept == pytest.approx(0.0, abs=1e-9)  # 0/0 counts as zero, whatever is beside it
    linear = omma.metrics.custom(lambda tp, fp, fn, tn: tn - fn, average="macro", name="linear")
    weights, intercept = tangent(linear, state, 0.1)
    np.testing.assert_allclose(weights, [[0, 0], [-0.5, 0.5], [0, 0]], atol=1e-9)
    assert intercept == pytest.approx(0.5 * 1 + 0.5 * -1)
    assert "macro_product is not known to be concave: it says" in doubt_of_metric(own, None)
    assert "is not known to be concave" in doubt_of_metric(own - omma.metric("macro_f1"), 2)
    assert "macro_mcc is not concave: it says" in doubt_of_metric(omma.metric("macro_mcc"), None)


# Labels that hardly ever occur


def test_labels_that_may_not_have_occurred_make_it_heuristic():
    rare, y = with_columns(1e-7)
    gap = gap_of("macro_gmean", rare, y)
    assert gap.heuristic
    assert "may not have occurred yet, and about 0.5 of the value" in gap.reason
    assert not gap_of("macro_accuracy", rare, y).heuristic  # divides by the number of rows alone
    assert not gap_of("micro_gmean", rare, y).heuristic
    eta, y = with_columns(0.01)  # some 60 times
    assert not gap_of("macro_gmean", eta, y).heuristic


def test_labels_that_come_late_make_it_heuristic_until_they_have_come_often():
    eta, y = ETA.copy(), Y.copy()
    eta[:2000, 0] = y[:2000, 0] = 0
    assert not gap_of("macro_gmean", eta[:2000], y[:2000]).heuristic
    assert gap_of("macro_gmean", eta[:2500], y[:2500]).heuristic
    swapped = np.arange(ROWS)
    swapped[:2000] = np.arange(ROWS - 2000, ROWS)
    assert not gap_of("macro_gmean", ETA[swapped], Y[swapped]).heuristic


# Weights

WEIGHTS = np.random.default_rng(2).exponential(size=ROWS)


@pytest.mark.parametrize("name", ["macro_gmean", "macro_min_recall_specificity", "micro_f1"])
def test_only_the_proportions_of_weights_matter(name):
    plain = gap_of(name)
    for factor in (1 / ROWS, 0.3, 7.0):
        same = gap_of(name, weights=np.full(ROWS, factor))
        assert same.attainable == plain.attainable  # equal weights are no weights
        assert same.error == plain.error
    weighted = gap_of(name, weights=WEIGHTS)
    for factor in (1e-8, 0.25, 1e7):
        scaled = gap_of(name, weights=factor * WEIGHTS)
        assert scaled.attainable == pytest.approx(weighted.attainable, rel=1e-6)
        assert scaled.error == pytest.approx(weighted.error, rel=1e-4)
        assert (scaled.rows, scaled.heuristic) == (weighted.rows, weighted.heuristic)
    assert weighted.attainable == pytest.approx(plain.attainable, abs=5 * weighted.error)


@pytest.mark.parametrize("thin", [False, True])
def test_rows_without_weight_are_as_good_as_absent(thin):
    kept = np.random.default_rng(3).random(ROWS) < 0.3
    kept[:2700] = False
    eta = sparse.csr_array(np.where(ETA < 0.05, 0, ETA)) if thin else ETA
    zeros = gap_of("macro_gmean", eta, Y, weights=np.where(kept, WEIGHTS, 0.0))
    assert zeros == gap_of("macro_gmean", eta[kept], Y[kept], weights=WEIGHTS[kept])
    policy = omma.OMMA("macro_gmean", feedback="estimates")
    blind = omma.replay(policy, eta, weights=np.where(kept, WEIGHTS, 0.0), gap=True).gap
    assert blind.attainable == zeros.attainable


def test_a_row_of_weight_two_is_a_row_twice():
    twice = np.random.default_rng(5).random(ROWS) < 0.5
    weighted = gap_of("macro_gmean", weights=np.where(twice, 2.0, 1.0))
    rows = np.repeat(np.arange(ROWS), np.where(twice, 2, 1))
    repeated = gap_of("macro_gmean", ETA[rows], Y[rows])
    assert weighted.attainable == pytest.approx(repeated.attainable, abs=weighted.error)
    assert weighted.value == pytest.approx(repeated.value, abs=2 * weighted.error)


def test_stepping_is_replaying_with_weights_of_any_size():
    weights = WEIGHTS[:200] * np.where(np.arange(200) % 5, 1.0, 0.0) * 1e-6
    eta, y = (np.hstack((one[:200], np.zeros((200, 1), one.dtype))) for one in (ETA, Y))
    for policy in (omma.OMMA("macro_gmean"), omma.OMMA("multiclass_kappa", k=1)):
        true = y if not policy.metric.single_label else np.eye(7, dtype=np.int8)[eta.argmax(1)]
        trace = omma.replay(policy, eta, true, weights=weights, gap=True)
        learner = omma.OnlineClassifier(policy, 7, gap=True)
        for row, labels, weight in zip(eta, true, weights, strict=True):
            learner.predict(row)
            learner.update(labels, weight=weight)
        assert learner.gap == trace.gap


@pytest.mark.parametrize("place", [0, 5, 1000, 5999])
@pytest.mark.parametrize("weight", [1e5, 1e9, 1e60])
def test_one_row_with_all_the_weight_is_said(place, weight):
    weights = np.ones(ROWS)
    weights[place] = weight
    weights[100:110] = 1 / weight
    gap = gap_of("macro_gmean", weights=weights)
    assert gap.heuristic
    assert "a few rows have most of the weight" in gap.reason
    assert np.isfinite(gap.error)
    assert gap.attainable <= 1


def test_no_weight_at_all_is_nothing_to_tell():
    trace = omma.replay(omma.OMMA("macro_gmean", feedback="estimates"), ETA, gap=True,
                        weights=np.zeros(ROWS))  # fmt: skip
    assert trace.gap is None
    learner = omma.OnlineClassifier(omma.OMMA("macro_gmean"), M, gap=True)
    for row, true in zip(ETA[:40], Y[:40], strict=True):
        learner.predict(row)
        learner.update(true, weight=0.0)
    assert learner.gap is None


# The rest


def test_nothing_above_the_highest_value_is_attainable():
    for seed in range(4):
        eta, y = omma.datasets.long_tail(n=300, m=4, seed=seed)
        gap = gap_of("macro_recall", eta, y, k=4)
        assert gap.attainable <= 1
        assert gap.value <= 0
        both = omma.metric("macro_recall") - 0.5 * omma.metric("macro_mcc")
        assert gap_of(both, eta, y, k=4).attainable <= 1.5
    own = omma.metrics.custom(lambda tp, fp, fn, tn: 3 * tp, average="macro", name="triple")
    assert value_range(own) == (-np.inf, np.inf)
    assert value_range(omma.metric("micro_f1") - 2 * omma.metric("multiclass_kappa") + 0 * own) == (
        -2,
        3,
    )


def test_a_file_with_spoiled_numbers_of_the_gap_is_refused(tmp_path):
    learner = omma.OnlineClassifier(omma.OMMA("macro_gmean"), M, gap=True)
    for row, true in zip(ETA[:40], Y[:40], strict=True):
        learner.predict(row)
        learner.update(true)
    path = tmp_path / "learner.npz"
    learner.save(path)
    assert omma.OnlineClassifier.load(path).gap == learner.gap
    with np.load(path) as archive:
        whole = dict(archive)
    names = [name for name in whole if name.startswith("gap_")]
    assert len(names) >= 7
    for name in names:
        spoiled = whole[name].astype(float)
        spoiled[(0,) * spoiled.ndim] = np.nan
        np.savez(path, **{**whole, name: spoiled})
        with pytest.raises(ValueError, match=r"is not a whole omma learner: .*finite"):
            omma.OnlineClassifier.load(path)
    for name, wrong in (("gap_unit", -1.0), ("gap_place", [50, 40])):
        np.savez(path, **{**whole, name: np.array(wrong)})
        with pytest.raises(ValueError, match="must belong together"):
            omma.OnlineClassifier.load(path)

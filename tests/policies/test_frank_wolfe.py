"""Frank-Wolfe finds the best mixture of rules, knows how good it is, and draws from it fairly."""

import json
import pickle
import warnings
from decimal import Decimal
from functools import cache

import naive
import naive_baselines as twins
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import LAYOUTS, class_stream, one_hot, stream
from scipy import sparse
from strategies import own_gmean

import omma
from omma.policies import ConvergenceWarning, UnsupportedMetricError, policy_from_json

CONCAVE = ("accuracy", "recall", "specificity", "balanced_accuracy", "gmean", "hmean", "qmean")
TASKS = [
    *[(f"{average}_{name}", k) for average in ("macro", "micro") for name in CONCAVE
      for k in (None, 1)],
    *[(f"multiclass_{name}", 1) for name in CONCAVE if name in omma.metrics.averages.KINDS],
]  # fmt: skip
SEARCHED = ("macro_f1", "macro_precision", "macro_mcc", "micro_f1", "micro_jaccard", "micro_mcc")
ANY = [*((name, k) for name in SEARCHED for k in (None, 2)),
       ("multiclass_mcc", None), ("multiclass_kappa", None)]  # fmt: skip


def sample(name, seed, n=6, m=2):
    """A few rows of probabilities, none of them zero, and labels as the metric takes them."""
    if name.startswith("multiclass_"):
        return class_stream(seed, n, 3, sharpness=2.0)
    return stream(seed, n, m, zeros=0.0)


@cache
def best_there_is(name, k, seed):
    """The most that a mixture of any classifiers is worth on a sample, as it estimates itself."""
    return twins.best_mixture(name, sample(name, seed)[0], k, prior=1e-6, starts=1)


def first_decisions(eta, k):
    m = eta.shape[1]
    return twins.decide_all(np.ones(m), np.full(m, -0.5 if k is None else 0.0), eta, k)


def fitted(name, eta, y=None, **options):
    """A mixture from the usual start, whether or not the algorithm came to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return omma.FrankWolfe(name, **{"start": "top", **options}).fit(eta, y)


def chances(mixture, eta):
    """How probable it is that the mixture predicts each label of each row."""
    k = mixture.budget
    each = [twins.decide_all(rule.slope, rule.offset, eta, k) for rule in mixture.rules]
    return np.tensordot(mixture.shares, each, axes=1)


def same_mixture(first, second, rtol=0.0):
    assert len(first.rules) == len(second.rules)
    np.testing.assert_allclose(first.shares, second.shares, rtol=rtol)
    for one, other in zip(first.rules, second.rules, strict=True):
        np.testing.assert_allclose(one.slope, other.slope, rtol=rtol)
        np.testing.assert_allclose(one.offset, other.offset, rtol=rtol)
        assert one.k == other.k


# How good it is


@pytest.mark.parametrize(("name", "k"), TASKS)
def test_no_mixture_of_any_classifiers_beats_it_by_more_than_the_tolerance(name, k):
    for seed in range(2):
        eta, _ = sample(name, seed)
        best = best_there_is(name, k, seed)
        mixture = omma.FrankWolfe(
            name, k=k, feedback="estimates", max_iter=3000, tolerance=1e-3
        ).fit(eta)
        value = twins.utility_of(name, eta, chances(mixture, eta), prior=1e-6)
        assert best - 1e-3 - 1e-5 <= value <= best + 1e-5
        assert mixture.log == () or value == pytest.approx(mixture.log[-1].value, abs=1e-5)


@pytest.mark.parametrize("step", ["line_search", "2/(i+2)"])
@pytest.mark.parametrize(("name", "k"), TASKS)
def test_the_gap_bounds_what_is_missing_before_each_step(name, k, step):
    eta, _ = sample(name, seed=1)
    best = best_there_is(name, k, seed=1)
    mixture = fitted(name, eta, k=k, feedback="estimates", step=step, max_iter=15, tolerance=0.0)
    before = twins.utility_of(name, eta, first_decisions(eta, k), prior=1e-6)
    for iteration in mixture.log:
        assert best - before <= iteration.gap + 1e-5
        before = iteration.value


@pytest.mark.parametrize(("k", "n"), [(None, 4), (1, 6)])
@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "micro_jaccard", "micro_precision"])
def test_no_deterministic_classifier_is_better_for_ratios(name, k, n):
    """A ratio of linear forms is best at a corner, so all corners are tried."""
    for seed in range(3):
        eta, _ = sample(name, seed, n)
        every = (twins.utility_of(name, eta, p) for p in twins.classifiers(n, 2, k))
        best = max(every)
        mixture = fitted(name, eta, k=k, feedback="estimates", max_iter=500, tolerance=1e-6)
        value = twins.utility_of(name, eta, chances(mixture, eta))
        slack = 0.03 if (name, k) == ("macro_f1", 1) else 1e-3  # a sum of ratios is no ratio
        assert value >= best - slack


@pytest.mark.parametrize(("name", "k"), [*TASKS, *ANY])
def test_values_are_those_of_the_mixture_on_the_sample(name, k):
    eta, y = sample(name, seed=1, n=30, m=3)
    labels = one_hot(y, 3) if y.ndim == 1 else y
    for i in (1, 2, 5):
        mixture = fitted(name, eta, y, k=k, max_iter=i, prior=1e-9)
        if mixture.log:
            value = twins.utility_of(name, labels, chances(mixture, eta), prior=1e-9)
            assert mixture.log[-1].value == pytest.approx(value, abs=1e-5)
        for rule, worth in zip(mixture.rules, mixture.values, strict=True):
            p = twins.decide_all(rule.slope, rule.offset, eta, mixture.budget)
            assert worth == pytest.approx(twins.utility_of(name, labels, p, 1e-9), abs=1e-5)


# Steps


@pytest.mark.parametrize("feedback", twins.FEEDBACK)
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("name", ["macro_f1", "macro_gmean", "micro_hmean"])
def test_fixed_steps_are_the_textbook(name, k, feedback):
    eta, y = stream(2, n=30, m=3)
    labels = naive.seen(y, eta, feedback)
    options = {"k": k, "feedback": feedback, "prior": 0.1, "max_iter": 4, "tolerance": 0.0}
    ours = fitted(name, eta, y, step="2/(i+2)", **options)
    done = len(ours.log)
    rules, shares, gaps = twins.frank_wolfe(naive.utility(name), eta, labels, k, 0.1, done)
    np.testing.assert_allclose([one.step for one in ours.log], [2 / (i + 2) for i in range(done)])
    np.testing.assert_allclose([one.gap for one in ours.log], gaps, rtol=0.05, atol=1e-9)
    used = shares > 0
    np.testing.assert_allclose(ours.shares, shares[used])
    for rule, (slope, offset) in zip(ours.rules, np.array(rules)[used], strict=True):
        np.testing.assert_allclose(rule.slope, slope, rtol=1e-6)
        np.testing.assert_allclose(rule.offset, offset, rtol=1e-6)


@pytest.mark.parametrize(("name", "k"), [*TASKS, *ANY])
def test_values_never_fall_with_a_line_search(name, k):
    for seed in range(4):
        eta, y = sample(name, seed, n=40, m=3)
        labels = one_hot(y, 3) if y.ndim == 1 else y
        mixture = fitted(name, eta, y, k=k, max_iter=30, tolerance=0.0, prior=1e-9)
        found = [one.value for one in mixture.log]
        assert (np.diff(found) >= 0).all()
        first = first_decisions(eta, mixture.budget)
        start = twins.utility_of(name, labels, first, prior=1e-9)
        assert found == [] or found[0] >= start - 1e-5


@pytest.mark.parametrize(("name", "k"), [*TASKS, *ANY])
def test_a_line_search_goes_as_far_as_is_best(name, k):
    for seed in range(4):
        eta, y = sample(name, seed, n=40, m=3)
        labels = one_hot(y, 3) if y.ndim == 1 else y
        mixture = fitted(name, eta, y, k=k, max_iter=1, prior=1e-9)
        if len(mixture.rules) < 2:
            continue
        start, end = (
            twins.decide_all(rule.slope, rule.offset, eta, mixture.budget) for rule in mixture.rules
        )
        for share in np.linspace(0, 1, 41):
            value = twins.utility_of(name, labels, start + share * (end - start), prior=1e-9)
            assert value <= mixture.log[0].value + 1e-5


# Where it stops


def test_a_looser_tolerance_stops_sooner_and_warns_of_nothing():
    eta, _ = stream(0, n=60)
    loose, tight = (
        omma.FrankWolfe("macro_hmean", 1, "estimates", tolerance=tolerance).fit(eta)
        for tolerance in (1e-1, 1e-4)
    )
    assert len(loose.log) < len(tight.log)
    assert all(one.gap > 1e-4 for one in tight.log)


def test_a_warning_says_how_far_it_came():
    eta, _ = stream(0, n=60)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 iterations with a gap of .*"):
        mixture = omma.FrankWolfe("macro_hmean", 1, "estimates", max_iter=2).fit(eta)
    assert len(mixture.log) == 2


# Data


@pytest.mark.parametrize("feedback", twins.FEEDBACK)
@pytest.mark.parametrize(("name", "k"), [*ANY, ("macro_hmean", 1), ("multiclass_gmean", None)])
def test_sparse_and_dense_samples_give_the_same_mixture(name, k, feedback):
    multiclass = name.startswith("multiclass_")
    eta, y = class_stream(4) if multiclass else stream(4, zeros=0.4)
    options = {"k": k, "feedback": feedback, "max_iter": 10}
    expected = fitted(name, eta, y, **options)
    same_mixture(expected, fitted(name, sparse.csr_array(eta), y, **options))
    labels = one_hot(y, 4) if multiclass else y
    same_mixture(
        expected, fitted(name, sparse.csr_matrix(eta), sparse.csr_array(labels), **options)
    )


def test_sparse_samples_are_never_made_dense(monkeypatch):
    eta, y = (sparse.csr_array(part) for part in stream(5, n=60, m=6, zeros=0.6))

    def refuse(*args, **kwargs):
        raise AssertionError("a sparse matrix was made dense")

    for name in ("toarray", "todense"):
        for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
            monkeypatch.setattr(kind, name, refuse)
    for k in (None, 2):
        mixture = fitted("macro_f1", eta, y, k=k)
        assert sparse.issparse(omma.replay(mixture, eta, y).predictions)


def test_blocks_of_rows_change_nothing(monkeypatch):
    eta, y = stream(7, n=60)
    for layout in LAYOUTS.values():
        expected = fitted("macro_hmean", layout(eta), y, k=1)
        with monkeypatch.context() as patch:
            patch.setattr("omma.rows.arrays.BLOCK", 30)
            same_mixture(expected, fitted("macro_hmean", layout(eta), y, k=1))


def test_single_precision_and_other_orders_are_read_alike():
    eta, y = stream(7, n=50)
    eta = eta.astype(np.float32)
    expected = fitted("macro_gmean", eta.astype(np.float64), y, k=2)
    same_mixture(expected, fitted("macro_gmean", eta, y, k=2))
    same_mixture(expected, fitted("macro_gmean", np.asfortranarray(eta), np.asfortranarray(y), k=2))


def test_a_row_of_weight_w_counts_as_w_rows():
    eta, y = stream(8, n=30)
    times = np.random.default_rng(8).integers(0, 4, size=30)
    for feedback, rtol in (("labels", 0.0), ("estimates", 1e-3)):  # sums of estimates are rounded
        policy = omma.FrankWolfe("macro_hmean", k=2, feedback=feedback, tolerance=1e-3)
        repeated = policy.fit(np.repeat(eta, times, axis=0), np.repeat(y, times, axis=0))
        same_mixture(repeated, policy.fit(eta, y, weights=times), rtol)


def test_labels_may_be_left_out_with_estimates_alone():
    eta, y = stream(9)
    same_mixture(
        fitted("macro_f1", eta, feedback="estimates"),
        fitted("macro_f1", eta, y, feedback="estimates"),
    )
    with pytest.raises(ValueError, match=r"y of FrankWolfe\.fit must be given"):
        omma.FrankWolfe("macro_f1").fit(eta)


def test_one_label_may_come_as_a_vector():
    eta, y = stream(10, n=60, m=1)
    mixture = fitted("f1", eta[:, 0], y[:, 0])
    trace = omma.replay(mixture, eta[:, 0], y[:, 0])
    assert trace.predictions.shape == (60,)
    assert trace.value >= omma.metric("f1").score(y[:, 0], (eta[:, 0] >= 0.5).astype(int))


def test_class_ids_are_one_hot_rows():
    eta, y = class_stream(11)
    for name in ("multiclass_gmean", "multiclass_kappa"):
        same_mixture(fitted(name, eta, y), fitted(name, eta, one_hot(y, 4)))
    same_mixture(fitted("macro_f1", eta, y, k=1), fitted("macro_f1", eta, one_hot(y, 4), k=1))


# A metric of your own


def decimal_f1(tp, fp, fn, tn):
    return float(Decimal(2 * tp) / Decimal(2 * tp + fp + fn + 1e-9))


def f1_gradient(tp, fp, fn, tn):
    whole = 2 * tp + fp + fn + 1e-9
    return 2 / whole - 4 * tp / whole**2, -2 * tp / whole**2, -2 * tp / whole**2, 0.0


def test_a_metric_of_your_own_is_maximized_as_one_of_the_catalogue():
    eta, y = stream(12)
    metric = omma.metrics.custom(own_gmean, average="macro")
    same_mixture(
        fitted(metric, eta, y, k=2, prior=0.1, max_iter=5),
        fitted("macro_gmean", eta, y, k=2, prior=0.1, max_iter=5),
        rtol=1e-5,
    )


def test_a_metric_whose_value_does_not_compile_takes_fixed_steps():
    eta, y = stream(13)
    metric = omma.metrics.custom(decimal_f1, average="macro", gradient=f1_gradient)
    same_mixture(
        fitted(metric, eta, y, k=2, max_iter=4),
        fitted("macro_f1", eta, y, k=2, max_iter=4, step="2/(i+2)"),
        rtol=1e-5,
    )


# Refusals


def test_costs_are_refused_because_their_best_rule_is_known():
    with pytest.raises(UnsupportedMetricError, match="OMMA has it at once"):
        omma.FrankWolfe(omma.metrics.costs([[1, 0], [0, 2]]))


@pytest.mark.parametrize(
    "options",
    [
        {"step": "1/i"},
        {"max_iter": 0},
        {"tolerance": -1.0},
        {"k": 0},
        {"feedback": "y"},
        {"seed": -1},
    ],
    ids=str,
)
def test_wrong_options_are_refused_by_name(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} of "):
        omma.FrankWolfe("macro_f1", **options)


def test_a_budget_above_the_number_of_labels_is_refused():
    eta, y = stream()
    with pytest.raises(ValueError, match=r"k of FrankWolfe\(.* must be at most .* 4, got 5"):
        omma.FrankWolfe("macro_f1", k=5).fit(eta, y)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_no_probability_is_refused(layout):
    for wrong in (np.nan, np.inf, -0.1, 1.5):
        eta, y = stream()
        eta[7, 2] = wrong
        with pytest.raises(ValueError, match=r"eta of FrankWolfe\.fit must hold .* row 7, label 2"):
            omma.FrankWolfe("macro_f1").fit(LAYOUTS[layout](eta), y)


def test_an_empty_sample_is_refused():
    with pytest.raises(ValueError, match=r"of FrankWolfe\.fit must"):
        omma.FrankWolfe("macro_f1").fit(np.empty((0, 3)), np.empty((0, 3)))


def test_a_sample_without_weight_is_refused():
    eta, y = stream()
    with pytest.raises(ValueError, match=r"weights of FrankWolfe\.fit must"):
        omma.FrankWolfe("macro_f1").fit(eta, y, weights=np.zeros(len(eta)))


def test_class_ids_without_a_budget_are_refused():
    eta, y = class_stream()
    with pytest.raises(ValueError, match="pass k=1"):
        omma.FrankWolfe("macro_f1").fit(eta, y)


def test_agreement_of_classes_needs_one_label_a_row():
    eta, y = stream()
    with pytest.raises(ValueError, match="exactly one label a row for multiclass_mcc"):
        omma.FrankWolfe("multiclass_mcc").fit(eta, y)


# The mixture


def three_rules(k=None, seed=0):
    """Rules of three labels that predict one label each, so that a decision tells its rule."""
    offsets = np.where(np.eye(3), 0.0, -1.0)
    rules = tuple(omma.Rule(np.ones(3), offset, k) for offset in offsets)
    return omma.Mixture(rules, [0.2, 0.7, 0.1], "macro_f1", seed)


HALVES = np.full((20_000, 3), 0.5)


def test_shares_add_up_to_one():
    rules = three_rules().rules
    np.testing.assert_allclose(omma.Mixture(rules, [1, 2, 5]).shares, [0.125, 0.25, 0.625])
    eta, y = stream()
    for name, k in ANY[:6]:
        shares = fitted(name, eta, y, k=k).shares
        assert (shares > 0).all()
        assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("shares", [[0, 0, 0], [1, 2], [1, -1, 1], [np.nan, 1, 1], [np.inf, 1, 1]])
def test_shares_that_are_no_shares_are_refused(shares):
    with pytest.raises(ValueError, match="shares of Mixture must"):
        omma.Mixture(three_rules().rules, shares)


def test_rules_of_different_kinds_are_refused():
    one, two, three = omma.Rule([1.0], [0.0]), omma.Rule([1.0] * 2, [0.0] * 2), three_rules(1)
    for rules in ((one, two), (three.rules[0], three_rules().rules[0]), ()):
        with pytest.raises(ValueError, match="of Mixture must"):
            omma.Mixture(rules, np.ones(len(rules)))


def test_rules_with_a_cost_matrix_are_refused_or_heeded():
    rule = omma.Rule([0.0, 0.0], [0.0, 0.0], 1, [[0.0, 1.0], [0.0, 1.0]])  # class 1, always
    eta = np.array([[0.6, 0.4], [0.9, 0.1]])
    try:
        mixture = omma.Mixture((rule,), [1.0])
    except ValueError:
        return
    found = omma.replay(mixture, eta, metric="multiclass_accuracy").predictions
    np.testing.assert_array_equal(found, rule.predict(eta))


def test_a_seed_draws_the_same_again_and_another_does_not():
    draw = {seed: omma.replay(three_rules(seed=seed), HALVES[:200]) for seed in (0, 1)}
    again = omma.replay(three_rules(seed=0), HALVES[:200])
    np.testing.assert_array_equal(draw[0].predictions, again.predictions)
    assert (draw[0].predictions != draw[1].predictions).any()


def test_draws_are_those_of_numpy_turned_by_the_row():
    drawn = np.random.Generator(np.random.PCG64(5)).random(200)
    drawn = (drawn + twins.fingerprint(HALVES[0])) % 1.0
    expected = np.searchsorted(np.cumsum([0.2, 0.7, 0.1]), drawn, side="right")
    trace = omma.replay(three_rules(seed=5), HALVES[:200])
    np.testing.assert_array_equal(trace.predictions.argmax(axis=1), expected)


@pytest.mark.parametrize("k", [None, 1])
def test_rules_are_drawn_as_often_as_their_shares_say(k):
    for layout in LAYOUTS.values():
        drawn = omma.replay(three_rules(k), layout(HALVES)).predictions
        often = np.asarray(drawn.sum(axis=0)).ravel() / len(HALVES)
        spread = np.sqrt([0.2 * 0.8, 0.7 * 0.3, 0.1 * 0.9]) / np.sqrt(len(HALVES))
        assert (abs(often - [0.2, 0.7, 0.1]) < 4 * spread).all()


@given(
    k=st.sampled_from([None, 1, 2]), layout=st.sampled_from(list(LAYOUTS)), seed=st.integers(0, 99)
)
@settings(max_examples=20)
def test_stepping_is_replaying(k, layout, seed):
    eta, y = stream(seed, n=50, m=3)
    eta = LAYOUTS[layout](eta)
    mixture = three_rules(k, seed)
    trace = omma.replay(mixture, eta, y)
    learner = omma.OnlineClassifier(mixture, n_labels=3)
    np.testing.assert_array_equal(twins.stepped(learner, eta, y), twins.dense(trace.predictions))
    assert trace.counts == learner.counts
    assert trace.rule == learner.rule
    assert trace.value == learner.value


def test_a_state_equals_one_that_counted_and_drew_the_same():
    mixture = three_rules()
    first, second = (omma.OnlineClassifier(mixture, n_labels=3) for _ in range(2))
    assert first.state == second.state
    first.predict([0.5, 0.5, 0.5])
    first.update([0, 0, 0])
    assert first.state != second.state


def test_the_rule_shown_is_drawn_for_the_place_alone():
    """A row's own draw is turned by its probabilities, which nobody knows beforehand."""
    mixture = three_rules()
    learner = omma.OnlineClassifier(mixture, n_labels=3)
    drawn = np.random.Generator(np.random.PCG64(0)).random(30)
    for place in np.searchsorted([0.2, 0.9, 1.0], drawn, side="right"):
        assert learner.rule == mixture.rules[place]
        assert learner.predict(HALVES[0]).sum() == 1
        learner.update([0, 1, 0])


def test_a_matrix_is_decided_by_a_draw_a_row():
    learner = omma.OnlineClassifier(three_rules(), n_labels=3)
    expected = omma.replay(three_rules(), HALVES[:50]).predictions
    np.testing.assert_array_equal(learner.predict(HALVES[:50]), expected)


def test_deterministic_is_the_rule_worth_most_alone():
    eta, y = stream(7, n=60)
    for name in ("macro_gmean", "macro_f1", "macro_hmean"):
        mixture = fitted(name, eta, y, k=1)
        alone = mixture.deterministic()
        assert alone.shares.tolist() == [1.0]
        metric = omma.metric(name)
        worth = [metric.score(y, rule.predict(eta)) for rule in mixture.rules]
        assert metric.score(y, alone.rules[0].predict(eta)) == pytest.approx(max(worth), abs=1e-4)
        np.testing.assert_array_equal(
            omma.replay(alone, eta, y).predictions, alone.rules[0].predict(eta)
        )


def test_deterministic_without_values_is_the_rule_of_the_largest_share():
    assert three_rules().deterministic().rules == (three_rules().rules[1],)


def restored(mixture):
    return policy_from_json(json.loads(json.dumps(mixture.to_json())))


@pytest.mark.parametrize("copy", [restored, lambda mixture: pickle.loads(pickle.dumps(mixture))])
def test_a_copy_decides_the_same(copy):
    eta, y = stream(7, n=60)
    mixture = fitted("macro_hmean", eta, y, k=1, seed=7)
    assert len(mixture.rules) > 1
    same_mixture(mixture, copy(mixture))
    first, second = (omma.replay(one, eta, y) for one in (mixture, copy(mixture)))
    np.testing.assert_array_equal(first.predictions, second.predictions)
    assert first.value == second.value


@pytest.mark.parametrize("copy", [restored, lambda mixture: pickle.loads(pickle.dumps(mixture))])
def test_a_copy_has_the_same_deterministic_rule(copy):
    eta, y = stream(7, n=60)
    for name in ("macro_gmean", "macro_f1", "macro_hmean"):
        mixture = fitted(name, eta, y, k=1)
        assert copy(mixture).deterministic().rules == mixture.deterministic().rules

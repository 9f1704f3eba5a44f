"""omma.choose: rules are judged on rows they have not seen, and the right one is recommended."""

import io

import numpy as np
import pytest
from naive_baselines import class_stream, stream
from rich.console import Console
from scipy import sparse
from scipy.special import expit, logit, softmax

import omma
from omma.comparison.resampling import Resampler


@pytest.fixture(scope="module")
def tail():
    return omma.datasets.long_tail(n=3000, m=6, seed=0)


def test_auto_wins_where_probabilities_are_off_and_labels_are_rare():
    eta, y = omma.datasets.long_tail(n=4000, m=30, seed=0)
    choice = omma.choose(expit(0.5 * logit(eta) + 1.0), y, "macro_f1")
    assert choice.best.name == "auto"
    assert not any(choice[one].as_good for one in ("baseline", "omma", "omma_eta"))
    assert choice.verdict.startswith("Deploy Auto: expect ")
    fresh, truth = omma.datasets.long_tail(n=20_000, m=30, seed=1)
    decided = choice.rule.predict(expit(0.5 * logit(fresh) + 1.0))
    worth = omma.metric("macro_f1").score(truth, decided)
    low, high = choice.best.interval
    assert low - 0.01 < worth < high + 0.01  # what was promised is kept on rows never seen


def test_tuned_thresholds_win_where_no_sigmoid_helps(tail):
    eta, y = tail
    # Two plateaus with the order kept: what lies between them is right for no calibration.
    odd = np.where(eta > 0.25, 0.3 + 0.02 * eta, 0.28 + 0.02 * eta)
    choice = omma.choose(odd, y, "macro_f1")
    assert choice.best.name == "tuned"
    assert not choice["omma_eta"].as_good
    np.testing.assert_array_equal(choice.rule.slope, np.ones(6))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_says_when_the_simple_rule_is_as_good(tail, layout):
    eta, y = tail
    half = omma.choose(layout(eta), y, "macro_accuracy")
    assert half.best.name == "baseline"
    assert half.verdict.startswith("The 0.5 threshold is as good")
    top = omma.choose(layout(eta), y, "micro_recall@2")
    assert "top-2 rule" in top.verdict
    assert not top.verdict.startswith("Deploy")
    assert top.rule.k == 2


def test_rows_are_decided_by_rules_made_without_them():
    """On labels of pure noise a rule that saw them scores far more than one that did not."""
    rng = np.random.default_rng(0)
    eta, y = rng.random((400, 40)), (rng.random((400, 40)) < 0.02).astype(np.int8)
    choice = omma.choose(eta, y, "macro_f1")
    seen = omma.metric("macro_f1").score(
        y, omma.TunedThresholds("macro_f1").fit(eta, y).decision.predict(eta)
    )
    assert choice["tuned"].out_of_fold < 0.7 * seen


def test_values_are_those_of_out_of_fold_decisions(tail):
    eta, y = (part[:300] for part in tail)
    choice = omma.choose(eta, y, "macro_f1", folds=3, seed=5)
    order = np.random.default_rng(5).permutation(300)
    made = np.zeros(y.shape, dtype=np.int8)
    for fold in range(3):
        others = np.concatenate([order[one::3] for one in range(3) if one != fold])
        rule = omma.replay(omma.Auto("macro_f1"), eta[others], y[others]).rule
        made[order[fold::3]] = rule.predict(eta[order[fold::3]])
    expected = omma.metric("macro_f1").score(y, made)
    assert choice["auto"].out_of_fold == pytest.approx(expected, abs=1e-12)
    stream = omma.replay(omma.Auto("macro_f1"), eta, y, seed=5).value
    assert choice["auto"].stream == stream
    assert choice["tuned"].stream is None


def test_dense_is_sparse_and_a_seed_decides_all(tail):
    eta, y = (part[:500] for part in tail)
    one, same, thin = (
        omma.choose(layout(eta), y, "micro_f1", at_most=2, seed=3)
        for layout in (np.asarray, np.asarray, sparse.csr_array)
    )
    assert one.data == same.data
    for mine, others in zip(one.data, thin.data, strict=True):
        assert mine["out_of_fold"] == pytest.approx(others["out_of_fold"], abs=1e-12)
    assert one.rule.at_most == 2
    assert one.data != omma.choose(eta, y, "micro_f1", at_most=2, seed=4).data
    with pytest.raises(KeyError, match="no candidate 'atuo'"):
        one["atuo"]


# Intervals


@pytest.fixture(scope="module")
def promises():
    """What is promised for the best rule, and its true value on a large pool, many times."""
    every, labels = omma.datasets.long_tail(n=40_000, m=5, seed=2)
    distorted = expit(0.8 * logit(every) + 0.4)

    def of(metric, n, times, **options):
        eta, y = (distorted[:, 3], labels[:, 3]) if metric == "f1" else (distorted, labels)
        pairs = []
        for seed in range(times):
            rows = np.random.default_rng(seed).choice(len(eta), n, replace=False)
            choice = omma.choose(eta[rows], y[rows], metric, seed=seed, **options)
            decided = choice.rule.predict(eta.reshape(len(eta), -1))
            truth = omma.metric(metric).score(y.reshape(decided.shape), decided)
            pairs.append((choice.best, truth))
        return pairs

    return of


@pytest.mark.parametrize(("metric", "limit"), [("f1", None), ("macro_f1", "labels_per_row <= 2")])
def test_intervals_cover_what_the_chosen_rule_is_worth(promises, metric, limit):
    pairs = promises(metric, 150, 40, subject_to=limit)
    covered = [best.interval[0] <= truth <= best.interval[1] for best, truth in pairs]
    assert np.mean(covered) >= 0.9
    raw, corrected = (
        np.mean([number - truth for number, (_, truth) in zip(numbers, pairs, strict=True)])
        for numbers in ([best.out_of_fold for best, _ in pairs], [best.value for best, _ in pairs])
    )
    assert abs(corrected) < 0.02
    assert corrected < raw  # the best of several was lucky


@pytest.mark.parametrize("metric", ["multiclass_gmean", "multiclass_hmean"])
def test_classes_of_few_rows_do_not_pull_a_mean_over_classes_down_twice(metric):
    """Fifteen classes with ten rows each; the truth is known by probabilities."""
    rng = np.random.default_rng(0)
    pool = softmax(2.0 * rng.normal(size=(20_000, 15)), axis=1)
    errors, covered = [], []
    for seed in range(20):
        eta = pool[rng.integers(len(pool), size=150)]
        ids = (eta.cumsum(axis=1)[:, :-1] < rng.random((150, 1))).sum(axis=1)
        choice = omma.choose(eta, ids, metric, seed=seed)
        decided = choice.rule.predict(pool)
        sums = (values.sum(axis=0) for values in (pool * decided, decided, pool))
        truth = omma.metric(metric).value(omma.Counts(*sums, len(pool)))
        low, high = choice.best.interval
        covered.append(low <= truth <= high)
        errors.append(choice.best.value - truth)
    assert np.mean(covered) >= 0.9
    assert abs(np.mean(errors)) < 0.02


def test_limits_count_how_far_rules_of_folds_differ():
    """A rule that hangs on few rows differs from fold to fold, and so will the one to deploy."""
    rng = np.random.default_rng(1)
    eta = np.round(rng.beta(0.5, 2.0, size=(300, 6)), 1)  # few values: steps of a rule are large
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    (status,) = omma.choose(eta, y, "macro_f1", subject_to="labels_per_row <= 1").best.limits
    assert status.error >= np.sqrt(status.value / 300) - 1e-12  # what chance makes of the rows
    low, high = status.interval
    assert low < status.value < high


def test_a_lead_cannot_exceed_what_is_possible():
    """One label of 60 rows: two standard errors to either side would end beyond 100 points."""
    rng = np.random.default_rng(1)
    y = (np.arange(60) % 15 == 0).astype(int)
    eta = np.where(y == 1, 0.3, 0.1) * rng.uniform(0.9, 1.0, 60)  # all below one half
    choice = omma.choose(eta, y, "f1")
    simple = choice["baseline"]
    assert choice.best.name != "baseline"
    assert -1.0 <= simple.behind_interval[0] <= simple.behind <= simple.behind_interval[1] <= 0.5
    tuned = choice["tuned"]
    assert tuned.value == pytest.approx(choice.best.value + tuned.behind, abs=1e-12)
    for candidate in choice.candidates:
        assert 0.0 <= candidate.interval[0] <= candidate.value <= candidate.interval[1] <= 1.0
    assert choice.best.interval[1] < 1.0  # four of four hits are not all that can happen


METRICS = [
    "micro_mcc", "macro_mcc", "macro_gmean", "weighted_f1", "macro_min_recall_specificity",
    "micro_precision@2", omma.metric("macro_f1") + 0.5 * omma.metric("micro_recall"),
    omma.metrics.custom(lambda tp, fp, fn, tn: tp / (tp + fp + fn + 0.01), average="macro"),
]  # fmt: skip


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_every_metric_has_intervals(tail, metric):
    eta, y = (part[:120].astype(float) for part in tail)
    y[np.random.default_rng(0).random(y.shape) < 0.2] = np.nan
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 120)
    choice = omma.choose(omma.Batch.of(eta, y, weights), None, metric, folds=2)
    for candidate in choice.candidates:
        low, high = candidate.interval
        assert low < candidate.value < high
        assert candidate is choice.best or np.subtract(*candidate.behind_interval) < 0.0


@pytest.mark.parametrize("kind", ["accuracy", "gmean", "hmean", "mcc", "kappa", "min_recall"])
def test_every_metric_of_classes_has_intervals(kind):
    eta, ids = class_stream(2, 90, 4)
    choice = omma.choose(eta, ids, f"multiclass_{kind}", folds=2)
    low, high = choice.best.interval
    assert low < choice.best.value < high <= 1.0


def test_a_class_that_is_never_hit_does_not_claim_certainty():
    eta, ids = class_stream(5, 60, 3)
    ids[:] = np.where(ids == 2, 0, ids)
    choice = omma.choose(eta, ids, "multiclass_gmean", folds=2)
    assert choice.best.out_of_fold == 0.0
    assert choice.best.interval[0] == 0.0 < choice.best.interval[1]


def test_draws_are_values_of_weighted_rows():
    eta, y = stream(0, 50, 3)
    rules = [sparse.csr_array((eta >= cut).astype(float)) for cut in (0.3, 0.4)]
    sample = Resampler(omma.Batch.of(eta, y), rules, omma.metric("macro_f1"), 1)
    expected = [omma.metric("macro_f1").score(y, rule) for rule in rules]
    np.testing.assert_allclose(sample.values, expected, atol=1e-12)
    raw, smoothed, _ = sample.draw(300)
    assert raw.shape == smoothed.shape == (2, 300)
    np.testing.assert_allclose(raw.mean(axis=1), expected, atol=0.03)
    without = [
        omma.metric("macro_f1").score(y[rows], rules[1][rows])
        for rows in (np.arange(50) != row for row in range(50))
    ]
    np.testing.assert_allclose(np.sort(sample.left_out(1)), np.sort(without), atol=1e-12)


def test_macro_precision_with_a_budget_is_warned_of(tail):
    eta, y = (part[:200] for part in tail)
    said = "Macro precision with a budget: values and intervals can be off"
    assert omma.choose(eta, y, "macro_precision@2", folds=2).notes[-1].startswith(said)
    assert omma.choose(eta, y, "macro_precision", folds=2).notes == ()


# Verdicts


def test_a_metric_that_everything_maximizes_is_warned_of(tail):
    eta, y = (part[:200] for part in tail)
    (note,) = omma.choose(eta, y, "macro_recall", folds=2).notes
    assert note == "macro_recall is maximal when everything is predicted: pass k."
    limit = "labels_per_row <= 2"
    assert omma.choose(eta, y, "macro_recall", subject_to=limit, folds=2).notes == ()


def test_a_rule_that_misses_a_limit_is_not_recommended_if_another_holds_it():
    rng = np.random.default_rng(3)
    eta = rng.random((1500, 3)) ** 2
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    for bound in np.linspace(0.5, 0.9, 9):
        choice = omma.choose(eta, y, "macro_f1", subject_to=f"micro_precision >= {bound:.3f}")
        holding = [one for one in choice.candidates if one.limits[0].value >= bound]
        assert choice.best in holding
        assert choice.best.out_of_fold == max(one.out_of_fold for one in holding)
        ahead = [one for one in choice.candidates if one.behind > 0.0]
        assert not any(one.holds for one in ahead)
        assert ("points more, but misses micro_precision" in choice.verdict) == bool(ahead)


def test_calibration_is_tested_bin_by_bin():
    """Rare labels of which the faint ones are far too faint: the mean error is small."""
    rng = np.random.default_rng(0)
    true = np.where(rng.random(20_000) < 0.9, 0.012, 0.4)
    y = (rng.random(20_000) < true).astype(int)
    eta = np.where(true < 0.1, 0.0015, 0.4) * rng.uniform(0.99, 1.0, 20_000)
    check = omma.choose(eta, y, "f1").calibration
    assert not check.looks_calibrated
    assert check.error < 0.015
    assert "do not look calibrated" in str(check)
    assert "points" in str(check).partition("Calibrating them")[2]
    right = omma.choose(true * rng.uniform(0.99, 1.0, 20_000), y, "f1").calibration
    assert right.looks_calibrated
    assert right.gain is None


def test_calibrating_is_said_to_gain_what_it_does():
    eta, y = omma.datasets.long_tail(n=2000, m=6, seed=0)
    check = omma.choose(eta**3, y, "macro_f1").calibration
    assert check.gain > 0.02
    assert f"adds {100 * check.gain:.2f} points to the macro_f1 of OMMA" in str(check)


@pytest.mark.filterwarnings("ignore:FrankWolfe")
def test_classes_costs_and_frank_wolfe():
    eta, ids = class_stream(1, 400, 4)
    choice = omma.choose(eta, ids, "multiclass_gmean", frank_wolfe=True)
    assert [one.name for one in choice.candidates] == [
        "baseline", "auto", "omma_eta", "omma", "frank_wolfe",
    ]  # fmt: skip
    assert choice.rule.k == 1
    assert choice.labels.metric == "recall"
    costs = omma.metrics.costs(np.eye(4) - 0.2)
    judged = omma.choose(eta, ids, costs)
    top = omma.Counts.from_labels(ids, eta.argmax(axis=1), n_labels=4, matrix=True)
    assert judged["baseline"].out_of_fold == pytest.approx(costs.value(top))
    assert judged.labels is None
    with pytest.raises(ValueError, match="no part for each label"):
        _ = judged.label_table


def test_one_label(tail):
    eta, y = tail
    choice = omma.choose(eta[:, 0], y[:, 0], "f1")
    assert choice.rule.m == 1
    assert choice["tuned"].value > choice["baseline"].value


def test_told_as_text_rich_data_and_picture(tail):
    eta, y = (part[:400] for part in tail)
    pandas = pytest.importorskip("pandas")
    names = [f"tag {j}" for j in range(6)]
    choice = omma.choose(pandas.DataFrame(eta, columns=names), y, "macro_f1")
    assert choice.rule.names == tuple(names)
    text = str(choice)
    assert choice.verdict in text
    assert "each row was decided by a rule made without it" in text
    console = Console(file=io.StringIO(), width=120)
    console.print(choice)
    console.print(choice.label_table)
    drawn = console.file.getvalue()
    assert "Auto" in drawn
    assert "tag 3" in drawn
    record = choice.label_data[0]
    assert record["gain"] == record["best"] - record["simple"]
    np.testing.assert_allclose(
        np.mean(choice.labels.gains),
        choice.best.out_of_fold - choice["baseline"].out_of_fold,
        atol=1e-12,
    )
    assert [one["threshold"] for one in choice.label_data] == choice.rule.thresholds.tolist()
    lines = str(choice.table).splitlines()
    assert len(lines) == 1 + len(choice.candidates)
    titles = [text.get_text() for text in choice.plot().axes[0].get_yticklabels()]
    assert titles == [one.title for one in choice.candidates]
    assert repr(choice).startswith("<choice by macro_f1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"folds": 1}, "folds of choose must be from 2"),
        ({"folds": 101}, "folds of choose must be from 2"),
        ({"draws": 1}, "draws of choose must be a whole number of at least 2, got 1"),
        ({"seed": -1}, "seed"),
        ({"k": 9}, "9"),
        ({"k": 2, "at_most": 2}, "at_most"),
        ({"at_most": 2, "frank_wolfe": True}, "frank_wolfe of choose"),
    ],
)
def test_refuses_in_a_sentence(tail, options, said):
    eta, y = (part[:100] for part in tail)
    with pytest.raises(ValueError, match=said):
        omma.choose(eta, y, "macro_f1", **options)
    with pytest.raises(ValueError, match="y of choose"):
        omma.choose(eta, None, "macro_f1")


def test_tuned_thresholds_compete_only_where_they_apply(tail):
    eta, y = (part[:60] for part in tail)

    def names(metric, **budget):
        choice = omma.choose(eta, y, metric, **budget, folds=2, draws=2)
        return [candidate.name for candidate in choice.candidates]

    assert "tuned" in names("macro_f1")
    assert "tuned" not in names("micro_f1")
    assert "tuned" not in names("macro_f1", k=2)
    assert "tuned" not in names("macro_f1", at_most=2)


# Odd rows


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_labels_of_any_index_type(tail, kind):
    """A sparse matrix with long indexes, as large ones have, is taken apart and put together."""
    eta, y = (part[:200] for part in tail)
    labels, chances = (sparse.csr_array(one) for one in (y, eta))
    for one in (labels, chances):
        one.indptr, one.indices = one.indptr.astype(kind), one.indices.astype(kind)
    long = omma.choose(chances, labels, "macro_f1", folds=2, draws=5)
    same = omma.choose(eta, y, "macro_f1", folds=2, draws=5)["auto"]
    assert long["auto"].out_of_fold == pytest.approx(same.out_of_fold, abs=1e-12)
    part = omma.Batch.of(chances, labels).take(np.arange(100))
    found = omma.replay(omma.Auto("macro_f1"), part)
    assert found.state == omma.replay(omma.Auto("macro_f1"), eta[:100], y[:100]).state


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (
            {"eta": np.nan},
            {},
            "eta of choose must hold probabilities .* got nan in row 57, label 2",
        ),
        ({"eta": 40.0}, {}, "eta of choose must hold probabilities .* in row 57, label 2"),
        ({}, {"metric": None}, "metric of choose must be a name or a metric, got None"),
        ({}, {"metric": ("f1", 2)}, "metric of choose must be a name or a metric"),
        ({}, {"k": "2"}, "k of choose must be a whole number of at least 1, or None, got '2'"),
        ({}, {"metric": "macro_f1@9"}, "k of choose by macro_f1@9 must be at most the number of"),
        ({}, {"metric": "multiclass_mcc"}, "y of choose must have exactly one label a row for mul"),
        ({"rows": 0}, {}, "eta of choose must have at least one row and label, got 0 rows and 6"),
        ({"labels": 0}, {}, "choose must have at least one row and label, got 100 rows and 0 lab"),
        ({"rows": 3}, {}, "folds of choose must be from 2 to the number of rows that have labels"),
    ],
)
def test_what_is_wrong_is_said_of_choose_and_of_the_rows_given(tail, change, options, said):
    eta, y = (part[: change.get("rows", 100), : change.get("labels", 6)].copy() for part in tail)
    if "eta" in change:
        eta[57, 2] = change["eta"]
    with pytest.raises((TypeError, ValueError), match=said):
        omma.choose(eta, y, **{"metric": "macro_f1", **options})


def test_intervals_end_where_the_metric_does(tail):
    eta, y = (part[:4] for part in tail)
    for metric, low in (("macro_f1", 0.0), ("micro_mcc", -1.0)):
        choice = omma.choose(eta, y, metric, folds=2)
        for one in choice.candidates:
            assert low <= one.interval[0] <= one.value <= one.interval[1] <= 1.0
    ids = eta[:, :2].argmax(axis=1)
    worth = omma.choose(eta[:, :2], ids, omma.metrics.costs([[2.0, 0.0], [0.0, 5.0]]), folds=2)
    assert worth.best.value > 1.0  # a table of costs has no such ends
    assert worth.best.interval[1] >= worth.best.value


def test_labels_that_say_nothing_are_spoken_of(tail):
    eta, y = (part[:100] for part in tail)
    nothing = omma.choose(eta, 0 * y, "macro_f1", subject_to="micro_recall >= 0.5", folds=2)
    assert nothing.best.name == "baseline"
    assert nothing.notes == (
        "No label occurs in these rows: they cannot tell a good rule from a bad one.",
    )
    assert nothing.verdict.startswith("Deploy the 0.5 threshold: expect ")
    assert nothing.best.interval[0] == 0.0
    assert "micro_recall >= 0.5: nothing to judge it by" in nothing.verdict
    assert "nan" not in str(nothing)
    unknown = np.where(np.arange(6) == 2, np.nan, y)
    choice = omma.choose(eta, unknown, "macro_f1", folds=2)
    assert "1 of 6 labels are known in no row" in choice.notes[-1]
    assert choice.labels.best[2] == 0.0
    assert np.isfinite(choice.best.value)


def test_few_rows_and_classes_that_never_occur_are_spoken_of():
    eta, ids = class_stream(3, 15, 3)
    choice = omma.choose(eta, ids % 2, "multiclass_gmean", folds=3)
    assert choice.notes[0] == "15 rows are few: intervals may be too narrow."
    assert choice.notes[1] == "1 of 3 classes never occur: their recall is 0, however decided."
    assert omma.choose(*stream(3, 40, 3), "macro_f1", folds=2).notes == ()

"""Limits on a whole sample: Frank-Wolfe under one, and rules to choose from under several."""

import numpy as np
import pytest
from naive_baselines import stream

import omma
from omma.policies.frank_wolfe import ConvergenceWarning

M = 5


def expected(mixture, eta):
    """What a mixture counts by probabilities, over its draws: (tp, predicted, positive, n)."""
    made = sum(
        share * rule.predict(eta) for rule, share in zip(mixture.rules, mixture.shares, strict=True)
    )
    return omma.Counts((made * eta).sum(axis=0), made.sum(axis=0), eta.sum(axis=0), len(eta))


def sample(seed=0, n=800):
    eta = stream(seed, n, M, zeros=0.0)[0]
    return np.clip(eta, 1e-3, 1 - 1e-3)


def test_a_linear_metric_under_a_budget_of_labels_is_a_knapsack():
    """Macro recall is linear: the best are the entries that add most to it, as many as allowed."""
    eta, per_row = sample(), 1.3
    search = omma.FrankWolfe(
        "macro_recall", feedback="estimates", subject_to=f"labels_per_row <= {per_row}"
    )
    counts = expected(search.fit(eta), eta)
    gains = np.sort((eta / eta.sum(axis=0) / M).ravel())[::-1]
    room = per_row * len(eta)
    best = gains[: int(room)].sum() + (room - int(room)) * gains[int(room)]
    assert counts.predicted.sum() == pytest.approx(room, rel=1e-4)
    assert omma.metric("macro_recall").value(counts) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize(
    "limit",
    ["micro_precision >= 0.7", "recall[2] >= 0.9", "labels_per_row <= 1", "macro_recall >= 0.9"],
)
def test_a_concave_metric_is_as_good_as_any_thresholds(limit):
    eta = sample(1)
    counts = expected(omma.FrankWolfe("macro_gmean", feedback="estimates", subject_to=limit)
                      .fit(eta), eta)  # fmt: skip
    metric, (held,) = omma.metric("macro_gmean"), omma.Auto("macro_f1", subject_to=limit).limits
    found = held.named(None, M, "test")
    assert found.sign * (found.value(counts) - found.bound) >= -1e-6
    rng = np.random.default_rng(0)
    for _ in range(300):  # thresholds at random, those that keep the limit
        made = eta >= rng.random(M)
        other = omma.Counts((made * eta).sum(axis=0), made.sum(axis=0), eta.sum(axis=0), len(eta))
        if found.sign * (found.value(other) - found.bound) >= 0:
            assert metric.value(other) <= metric.value(counts) + 1e-3


def test_auto_comes_near_the_best_mixture():
    """Online, in one pass, without knowing the rows to come."""
    eta, y = omma.datasets.long_tail(n=8000, m=6, seed=3)
    limit = "labels_per_row <= 0.8"
    best = omma.FrankWolfe("macro_recall", feedback="estimates", subject_to=limit).fit(eta)
    most = omma.metric("macro_recall").value(expected(best, eta))
    trace = omma.replay(omma.Auto("macro_recall", subject_to=limit), eta, y)
    assert trace.limits[0].excess < 0.01
    assert abs(trace.value - most) < 0.03


def test_where_no_mixture_keeps_the_limit_it_comes_near():
    eta = sample(2)
    search = omma.FrankWolfe("macro_recall", k=3, feedback="estimates",
                             subject_to="micro_precision >= 0.95")  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="no mixture that keeps micro_precision >= 0.95"):
        counts = expected(search.fit(eta), eta)
    top = np.sort(eta, axis=1)[:, -3:].sum() / (3 * len(eta))
    assert counts.tp.sum() / counts.predicted.sum() == pytest.approx(top, abs=1e-3)


@pytest.mark.parametrize(
    ("metric", "limits", "said"),
    [
        ("macro_f1", "labels_per_row <= 1", "must be concave for subject_to.*got macro_f1"),
        ("macro_recall", ["labels_per_row <= 1", "micro_f1 >= 0.1"], "one limit without a margin"),
        ("macro_recall", omma.at_least("micro_f1", 0.1, margin=1), "one limit without a margin"),
    ],
)
def test_what_frank_wolfe_cannot_promise_is_refused(metric, limits, said):
    with pytest.raises(ValueError, match=said):
        omma.FrankWolfe(metric, subject_to=limits)


# Thresholds under several limits


def twenty_labels(n=20_000):
    """Twenty labels, from rare ones to one in two, and labels drawn from their probabilities."""
    rng = np.random.default_rng(0)
    eta = 1 / (1 + np.exp(-(1.5 * rng.normal(size=(n, 20)) + np.linspace(-4.5, 0.2, 20))))
    return eta, (rng.random(eta.shape) < eta).astype(np.int8)


@pytest.mark.parametrize("margin", [0, 1.5])
def test_two_limits_with_little_room_between_them_both_hold(margin):
    """Recall of 0.51 is the most at a precision of 0.7; 0.4535 is the best macro-F1 of all rows."""
    eta, y = twenty_labels()
    limits = [omma.at_least("micro_precision", 0.7, margin=margin), "micro_recall >= 0.5"]
    tuned = omma.TunedThresholds("macro_f1", subject_to=limits).fit(eta, y)
    trace = omma.replay(tuned, eta, y)
    made = trace.predictions
    precision, recall = ((made * y).sum() / of.sum() for of in (made, y))
    assert precision >= 0.7 + margin * np.sqrt(0.7 * 0.3 / made.sum()) - 1e-9
    assert recall >= 0.5 - 1e-9
    assert trace.value > (0.452 if margin == 0 else 0.44)
    assert precision < 0.705 + margin * 0.01


def test_limits_that_no_thresholds_meet_are_come_near_to():
    eta, y = twenty_labels(4000)
    limits = ["micro_precision >= 0.8", "micro_recall >= 0.8"]
    tuned = omma.TunedThresholds("macro_f1", subject_to=limits).fit(eta, y)
    made = omma.replay(tuned, eta, y).predictions

    def missed(one):
        hits = (one * y).sum()
        return max(0.8 - hits / one.sum(), 0) + max(0.8 - hits / y.sum(), 0)

    least = min(missed(eta >= cut) for cut in np.linspace(0.1, 0.9, 81))
    assert 0.1 < missed(made) < least + 0.03  # no single threshold comes much nearer


@pytest.mark.parametrize(
    "limits",
    [
        ["f1 >= 0.95"],
        ["recall >= 0.95", "predicted_rate <= 0.2"],
        [omma.at_least("recall", 0.9, margin=1), omma.at_least("specificity", 0.9)],
    ],
    ids=str,
)
def test_one_label_comes_as_near_as_any_cut_does(limits):
    """Near by the rates themselves, and of cuts that are equally near the best is taken."""
    rng = np.random.default_rng(1)
    eta = rng.random(60).round(2)
    y = (rng.random(60) < eta).astype(int)
    tuned = omma.TunedThresholds("precision", subject_to=limits)
    found = tuned.fit(eta, y).decision.thresholds[0]
    every = [one.named(None, 1, "test") for one in tuned.subject_to]

    def missed(cut):
        counts = omma.Counts.from_labels(y[:, None], (eta >= cut)[:, None].astype(int))
        short = [one.sign * (one.bound - one.value(counts)) + one.tighter(counts) for one in every]
        return np.maximum(np.nan_to_num(short) - 1e-12, 0.0).sum()

    least = min(missed(cut) for cut in (*eta, np.inf))
    assert 0.0 < missed(found) == pytest.approx(least)


# Rules to choose from


def test_limits_come_first_where_rules_are_chosen():
    eta, y = omma.datasets.long_tail(n=1500, m=4, seed=0)
    choice = omma.choose(eta, y, "macro_recall", subject_to="micro_precision >= 0.7", draws=20)
    best = choice.best
    assert best.holds
    for one in choice.candidates:
        assert not one.holds or one.out_of_fold <= best.out_of_fold
        assert one.limits[0].name == "micro_precision"
    free = omma.choose(eta, y, "macro_recall", draws=20)
    assert free.best.value > best.value
    made = choice.rule.predict(eta)
    assert (made * y).sum() / made.sum() > 0.68
    assert "micro_precision >= 0.7: 0." in choice.verdict
    assert "micro_precision >= 0.7" in str(choice.table)
    assert choice.data[0]["limits"][0]["limit"] == "micro_precision >= 0.7"


def test_a_margin_is_asked_of_every_rule_to_choose_from():
    """The simple one, too, though it knows nothing of limits: here it just meets this one."""
    rng = np.random.default_rng(0)
    eta = rng.random(4000)
    y = (rng.random(4000) < eta).astype(int)
    met = float(y[eta >= 0.5].mean())
    for margin, rule in ((0, "baseline"), (2, "tuned")):
        limit = omma.at_least("precision", met - 1e-6, margin=margin)
        choice = omma.choose(eta, y, "accuracy", subject_to=limit, draws=2)
        assert choice["baseline"].limits[0].holds
        assert choice["baseline"].holds == (margin == 0)
        assert choice.best.holds
        assert choice.best.name == rule


def test_where_nothing_keeps_the_limits_that_is_said():
    eta, y = omma.datasets.long_tail(n=600, m=4, seed=0)
    limits = ["micro_precision >= 0.97", "micro_recall >= 0.97"]
    choice = omma.choose(eta, y, "macro_f1", subject_to=limits, draws=10)
    assert choice.verdict.startswith("No rule here holds all limits. Nearest is ")
    assert "misses micro_" in choice.verdict


def test_bad_limits_of_choose():
    eta, y = omma.datasets.long_tail(n=60, m=4, seed=0)
    with pytest.raises(ValueError, match="contradicts its budget"):
        omma.choose(eta, y, "macro_f1", 3, subject_to="labels_per_row <= 2")
    with pytest.raises(ValueError, match="frank_wolfe of choose goes without subject_to"):
        omma.choose(eta, y, "macro_f1", subject_to="micro_f1 >= 0.1", frank_wolfe=True)

"""Limits that cannot be: one sentence each, before the first row."""

import numpy as np
import pandas as pd
import pytest
from naive_baselines import stepped

import omma
from omma.limits import read_limit


@pytest.mark.parametrize(
    ("text", "name", "sense", "bound", "label"),
    [
        ("micro_precision >= 0.9", "micro_precision", ">=", 0.9, None),
        ("recall[fraud]>=.8", "recall", ">=", 0.8, "fraud"),
        ("recall[3] ≥ .8", "recall", ">=", 0.8, 3),
        (" labels_per_row<=2 ", "labels_per_row", "<=", 2.0, None),
        ("precision[two words] >= 1e-1", "precision", ">=", 0.1, "two words"),
        ("micro_f0.5 >= 0.5", "micro_f0.5", ">=", 0.5, None),
        ("multiclass_accuracy >= 0.5", "micro_recall", ">=", 0.5, None),
        ("multiclass_balanced_accuracy >= 0.5", "macro_recall", ">=", 0.5, None),
        ("recall_micro >= 0.5", "micro_recall", ">=", 0.5, None),
        ("MICRO_RECALL >= 0.5", "micro_recall", ">=", 0.5, None),
        ("precision-micro >= 0.5", "micro_precision", ">=", 0.5, None),
        ("accuracy_score >= 0.5", "micro_recall", ">=", 0.5, None),
        ("balanced_accuracy_score >= 0.5", "macro_recall", ">=", 0.5, None),
        ("recall_weighted >= 0.5", "micro_recall", ">=", 0.5, None),
        ("sensitivity[fraud] >= 0.5", "recall", ">=", 0.5, "fraud"),
    ],
)
def test_texts(text, name, sense, bound, label):
    found = read_limit(text)
    assert (found.of, found.sense, found.bound, found.label) == (name, sense, bound, label)
    assert read_limit(str(found)) == found
    assert read_limit(found.to_json()) == found


def test_a_place_may_be_a_number_of_numpy():
    assert omma.at_least("recall", 0.8, np.int64(3)) == read_limit("recall[3] >= 0.8")


def test_a_margin_in_a_text():
    limit = omma.at_least("recall", 0.8, "fraud", margin=1.28)
    assert read_limit(str(limit)) == limit
    assert read_limit("recall[fraud]>=.8(margin 1.28)") == limit


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("micro_recall >= 0.8 (margin x)", "the margin of a limit must be a number, got"),
        ("micro_recall >= 0.8 (margin -1)", "margin of a limit must be"),
        ("micro_recall >= 0.8 (margin nan)", "margin of a limit must be"),
        ("micro_recall >= 0.8 (margin)", "must be a text such as"),
        ("micro_precison >= 0.9", "unknown limit 'micro_precison'; did you mean 'micro_precision'"),
        ("precision >= 1.2", "bound of precision of a limit must be a number from 0 to 1, got 1.2"),
        ("micro_recall >= -1", "from 0 to 1, got -1"),
        ("labels_per_row <= 0", "must be above 0"),
        ("macro_precision >= 0.5", "macro_precision cannot be a limit: its price"),
        ("macro_f1 >= 0.5", "use micro_f1, or f1\\[j\\] of single labels"),
        ("micro_gmean >= 0.5", "no ratio of two sums"),
        ("mcc[1] >= 0.5", "no ratio of two sums"),
        ("matthews_corrcoef >= 0.5", "multiclass_mcc cannot be a limit"),
        ("balanced_accuracy >= 0.5", "recall and specificity, or multiclass_balanced_accuracy$"),
        ("roc_auc >= 0.9", "'roc_auc' is not a metric of decisions"),
        ("micro_precision[2] >= 0.5", "is about all labels"),
        ("micro_precision > 0.5", ">= or <=, got .*: write 'micro_precision >= 0.5'"),
        ("recall[fraud]<.5", ">= or <=, got .*: write 'recall\\[fraud\\]<=.5'"),
        ("recall[0] - recall[1] <= 0.02", "on one rate, got an expression of several"),
        ("micro_recall + micro_precision >= 1", "on one rate, got an expression of several"),
        ("recall[a-b] > 0.5 > 0.2", "must be a text such as"),
        ("micro_precision >= high", "must be a number, got"),
        ("0.9 <= micro_precision", "got '0.9 <= micro_precision': write 'micro_precision >= 0.9'"),
        (3, "must be a text such as"),
        (b"micro_recall >= 0.5", "must be a text such as"),
        ("labels_per_row >= 0", "must be above 0: it is never below"),
        ("fpr <= 0.01", "unknown limit 'fpr', which is 1 - specificity here"),
        ("micro_alarm_rate <= 0.01", "which is predicted_rate here"),
        ("coverage >= 0.5", "unknown limit 'coverage'; there are micro_accuracy, .*labels_per_row"),
        (["micro_recall >= 0.9", "micro_recall <= 0.5"], "cannot both hold"),
    ],
)
@pytest.mark.parametrize("policy", [omma.Auto, omma.OMMA, omma.TunedThresholds])
def test_refused_where_the_policy_is_made(policy, given, said):
    with pytest.raises(ValueError, match=said) as caught:
        policy("macro_f1", subject_to=given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("budget", "given", "said"),
    [
        ({"k": 3}, "labels_per_row <= 2", "contradicts its budget: rows get 3 labels"),
        ({"k": 1}, "labels_per_row >= 2", "contradicts its budget"),
        ({"at_most": 2}, "labels_per_row >= 3", "contradicts its budget: rows get 0 to 2"),
    ],
)
def test_a_limit_against_the_budget(budget, given, said):
    with pytest.raises(ValueError, match=said):
        omma.Auto("macro_f1", subject_to=given, **budget)


@pytest.mark.parametrize(
    ("budget", "given", "said"),
    [
        ({}, "precision >= 0.5", "is a rate of one label, and there are 4: write precision"),
        ({}, "predicted_rate <= 0.5", "or labels_per_row"),
        ({}, "recall[4] >= 0.5", "must be about a label from 0 to 3"),
        ({}, "recall[fraud] >= 0.5", "the labels have no names"),
        ({}, "labels_per_row >= 5", "rows get 0 to 4 labels"),
        (
            {},
            ["labels_per_row <= 1", "predicted_rate[0] >= 0.7", "predicted_rate[1] >= 0.6"],
            "at least 1.3 labels a row in all, and rows get at most 1",
        ),
        (
            {"k": 2},
            [f"predicted_rate[{j}] <= 0.4" for j in range(4)],
            "leaves at most 1.6 labels a row in all, and rows get at least 2",
        ),
        ({}, ["micro_f1 >= 0.9", "micro_jaccard <= 0.2"], "cannot both hold"),
        ({}, ["f1[2] >= 0.9", "precision[2] <= 0.5", "recall[1] >= 0.1"], "cannot both hold"),
        (
            {},
            ["micro_precision >= 0.9", "micro_recall >= 0.9", "micro_f1 <= 0.5"],
            "micro_f1 <= 0.5 cannot all hold",
        ),
    ],
)
def test_refused_where_labels_are_known(budget, given, said):
    eta = np.full((3, 4), 0.5)
    policy = omma.Auto("macro_f1", subject_to=given, **budget)
    with pytest.raises(ValueError, match=said):
        omma.replay(policy, eta, eta > 1)
    with pytest.raises(ValueError, match=said):
        omma.OnlineClassifier(policy, 4)


def test_what_some_counts_can_have_is_not_refused():
    for given in (
        ["recall[0] >= 0.5", "recall[0] <= 0.5"],
        ["micro_recall <= 0", "micro_precision >= 0.5"],  # nothing is predicted
        ["micro_precision <= 0.1", "micro_accuracy >= 0.99", "labels_per_row <= 0.02"],
        ["f1[0] >= 0.9", "jaccard[1] <= 0.1", "micro_recall <= 0.1"],  # of others
    ):
        omma.Auto("macro_f1", subject_to=given).check_labels(4)


def test_one_label_by_two_names():
    policy = omma.Auto("macro_f1", subject_to=["recall[late] >= 0.9", "recall[1] <= 0.2"])
    with pytest.raises(ValueError, match=r"recall\[late\] >= 0.9 and recall\[1\] <= 0.2 cannot"):
        omma.OnlineClassifier(policy, 2, names=["fraud", "late"])
    for same in ("micro_recall", "macro_recall"):
        policy = omma.Auto("f1", subject_to=["recall >= 0.9", f"{same} <= 0.2"])
        with pytest.raises(ValueError, match="cannot both hold"):
            omma.OnlineClassifier(policy, 1)


def test_frank_wolfe_knows_its_budget_before_any_row():
    with pytest.raises(ValueError, match="contradicts its budget: rows get 3 labels"):
        omma.FrankWolfe("macro_recall", k=3, subject_to="labels_per_row <= 2")


@pytest.mark.parametrize(
    ("limit", "bounds", "said"),
    [
        ("micro_precison", None, "did you mean 'micro_precision'"),
        ("micro_precision >= 0.9", None, "unknown limit 'micro_precision >= 0.9'"),
        (0.9, None, "limit of frontier must be a name such as 'micro_precision', got 0.9"),
        ("micro_precision", [0.5, 1.5], "from 0 to 1, got 1.5"),
        ("micro_precision", [float("nan")], "from 0 to 1, got nan"),
        ("micro_precision", [], "bounds of frontier must be one or more numbers"),
        ("micro_precision", [[0.5]], "bounds of frontier must be one or more numbers"),
        ("macro_precision", None, "macro_precision cannot be a limit"),
    ],
)
def test_frontiers_that_cannot_be(limit, bounds, said):
    with pytest.raises((TypeError, ValueError), match=said) as caught:
        omma.frontier(None, None, "macro_f1", limit, bounds=bounds)  # before any row is looked at
    assert "\n" not in str(caught.value)


def test_a_frontier_of_labels_where_their_number_is_given():
    for metric, k in (("macro_f1", 2), ("multiclass_gmean", None)):
        with pytest.raises(ValueError, match=f"where every row gets {k or 1}: pass no k"):
            omma.frontier(None, None, metric, "labels_per_row", k=k)


def test_labels_by_name():
    rng = np.random.default_rng(0)
    eta = pd.DataFrame(rng.random((200, 3)), columns=["fraud", "late", "fine"])
    y = (rng.random((200, 3)) < eta.to_numpy()).astype(int)
    policy = omma.Auto("macro_f1", subject_to="recall[late] >= 0.9")
    trace = omma.replay(policy, eta, pd.DataFrame(y, columns=eta.columns))
    same = omma.replay(omma.Auto("macro_f1", subject_to="recall[1] >= 0.9"), eta.to_numpy(), y)
    assert trace.state == same.state
    assert trace.limits[0].name == "recall[late]"
    learner = omma.OnlineClassifier(policy, 3, names=["fraud", "late", "fine"])
    assert learner.limits[0].limit.index == 1
    with pytest.raises(ValueError, match="did you mean 'late'"):
        omma.replay(omma.Auto("macro_f1", subject_to="recall[lat] >= 0.9"), eta, y)


def test_labels_whose_names_are_numbers():
    """Label 2 is the one that is called so, in a frame and in a learner."""
    rng = np.random.default_rng(0)
    eta = rng.random((200, 3))
    y = (rng.random((200, 3)) < eta).astype(int)
    policy = omma.Auto("macro_f1", subject_to="recall[2] >= 0.9")
    same = omma.replay(omma.Auto("macro_f1", subject_to="recall[1] >= 0.9"), eta, y)
    frames = (pd.DataFrame(one, columns=["1", "2", "3"]) for one in (eta, y))
    trace = omma.replay(policy, *frames)
    np.testing.assert_array_equal(trace.predictions, same.predictions)
    assert trace.limits[0].value == same.limits[0].value
    learner = omma.OnlineClassifier(policy, 3, names=["1", "2", "3"])
    np.testing.assert_array_equal(stepped(learner, eta, y), same.predictions)
    assert learner.limits[0].limit.index == 1
    with pytest.raises(ValueError, match=r"recall\[0\] in subject_to of Auto must name a label"):
        omma.OnlineClassifier(
            omma.Auto("macro_f1", subject_to="recall[0] >= 0.9"), 3, names=["1", "2", "3"]
        )


def test_what_one_reads():
    from omma.limits import LimitStatus

    limit = read_limit("micro_precision >= 0.9")
    assert str(LimitStatus(limit, 0.7, 310.0, 0.01)) == (
        "micro_precision: reached 0.70, asked 0.90: no rule does better here"
    )
    assert "misses it by 0.2000" in str(LimitStatus(limit, 0.7, 2.0, 0.01))
    assert "less than its standard error" in str(LimitStatus(limit, 0.899, 2.0, 0.01))
    assert str(LimitStatus(limit, 0.91, 2.0, 0.01)).endswith("holds")
    assert LimitStatus(limit, float("nan"), 1.0, float("nan")).holds


def test_an_interval_covers_what_it_says():
    """That of Wilson, near one and of few draws, too."""
    from omma.limits import LimitStatus

    rng = np.random.default_rng(0)
    limit = omma.at_least("precision", 0.9).named(None, 1, "test")
    for true, predicted in ((0.97, 30), (0.9, 100), (0.5, 20)):
        hits = rng.binomial(predicted, true, 400)
        every = [LimitStatus.of(limit, omma.Counts([tp], [predicted], [tp], 1000)) for tp in hits]
        assert np.mean([one.interval[0] <= true <= one.interval[1] for one in every]) > 0.91
        assert all(0.0 <= one.interval[0] < one.interval[1] <= 1.0 for one in every)

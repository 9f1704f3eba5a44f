"""omma.sklearn: a scikit-learn classifier in every respect, and better decisions."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import omma

sklearn = pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, clone  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.linear_model import LogisticRegression, SGDClassifier  # noqa: E402
from sklearn.metrics import f1_score, get_scorer, make_scorer, recall_score  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    KFold,
    ShuffleSplit,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402
from sklearn.tree import DecisionTreeClassifier  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from omma.counts import counts_of  # noqa: E402
from omma.sklearn import MetricClassifier  # noqa: E402
from omma.sklearn._problem import read_problem  # noqa: E402
from omma.sklearn._rule_search import RuleSearch, find_rule  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Small models on many threads wait for each other more than they work."""
    with threadpool_limits(1):
        yield


# scikit-learn makes this exception for TunedThresholdClassifierCV too. Weights stand for repeated
# rows with all of these models inside; not so with SGD or a random forest, to which the number and
# order of rows matter by themselves.
CUTS = {
    "check_classifiers_train": "it does not cut at a probability of 0.5: that is what it is for"
}


@parametrize_with_checks(
    [
        MetricClassifier(LogisticRegression(), cv=3),
        MetricClassifier(DecisionTreeClassifier(max_depth=4, random_state=0), cv=3),
        MetricClassifier(GaussianNB(), metric="multiclass_gmean", cv=3),
    ],
    # Naive Bayes and trees are so sure of these rows that other cuts decide them as one half does.
    expected_failed_checks=lambda made: (
        CUTS if isinstance(made.estimator, LogisticRegression) else {}
    ),
)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


def test_what_is_excused_must_fail(pytestconfig):
    """Else excuses would outlive their reasons."""
    assert pytestconfig.getini("xfail_strict") is True


def imbalanced(seed=0, n=3000, classes=2):
    """Training and test rows; the last class is common, others are rare."""
    weights = [0.93] if classes == 2 else [0.8, 0.12, 0.05, 0.03][:classes]
    X, y = make_classification(
        n,
        n_classes=classes,
        n_informative=6,
        weights=weights,
        class_sep=0.7,
        flip_y=0.02,
        random_state=seed,
    )
    return X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]


def tagged(seed=0, n=1200, m=6):
    """Rows with some of m labels, each in about one row of ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    logits = X @ rng.normal(size=(8, m)) * 0.5 - 2.5
    y = (rng.random((n, m)) < 1 / (1 + np.exp(-logits))).astype(np.int64)
    return X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]


# Quality


@pytest.mark.parametrize("balanced", [None, "balanced"])
def test_binary_f1_is_that_of_tuned_thresholds(balanced):
    model = LogisticRegression(class_weight=balanced)
    ours, theirs, usual = [], [], []
    for seed in range(6):  # one sample may favour either by six points
        X, y, X_test, y_test = imbalanced(seed)
        mine = MetricClassifier(model, metric="f1", random_state=0).fit(X, y)
        tuned = TunedThresholdClassifierCV(model, scoring="f1", thresholds=50, cv=3).fit(X, y)
        ours.append(f1_score(y_test, mine.predict(X_test)))
        theirs.append(f1_score(y_test, tuned.predict(X_test)))
        usual.append(f1_score(y_test, mine.estimator_.predict(X_test)))
    assert np.mean(ours) > np.mean(theirs) - 0.01
    assert np.mean(ours) > np.mean(usual) + 0.03


@pytest.mark.parametrize("metric", ["macro_f1", "multiclass_balanced_accuracy"])
def test_many_classes_are_decided_better_than_by_the_most_probable(metric):
    ours, usual = [], []
    judge = omma.metric(metric)
    for seed in range(3):
        X, y, X_test, y_test = imbalanced(seed, classes=4)
        mine = MetricClassifier(LogisticRegression(), metric=metric, random_state=0).fit(X, y)
        ours.append(judge.score(y_test, mine.predict(X_test), n_labels=4))
        usual.append(judge.score(y_test, mine.estimator_.predict(X_test), n_labels=4))
    assert np.mean(ours) > np.mean(usual) + 0.05


def test_many_labels_are_decided_better_than_at_one_half():
    ours, usual = [], []
    for seed in range(3):
        X, y, X_test, y_test = tagged(seed)
        model = MultiOutputClassifier(LogisticRegression(max_iter=300))
        mine = MetricClassifier(model, random_state=0).fit(X, y)
        ours.append(f1_score(y_test, mine.predict(X_test), average="macro", zero_division=0))
        usual.append(
            f1_score(y_test, mine.estimator_.predict(X_test), average="macro", zero_division=0)
        )
    assert np.mean(ours) > np.mean(usual) + 0.03


def test_metric_names_mean_what_they_mean_in_scikit_learn():
    X, y, *_ = imbalanced()
    words = np.array(["no", "yes"])[y]
    one = MetricClassifier(LogisticRegression(), metric="f1", random_state=0, pos_label="yes")
    one.fit(X, words)
    both = MetricClassifier(LogisticRegression(), metric="macro_f1", random_state=0).fit(X, words)
    assert one.rule_.names == ("yes",)
    assert one.thresholds_.shape == (1,)
    assert both.rule_.names == ("no", "yes")
    assert set(one.predict(X)) == set(both.predict(X)) == {"no", "yes"}
    with pytest.raises(AttributeError, match="thresholds_ of MetricClassifier exist where"):
        both.thresholds_  # noqa: B018
    assert not hasattr(both, "thresholds_")


# The positive class


def fraud():
    """Rows of which few are fraud, a word before the other in the alphabet."""
    X, y, X_test, y_test = imbalanced()
    words = np.array(["legit", "fraud"])
    return X, words[y], X_test, words[y_test], y


def test_the_positive_class_of_words_must_be_named():
    X, words, *_ = fraud()
    for metric in ("f1", "recall", omma.metrics.fbeta(2.0)):
        mine = MetricClassifier(LogisticRegression(), metric=metric)
        with pytest.raises(ValueError, match="pass pos_label='fraud' or pos_label='legit'"):
            mine.fit(X, words)
        assert not hasattr(mine, "estimator_")
        with pytest.raises(ValueError, match="pass pos_label='fraud' or pos_label='legit'"):
            MetricClassifier(GaussianNB(), metric=metric).partial_fit(
                X, words, classes=["fraud", "legit"]
            )
    MetricClassifier(LogisticRegression(), metric="macro_f1").fit(X, words)


@pytest.mark.parametrize("start", ["fit", "prefit", "partial_fit"])
def test_the_named_class_is_the_positive_one(start):
    X, words, X_test, words_test, y = fraud()
    y_test = (words_test == "fraud").astype(int)
    options = {"metric": "f1", "random_state": 0}
    named = MetricClassifier(GaussianNB(), pos_label="fraud", **options)
    plain = MetricClassifier(GaussianNB(), **options)
    if start == "partial_fit":
        named.partial_fit(X, words, classes=["fraud", "legit"]).partial_fit(X, words)
        plain.partial_fit(X, y, classes=[0, 1]).partial_fit(X, y)
    elif start == "prefit":
        named.set_params(cv="prefit", estimator=GaussianNB().fit(X, words)).fit(X_test, words_test)
        plain.set_params(cv="prefit", estimator=GaussianNB().fit(X, y)).fit(X_test, y_test)
    else:
        named.fit(X, words)
        plain.fit(X, y)
    assert named.classes_.tolist() == ["fraud", "legit"]
    assert named.rule_.names == ("fraud",)
    assert named.counts_ == plain.counts_
    np.testing.assert_allclose(named.thresholds_, plain.thresholds_)
    np.testing.assert_array_equal(named.predict(X_test) == "fraud", plain.predict(X_test) == 1)
    decided = named.step(X_test, words_test)
    np.testing.assert_array_equal(decided == "fraud", plain.step(X_test, y_test) == 1)
    assert f1_score(words_test, named.predict(X_test), pos_label="fraud") > 0.2


@pytest.mark.parametrize("classes", [[0, 1], [-1, 1], [False, True], [0.0, 1.0]])
def test_one_is_positive_where_nobody_says_otherwise(classes):
    X, _, X_test, _, y = fraud()
    usual = MetricClassifier(GaussianNB(), metric="f1", random_state=0).fit(X, y)
    other = clone(usual).fit(X, np.array(classes)[y])
    assert other.rule_.names == (str(classes[1]),)
    np.testing.assert_array_equal(other.predict(X_test), np.array(classes)[usual.predict(X_test)])
    zero = clone(usual).set_params(pos_label=classes[0]).fit(X, np.array(classes)[y])
    assert zero.counts_.positive[0] == (y == 0).sum()


def test_a_positive_class_that_is_none_is_refused():
    X, words, *_, y = fraud()
    mine = MetricClassifier(LogisticRegression(), metric="f1", pos_label="fruad")
    with pytest.raises(ValueError, match="pos_label of MetricClassifier must be one of two class"):
        mine.fit(X, words)
    with pytest.raises(ValueError, match="pass pos_label=1 or pos_label=2"):
        MetricClassifier(LogisticRegression(), metric="f1").fit(X, y + 1)
    X, y, *_ = imbalanced(classes=3)
    with pytest.raises(ValueError, match="must be one of two classes, got 1 where y has the clas"):
        MetricClassifier(LogisticRegression(), pos_label=1).fit(X, y)
    X, y, *_ = tagged()
    with pytest.raises(ValueError, match="got 1 where y has indicators of labels"):
        MetricClassifier(MultiOutputClassifier(GaussianNB()), pos_label=1).fit(X, y)


def test_a_positive_class_lives_with_clones_and_searches():
    X, words, *_ = fraud()
    mine = MetricClassifier(LogisticRegression(), cv=3, random_state=0, pos_label="fraud")
    assert clone(mine).get_params()["pos_label"] == "fraud"
    grid = {"metric": ["macro_f1", "f1"], "pos_label": ["fraud", "legit"]}
    scorer = make_scorer(recall_score, pos_label="legit")
    search = GridSearchCV(mine, grid, scoring=scorer, cv=2, error_score="raise").fit(X, words)
    assert search.best_params_ == {"metric": "f1", "pos_label": "legit"}
    assert search.best_estimator_.rule_.names == ("legit",)


# What is random


def test_random_state_is_all_that_is_random():
    X, y, *_ = imbalanced(n=800)
    mine = MetricClassifier(LogisticRegression(), metric="f1", random_state=3)
    once, twice = (clone(mine).fit(X, y) for _ in range(2))
    assert once.rule_ == twice.rule_
    np.testing.assert_array_equal(once.history_.values, twice.history_.values)
    passes = [clone(mine).set_params(random_state=None).fit(X, y).history_ for _ in range(3)]
    assert len({tuple(one.values) for one in passes}) > 1  # orders of 400 rows: never three alike
    np.random.seed(0)  # noqa: NPY002 (what None draws from)
    first = clone(mine).set_params(random_state=None).fit(X, y).history_
    np.random.seed(0)  # noqa: NPY002
    again = clone(mine).set_params(random_state=None).fit(X, y).history_
    np.testing.assert_array_equal(first.values, again.values)


# The rule


@pytest.mark.parametrize("feedback", ["labels", "estimates", "both", None])
@pytest.mark.parametrize(
    ("metric", "budget"),
    [("macro_f1", {}), ("macro_recall", {"k": 2}), ("macro_recall", {"at_most": 2})],
)
def test_the_kept_rule_is_the_best_seen_and_reproduces_itself(metric, budget, feedback):
    eta, y = omma.datasets.long_tail(n=1000, m=8, seed=0)
    chosen = {"feedback": feedback} if feedback else {}
    policy = (omma.OMMA if feedback else omma.Auto)(metric, **budget, **chosen)
    sample = omma.Batch.of(eta, y)
    search = RuleSearch(policy, sample, seed=0)
    best, _ = find_rule(policy, sample, seed=0)
    value = omma.metric(metric).value(best.counts)
    last = omma.replay(policy, eta, y, seed=0).rule
    half = omma.TopK(2) if "k" in budget else omma.Threshold(0.5)
    if "at_most" in budget:
        half = omma.FixedRule(omma.Rule(np.ones(8), np.full(8, -0.5), **budget))
    assert best.rule.at_most == budget.get("at_most")
    assert value >= search.value(search.judge(last).counts)
    assert value >= omma.replay(half, eta, y, metric=metric).value
    assert best.counts == search.judge(best.rule).counts


def test_the_order_of_rows_hardly_matters_to_the_rule():
    eta, y = omma.datasets.long_tail(n=1000, m=8, seed=0)
    for policy in (omma.Auto("macro_f1"), omma.Auto("macro_f1", k=2)):
        rules = [find_rule(policy, omma.Batch.of(eta**2, y), seed)[0].rule for seed in (0, 1)]
        assert np.mean(rules[0].predict(eta**2) == rules[1].predict(eta**2)) > 0.98


def test_probabilities_that_are_far_off_are_calibrated_on_the_way():
    """Which is what feedback, given, goes without; with a budget no cuts can be tuned instead."""
    eta, y = omma.datasets.long_tail(n=3000, m=12, seed=0)
    wrong = 1 / (1 + ((1 - eta) / eta) ** np.linspace(0.3, 3.0, 12))
    wrong = 1 / (1 + (1 - wrong) / wrong * np.exp(np.linspace(-2, 2, 12)))
    found = {}
    for feedback in (None, "labels", "estimates"):
        mine = MetricClassifier(Shaped(), k=2, feedback=feedback).fit(wrong[:1500], y[:1500])
        assert (mine.rule_.calibration is not None) == (feedback is None)
        found[feedback] = omma.metric("macro_f1").score(y[1500:], mine.predict(wrong[1500:]))
    assert found[None] > max(found["labels"], found["estimates"]) + 0.02
    once = MetricClassifier(Shaped(), k=2).fit(wrong[:1500], y[:1500])
    scores = once.decision_function(wrong[1500:])
    np.testing.assert_array_equal(scores > 0, once.predict(wrong[1500:]) == 1)


def test_counts_are_those_of_the_kept_rule_on_unseen_rows():
    X, y, *_ = tagged()
    cv = KFold(4, shuffle=True, random_state=1)
    model = MultiOutputClassifier(GaussianNB())
    mine = MetricClassifier(model, cv=cv, random_state=0).fit(X, y)
    found = np.empty_like(y)
    for train, test in cv.split(X):
        fold = clone(model).fit(X[train], y[train])
        eta = np.stack([part[:, 1] for part in fold.predict_proba(X[test])], axis=1)
        found[test] = mine.rule_.predict(np.clip(eta, 0, 1))
    assert omma.Counts.from_labels(y, found) == mine.counts_
    assert mine.value_ == omma.metric("macro_f1").score(y, found)


def test_rules_leave_as_json_with_names():
    pd = pytest.importorskip("pandas")
    X, y, X_test, y_test = tagged()
    names = list("abcdef")
    mine = MetricClassifier(MultiOutputClassifier(GaussianNB()), random_state=0)
    mine.fit(X, pd.DataFrame(y, columns=names))
    assert json.loads(mine.rule_.to_json())["names"] == names
    assert list(mine.rule_.named_thresholds) == names
    found = mine.predict(X_test)
    assert isinstance(found, np.ndarray)
    mine.step(X_test, pd.DataFrame(y_test, columns=names)[names[::-1]])
    plain = MetricClassifier(MultiOutputClassifier(GaussianNB()), random_state=0).fit(X, y)
    np.testing.assert_array_equal(found, plain.predict(X_test))
    plain.step(X_test, y_test)
    assert plain.counts_ == mine.counts_
    assert plain.rule_.names is None
    plain.step(X_test, pd.DataFrame(y_test, columns=names))  # names that nobody knew before
    again = pickle.loads(pickle.dumps(mine))
    assert again.rule_ == mine.rule_


# Up to so many labels a row


@pytest.mark.parametrize("shape", ["(n, m)", "csr"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"feedback": "labels"},
        {"feedback": "estimates"},
        {"prior": 1e-3},
        {"metric": "micro_f1"},
        {"metric": "macro_recall"},
        {"subject_to": "micro_precision >= 0.5"},
        {"feedback": "labels", "subject_to": "labels_per_row <= 1"},
    ],
)
def test_rows_get_at_most_so_many_labels_whatever_made_the_rule(options, shape):
    eta, y = omma.datasets.long_tail(n=1500, m=8, seed=0)
    free = MetricClassifier(Shaped(shape), cv="prefit", **options)
    free.estimator.fit(eta, y)
    bound = clone(free).set_params(at_most=2, estimator=free.estimator)
    assert bound.get_params()["at_most"] == 2
    bound.fit(eta[:1000], y[:1000])
    assert bound.rule_.at_most == 2
    given = sparse.csr_array(eta[1000:]) if shape == "csr" else eta[1000:]
    found, ruled = bound.predict(eta[1000:]), bound.rule_.predict(given)
    if shape == "csr":
        found, ruled = found.toarray(), ruled.toarray()
    np.testing.assert_array_equal(found, ruled)
    assert found.sum(axis=1).max() == 2
    assert (bound.decision_function(eta[1000:]) > 0).tolist() == (found == 1).tolist()
    again = pickle.loads(pickle.dumps(bound))
    assert again.rule_ == bound.rule_
    assert again.get_params()["at_most"] == 2
    assert omma.Rule.from_json(bound.rule_.to_json()) == bound.rule_
    if options.get("metric") == "macro_recall":  # each label gains: two are the best there is
        assert free.fit(eta[:1000], y[:1000]).predict(eta[1000:]).sum(axis=1).min() > 2
    decided = bound.step(eta[1000:], y[1000:])
    assert decided.sum(axis=1).max() <= 2
    assert bound.rule_.at_most == 2


def test_a_bound_that_no_row_reaches_changes_nothing_where_no_cuts_are_tuned():
    eta, y = omma.datasets.long_tail(n=1000, m=8, seed=0)
    sample = omma.Batch.of(eta, y)
    free, all_of_them = (omma.Auto("micro_f1", at_most=most) for most in (None, 8))
    one, other = (find_rule(policy, sample, seed=0)[0] for policy in (free, all_of_them))
    assert one.counts == other.counts
    np.testing.assert_array_equal(one.rule.predict(eta), other.rule.predict(eta))


def test_scores_rank_the_labels_of_a_row_by_what_they_gain():
    eta, y = omma.datasets.long_tail(n=1000, m=8, seed=0)
    mine = MetricClassifier(Shaped(), at_most=2, feedback="labels", random_state=0).fit(eta, y)
    scores, rule = mine.decision_function(eta), mine.rule_
    gains = eta * rule.slope + rule.offset
    full = mine.predict(eta).sum(axis=1) == 2
    assert full.any()
    left_out = np.sort(gains, axis=1)[:, -3]
    assert (left_out[full] > 0).any()  # a label that gains, and is not among the two
    best = gains.argmax(axis=1)
    np.testing.assert_array_equal(scores.argmax(axis=1)[full], best[full])


def test_the_first_part_of_rows_is_decided_within_the_bound():
    X, y, X_test, y_test = tagged()
    mine = MetricClassifier(MultiOutputClassifier(GaussianNB()), at_most=1)
    mine.partial_fit(X, y, classes=[np.array([0, 1])] * 6)
    usual = omma.Rule(np.ones(6), np.full(6, -0.5), at_most=1)
    assert mine.rule_ == usual
    assert mine.predict(X_test).sum(axis=1).max() == 1
    mine.partial_fit(X_test, y_test)
    assert mine.rule_.at_most == 1
    assert mine.counts_.predicted.sum() <= len(X_test)
    assert mine.predict(X_test).sum(axis=1).max() == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"at_most": 0}, "at_most of MetricClassifier must be a whole number of at least 1"),
        ({"at_most": 1.5}, "at_most of MetricClassifier must be a whole number of at least 1"),
        ({"at_most": 2, "k": 2}, "MetricClassifier takes k .* or at_most"),
        ({"at_most": 7}, "at_most of .* must be at most the number of labels, which is 6, got 7"),
        ({"at_most": 7, "prior": 0.1}, "at_most of .* must be at most the number of labels"),
        ({"at_most": 2, "metric": "f1"}, "at_most of MetricClassifier must be None for f1"),
    ],
)
def test_a_bound_that_is_none_has_its_sentence(change, sentence):
    X, y, *_ = tagged(n=200)
    mine = MetricClassifier(MultiOutputClassifier(GaussianNB())).set_params(**change)
    with pytest.raises((ValueError, TypeError), match=sentence):
        mine.fit(X, y)
    with pytest.raises((ValueError, TypeError), match=sentence):
        mine.partial_fit(X, y)
    assert not hasattr(mine, "estimator_")


# Shapes of probabilities


@pytest.mark.parametrize(
    "model",
    [
        MultiOutputClassifier(GaussianNB()),
        OneVsRestClassifier(GaussianNB()),
        ClassifierChain(GaussianNB(), random_state=0),
        RandomForestClassifier(10, random_state=0),
        DecisionTreeClassifier(max_depth=3, random_state=0),
    ],
)
@pytest.mark.parametrize("budget", [{}, {"k": 2}, {"at_most": 1}])
def test_multi_label_estimators_of_all_kinds(model, budget):
    X, y, X_test, _ = tagged()
    found = MetricClassifier(model, random_state=0, **budget).fit(X, y).predict(X_test)
    assert found.shape == (len(X_test), 6)
    assert found.dtype == y.dtype
    if "k" in budget:
        assert (found.sum(axis=1) == 2).all()
    if "at_most" in budget:
        assert found.sum(axis=1).max() == 1


def test_sparse_indicators_come_back_sparse():
    X, y, X_test, _ = tagged()
    mine = MetricClassifier(OneVsRestClassifier(GaussianNB()), random_state=0)
    dense = mine.fit(X, y).predict(X_test)
    thin = mine.fit(X, sparse.csr_matrix(y)).predict(X_test)
    assert sparse.issparse(thin)
    np.testing.assert_array_equal(thin.toarray(), dense)


class Shaped(ClassifierMixin, BaseEstimator):
    """Gives the same probabilities in a shape of one's choice; they are X itself."""

    def __init__(self, shape="(n, m)"):
        self.shape = shape

    def fit(self, X, y):
        self.classes_ = np.arange(X.shape[1])
        return self

    def predict_proba(self, X):
        eta = np.asarray(X)
        both = np.stack((1 - eta, eta), axis=-1)
        return {
            "(n, m)": eta,
            "(n, m, 2)": both,
            "list": list(both.transpose(1, 0, 2)),
            "list of vectors": list(eta.T),
            "csr": sparse.csr_array(eta),
        }[self.shape]


def test_all_shapes_of_probabilities_are_one():
    eta, y = omma.datasets.long_tail(n=300, m=5, seed=0)
    found = {}
    for shape in ("(n, m)", "(n, m, 2)", "list", "list of vectors", "csr"):
        mine = MetricClassifier(Shaped(shape), random_state=0).fit(eta, y)
        decided = mine.step(eta, y)
        assert sparse.issparse(decided) == sparse.issparse(mine.predict(eta)) == (shape == "csr")
        found[shape] = mine.rule_
        np.testing.assert_array_equal(
            decided.toarray() if shape == "csr" else decided, omma_steps(eta, y, mine)
        )
    assert all(rule == found["(n, m)"] for rule in found.values())


def omma_steps(eta, y, mine):
    """The same steps with nothing but omma."""
    start = MetricClassifier(Shaped(), random_state=0).fit(eta, y)
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), 5)
    learner.state = start._state
    found = []
    for row, labels in zip(eta, y, strict=True):
        found.append(learner.predict(row))
        learner.update(labels)
    assert learner.counts == mine.counts_
    return np.array(found)


def test_labels_never_seen_in_a_fold_have_probability_zero():
    X, y, *_ = tagged()
    y = y.copy()
    y[:, 2] = 0
    y[:, 3] = 1
    for model in (MultiOutputClassifier(DecisionTreeClassifier()), DecisionTreeClassifier()):
        target = read_problem("test", y, omma.metric("macro_f1"))
        eta = target.eta(clone(model).fit(X, y), X)
        assert (eta[:, 2] == 0).all()
        assert (eta[:, 3] == 1).all()


def test_classes_absent_in_a_fold_map_to_their_columns():
    X, y, *_ = imbalanced(classes=4)
    words = np.array(["d", "b", "c", "a"])[y]  # not in the order of the ids
    rare = np.flatnonzero(words == "c")
    keep = np.concatenate((np.flatnonzero(words != "c"), rare[:5]))
    order = np.argsort(words[keep], kind="stable")
    X, words = X[keep][order], words[keep][order]
    folds = [
        (np.flatnonzero(words != absent), np.flatnonzero(words == absent)) for absent in "abcd"
    ]
    target = read_problem("test", words, omma.metric("macro_f1"))
    for train, test in folds:
        model = GaussianNB().fit(X[train], words[train])
        eta = target.eta(model, X[test])
        np.testing.assert_allclose(
            eta[:, np.searchsorted(target.classes, model.classes_)], model.predict_proba(X[test])
        )
        assert np.allclose(eta.sum(axis=1), 1)
    mine = MetricClassifier(GaussianNB(), cv=folds, random_state=0).fit(X, words)
    assert mine.counts_.positive.tolist() == [(words == name).sum() for name in "abcd"]


def test_probabilities_a_rounding_beyond_one_are_one():
    eta, y = omma.datasets.long_tail(n=100, m=3, seed=0)
    eta[0, 0] = 1 + 1e-9
    MetricClassifier(Shaped(), random_state=0).fit(eta, y)
    eta[0, 0] = 1.1
    with pytest.raises(ValueError, match=r"probabilities from 0 to 1, got 1\.1"):
        MetricClassifier(Shaped(), random_state=0).fit(eta, y)


# Its own metric


def test_score_is_the_metric_that_is_maximized():
    X, y, X_test, y_test = imbalanced()
    mine = MetricClassifier(LogisticRegression(), metric="f1", random_state=0).fit(X, y)
    predicted = mine.predict(X_test)
    assert mine.score(X_test, y_test) == pytest.approx(f1_score(y_test, predicted))
    weights = np.arange(len(y_test)) % 3
    weighted = f1_score(y_test, predicted, sample_weight=weights)
    assert mine.score(X_test, y_test, sample_weight=weights) == pytest.approx(weighted)
    words = np.array(["yes", "no"])
    named = MetricClassifier(LogisticRegression(), metric="f1", pos_label="no", random_state=0)
    assert named.fit(X, words[y]).score(X_test, words[y_test]) == mine.score(X_test, y_test)
    named.set_params(metric="macro_f1")  # which takes no positive class
    macro = f1_score(words[y_test], named.fit(X, words[y]).predict(X_test), average="macro")
    assert named.score(X_test, words[y_test]) == pytest.approx(macro)
    search = GridSearchCV(mine, {"prior": [0.0, 1.0]}, cv=2).fit(X, y)  # no scoring is needed
    assert search.score(X_test, y_test) == search.best_estimator_.score(X_test, y_test)
    assert search.score(X_test, y_test) == f1_score(y_test, search.predict(X_test))


def test_score_of_labels_classes_and_costs():
    X, y, X_test, y_test = tagged()
    model = MultiOutputClassifier(LogisticRegression())
    for metric, options in (("macro_f1", {}), ("micro_recall", {"k": 2})):
        mine = MetricClassifier(model, metric=metric, **options, random_state=0).fit(X, y)
        expected = omma.metric(metric).score(y_test, mine.predict(X_test))
        assert mine.score(X_test, y_test) == expected
        assert mine.score(X_test, sparse.csr_array(y_test)) == pytest.approx(expected)
    X, y, X_test, y_test = imbalanced(classes=3)
    words = np.array(["z", "b", "m"])  # not in the order of the ids
    costs = omma.metrics.costs(np.array([[0.0, -1, -5], [-9, 0, -2], [-3, -4, 0]]))
    mine = MetricClassifier(GaussianNB(), metric=costs, random_state=0).fit(X, words[y])
    few = y_test != 1
    ids, predicted = (
        np.searchsorted(mine.classes_, one) for one in (words[y_test], mine.predict(X_test))
    )
    expected = omma.metrics.costs(costs.matrix).score(ids[few], predicted[few], n_labels=3)
    assert mine.score(X_test[few], words[y_test[few]]) == pytest.approx(expected)


# Trained before, split otherwise


def test_trained_estimators_are_taken_as_they_are():
    X, y, X_test, y_test = imbalanced()
    model = LogisticRegression().fit(X, y)
    weights = model.coef_.copy()
    frozen = MetricClassifier(FrozenEstimator(model), metric="f1", random_state=0)
    prefit = MetricClassifier(model, metric="f1", cv="prefit", random_state=0)
    for mine in (frozen, prefit):
        mine.fit(X_test, y_test)
        assert mine.counts_.n == len(y_test)
        np.testing.assert_array_equal(model.coef_, weights)
    assert prefit.estimator_ is model
    assert frozen.rule_ == prefit.rule_
    with pytest.raises(sklearn.exceptions.NotFittedError):
        MetricClassifier(LogisticRegression(), cv="prefit").fit(X, y)
    # Rows to tune on need not have all classes that the model knows.
    few = MetricClassifier(model, cv="prefit", random_state=0).fit(
        X_test[y_test == 0], y_test[y_test == 0]
    )
    assert few.classes_.tolist() == [0, 1]


def test_one_split_may_keep_its_estimator():
    X, y, *_ = imbalanced()
    cv = ShuffleSplit(1, test_size=0.4, random_state=0)
    mine = MetricClassifier(LogisticRegression(), cv=cv, refit=False, random_state=0).fit(X, y)
    train, test = next(cv.split(X))
    np.testing.assert_array_equal(
        mine.estimator_.coef_, LogisticRegression().fit(X[train], y[train]).coef_
    )
    assert mine.counts_.n == len(test)
    assert mine.n_samples_seen_ == len(train)
    flags = np.isin(np.arange(len(y)), train)
    model = MetricClassifier(LogisticRegression(), cv=[(flags, test)], refit=False, random_state=0)
    assert model.fit(X, y).n_samples_seen_ == len(train)
    with pytest.raises(ValueError, match="refit of MetricClassifier must be True where cv has"):
        MetricClassifier(LogisticRegression(), refit=False).fit(X, y)


# Online


def test_steps_are_decided_before_they_are_learned():
    X, y, X_test, y_test = imbalanced()
    for metric in ("f1", "macro_f1", "multiclass_gmean"):
        mine = MetricClassifier(LogisticRegression(), metric=metric, random_state=0).fit(X, y)
        twin = pickle.loads(pickle.dumps(mine))
        counted, before = mine.counts_, mine.predict(X_test[:1])
        decided = mine.step(X_test, y_test)
        judge = omma.metric(metric)
        width = 1 if judge.binary else 2
        seen = omma.Counts.from_labels(y_test, decided, n_labels=width)
        assert mine.counts_ == counted + seen
        assert mine.history_.rows[-1] == len(y) + len(y_test)
        assert mine.history_.values[-1] == mine.value_
        eta = LogisticRegression().fit(X, y).predict_proba(X_test)
        first = twin._policy.predict(twin._state, eta[0, 1:] if width == 1 else eta[0])
        assert (decided[0] == 1) == bool(first[-1])
        assert before.shape == (1,)


def test_steps_count_and_learn_rows_by_their_weights():
    X, y, X_test, y_test = imbalanced()
    weights = np.random.default_rng(0).choice([0.0, 1.0, 5.0], len(y_test))
    mine = MetricClassifier(LogisticRegression(), metric="f1", random_state=0).fit(X, y)
    learner = omma.OnlineClassifier(mine._policy, 1)
    learner.state = mine._state  # a step copies it: merging would round
    decided = mine.step(X_test, y_test, sample_weight=weights)
    eta = LogisticRegression().fit(X, y).predict_proba(X_test)[:, 1:]
    for row, label, weight, decision in zip(eta, y_test, weights, decided, strict=True):
        assert learner.decide(row) == [decision]
        learner.update([label], weight=weight)
    assert mine.counts_ == learner.counts
    assert mine.rule_ == learner.rule.named(mine.rule_.names)


def test_partial_fit_learns_the_rule_before_the_model():
    X, y, *_ = imbalanced()
    model = SGDClassifier(loss="log_loss", random_state=0)
    mine, twin = MetricClassifier(model, metric="f1"), clone(model)
    for start in range(0, len(y), 300):
        rows = slice(start, start + 300)
        mine.partial_fit(X[rows], y[rows], classes=[0, 1])
        twin.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_array_equal(mine.estimator_.coef_, twin.coef_)
    assert mine.n_samples_seen_ == len(y)
    assert mine.counts_.n == len(y) - 300
    assert mine.rule_ == mine._policy.rule(mine._state).named(mine.rule_.names)
    assert len(mine.history_.rows) == 4
    with pytest.raises(ValueError, match="is not the same as on last call"):
        mine.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="must hold the classes"):
        mine.partial_fit(X, y + 1)
    assert mine.counts_.n == len(y) - 300


def test_partial_fit_goes_on_after_fit_and_starts_with_the_usual_decisions():
    X, y, X_test, y_test = imbalanced()
    mine = MetricClassifier(GaussianNB(), metric="f1", random_state=0).fit(X, y)
    mine.partial_fit(X_test, y_test)
    assert mine.counts_.n == len(y) + len(y_test)
    assert mine.n_samples_seen_ == len(y) + len(y_test)
    fresh = MetricClassifier(GaussianNB()).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(fresh.predict(X_test), GaussianNB().fit(X, y).predict(X_test))
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        MetricClassifier(GaussianNB()).partial_fit(X, y)


def test_partial_fit_of_many_labels():
    X, y, *_ = tagged()
    mine = MetricClassifier(MultiOutputClassifier(GaussianNB()))
    for start in range(0, len(y), 150):
        mine.partial_fit(X[start : start + 150], y[start : start + 150], classes=[[0, 1]] * 6)
    assert mine.counts_.m == 6
    assert mine.predict(X).shape == y.shape


def test_rows_seen_are_those_that_the_estimator_was_trained_on():
    X, y, X_test, y_test = imbalanced()
    trained = GaussianNB().fit(X, y)
    mine = MetricClassifier(trained, cv="prefit", random_state=0).fit(X_test, y_test)
    assert mine.n_samples_seen_ == 0
    assert mine.step(X_test[:9], y_test[:9]).shape == (9,)
    assert mine.n_samples_seen_ == 0
    assert mine.partial_fit(X_test[:7], y_test[:7]).n_samples_seen_ == 7
    assert mine.counts_.n == len(y_test) + 16


def as_pandas(y, names):
    return pytest.importorskip("pandas").DataFrame(y, columns=names)


def as_polars(y, names):
    return pytest.importorskip("polars").DataFrame(y, schema=list(names), orient="row")


@pytest.mark.parametrize("frame", [as_pandas, as_polars])
def test_frames_of_labels_are_matched_by_name(frame):
    X, y, *_ = tagged()
    names, back = list("abcdef"), list("fedcba")
    model = MultiOutputClassifier(GaussianNB())
    mine, twin = MetricClassifier(model), MetricClassifier(model)
    for start in range(0, len(y), 150):
        rows = slice(start, start + 150)
        given = frame(y[rows], names) if not start else frame(y[rows][:, ::-1], back)
        mine.partial_fit(X[rows], given, classes=[[0, 1]] * 6)
        twin.partial_fit(X[rows], y[rows], classes=[[0, 1]] * 6)
    np.testing.assert_array_equal(mine.predict_proba(X), twin.predict_proba(X))
    assert mine.counts_ == twin.counts_
    expected = twin.score(X, y)
    assert mine.score(X, frame(y, names)) == expected
    assert mine.score(X, frame(y[:, ::-1], back)) == expected
    assert mine.score(X, y[:, ::-1]) != expected
    seen = mine.n_samples_seen_
    for method in (mine.partial_fit, mine.step, mine.score):
        with pytest.raises(ValueError, match="must have columns named as the labels"):
            method(X, frame(y, list("abcdeg")))
    assert mine.n_samples_seen_ == seen
    assert mine.counts_ == twin.counts_


class Picky(GaussianNB):
    """It learns what it likes."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if np.max(X) > 1e6:
            raise RuntimeError("not these rows")
        return super().partial_fit(X, y, classes, sample_weight)


def state(model):
    """All that steps may change."""
    counts, rule = counts_of(model._state), model._policy.rule(model._state)
    rows, values = model.history_
    whole = (counts, model.counts_, rule, model.rule_, model.value_)
    return [*whole, model.n_samples_seen_, rows.tolist(), values.tolist()]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_indicators_that_are_none_change_nothing(kind):
    X, y, *_ = tagged()
    mine = MetricClassifier(MultiOutputClassifier(GaussianNB()), random_state=0).fit(X, y)
    before = state(mine)
    wrong = y[:20].copy()
    wrong[5, 2] = 2
    for method in (mine.step, mine.partial_fit):
        with pytest.raises(ValueError, match="must hold only 0 and 1, got 2 in row 5"):
            method(X[:20], kind(wrong))
        assert state(mine) == before


def test_an_estimator_that_refuses_rows_leaves_the_rule():
    X, y, X_test, y_test = imbalanced()
    mine = MetricClassifier(Picky(), metric="f1", random_state=0).fit(X, y)
    before = state(mine)
    far = X_test.copy()
    far[3] = 1e7
    with pytest.raises(RuntimeError, match="not these rows"):
        mine.partial_fit(far, y_test)
    assert state(mine) == before
    mine.partial_fit(X_test, y_test)
    assert state(mine) != before


def test_partial_fit_is_there_where_the_estimator_has_it():
    assert hasattr(MetricClassifier(GaussianNB()), "partial_fit")
    assert not hasattr(MetricClassifier(LogisticRegression()), "partial_fit")


def test_feedback_of_estimates_keeps_both_counts():
    X, y, X_test, y_test = imbalanced()
    mine = MetricClassifier(LogisticRegression(), metric="f1", feedback="estimates", random_state=0)
    mine.fit(X, y)
    assert mine.counts_.positive[0] == y.sum()
    soft = mine._state.cells[2, 0]
    assert soft != y.sum()
    assert abs(soft - y.sum()) < 5
    mine.step(X_test, y_test)
    assert mine.counts_.positive[0] == y.sum() + y_test.sum()


# Living with scikit-learn


def test_grid_search_over_metrics_and_inner_parameters():
    X, y, *_ = imbalanced(n=800)
    pipeline = make_pipeline(
        StandardScaler(), MetricClassifier(LogisticRegression(), cv=3, random_state=0)
    )
    grid = {
        "metricclassifier__metric": ["macro_f1", "f1", omma.metrics.fbeta(2.0)],
        "metricclassifier__estimator__C": [0.1, 1.0],
    }
    search = GridSearchCV(pipeline, grid, scoring="recall", cv=3).fit(X, y)
    assert search.best_params_["metricclassifier__metric"] == omma.metrics.fbeta(2.0)
    scores = cross_val_score(pipeline, X, y, scoring="f1", cv=3)
    assert np.isfinite(scores).all()


def test_sparse_and_named_features():
    pd = pytest.importorskip("pandas")
    X, y, X_test, _ = imbalanced(n=800)
    dense = MetricClassifier(LogisticRegression(), metric="f1", random_state=0).fit(X, y)
    thin = clone(dense).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(dense.predict(X_test), thin.predict(sparse.csr_matrix(X_test)))
    columns = [f"x{j}" for j in range(X.shape[1])]
    named = clone(dense).fit(pd.DataFrame(X, columns=columns), pd.Series(y))
    assert named.feature_names_in_.tolist() == columns
    assert named.n_features_in_ == X.shape[1]
    named.set_params(estimator=GaussianNB()).fit(X, y)
    assert not hasattr(named, "feature_names_in_")


def test_weights_count_for_rule_and_model():
    X, y, *_ = imbalanced(n=800)
    weights = np.where(y == 1, 3.0, 1.0)
    model = LogisticRegression()
    mine = MetricClassifier(model, metric="f1", random_state=0).fit(X, y, sample_weight=weights)
    assert mine.counts_.n == weights.sum()
    np.testing.assert_allclose(
        mine.estimator_.coef_, LogisticRegression().fit(X, y, sample_weight=weights).coef_
    )
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        MetricClassifier(pipeline, metric="f1").fit(X, y, sample_weight=weights)


def test_metadata_is_routed():
    X, y, *_ = imbalanced(n=800)
    weights = np.where(y == 1, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, inner)
        mine = MetricClassifier(pipeline, metric="f1", random_state=0)
        mine.fit(X, y, sample_weight=weights)
        assert mine.counts_.n == weights.sum()
        scaled = StandardScaler().fit_transform(X)
        np.testing.assert_allclose(
            mine.estimator_[-1].coef_,
            LogisticRegression().fit(scaled, y, sample_weight=weights).coef_,
        )
        deaf = LogisticRegression().set_fit_request(sample_weight=False)
        mine = MetricClassifier(deaf, metric="f1", random_state=0).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(mine.estimator_.coef_, LogisticRegression().fit(X, y).coef_)
        assert mine.counts_.n == weights.sum()
        with pytest.raises(TypeError, match="unexpected"):
            mine.fit(X, y, sample_wight=weights)
        outer = MetricClassifier(inner, metric="f1").set_fit_request(sample_weight=True)
        scorer = get_scorer("recall").set_score_request(sample_weight=False)
        search = GridSearchCV(outer, {"prior": [0.0]}, cv=2, scoring=scorer)
        search.fit(X, y, sample_weight=weights)
        assert search.best_estimator_.counts_.n == weights.sum()
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        mine.fit(X, y, sample_wight=weights)


def test_it_shows_itself():
    mine = MetricClassifier(LogisticRegression(), metric="f1")
    assert repr(mine) == "MetricClassifier(estimator=LogisticRegression(), metric='f1')"
    html = mine._repr_html_()
    assert "MetricClassifier" in html
    assert "LogisticRegression" in html


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"metric": "fone"}, "fone"),
        ({"k": 2}, "k of MetricClassifier must be None or 1 where y is classes, got 2"),
        ({"at_most": 2}, "at_most of MetricClassifier must be None where y is classes, got 2"),
        (
            {"at_most": 1, "metric": "f1"},
            "at_most of MetricClassifier must be None where y is classes, got 1",
        ),
        ({"feedback": "label"}, "feedback of OMMA must be"),
        ({"prior": -1.0}, "prior of OMMA must be"),
        ({"cv": "prefti"}, "cv of MetricClassifier must be"),
        ({"estimator": LinearSVC()}, "must have predict_proba, got LinearSVC.*CalibratedClass"),
    ],
)
def test_bad_parameters_have_their_sentence(change, sentence):
    X, y, *_ = imbalanced(n=200)
    mine = MetricClassifier(LogisticRegression()).set_params(**change)
    with pytest.raises((ValueError, TypeError), match=sentence):
        mine.fit(X, y)
    assert not hasattr(mine, "estimator_")


def test_a_metric_of_one_label_does_not_go_with_several():
    X, y, *_ = imbalanced(classes=3)
    with pytest.raises(ValueError, match="use macro_f1 or micro_f1"):
        MetricClassifier(LogisticRegression(), metric="f1").fit(X, y)


def test_metrics_of_ones_own_and_costs():
    X, y, X_test, y_test = imbalanced()
    costs = omma.metrics.costs([[0, -1], [-20, 0]])
    mine = MetricClassifier(LogisticRegression(), metric=costs, random_state=0).fit(X, y)
    usual = mine.estimator_.predict(X_test)
    assert recall_score(y_test, mine.predict(X_test)) > recall_score(y_test, usual)
    mine.step(X_test, y_test)
    assert mine.counts_.matrix.sum() == len(y) + len(y_test)
    assert clone(mine).metric == costs


def test_calibrated_estimators_work_inside():
    X, y, *_ = imbalanced(n=600)
    model = CalibratedClassifierCV(LinearSVC(), cv=2)
    assert MetricClassifier(model, metric="f1", cv=2, random_state=0).fit(X, y).thresholds_[0] < 0.5


def test_the_name_does_not_hide_scikit_learn():
    code = (
        "import omma.sklearn, sklearn, sys; "
        "print(sklearn.__name__, omma.sklearn.__name__, hasattr(sklearn, '__version__'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["sklearn", "omma.sklearn", "True"]


def test_without_scikit_learn_it_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import omma; import omma.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        'omma.sklearn needs scikit-learn, which is not installed: pip install "omma-learn[sklearn]"'
        in (done.stderr)
    )

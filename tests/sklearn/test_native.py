"""MetricClassifier among what scikit-learn's users use: meta-estimators, stores, several cores."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import omma
from omma.sklearn import MetricClassifier

TWO = make_classification(800, weights=[0.9], flip_y=0.05, random_state=0)
LABELS = make_multilabel_classification(300, n_classes=4, random_state=0)


def problems():
    """Models with what they are fitted to, one of every kind."""
    X, y = TWO
    text = np.where(y == 1, "yes", "no")
    each = OneVsRestClassifier(LogisticRegression())
    return {
        "one label": (MetricClassifier(LogisticRegression(), metric="f1"), X, y),
        "the other class": (
            MetricClassifier(GaussianNB(), metric="f1", pos_label="no"), X, text,
        ),
        "two classes": (MetricClassifier(GaussianNB(), metric="macro_f1"), X, y),
        "classes": (MetricClassifier(GaussianNB()), *load_iris(return_X_y=True)),
        "labels": (MetricClassifier(each), *LABELS),
        "labels, k": (MetricClassifier(each, k=2), *LABELS),
        "labels, at most": (MetricClassifier(each, at_most=2), *LABELS),
        "labels, at most, told": (
            MetricClassifier(each, at_most=1, feedback="labels", metric="macro_recall"), *LABELS,
        ),
        "costs": (
            MetricClassifier(GaussianNB(), metric=omma.metrics.costs([[0, -1], [-9, 0]])), X, y,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", problems())
def test_two_default_fits_are_the_same(kind):
    model, X, y = problems()[kind]
    one, other = clone(model).fit(X, y), clone(model).fit(X, y)
    assert one.rule_ == other.rule_
    np.testing.assert_array_equal(one.history_.values, other.history_.values)


@pytest.mark.parametrize("kind", problems())
def test_scores_say_what_is_predicted(kind):
    model, X, y = problems()[kind]
    scores, found = model.fit(X, y).decision_function(X), model.predict(X)
    if scores.ndim == 1:
        np.testing.assert_array_equal(model.classes_[(scores > 0).astype(int)], found)
    elif found.ndim == 1:
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], found)
    else:
        np.testing.assert_array_equal(scores > 0, found)


@pytest.mark.parametrize("rule", [omma.Rule([0.0], [1.0]), omma.Rule([0.0], [-1.0])])
def test_scores_of_always_and_never_still_rank(rule):
    X, y = TWO
    model = MetricClassifier(GaussianNB(), metric="f1").fit(X, y)
    model.rule_ = rule
    scores, eta = model.decision_function(X), model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(scores > 0, model.predict(X))
    kept = eta > 0
    order = np.argsort(eta[kept], kind="stable")
    assert (np.diff(scores[kept][order]) >= 0).all()


def test_one_against_the_rest_goes_by_the_rule():
    X, y = LABELS
    inner = MetricClassifier(LogisticRegression(), metric="f1")
    found = OneVsRestClassifier(inner).fit(X, y).predict(X)
    alone = [clone(inner).fit(X, column).predict(X) for column in y.T]
    np.testing.assert_array_equal(found, np.stack(alone, axis=1))
    plain = OneVsRestClassifier(LogisticRegression()).fit(X, y).predict(X)
    assert (found != plain).any()


def test_one_against_another_runs():
    X, y = load_iris(return_X_y=True)
    inner = MetricClassifier(LogisticRegression(max_iter=500), metric="macro_f1")
    assert OneVsOneClassifier(inner).fit(X, y).score(X, y) > 0.9
    assert OneVsRestClassifier(inner).fit(X, y).score(X, y) > 0.9


# Several cores


def test_folds_in_parallel_are_the_same(capfd):
    X, y = TWO
    one = MetricClassifier(DecisionTreeClassifier(max_depth=3, random_state=0), metric="f1")
    two = clone(one).set_params(n_jobs=2, verbose=2).fit(X, y)
    assert one.fit(X, y).rule_ == two.rule_
    assert "5 out of   5" in "".join(capfd.readouterr())


# Zero division


def test_a_label_that_never_comes_can_be_left_out():
    X, y = LABELS
    never = np.column_stack((y, np.zeros(len(y), dtype=int)))

    def fitted(zero_division):
        inner = DecisionTreeClassifier(max_depth=3, random_state=0)
        return MetricClassifier(inner, zero_division=zero_division).fit(X, never)

    zero, skipped, one = (fitted(worth) for worth in (0.0, np.nan, 1.0))
    assert skipped.value_ == pytest.approx(zero.value_ * 5 / 4)
    assert one.value_ == pytest.approx((4 * skipped.value_ + 1) / 5)
    with pytest.raises(TypeError, match="zero_division of MetricClassifier must be a finite"):
        fitted("warn")


# Stores


def same(model, again, X):
    """Whether a model came back as it was, ready to go on."""
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert again.rule_ == model.rule_
    assert again.counts_ == model.counts_
    assert again.value_ == model.value_


@pytest.mark.parametrize("kind", problems())
def test_models_come_back_from_pickle_and_joblib(kind, tmp_path):
    model, X, y = problems()[kind]
    model.fit(X, y)
    same(model, pickle.loads(pickle.dumps(model)), X)
    joblib.dump(model, tmp_path / "model.joblib")
    same(model, joblib.load(tmp_path / "model.joblib"), X)


@pytest.mark.parametrize("kind", problems())
def test_models_come_back_from_skops(kind, tmp_path):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    model, X, y = problems()[kind]
    skops.dump(model.fit(X, y), tmp_path / "model.skops")
    unknown = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith(("omma.", "numpy.", "sklearn.")) for name in unknown), unknown
    again = skops.load(tmp_path / "model.skops", trusted=unknown)
    same(model, again, X)
    again.step(X[:20], y[:20])
    assert again.counts_.n == model.counts_.n + 20


def test_counts_come_back_from_their_state():
    for counts in (omma.Counts([1], [2], [3], 5), omma.Counts.from_confusion([[5, 1], [2, 4]])):
        again = pickle.loads(pickle.dumps(counts))
        assert again == counts
        assert (again.matrix is None) == (counts.matrix is None)


# Groups


def test_groups_go_to_the_splitter():
    X, y = TWO
    groups = np.arange(len(y)) // 8
    with config_context(enable_metadata_routing=True):
        model = MetricClassifier(LogisticRegression(), metric="f1", cv=GroupKFold(4))
        grouped = model.fit(X, y, groups=groups)
    folds = list(GroupKFold(4).split(X, y, groups))
    plain = MetricClassifier(LogisticRegression(), metric="f1", cv=folds).fit(X, y)
    assert grouped.rule_ == plain.rule_

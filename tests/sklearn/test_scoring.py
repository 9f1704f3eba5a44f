"""Metrics of omma as scikit-learn's scoring."""

import pickle

import numpy as np
import pytest
import sklearn.metrics as skl
from sklearn.base import BaseEstimator
from sklearn.datasets import load_wine, make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB

import omma
from omma.sklearn import MetricClassifier, make_scorer

WINE = load_wine(return_X_y=True)
LABELS = make_multilabel_classification(200, n_classes=5, random_state=0)


@pytest.mark.parametrize("classes", [[0, 1, 2], [1, 2, 3], ["a", "b", "c"], [-5, 0, 7]])
def test_wine_is_scored_as_by_scikit_learn(classes):
    X, y = WINE[0], np.array(classes)[WINE[1]]
    expected = cross_val_score(GaussianNB(), X, y, scoring="f1_macro")
    for scoring in (omma.metric("macro_f1"), make_scorer("macro_f1"), make_scorer("f1_macro")):
        found = cross_val_score(GaussianNB(), X, y, scoring=scoring)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_metric_of_one_label_takes_its_positive_class():
    X, y = make_classification(300, weights=[0.7], random_state=0)
    text = np.where(y == 1, "spam", "ham")
    model = LogisticRegression()
    found = cross_val_score(model, X, text, scoring=make_scorer("f1", pos_label="spam"))
    np.testing.assert_allclose(found, cross_val_score(model, X, y, scoring="f1"), atol=1e-12)
    with pytest.raises(ValueError, match="pass pos_label"):
        make_scorer("f1")(model.fit(X, text), X, text)


def test_weights_are_passed_on():
    X, y = WINE
    model, weight = GaussianNB().fit(X, y), np.arange(len(y)) % 3
    found = make_scorer("macro_f1")(model, X, y, sample_weight=weight)
    expected = skl.f1_score(y, model.predict(X), average="macro", sample_weight=weight)
    assert found == pytest.approx(expected)
    assert omma.metric("macro_f1")(model, X, y, weight) == pytest.approx(expected)


def test_a_budget_judges_the_most_probable_labels():
    X, y = LABELS
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    best = omma.Rule(np.ones(5), np.zeros(5), 2).predict(model.predict_proba(X))
    scorer = make_scorer("micro_precision@2")
    assert scorer(model, X, y) == omma.metric("micro_precision").score(y, best)
    assert repr(scorer) == "make_scorer('micro_precision@2')"
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == scorer(model, X, y)


def test_decisions_that_keep_the_budget_are_judged_as_they_are():
    X, y = LABELS
    inner = OneVsRestClassifier(LogisticRegression())
    model = MetricClassifier(inner, metric="macro_f1", k=2, random_state=0).fit(X, y)
    expected = omma.metric("macro_f1").score(y, model.predict(X))
    assert make_scorer("macro_f1@2")(model, X, y) == expected
    assert make_scorer("macro_f1", k=2)(model, X, y) == expected


def test_k_classes_of_a_row_are_its_most_probable():
    X, y = WINE
    model = GaussianNB().fit(X[:, :2], y)
    found = make_scorer("micro_recall@2")(model, X[:, :2], y)
    assert found == pytest.approx(skl.top_k_accuracy_score(y, model.predict_proba(X[:, :2]), k=2))
    named = np.array(["a", "b", "c"])[y]
    assert (
        make_scorer("micro_recall@2")(GaussianNB().fit(X[:, :2], named), X[:, :2], named) == found
    )
    assert make_scorer("macro_f1@1")(model, X[:, :2], y) == pytest.approx(
        skl.f1_score(y, model.predict(X[:, :2]), average="macro")
    )


def test_a_search_goes_by_the_scorer():
    X, y = LABELS
    grid = {"estimator__C": [0.01, 1.0]}
    inner = OneVsRestClassifier(LogisticRegression())
    search = GridSearchCV(inner, grid, scoring=make_scorer("macro_f1@2"), cv=3).fit(X, y)
    assert 0 < search.best_score_ < 1


def test_undefined_labels_are_worth_what_is_said():
    X, y = np.zeros((2, 1)), np.array([[1, 0], [1, 0]])

    class Always(BaseEstimator):
        def predict(self, X):
            return np.array([[1, 0], [1, 0]])

    assert make_scorer("macro_f1")(Always(), X, y) == 0.5
    assert make_scorer("macro_f1", zero_division=1.0)(Always(), X, y) == 1.0
    assert make_scorer("macro_f1", zero_division=np.nan)(Always(), X, y) == 1.0
    assert make_scorer("macro_f1@1", zero_division=np.nan)(Always(), X, y) == 1.0


def test_bad_options_get_a_sentence():
    with pytest.raises(ValueError, match="'roc_auc' is not a metric of decisions"):
        make_scorer("roc_auc")
    with pytest.raises(ValueError, match="unknown metric 'macro_f'"):
        make_scorer("macro_f")
    with pytest.raises(ValueError, match="k of make_scorer must be that of 'macro_f1@3'"):
        make_scorer("macro_f1@3", k=2)
    with pytest.raises(ValueError, match="k of make_scorer must be a whole number"):
        make_scorer("macro_f1", k=0)


def test_a_metric_is_called_by_scikit_learn_alone():
    metric = omma.metric("macro_f1")
    with pytest.raises(TypeError, match="psi of custom must be a function, got <metric macro_f1>"):
        omma.metrics.custom(metric)
    with pytest.raises(TypeError, match="policies of compare must be names, policies, functions"):
        omma.compare([[0.5]], [[1]], ["macro_f1"], [metric])

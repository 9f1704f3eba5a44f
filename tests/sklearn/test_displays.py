"""Displays draw what omma measures, on rows as scikit-learn has them."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris, make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB

import omma
from omma.calibration import reliability
from omma.sklearn import MetricClassifier, ReliabilityDisplay, ThresholdCurveDisplay

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(1000, weights=[0.8], flip_y=0.1, random_state=0)
    return LogisticRegression().fit(X[:500], y[:500]), X[500:], y[500:]


def test_the_best_threshold_is_that_of_the_curve(binary):
    model, X, y = binary
    ax = Figure().add_subplot()
    display = ThresholdCurveDisplay.from_estimator(model, X, y, bootstrap=0, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    (line,) = display.curve
    eta = model.predict_proba(X)[:, 1]
    assert line.value == pytest.approx(f1_score(y, eta >= line.threshold))
    assert line.value == omma.curve(eta, y, "f1", bootstrap=0)[0].value


def test_text_classes_and_both_ways_in_agree(binary):
    _, X, y = binary
    words = np.where(y == 1, "fraud", "fine")
    named = LogisticRegression().fit(X, words)
    options = {"pos_label": "fraud", "bootstrap": 0}
    first = ThresholdCurveDisplay.from_estimator(named, X, words, **options)
    second = ThresholdCurveDisplay.from_predictions(words, named.predict_proba(X), **options)
    np.testing.assert_array_equal(first.curve[0].values, second.curve[0].values)
    assert first.ax_.get_title(loc="left") == "fraud"
    with pytest.raises(ValueError, match="pos_label of ThresholdCurveDisplay"):
        ThresholdCurveDisplay.from_estimator(named, X, words)


def test_a_macro_metric_has_a_panel_for_each_label():
    X, y = make_multilabel_classification(300, n_classes=4, random_state=0)
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    display = ThresholdCurveDisplay.from_estimator(model, X, y, metric="macro_f1", bootstrap=5)
    assert display.ax_.shape == (4,)
    assert display.figure_.axes == list(display.ax_)  # two unused frames of the grid are gone
    display = ThresholdCurveDisplay.from_estimator(
        model, X, y, metric="macro_f1", bootstrap=0, labels=[2]
    )
    assert display.ax_.get_title(loc="left") == "label 2"


def test_classes_go_by_their_names_and_the_metric_is_the_classifiers_own():
    X, y = load_iris(return_X_y=True)
    model = MetricClassifier(GaussianNB(), metric="macro_jaccard", cv=2).fit(X, y + 5)
    some = y < 2  # a part may lack a class that the model knows
    display = ThresholdCurveDisplay.from_estimator(model, X[some], y[some] + 5, bootstrap=0)
    assert display.curve.metric.name == "macro_jaccard"
    assert [line.name for line in display.curve] == ["5", "6", "7"]


def test_reliability_is_that_of_the_positive_class(binary):
    model, X, y = binary
    display = ReliabilityDisplay.from_estimator(model, X, y, bins=5)
    eta = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(display.curve.count, reliability(eta, y, bins=5).count)
    assert "LogisticRegression" in display.ax_[0].get_legend().get_texts()[0].get_text()
    ax = Figure().add_subplot()
    again = ReliabilityDisplay.from_predictions(y, eta, bins=5, name="mine", ax=ax)
    np.testing.assert_array_equal(again.curve.observed, display.curve.observed)
    assert again.ax_ is ax
    assert again.figure_ is ax.figure


def test_reliability_of_several_classes_takes_all_together():
    X, y = load_iris(return_X_y=True)
    display = ReliabilityDisplay.from_estimator(GaussianNB().fit(X, y), X, y)
    assert display.curve.count.sum() == 3 * len(y)

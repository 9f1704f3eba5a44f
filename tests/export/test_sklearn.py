"""A rule on top of scikit-learn's classifiers, and MetricClassifier as ONNX."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rules_elsewhere import numbers
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import omma
from omma.export.sklearn import one_threshold
from omma.sklearn import MetricClassifier, RuledClassifier


class Said(ClassifierMixin, BaseEstimator):
    """Takes its only feature for the probability of the second class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack((1 - X[:, 0], X[:, 0]))


@given(slope=numbers, offset=numbers, data=st.data())
@settings(max_examples=150)
def test_one_threshold_decides_as_the_rule_does(slope, offset, data):
    rule = omma.Rule([slope], [offset])
    model = rule.to_sklearn(Said().fit(None, ["no", "yes"]), pos_label="yes")
    assert isinstance(model, FixedThresholdClassifier if slope >= 0 else RuledClassifier)
    cut = one_threshold(rule)
    near = [] if cut is None or not 0 < cut < 1 else [cut, *np.nextafter(cut, [0, 1])]
    eta = np.array([0.0, 5e-324, 1.0, *near, *data.draw(st.lists(st.floats(0, 1), max_size=5))])
    expected = np.where(rule.predict(eta) == 1, "yes", "no")
    np.testing.assert_array_equal(model.predict(eta[:, np.newaxis]), expected)
    single = eta.astype(np.float32)
    expected = np.where(rule.predict(single) == 1, "yes", "no")
    np.testing.assert_array_equal(model.predict(single[:, np.newaxis]), expected)


def test_one_threshold_of_numbers_below_all_normal_ones():
    """Their products round to a few values: a step from number to number would never end."""
    for slope, offset in ((1e-320, -1e-321), (1e-300, -1e-320)):
        cut = one_threshold(omma.Rule([slope], [offset]))
        assert slope * cut + offset >= 0 > slope * np.nextafter(cut, 0) + offset


def test_classes_and_labels_are_decided_by_the_rule():
    X, y = make_classification(300, n_classes=3, n_informative=5, random_state=0)
    names = np.array(["a", "b", "c"])[y]
    forest = RandomForestClassifier(5, random_state=0).fit(X, names)
    rule = omma.Rule([1.0, 1.0, 2.0], [0.0, 0.1, 0.0], k=1)
    model = rule.to_sklearn(forest)
    expected = forest.classes_[rule.predict(forest.predict_proba(X)).argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), expected)
    assert 0 < model.score(X, names) < 1
    X, y = make_multilabel_classification(200, n_classes=3, random_state=0)
    rule = omma.Rule([1.0, 2.0, 3.0], [-0.5, -0.5, -0.5])
    for inner in (OneVsRestClassifier(LogisticRegression()), RandomForestClassifier(5)):
        model = rule.to_sklearn(inner.fit(X, y))
        eta = inner.predict_proba(X)
        eta = eta if isinstance(eta, np.ndarray) else np.stack([one[:, 1] for one in eta], axis=1)
        np.testing.assert_array_equal(model.predict(X), rule.predict(eta))


def test_an_estimator_that_is_not_trained_can_be_trained():
    X, y = make_classification(200, random_state=0)
    rule = omma.Rule([1.0, 1.2], [0.0, 0.0], k=1)
    model = rule.to_sklearn(LogisticRegression())
    with pytest.raises(NotFittedError):
        model.predict(X)
    alone = LogisticRegression().fit(X, y)
    expected = rule.to_sklearn(alone).predict(X)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), expected)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), expected)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_what_does_not_fit_gets_a_sentence():
    X, y = make_classification(100, random_state=0)
    rule = omma.Rule([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], k=1)
    with pytest.raises(TypeError, match=r"estimator of Rule.to_sklearn must be a classifier"):
        rule.to_sklearn(LinearRegression())
    with pytest.raises(ValueError, match=r"must have a label for each of \[0, 1\], .* got 3"):
        rule.to_sklearn(LogisticRegression().fit(X, y)).predict(X)
    below = omma.Rule([-1.0], [0.5]).to_sklearn(LogisticRegression().fit(X, y), pos_label=7)
    with pytest.raises(ValueError, match=r"pos_label of RuledClassifier must be one of \[0, 1\]"):
        below.predict(X)


# MetricClassifier through skl2onnx


def problems():
    """Estimator, classes or labels, and options of every kind of problem."""
    two = make_classification(1500, weights=[0.9], random_state=0)
    three = make_classification(1500, n_classes=3, n_informative=6, random_state=0)
    many = make_multilabel_classification(800, n_classes=5, random_state=0)
    text = two[0], np.where(two[1] == 1, "yes", "no")
    named = three[0], np.array(["a", "b", "c"])[three[1]]
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    forest = RandomForestClassifier(15, max_depth=5, random_state=0)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    each = OneVsRestClassifier(LogisticRegression())
    return {
        "binary": (LogisticRegression(), two, {"metric": "f1"}),
        "binary, cuts at leaves": (tree, two, {"metric": "f1"}),
        "binary, text": (forest, text, {"metric": "f1", "pos_label": "no"}),
        "two classes, pipeline": (scaled, two, {"metric": "macro_f1"}),
        "classes, text": (LogisticRegression(), named, {"metric": "multiclass_gmean"}),
        "classes": (forest, (three[0], three[1] + 1), {"metric": "macro_f1"}),
        "labels": (each, many, {"metric": "macro_f1"}),
        "labels, k": (each, many, {"metric": "macro_f1", "k": 2}),
        "labels, at most": (each, many, {"metric": "macro_f1", "at_most": 2}),
        "labels, at most, forest": (forest, many, {"metric": "macro_recall", "at_most": 1}),
        "labels, k, forest": (forest, many, {"metric": "macro_f1", "k": 2}),
        "labels, each apart": (MultiOutputClassifier(each.estimator), many, {"metric": "micro_f1"}),
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("kind", problems())
def test_onnxruntime_decides_as_the_classifier_does(kind):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    from omma.export import register_skl2onnx

    register_skl2onnx()
    inner, (X, y), options = problems()[kind]
    X = X.astype(np.float32)
    model = MetricClassifier(inner, random_state=0, **options).fit(X, y)
    converted = skl2onnx.to_onnx(model, X[:1], target_opset=17)
    session = ort.InferenceSession(converted.SerializeToString())
    (found,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_array_equal(found, model.predict(X))

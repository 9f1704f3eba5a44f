"""Models of other libraries: every shape of probabilities ends in the right columns."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.tree import DecisionTreeClassifier

from omma.estimators import Precomputed, Wrapped
from omma.estimators.layouts import to_columns

N = 80


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    Y = (X[:, :3] + 0.5 * rng.normal(size=(N, 3)) > 0.3).astype(np.int8)
    ids = np.argmax(X[:, :4], axis=1)
    return X, Y, ids


def test_lists_and_matrices_of_labels_agree(data):
    X, Y, _ = data
    single = [LogisticRegression().fit(X, Y[:, j]).predict_proba(X)[:, 1] for j in range(3)]
    expected = np.stack(single, axis=1)
    for model in (
        MultiOutputClassifier(LogisticRegression()),  # a list of (n, 2)
        OneVsRestClassifier(LogisticRegression()),  # (n, m)
    ):
        fitted = Wrapped(model).fit(X, Y)
        np.testing.assert_allclose(fitted.predict_proba(X), expected)
    given = Wrapped(OneVsRestClassifier(LogisticRegression())).fit(X, sparse.csr_matrix(Y))
    np.testing.assert_allclose(given.predict_proba(X), expected)


def test_more_than_127_labels_of_int8_keep_their_columns():
    rng = np.random.default_rng(1)
    Y = (rng.random((N, 200)) < 0.3).astype(np.int8)
    X = Y.astype(np.float64)
    for y in (Y, sparse.csr_matrix(Y)):
        eta = (
            Wrapped(OneVsRestClassifier(DecisionTreeClassifier(max_depth=1)))
            .fit(X, y)
            .predict_proba(X)
        )
        np.testing.assert_array_equal(eta, Y)


def test_labels_that_are_constant_in_training(data):
    X, Y, _ = data
    Y = Y.copy()
    Y[:, 0], Y[:, 2] = 0, 1
    eta = Wrapped(DecisionTreeClassifier(max_depth=2)).fit(X, Y).predict_proba(X)
    assert (eta[:, 0] == 0).all()
    assert (eta[:, 2] == 1).all()
    assert 0 < eta[:, 1].mean() < 1


def test_absent_classes_have_columns_of_zeros(data):
    X, _, ids = data
    renamed = np.array([1, 3, 4, 6])[ids]
    eta = Wrapped(GaussianNB()).fit(X, renamed, n_labels=8).predict_proba(X)
    np.testing.assert_allclose(eta[:, [1, 3, 4, 6]], GaussianNB().fit(X, ids).predict_proba(X))
    assert (eta[:, [0, 2, 5, 7]] == 0).all()


def test_one_label_takes_the_column_of_one(data):
    X, Y, _ = data
    eta = Wrapped(GaussianNB()).fit(X, Y[:, :1]).predict_proba(X)
    np.testing.assert_allclose(eta[:, 0], GaussianNB().fit(X, Y[:, 0]).predict_proba(X)[:, 1])
    as_classes = Wrapped(GaussianNB()).fit(X, Y[:, 0]).predict_proba(X)
    np.testing.assert_allclose(as_classes[:, 1], eta[:, 0])


def test_three_dimensions_and_plain_arrays():
    cube = np.array([[[0.9, 0.1], [0.3, 0.7]]])
    assert to_columns(cube, None, 2, classes=False).tolist() == [[0.1, 0.7]]
    assert to_columns(cube[:, :, 1], None, 2, classes=False).tolist() == [[0.1, 0.7]]
    with pytest.raises(ValueError, match="must give 3 labels"):
        to_columns(cube, None, 3, classes=False)


def test_the_model_given_is_left_alone(data):
    X, _, ids = data
    model = BernoulliNB()
    Wrapped(model).fit(X, ids)
    Wrapped(model).estimates(X, ids)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("kind", ["classes", "labels", "binary"])
def test_estimates_predict_before_they_learn(data, kind):
    X, Y, ids = data
    X = (X > 0).astype(float)
    y = {"classes": ids, "labels": Y, "binary": Y[:, :1]}[kind]
    model = MultiOutputClassifier(BernoulliNB()) if kind == "labels" else BernoulliNB()
    eta, report = Wrapped(model).estimates(X, y)
    twin = Wrapped(model)
    t = 30
    before = twin.estimates(X[: t + 1], y[: t + 1], n_labels=eta.shape[1])[0]
    np.testing.assert_allclose(before, eta[: t + 1])
    if kind != "labels":
        batch = BernoulliNB().fit(X[:t], np.ravel(y[:t]))
        expected = batch.predict_proba(X[t : t + 1])[0]
        expected = expected[1:] if kind == "binary" else expected
        np.testing.assert_allclose(eta[t], expected)
    assert (eta[0] == (0.25 if kind == "classes" else 0.5)).all()
    assert report["rows"] == N


def test_a_model_with_partial_fit_alone():
    class Counting:
        def partial_fit(self, X, y, classes=None):
            self.classes_ = classes
            self.mean = np.bincount(y, minlength=len(classes)) / len(y)

        def predict_proba(self, X):
            return np.tile(self.mean, (len(X), 1))

    eta = Wrapped(Counting()).fit(np.zeros((4, 1)), [0, 2, 2, 2], n_labels=4).predict_proba([[0.0]])
    assert eta.tolist() == [[0.25, 0.0, 0.75, 0.0]]


class Frequencies:
    """River's protocol, without river: the share of each answer so far."""

    def __init__(self):
        self.seen, self.rows = [], []

    def predict_proba_one(self, x):
        if not self.seen:
            return {}
        if isinstance(self.seen[0], dict):
            return {j: {True: np.mean([y[j] for y in self.seen]), False: 0.0} for j in self.seen[0]}
        return {y: np.mean([y == other for other in self.seen]) for y in set(self.seen)}

    def learn_one(self, x, y):
        self.seen.append(y)
        self.rows.append(x)


def test_rivers_protocol_by_hand():
    X = np.arange(6.0).reshape(3, 2)
    eta, _ = Wrapped(Frequencies()).estimates(X, [2, 0, 2], n_labels=4)
    assert eta.tolist() == [[0.25] * 4, [0, 0, 1, 0], [0.5, 0, 0.5, 0]]
    eta, _ = Wrapped(Frequencies()).estimates(X, [[1, 0], [1, 1], [0, 0]])
    assert eta.tolist() == [[0.5, 0.5], [1, 0], [1, 0.5]]
    eta, _ = Wrapped(Frequencies()).estimates(X, [[1], [0], [0]])
    assert eta.tolist() == [[0.5], [1], [0.5]]
    fitted = Wrapped(Frequencies()).fit(sparse.csr_array(X), [2, 0, 2], n_labels=4)
    assert fitted.model.rows[0] == {1: 1.0}  # a sparse row hands on what it stores
    np.testing.assert_allclose(fitted.predict_proba(X)[0], [1 / 3, 0, 2 / 3, 0])


def test_river_itself(data):
    linear_model = pytest.importorskip("river.linear_model")
    multiclass = pytest.importorskip("river.multiclass")
    X, Y, ids = data
    eta, _ = Wrapped(linear_model.LogisticRegression()).estimates(X, Y[:, :1])
    model, expected = linear_model.LogisticRegression(), []
    for x, y in zip(X, Y[:, 0], strict=True):
        row = dict(enumerate(x.tolist()))
        expected.append(model.predict_proba_one(row)[True])
        model.learn_one(row, bool(y))
    np.testing.assert_allclose(eta[:, 0], expected)
    many = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    eta, _ = Wrapped(many).estimates(X, ids)
    np.testing.assert_allclose(eta.sum(axis=1), 1)
    assert (eta[40:].argmax(axis=1) == ids[40:]).mean() > 0.5


def test_what_cannot_be_wrapped():
    with pytest.raises(TypeError, match="model of Wrapped must have predict_proba with fit"):
        Wrapped(object())
    with pytest.raises(TypeError, match="must have partial_fit to learn row by row"):
        Wrapped(DecisionTreeClassifier()).estimates([[0.0]], [0])
    with pytest.raises(TypeError, match="model of Wrapped"):
        Wrapped(SGDClassifier(loss="hinge"))  # it has no probabilities


def test_given_probabilities():
    eta = sparse.csr_array(np.array([[0.5, 0.0], [0.1, 0.2]]))
    model = Precomputed(eta).fit(np.zeros((9, 1)), np.zeros(9))
    assert model.predict_proba(np.zeros((2, 3))) is model.eta
    assert model.estimates(np.zeros((2, 3)))[1] == {"rows": 2, "labels": 2}
    with pytest.raises(ValueError, match="X of Precomputed must have 2 rows"):
        model.predict_proba(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="eta of Precomputed must hold probabilities"):
        Precomputed([[1.5]])

"""Fitted estimators: the solvers' own figures, any number of jobs, labels of no use."""

import json

import numpy as np
import pytest
from scipy import optimize, sparse, special
from sklearn.linear_model import LogisticRegression as Sklearn

from omma.calibration import log_loss
from omma_study.estimators import LinearAdam, LogisticRegression, Multinomial, linear
from omma_study.estimators.linear import keep_largest


def made(seed=0, n=300, d=6, m=4, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    Y = (X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m)) > 1).astype(np.int8)
    ids = np.argmax(X[:, : min(d, m)] + rng.normal(size=(n, min(d, m))), axis=1)
    return X, Y, ids


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_multinomial_model_is_at_its_minimum(dtype):
    X, _, ids = made(7, n=200, d=30)
    X = X.astype(dtype)
    model = Multinomial(C=300.0, standardise=False).fit(X, ids)
    errors = model.predict_proba(X) - np.eye(4)[ids]
    gradient = X.T.astype(np.float64) @ errors / len(X) + model.weights / (300.0 * len(X))
    assert abs(gradient).max() < 1e-7


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_each_label_is_liblinears_own_model(layout):
    X, Y, _ = made(density=0.5)
    estimator = LogisticRegression(C=3.0, standardise=False, tol=1e-6)
    eta = estimator.fit(layout(X), layout(Y)).predict_proba(layout(X))
    for j in range(4):
        own = Sklearn(C=3.0, solver="liblinear", tol=1e-6).fit(X, Y[:, j])
        np.testing.assert_allclose(eta[:, j], own.predict_proba(X)[:, 1], rtol=1e-9)


def test_standardised_features_are_fitted_and_weights_are_for_features_as_they_come():
    X, Y, _ = made(1)
    X = X * [1, 10, 100, 1e-3, 1, 1] + 50
    X[:, 5] = 7.0
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    expected = LogisticRegression(C=1.0, standardise=False).fit(scaled, Y).predict_proba(scaled)
    for truncate in (0.0, 1e-12):
        model = LogisticRegression(C=1.0, truncate=truncate).fit(X, Y)
        np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-6)


def test_any_number_of_jobs_gives_the_same_bits():
    X, Y, _ = made(2, m=40)
    single, several = (
        LogisticRegression(n_jobs=jobs, grid=(0.1, 1.0)).fit(X, Y) for jobs in (1, 3)
    )
    np.testing.assert_array_equal(single.weights, several.weights)
    np.testing.assert_array_equal(single.intercept, several.intercept)
    assert single.report == several.report


def test_labels_that_no_row_or_every_row_has():
    X, Y, _ = made(3)
    Y[:, 0], Y[:, 2] = 0, 1
    model = LogisticRegression().fit(X, Y)
    eta = model.predict_proba(X)
    assert (eta[:, 0] == 0).all()
    assert (eta[:, 2] == 1).all()
    assert (model.report["never"], model.report["always"]) == (1, 1)
    alone = LogisticRegression().fit(X, Y[:, [0, 2]])
    assert alone.predict_proba(X).tolist() == [[0.0, 1.0]] * 300
    assert alone.report["chosen"] == "nothing to choose by"


def test_more_than_127_labels_of_int8_keep_their_columns():
    rng = np.random.default_rng(4)
    Y = (rng.random((200, 150)) < 0.3).astype(np.int8)
    eta = LogisticRegression(C=1000.0).fit(sparse.csr_array(Y.astype(float)), Y).predict_proba(Y)
    assert ((eta > 0.5) == Y).mean() > 0.99


def test_small_weights_are_dropped_and_large_probabilities_kept():
    X, Y, _ = made(5, d=30, m=12)
    full = LogisticRegression(C=1.0, standardise=False).fit(X, Y)
    cut = LogisticRegression(C=1.0, standardise=False, truncate=0.2, keep=5).fit(X, Y)
    weights = np.where(np.abs(full.weights) < 0.2, 0, full.weights)
    np.testing.assert_array_equal(cut.weights.toarray(), weights)
    assert cut.report["stored_weights"] == np.count_nonzero(weights)
    eta = cut.predict_proba(X)
    dense = special.expit(X @ weights + full.intercept)
    least = np.sort(dense, axis=1)[:, -5, np.newaxis]
    np.testing.assert_allclose(eta.toarray(), np.where(dense >= least, dense, 0))
    assert eta.has_sorted_indices
    assert eta.indices.dtype == np.int32


def test_ties_go_to_the_lowest_label_and_zeros_are_not_stored():
    eta = np.array([[0.5, 0.5, 0.5], [0.0, 0.0, 0.2], [0.1, 0.9, 0.1]])
    assert keep_largest(eta, 2).toarray().tolist() == [[0.5, 0.5, 0], [0, 0, 0.2], [0.1, 0.9, 0]]
    assert keep_largest(eta, 2).nnz == 5


@pytest.mark.parametrize("keep", [None, 3])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_blocks_of_rows_do_not_matter(monkeypatch, keep, layout):
    X, Y, _ = made(6)
    model = LogisticRegression(C=1.0, keep=keep, truncate=0.01 if keep else 0.0).fit(layout(X), Y)
    whole = model.predict_proba(layout(X))
    monkeypatch.setattr(linear, "BLOCK", 40)
    parts = model.predict_proba(layout(X))
    if keep:
        whole, parts = whole.toarray(), parts.toarray()
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


def test_c_is_chosen_by_log_loss_and_reported():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 60))
    Y = (X[:, :3] + 2 * rng.normal(size=(120, 3)) > 0).astype(int)  # noise: small C is best
    model = LogisticRegression(grid=(1e-3, 0.1, 10.0)).fit(X, Y)
    assert model.report["C"] == 1e-3
    assert model.report["at_edge"]
    assert model.report["chosen_on"] == {"folds": 3, "rows": 120, "labels": 3}
    assert model.report["log_loss"] == min(model.report["grid"].values())
    assert json.loads(json.dumps(model.report)) == model.report
    few = LogisticRegression(max_rows=50, max_labels=2, seed=3).fit(X, Y)
    assert few.report["chosen_on"] == {"folds": 3, "rows": 50, "labels": 2}


def test_class_ids_are_one_label_each_and_two_are_one():
    X, Y, ids = made(8)
    one_hot = LogisticRegression(C=1.0).fit(X, np.eye(5)[ids]).predict_proba(X)
    from_ids = LogisticRegression(C=1.0).fit(X, ids, n_labels=5).predict_proba(X)
    np.testing.assert_array_equal(from_ids, one_hot)
    yes = LogisticRegression(C=1.0).fit(X, Y[:, 0]).predict_proba(X)
    np.testing.assert_array_equal(yes, LogisticRegression(C=1.0).fit(X, Y[:, :1]).predict_proba(X))
    assert yes.shape == (300, 1)
    assert LogisticRegression(C=1.0).fit(X, Y[:, 0], n_labels=2).predict_proba(X).shape == (300, 2)


def objective(flat, X, ids, m, C):
    """Of multinomial regression, written out."""
    W = flat.reshape(X.shape[1] + 1, m)
    scores = X @ W[:-1] + W[-1]
    entropy = special.logsumexp(scores, axis=1) - scores[np.arange(len(X)), ids]
    return 0.5 * (W[:-1] ** 2).sum() + C * entropy.sum()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_multinomial_is_at_the_minimum(layout):
    X, _, ids = made(9, n=150, d=4, m=4)
    model = Multinomial(C=2.0, standardise=False, tol=1e-8).fit(layout(X), ids)
    fitted = np.vstack([model.weights, model.intercept])
    best = optimize.minimize(objective, np.zeros(20), args=(X, ids, 4, 2.0), tol=1e-10)
    assert objective(fitted.ravel(), X, ids, 4, 2.0) == pytest.approx(best.fun, rel=1e-7)
    np.testing.assert_allclose(model.predict_proba(layout(X)).sum(axis=1), 1)


@pytest.mark.parametrize("seen", [[1], [1, 3], [0, 2, 3]])
def test_absent_classes_get_zero(seen):
    X, _, ids = made(10, m=3)
    ids = np.array(seen)[ids % len(seen)]
    model = Multinomial().fit(X, ids, n_labels=5)
    eta = model.predict_proba(X)
    absent = [j for j in range(5) if j not in seen]
    assert (eta[:, absent] == 0).all()
    np.testing.assert_allclose(eta.sum(axis=1), 1)
    assert model.report["never"] == 5 - len(seen)
    if len(seen) == 2:
        own = Sklearn(C=model.report["C"]).fit((X - X.mean(axis=0)) / X.std(axis=0), ids == 3)
        scaled = (X - X.mean(axis=0)) / X.std(axis=0)
        np.testing.assert_allclose(eta[:, 3], own.predict_proba(scaled)[:, 1], rtol=1e-3)


def test_multinomial_chooses_c():
    X, _, ids = made(11, d=40)
    report = Multinomial().fit(X, ids).report
    assert report["log_loss"] == min(report["grid"].values())
    assert report["C"] < 1.0
    assert json.loads(json.dumps(report)) == report


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("link", ["softmax", "logistic"])
def test_adam_in_batches_equals_pytorch(layout, link):
    torch = pytest.importorskip("torch")
    X, Y, ids = made(12, n=70, d=5, density=0.6)
    y = ids if link == "softmax" else Y
    options = {"learning_rate": 0.03, "l2": 0.01, "epochs": 3, "batch": 16, "standardise": False}
    model = LinearAdam(**options, seed=4).fit(layout(X), y, n_labels=4)
    bound = 1 / np.sqrt(5)
    start = np.random.default_rng(4).uniform(-bound, bound, size=(6, 4))
    layer = torch.nn.Linear(5, 4, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(start[:-1].T))
        layer.bias.copy_(torch.tensor(start[-1]))
    groups = [{"params": [layer.weight], "weight_decay": 0.01}, {"params": [layer.bias]}]
    optimizer = torch.optim.Adam(groups, lr=0.03)
    rng = np.random.default_rng(4)
    for _ in range(3):
        order = rng.permutation(70)
        for rows in (order[at : at + 16] for at in range(0, 70, 16)):
            optimizer.zero_grad()
            scores = layer(torch.tensor(X[rows]))
            if link == "softmax":
                loss = torch.nn.functional.cross_entropy(scores, torch.tensor(ids[rows]))
            else:
                true = torch.tensor(Y[rows], dtype=torch.float64)
                loss = 4 * torch.nn.functional.binary_cross_entropy_with_logits(scores, true)
            loss.backward()
            optimizer.step()
    np.testing.assert_allclose(model.weights.T, layer.weight.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(model.intercept, layer.bias.detach().numpy(), rtol=1e-9)


def test_adam_comes_near_the_minimum_and_chooses_its_numbers():
    X, _, ids = made(13, n=600)
    best = Multinomial(C=100.0).fit(X, ids).predict_proba(X)
    model = LinearAdam(epochs=30, batch=64).fit(X, ids)
    assert log_loss(model.predict_proba(X), ids) < 1.03 * log_loss(best, ids)
    assert model.report["learning_rate"] == float(
        min(model.report["rates"]["grid"], key=model.report["rates"]["grid"].get)
    )
    assert json.loads(json.dumps(model.report)) == model.report


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, Y: LogisticRegression(C=0.0), "C of LogisticRegression must be above 0, got 0"),
        (lambda X, Y: LogisticRegression(keep=0), "keep of LogisticRegression"),
        (lambda X, Y: LogisticRegression(grid=(1, -1)), "grid of LogisticRegression"),
        (lambda X, Y: LogisticRegression().fit(X * np.nan, Y), "contains NaN"),
        (lambda X, Y: LogisticRegression().fit(X[:5], Y), "inconsistent numbers of samples"),
        (lambda X, Y: LogisticRegression().fit(X, Y + 1), "must hold 0 and 1"),
        (lambda X, Y: Multinomial().fit(X, Y), "y of Multinomial must hold a class id"),
        (lambda X, Y: Multinomial().fit(X, np.full(300, 0.5)), "whole numbers from 0 as class ids"),
        (lambda X, Y: LinearAdam(epochs=0), "epochs of LinearAdam"),
        (
            lambda X, Y: LogisticRegression(standardise=True).fit(sparse.csr_array(X), Y),
            "standardise must be True, False or 'auto', and not True for sparse X",
        ),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, message):
    X, Y, _ = made()
    with pytest.raises((ValueError, TypeError), match=message):
        call(X, Y)

"""The linear model that learns by Adam: one pass, row by row, PyTorch and a slow twin agree."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from naive_adam import naive_estimates, naive_standardised
from scipy import sparse

from omma.calibration import log_loss
from omma_study.estimators import OnlineLinear

N, D, M = 60, 7, 4


def made(seed=0, n=N, d=D, m=M, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    ids = np.argmax(X[:, : min(m, d)] + rng.normal(size=(n, min(m, d))), axis=1)
    Y = (X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m)) > 0.5).astype(np.int8)
    return X, ids, Y


def start_weights(estimator, link):
    return estimator.start(D, M, link).moments.weights.copy()


@pytest.mark.parametrize("link", ["logistic", "softmax"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@given(
    seed=st.integers(0, 1000), l2=st.sampled_from([0.0, 0.01]), rate=st.sampled_from([1e-3, 0.1])
)
def test_equals_the_slow_twin(link, layout, seed, l2, rate):
    X, ids, Y = made(seed, n=25, density=0.5)
    estimator = OnlineLinear(rate, l2=l2, standardise=False, seed=seed)
    truth = np.eye(M)[ids] if link == "softmax" else Y
    labels = ids if link == "softmax" else Y
    touched = np.ones(X.shape) if layout == "dense" else X != 0
    options = {"softmax": link == "softmax", "rate": rate, "l2": l2}
    expected, twin = naive_estimates(
        X, truth, touched, weights=start_weights(estimator, link), **options
    )
    rows = X if layout == "dense" else sparse.csr_array(X)
    eta, _ = estimator.estimates(rows, labels, n_labels=M)
    np.testing.assert_allclose(eta, expected, rtol=1e-9, atol=1e-12)
    model = estimator.start(D, M, link).partial_fit(rows, labels)
    np.testing.assert_allclose(model.moments.weights, twin.theta, rtol=1e-8, atol=1e-11)


def test_the_papers_settings_step_all_weights_and_regularise_intercepts():
    X, _, Y = made(5, n=40, density=0.3)
    settings = {"learning_rate": 0.005, "l2": 0.1, "standardise": False}
    estimator = OnlineLinear(**settings, dense=True, regularise_intercept=True)
    expected, _ = naive_estimates(
        X, Y, np.ones(X.shape), weights=start_weights(estimator, "logistic"), softmax=False,
        rate=0.005, l2=0.1, intercept_l2=0.1,
    )  # fmt: skip
    eta, _ = estimator.estimates(sparse.csr_array(X), Y)
    np.testing.assert_allclose(eta, expected, rtol=1e-9)
    lazy, _ = OnlineLinear(**settings).estimates(sparse.csr_array(X), Y)
    assert abs(lazy - eta).max() > 1e-3


def test_standardised_features_are_those_of_the_rows_before():
    X, _, Y = made(3)
    X = X * 100 + 1000
    X[:, 2] = 5.0  # never varies
    X[40, 3] = 1e6  # far out
    estimator = OnlineLinear(0.01)
    weights = start_weights(estimator, "logistic")
    scaled = naive_standardised(X)
    expected, _ = naive_estimates(
        scaled, Y, np.ones(X.shape), weights=weights, softmax=False, rate=0.01, l2=0.0
    )
    np.testing.assert_allclose(estimator.estimates(X, Y)[0], expected, rtol=1e-7, atol=1e-9)


def torch_model(torch, weights, link):
    """PyTorch's own linear layer and losses, in double precision."""
    layer = torch.nn.Linear(D, M, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights[:-1].T))
        layer.bias.copy_(torch.tensor(weights[-1]))
    entropy = torch.nn.CrossEntropyLoss(reduction="sum")
    logistic = torch.nn.BCEWithLogitsLoss(reduction="sum")
    return layer, entropy if link == "softmax" else logistic


@pytest.mark.parametrize("link", ["logistic", "softmax"])
def test_equals_pytorch_on_dense_rows(link):
    torch = pytest.importorskip("torch")
    X, ids, Y = made(1)
    estimator = OnlineLinear(0.02, l2=0.003, standardise=False)
    layer, loss = torch_model(torch, start_weights(estimator, link), link)
    groups = [{"params": [layer.weight], "weight_decay": 0.003}, {"params": [layer.bias]}]
    optimizer = torch.optim.Adam(groups, lr=0.02)
    target = torch.tensor(ids) if link == "softmax" else torch.tensor(Y, dtype=torch.float64)
    expected = []
    for t in range(N):
        scores = layer(torch.tensor(X[t : t + 1]))
        squashed = torch.softmax(scores, 1) if link == "softmax" else torch.sigmoid(scores)
        expected.append(squashed.detach().numpy()[0])
        optimizer.zero_grad()
        loss(scores, target[t : t + 1]).backward()
        optimizer.step()
    eta, _ = estimator.estimates(X, ids if link == "softmax" else Y, n_labels=M)
    np.testing.assert_allclose(eta, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("link", ["logistic", "softmax"])
def test_equals_pytorchs_sparse_adam_on_sparse_rows(link):
    torch = pytest.importorskip("torch")
    X, ids, Y = made(2, density=0.4)
    X[:, 0] = 1.0  # PyTorch has no row without an entry
    # ε is placed otherwise by SparseAdam: one that does not matter makes both the same.
    estimator = OnlineLinear(0.02, epsilon=1e-30)
    start = start_weights(estimator, link)
    table = torch.nn.EmbeddingBag(D, M, mode="sum", sparse=True, dtype=torch.float64)
    bias = torch.nn.Parameter(torch.tensor(start[-1]))
    with torch.no_grad():
        table.weight.copy_(torch.tensor(start[:-1]))
    lazy = torch.optim.SparseAdam(list(table.parameters()), lr=0.02, eps=1e-30)
    full = torch.optim.Adam([bias], lr=0.02, eps=1e-30)
    _, loss = torch_model(torch, start, link)
    target = torch.tensor(ids) if link == "softmax" else torch.tensor(Y, dtype=torch.float64)
    expected = []
    for t in range(N):
        stored = np.flatnonzero(X[t])
        scores = bias + table(
            torch.tensor(stored)[None], per_sample_weights=torch.tensor(X[t, stored])[None]
        )
        squashed = torch.softmax(scores, 1) if link == "softmax" else torch.sigmoid(scores)
        expected.append(squashed.detach().numpy()[0])
        lazy.zero_grad()
        full.zero_grad()
        loss(scores, target[t : t + 1]).backward()
        full.step()
        lazy.step()
    labels = ids if link == "softmax" else Y
    eta, _ = estimator.estimates(sparse.csr_array(X), labels, n_labels=M)
    np.testing.assert_allclose(eta, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("link", ["logistic", "softmax"])
def test_row_by_row_gives_the_same_bits(layout, link):
    X, ids, Y = made(4, density=0.6)
    y = ids if link == "softmax" else Y
    rows = layout(X)
    eta, _ = OnlineLinear(0.05, l2=1e-3).estimates(rows, y, n_labels=M)
    estimator = OnlineLinear(0.05, l2=1e-3)
    model = estimator.start(D, M, link, sparse=sparse.issparse(rows))
    rows = rows.tocsr() if sparse.issparse(rows) else rows
    for t in range(N):
        row = rows[[t]]
        of_row = np.ravel(model.predict_proba(row))
        np.testing.assert_array_equal(of_row, eta[t])
        np.testing.assert_array_equal(np.ravel(model.predict_proba(row)), eta[t])  # nothing changed
        model.partial_fit(row, y[t : t + 1])
        if t == N // 2:
            model = pickle.loads(pickle.dumps(model))


def test_a_sparse_row_that_stores_all_is_a_dense_row():
    X, ids, _ = made(5)
    estimator = OnlineLinear(0.05, standardise=False)
    np.testing.assert_array_equal(
        estimator.estimates(X, ids)[0], estimator.estimates(sparse.csr_array(X), ids)[0]
    )


def test_rows_in_parts_are_rows_one_by_one():
    X, _, Y = made(6)
    whole = OnlineLinear(0.05).start(D, M).partial_fit(X, Y)
    parts = OnlineLinear(0.05).start(D, M).partial_fit(X[:11], Y[:11]).partial_fit(X[11:], Y[11:])
    np.testing.assert_array_equal(whole.moments.weights, parts.moments.weights)


def test_float32_and_order_of_memory_do_not_matter():
    X, _, Y = made(7)
    X = X.astype(np.float32)
    expected = OnlineLinear(0.05).estimates(X.astype(np.float64), Y)[0]
    for given_as in (X, np.asfortranarray(X), X[::-1][::-1]):
        np.testing.assert_array_equal(OnlineLinear(0.05).estimates(given_as, Y)[0], expected)


def test_the_rate_is_chosen_on_the_first_rows_and_reported():
    X, ids, _ = made(8, n=800)
    estimator = OnlineLinear(rates=(1e-5, 1e-3, 0.05), prefix=300)
    eta, report = estimator.estimates(X, ids)
    assert report["learning_rate"] == 0.05
    fixed = OnlineLinear(0.05)
    np.testing.assert_array_equal(eta, fixed.estimates(X, ids)[0])
    tried = log_loss(fixed.estimates(X[:300], ids[:300], n_labels=M)[0], ids[:300])
    assert report["grid"]["0.05"] == pytest.approx(tried)
    assert report["log_loss"] == pytest.approx(log_loss(eta, ids))
    assert "first 300 rows" in report["chosen"]


def test_it_learns():
    X, ids, _ = made(9, n=3000)
    eta, report = OnlineLinear().estimates(X, ids)
    assert report["log_loss"] < 0.85 * np.log(M)
    assert log_loss(eta[-500:], ids[-500:]) < log_loss(eta[:100], ids[:100])


def test_the_seed_decides_the_start():
    X, _, Y = made(0)
    first, again, of_next_seed = (OnlineLinear(0.01, seed=s).estimates(X, Y)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != of_next_seed).any()


def test_bad_options_are_refused():
    for options in ({"learning_rate": 0.0}, {"rates": (-1.0,)}, {"prefix": 0}):
        with pytest.raises(
            ValueError, match=f"{next(iter(options))} of OnlineLinear must be above 0"
        ):
            OnlineLinear(**options)


def test_bad_rows_leave_the_model_as_it_was():
    X, ids, Y = made(0)
    model = OnlineLinear(0.01).start(D, M).partial_fit(X, Y)
    before = pickle.dumps(model)
    wrong = X.copy()
    wrong[3, 2] = np.nan
    for rows, labels, message in [
        (wrong, Y, "contains NaN"),
        (X[:, :3], Y, "7 features"),
        (X[:4], Y, "inconsistent numbers of samples"),
        (X, Y + 1, "0 and 1"),
        (X, np.hstack([Y, Y]), "indicators of 4 labels"),
        (X, ids, "indicators of 4 labels"),
        (sparse.csr_array(X), Y, "be dense where"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, labels)
    outside = sparse.csr_array(X)
    outside.indices[0] = 10**6  # compiled loops would follow it
    with pytest.raises(ValueError, match="indices must be"):
        OnlineLinear(0.1, standardise=False).estimates(outside, Y)
    assert pickle.dumps(model) == before
    for estimator in (OnlineLinear(), OnlineLinear(0.1, l2="choose")):
        with pytest.raises(ValueError, match="must be set to start row by row"):
            estimator.start(D, M)
    with pytest.raises(ValueError, match="below n_labels"):
        OnlineLinear(0.1).estimates(X, ids, n_labels=2)


# Choosing


def best_by_hand(X, Y, ways, penalties, rates):
    """The least log-loss of predicting each row before it is learned, over all settings."""
    losses = {}
    for way, l2, rate in product(ways, penalties, rates):
        eta, _ = OnlineLinear(rate, l2, standardise=way).estimates(X, Y)
        losses[way, l2, rate] = log_loss(eta, Y)
    return min(losses.values())


def test_rate_l2_and_standardisation_are_chosen_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)) * np.array([1, 1, 50, 0.1, 1]) + 3
    Y = (X[:, :2] + rng.normal(size=(400, 2)) > 3).astype(np.int8)
    rates, penalties = (0.003, 0.03, 0.3), (1e-3,)
    model = OnlineLinear(
        l2="choose", standardise="choose", rates=rates, penalties=penalties, prefix=400
    )
    eta, report = model.estimates(X, Y)
    assert log_loss(eta, Y) == best_by_hand(X, Y, (True, False), (0.0, 1e-3), rates)
    assert len(report["tried"]) == 4
    assert report["log_loss"] == min(setting["log_loss"] for setting in report["tried"])
    again, _ = OnlineLinear(
        report["learning_rate"], report["l2"], standardise=report["standardise"]
    ).estimates(X, Y)
    np.testing.assert_array_equal(eta, again)


def test_sparse_rows_are_never_standardised_by_choice():
    X, _, Y = made(0)
    model = OnlineLinear(0.01, "choose", standardise="choose")
    _, report = model.estimates(sparse.csr_array(X), Y)
    assert not report["standardise"]
    assert report["learning_rate"] == 0.01
    assert [setting["l2"] for setting in report["tried"]] == [0.0, 1e-6, 1e-5, 1e-4]

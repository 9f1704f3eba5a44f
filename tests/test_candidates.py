"""With k, a row of fewer candidates is filled up as before, and that is said."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_baselines import stream
from scipy import sparse

import omma
from omma._candidates import rows_short_of
from omma.rows.arrays import read_probabilities

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array, "float32": np.float32}


def stored_zeros(eta):
    full = sparse.csr_array(np.ones(eta.shape))
    full.data = eta.ravel().copy()
    return full


@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_counts_rows_with_too_few(seed, k, zeros):
    eta, _ = stream(seed, 20, 6, zeros=zeros)
    expected = int(((eta > 0).sum(axis=1) < k).sum())
    for layout in (np.asarray, sparse.csr_array, stored_zeros, np.asfortranarray):
        assert rows_short_of(read_probabilities("test", layout(eta)), k) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_replay_says_how_many_and_the_way_out(layout):
    eta = np.array([[0.0, 0.0, 0.9, 0.0], [0.2, 0.1, 0.3, 0.4], [0.0, 0.0, 0.0, 0.0]])
    y = np.eye(4, dtype=np.int8)[:3]
    with pytest.warns(UserWarning, match=r"2 of 3 rows of replay .* k=2 .* at_most=2") as told:
        trace = omma.replay(omma.Auto("macro_f1", k=2), LAYOUTS[layout](eta), y)
    assert len(told) == 1
    assert told[0].filename == __file__
    made = trace.predictions
    made = made.toarray() if sparse.issparse(made) else made
    assert made[0].tolist() == [1, 0, 1, 0]  # the contract stays: the lowest fill up
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        omma.replay(omma.Auto("macro_f1", at_most=2), LAYOUTS[layout](eta), y)
        omma.replay(omma.Auto("macro_f1", k=4), LAYOUTS[layout](eta), y)
        omma.replay(omma.Auto("macro_f1", k=2), LAYOUTS[layout](eta + 0.01), y)


def test_learner_says_it_once():
    learner = omma.OnlineClassifier(omma.Auto("macro_f1", k=2), 3)
    assert learner.predict(np.array([0.5, 0.2, 0.1])).sum() == 2
    with pytest.warns(UserWarning, match="a row of predict has 1 labels .* at_most=2") as told:
        assert learner.predict(np.array([0.0, 0.0, 0.1])).tolist() == [1, 0, 1]
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = learner.predict(np.array([0.0, 0.0, 0.1]))
    assert found.tolist() == [1, 0, 1]  # the lowest label fills up, and nothing is said
    other = omma.OnlineClassifier(omma.Auto("macro_f1", k=2), 3)
    with pytest.warns(UserWarning, match="1 of 2 rows of predict"):
        other.predict(np.array([[0.0, 0.0, 0.1], [0.1, 0.1, 0.1]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        omma.OnlineClassifier(omma.Auto("macro_f1", k=3), 3).predict([0.0, 0.0, 0.1])
        omma.OnlineClassifier(omma.Auto("macro_f1"), 3).predict([0.0, 0.0, 0.1])


@pytest.mark.parametrize("ask", ["one", "several", "list", "sparse", "frame", "series"])
def test_learner_says_it_of_rows_with_ids_and_of_frames(ask):
    learner = omma.OnlineClassifier(omma.Auto("macro_f1", k=2), 3)
    row, options = [0.0, 0.0, 0.1], {"id": "a"}
    if ask in ("frame", "series"):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame([row], columns=["x", "y", "z"])
        row, options = frame if ask == "frame" else frame.iloc[0], {}
    elif ask == "several":
        row, options = np.array([row, row]), {"ids": ["a", "b"]}
    elif ask != "list":
        row = sparse.csr_array([row]) if ask == "sparse" else np.array(row)
    with pytest.warns(UserWarning, match="at_most=2") as told:
        learner.predict(row, **options)
    assert len(told) == 1
    assert told[0].filename == __file__


def test_learner_looks_at_the_first_rows_only():
    learner = omma.OnlineClassifier(omma.TopK(2), 3, metric="macro_f1")
    for _ in range(1000):
        learner.predict(np.array([0.5, 0.2, 0.1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = learner.predict(np.array([0.0, 0.0, 0.1]))
    assert found.tolist() == [1, 0, 1]  # the lowest label fills up, and nothing is said


def test_costs_take_labels_of_probability_zero():
    eta, ids = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.array([0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = omma.replay(omma.OMMA(omma.metrics.costs(np.eye(3))), eta, ids)
    assert trace.counts.predicted.sum() == 2  # one class a row, though the first row has none

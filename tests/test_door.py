"""Everything that reaches a kernel is checked before: shapes, types, label ids, weights.

Kernels follow shapes and ids without looking, so that what is let in here by mistake may end the
process: a crash of this file is a failed test, too.
"""

import copy
from functools import partial

import numpy as np
import pytest
from scipy import sparse

import omma

ETA = np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.3]])
Y = np.array([[1, 0, 1], [0, 1, 0]], dtype=np.int8)
CHOSEN = Y.copy()
FEEDBACKS = {"labels": omma.OMMA, "estimates": partial(omma.OMMA, feedback="estimates")}
POLICIES = {
    **{name: make("macro_f1") for name, make in FEEDBACKS.items()},
    "auto": omma.Auto("macro_f1"),
    "forgetting": omma.Forgetting(omma.OMMA("macro_f1", feedback="estimates"), half_life=10),
}


def stored(width, rows=1, value=0.5, place=None):
    """A CSR matrix that stores one number a row, in its last column unless said otherwise."""
    ids = np.full(rows, width - 1 if place is None else place, dtype=np.int32)
    parts = (np.full(rows, value), ids, np.arange(rows + 1, dtype=np.int32))
    return sparse.csr_array(parts, shape=(rows, width))


def pointing(*indptr):
    """A CSR matrix of three labels whose rows end where no entry is, or before they start."""
    made = sparse.csr_array(np.full((len(indptr) - 1, 3), 0.5))
    made.indptr = np.array(indptr, dtype=np.int32)
    return made


# What update(eta=...) is given for two rows of three labels, dense and sparse.
WRONG_ROWS = {
    "as many numbers in another shape": np.zeros((3, 2)),
    "one label too few": np.zeros((2, 2)),
    "one label too many": np.zeros((2, 4)),
    "one row too many": np.zeros((3, 3)),
    "three dimensions": np.zeros((2, 3, 1)),
    "text": np.array([["0.9", "0.2", "0.4"]] * 2),
    "complex": ETA + 0.1j,
    "dates": np.zeros((2, 3), dtype="datetime64[s]"),
    "above one": ETA + 0.5,
    "NaN": ETA * np.nan,
}
WRONG_CSR = {
    "two labels too many": stored(5, rows=2),
    "two labels too many, in the first": stored(5, rows=2, place=0),
    "far too many labels": stored(100_000_000, rows=2),
    "too few labels": stored(2, rows=2),
    "one row too few": stored(3),
    "ids below zero": stored(3, rows=2, place=-1),
    "ids beyond the last label": stored(3, rows=2, place=3),
    "rows that end nowhere": pointing(0, 3, 900_000),
    "rows that end before they start": pointing(0, 6, 3),
    "complex": sparse.csr_array(ETA + 0.1j),
    "above one": stored(3, rows=2, value=1.5),
}


def refused(learner, call):
    """One sentence, and nothing changed."""
    before = copy.deepcopy(learner.state)
    with pytest.raises((ValueError, TypeError), match=r" of .*update") as caught:
        call()
    assert "\n" not in str(caught.value)
    assert learner.state == before


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("wrong", [*WRONG_ROWS])
def test_probabilities_of_an_update_are_checked(name, wrong):
    learner = omma.OnlineClassifier(POLICIES[name], 3)
    given = WRONG_ROWS[wrong]
    refused(learner, lambda: learner.update(Y, prediction=CHOSEN, eta=given))
    if given.shape[0] == 2:  # the same of one row alone
        refused(learner, lambda: learner.update(Y[0], prediction=CHOSEN[0], eta=given[0]))
        refused(learner, lambda: learner.update(Y[0], prediction=CHOSEN[0], eta=list(given[0])))
    learner.predict(ETA)
    refused(learner, lambda: learner.update(Y, eta=given))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("wrong", [*WRONG_CSR])
def test_sparse_probabilities_of_an_update_are_checked(name, wrong):
    learner = omma.OnlineClassifier(POLICIES[name], 3)
    y, chosen, given = sparse.csr_array(Y), sparse.csr_array(CHOSEN), WRONG_CSR[wrong]
    refused(learner, lambda: learner.update(y, prediction=chosen, eta=given))
    if given.shape[0] == 2 and not wrong.startswith("rows that end"):
        one = sparse.csr_array(
            (given.data[:1], given.indices[:1], np.array([0, 1])), shape=(1, given.shape[1])
        )
        if wrong != "complex":
            one.data[:] = given.data[0]
        refused(learner, lambda: learner.update(y[[0]], prediction=chosen[[0]], eta=one))


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("prediction", [np.zeros((3, 2)), np.zeros(2), np.zeros((2, 4)), ["a"] * 3])
def test_predictions_of_an_update_are_checked(name, prediction):
    learner = omma.OnlineClassifier(POLICIES[name], 3)
    given = np.asarray(prediction)
    for one in (given, given.astype(np.int8) if given.dtype.kind == "f" else given):
        refused(learner, lambda one=one: learner.update(Y, prediction=one, eta=ETA))
        refused(learner, lambda one=one: learner.update(Y[0], prediction=one, eta=ETA[0]))


ONE_ROW = {
    "too few": np.zeros(2),
    "too many": np.zeros(5),
    "several rows": np.zeros((2, 3)),
    "nothing": np.zeros(0),
    "a number": 0.5,
    "text": ["a", "b", "c"],
    "complex": ETA[0] + 0.1j,
    "above one": [1.5, 0.2, 0.3],
    "NaN": [np.nan, 0.2, 0.3],
    "sparse, too wide": stored(5),
    "sparse, too wide, in the first labels": stored(5, place=0),
    "sparse, far too wide": stored(100_000_000),
    "sparse, too narrow": stored(2),
    "sparse, several rows": stored(3, rows=2),
    "sparse, an id below zero": stored(3, place=-1),
    "sparse, an id beyond the last": stored(3, place=3),
    "sparse, ends nowhere": pointing(0, 900_000),
    "a pair of ids that no label has": (np.array([70_000_000]), np.array([0.5])),
    "a pair of ids below zero": (np.array([-1]), np.array([0.5])),
    "a pair of several lengths": (np.array([0, 1, 2]), np.array([0.5])),
    "a pair of fractions": (np.array([0.5]), np.array([0.5])),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("wrong", ONE_ROW)
def test_the_methods_of_a_policy_are_doors_too(name, wrong):
    policy, eta = POLICIES[name], ONE_ROW[wrong]
    state = policy.init(3)
    before = copy.deepcopy(state)
    with pytest.raises((ValueError, TypeError), match=r"predict"):
        policy.predict(state, eta)
    with pytest.raises((ValueError, TypeError), match=r"update of "):
        policy.update(state, eta, Y[0], CHOSEN[0])
    assert state == before


LABELS = {
    "too few": np.zeros(2),
    "too many": np.zeros(5),
    "several rows": np.zeros((2, 3)),
    "twos": [2, 0, 0],
    "text": ["a", "b", "c"],
    "sparse, too wide": stored(5, value=1.0),
    "sparse, too wide, in the first labels": stored(5, value=1.0, place=0),
    "sparse, too narrow": stored(2, value=1.0),
    "sparse, far too wide": stored(100_000_000, value=1.0),
    "sparse, an id beyond the last": stored(3, value=1.0, place=3),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("wrong", LABELS)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_labels_and_predictions_that_policies_count_are_checked(name, wrong, layout):
    policy, given = POLICIES[name], LABELS[wrong]
    state = policy.init(3)
    before = copy.deepcopy(state)
    eta, right = (ETA[0], Y[0]) if layout == "dense" else (stored(3), np.array([0]))
    if layout == "sparse" and wrong == "too few":  # two ids of labels, and both are there
        given = [0, 3]
    if layout == "sparse" and wrong == "too many":
        given = [-1, 0, 1, 2, 2]
    for y, chosen in ((given, right), (right, given)):
        with pytest.raises((ValueError, TypeError), match=r"update of "):
            policy.update(state, eta, y, chosen)
    assert state == before


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("weight", [1e308, 1.1e60, np.inf, np.nan, -1.0, "1", None])
def test_weights_that_policies_count_stay_numbers_when_multiplied(name, weight):
    policy = POLICIES[name]
    state = policy.init(3)
    before = copy.deepcopy(state)
    with pytest.raises((ValueError, TypeError), match=r"weight of update of "):
        policy.update(state, ETA[0], Y[0], CHOSEN[0], weight)
    assert state == before

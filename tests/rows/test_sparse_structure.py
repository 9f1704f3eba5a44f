"""A sparse matrix that points outside of itself is refused before compiled code follows it."""

import numpy as np
import pytest
from scipy import sparse

import omma
from omma.calibration import OnlineCalibrator, reliability
from omma.datasets import Dataset

POLICY = omma.OMMA("macro_f1")
ROWS, LABELS = 6, 3
INDPTR = [0, 2, 3, 4, 5, 6, 7]
INDICES = [0, 1, 2, 0, 1, 2, 0]

# What an attacker, or a mistake, makes of the arrays of a matrix: SciPy lets all of it pass.
WRONG = {
    "goes down": {"indptr": [0, 5, 1, 4, 5, 6, 7]},
    "negative": {"indptr": [0, -5, 3, 4, 5, 6, 7]},
    "starts late": {"indptr": [1, 2, 3, 4, 5, 6, 7]},
    "too long": {"indptr": [0, 2, 3, 4, 5, 6, 4_000_000]},
    "too few rows": {"indptr": [0, 2, 7]},
    "no such label": {"indices": [0, 1, 2_000_000, 0, 1, 2, 0]},
    "negative label": {"indices": [0, 1, -3, 0, 1, 2, 0]},
    "too few labels": {"indices": [0, 1]},
}


def matrix(value, wrong=None, canonical=True, kind=sparse.csr_array):
    """A matrix of one value; what is wrong with it is put in where SciPy no longer looks."""
    parts = (np.full(len(INDICES), value), np.array(INDICES, np.int32), np.array(INDPTR, np.int32))
    shape = (ROWS, LABELS) if kind is sparse.csr_array else (LABELS, ROWS)
    made = kind(parts, shape=shape)
    for name, numbers in (WRONG[wrong] if wrong else {}).items():
        setattr(made, name, np.array(numbers, np.int32))
    made.has_canonical_format = canonical
    return made


ETA, Y = matrix(0.5), matrix(1.0)


def learner(policy=POLICY):
    decided = omma.OnlineClassifier(policy, LABELS)
    decided.predict(ETA)
    return decided


# Where probabilities come in, and where labels or predictions do.
OF_ETA = {
    "predict": lambda bad: learner().predict(bad),
    "predict of ids": lambda bad: learner().predict(bad, ids=range(ROWS)),
    "update": lambda bad: learner(omma.Auto("macro_f1")).update(Y, prediction=Y, eta=bad),
    "replay": lambda bad: omma.replay(POLICY, bad, Y),
    "replay of Auto": lambda bad: omma.replay(omma.Auto("macro_f1"), bad, Y),
    "replay with a gap": lambda bad: omma.replay(POLICY, bad, Y, gap=True),
    "step": lambda bad: omma.step(POLICY, POLICY.init(LABELS), bad, Y),
    "Rule.predict": lambda bad: omma.Rule([1.0] * 3, [-0.5] * 3).predict(bad),
    "Rule.predict, k": lambda bad: omma.Rule([1.0] * 3, [-0.5] * 3, k=1).predict(bad),
    "calibrator.predict": lambda bad: OnlineCalibrator(LABELS).predict(bad),
    "calibrator.update": lambda bad: OnlineCalibrator(LABELS).update(bad, Y),
    "calibrator.replay": lambda bad: OnlineCalibrator(LABELS).replay(bad, Y),
    "reliability": lambda bad: reliability(bad, Y),
    "choose": lambda bad: omma.choose(bad, Y, "macro_f1"),
    "curve": lambda bad: omma.curve(bad, Y, "macro_f1"),
    "frontier": lambda bad: omma.frontier(bad, Y, "macro_f1", "micro_precision"),
    "FrankWolfe.fit": lambda bad: omma.FrankWolfe("macro_f1").fit(bad, Y),
    "Dataset": lambda bad: Dataset("toy", "multilabel", bad, Y),
}
OF_LABELS = {
    "update": lambda bad: learner().update(bad),
    "update, prediction": lambda bad: learner().update(Y, prediction=bad, eta=ETA),
    "replay": lambda bad: omma.replay(POLICY, ETA, bad),
    "replay of dense rows": lambda bad: omma.replay(POLICY, ETA.toarray(), bad),
    "step": lambda bad: omma.step(POLICY, POLICY.init(LABELS), ETA, bad),
    "score": lambda bad: omma.metric("macro_f1").score(bad, Y),
    "score, predictions": lambda bad: omma.metric("macro_f1").score(Y, bad),
    "calibrator.update": lambda bad: OnlineCalibrator(LABELS).update(ETA, bad),
    "reliability": lambda bad: reliability(ETA, bad),
    "choose": lambda bad: omma.choose(ETA, bad, "macro_f1"),
    "Dataset": lambda bad: Dataset("toy", "multilabel", np.eye(ROWS), bad),
}
SENTENCE = r"must be a sound sparse matrix, got|label ids stored in \w+ of .* must be from 0 to 2"


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("entry", OF_ETA)
def test_probabilities_that_point_outside_are_refused(entry, wrong, canonical):
    with pytest.raises(ValueError, match=SENTENCE):
        OF_ETA[entry](matrix(0.5, wrong, canonical))


@pytest.mark.parametrize("value", [1.0, np.nan])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("entry", OF_LABELS)
def test_labels_that_point_outside_are_refused(entry, wrong, value):
    with pytest.raises(ValueError, match=SENTENCE):
        OF_LABELS[entry](matrix(value, wrong))


@pytest.mark.parametrize("wrong", WRONG)
def test_columns_that_point_outside_are_refused(wrong):
    columns = matrix(0.5, wrong, kind=sparse.csc_array)
    with pytest.raises(ValueError, match=f"{SENTENCE}|row numbers stored in eta of replay"):
        omma.replay(POLICY, columns, Y.T)


def test_what_is_refused_leaves_a_learner_as_it_was():
    decided = learner()
    with pytest.raises(ValueError, match="goes down in row 1"):
        decided.update(matrix(1.0, "goes down"))
    assert decided.counts == omma.Counts.zeros(LABELS)
    decided.update(Y)
    assert decided.counts.n == ROWS


def calibrated(eta):
    calibrator = OnlineCalibrator(LABELS)
    calibrator.update(eta, Y)
    return calibrator.bias.tolist()


RESULTS = {
    "replay": lambda eta: omma.replay(POLICY, eta, Y).predictions.toarray().tolist(),
    "Rule.predict": lambda eta: omma.Rule([1.0] * 3, [-0.5] * 3).predict(eta).toarray().tolist(),
    "choose": lambda eta: [rule.value for rule in omma.choose(eta, Y, "macro_f1").candidates],
    "calibrator.update": calibrated,
}


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok"])
@pytest.mark.parametrize("entry", RESULTS)
def test_sound_matrices_of_all_kinds_give_the_same(entry, kind):
    assert RESULTS[entry](ETA.asformat(kind)) == RESULTS[entry](ETA)

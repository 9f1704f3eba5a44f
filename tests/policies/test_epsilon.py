"""ε is an option: the paper's 1e-9 unless said, part of what is saved, and only a number."""

import json

import numpy as np
import pytest
from naive_baselines import stream

import omma
from omma.kernels import replay
from omma.policies import policy_from_json

POLICIES = (omma.OMMA, omma.Greedy, omma.OnlineFrankWolfe)


def test_it_is_the_papers_unless_said():
    for policy in POLICIES:
        assert policy("macro_f1").epsilon == 1e-9
    assert omma.FrankWolfe("macro_f1").epsilon == 1e-9


@pytest.mark.parametrize("policy", POLICIES)
def test_it_is_saved_and_may_be_missing_in_old_files(policy):
    made = policy("macro_f1", epsilon=1e-6)
    saved = json.loads(json.dumps(made.to_json()))
    assert policy_from_json(saved) == made
    del saved["epsilon"]
    assert policy_from_json(saved) == policy("macro_f1")


def test_a_saved_learner_keeps_it(tmp_path):
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1", epsilon=1e-6), n_labels=4)
    learner.save(tmp_path / "learner.npz")
    assert omma.OnlineClassifier.load(tmp_path / "learner.npz").policy == learner.policy


@pytest.mark.parametrize("wrong", [0, -1e-9, float("nan"), float("inf"), "small"])
def test_it_must_be_above_zero(wrong):
    with pytest.raises((ValueError, TypeError), match="epsilon of OMMA must be a finite number"):
        omma.OMMA("macro_f1", epsilon=wrong)


def test_thresholds_have_it_in_their_denominator():
    """Of F1: tp / (predicted + positive + ε n)."""
    counts = omma.Counts([2.0], [5.0], [3.0], 10)
    for epsilon in (1e-9, 1e-6, 0.1):
        slope, offset = omma.metric("macro_f1").gradient(counts, epsilon=epsilon)
        assert -offset[0] / slope[0] == pytest.approx(2 / (8 + 10 * epsilon), rel=1e-12)


def test_nothing_is_compiled_for_another_number():
    eta, y = stream(1)
    omma.replay(omma.OMMA("macro_f1"), eta, y)
    before = len(replay.replay_dense.signatures)
    omma.replay(omma.OMMA("macro_f1", epsilon=1e-6), eta, y)
    assert len(replay.replay_dense.signatures) == before


def test_every_term_has_it():
    metric = omma.metric("multiclass_kappa") + omma.metric("macro_min_recall_specificity")
    term = omma.OMMA(metric, epsilon=0.25).plan(3).term
    numbers = repr(term)
    assert "epsilon=0.25" in numbers
    assert "epsilon=1e-09" not in numbers
    np.testing.assert_equal(numbers.count("epsilon"), 3)

"""Labels of rows as lists of names; and what is told where something else was meant."""

import pandas as pd
import pytest

import omma
from omma.state import aligned

NAMED = pd.DataFrame([[0.9, 0.1, 0.2], [0.2, 0.7, 0.6], [0.1, 0.2, 0.3]], columns=["a", "b", "c"])
SETS = [["a"], ["b", "c"], []]
AS_INDICATORS = [[1, 0, 0], [0, 1, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("eta", "y"),
    [
        (NAMED, SETS),
        (NAMED, [set(row) for row in SETS]),
        (NAMED.to_numpy(), [{0}, {1, 2}, set()]),
        (NAMED, pd.Series(SETS)),
    ],
)
def test_lists_of_labels_are_label_sets(eta, y):
    policy = omma.OMMA("macro_f1", prior=0.1)
    right = omma.replay(policy, NAMED, AS_INDICATORS)
    assert omma.replay(policy, eta, y).counts == right.counts
    learner = omma.OnlineClassifier(policy, 3)
    learner.predict(eta)
    learner.update(y)
    assert learner.counts.positive.tolist() == [1.0, 1.0, 1.0]


def test_label_sets_that_make_no_sense_are_refused():
    policy = omma.OMMA("macro_f1")
    with pytest.raises(ValueError, match=r"among \['a', 'b', 'c'\], got 'd' in row 1"):
        omma.replay(policy, NAMED, [["a"], ["d"], []])
    with pytest.raises(ValueError, match="ids from 0 to 2, got 3 in row 0"):
        omma.replay(policy, NAMED.to_numpy(), [{3}, {1}, set()])
    with pytest.raises(ValueError, match=r"rows of one length.*as sets"):
        omma.replay(policy, NAMED.to_numpy(), [[0], [1, 2], [0]])


@pytest.mark.parametrize("maker", [omma.TunedThresholds("macro_f1"), omma.FrankWolfe("macro_f1")])
def test_what_must_be_fitted_is_told_to_be(maker):
    with pytest.raises(TypeError, match=r"call \.fit\(eta, y\) first"):
        omma.replay(maker, NAMED, AS_INDICATORS)


def test_more_labels_than_memory_is_one_sentence(monkeypatch):
    def full(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("omma.state.np.zeros", full)
    with pytest.raises(MemoryError, match="1,000,000 labels take 0 GiB of space to work in"):
        aligned(1, 10**6)

"""Rows that signs could decide go by the loop that is there, until the faster one is worth it."""

import numpy as np
import pytest

import omma
from omma.running import sinks, worth

ETA, Y = omma.datasets.long_tail(n=40, m=7, seed=3)
POLICIES = (
    omma.OMMA("macro_f1"),
    omma.OMMA("micro_jaccard"),
    omma.Threshold(0.3),
    omma.OMMA("macro_f1", k=2),
    omma.OMMA("macro_gmean", at_most=2),
    omma.Auto("macro_f1"),
    omma.Auto("macro_gmean"),
    omma.Auto("macro_f1", k=2),
)


@pytest.fixture
def fresh(monkeypatch):
    """A process that has run no loop, and compiles no faster one for so few rows."""
    monkeypatch.setattr(worth, "MOST", 3 * ETA.size)
    monkeypatch.setattr(worth, "_READY", set())
    monkeypatch.setattr(worth, "_SPARED", type(worth._SPARED)())


@pytest.fixture
def signs(monkeypatch):
    """How often the loops ran that go by signs, or rank gains eight at a time."""
    ran = []
    for name, owner in (
        ("replay_by_signs", sinks.DenseSink),
        ("replay_by_ranks", sinks.DenseSink),
        ("replay_corrected", sinks.DenseSink),
        ("replay_corrected_by_ranks", sinks.DenseSink),
    ):
        real = getattr(owner, name)

        def noted(self, *given, real=real, name=name):
            ran.append(name)
            return real(self, *given)

        monkeypatch.setattr(sinks.DenseSink, name, noted)
    return ran


def decided(policy):
    trace = omma.replay(policy, ETA, Y, metric="macro_f1")
    return trace.predictions, trace.value, trace.history.values


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_few_rows_take_the_loop_that_is_there_and_the_answer_is_the_same(policy, fresh, signs):
    decided(omma.OMMA("macro_f1", feedback="estimates"))  # only gains can
    by_gains = decided(policy)
    assert signs == []
    worth.MOST = 0
    by_signs = decided(policy)
    assert signs
    for one, other in zip(by_gains, by_signs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_where_nothing_is_compiled_signs_decide(fresh, signs):
    decided(omma.OMMA("macro_f1"))
    assert signs


def test_many_rows_are_worth_compiling_and_then_it_stays(fresh, signs):
    decided(omma.OMMA("macro_f1", feedback="estimates"))
    for _ in range(3):
        decided(omma.OMMA("macro_f1"))
    assert signs == []
    decided(omma.OMMA("macro_f1"))
    assert signs
    signs.clear()
    worth.MOST = 2**40
    decided(omma.OMMA("macro_f1"))
    assert signs


def test_a_loop_of_another_kind_does_not_count(fresh, signs):
    limited = omma.OMMA("macro_recall", k=2, subject_to="micro_precision >= 0.1")
    omma.replay(limited, ETA, Y)
    decided(omma.OMMA("macro_f1"))
    assert signs

"""Costs of each row: the decisions are the cheapest of all, in expectation and when known."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from omma.metrics import RowCosts

numbers = st.floats(0.0, 100.0, allow_subnormal=False)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.floats(0, 1, allow_subnormal=False), numbers, numbers),
        min_size=1,
        max_size=6,
    )
)
def test_no_other_decisions_are_expected_to_cost_less(rows):
    eta, alarm, miss = map(np.array, zip(*rows, strict=True))
    chosen = RowCosts(alarm, miss).predict(eta)

    def expected(decided):
        decided = np.array(decided)
        return (decided * (1 - eta) * alarm + (1 - decided) * eta * miss).sum()

    least = min(map(expected, itertools.product((0, 1), repeat=len(eta))))
    assert expected(chosen) == pytest.approx(least, abs=1e-9)


def test_costs_add_up_row_by_row():
    rng = np.random.default_rng(0)
    y, chosen = rng.integers(0, 2, (2, 50, 3))
    alarm, miss = rng.random((50, 1)), rng.random((50, 3))
    plain = 0.0
    for i, j in np.ndindex(50, 3):
        if y[i, j] != chosen[i, j]:
            plain += alarm[i, 0] if chosen[i, j] else miss[i, j]
    assert RowCosts(alarm, miss).cost(y, chosen) == pytest.approx(plain)


def test_what_costs_nothing_is_not_said():
    assert RowCosts(0, 0).predict([0.5, 0.9]).tolist() == [0, 0]
    assert RowCosts(0, 1).predict([0.0, 0.2]).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RowCosts(-1, 2), "false_alarm of RowCosts must be finite and at least 0"),
        (lambda: RowCosts(1, np.nan), "miss of RowCosts must be finite"),
        (lambda: RowCosts(1, 2).predict([1.5]), "probabilities from 0 to 1"),
        (lambda: RowCosts(1, 2).predict([-1.5, 3.0]), r"if these are log-odds \(logits\), pass"),
        (lambda: RowCosts(1, [2, 3]).predict([0.1] * 3), r"must fit the shape of eta, \(3,\)"),
        (lambda: RowCosts([[1], [2]], 3).predict([0.1, 0.2]), "must fit the shape of eta"),
        (lambda: RowCosts(1, 2).cost([1, 2], [1, 0]), "y of RowCosts must hold 0 and 1"),
        (lambda: RowCosts(1, 2).cost([1], [1, 0]), "must have one shape"),
    ],
)
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_costs_are_numbers():
    with pytest.raises(TypeError, match="false_alarm of RowCosts must be numbers, got 'five'"):
        RowCosts("five", 1)

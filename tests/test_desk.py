"""Rows at a desk are decided and counted as those of a stepper, bit for bit."""

import gc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import omma
from omma.kernels import find
from omma.policies.desk import Desk

POLICIES = [
    (omma.Auto("f1"), 1),
    (omma.Auto("macro_f1"), 4),
    (omma.Auto("multiclass_gmean"), 4),
    (omma.Auto("micro_f1", subject_to="micro_precision >= 0.5"), 4),
    (omma.OMMA("macro_f1", k=2), 4),
    (omma.OMMA("macro_gmean", feedback="estimates"), 4),
    (omma.Forgetting(omma.Auto("macro_f1"), half_life=20), 4),
]


@pytest.mark.parametrize(("policy", "m"), POLICIES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_a_desk_is_a_stepper(policy, m, seed):
    rng = np.random.default_rng(seed)
    eta = rng.random((60, m))
    y = (rng.random((60, m)) < eta).astype(float)
    if policy.budget == 1:
        y = np.eye(m)[[rng.choice(m, p=row / row.sum()) for row in eta]]
    stepper, states = policy.stepper(m), (policy.init(m), policy.init(m))
    desk, waiting = Desk(policy.stepper(m), states[1]), []
    for t, (row, true) in enumerate(zip(eta, y, strict=True)):
        expected = stepper.decide(states[0], row)
        assert desk.decide(tuple(row)) == expected.tolist()
        waiting.append((row, true, expected))
        if t % 3 == 1:  # the label of this row comes next, those of the others later
            waiting.insert(0, waiting.pop())
            desk.decide(tuple(row))
        late = t % 3 == 0
        if late:
            continue
        for position, (row_then, true_then, chosen) in enumerate(waiting):
            stepper.count(states[0], row_then, true_then, chosen, 0.5)
            if position or t % 3 != 1:
                desk.lay(tuple(row_then), chosen.nonzero()[0].tolist())
            desk.count(true_then.nonzero()[0].tolist(), 0.5)
        waiting = []
    for one, other in zip(*(vars(state).values() for state in states), strict=True):
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
    assert omma.counts.counts_of(states[0]) == omma.counts.counts_of(states[1])


def test_a_wrong_probability_is_refused_and_a_row_before_it_still_counts():
    policy = omma.Auto("macro_f1")
    desk = Desk(policy.stepper(2), policy.init(2))
    with pytest.raises(ValueError, match=r"1\.5"):
        desk.decide((0.5, 1.5))
    desk.lay((0.5, 0.25), [1])
    desk.count([0], 2.0)
    assert omma.counts.counts_of(desk.state) == omma.Counts([0, 0], [0, 2], [2, 0], 2)


@pytest.mark.parametrize("wrong", ["y", "prediction"])
def test_what_is_not_zero_or_one_is_refused_and_nothing_is_counted(wrong):
    """Kernels look for themselves, as looking in Python takes longer than to count."""
    policy = omma.Auto("macro_f1")
    stepper, state = policy.stepper(2), policy.init(2)
    row, y, prediction = np.array([0.5, 0.5]), np.array([1.0, 0.0]), np.array([1, 0], dtype=np.int8)
    (y if wrong == "y" else prediction)[1] = 3
    with pytest.raises(ValueError, match=f"{wrong} of update must hold only 0 and 1, got 3"):
        stepper.count(state, row, y, prediction, 1.0)
    assert not state.cells.any()
    assert not state.totals.any()


def test_what_lies_at_addresses_stays_as_long_as_the_desk():
    """The numbers of a metric are laid out for the stepper, which nobody keeps."""
    policy, m = omma.Auto("macro_f1", k=2), 4
    desk, state = Desk(policy.stepper(m), policy.init(m)), policy.init(m)
    find.remembered.cache_clear()
    gc.collect()
    rubbish = [b"\xff" * size for size in range(8, 400, 8) for _ in range(200)]
    stepper, rng = policy.stepper(m), np.random.default_rng(0)
    for row in rng.random((50, m)):
        expected = stepper.decide(state, row)
        assert desk.decide(tuple(row)) == expected.tolist()
        y = (rng.random(m) < row).astype(float)
        stepper.count(state, row, y, expected, 1.0)
        desk.count(y.nonzero()[0].tolist(), 1.0)
    assert rubbish

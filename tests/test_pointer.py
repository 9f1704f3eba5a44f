"""Functions called by address: what is held is read as it was, and nothing outlives its process."""

import copy
import pickle

import numba
import numpy as np
import pytest

import omma
from omma.kernels import kinds
from omma.kernels.decide import deciding
from omma.kernels.find import find, finder, key_of, term_of
from omma.kernels.jit import pointed
from omma.kernels.pointer import called, held_by, read, slots
from omma.kernels.replay import replay_dense

RATE = kinds.Rate((1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0), 1e-9)


@pointed("a sum of what is held")
def add_up(held, factor):
    """All numbers of a macro rate, each by its place, so that none may stand for another."""
    macro = read(held)
    total = macro.weight + 10.0 * macro.of.epsilon
    for i in range(4):
        total += (i + 1) * macro.of.over[i] - (i + 2) * macro.of.under[i]
    return np.int64(1000.0 * factor * total)


@pointed("an array that is held")
def look_up(held, at):
    rules = read(held).rules
    return np.int64(rules.shape[0] * 10_000 + rules.shape[2] * 1000 + rules[at, 1, 2])


@numba.njit
def call(function, at, more):
    return called(function, (at, more))


def test_a_kind_is_read_as_it_was_written():
    macro = kinds.Macro(0.5, RATE)
    found = held_by(add_up, macro, numba.float64)
    over, under = np.array(RATE.over), np.array(RATE.under)
    total = 0.5 + 1e-8 + over @ [1, 2, 3, 4] - under @ [2, 3, 4, 5]
    assert call(found.function, found.at, 2.0) == int(2000.0 * total)


def test_another_of_the_same_kind_is_the_same_function_with_other_numbers():
    first = held_by(add_up, kinds.Macro(0.5, RATE), numba.float64)
    second = held_by(add_up, kinds.Macro(1.5, RATE), numba.float64)
    assert first.function == second.function
    more = call(second.function, second.at, 1.0) - call(first.function, first.at, 1.0)
    assert abs(more - 1000) <= 1


def test_arrays_are_read_where_they_lie():
    rules = np.arange(3 * 2 * 4, dtype=float).reshape(3, 2, 4)
    found = held_by(look_up, kinds.Fixed(rules), numba.int64)
    assert call(found.function, found.at, 1) == 30_000 + 4000 + rules[1, 1, 2]
    rules[1, 1, 2] = 77
    assert call(found.function, found.at, 1) == 34_077


@pytest.mark.parametrize("wrong", [np.zeros((2, 3), order="F"), np.zeros(3, dtype=np.int16)])
def test_other_arrays_are_refused(wrong):
    with pytest.raises(TypeError, match="is C-contiguous numbers"):
        list(slots(kinds.Fixed(wrong)))


def test_metrics_of_one_kind_share_a_function_and_budgets_do_too():
    half = kinds.Macro(1.0, RATE)
    free, three, at_most = (deciding(half, 0.1, budget).decider for budget in (0, 3, -2))
    assert free.find == three.find == at_most.find
    assert free.select == 0 != three.select == at_most.select
    before = len(find.overloads)
    deciding(kinds.Macro(0.25, RATE._replace(epsilon=0.5)), 0.0, 7)
    assert len(find.overloads) == before


def test_kinds_with_equal_numbers_are_told_apart():
    means = [kinds.Macro(1.0, kind(1e-9)) for kind in (kinds.Geometric, kinds.Harmonic)]
    means += [kinds.Micro(1.0, kinds.Geometric(1e-9))]
    assert means[0] == means[1] == means[2]  # as tuples are
    assert len({deciding(one, 0.0, 0).decider.find for one in means}) == 3
    assert [term_of(key_of(one)) for one in means] == means
    assert [type(term_of(key_of(one)).of) for one in means] == [type(one.of) for one in means]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_addresses_are_not_copied(copied):
    with pytest.raises(TypeError, match="of this process"):
        copied(deciding(kinds.Macro(1.0, RATE), 0.0, 0))


def test_terms_with_arrays_are_found_by_their_types():
    """Of one type, the same function with other numbers; of another, another."""
    first, again = (finder(kinds.Fixed(np.full((1, 2, 3), value))) for value in (1.0, 2.0))
    other = finder(kinds.Costs(kinds.Nothing(0.0), np.eye(3)))
    if first.kept is None:
        pytest.skip("the compiler is switched off")
    assert first.function == again.function != other.function
    assert first.at != again.at
    for one, value in ((first, 1.0), (again, 2.0)):
        numbers, kind = one.kept
        assert numbers[0] == kind.rules.ctypes.data
        assert kind.rules[0, 0, 0] == value


def test_one_loop_over_dense_rows_serves_every_feedback():
    eta, y = omma.datasets.long_tail(n=30, m=9, seed=2)
    omma.replay(omma.OMMA("macro_mcc"), eta, y)  # of labels; signs and ranks have no loop for it
    loops = set(replay_dense.signatures)
    for policy in (
        omma.OMMA("macro_f1", k=2, feedback="estimates"),
        omma.OMMA("macro_f1", k=2, feedback="both"),
        omma.OMMA("macro_mcc", calibration="online"),
        omma.Auto("micro_f1"),
        omma.Auto("macro_f1", at_most=3),
    ):
        omma.replay(policy, eta, y)
    assert set(replay_dense.signatures) == loops

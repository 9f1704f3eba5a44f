"""Eight numbers at a time do what NumPy does to each of them."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from omma.kernels import lanes, lanes_plain
from omma.kernels.eights import laid, room, taken

LANES = lanes.LANES
FLOATS = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan])
EIGHTS = hnp.arrays(np.float64, LANES, elements=FLOATS)


@numba.njit(error_model="numpy")
def arithmetic(a, b, c, out):
    x, y = lanes.eight_at(a, 0), lanes.eight_at(b, 0)
    lanes.put_eight(out[0], 0, x + y)
    lanes.put_eight(out[1], 0, x - c)
    lanes.put_eight(out[2], 0, c * x)
    lanes.put_eight(out[3], 0, x / y)
    lanes.put_eight(out[4], 0, np.sqrt(abs(x)))
    lanes.put_eight(out[5], 0, lanes.larger(x, y))
    lanes.put_eight(out[6], 0, lanes.smaller(x, c))
    lanes.put_eight(out[7], 0, lanes.where((x >= y) & ~(x > c) | (y < c), x, y))
    lanes.put_eight(out[8], 0, lanes.where(x <= y, lanes.spread(c), -x))


@given(EIGHTS, EIGHTS, FLOATS)
def test_signs_are_those_of_each_number(a, b, c):
    out = np.empty((9, LANES))
    arithmetic(a, b, c, out)
    with np.errstate(all="ignore"):
        expected = (
            a + b,
            a - c,
            c * a,
            a / b,
            np.sqrt(abs(a)),
            np.where(a > b, a, b),
            np.where(a < c, a, c),
            np.where((a >= b) & ~(a > c) | (b < c), a, b),
            np.where(a <= b, c, -a),
        )
    np.testing.assert_array_equal(out, expected)


@numba.njit(error_model="numpy")
def added(a):
    return lanes.total(lanes.eight_at(a, 0))


@given(hnp.arrays(np.float64, LANES, elements=st.floats(-1e6, 1e6)))
def test_the_sum_over_lanes_has_its_order(a):
    fours = a[:4] + a[4:]
    twos = fours[:2] + fours[2:]
    assert added(a) == twos[0] + twos[1]
    assert lanes_plain.total(a) == added(a)


@numba.njit(error_model="numpy")
def fused(a, b, c):
    return lanes.lane(lanes.times_plus(lanes.spread(a), b, c), 3), lanes.times_plus(a, b, c)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_a_product_with_a_sum_is_the_same_in_lanes_and_alone(a, b, c):
    in_lanes, alone = fused(a, b, c)
    assert in_lanes == alone
    assert alone == pytest.approx(a * b + c, abs=1e-9)


@numba.njit(error_model="numpy")
def through(eta, true, out, row):
    m = eta.shape[1]
    total = found = wrong = 0
    largest = 0.0
    for at in range(0, m, LANES):
        values = lanes.eight_of(eta, row, at, m - at)
        chosen = (lanes.eight_of(true, row, at, m - at) > 0.0) & (values > 0.5)
        if row == 0:
            lanes.put_bytes(out, row, at, m - at, lanes.where(chosen, 1.0, 0.0))
        else:
            lanes.put_bytes(out, row, at, m - at, chosen)
        word = lanes.as_word(chosen)
        found += lanes.ones_in(word)
        wrong += lanes.as_word(lanes.as_which(word)) != word
        while word != 0:
            total += at + lanes.zeros_below(word)
            word &= word - 1
        for i in range(min(m - at, LANES)):
            wrong += lanes.lane(values, i) != eta[row, at + i]
        for i in range(LANES):
            largest = max(largest, lanes.lane(values, i))
        wrong += lanes.as_word(lanes.first_of(m - at)) != (1 << min(m - at, LANES)) - 1
    return found, total, largest, wrong


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 7, 8, 9, 23, 64])
def test_the_end_of_a_row_is_nothing_and_what_lies_beyond_stays(kind, m):
    rng = np.random.default_rng(m)
    eta, true = rng.random((3, m)).astype(kind), rng.integers(0, 2, (3, m)).astype(np.uint8)
    out = np.full((3, m), 7, dtype=np.int8)
    for row in (0, 1):
        found, total, largest, wrong = through(eta, true, out, row)
        assert wrong == 0
        expected = (true[row] != 0) & (eta[row] > 0.5)
        np.testing.assert_array_equal(out[row], expected)
        assert (out[row + 1 :] == 7).all()
        assert (found, total) == (expected.sum(), np.flatnonzero(expected).sum())
        assert largest == eta[row].max()


@pytest.mark.parametrize("m", [1, 8, 13])
def test_rooms_lie_on_borders_and_give_back_what_they_took(m):
    kept = np.arange(3.0 * m).reshape(3, m)
    space = laid(*kept, more=2)
    assert space.shape == (5, -(-m // LANES) * LANES)
    assert space.ctypes.data % 64 == 0
    assert not space[:, m:].any()
    assert not space[3:].any()
    back = np.zeros_like(kept)
    taken(space, *back)
    np.testing.assert_array_equal(back, kept)
    assert not room(2, m).any()


@numba.njit(error_model="numpy")
def among(numbers, ids, left, new):
    out = np.full(LANES, np.nan)
    lanes.put_eight(out, 0, lanes.eight_among(numbers, ids, 2, left))
    lanes.put_among(numbers, ids, 2, left, lanes.eight_at(new, 0))
    return out


@pytest.mark.parametrize("left", [1, 3, 7, 8, 12])
def test_numbers_at_listed_places_are_read_and_written_there_alone(left):
    rng = np.random.default_rng(left)
    ids = rng.permutation(30)[: 2 + left].astype(np.int32)
    before, new, some = rng.random(30), rng.random(LANES), min(left, LANES)
    numbers, plain = before.copy(), before.copy()
    found = among(numbers, ids, left, new)
    np.testing.assert_array_equal(found[:some], before[ids[2 : 2 + some]])
    expected = before.copy()
    expected[ids[2 : 2 + some]] = new[:some]
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(found, lanes_plain.eight_among(before, ids, 2, left))
    lanes_plain.put_among(plain, ids, 2, left, new)
    np.testing.assert_array_equal(plain, expected)


@numba.njit(error_model="numpy")
def put_ends(array, matrix, left, new, ahead):
    lanes.fetch(matrix, 1, 0)
    lanes.put_eight_to(array, 3, left, lanes.eight_at(new, 0))
    lanes.put_eight_of(matrix, 1, 3, left, lanes.eight_at(new, 0))
    largest = lanes.larger(lanes.bits_of(lanes.eight_at(new, 0)), lanes.bits_of(lanes.spread(0.5)))
    lanes.put_eight(ahead, 0, lanes.number_of(largest))
    return lanes.as_word(largest > lanes.bits_of(0.5))


@pytest.mark.parametrize("left", [1, 7, 8, 9])
def test_the_end_of_a_row_is_written_and_nothing_beyond(left):
    new = np.array([0.25, 0.5, 0.75, 1.0, np.nan, -0.0, 0.0, 2.0])
    array, matrix, ahead = np.full(20, 7.0), np.full((3, 20), 7.0), np.zeros(LANES)
    above = put_ends(array, matrix, left, new, ahead)
    expected = np.full(20, 7.0)
    expected[3 : 3 + min(left, LANES)] = new[: min(left, LANES)]
    np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(matrix[1], expected)
    assert (matrix[[0, 2]] == 7.0).all()
    # By their bits NaN and what has a minus are above all others.
    np.testing.assert_array_equal(ahead, [0.5, 0.5, 0.75, 1.0, np.nan, -0.0, 0.5, 2.0])
    assert np.signbit(ahead[5])
    assert above == 0b10111100
    plain, rows = np.full(20, 7.0), np.full((3, 20), 7.0)
    lanes_plain.fetch(rows, 1, 0)
    lanes_plain.put_eight_to(plain, 3, left, new)
    lanes_plain.put_eight_of(rows, 1, 3, left, new)
    np.testing.assert_array_equal(plain, expected)
    np.testing.assert_array_equal(rows[1], expected)


LOOKING = """
import numba, numpy as np
from omma.kernels import lanes, lanes_plain

@numba.njit(error_model="numpy")
def read(array, at):
    return lanes.lane(lanes.eight_at(array, at), 0)

@numba.njit(error_model="numpy")
def write(out, row, start, left):
    lanes.put_bytes(out, row, start, left, lanes.spread(1.0))

@numba.njit(error_model="numpy")
def listed(array, ids, left):
    return lanes.lane(lanes.eight_among(array, ids, 0, left), 0)

@numba.njit(error_model="numpy")
def list_them(array, ids, left):
    lanes.put_among(array, ids, 0, left, lanes.spread(1.0))

few, wrong_ids = np.arange(5, dtype=np.int32), np.full(5, 9, dtype=np.int32)
listed(np.zeros(5), few, 5)
list_them(np.zeros(5), few, 5)
read(np.zeros(16), 8)
write(np.zeros((2, 11), dtype=np.int8), 1, 8, 3)
for wrong in (lambda: read(np.zeros(16), 9), lambda: read(np.zeros(16), -17),
              lambda: write(np.zeros((2, 11), dtype=np.int8), 1, 8, 4),
              lambda: listed(np.zeros(5), wrong_ids, 5), lambda: listed(np.zeros(5), few, 8),
              lambda: list_them(np.zeros(5), wrong_ids, 5),
              lambda: write(np.zeros((2, 11), dtype=np.int8), 2, 0, 11)):
    try:
        wrong()
    except IndexError:
        continue
    raise AssertionError("nobody looked")
"""


def test_where_indexes_are_looked_at_those_of_eights_are_too():
    ran = subprocess.run(
        [sys.executable, "-c", LOOKING],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]

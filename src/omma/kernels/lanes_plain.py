"""What ``omma.kernels.lanes`` has, without the compiler: eight numbers are an array of NumPy's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

LANES: Final = 8


def eight_at(array: Any, at: int) -> Any:
    """Eight numbers of an array, from a place on."""
    found = array[at : at + LANES].copy()
    assert found.shape == (LANES,)
    return found


def put_eight(array: Any, at: int, numbers: Any) -> None:
    """Write eight numbers there."""
    assert at + LANES <= len(array)
    array[at : at + LANES] = numbers


def eight_of(matrix: Any, row: int, start: int, left: int) -> Any:
    """Eight numbers of a matrix's row, zeros where fewer are left in it."""
    found = np.zeros(LANES)
    given = matrix[row, start : start + min(left, LANES)]
    found[: len(given)] = given
    return found


def eight_to(array: Any, start: int, left: int) -> Any:
    """The same of an array."""
    return eight_of(array[np.newaxis], 0, start, left)


def eight_among(array: Any, ids: Any, start: int, left: int) -> Any:
    """Eight numbers of an array at listed places; the last one again where fewer are left."""
    return array[ids[np.minimum(np.arange(start, start + LANES), start + left - 1)]]


def put_among(array: Any, ids: Any, start: int, left: int, numbers: Any) -> None:
    """Write as many as are left there."""
    some = min(left, LANES)
    array[ids[start : start + some]] = numbers[:some]


def put_eight_of(matrix: Any, row: int, start: int, left: int, numbers: Any) -> None:
    """Write eight numbers into a matrix's row, as many as are left in it."""
    some = min(left, LANES)
    matrix[row, start : start + some] = numbers[:some]


def put_eight_to(array: Any, start: int, left: int, numbers: Any) -> None:
    """The same of an array."""
    put_eight_of(array[np.newaxis], 0, start, left, numbers)


def fetch(matrix: Any, row: int, start: int) -> None:
    """Ask for a part of a row that is read later."""
    assert matrix.shape[0] > row
    assert matrix.shape[1] > start


def put_bytes(matrix: Any, row: int, start: int, left: int, numbers: Any) -> None:
    """The same of small whole numbers, as int8."""
    put_eight_of(matrix, row, start, left, numbers)


def times_plus(a: Any, b: Any, c: Any) -> Any:
    """The sum of a b and c."""
    return a * b + c


def larger(a: Any, b: Any) -> Any:
    """The larger of two; the second where one is no number."""
    return np.where(a > b, a, b)[()]


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two."""
    return np.where(a < b, a, b)[()]


def where(chosen: Any, yes: Any, no: Any) -> Any:
    """One or the other."""
    return np.where(chosen, yes, no)[()]


def bits_of(number: Any) -> Any:
    """The bits of floats."""
    return np.float64(number).view(np.uint64)


def number_of(bits: Any) -> Any:
    """The floats that have such bits."""
    return np.uint64(bits).view(np.float64)


def spread(number: float) -> Any:
    """One number eight times."""
    found = np.full(LANES, number)
    found.flags.writeable = False  # two names for it must not become one sum
    return found


def as_word(chosen: Any) -> int:
    """Which of eight, as bits of a number: the first is the lowest."""
    return int(np.packbits(chosen, bitorder="little")[0])


def as_which(word: int) -> Any:
    """The same back."""
    bits = np.unpackbits(np.array([word & 255], dtype=np.uint8), bitorder="little")
    return bits.astype(bool)


def ones_in(word: int) -> int:
    """How many bits are set."""
    return (int(word) & (2**64 - 1)).bit_count()


def zeros_below(word: int) -> int:
    """How many bits are below the lowest that is set."""
    bits = int(word)
    return (bits & -bits).bit_length() - 1


def first_of(left: int) -> Any:
    """The first so many of eight."""
    return np.arange(LANES) < left


def total(numbers: Any) -> float:
    """The sum over eight lanes: each of the first half and its like in the second, until one."""
    while len(numbers) > 1:
        half = len(numbers) // 2
        numbers = numbers[:half] + numbers[half:]
    return float(numbers[0])


def lane(numbers: Any, at: int) -> float:
    """One of eight."""
    return float(numbers[at])

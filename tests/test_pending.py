"""Decisions that wait for labels: against a naive twin, in files, in little memory."""

import json
import pickle
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_pending import NaivePending

from omma.online.pending import (
    AlreadyWaitingError,
    LabelledTwiceError,
    Pending,
    UnknownIdError,
    check_id,
)

IDS = st.sampled_from(["a", "b", "", "é\ud800", 0, 1, -7, 2**100, "1"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "take", "tick", "file", "pickle"]),
        IDS,
        st.integers(0, 2**32 - 1),
        st.sampled_from([None, np.float32, np.float64]),
    ),
    max_size=60,
)


def row(seed, m, dtype):
    rng = np.random.default_rng(seed)
    eta = None if dtype is None else rng.random(m).astype(dtype)
    return eta, rng.integers(0, 2, m).astype(np.int8), float(rng.random())


def same(decision, expected):
    _, _, eta, prediction, weight = expected
    assert decision.prediction.dtype == np.int8
    assert (decision.prediction == prediction).all()
    assert decision.weight == weight
    assert (decision.eta is None) == (eta is None)
    if eta is not None:
        assert decision.eta.dtype == eta.dtype
        assert (decision.eta == eta).all()
        assert decision.eta.flags.aligned


class Clock:
    """Time that a test moves, seen by the code under test and by its twin."""

    now = 0.0

    def __call__(self):
        return self.now


@settings(max_examples=300, deadline=None)
@given(
    steps=STEPS,
    m=st.integers(1, 20),
    limit=st.integers(1, 5),
    max_age=st.sampled_from([None, 0, 1, 3.5]),
    timed=st.booleans(),
)
def test_the_same_as_its_naive_twin(steps, m, limit, max_age, timed):
    clock = Clock() if timed else None
    gone, gone_twin = [], []
    options = {"limit": limit, "max_age": max_age, "clock": clock}
    pending = Pending(m, **options, evicted=lambda key, _: gone.append(key))
    twin = NaivePending(limit, max_age, clock, gone_twin)
    for what, key, seed, dtype in steps:
        if what == "put":
            given_row = row(seed, m, dtype)
            if twin.put(key, *given_row) == "put":
                pending.put(key, *given_row)
            else:
                with pytest.raises(AlreadyWaitingError, match="still waits for its labels"):
                    pending.put(key, *given_row)
        elif what == "take":
            check_taken(pending, twin, key)
        elif what == "tick" and timed:
            clock.now += seed % 3
        elif what == "file":
            pending = Pending.from_arrays(pending.arrays(), m, **options, evicted=pending.evicted)
        elif what == "pickle":
            pending.evicted = pending.clock = None
            pending = pickle.loads(pickle.dumps(pending))
            pending.evicted, pending.clock = lambda key, _: gone.append(key), clock
        assert list(pending) == [one[0] for one in twin.waiting]
        assert (len(pending), pending.forgotten) == (len(twin.waiting), twin.forgotten)
        assert gone == gone_twin


def check_taken(pending, twin, key):
    expected = twin.take(key)
    errors = {
        "unknown": (UnknownIdError, "no decision waits"),
        "forgotten": (UnknownIdError, "was forgotten before the labels came"),
        "labelled": (LabelledTwiceError, "had its labels before"),
    }
    if isinstance(expected, str):
        error, words = errors[expected]
        for call in (pending.get, pending.take):
            with pytest.raises(error, match=words):
                call(key)
    else:
        same(pending.get(key), expected)
        same(pending.take(key), expected)


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, np.float32, np.float64]))
def test_sparse_rows(seed, dtype):
    rng = np.random.default_rng(seed)
    places = np.flatnonzero(rng.random(50) < 0.2).astype(np.int32)
    chosen = np.flatnonzero(rng.random(50) < 0.1).astype(np.int32)
    eta = None if dtype is None else (places, rng.random(len(places)).astype(dtype))
    pending = Pending(50)
    pending.put("a", eta, chosen, sparse=True)
    found = Pending.from_arrays(pending.arrays(), 50).take("a")
    assert found.sparse
    assert found.prediction.tolist() == chosen.tolist()
    assert (found.eta is None) == (eta is None)
    if eta is not None:
        assert found.eta[0].tolist() == places.tolist()
        assert found.eta[1].dtype == dtype
        assert (found.eta[1] == eta[1]).all()


def test_what_is_put_may_be_changed_afterwards():
    pending, eta, prediction = Pending(2), np.array([0.5, 0.25]), np.array([1, 0])
    pending.put("a", eta, prediction)
    eta[:], prediction[:] = 0, 0
    assert pending.take("a").eta.tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("eta", "prediction", "options"),
    [
        (None, [1, 0], {}),
        ([0.1, 0.2], [1, 0, 0], {}),
        (([0, 1], [0.5]), [1], {"sparse": True}),
    ],
)
def test_a_row_of_another_width_changes_nothing(eta, prediction, options):
    pending = Pending(3)
    with pytest.raises(ValueError, match="of a decision must have"):
        pending.put("a", eta, np.array(prediction), **options)
    assert len(pending) == 0
    assert pending.arrays()["numbers"].tolist()[:2] == [0, 0]


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        (True, TypeError, "a text or a whole number, got True"),
        (None, TypeError, "got None"),
        (1.5, TypeError, "got 1.5"),
        ("x" * 1001, ValueError, "at most 1,000 signs, got 1,001"),
        (10**400, ValueError, "at most 128 bits"),
    ],
)
def test_ids_are_text_or_whole_numbers(key, error, words):
    with pytest.raises(error, match=words):
        Pending(1).put(key, None, np.array([1]))
    assert check_id(np.int64(3)) == 3


def filled(m=5, n=4):
    pending = Pending(m)
    for place in range(n):
        pending.put(place, *row(place, m, np.float64))
    sparse = np.array([1, 3], dtype=np.int32)
    pending.put("s", (sparse, np.array([0.5, 0.25])), sparse, sparse=True)
    pending.take(0)
    return pending


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_safely(data):
    arrays = {name: part.copy() for name, part in filled().arrays().items()}
    name = data.draw(st.sampled_from(sorted(arrays)))
    part = arrays[name]
    what = data.draw(st.sampled_from(["flip", "cut", "type", "drop"]))
    if what == "flip":
        place = data.draw(st.integers(0, part.nbytes - 1))
        part.view(np.uint8)[place] ^= data.draw(st.integers(1, 255))
    elif what == "cut":
        arrays[name] = part[: data.draw(st.integers(0, len(part)))]
    elif what == "type":
        arrays[name] = part.astype(data.draw(st.sampled_from(["U8", "c16", "O", "b1", "f2"])))
    else:
        del arrays[name]
    found = read_or_refused(arrays)
    for key in list(found):
        decision = found.take(key)
        values = decision.eta[1] if decision.sparse else decision.eta
        assert values is None or ((values >= 0) & (values <= 1)).all()
        places = decision.prediction if decision.sparse else np.arange(5)
        assert ((places >= 0) & (places < 5)).all()


def read_or_refused(arrays):
    """What could be read; nothing, if it was refused with a sentence."""
    try:
        return Pending.from_arrays(arrays, 5)
    except ValueError as error:
        if "the decisions that wait are damaged" not in str(error):
            raise
        return Pending(5)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[1, 1]", b"[1.5]", b"{}", b"\xff", b'[["a"]]'])
def test_ids_of_a_file_that_are_none(text):
    arrays = {**filled().arrays(), "ids": np.frombuffer(text, np.uint8)}
    with pytest.raises(ValueError, match="are damaged"):
        Pending.from_arrays(arrays, 5)


def test_the_bytes_of_a_waiting_row_are_those_of_the_docstring():
    for dtype, most in ((None, 180), (np.float32, 180 + 190), (np.float64, 180 + 370)):
        rows = [row(place, 46, dtype) for place in range(100)]
        tracemalloc.start()
        pending = Pending(46, limit=10_000)
        before = tracemalloc.get_traced_memory()[0]
        for key in range(10_000):
            pending.put(key, *rows[key % 100])
        taken = (tracemalloc.get_traced_memory()[0] - before) / 10_000
        tracemalloc.stop()
        assert taken - 32 <= most
        assert str(most if dtype is None else most - 180) in Pending.__doc__


def test_time_does_not_grow_with_the_rows_that_have_gone():
    def seconds(limit, count):
        pending, one = Pending(1, limit=limit), np.array([1], dtype=np.int8)
        for key in range(limit):
            pending.put(key, None, one)
        start = time.perf_counter()
        for key in range(limit, limit + count):
            pending.put(key, None, one)
        return time.perf_counter() - start

    assert min(seconds(20_000, 5_000) for _ in range(3)) < 20 * seconds(100, 5_000) + 0.05


def test_an_error_of_the_callback_leaves_everything_in_its_place():
    def refuse(key, decision):
        raise RuntimeError(f"{key} {decision.prediction}")

    pending = Pending(1, limit=1, evicted=refuse)
    pending.put("a", None, np.array([1]))
    with pytest.raises(RuntimeError, match=r"a \[1\]"):
        pending.put("b", None, np.array([0]))
    assert list(pending) == ["b"]
    assert pending.forgotten == 1


def test_ids_that_have_gone_are_remembered_in_bounded_memory():
    pending = Pending(2, limit=3)
    for key in range(10):
        pending.put(key, None, np.array([1, 0], dtype=np.int8))
        pending.take(key)
    for key in range(7):
        with pytest.raises(UnknownIdError, match="no decision waits"):
            pending.take(key)
    for key in (7, 8, 9):
        with pytest.raises(LabelledTwiceError):
            pending.take(key)
    assert len(json.loads(pending.arrays()["gone"].tobytes())[0]) == 3

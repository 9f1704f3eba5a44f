"""Decisions that wait for labels: against a naive twin, in files, in little memory."""

import json
import pickle
import time
import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from naive_waiting import NaiveWaiting

from omma.online import waiting as module
from omma.online.codec import Decision, check_id
from omma.online.waiting import (
    AlreadyWaitingError,
    LabelledTwiceError,
    UnknownIdError,
    Waiting,
)

IDS = st.sampled_from(["a", "b", "", "é\ud800", 0, 1, -7, 2**100, "1"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "take", "tick", "file", "pickle"]),
        IDS,
        st.integers(0, 2**32 - 1),
        st.booleans(),
    ),
    max_size=60,
)


def row(seed, m, has_eta=True):
    rng = np.random.default_rng(seed)
    return Decision(rng.integers(0, 2, m).astype(np.int8), rng.random(m) if has_eta else None)


def same(decision, expected):
    _, _, eta, prediction = expected
    assert decision.prediction.dtype == np.int8
    assert (decision.prediction == prediction).all()
    assert (decision.eta is None) == (eta is None)
    if eta is not None:
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
    options = {"limit": limit, ("max_seconds" if timed else "max_age"): max_age}
    twin = NaiveWaiting(limit, max_age, clock if max_age is not None else None, gone_twin)
    with mock.patch.object(module.time, "monotonic", clock or time.monotonic):
        waiting = Waiting(m, **options, evicted=lambda decision: gone.append(key_of(decision)))
        for what, key, seed, has_eta in steps:
            decision = row(seed, m, has_eta)
            if what in ("put", "take"):
                waiting.tick()
            if what == "put":
                if twin.put(key, decision.eta, decision.prediction) == "put":
                    waiting.put(key, decision)
                else:
                    with pytest.raises(AlreadyWaitingError, match="still waits for its labels"):
                        waiting.put(key, decision)
            elif what == "take":
                check_taken(waiting, twin, key)
            elif what == "tick" and timed:
                clock.now += seed % 3
            elif what == "file":
                again = Waiting(m, **options, evicted=waiting.evicted)
                again.restore(waiting.arrays())
                waiting = again
            elif what == "pickle":
                evicted = waiting.evicted
                waiting = pickle.loads(pickle.dumps(waiting))
                waiting.evicted = evicted
            assert list(waiting) == [entry[0] for entry in twin.waiting]
            assert (len(waiting), waiting.forgotten) == (len(twin.waiting), twin.forgotten)
            assert gone == gone_twin


def key_of(decision):
    """What the twin is told of a decision that was forgotten."""
    return decision.prediction.tolist()


def check_taken(waiting, twin, key):
    expected = twin.take(key)
    errors = {
        "unknown": (UnknownIdError, "no decision waits"),
        "forgotten": (UnknownIdError, "was forgotten before the labels came"),
        "labelled": (LabelledTwiceError, "is already labelled"),
    }
    if isinstance(expected, str):
        error, words = errors[expected]
        for call in (waiting.get, waiting.drop):
            with pytest.raises(error, match=words):
                call(key)
    else:
        same(waiting.get(key), expected)
        same(waiting.get(key), expected)
        waiting.drop(key)


def restored(waiting):
    again = Waiting(waiting.n_labels)
    again.restore(waiting.arrays())
    return again


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_sparse_rows(seed, has_eta):
    rng = np.random.default_rng(seed)
    ids = np.flatnonzero(rng.random(50) < 0.2).astype(np.int32)
    chosen = np.flatnonzero(rng.random(50) < 0.1).astype(np.int32)
    eta = (ids, rng.random(len(ids))) if has_eta else None
    waiting = Waiting(50)
    waiting.put("a", Decision(chosen, eta))
    decision = restored(waiting).get("a")
    assert decision.is_sparse
    assert decision.prediction.tolist() == chosen.tolist()
    assert (decision.eta is None) == (eta is None)
    if eta is not None:
        assert decision.eta[0].tolist() == ids.tolist()
        assert (decision.eta[1] == eta[1]).all()


def test_what_is_put_may_be_changed_afterwards():
    waiting, eta, prediction = Waiting(2), np.array([0.5, 0.25]), np.array([1, 0])
    waiting.put("a", Decision(prediction, eta))
    eta[:], prediction[:] = 0, 0
    assert waiting.get("a").eta.tolist() == [0.5, 0.25]


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
        check_id(key)
    assert check_id(np.int64(3)) == 3


def filled(m=5, n=4):
    waiting = Waiting(m)
    for place in range(n):
        waiting.put(place, row(place, m))
    ids = np.array([1, 3], dtype=np.int32)
    waiting.put("s", Decision(ids, (ids, np.array([0.5, 0.25]))))
    waiting.drop(0)
    return waiting


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
    waiting = read_or_refused(arrays)
    for key in list(waiting):
        decision = waiting.get(key)
        values = decision.eta[1] if decision.is_sparse and decision.eta else decision.eta
        assert values is None or ((values >= 0) & (values <= 1)).all()
        ids = decision.prediction if decision.is_sparse else np.arange(5)
        assert ((ids >= 0) & (ids < 5)).all()


def read_or_refused(arrays):
    """What could be read; nothing, if it was refused with a sentence."""
    waiting = Waiting(5)
    try:
        waiting.restore(arrays)
    except ValueError as error:
        if "the decisions that wait are damaged" not in str(error):
            raise
        return Waiting(5)
    return waiting


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[1, 1]", b"[1.5]", b"{}", b"\xff", b'[["a"]]'])
def test_ids_of_a_file_that_are_none(text):
    arrays = {**filled().arrays(), "ids": np.frombuffer(text, np.uint8)}
    with pytest.raises(ValueError, match="are damaged"):
        Waiting(5).restore(arrays)


def test_the_bytes_of_a_waiting_row_are_those_of_the_docstring():
    for has_eta, most in ((False, 180), (True, 180 + 370)):
        rows = [row(place, 46, has_eta) for place in range(100)]
        tracemalloc.start()
        waiting = Waiting(46, limit=10_000)
        before = tracemalloc.get_traced_memory()[0]
        for key in range(10_000):
            waiting.put(key, rows[key % 100])
        taken = (tracemalloc.get_traced_memory()[0] - before) / 10_000
        tracemalloc.stop()
        assert taken - 32 <= most
        assert str(most - 180 if has_eta else most) in Waiting.__doc__


def test_time_does_not_grow_with_the_rows_that_have_gone():
    def seconds(limit, count):
        waiting, decision = Waiting(1, limit=limit), Decision(np.array([1], dtype=np.int8))
        for key in range(limit):
            waiting.put(key, decision)
        start = time.perf_counter()
        for key in range(limit, limit + count):
            waiting.put(key, decision)
        return time.perf_counter() - start

    assert min(seconds(20_000, 5_000) for _ in range(3)) < 20 * seconds(100, 5_000) + 0.05


def test_an_error_of_the_callback_leaves_everything_in_its_place():
    def refuse(decision):
        raise RuntimeError(f"forgotten {decision.prediction}")

    waiting = Waiting(1, limit=1, evicted=refuse)
    waiting.put("a", Decision(np.array([1])))
    with pytest.raises(RuntimeError, match=r"forgotten \[1\]"):
        waiting.put("b", Decision(np.array([0])))
    assert list(waiting) == ["b"]
    assert waiting.forgotten == 1


def test_ids_that_have_gone_are_remembered_in_bounded_memory():
    waiting = Waiting(2, limit=3)
    for key in range(10):
        waiting.put(key, Decision(np.array([1, 0], dtype=np.int8)))
        waiting.drop(key)
    for key in range(7):
        with pytest.raises(UnknownIdError, match="no decision waits"):
            waiting.get(key)
    for key in (7, 8, 9):
        with pytest.raises(LabelledTwiceError):
            waiting.get(key)
    assert len(json.loads(waiting.arrays()["gone"].tobytes())) == 3

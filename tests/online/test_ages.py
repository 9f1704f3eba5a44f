"""Rows that wait for labels grow old by the clock, and a journal knows when."""

import itertools
import pickle

import numpy as np
import pytest
from naive_baselines import stream

import omma
from omma.online import waiting
from omma.online.waiting import ForgottenIdError


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes when it is told to."""
    now = [1000.0]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])

    def go(seconds):
        now[0] += seconds

    return go


def learner(**options):
    return omma.OnlineClassifier(omma.OMMA("macro_f1"), 3, **options)


def everything(one):
    parts = {**one.state.arrays(), **one.waiting.arrays()}
    return {name: np.asarray(part).tobytes() for name, part in parts.items()}


def test_rows_are_forgotten_after_seconds(clock):
    one = learner(max_seconds=60)
    one.predict([0.9, 0.2, 0.1], id="old")
    clock(40)
    one.predict([0.9, 0.2, 0.1], id="new")
    clock(30)
    with pytest.raises(ForgottenIdError, match="'old' is not known: its decision was forgotten"):
        one.update([1, 0, 0], id="old")
    one.update([1, 0, 0], id="new")
    stats = one.stats()
    assert (stats["dropped"], stats["labels"], stats["refused"]["forgotten"]) == (1, 1.0, 1)


def test_a_clock_that_goes_back_stands_still(clock):
    one = learner(max_seconds=60)
    one.predict([0.9, 0.2, 0.1], id="a")
    clock(-500)
    one.predict([0.9, 0.2, 0.1], id="b")
    assert list(pickle.loads(pickle.dumps(one)).waiting) == ["a", "b"]  # their times are in order
    clock(500 + 61)
    assert list(one.waiting) == ["a", "b"]  # nobody has looked yet
    one.predict([0.9, 0.2, 0.1], id="c")
    assert list(one.waiting) == ["c"]


def test_a_clock_that_jumps_ahead_and_back_goes_on(clock):
    one = learner(max_seconds=60)
    clock(50_000)
    one.predict([0.9, 0.2, 0.1], id="a")
    clock(-50_000)
    one.predict([0.9, 0.2, 0.1], id="b")
    clock(61)
    one.predict([0.9, 0.2, 0.1], id="c")
    assert list(one.waiting) == ["c"]


def test_nobody_can_set_the_clock(monkeypatch):
    now = [1e9]
    monkeypatch.setattr(waiting.time, "time", lambda: now[0])
    one = learner(max_seconds=60)
    one.predict([0.9, 0.2, 0.1], id="a")
    now[0] += 1e6
    one.update([1, 0, 0], id="a")
    assert one.counts.n == 1


@pytest.mark.parametrize("reading", [5.0, 1000.0, 1e9])  # of another process, or machine
def test_ages_are_saved(clock, monkeypatch, tmp_path, reading):
    one = learner(max_seconds=60)
    one.predict([0.9, 0.2, 0.1], id="a")
    clock(40)
    one.predict([0.9, 0.2, 0.1], id="b")
    one.save(tmp_path / "one.npz")
    content = pickle.dumps(one)
    now = [reading]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])
    again, unpickled = omma.OnlineClassifier.load(tmp_path / "one.npz"), pickle.loads(content)
    now[0] += 21
    for learned in (again, unpickled):
        learned.predict([0.9, 0.2, 0.1], id="c")
        assert list(learned.waiting) == ["b", "c"]
    rows = learner(max_age=5)
    rows.save(tmp_path / "rows.npz")
    assert omma.OnlineClassifier.load(tmp_path / "rows.npz").waiting.max_age == 5


def test_a_journal_resumes_at_the_time_that_it_was(clock, tmp_path):
    eta, y = stream(1, 40, 3)
    one = learner(max_seconds=60)
    with omma.Journal(tmp_path / "j", one, snapshot_every=17):
        for t, row in enumerate(eta):
            clock(11)
            one.predict(row, id=t)
            if t >= 4 and t % 3:
                one.update(y[t - 4], id=t - 4)
    assert one.waiting.forgotten > 5
    expected = everything(one)
    with omma.Journal.resume(tmp_path / "j") as journal:
        assert everything(journal.learner) == expected
        clock(1000)
        with pytest.raises(ForgottenIdError):
            journal.learner.update(y[38], id=38)


def test_a_clock_that_never_stands_still_changes_nothing(monkeypatch, tmp_path):
    """What was found in time is counted, and done again at the very moment that it happened."""
    moments = itertools.count(1000.0)
    monkeypatch.setattr(waiting.time, "monotonic", lambda: next(moments))
    eta, y = stream(1, 40, 3)
    one = learner(max_seconds=40)
    with omma.Journal(tmp_path / "j", one, snapshot_every=17):
        for t in range(0, 40, 2):
            one.predict(eta[t], id=t)
            one.predict(eta[[t + 1]], ids=[t + 1])
            for late in ([t - 2], [t - 1]) if t % 4 and t < 30 else ():
                try:
                    one.update(y[late] if late[0] % 2 else y[late[0]], **named(late))
                except ForgottenIdError:
                    assert late[0] not in one.waiting
    assert one.waiting.forgotten > 5
    assert one.counts.n > 5
    expected = everything(one)
    with omma.Journal.resume(tmp_path / "j") as journal:
        assert everything(journal.learner) == expected


def test_time_that_passes_without_ids_forgets_nothing(clock, tmp_path):
    one = learner(max_seconds=60)
    with omma.Journal(tmp_path / "j", one):
        one.predict([0.9, 0.2, 0.1], id="a")
        clock(70)
        one.save(tmp_path / "one.npz")
        one.predict([0.9, 0.2, 0.1])
        one.update([1, 0, 0])
        assert list(one.waiting) == ["a"]
        assert list(omma.Journal.read(tmp_path / "j").waiting) == ["a"]
        one.predict([0.9, 0.2, 0.1], id="b")
        assert list(one.waiting) == ["b"]
        assert list(omma.Journal.read(tmp_path / "j").waiting) == ["b"]


def named(keys):
    return {"ids": keys} if keys[0] % 2 else {"id": keys[0]}


def test_only_one_kind_of_age():
    with pytest.raises(ValueError, match=r"max_age \(rows\) or max_seconds, got both"):
        learner(max_age=5, max_seconds=5)
    with pytest.raises(ValueError, match="max_seconds of OnlineClassifier must be"):
        learner(max_seconds=-1)

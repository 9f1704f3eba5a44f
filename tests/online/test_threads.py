"""A learner that several threads share loses nothing and corrupts nothing."""

import sys
import threading
import time
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from scipy import sparse

import omma

THREADS = 8
M = 300
RNG = np.random.default_rng(0)
ETA = RNG.random((400, M))
Y = (RNG.random((400, M)) < ETA).astype(np.int8)


@pytest.fixture(autouse=True)
def often():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work):
    """Run ``work(thread)`` in all threads at once; what one raises is raised here."""
    failed, start = [], threading.Barrier(THREADS)

    def run(number):
        start.wait()
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failed:
        raise failed[0]


def learned(policy):
    learner = omma.OnlineClassifier(policy, M, max_waiting=10**6)
    for row, true in zip(ETA[:20], Y[:20], strict=True):
        learner.predict(row)
        learner.update(true)
    return learner


@pytest.mark.parametrize("k", [None, 5])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_decisions_are_exact(layout, k):
    learner = learned(omma.OMMA("macro_f1", k=k))
    rows = [sparse.csr_array(row[np.newaxis]) for row in ETA] if layout == "sparse" else ETA
    expected = [learner.predict(row) for row in rows]
    expected = [one.toarray()[0] if layout == "sparse" else one for one in expected]
    wrong = []

    def work(number):
        for turn in range(3):
            for i in range(number, len(ETA), 2):
                found = learner.predict(rows[i])
                found = found.toarray()[0] if layout == "sparse" else found
                if not np.array_equal(found, expected[i]):
                    wrong.append((turn, i))

    together(work)
    assert not wrong


def test_it_is_the_space_of_each_thread_that_makes_them_exact(monkeypatch):
    """With one space for all, some decisions would be wrong: the test above would see it."""
    learner = learned(omma.OMMA("macro_f1", k=5))
    engine, seen = learner._engine, {}
    together(lambda number: seen.setdefault(number, engine.dense().memory))
    places = {memory.work.__array_interface__["data"][0] for memory in seen.values()}
    assert len(places) == THREADS


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_no_label_is_lost(feedback):
    learner = learned(omma.OMMA("macro_f1", feedback=feedback))
    before = learner.counts.n

    def work(number):
        for i in range(number, len(ETA), THREADS):
            learner.predict(ETA[i], id=i)
            if i % 3:
                learner.update(Y[i], id=i)

    together(work)
    later = [i for i in range(len(ETA)) if i % 3 == 0]
    together(lambda number: [learner.update(Y[i], id=i) for i in later[number::THREADS]])
    assert learner.counts.n == before + len(ETA)
    assert np.array_equal(learner.counts.positive, Y.sum(axis=0) + Y[:20].sum(axis=0))
    assert learner.stats()["waiting"] == 0
    assert set(learner.stats()["refused"].values()) == {0}


class Watched:
    """Calls of a function that take their time, and how many were inside of it at once."""

    def __init__(self):
        self.inside = self.most = 0
        self.changing = threading.Lock()

    def __call__(self, function):
        def slow(*arguments, **options):
            with self.changing:
                self.inside += 1
                self.most = max(self.most, self.inside)
            time.sleep(0.001)  # so that others come, if nothing keeps them
            try:
                return function(*arguments, **options)
            finally:
                with self.changing:
                    self.inside -= 1

        return slow


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_whatever_changes_a_learner_is_one_thing_at_a_time(monkeypatch, tmp_path, feedback, kept):
    """Without its lock, all of it would happen at once: this test would see it."""
    learner, watched = learned(omma.OMMA("macro_f1", feedback=feedback)), Watched()
    decided = learner.predict(ETA)
    before, nothing = learner.counts.n, omma.Counts.zeros(M)
    monkeypatch.setattr(learner._engine, "learn", watched(learner._engine.learn))
    monkeypatch.setattr(learner.state, "restore", watched(learner.state.restore))
    monkeypatch.setattr("omma.online.codec.write", watched(omma.online.codec.write))
    if not kept:
        monkeypatch.setattr(learner, "_lock", nullcontext())

    def work(number):
        for i in range(number, 6 * THREADS, THREADS):
            learner.update(Y[i], prediction=decided[i], eta=ETA[i])
            learner.update(Y[i : i + 2], prediction=decided[i : i + 2], eta=ETA[i : i + 2])
            learner.predict(ETA[i], id=i)
            learner.update(Y[i], id=i)
        learner.merge(nothing, estimates=nothing if feedback == "estimates" else None)
        learner.save(tmp_path / f"{number}.npz")

    if not kept:  # whatever comes of it, several were inside at once
        with suppress(Exception):
            together(work)
        assert watched.most > 1
        return
    together(work)
    assert watched.most == 1
    assert learner.counts.n == before + 4 * 6 * THREADS
    assert (learner.counts.tp <= learner.counts.positive).all()


def test_each_label_is_taken_once():
    learner = learned(omma.OMMA("macro_f1"))
    learner.predict(ETA, ids=range(len(ETA)))
    refused = []

    def work(number):
        for i in range(len(ETA)):
            try:
                learner.update(Y[i], id=i)
            except omma.online.waiting.LabelledTwiceError as error:
                refused.append(error)

    together(work)
    assert learner.counts.n == 20 + len(ETA)
    assert len(refused) == (THREADS - 1) * len(ETA)
    assert learner.stats()["refused"]["labelled_twice"] == len(refused)

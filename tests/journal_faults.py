"""A file layer that fails, and a short life of a journal: what ``test_durability`` is made of."""

import builtins
import gc
import io
import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import omma
from omma.online import journal

ETA, Y = omma.datasets.long_tail(n=20, m=3, seed=5)
POLICY = omma.OMMA("macro_f1", feedback="estimates")
OPTIONS = {"sync": 2, "snapshot_every": 3}
SYSTEM = ("open", "close", "read", "write", "fsync", "ftruncate", "lseek", "fstat", "stat",
          "replace", "unlink", "scandir", "listdir", "mkdir")  # fmt: skip

CHANGING = ("write", "fsync", "ftruncate", "replace", "unlink")


def calls():
    """Calls of a learner, in their order; each changes it."""
    found = []
    for i in range(5):
        found.append(lambda one, i=i: one.predict(ETA[i], id=i))
        if i >= 2:
            found.append(lambda one, i=i: one.update(Y[i - 2], id=i - 2))
    return found


CALLS = calls()
HALF = 5  # calls after which the journal is closed, and resumed


def new_learner():
    return omma.OnlineClassifier(POLICY, 3, max_waiting=50)


def done(learner):
    """How many calls a learner has seen."""
    return int(learner.waiting.decided + learner.counts.n)


def everything(learner):
    parts = {**learner.state.arrays(), **learner.waiting.arrays()}
    return {name: np.asarray(one).tobytes() for name, one in parts.items()}


def states():
    """All that a learner has after each number of calls, without any journal."""
    learner = new_learner()
    found = [everything(learner)]
    for call in CALLS:
        call(learner)
        found.append(everything(learner))
    return found


def opened(folder):
    try:
        return omma.Journal.resume(folder, **OPTIONS)
    except FileNotFoundError:
        return omma.Journal(folder, new_learner(), **OPTIONS)


class Life:
    """Goes through all calls, from wherever a journal has arrived; ``acknowledged`` says how far.

    Of what was interrupted, ``journal`` is the one that was open, if it was.
    """

    def __init__(self, folder, tell=lambda number: None):
        self.folder, self.tell = folder, tell
        self.acknowledged = 0
        self.journal = None

    def go_on(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of unfinished records
            while self.acknowledged < len(CALLS):
                self.journal = opened(self.folder)
                learner = self.journal.learner
                self.acknowledged = done(learner)
                ends = HALF if self.acknowledged < HALF else len(CALLS)
                for number in range(self.acknowledged, ends):
                    CALLS[number](learner)
                    self.acknowledged = number + 1
                    self.tell(number + 1)
                self.journal.close()
                self.journal = None


def check(life, expected, in_flight):
    """Everything acknowledged is there, exactly once; a call in flight may be, too.

    Where the journal goes on, the learner in memory is the one that it has.
    """
    if life.journal is not None:
        learner = life.journal.learner
        if learner._journal is not None and not life.journal._in_doubt:
            assert everything(omma.Journal.read(life.folder)) == everything(learner)
        life.journal.close()
        life.journal = None
    gc.collect()  # lets go of the locks of what was never opened
    if life.acknowledged == 0 and not any(life.folder.glob("log-*[0-9]")):
        found = new_learner()
    else:
        found = omma.Journal.read(life.folder)
    assert 0 <= done(found) - life.acknowledged <= in_flight
    assert everything(found) == expected[done(found)]
    life.go_on()
    with omma.Journal.resume(life.folder) as last:  # which tidies up, too
        assert everything(last.learner) == expected[-1]
    kinds = sorted(one.name.split("-")[0] for one in life.folder.iterdir())
    assert [kind for kind in kinds if kind != "unfinished"] == ["log"]


class Layer:
    """Counts calls of the file layer, and does something at one of them.

    ``fail`` is called before the call or after it, or when half is written, as ``when`` says.
    """

    def __init__(self, number, fail, when="before"):
        self.number, self.fail, self.when = number, fail, when
        self.count = 0
        self.name = None  # of the call that failed

    def wrapped(self, name, true):
        def call(*arguments, **options):
            counts = self.when == "before" or name in CHANGING
            self.count += counts
            now = counts and self.count == self.number
            # A close that fails has closed the file all the same.
            after = self.when == "after" or name == "close"
            if now and self.when == "halfway" and name == "write" and len(arguments[-1]) > 1:
                true(*arguments[:-1], bytes(arguments[-1])[: len(arguments[-1]) // 2])
            if now and not after:
                self.name = name
                self.fail()
            answer = true(*arguments, **options)
            if now and after:
                self.name = name
                self.fail()
            return answer

        return call

    @contextmanager
    def armed(self):
        true = {name: getattr(os, name) for name in SYSTEM}
        true_open, true_fdopen = io.open, os.fdopen
        layer = self

        class File(io.FileIO):
            def write(self, content):
                return layer.wrapped("write", super().write)(content)

        def fdopen(descriptor, mode="r", *rest, **options):
            if mode == "wb":
                return io.BufferedWriter(File(descriptor, mode))
            return true_fdopen(descriptor, mode, *rest, **options)

        for name, function in true.items():
            setattr(os, name, self.wrapped(name, function))
        os.fdopen = fdopen
        io.open = builtins.open = self.wrapped("open", true_open)
        try:
            yield
        finally:
            for name, function in true.items():
                setattr(os, name, function)
            os.fdopen, io.open, builtins.open = true_fdopen, true_open, true_open


TRACED = {
    str(Path(omma.__file__).parent / name)
    for name in ("_lock.py", "_atomic.py", "online/learner.py", "online/waiting.py")
} | {journal.__file__}  # fmt: skip


class Lines:
    """Notes every line of the journal's code that runs, or interrupts at one of them."""

    def __init__(self, place=None, visit=0):
        self.place, self.visit = place, visit
        self.visits = {}

    def _global(self, frame, event, argument):
        return self._local if frame.f_code.co_filename in TRACED else None

    def _local(self, frame, event, argument):
        if event == "line":
            place = (frame.f_code.co_filename, frame.f_lineno)
            self.visits[place] = self.visits.get(place, 0) + 1
            if place == self.place and self.visits[place] == self.visit:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self._local

    @contextmanager
    def armed(self):
        before = sys.gettrace()
        sys.settrace(self._global)
        try:
            yield
        finally:
            sys.settrace(before)

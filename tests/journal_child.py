"""A learner in a journal that is killed: what ``test_journal`` runs in processes of its own."""

import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np

import omma

ETA, Y = omma.datasets.long_tail(n=300, m=4, seed=5)
POLICIES = {
    "labels": omma.OMMA("macro_f1"),
    "estimates": omma.OMMA("macro_f1", feedback="estimates"),
    "draws": omma.Mixture(
        (omma.Rule([1.0] * 4, [-0.5] * 4), omma.Rule([1.0] * 4, [-0.1] * 4)), [0.5, 0.5]
    ),
    "window": omma.Window(omma.Auto("macro_f1"), 20),
}
WAIT = 7
OPTIONS = {"sync": 3, "snapshot_every": 11}


def schedule(count):
    """Rows are decided in order, and get their labels later, two of them at once now and then."""
    for i in range(count + WAIT):
        if i < count:
            yield "decide", [i]
        if i >= WAIT and i % 5 != 0:
            yield "label", [i - WAIT]
        if i >= WAIT and i % 5 == 1 and i > WAIT:
            yield "label", [i - WAIT - 1]


def run(folder, name, count, told=lambda line: None):
    """Take up the work wherever it was left; returns the learner when all is done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torn records
        journal = opened(folder, name)
    with journal:
        learner = journal.learner
        labels = learner.counts.n
        done = learner.waiting.decided + labels
        for number, (what, rows) in enumerate(schedule(count)):
            if number < done:
                continue
            (i,) = rows
            if what == "decide":
                decision = learner.predict(ETA[i], id=i)
                told(f"{number} {i} {''.join(map(str, decision))}\n")
            else:
                learner.update(Y[i], id=i)
                told(f"{number}\n")
    return learner


def opened(folder, name):
    try:
        return omma.Journal.resume(folder, **OPTIONS)
    except (ValueError, FileNotFoundError) as error:
        if "has no journal" not in str(error) and "is not a folder" not in str(error):
            raise
    learner = omma.OnlineClassifier(POLICIES[name], 4, metric="macro_f1", max_waiting=50)
    return omma.Journal(folder, learner, **OPTIONS)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(point, number):
    """Die at the n-th time that something is done: before it, after it, or halfway."""
    what, when = point.split("-")
    true, calls = getattr(os, what), [0]

    def called(*arguments, **options):
        calls[0] += 1
        if calls[0] == number and when == "before":
            die()
        if calls[0] == number and when == "halfway":
            true(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            die()
        found = true(*arguments, **options)
        if calls[0] == number and when == "after":
            die()
        return found

    setattr(os, what, called)


def forked(work):
    """Run something in a process of its own; returns its id and where it writes to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            work(lambda line: os_write(writing, line.encode()))
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    return child, reading


os_write = os.write  # what is told is not what is killed at


def everything(learner):
    parts = {**learner.state.arrays(), **learner.waiting.arrays()}
    return {name: np.asarray(one).tobytes() for name, one in parts.items()}


def whole(path):
    return sorted(one.name for one in Path(path).iterdir())

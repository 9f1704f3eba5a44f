"""A stream that does not end.

Counts after very many rows against whole numbers, memory meanwhile, a million rows that wait for
their labels, and bad rows in mid-stream. It fails where something is not as promised. Times are
those of this thread: others on the machine do not count.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import omma
from benchmarks.measure import Table
from omma.replaying import Sequence, replay

BLOCK = 100_000
EXACT = 2.0**53  # up to here every whole number is a float64
Results = Iterator[tuple[str, str]]  # what was done, and what came of it
RUN = "import sys; from omma.cli import main; sys.exit(main())"


def resident() -> float:
    """Megabytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def fed(policy: Any, rows: int, m: int) -> tuple[Any, Any, int, str]:
    """The state after a block of rows was fed again and again, and what that took."""
    rng = np.random.default_rng(0)
    eta = rng.beta(0.3, 2.0, (BLOCK, m))
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    sequence, plan = Sequence(omma.Batch.of(eta, y), keep=False), policy.plan(m)
    omma.replay(policy, eta[:10], y[:10])  # compiles
    state, times = policy.init(m), max(1, rows // BLOCK)
    before, begun = resident(), time.thread_time()
    for time_over in range(times):
        state = replay("soak", plan, sequence, state=state).state
        if time_over == times // 10:
            before = resident()
    took = time.thread_time() - begun
    grown = resident() - before
    assert grown < 20.0
    time_of_row = f"{took:.1f} s, {1e9 * took / times / BLOCK:.0f} ns a row"
    result = f"{time_of_row}; memory grew by {grown:.1f} MB over the last nine tenths"
    return state, (eta, y), times, result


def whole_numbers(rows: int, m: int) -> Results:
    """Counts of labels are whole numbers: exact, and far from where they would not be."""
    state, (_, y), times, result = fed(omma.OMMA("macro_f1"), rows, m)
    tp, predicted, positive = state.cells
    assert state.rows == times * BLOCK
    assert (positive == times * y.sum(axis=0)).all()
    assert (tp <= np.minimum(predicted, positive)).all()
    assert (state.cells == np.round(state.cells)).all()
    years = EXACT / 1e6 / 3600 / 24 / 365
    yield f"{times * BLOCK:.1e} rows", f"{result}; exact to the last row"
    yield "until 2**53 rows", f"{years:,.0f} years at a million a second"
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 2)
    learner.state.cells[...] = EXACT - 1000
    learner.state.totals[0] = EXACT - 1000
    for _ in range(1000):
        learner.update([1, 1], prediction=np.array([1, 1], dtype=np.int8))
    assert learner.counts.n == EXACT
    assert (learner.counts.tp == EXACT).all()
    yield "the thousand rows before 2**53", "are counted one by one"


def sums(rows: int, m: int) -> Results:
    """Sums of probabilities are rounded; by how much."""
    state, (eta, _), times, result = fed(omma.OMMA("macro_f1", feedback="estimates"), rows, m)
    right = np.array([times * math.fsum(column) for column in eta.T])
    off = np.abs(state.cells[2] / right - 1).max()
    assert off < 1e-6
    yield f"{times * BLOCK:.1e} rows", f"{result}; largest relative error of a sum {off:.1e}"


def window(rows: int, m: int) -> Results:
    """A window that has been renewed very often."""
    state, (_, y), times, result = fed(omma.Window(omma.Auto("macro_f1"), 10_000), rows, m)
    assert (state.labels.cells[2] == y[-10_000:].sum(axis=0)).all()
    assert state.rows == 10_000
    size = state.window.nbytes / 10_000
    yield f"{times * BLOCK:.1e} rows", f"{result}; exact; {size:,.0f} bytes a row of the window"


def wait_for_labels(count: int) -> Results:
    """So many rows that wait, labelled in any order."""
    rng = np.random.default_rng(0)
    eta = rng.random((1000, 46))
    y = (rng.random((1000, 46)) < eta).astype(np.int8)
    for title, policy in (("OMMA", omma.OMMA("macro_f1")), ("Auto", omma.Auto("macro_f1"))):
        learner = omma.OnlineClassifier(policy, 46, max_waiting=count)
        learner.predict(eta[0], id="warm")
        learner.update(y[0], id="warm")
        before, begun = resident(), time.thread_time()
        for t in range(count):
            learner.predict(eta[t % 1000], id=t)
        put = time.thread_time() - begun
        grown = resident() - before
        begun = time.thread_time()
        for t in rng.permutation(count).tolist():
            learner.update(y[t % 1000], id=t)
        took = time.thread_time() - begun
        assert learner.counts.n == count + 1
        assert not len(learner.waiting)
        speed = f"{1e6 * put / count:.0f} µs to decide, {1e6 * took / count:.0f} µs to learn"
        yield f"{count:,}, {title}, 46 labels", f"{1e6 * grown / count:,.0f} bytes a row, {speed}"


def bad_rows(rows: int, megabytes: int) -> Results:
    """Bad lines between good ones, which are decided as if the bad ones were not there."""
    rng = np.random.default_rng(0)
    eta = rng.random((rows, 5)).round(4)
    y = (rng.random(eta.shape) < eta).astype(int)
    good = [json.dumps({"id": t, "eta": eta[t].tolist(), "y": y[t].tolist()}) for t in range(rows)]
    bad = {
        rows // 5: '{"id": "nan", "eta": [0.1, NaN, 0.1, 0.1, 0.1]}',
        2 * rows // 5: '{"id": "narrow", "eta": [0.1, 0.2]}',
        3 * rows // 5: '{"id": "nobody", "y": [0, 0, 0, 0, 1]}',
        4 * rows // 5: '{"id": "' + "x" * (megabytes * 1_000_000) + '", "eta": [0.1]}',
    }
    with tempfile.TemporaryDirectory() as folder:
        answers, code = [], []
        for name, extra in (("good", {}), ("bad", bad)):
            path = Path(folder) / f"{name}.jsonl"
            with path.open("w") as file:
                for t, line in enumerate(good):
                    if t in extra:
                        file.write(extra[t] + "\n")
                    file.write(line + "\n")
            command = [sys.executable, "-c", RUN, "stream", str(path), "--metric", "macro_f1"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            answers.append(done.stdout)
            code.append(done.returncode)
        assert code == [0, 3], done.stderr
        assert answers[0] == answers[1]
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
        memory = f"at most {most:,.0f} MB of memory"
        yield f"4 lines, one of {megabytes} MB", f"refused; {rows:,} rows decided alike, {memory}"


def soak(
    rows: float = 1e9,
    labels: int = 4,
    waiting: int = 1_000_000,
    megabytes: int = 100,
    parts: tuple[str, ...] = ("labels", "probabilities", "window", "waiting", "bad"),
) -> Iterator[Table]:
    """All parts, or some."""
    n = int(rows)
    calls: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
        "labels": lambda: whole_numbers(n, labels),
        "probabilities": lambda: sums(n // 10, labels),
        "window": lambda: window(n // 100, labels),
        "waiting": lambda: wait_for_labels(waiting),
        "bad": lambda: bad_rows(2_000, megabytes),
    }
    for part in parts:
        lines = [{"what": what, "result": result} for what, result in calls[part]()]
        yield Table(f"soak: {part}", "it fails where something is not as promised", lines)

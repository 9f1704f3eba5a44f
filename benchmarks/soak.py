"""A stream that does not end: ``python -m benchmarks soak [--rows 1e9] [PART ...]``.

Counts after very many rows against whole numbers, memory meanwhile, a million rows that wait for
their labels, and bad rows in mid-stream. It fails where something is not as promised. Times are
those of this thread: others on the machine do not count.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import omma
from omma.replaying import NO_ROWS, Replay
from omma.rows.batch import Batch

BLOCK = 100_000
EXACT = 2.0**53  # up to here every whole number is a float64
RUN = "import sys; from omma.cli import main; sys.exit(main())"


def resident() -> float:
    """Megabytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def fed(policy: Any, rows: int, m: int) -> tuple[Any, Any, int, float]:
    """The state after a block of rows was fed again and again, and how long that took."""
    rng = np.random.default_rng(0)
    eta = rng.beta(0.3, 2.0, (BLOCK, m))
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    batch = Batch.read("soak", eta, y, None, None)
    running = Replay("soak", policy.plan(m), batch, keep=False)
    running.feed(NO_ROWS)  # compiles
    every, times = np.arange(BLOCK), max(1, rows // BLOCK)
    before, begun = resident(), time.thread_time()
    for time_over in range(times):
        running.feed(every)
        if time_over == times // 10:
            before = resident()
    took = time.thread_time() - begun
    grown = resident() - before
    print(f"  {times * BLOCK:.1e} rows in {took:.1f} s, {1e9 * took / times / BLOCK:.0f} ns a row")
    print(f"  memory grew by {grown:.1f} MB over the last nine tenths")
    assert grown < 20.0
    return running.result(took).state, (eta, y), times, took


def whole_numbers(rows: int, m: int) -> None:
    """Counts of labels are whole numbers: exact, and far from where they would not be."""
    print("counts of labels:")
    state, (_, y), times, _ = fed(omma.OMMA("macro_f1"), rows, m)
    tp, predicted, positive = state.cells
    assert state.rows == times * BLOCK
    assert [int(one) for one in positive] == [times * int(one) for one in y.sum(axis=0)]
    assert (tp <= np.minimum(predicted, positive)).all()
    assert (state.cells == np.round(state.cells)).all()
    years = EXACT / 1e6 / 3600 / 24 / 365
    print(f"  exact to the last row; until 2**53 rows, {years:,.0f} years at a million a second")
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 2)
    learner.state.cells[...] = EXACT - 1000
    learner.state.totals[0] = EXACT - 1000
    for _ in range(1000):
        learner.update([1, 1], prediction=np.array([1, 1], dtype=np.int8))
    assert learner.counts.n == EXACT
    assert (learner.counts.tp == EXACT).all()
    print("  the thousand rows before 2**53 are counted one by one")


def sums(rows: int, m: int) -> None:
    """Sums of probabilities are rounded; by how much."""
    print("counts of probabilities:")
    state, (eta, _), times, _ = fed(omma.OMMA("macro_f1", feedback="estimates"), rows, m)
    right = np.array([times * math.fsum(column) for column in eta.T])
    off = np.abs(state.cells[2] / right - 1).max()
    print(f"  the largest relative error of a sum is {off:.1e}")
    assert off < 1e-6


def window(rows: int, m: int) -> None:
    """A window that has been renewed very often."""
    print("a window of 10,000 rows:")
    state, (_, y), _, _ = fed(omma.Window(omma.Auto("macro_f1"), 10_000), rows, m)
    assert (state.labels.cells[2] == y[-10_000:].sum(axis=0)).all()
    assert state.rows == 10_000
    print(f"  exact; {state.window.nbytes / 10_000:,.0f} bytes a row")


def waiting(count: int) -> None:
    """So many rows that wait, labelled in any order."""
    print(f"{count:,} rows that wait:")
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
        told = f"{1e6 * put / count:.0f} µs to decide, {1e6 * took / count:.0f} µs to learn"
        print(f"  {title}, 46 labels: {1e6 * grown / count:,.0f} bytes a row, {told}")


def bad_rows(rows: int, megabytes: int) -> None:
    """Bad lines between good ones, which are decided as if the bad ones were not there."""
    print(f"bad lines in mid-stream, one of {megabytes} MB:")
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
        print(f"  {rows:,} rows decided alike, 4 lines refused, at most {most:,.0f} MB of memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="one of those below; default all")
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--labels", type=int, default=4)
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    rows, m = int(options.rows), options.labels
    every: dict[str, Callable[[], None]] = {
        "labels": lambda: whole_numbers(rows, m),
        "probabilities": lambda: sums(rows // 10, m),
        "window": lambda: window(rows // 100, m),
        "waiting": lambda: waiting(options.waiting),
        "bad": lambda: bad_rows(2_000, options.megabytes),
    }
    for part in options.parts or every:
        if part not in every:
            parser.error(f"unknown part {part!r}: parts are {', '.join(every)}")
        every[part]()

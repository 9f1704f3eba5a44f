"""How many rows a learner serves from 1, 2, 4 and 8 threads: ``python -m benchmarks threads``.

Beside each figure stands the work of the process for a row, all threads together: what others do on
the machine changes it little, and where threads stand in each other's way it grows. It runs with
the free-threaded build of Python, too, and says which one it is.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import omma


def rows_per_second(
    work: Callable[[int, int], None], threads: int, count: int
) -> tuple[float, float]:
    """Rows of all threads together by the clock on the wall, and seconds of work for a row."""
    started = threading.Barrier(threads + 1)

    def run(number: int) -> None:
        started.wait()
        work(number, count)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for one in running:
        one.start()
    started.wait()
    begun, before = time.perf_counter(), time.process_time()
    for one in running:
        one.join()
    rows = threads * count
    took, worked = time.perf_counter() - begun, time.process_time() - before
    return rows / took, worked / rows


def works(m: int) -> dict[str, Callable[[int, int], None]]:
    rng = np.random.default_rng(0)
    eta = rng.random((256, m))
    y = (rng.random((256, m)) < eta).astype(np.int8)
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), m, max_waiting=10**6)
    learner.predict(eta[0])
    learner.update(y[0])
    lives = iter(range(10**9))

    def predict(number: int, count: int) -> None:
        for i in range(count):
            learner.predict(eta[i % 256])

    def by_id(number: int, count: int) -> None:
        life = next(lives)
        for i in range(count):
            key: Any = f"{life} {i}"
            learner.predict(eta[i % 256], id=key)
            learner.update(y[i % 256], id=key)

    return {"predict": predict, "predict and update by id": by_id}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {sys.version.split()[0]}, {'one thread at a time' if locked else 'no GIL'}")
    for m in (46, 5_000):
        count = options.rows if m < 1_000 else options.rows // 20
        for name, work in works(m).items():
            work(0, 10)
            found = [max(rows_per_second(work, n, count // n) for _ in range(3))
                     for n in (1, 2, 4, 8)]  # fmt: skip
            told = ", ".join(
                f"{n}: {rate:,.0f} ({1e6 * worked:.0f} µs)"
                for n, (rate, worked) in zip((1, 2, 4, 8), found, strict=True)
            )
            print(f"m = {m}, {name}, rows/s by threads: {told}")

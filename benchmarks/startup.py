"""What a fresh process pays: import, and the first replay with a cold and a warm cache.

Processor time: on a machine shared with others a wall clock says more about them.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.table import Table, at_most

IMPORT = """
import time
started = time.process_time()
import {modules}
print(time.process_time() - started)
"""

FIRST = """
import omma, time
from scipy import sparse
eta, y = omma.datasets.long_tail(n=100, m=46)
eta, y = {layout}(eta), {layout}(y)
started = time.process_time()
omma.replay(omma.OMMA("macro_f1"), eta, y)
print(time.process_time() - started)
"""
LAYOUTS = {"dense": "", "csr": "sparse.csr_array"}


def run(code: str, cache: str | None = None) -> float:
    """The number that some code prints in a process of its own."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def imports(quick: bool) -> Table:
    """Import time of omma against what it cannot do without."""
    table = Table(
        "import, in a process of its own", "Medians of processor time; the two take turns."
    )
    theirs = IMPORT.format(modules="numpy, scipy.sparse, numba")
    ours = IMPORT.format(modules="omma")
    run(ours)  # bytecode and the disk's cache are there for both
    pairs = [(run(theirs), run(ours)) for _ in range(3 if quick else 11)]
    base, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
    table.rows.append(
        {
            "numpy, scipy.sparse, numba s": base,
            "omma s": whole,
            "ratio": at_most(whole / base, 1.3),
        }
    )
    return table


def first_replay(quick: bool) -> Table:
    """The first call of a fresh process, with nothing compiled yet and with all of it on disk."""
    cold_runs, warm_runs = (0, 1) if quick else (3, 7)
    table = Table(
        "first replay of a fresh process, macro F1, 100×46",
        f"Processor time of the call, without import. Medians of {cold_runs} processes with an "
        f"empty cache each, and of {warm_runs} that share one.",
    )
    for layout, maker in LAYOUTS.items():
        code = FIRST.format(layout=maker)
        cold = [cold_run(code) for _ in range(cold_runs)]
        run(code)  # fills the cache
        warm = [run(code) for _ in range(warm_runs)]
        table.rows.append(
            {
                "layout": layout,
                "cold s": statistics.median(cold) if cold else None,
                "warm s": at_most(statistics.median(warm), 1.5),
            }
        )
    return table


def cold_run(code: str) -> float:
    """The same with nothing compiled yet."""
    with tempfile.TemporaryDirectory() as empty:
        return run(code, empty)

"""Imports and first calls of a fresh process, with an empty and a full cache of machine code.

Times are processor time, which other programs on the machine hardly change. Bytecode of Python
files is always there; the cache of machine code is a new folder for each figure.
"""

import statistics
import tempfile
from collections.abc import Iterator

from benchmarks.measure import Row, at_most, output_of, tabulated

IMPORT = """
import time
started = time.process_time()
import {modules}
print(time.process_time() - started)
"""

# omma imports names when they are used: rows with names show what that adds to the import alone.
IMPORTED = {
    "omma": "import omma",
    "omma; omma.OMMA, omma.replay": "the same, and names to replay",
    "omma; omma.Auto, omma.OnlineClassifier": "the same, and names to serve",
}
TIMED = """
import time
import numpy as np
import omma
from scipy import sparse
# Imported before the clock starts.
omma.replay, omma.OMMA, omma.Auto, omma.Window, omma.Greedy, omma.OnlineClassifier
eta, y = omma.datasets.long_tail(n=100, m=46)
stored, ids = sparse.csr_array(eta), sparse.csr_array(y)

def own(tp, fp, fn, tn):
    return tp / ((tp + fp) * (tp + fn) + 0.01)

def replay(policy="macro_f1", eta=eta, y=y, **options):
    policy = omma.OMMA(policy) if isinstance(policy, str) else policy
    omma.replay(policy, eta, y, **options)

def step():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=46)
    learner.predict(eta[0])
    learner.update(y[0])

def limited():
    replay(omma.Auto("macro_f1", subject_to="micro_precision >= 0.5"))

def custom():
    replay(omma.OMMA(omma.metrics.custom(own, average="macro")))

{before}
started = time.process_time()
{timed}
print(time.process_time() - started)
"""
DEMO = """
import time
from click.testing import CliRunner
started = time.process_time()
from omma.cli import main
done = CliRunner().invoke(main, ["demo", "--no-plot"])
assert done.exit_code == 0, done.output
print(time.process_time() - started)
"""
# The code that is timed, code that runs before it, and the target in seconds.
COLD = {
    "first dense replay": ("replay()", "", 2.5),
    "first dense replay of Auto": ('replay(omma.Auto("macro_f1"))', "", 3.5),
    "first CSR replay": ("replay(eta=stored, y=ids)", "", 2.5),
    "first CSR replay, k = 3": ('replay(omma.OMMA("macro_f1", k=3), stored, ids)', "", 4.5),
    "first predict + update": ("step()", "", 2.5),
    "first replay with limits": ("limited()", "", 8.0),
    "first replay of a window": ('replay(omma.Window(omma.Auto("macro_f1"), 50))', "", 8.0),
    "a further kind of metric, dense": ('replay("macro_gmean")', "replay()", 1.0),
    "a further kind of metric, CSR": (
        'replay("macro_gmean", stored, ids)',
        "replay(eta=stored, y=ids)",
        1.0,
    ),
    "Greedy after OMMA": ('replay(omma.Greedy("macro_f1"))', "replay()", None),
    "gap=True after a replay": ("replay(gap=True)", "replay()", None),
    "custom metric, first process": ("custom()", "", None),
}
WARM = 0.7  # seconds of a first answer from disk


def run(code: str, cache: str | None = None) -> float:
    """The number that some code prints in a process of its own."""
    # Bytecode is written, whatever the environment says; machine code goes to the cache.
    folder = {} if cache is None else {"NUMBA_CACHE_DIR": cache}
    return float(output_of(code, PYTHONDONTWRITEBYTECODE="", **folder))


@tabulated(
    "import, in a process of its own",
    "Medians of processor time; they take turns.",
)
def imports(quick: bool = False) -> Iterator[Row]:
    """Import time of omma against that of its dependencies."""
    theirs = IMPORT.format(modules="numpy, scipy.sparse, numba")
    codes = [IMPORT.format(modules=what) for what in IMPORTED]
    for code in codes:
        run(code)  # bytecode and the disk's cache are there for all
    turns = [[run(code) for code in (theirs, *codes)] for _ in range(3 if quick else 11)]
    base, *ours = (statistics.median(column) for column in zip(*turns, strict=True))
    for what, seconds in zip(IMPORTED.values(), ours, strict=True):
        yield {
            "what": what,
            "numpy, scipy.sparse, numba s": base,
            "omma s": seconds,
            "ratio": at_most(seconds / base, 1.2),
        }


def cold_and_warm(code: str, runs: int) -> tuple[float, float]:
    """Least seconds with an empty cache, and of a second process with the cache of the first."""
    cold, warm = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as empty:
            cold.append(run(code, empty))
            warm.append(run(code, empty))
    return min(cold), min(warm)


@tabulated(
    "first answers of a fresh process, macro F1, 100×46",
    "Processor time of the call, without import and without what came before it. The least of 3 "
    "(1 with --quick), with an empty cache each, and of a second process with the same cache.",
)
def first_answers(quick: bool = False) -> Iterator[Row]:
    """First calls of a fresh process, with an empty cache and with a full one."""
    runs = 1 if quick else 3
    cases = dict(list(COLD.items())[:1]) if quick else COLD
    for what, (timed, before, limit) in cases.items():
        cold, warm = cold_and_warm(TIMED.format(timed=timed, before=before), runs)
        yield row(what, cold, limit, warm, None if before else WARM)
    if not quick:
        cold, warm = cold_and_warm(DEMO, runs)
        yield row("omma demo, whole, with import", cold, 15.0, warm, None)


def row(what: str, cold: float, limit: float | None, warm: float, warm_limit: float | None) -> Row:
    """One row of the table."""
    return {"what": what, "cold s": at_most(cold, limit), "warm s": at_most(warm, warm_limit)}

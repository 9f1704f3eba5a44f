"""Replays and single rows: omma against the plain way, against a fixed rule, and as data grows."""

import gc
import json
import resource
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import omma
from benchmarks import plain
from benchmarks.measure import (
    Row,
    Table,
    Target,
    all_of,
    at_least,
    at_most,
    exponent,
    output_of,
    race,
    tabulated,
)
from benchmarks.shapes import Shape, classes

SMALL = Shape("dense", 7_926, 46)
MIDDLE = Shape("dense", 24_154, 195)
CLASSES = Shape("classes", 7_532, 20)
SPARSE = Shape("csr", 20_000, 2_456, 77)
LARGE = Shape("csr", 306_784, 13_330, 85)

# How many times as fast as the plain way, by shape and budget.
SPEED = {(SMALL, None): 2000, (SMALL, 3): 1000, (MIDDLE, None): 800}
# How many times the time of a fixed rule.
FLOOR = {(LARGE, 3, "macro_f1"): 1.3}
# How many times the time of OMMA with labels, by layout.
AUTO = {"dense": 6.0, "classes": 6.0, "csr": 3.5}
# Nanoseconds a stored entry, by the number of labels, and megabytes at the most of these.
ENTRY = {13_330: 9.0, 670_000: 25.0, 3_000_000: 50.0}
MEGABYTES = 1_000.0


def head_of(shape: Shape, k: int | None) -> Row:
    """What a row of a table is about."""
    return {"shape": str(shape), "layout": shape.kind, "k": str(k)}


def targets_of(shape: Shape, metrics: tuple[str, ...]) -> list[tuple[int | None, str]]:
    """Budgets and metrics that suit a shape."""
    if shape.kind == "classes":
        return [(1, "multiclass_gmean")]
    return [(k, metric) for k in (None, 3) for metric in metrics]


@tabulated(
    "omma against the plain way and against the floor",
    "Best of several runs that take turns, thread time. plain: NumPy + autograd, timed on the "
    "first 500 rows (100 with --quick) and scaled to all; same: the part of these rows decided "
    "alike. omma: the whole call; kernel: trace.seconds, by the wall clock. floor: the whole call "
    "with fixed weights, TopK(k), or a Threshold that predicts as many labels.",
)
def replays(quick: bool = False) -> Iterator[Row]:
    """Every shape, budget and metric."""
    for shape in [SMALL, CLASSES, SPARSE] if quick else [SMALL, MIDDLE, CLASSES, SPARSE, LARGE]:
        eta, y = shape.data()
        for k, metric in targets_of(shape, ("macro_f1", "macro_gmean", "micro_f1")):
            yield against_plain(shape, eta, y, metric, k, quick)


def against_plain(shape: Shape, eta: Any, y: Any, metric: str, k: int | None, quick: bool) -> Row:
    policy = omma.OMMA(metric, k=k)
    trace = omma.replay(policy, eta, y)
    fixed = floor_of(trace, eta, k)
    plain_rows = 100 if quick else 500
    first = eta[:plain_rows], y[:plain_rows]
    decided: list[Any] = []
    kernel: list[float] = []
    calls = {
        "omma": lambda: kernel.append(omma.replay(policy, eta, y).seconds),
        "floor": lambda: omma.replay(fixed, eta, y, metric=metric),
        "plain": lambda: decided.append(plain.replay(metric, *first, k)),
    }
    # The short calls run twice a round: the second time nothing else has used the cache.
    turns = [calls[name] for name in ("omma", "floor", "omma", "floor", "plain")]
    first_whole, first_floor, whole, floor, slow = race(*turns, rounds=2 if quick else 10)
    whole, floor = min(first_whole, whole), min(first_floor, floor)
    slow *= shape.n / plain_rows
    return {
        **head_of(shape, k),
        "metric": metric,
        "plain ms": 1e3 * slow,
        "omma ms": 1e3 * whole,
        "kernel ms": 1e3 * min(kernel),
        "plain/omma": at_least(slow / whole, SPEED.get((shape, k))),
        "floor ms": 1e3 * floor,
        "omma/floor": at_most(whole / floor, FLOOR.get((shape, k, metric))),
        "same": agreement(decided[0], trace.predictions),
    }


def floor_of(trace: Any, eta: Any, k: int | None) -> Any:
    """A fixed rule that predicts about as many labels."""
    if k is not None:
        return omma.TopK(k)
    values = eta.data if sparse.issparse(eta) else eta.ravel()
    chosen = trace.counts.predicted.sum() / len(values)
    return omma.Threshold(float(np.quantile(values[:1_000_000], 1.0 - chosen)))


def agreement(decided: list[Any], predictions: Any) -> Target:
    """The share of the first rows with the same predictions."""
    expected = plain.labels_of(predictions[: len(decided)])
    return all_of([np.array_equal(*pair) for pair in zip(decided, expected, strict=True)])


def times_of(runs: Iterable[tuple[Any, ...]], rounds: int) -> list[float]:
    """The best seconds of replays, each of a policy on rows, once all are compiled."""
    calls = [partial(omma.replay, *run) for run in runs]
    for call in calls:
        call()
    return race(*calls, rounds=rounds)


@tabulated(
    "Auto against OMMA",
    "Best of several runs that take turns, thread time, whole calls. OMMA: of labels, which is "
    "the cheapest way. Calibration takes a logarithm and an exponential an entry.",
)
def auto(quick: bool = False) -> Iterator[Row]:
    """The cost of calibration and of two kinds of counts: ``Auto`` against OMMA."""
    metrics = ("macro_f1", "macro_precision", "macro_gmean", "micro_f1")
    for shape in [SMALL, CLASSES] if quick else [SMALL, MIDDLE, CLASSES, SPARSE]:
        eta, y = shape.data()
        for k, metric in targets_of(shape, metrics):
            batch = omma.Batch.of(eta, y)
            policies = (omma.OMMA(metric, k=k), omma.Auto(metric, k=k))
            base, whole = times_of([(policy, batch) for policy in policies], 2 if quick else 5)
            yield {
                **head_of(shape, k),
                "metric": metric,
                "OMMA ms": 1e3 * base,
                "Auto ms": 1e3 * whole,
                "Auto/OMMA": at_most(whole / base, AUTO[shape.kind]),
            }


def f1_copy(tp: float, fp: float, fn: float, tn: float) -> float:
    """F1 as a user would write it."""
    return 2 * tp / (2 * tp + fp + fn + 1e-9)


@tabulated(
    "what else a row may bring, against macro F1 of labels",
    "Best of several runs that take turns, thread time, whole calls.",
)
def feedbacks(quick: bool = False) -> Iterator[Row]:
    """Estimates, weights, other means and rows without labels, against labels alone."""
    own_f1 = omma.metrics.custom(f1_copy, average="macro")
    for shape in [SMALL] if quick else [SMALL, MIDDLE, SPARSE]:
        eta, y = shape.data()
        rng = np.random.default_rng(0)
        weighted = omma.Batch.of(eta, y, rng.choice([0.5, 1.0, 2.0], shape.n))
        half = omma.Batch.of(eta, y, known=rng.random(shape.n) < 0.5)
        for k in (None, 3):
            cases = {
                "labels": (omma.OMMA("macro_f1", k=k), omma.Batch.of(eta, y)),
                "estimates": (omma.OMMA("macro_f1", k=k, feedback="estimates"), eta, y),
                "H-mean": (omma.OMMA("macro_hmean", k=k), eta, y),
                "a user's copy of F1": (omma.OMMA(own_f1, k=k), eta, y),
                "weights": (omma.OMMA("macro_f1", k=k), weighted),
                "half of the rows labelled": (omma.Auto("macro_f1", k=k), half),
            }
            seconds = times_of(cases.values(), 2 if quick else 5)
            for name, each in zip(cases, seconds, strict=True):
                head = {**head_of(shape, k), "what": name}
                yield {**head, "ms": 1e3 * each, "times labels": each / seconds[0]}


MANY = """
import resource, sys, time
import omma
from benchmarks.shapes import Shape
n, m = int(sys.argv[1]), int(sys.argv[2])
policy = omma.OMMA("macro_f1", k=3)
omma.replay(policy, *Shape("csr", 10, 100, 50).data())
eta, y = Shape("csr", n, m, 50).data()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
seconds = min(omma.replay(policy, eta, y).seconds for _ in range(int(sys.argv[3])))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(1e9 * seconds / eta.nnz, peak / 1e3, (peak - before) / 1e3)
"""


@tabulated(
    "many labels, CSR, macro F1@3, 50 stored a row",
    "Nanoseconds of the compiled loop a stored entry, the best of 3 replays; the most memory "
    "of the process, inputs included, and what replays added to the inputs (megabytes).",
)
def many_labels(quick: bool = False) -> Iterator[Row]:
    """Sparse rows of very many labels, each in a process of its own."""
    n, runs = (2_000, 1) if quick else (100_000, 3)
    for m, limit in ENTRY.items():
        nanoseconds, peak, added = map(float, output_of(MANY, n, m, runs).split())
        yield {
            "labels": m,
            "rows": n,
            "ns an entry": at_most(nanoseconds, None if quick else limit),
            "MB": at_most(peak, MEGABYTES if m == max(ENTRY) else None),
            "MB of replays": added,
        }


# Single rows


def walk(policy: Any, etas: Any, ys: Any, m: int = 46, *, late: bool = False) -> Callable[[], None]:
    """Decide and learn every row; labels that come late are learned after all decisions."""
    learner = omma.OnlineClassifier(policy, n_labels=m)

    def at_once() -> None:
        for eta, true in zip(etas, ys, strict=True):
            learner.predict(eta)
            learner.update(true)

    def later() -> None:
        decided = [learner.predict(eta) for eta in etas]
        for true, prediction in zip(ys, decided, strict=True):
            learner.update(true, prediction=prediction)

    return later if late else at_once


@tabulated(
    "one predict + update from Python",
    "Best of several loops over rows, thread time. m = 46; the CSR rows store 50 of 5,000.",
)
def steps(quick: bool = False) -> Iterator[Row]:
    """One predict and update from Python."""
    n = 200 if quick else 2_000
    eta, y = Shape("dense", n, 46).data()
    rows = list(eta), list(y)
    class_eta, class_ids = classes(n, 46)
    stored, true = Shape("csr", n, 5_000, 50).data()
    parts = [stored[i : i + 1] for i in range(n)], [true[i : i + 1] for i in range(n)]
    f1 = omma.OMMA("macro_f1")
    cases = {
        f"ndarray, {metric}, k = {k}": (walk(omma.OMMA(metric, k=k), *rows), 6)
        for metric in ("macro_f1", "macro_gmean", "micro_f1")
        for k in (None, 3)
    }
    estimates = omma.OMMA("macro_f1", feedback="estimates")
    multiclass = omma.OMMA("multiclass_gmean")
    cases |= {
        "list": (walk(f1, eta.tolist(), y.tolist()), 15),
        "late label, prediction=": (walk(f1, *rows, late=True), 15),
        'feedback="estimates"': (walk(estimates, *rows), 15),
        "class id": (walk(multiclass, list(class_eta), class_ids.tolist()), 15),
        "CSR row": (walk(f1, *parts, m=5_000), 40),
    }
    for what, (call, limit) in cases.items():
        (seconds,) = race(call, at_least=0.2 if quick else 1, rounds=3)
        yield {"what": what, "µs a row": at_most(1e6 * seconds / n, limit)}


@tabulated(
    "choose, macro F1",
    "Best of several calls, seconds of the thread.",
)
def choices(quick: bool = False) -> Iterator[Row]:
    """``omma.choose``, which fits every rule several times."""
    for n, limit in {2_000: 0.3, 50_000: 4.0}.items():
        eta, y = Shape("dense", n // (10 if quick else 1), 50).data()
        call = partial(omma.choose, eta, y, "macro_f1")
        call()
        (seconds,) = race(call, rounds=1 if quick else 3)
        yield {"rows": len(eta), "labels": 50, "s": at_most(seconds, limit)}


STREAM = """
import sys
from omma.cli import main
sys.exit(main(["stream", sys.argv[1], "--metric", "macro_f1"], standalone_mode=False))
"""


def stream(quick: bool = False) -> Iterator[Table]:
    """``omma stream`` on JSON lines of 20 labels, less what a stream of a few rows takes."""
    n = 2_000 if quick else 100_000
    eta, y = Shape("dense", n, 20).data()
    lines = [
        json.dumps({"id": i, "eta": row, "y": true}) + "\n"
        for i, (row, true) in enumerate(zip(eta.round(4).tolist(), y.tolist(), strict=True))
    ]
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        for rows in (10, 10, n):  # the first may compile
            path.write_text("".join(lines[:rows]), encoding="utf-8")
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            output_of(STREAM, path)
            seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    rate = (n - 10) / (seconds[2] - seconds[1])
    row = {"rows": n, "rows a second": at_least(rate, None if quick else 20_000)}
    yield Table("omma stream, JSON lines of 20 labels", "Time of the processor.", [row])


# Growth


@tabulated(
    "growth of time, macro F1",
    "Slope of a line through log-log points, each the best of at least 5 whole calls; sizes "
    "take turns. A fixed cost a row or a call makes it smaller than 1.",
)
def growth(quick: bool = False) -> Iterator[Row]:
    """Exponents of time in rows, labels and stored entries."""
    part = 8 if quick else 1
    n = 20_000 // part
    rows = [size // part for size in (10_000, 20_000, 40_000, 80_000, 160_000, 320_000)]
    labels = [25, 50, 100, 200, 400, 800]
    entries = [20, 40, 80, 160, 320]
    many = [2_000, 8_000, 32_000]
    series = {
        ("rows n", "m = 46", 1.05): (rows, [Shape("dense", size, 46) for size in rows]),
        ("labels m", f"n = {n:,}", None): (labels, [Shape("dense", n, m) for m in labels]),
        ("entries a row", f"CSR, n = {n:,}, m = 10,000", None): (
            entries,
            [Shape("csr", n, 10_000, size) for size in entries],
        ),
        ("labels m", f"CSR, n = {n:,}, 80 a row", None): (
            many,
            [Shape("csr", n, m, 80) for m in many],
        ),
    }
    for k in (None, 3):
        policy = omma.OMMA("macro_f1", k=k)
        for (what, at, limit), (sizes, shapes) in series.items():
            times = race(*(partial(omma.replay, policy, *shape.data()) for shape in shapes))
            yield {
                "in": what,
                "at": at,
                "k": str(k),
                "from": sizes[0],
                "to": sizes[-1],
                "first ms": 1e3 * times[0],
                "last ms": 1e3 * times[-1],
                "exponent": at_most(exponent(sizes, times), limit),
            }


@tabulated(
    "peak memory beyond inputs and predictions, macro F1",
    "MB that Python and NumPy allocate during a replay (tracemalloc; the kernels allocate "
    "nothing), less the predictions where they are kept. Rows are taken in blocks of about a "
    "million numbers, so n starts above two blocks. Flat: at most 1.1 times.",
)
def memory(quick: bool = False) -> Iterator[Row]:
    """Peak memory of a replay beyond its inputs and predictions, against the number of rows."""
    few, many = (50_000, 100_000) if quick else (50_000, 500_000)
    for kind, m, entries in (("dense", 46, 0), ("csr", 2_456, 77)):
        data = [Shape(kind, n, m, entries).data() for n in (few, many)]
        for k, keep in product((None, 3), (False, True)):
            small, large = (peak(eta, y, k, keep) for eta, y in data)
            yield {
                "layout": kind,
                "k": str(k),
                "predictions": "kept" if keep else "not kept",
                f"n = {few:,}": small / 1e6,
                f"n = {many:,}": large / 1e6,
                "times": at_most(large / small, 1.1),
            }


def peak(eta: Any, y: Any, k: int | None, keep: bool) -> float:
    """Bytes at the peak of a replay, beyond what was there before and the predictions."""
    policy = omma.OMMA("macro_f1", k=k)
    omma.replay(policy, eta[:100], y[:100], predictions=keep)
    gc.collect()
    tracemalloc.start()
    predictions = omma.replay(policy, eta, y, predictions=keep).predictions
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    parts = [predictions]
    if sparse.issparse(predictions):
        parts = [predictions.data, predictions.indices, predictions.indptr]
    return float(most - sum(part.nbytes for part in parts if part is not None))

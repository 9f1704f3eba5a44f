"""How time and memory grow."""

from __future__ import annotations

import tracemalloc
from functools import partial
from typing import Any

import omma
from benchmarks.clock import exponent, race
from benchmarks.shapes import Shape
from benchmarks.table import Row, Table, at_most

METRIC = "macro_f1"
CASES = [(k, keep) for k in (None, 3) for keep in (False, True)]


def growth(quick: bool) -> Table:
    """Exponents of time in rows, labels and stored entries."""
    table = Table(
        "growth of time, macro F1",
        "Slope of a line through log-log points, each the best of at least 5 whole calls; sizes "
        "take turns. A fixed cost a row or a call makes it smaller than 1.",
    )
    part = 8 if quick else 1
    n = 20_000 // part
    rows = [size // part for size in (10_000, 20_000, 40_000, 80_000, 160_000, 320_000)]
    labels = [25, 50, 100, 200, 400, 800]
    entries = [20, 40, 80, 160, 320]
    many = [2_000, 8_000, 32_000]
    by_rows = [Shape("dense", size, 46) for size in rows]
    by_labels = [Shape("dense", n, m) for m in labels]
    by_entries = [Shape("csr", n, 10_000, stored) for stored in entries]
    by_many = [Shape("csr", n, m, 80) for m in many]
    for k in (None, 3):
        table.rows += [
            grown("rows n", "m = 46", k, rows, by_rows, 1.05),
            grown("labels m", f"n = {n:,}", k, labels, by_labels),
            grown("entries a row", f"CSR, n = {n:,}, m = 10,000", k, entries, by_entries),
            grown("labels m", f"CSR, n = {n:,}, 80 a row", k, many, by_many),
        ]
    return table


def grown(
    what: str, at: str, k: int | None, sizes: list[int], shapes: list[Shape], limit: Any = None
) -> Row:
    """Fit the growth over some shapes."""
    policy = omma.OMMA(METRIC, k=k)
    times = race(*(partial(omma.replay, policy, *shape.data()) for shape in shapes))
    return {
        "in": what,
        "at": at,
        "k": str(k),
        "from": sizes[0],
        "to": sizes[-1],
        "first ms": 1e3 * times[0],
        "last ms": 1e3 * times[-1],
        "exponent": at_most(exponent(sizes, times), limit),
    }


def memory(quick: bool) -> Table:
    """Peak memory of a replay beyond its inputs and predictions, against the number of rows."""
    table = Table(
        "peak memory beyond inputs and predictions, macro F1",
        "MB that Python and NumPy allocate during a replay (tracemalloc; the kernels allocate "
        "nothing), less the predictions where they are kept. Rows are taken in blocks of about a "
        "million numbers, so n starts above two blocks. Flat: at most 1.1 times.",
    )
    few, many = (50_000, 100_000) if quick else (50_000, 500_000)
    for kind, m, entries in (("dense", 46, 0), ("csr", 2_456, 77)):
        peaks = [peaks_of(Shape(kind, n, m, entries)) for n in (few, many)]
        for (k, keep), small, large in zip(CASES, *peaks, strict=True):
            table.rows.append(
                {
                    "layout": kind,
                    "k": str(k),
                    "predictions": "kept" if keep else "not kept",
                    f"n = {few:,}": small / 1e6,
                    f"n = {many:,}": large / 1e6,
                    "times": at_most(large / small, 1.1),
                }
            )
    return table


def peaks_of(shape: Shape) -> list[int]:
    """Bytes at the peak of a replay, beyond what was there before and the predictions."""
    eta, y = shape.data()
    peaks = []
    for k, keep in CASES:
        policy = omma.OMMA(METRIC, k=k)
        omma.replay(policy, eta[:100], y[:100], predictions=keep)
        tracemalloc.start()
        trace = omma.replay(policy, eta, y, predictions=keep)
        peaks.append(tracemalloc.get_traced_memory()[1] - size_of(trace.predictions))
        tracemalloc.stop()
    return peaks


def size_of(predictions: Any) -> int:
    """Bytes of predictions."""
    if predictions is None:
        return 0
    if hasattr(predictions, "indptr"):
        return sum(
            part.nbytes for part in (predictions.data, predictions.indices, predictions.indptr)
        )
    return predictions.nbytes

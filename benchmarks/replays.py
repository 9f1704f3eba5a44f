"""Whole sequences: omma against the plain way, against the floor, and against a custom copy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

import omma
from benchmarks import plain
from benchmarks.clock import race
from benchmarks.shapes import Shape
from benchmarks.table import Row, Table, Target, all_of, at_least, at_most

METRICS = ("macro_f1", "macro_gmean", "micro_f1")
SMALL = Shape("dense", 7_926, 46)
MIDDLE = Shape("dense", 24_154, 195)
CLASSES = Shape("classes", 7_532, 20)
SPARSE = Shape("csr", 20_000, 2_456, 77)
LARGE = Shape("csr", 306_784, 13_330, 85)

# How many times as fast as the plain way, by shape and budget.
SPEED = {
    (SMALL, None): 2500,
    (SMALL, 3): 1000,
    (MIDDLE, None): 1000,
    **{(shape, k): 250 for shape in (SPARSE, LARGE) for k in (None, 3)},
}
# How many times the time of a fixed rule.
FLOOR = {(LARGE, 3, "macro_f1"): 1.2, (LARGE, 3, "macro_gmean"): 1.35}


def replays(quick: bool) -> Table:
    """Every shape, budget and metric."""
    plain_rows = 100 if quick else 500
    shapes = [SMALL, CLASSES, SPARSE] if quick else [SMALL, MIDDLE, CLASSES, SPARSE, LARGE]
    table = Table(
        "omma against the plain way and against the floor",
        f"Best of several runs that take turns, thread time. plain: NumPy + autograd, timed on the "
        f"first {plain_rows} rows and scaled to all; same: the part of these rows decided alike. "
        "omma: the whole call; kernel: trace.seconds, by the wall clock. floor: the whole call "
        "with fixed weights, TopK(k), or a Threshold that predicts as many labels.",
    )
    for shape in shapes:
        eta, y = shape.data()
        budgets = (1,) if shape.kind == "classes" else (None, 3)
        metrics = ("multiclass_gmean",) if shape.kind == "classes" else METRICS
        for k in budgets:
            for metric in metrics:
                table.rows.append(compare(shape, eta, y, metric, k, plain_rows, quick))
    return table


def compare(
    shape: Shape, eta: Any, y: Any, metric: str, k: int | None, plain_rows: int, quick: bool
) -> Row:
    """One row of the table."""
    policy = omma.OMMA(metric, k=k)
    trace = omma.replay(policy, eta, y)
    fixed = floor_of(trace, eta, k)
    first = eta[:plain_rows], y[:plain_rows]
    found: list[Any] = []
    kernel: list[float] = []
    calls = {
        "omma": lambda: kernel.append(omma.replay(policy, eta, y).seconds),
        "floor": lambda: omma.replay(fixed, eta, y, metric=metric),
        "plain": lambda: found.append(plain.replay(metric, *first, k)),
    }
    # The short calls run twice a round: the second time nothing else has used the cache.
    turns = [calls[name] for name in ("omma", "floor", "omma", "floor", "plain")]
    first_whole, first_floor, whole, floor, slow = race(*turns, rounds=2 if quick else 10)
    whole, floor = min(first_whole, whole), min(first_floor, floor)
    slow *= shape.n / plain_rows
    return {
        "shape": str(shape),
        "layout": shape.kind,
        "k": str(k),
        "metric": metric,
        "plain ms": 1e3 * slow,
        "omma ms": 1e3 * whole,
        "kernel ms": 1e3 * min(kernel),
        "plain/omma": at_least(slow / whole, SPEED.get((shape, k))),
        "floor ms": 1e3 * floor,
        "omma/floor": at_most(whole / floor, FLOOR.get((shape, k, metric))),
        "same": agreement(found[0], trace.predictions),
    }


def floor_of(trace: Any, eta: Any, k: int | None) -> Any:
    """A fixed rule that predicts about as many labels."""
    if k is not None:
        return omma.TopK(k)
    values = eta.data if sparse.issparse(eta) else eta.ravel()
    chosen = trace.counts.predicted.sum() / len(values)
    return omma.Threshold(float(np.quantile(values[:1_000_000], 1.0 - chosen)))


def agreement(found: list[Any], predictions: Any) -> Target:
    """Which part of the first rows is predicted alike."""
    expected = plain.labels_of(predictions[: len(found)])
    return all_of([np.array_equal(*pair) for pair in zip(found, expected, strict=True)])


def f1_copy(tp: float, fp: float, fn: float, tn: float) -> float:
    """F1 as a user would write it."""
    return 2 * tp / (2 * tp + fp + fn + 1e-9)


def custom(quick: bool) -> Table:
    """A user's own copy of F1 against the built-in, once both are compiled."""
    table = Table("a custom copy of macro F1 against the built-in", "Once compiled, whole calls.")
    copy = omma.metrics.custom(f1_copy, average="macro")
    for shape in [SMALL] if quick else [SMALL, MIDDLE, SPARSE]:
        eta, y = shape.data()
        for k in (None, 3):
            policies = omma.OMMA("macro_f1", k=k), omma.OMMA(copy, k=k)
            table.rows.append({"shape": str(shape), "k": str(k), **against(policies, eta, y)})
    return table


def against(policies: tuple[Any, Any], eta: Any, y: Any) -> Row:
    """The built-in and the custom metric on the same data."""
    kept = [omma.replay(policy, eta, y).predictions for policy in policies]
    calls = [partial(omma.replay, policy, eta, y) for policy in policies]
    built_in, own = race(*calls, rounds=7)
    return {
        "layout": "csr" if sparse.issparse(eta) else "dense",
        "built-in ms": 1e3 * built_in,
        "custom ms": 1e3 * own,
        "custom/built-in": at_most(own / built_in, 4),
        "same": agreement(plain.labels_of(kept[1]), kept[0]),
    }

"""The kernels are plain Python too: with the compiler switched off they decide the same.

That is how a debugger or a coverage tool gets into them. This file, run as a script, prints what a
small selection of them computes; the test compares that with the compiled ones.
"""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
from scipy import sparse
from strategies import class_stream, dense, interior_counts, one_hot, stepwise, stream

import omma


def replays():
    """Every kind of mean, with and without budget, of labels and estimates, dense and sparse."""
    names = ["macro_f1", "macro_gmean", "macro_hmean", "macro_qmean", "macro_mcc"]
    names += ["micro_balanced_accuracy"]
    cases = product(names, (None, 2), ("labels", "estimates"), (np.asarray, sparse.csr_array))
    for name, k, feedback, layout in cases:
        eta, y = stream(1, n=30)
        yield omma.replay(omma.OMMA(name, k=k, feedback=feedback), layout(eta), y, seed=1)
    for name, layout in product(
        ("accuracy", "gmean", "hmean", "qmean", "mcc", "kappa"), (np.asarray, sparse.csr_array)
    ):
        eta, y = class_stream(2, n=30)
        yield omma.replay(omma.OMMA(f"multiclass_{name}"), layout(eta), one_hot(y, 4))
    for name, k, layout in product(
        ("macro_precision", "micro_f1"), (None, 2), (np.asarray, sparse.csr_array)
    ):
        eta, y = stream(6, n=30)
        yield omma.replay(omma.Auto(name, k=k), layout(eta), y)
    total = omma.metric("multiclass_gmean") + omma.metric("macro_f1")
    yield omma.replay(omma.OMMA(total), *class_stream(3, n=30))
    yield omma.replay(omma.OMMA(omma.metrics.costs(np.eye(4) - 0.3)), *class_stream(3, n=30))


def wide_rows():
    """Rows and budgets large enough for every way to find the k best."""
    eta, y = stream(4, n=10, m=50)
    for k, layout in product((1, 3, 12, 50), (np.asarray, sparse.csr_array)):
        yield omma.replay(omma.OMMA("macro_f1", k=k), layout(eta), y, weights=np.arange(10))


def steps():
    for feedback, layout in product(("labels", "estimates"), (np.asarray, sparse.csr_array)):
        if feedback == "labels" or layout is np.asarray:
            eta, y = stream(5, n=8)
            policy = omma.OMMA("micro_f1", feedback=feedback)
            yield stepwise(policy, layout(eta), y)


def own_with_numpy(tp, fp, fn, tn):
    spread = np.sqrt(np.maximum(tp * tn, 1e-9)) + abs(tp - fp) ** 1.5
    return min(spread, 2.0) / (1 + np.exp(-np.log(tn + 0.5))) if tp > 0 else -tp


def own_metrics():
    metric = omma.metrics.custom(own_with_numpy, average="macro")
    for seed in range(5):
        yield metric.gradient(interior_counts(seed))


def numbers():
    """All of it as lists of numbers."""
    for trace in (*replays(), *wide_rows()):
        yield dense(trace.predictions).tolist()
        yield [trace.rule.slope.tolist(), trace.rule.offset.tolist(), trace.value]
    for predictions, learner in steps():
        yield predictions.tolist()
        yield [learner.rule.slope.tolist(), learner.rule.offset.tolist(), learner.value]
    for found in own_metrics():
        yield np.asarray(found).tolist()


def plain_numbers():
    """The same in a process without the compiler."""
    here = Path(__file__)
    script = (
        f"import json, sys, numba, {here.stem} as here;"
        "assert numba.config.DISABLE_JIT;"
        "sys.stdout.write(json.dumps(list(here.numbers())))"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(here.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


def test_without_the_compiler_the_same_is_decided():
    found, expected = plain_numbers(), list(numbers())
    assert len(found) == len(expected) > 100
    for one, other in zip(found, expected, strict=True):
        flat = [np.ravel(part) for part in one], [np.ravel(part) for part in other]
        # Rounding apart: compiled code may order a sum otherwise, or call another root.
        np.testing.assert_allclose(*map(np.concatenate, flat), rtol=1e-9, atol=1e-12)


def test_auto_without_the_compiler_warns_of_nothing():
    script = (
        "import omma; eta, y = omma.datasets.long_tail(n=20, m=3, seed=0); eta[:, 0] = 1.0;"
        "omma.replay(omma.Auto('macro_f1'), eta, y)"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]

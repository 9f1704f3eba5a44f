"""The kernels are plain Python too: with the compiler switched off they decide the same.

That is how a debugger or a coverage tool gets into them. Each function below goes through some of
the entries of the kernels; a process without the compiler runs them all, and the results are
compared with those of compiled code.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import cases
import numpy as np
import pytest
from streams import class_stream, dense

import omma

KERNELS = Path(omma.__file__).parent / "kernels"
ROWS = 12
LAYOUTS = (np.asarray, cases.csr)
PARTLY = ("OMMA macro_f1", "greedy plug_in", "auto limits", "forgetting auto")  # labels in part


def replays_and_steps():
    """Every policy of the table: dense and sparse replays, single rows, rules, labels in part."""
    for name, policy in cases.POLICIES.items():
        eta, y = cases.data(name, n=ROWS)
        if name in PARTLY:
            y = cases.labelled(policy, y.astype(float), "in part")
        for layout in LAYOUTS:
            rows = layout(eta)
            options = {"metric": cases.judge(policy), "weights": cases.weights_of(name, ROWS)}
            trace = omma.replay(policy, rows, y, **options)
            yield [dense(trace.predictions), trace.rule.slope, trace.rule.offset, trace.value]
            learner = omma.OnlineClassifier(policy, cases.M, metric=cases.judge(policy))
            for t in range(4):
                yield [dense(learner.predict(cases.row_of(rows, t)))]
                learner.update(y[t])
            yield [learner.value, learner.rule.slope]


def batches():
    """Rows that were decided before: learn_dense and learn_sparse."""
    eta, y = cases.data("OMMA macro_f1", n=ROWS)
    for policy in (omma.OMMA("macro_f1", prior=1.0), omma.OMMA("micro_f1", k=2, feedback="both")):
        for layout in LAYOUTS:
            predictions, delta = omma.step(policy, policy.init(cases.M), layout(eta), y)
            yield [dense(predictions), delta.cells]


def certificates():
    """certify_dense, certify_sparse, by_positive, mixture_of."""
    for name in ("auto", "OMMA macro_f1 k"):
        eta, y = cases.data(name, n=60)
        for layout in LAYOUTS:
            gap = omma.replay(cases.POLICIES[name], layout(eta), y, gap=True).gap
            yield [gap.value, gap.attainable]
    eta, ids = class_stream(3, 60, 4)
    gap = omma.replay(omma.Auto("multiclass_min_recall"), eta, ids, gap=True).gap
    yield [gap.value, gap.attainable]


def calibrations():
    """calibrate_dense and calibrate_sparse."""
    eta, y = cases.data("auto", n=ROWS)
    for layout in LAYOUTS:
        calibrator = omma.calibration.OnlineCalibrator(cases.M)
        calibrator.update(layout(eta), y)
        yield [dense(calibrator.predict(layout(eta)))]


def mixtures():
    """Evaluate and best_share, on dense and sparse rows."""
    eta, y = cases.data("OMMA macro_f1", n=ROWS)
    for layout in LAYOUTS:
        mixture = omma.FrankWolfe("macro_gmean").fit(layout(eta), y)
        yield [mixture.shares, *(rule.slope for rule in mixture.rules)]


GROUPS = (replays_and_steps, batches, certificates, calibrations, mixtures)


def numbers_of(group):
    """What a group computes, as lists of numbers."""
    return [
        np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts]).tolist()
        for parts in group()
    ]


def run_all():
    """What all groups compute, and the names of the functions of the kernels that ran."""
    names = set()

    def note(frame, event, _):
        if event == "call" and str(KERNELS) in frame.f_code.co_filename:
            names.add(frame.f_code.co_name)

    sys.setprofile(note)
    results = {group.__name__: numbers_of(group) for group in GROUPS}
    sys.setprofile(None)
    return results, sorted(names)


def in_plain_python(script, *options):
    """What a script writes in a process without the compiler."""
    paths = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    ran = subprocess.run(
        [sys.executable, *options, "-c", script],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


@pytest.fixture(scope="module")
def plain():
    script = (
        f"import json, sys, numba, {Path(__file__).stem} as here;"
        "assert numba.config.DISABLE_JIT;"
        "sys.stdout.write(json.dumps(here.run_all()))"
    )
    return json.loads(in_plain_python(script, "-W", "ignore"))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_without_the_compiler_the_same_is_decided(plain, group):
    ours, compiled = plain[0][group.__name__], numbers_of(group)
    assert len(ours) == len(compiled) > 0
    for mine, other in zip(ours, compiled, strict=True):
        # Rounding apart: plain Python has no fused multiply-add, and calls other roots.
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


def test_every_entry_ran_without_the_compiler(plain):
    sources = "".join(path.read_text(encoding="utf-8") for path in KERNELS.glob("*.py"))
    entries = re.findall(r"^@entry\ndef (\w+)", sources, re.MULTILINE)
    assert len(entries) > 15
    assert set(entries) <= set(plain[1])


def test_auto_without_the_compiler_warns_of_nothing():
    script = (
        "import omma; eta, y = omma.datasets.long_tail(n=20, m=3, seed=0); eta[:, 0] = 1.0;"
        "omma.replay(omma.Auto('macro_f1'), eta, y)"
    )
    in_plain_python(script, "-W", "error::RuntimeWarning")

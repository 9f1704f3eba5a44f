"""The recipes of CONTRIBUTING.md, done in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

METRIC = """
import numpy as np
from scipy import sparse
from omma.cli.list import metrics
import omma

name = "negative_predictive_value"
assert {name, f"macro_{name}", f"micro_{name}"} <= set(omma.metrics.NAMES)
assert name in {row["metric"] for row in metrics()}
eta, y = omma.datasets.long_tail(n=60, m=4, seed=0)
for one in map(omma.metric, (f"macro_{name}", f"micro_{name}")):
    policy = omma.OMMA(one)
    trace = omma.replay(policy, eta, y)
    thin = omma.replay(policy, sparse.csr_array(eta), sparse.csr_array(y))
    assert (thin.predictions.toarray() == trace.predictions).all()
    learner = omma.OnlineClassifier(policy, n_labels=4)
    for row, true in zip(eta, y):
        learner.predict(row)
        learner.update(true)
    assert learner.value == trace.value == one.value(trace.counts)
    counts, step = omma.Counts([9.0, 5.0], [14.0, 9.0], [12.0, 7.0], 40.0), 1e-4
    slope, offset = one.gradient(counts)
    for part, found in (("tp", slope), ("predicted", offset)):
        for label in range(2):
            values = []
            for sign in (1, -1):
                moved = counts.copy()
                getattr(moved, part)[label] += sign * step
                values.append(one.value(moved))
            slow = (values[0] - values[1]) / (2 * step) * counts.n
            assert abs(slow - found[label]) < 1e-5, (one, part, slow, found[label])
tn, fn = 40 - 14 - 12 + 9, 12 - 9
assert np.isclose(omma.metric(name).value(omma.Counts([9], [14], [12], 40)), tn / (tn + fn))
"""

POLICY = '''"""Predict where a probability is above 1 / m, the share of each of m labels."""

from dataclasses import dataclass

import numpy as np

from omma.plan import fixed_plan
from omma.policies.fixed import FixedPolicy


@dataclass(frozen=True)
class Lenient(FixedPolicy):
    """Predict from one over the number of labels on."""

    @property
    def objective(self):
        return None

    @property
    def budget(self):
        return None

    def plan(self, m):
        return fixed_plan(np.ones(m), np.full(m, -1.0 / m), None)
'''

ENTRY = 'PolicyEntry("lenient", "Lenient", "one over their number", STILL, lambda *_: Lenient()),'

CHECK = """
import omma
from omma.cli.list import policies
from omma.comparison import NAMES
from omma.policies.lenient import Lenient
from scipy import sparse

assert "lenient" in NAMES
assert {"policy": "lenient", "labels": False, "stream": True}.items() <= next(
    row for row in policies() if row["policy"] == "lenient"
).items()
eta, y = omma.datasets.long_tail(n=60, m=4, seed=0)
found = omma.compare(eta, y, metrics=["macro_f1"], policies=["lenient"], seeds=[0])
trace = omma.replay(Lenient(), eta, y, metric="macro_f1")
assert found.cell("lenient", "macro_f1").mean == trace.value
assert "Lenient" in found.to_markdown()
assert ((eta >= 0.25) == trace.predictions).all()
thin = omma.replay(Lenient(), sparse.csr_array(eta), sparse.csr_array(y), metric="macro_f1")
assert (thin.predictions.toarray() == trace.predictions).all()
learner = omma.OnlineClassifier(Lenient(), n_labels=4, metric="macro_f1")
learner.predict(eta[0])
learner.update(y[0])
learner.save("lenient.npz")
again = omma.OnlineClassifier.load("lenient.npz")
assert again.policy == Lenient() and again.value == learner.value
"""


@pytest.fixture
def copy(tmp_path):
    """The package, to change as a contributor would; it runs as plain Python, uncompiled."""
    skip = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    shutil.copytree(ROOT / "src" / "omma", tmp_path / "omma", ignore=skip)

    def assert_runs(code):
        settings = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, env=settings, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    return tmp_path / "omma", assert_runs


def added(path, before, text):
    """Write some lines before others that occur once."""
    source = path.read_text(encoding="utf-8")
    assert source.count(before) == 1
    path.write_text(source.replace(before, text + before), encoding="utf-8")


def test_a_metric_is_one_statement(copy):
    package, assert_runs = copy
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"```python\n(\w+ = Binary\(.*?\n\)\n)```", recipes, re.DOTALL)
    added(package / "metrics" / "catalog.py", "\n# Every statement above", statement)
    assert_runs(METRIC)


def test_a_policy_is_its_file_and_one_line(copy):
    package, assert_runs = copy
    (package / "policies" / "lenient.py").write_text(POLICY, encoding="utf-8")
    registry = package / "policies" / "registry.py"
    added(registry, "\n\nHAT_ETA =", "\nfrom omma.policies.lenient import Lenient")
    added(registry, '    *_both("omma"', f"    {ENTRY}\n")
    assert_runs(CHECK)

"""Machine code on disk: found again by a new process, never after a change."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from omma.kernels.cache import identity

from omma.kernels import cache

PACKAGE = Path(cache.__file__).parents[1]

COUNTED = """
import json, sys
from numba.core import event
import omma

class Count(event.Listener):
    def __init__(self):
        self.names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].__name__)
    def on_end(self, event):
        pass

counter = Count()
event.register("numba:compile", counter)
"""
OWN = """
import threading
SHARE = float(sys.argv[1])
HELD = {held}

def own(tp, fp, fn, tn):
    return tp / (tp + SHARE * (fp + fn) + 0.01) + 0.0 * {term}

metric = omma.metrics.custom(own, average="macro")
eta, y = omma.datasets.long_tail(n=60, m=5)
chosen = omma.replay(omma.OMMA(metric), eta, y).predictions.sum(axis=0).tolist()
print(json.dumps([len(counter.names), chosen]))
"""


def run(code, folder, *arguments, source=PACKAGE.parent):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(source)}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_custom_metric_is_found_again_and_a_changed_one_is_not(tmp_path):
    code = COUNTED + OWN.format(held=0, term="HELD")
    compiled, first = run(code, tmp_path, "0.5")
    assert compiled > 0
    assert run(code, tmp_path, "0.5") == [0, first]
    compiled, other = run(code, tmp_path, "0.05")  # the same source, another global
    assert compiled > 0
    assert other != first
    assert run(code, tmp_path, "0.05") == [0, other]
    assert run(code, tmp_path, "0.5") == [0, first]


def test_a_change_of_a_global_after_compiling_is_not_kept(tmp_path):
    """What was compiled stays in use, so it must not be saved as what the source now says."""
    code = COUNTED + OWN.format(held=0, term="HELD")
    _, expected = run(code, tmp_path / "other", "0.05")
    made = 'metric = omma.metrics.custom(own, average="macro")\n'
    run(code.replace(made, made + "SHARE = 0.05\n"), tmp_path, "0.5")
    compiled, found = run(code, tmp_path, "0.05")
    assert compiled > 0
    assert found == expected


HELPER = """
counts = __import__("numpy").full((3, 2), 4.0)
from omma.kernels.certificate import by_positive
from omma.kernels.layout import TOTALS
from omma.metrics import metric
import numpy as np
out, totals = np.zeros(2), np.full(TOTALS, 10.0)
by_positive(metric("macro_f1").term(), 0.0, counts, totals, out)
print(json.dumps([len(counter.names), out.tolist()]))
"""


def test_a_change_in_another_file_of_the_kernels_compiles_again(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "omma", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "cache"
    compiled, _ = run(COUNTED + HELPER, folder, source=tmp_path)
    assert compiled > 0
    assert run(COUNTED + HELPER, folder, source=tmp_path)[0] == 0
    helper = tmp_path / "omma" / "kernels" / "layout.py"
    helper.touch()  # a copy has other times: that is no change
    assert run(COUNTED + HELPER, folder, source=tmp_path)[0] == 0
    helper.write_text(helper.read_text(encoding="utf-8") + "\n# a change\n", encoding="utf-8")
    assert run(COUNTED + HELPER, folder, source=tmp_path)[0] > 0


def test_import_works_where_no_folder_can_be_written(tmp_path):
    code = """
from numba.core.caching import CacheImpl
CacheImpl._locator_classes = []
import omma
print(omma.metric("f1").value(omma.Counts([2], [3], [4], 10)))
"""
    assert run(code, tmp_path) == pytest.approx(4 / 7)


def test_files_of_own_entries_start_anew_and_never_give_another_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_OWN", 3)
    file = cache.OwnFile(str(tmp_path), "kernel", cache.STAMP)
    for number in range(7):
        file.save(("key", number), number)
        assert file.load(("key", number)) == number
    assert len(list(tmp_path.glob("*.nbc"))) == 3
    assert file.load(("key", 0)) is None
    assert cache.OwnFile(str(tmp_path), "kernel", "other sources").load(("key", 6)) is None
    file._save_data(file._load_index()[("key", 6)], (("key", 9), 9))  # as by another process
    assert file.load(("key", 6)) is None


# Identity


def scaled(factor, default=1.0):
    def own(tp, fp, fn, tn, power=default):
        return factor * tp

    return own


@given(first=st.floats(), second=st.floats())
def test_what_a_function_holds_is_part_of_its_identity(first, second):
    same = repr(first) == repr(second)
    assert (identity(scaled(first)) == identity(scaled(second))) == same
    assert (identity(scaled(1.0, first)) == identity(scaled(1.0, second))) == same


def with_globals(source, **values):
    space = dict(values)
    exec(source, space)
    return space["own"]


def test_globals_and_called_functions_are_part_of_it():
    source = "def own(tp, fp, fn, tn): return helper(tp) * SCALE + abs(fp)"
    base = identity(with_globals(source, helper=scaled(1.0), SCALE=2.0))
    assert base == identity(with_globals(source, helper=scaled(1.0), SCALE=2.0))
    assert base != identity(with_globals(source, helper=scaled(3.0), SCALE=2.0))
    assert base != identity(with_globals(source, helper=scaled(1.0), SCALE=2))
    assert base != identity(with_globals(source, helper=scaled(1.0), SCALE=2.0, abs=scaled(1.0)))
    inner = "def own(tp, fp, fn, tn): return (lambda x: x * SCALE)(tp)"
    assert identity(with_globals(inner, SCALE=1)) != identity(with_globals(inner, SCALE=2))


def test_a_function_may_call_itself():
    source = "def own(tp, fp, fn, tn): return own(tp - 1, fp, fn, tn) if tp > 1 else tp"
    assert identity(with_globals(source)) == identity(with_globals(source))


@pytest.mark.parametrize("held", [object(), [1.0], {"a": 1}, sys.stdin, json])
def test_what_cannot_be_told_has_no_identity(held):
    assert identity(scaled(held)) is None
    assert identity(with_globals("def own(tp): return tp + HELD", HELD=held)) is None


class Gone:
    """A class that a later version does not have."""


def test_an_index_of_classes_that_are_gone_is_one_of_other_sources(tmp_path, monkeypatch):
    cache.KernelFile(str(tmp_path), "kernel", "before").save(Gone, "code")
    assert cache.KernelFile(str(tmp_path), "kernel", "before").load(Gone) == "code"
    monkeypatch.delattr(sys.modules[__name__], "Gone")
    later = cache.KernelFile(str(tmp_path), "kernel", "after")
    assert later.load("another") is None
    later.save("another", "code")
    assert later.load("another") == "code"

"""Machine code on disk: loaded by a new process, never after a change, never from other users."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from omma.kernels import jit

PACKAGE = Path(jit.__file__).parents[1]
KERNELS = sorted(path.name for path in PACKAGE.glob("kernels/*.py"))
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has neither modes nor user ids")

# Prints how many entries of the kernels were compiled and how many were loaded, and a result.
# Helpers have no place on disk: they are parts of entries, and of what users compile.
STATISTICS = """
import json, sys
import numba
before = numba.config.CACHE_DIR
import omma

def answer(result):
    modules = [module for name, module in sys.modules.items() if name.startswith("omma.kernels.")]
    statistics = {
        id(function): function.stats
        for module in modules
        for function in vars(module).values()
        if hasattr(function, "stats")
        if function.stats.cache_path or omma.kernels.jit.CACHE is None
    }.values()
    compiled = sum(sum(one.cache_misses.values()) for one in statistics)
    loaded = sum(sum(one.cache_hits.values()) for one in statistics)
    print(json.dumps([compiled, loaded, result]))
"""
REPLAY = """
eta, y = omma.datasets.long_tail(n=60, m=5)
answer(omma.replay(omma.OMMA("macro_f1"), eta, y).value)
"""
OWN = """
eta, y = omma.datasets.long_tail(n=60, m=5)
SHARE = float(sys.argv[1])

def own(tp, fp, fn, tn):
    return tp / (tp + SHARE * (fp + fn) + 0.01)

metric = omma.metrics.custom(own, average="macro")
answer(omma.replay(omma.OMMA(metric), eta, y).predictions.sum(axis=0).tolist())
"""
# Compiles in no time: one kernel without helpers of other files.
SMALL = """
import numpy as np
from omma.kernels.fingerprint import fingerprints_dense
out = np.zeros(1)
fingerprints_dense(np.full((1, 2), 0.5), np.zeros(1, dtype=np.int64), out)
answer(out.tolist())
"""
OTHERS = """
@numba.njit(cache=True)
def double(value):
    return 2 * value
double(1.0)
answer([before == numba.config.CACHE_DIR, double.stats.cache_path])
"""


def run(code, *arguments, source=PACKAGE.parent, **environment):
    """The answer of a new process, and what it wrote to standard error."""
    settings = {**os.environ, "PYTHONPATH": str(source), **environment}
    settings = {name: str(value) for name, value in settings.items() if value is not None}
    ran = subprocess.run(
        [sys.executable, *([code] if isinstance(code, Path) else ["-c", code]), *arguments],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1]), ran.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder to which one process has written its machine code, and the value it got."""
    folder = tmp_path_factory.mktemp("cache")
    (compiled, loaded, value), _ = run(STATISTICS + REPLAY, NUMBA_CACHE_DIR=folder)
    assert compiled > 0
    assert loaded == 0
    return folder, value


def test_a_second_process_compiles_nothing(cache):
    folder, value = cache
    (compiled, loaded, again), _ = run(STATISTICS + REPLAY, NUMBA_CACHE_DIR=folder)
    assert (compiled, again) == (0, value)
    assert loaded > 0


@posix
def test_machine_code_is_readable_by_its_user_alone(cache):
    (folder,) = cache[0].iterdir()
    assert folder.name.startswith("omma-kernels-")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_loops_of_a_metric_of_ones_own_are_loaded(tmp_path):
    """The metric itself is compiled by each process; the loops that call it are not."""
    (compiled, _, first), _ = run(STATISTICS + OWN, "0.5", NUMBA_CACHE_DIR=tmp_path)
    assert compiled > 0
    (compiled, loaded, again), _ = run(STATISTICS + OWN, "0.5", NUMBA_CACHE_DIR=tmp_path)
    assert (compiled, again) == (0, first)
    assert loaded > 0
    (compiled, _, other), _ = run(STATISTICS + OWN, "0.05", NUMBA_CACHE_DIR=tmp_path)
    assert compiled == 0  # the same loops call another metric
    assert other != first


# Never stale


def test_a_change_in_another_file_of_the_kernels_compiles_again(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "omma", ignore=shutil.ignore_patterns("__pycache__"))
    options = {"source": tmp_path, "NUMBA_CACHE_DIR": tmp_path / "cache"}
    code = STATISTICS + SMALL
    assert run(code, **options)[0][0] > 0
    assert run(code, **options)[0][0] == 0
    other = tmp_path / "omma" / "kernels" / "layout.py"
    other.touch()  # a copy has other times: that is no change
    assert run(code, **options)[0][0] == 0
    other.write_text(other.read_text(encoding="utf-8") + "\n# a change\n", encoding="utf-8")
    assert run(code, **options)[0][0] > 0


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Let ``cache_folder`` choose below a folder of the test."""
    monkeypatch.setattr(jit.config, "CACHE_DIR", str(tmp_path / "chosen"))
    return tmp_path / "chosen"


def test_a_change_in_any_file_of_the_kernels_is_another_folder(tmp_path, in_folder, monkeypatch):
    sources = tmp_path / "kernels"
    shutil.copytree(PACKAGE / "kernels", sources, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "files", lambda package: sources)
    names = {jit.cache_folder().name}
    for name in KERNELS:
        path = sources / name
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        names.add(jit.cache_folder().name)
        path.write_bytes(before)
    assert len(names) == len(KERNELS) + 1
    assert jit.cache_folder().name in names


# Nobody else's code


@posix
def test_a_folder_of_somebody_else_is_refused(in_folder, monkeypatch):
    jit.cache_folder()
    monkeypatch.setattr(os, "getuid", lambda: 12345678)
    with pytest.warns(RuntimeWarning, match="belongs to another user.* set NUMBA_CACHE_DIR"):
        assert jit.cache_folder() is None


@posix
def test_a_link_to_a_folder_is_refused(in_folder, tmp_path):
    folder = jit.cache_folder()
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.warns(RuntimeWarning):
        assert jit.cache_folder() is None


@posix
def test_a_folder_that_was_open_to_others_is_closed(in_folder):
    jit.cache_folder().chmod(0o777)
    assert stat.S_IMODE(jit.cache_folder().stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_without_a_choice_it_lies_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setattr(jit.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jit.cache_folder().parent == tmp_path / "omma"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jit.cache_folder().parent == tmp_path / ".cache" / "omma"


def test_where_nothing_can_be_written_kernels_work_all_the_same(tmp_path):
    (tmp_path / "file").touch()  # no folder can be made below it, not even by root
    for below in ({"NUMBA_CACHE_DIR": tmp_path / "file"}, {"XDG_CACHE_HOME": tmp_path / "file"}):
        options = {"NUMBA_CACHE_DIR": None, "HOME": tmp_path / "file", **below}
        (compiled, _, result), errors = run(STATISTICS + SMALL, **options)
        assert compiled > 0
        assert 0 < result[0] < 1
        assert errors == ""


def test_the_configuration_of_numba_stays_as_it_is_for_others(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(STATISTICS + OTHERS, encoding="utf-8")
    for chosen in (None, tmp_path / "chosen"):
        (_, _, (unchanged, path)), _ = run(
            script, NUMBA_CACHE_DIR=chosen, XDG_CACHE_HOME=tmp_path / "home"
        )
        assert unchanged
        assert "omma-kernels" not in path
        assert str(chosen or tmp_path / "__pycache__") in path

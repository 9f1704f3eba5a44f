"""Waiting for the compiler: a line where it takes long, silence where not, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import pytest
from numba.extending import overload

from omma.kernels import jit

SOURCE = Path(jit.__file__).parents[2]
LINE = "omma: compiling for this machine, once…\n"

COLD = """
import omma
eta, y = omma.datasets.long_tail(n=50, m=8)
omma.replay(omma.OMMA("macro_f1"), eta, y)
"""
INTERRUPTED = """
import sys
from numba.core import event
import omma

class Tell(event.Listener):
    def on_start(self, event):
        sys.stdout.write("compiling\\n")
        sys.stdout.flush()
    def on_end(self, event):
        pass

eta, y = omma.datasets.long_tail(n=50, m=8)
event.register("numba:compile", Tell())
try:
    omma.replay(omma.OMMA("macro_f1"), eta, y)
except KeyboardInterrupt:
    sys.stdout.write("interrupted\\n")
    sys.stdout.flush()
    if sys.argv[1] == "again":
        omma.replay(omma.OMMA("macro_f1"), eta, y)
        sys.stdout.write("answered\\n")
"""


def start(code, folder, *arguments, **environment):
    """A new process with nothing on disk."""
    settings = {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(SOURCE), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# A line


def slow_kernel(seconds):
    """A kernel that takes so long to compile, and a helper of it that is compiled before that."""

    def wait(value):
        return value

    @overload(wait)
    def _wait(value):
        time.sleep(seconds)
        return lambda value: value

    def quick(value):
        return value + 1.0

    def kernel(value):
        return wait(helper(value))

    quick.__module__ = kernel.__module__ = "omma.kernels.of_a_test"
    helper = jit.helper(quick)
    return jit.entry(kernel)


@pytest.fixture
def loud(monkeypatch):
    monkeypatch.delenv("OMMA_QUIET", raising=False)
    monkeypatch.setattr(jit, "CACHE", None)  # compiled, whatever is on disk
    monkeypatch.setattr(jit, "PATIENCE", 60.0)
    slow_kernel(0.0)(1.0)  # the compiler itself takes a second to start
    monkeypatch.setattr(jit, "PATIENCE", 0.3)
    monkeypatch.setattr(jit.ANNOUNCER, "said", False)


def test_what_compiles_for_long_is_said_once_on_standard_error(loud, capfd):
    assert slow_kernel(1.0)(1.0) == 2.0
    assert capfd.readouterr() == ("", LINE)
    assert slow_kernel(1.0)(1.0) == 2.0  # another one: who waits knows already
    assert capfd.readouterr() == ("", "")


def test_what_compiles_for_a_short_time_is_not_mentioned(loud, monkeypatch, capfd):
    monkeypatch.setattr(jit, "PATIENCE", 60.0)
    assert slow_kernel(0.0)(1.0) == 2.0
    assert capfd.readouterr().err == ""


def test_functions_of_others_are_not_mentioned(loud, capfd):
    @numba.njit
    def another(value):
        return value + 1.0

    def wait(value):
        return value

    @overload(wait)
    def _wait(value):
        time.sleep(0.6)
        return lambda value: value

    @numba.njit
    def others(value):
        return wait(another(value))

    assert others(1.0) == 2.0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("setting", "said"), [("1", ""), ("0", LINE)])
def test_the_first_replay_says_why_it_takes_long_unless_it_is_to_be_quiet(tmp_path, setting, said):
    child = start(COLD, tmp_path, OMMA_QUIET=setting)
    _, errors = child.communicate(timeout=600)
    assert child.returncode == 0
    assert errors == said


@pytest.mark.parametrize(("setting", "lines"), [("1", 0), ("yes", 0), ("0", 1), ("", 1)])
def test_a_setting_silences(monkeypatch, capfd, setting, lines):
    monkeypatch.setenv("OMMA_QUIET", setting)
    jit.announce()
    assert capfd.readouterr().err == LINE * lines


def test_a_process_without_standard_error_is_no_trouble(monkeypatch, capfd):
    monkeypatch.delenv("OMMA_QUIET", raising=False)
    monkeypatch.setattr(sys, "stderr", None)
    jit.announce()
    assert capfd.readouterr() == ("", "")


def test_errors_of_the_compiler_reach_the_caller(loud):
    def wrong(value):
        return value.no_such_attribute

    with pytest.raises(numba.TypingError):
        jit.entry(wrong)(1.0)


# Ctrl-C


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("then", ["end", "again"])
def test_ctrl_c_ends_compiling_and_the_next_call_answers(tmp_path, then):
    lines = []
    with start(INTERRUPTED, tmp_path, then) as child:
        reader = threading.Thread(target=lambda: lines.extend(child.stdout))
        assert child.stdout.readline() == "compiling\n"
        reader.start()
        # LLVM may lose a Ctrl-C that meets one of its callbacks: people press it again.
        for _ in range(20):
            time.sleep(0.3)
            if "interrupted\n" in lines:
                break
            child.send_signal(signal.SIGINT)
        assert child.wait(timeout=600) == 0, child.stderr.read()
        reader.join()
    assert "interrupted\n" in lines
    assert lines[-1] == ("answered\n" if then == "again" else "interrupted\n")

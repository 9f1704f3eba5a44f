"""Waiting for the compiler: a line where it takes long, silence where not, and Ctrl-C."""

import gc
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core import event, types
from numba.extending import overload
from omma.kernels.pointer import Held

from omma.kernels import compiling, kinds, lean
from omma.kernels.jit import entry, helper

SOURCE = Path(compiling.__file__).parents[2]

INTERRUPTED = """
import sys, time
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


@pytest.fixture
def loud(monkeypatch):
    monkeypatch.delenv("OMMA_QUIET", raising=False)
    monkeypatch.setattr(compiling, "LONG", 0.02)


def waited(seconds, compiles=True):
    def work():
        time.sleep(seconds)
        return threading.current_thread()

    return compiling._waited_for(work, lambda: compiles, "the replay")


def test_what_compiles_for_long_is_said_once_on_standard_error(loud, capfd):
    assert waited(0.3) is not threading.current_thread()
    said = capfd.readouterr()
    assert said.err == "omma: compiling the replay, once for this machine…\n"
    assert said.out == ""


@pytest.mark.parametrize(("seconds", "compiles"), [(0.0, True), (0.3, False)])
def test_short_compilations_and_long_loads_are_not_mentioned(loud, capfd, seconds, compiles):
    waited(seconds, compiles)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("setting", "lines"), [("1", 0), ("yes", 0), ("0", 1), ("", 1)])
def test_a_setting_silences(monkeypatch, capfd, setting, lines):
    monkeypatch.setenv("OMMA_QUIET", setting)
    compiling.say("hello")
    assert capfd.readouterr().err.count("\n") == lines


def test_a_process_without_standard_error_is_no_trouble(monkeypatch, capfd):
    monkeypatch.delenv("OMMA_QUIET", raising=False)
    monkeypatch.setattr(sys, "stderr", None)
    compiling.say("hello")
    assert capfd.readouterr() == ("", "")


def test_the_line_names_the_kernel_and_the_kind_of_metric():
    rate = kinds.Rate((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), 0.0)
    held = Held(numba.typeof(kinds.Macro(1.0, rate)))
    assert compiling._subject((numba.typeof(1.0), held)) == " of macro rate metrics"
    own = Held(numba.typeof(kinds.Macro(1.0, kinds.Own(numba.njit(abs_of), None))))
    assert compiling._subject((own,)) == " of your own metric"
    assert compiling._subject((numba.typeof(1.0),)) == ""


def abs_of(tp, fp, fn, tn):
    return abs(tp)


def test_errors_of_the_compiler_reach_the_caller():
    @entry("what cannot be")
    def wrong(x):
        return x.no_such_attribute

    with pytest.raises(numba.TypingError):
        wrong(1.0)


def test_an_entry_compiles_when_called_by_compiled_code():
    @entry("an inner function")
    def inner(x):
        return x + 1.0

    @entry("an outer function")
    def outer(x):
        return inner(x) * 2.0

    assert outer(1.0) == 4.0
    assert inner(np.float32(1.0)) == 2.0


def started(tmp_path, then):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, then],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(child):
    """Wait for the child to compile, interrupt it; how long until it noticed."""
    assert child.stdout.readline() == "compiling\n"
    time.sleep(0.3)
    before = time.monotonic()
    child.send_signal(signal.SIGINT)
    while child.stdout.readline() != "interrupted\n":
        assert child.poll() is None, child.stderr.read()
    return time.monotonic() - before


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_works_while_compiling_and_the_process_ends_in_order(tmp_path):
    child = started(tmp_path, "end")
    assert interrupt(child) < 2.0
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_after_ctrl_c_the_next_call_answers(tmp_path):
    child = started(tmp_path, "again")
    interrupt(child)
    out, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors
    assert out.endswith("answered\n")


@pytest.mark.parametrize("on", [True, False])
def test_the_garbage_collector_rests_while_threads_compile_and_no_longer(on):
    was, seen = gc.isenabled(), []
    (gc.enable if on else gc.disable)()
    try:
        with compiling._rest():
            seen.append(gc.isenabled())
            with compiling._rest():  # another thread's
                pass
            seen.append(gc.isenabled())
        seen.append(gc.isenabled())
    finally:
        (gc.enable if was else gc.disable)()
    assert seen == [False, False, on]


@helper
def doubled(value):
    return value + value


@entry("a test")
def tripled(value):
    return doubled(value) + value


def test_helpers_are_parts_of_their_callers_and_have_no_machine_code():
    assert tripled(2.0) == 6.0
    doubled.compile((numba.float64,))  # where its caller came from disk, nobody asked for it yet
    found = doubled.overloads[numba.float64,]
    assert isinstance(found.library, lean.Part)
    assert found.library.get_pointer_to_function(found.fndesc.llvm_func_name) == 0


def multiplied(value):
    return value * 2.5 - -value


def test_what_an_operator_returns_is_found_once_for_all_kernels(monkeypatch):
    entry("a first kernel")(multiplied)(3.0)
    asked = []
    get_call_type = types.Function.get_call_type

    def counted(self, context, args, kws):
        asked.append(self.typing_key)
        return get_call_type(self, context, args, kws)

    monkeypatch.setattr(types.Function, "get_call_type", counted)

    @entry("a second kernel, not on disk")
    def again(value):
        return value * 3.5 - -value

    assert again(2.0) == 9.0
    assert not {operator.mul, operator.sub, operator.neg} & set(asked)


class Money(NamedTuple):
    amount: float


def test_an_operator_that_learns_something_new_is_asked_again():
    @entry("a kernel before")
    def before(value):
        return -value

    assert before(2.0) == -2.0

    @overload(operator.neg)
    def owed(value):
        if getattr(value, "instance_class", None) is Money:
            return lambda value: Money(-value.amount)
        return None

    @entry("a kernel after")
    def after(value):
        return -value

    @entry("a kernel for what is new")
    def new(value):
        return (-value).amount

    assert (after(2.0), new(Money(3.0))) == (-2.0, -3.0)


def test_steps_of_the_compiler_that_no_kernel_needs_are_left_out():
    ran = set()

    class Note(event.Listener):
        def on_start(self, event):
            ran.add(event.data["name"])

        def on_end(self, event):
            pass

    @entry("a kernel, not on disk")
    def fresh(value):
        return value + 1.0

    note = Note()
    event.register("numba:run_pass", note)
    try:
        assert fresh(1.0) == 2.0
    finally:
        event.unregister("numba:run_pass", note)
    assert any("native_lowering" in name for name in ran)
    left_out = {step._name for step in lean.LEFT_OUT}
    assert not {name for name in ran for step in left_out if step in name}

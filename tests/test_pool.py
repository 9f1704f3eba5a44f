"""Work in threads: everything is run once, errors are raised, Ctrl-C keeps what has finished."""

import _thread
import threading
import time

import pytest
from hypothesis import given, strategies as st

from omma._pool import run_all


@given(st.lists(st.integers(), max_size=30), st.integers(1, 4))
def test_every_task_is_run_once_whatever_the_number_of_threads(tasks, n_jobs):
    found = []
    here = threading.get_ident()

    def keep(task, result):
        assert threading.get_ident() == here
        found.append((task, result))

    assert run_all(tasks, lambda task: -task, keep, n_jobs=n_jobs, progress=False)
    assert sorted(found) == sorted((task, -task) for task in tasks)


def test_an_error_is_raised_and_no_other_task_begins():
    begun = []

    def run(task):
        begun.append(task)
        time.sleep(0.01)
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task 0"):
        run_all(range(200), run, lambda task, result: None, n_jobs=1, progress=False)
    assert len(begun) < 200


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("by_signal", [True, False])
def test_ctrl_c_lets_what_runs_finish_and_begins_nothing_more(by_signal):
    found, begun = {}, []

    def run(task):
        begun.append(task)
        if task == 3:
            if not by_signal:
                raise KeyboardInterrupt
            _thread.interrupt_main()  # what Ctrl-C does
            time.sleep(0.3)
        return task

    assert not run_all(range(500), run, found.__setitem__, n_jobs=1, progress=False)
    assert set(found) >= {0, 1, 2}
    assert (3 in found) == by_signal
    assert set(begun) - set(found) <= {3}
    assert by_signal is False or max(begun) == 3


def test_progress_goes_to_standard_error(capsys):
    run_all([1, 2], str, lambda task, result: None, n_jobs=1, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "2/2" in printed.err

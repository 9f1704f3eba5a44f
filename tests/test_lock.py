"""One process at a time may write a file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import omma
from omma._lock import InUseError, locked

HOLD = """
from omma._lock import locked
with locked("s", "omma stream"):
    print("locked", flush=True)
    input()
"""


@pytest.fixture
def holder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(Path(omma.__file__).parents[1])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD], env=environment, **pipes) as one:
        one.stdout.readline()
        yield one
        one.kill()


def test_another_process_is_named_and_waits_for_its_end(holder):
    refusal = f"s is in use by omma stream, process {holder.pid}"
    with pytest.raises(InUseError, match=refusal), locked("s", "me"):
        pass
    holder.communicate(b"\n")
    with locked("s", "me"):
        assert Path("s.lock").read_text() == f"me, process {os.getpid()}"
    assert not Path("s.lock").exists()


def test_a_process_that_was_killed_locks_nothing(holder):
    holder.kill()
    holder.wait()
    assert Path("s.lock").exists()
    with locked("s", "me"):
        pass
    assert not Path("s.lock").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_two_names_of_one_file_share_its_lock(holder):
    Path("s").touch()
    Path("link").symlink_to("s")
    with pytest.raises(InUseError, match="link is in use by omma stream"), locked("link", "me"):
        pass


def test_a_lock_file_that_was_removed_meanwhile_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, seen = os.stat, []

    def removed(path, *rest, **more):
        if str(path).endswith("s.lock") and not seen:
            seen.append(path)
            os.unlink(path)
        return found(path, *rest, **more)

    monkeypatch.setattr(os, "stat", removed)
    with locked("s", "me"):
        assert Path("s.lock").exists()
    assert seen

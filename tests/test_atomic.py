"""Files that are written whole or not at all."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omma import _atomic
from omma._atomic import replacing

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(_atomic.__file__).parents[1])}


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(KeyError), replacing(path) as file:  # noqa: PT012
        file.write(b"half")
        raise KeyError
    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("name", ["nowhere/a.txt", "folder", "file/a.txt"])
def test_errors_name_the_file_that_was_asked_for(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"a\.txt|folder") as caught, replacing(tmp_path / name):
        pass
    assert caught.value.filename == str(tmp_path / name)
    assert ".part" not in str(caught.value)


def test_other_errors_keep_their_own_name(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "a.txt"):
        (tmp_path / "other").read_text()
    assert caught.value.filename == str(tmp_path / "other")
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes of this kind")
def test_pipes_and_links_remain_what_they_are(tmp_path):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"whole")
    assert link.is_symlink()
    assert target.read_bytes() == b"whole"

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_who_may_read_a_file_stays_as_it_was(tmp_path, mode):
    path = tmp_path / "a.txt"
    path.write_text("before")
    path.chmod(mode)
    with replacing(path) as file:
        (part,) = (one for one in tmp_path.iterdir() if one != path)
        assert part.stat().st_mode & 0o777 == 0o600  # secret while it is written, whatever comes
        file.write(b"after")
    assert path.read_text() == "after"
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_new_file_is_as_open_as_any_other(tmp_path):
    (tmp_path / "other").touch()
    with replacing(tmp_path / "a.txt") as file:
        file.write(b"new")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "other").stat().st_mode


KILLED = """
import os, signal, sys
from omma._atomic import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks tell there who is dead")
def test_what_killed_processes_left_is_gone_after_the_next_write(tmp_path):
    path, mine = tmp_path / "a.txt", tmp_path / "a.txt.old.part"
    mine.write_text("of somebody else")
    for _ in range(3):
        subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, env=ENVIRONMENT)
        assert (tmp_path / "a.txt.0.part").read_bytes() == b"half"
        assert len([*tmp_path.iterdir()]) == 2
    with replacing(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole"
    assert {*tmp_path.iterdir()} == {path, mine}


def test_what_is_being_written_is_left_alone(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [path]


def test_many_threads_write_one_file(tmp_path):
    path = tmp_path / "a.txt"

    def save(number):
        for _ in range(20):
            with replacing(path) as file:
                file.write(bytes([number]) * 10_000)
            assert len(set(path.read_bytes())) == 1

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(save, number) for number in range(8)]:
            done.result()
    assert [*tmp_path.iterdir()] == [path]


def test_file_and_folder_reach_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_mode))
    with replacing(tmp_path / "a.txt") as file:
        file.write(b"whole")
    kinds = [stat.S_ISDIR(mode) for mode in synced]
    assert kinds == ([False] if sys.platform == "win32" else [False, True])

"""Files that are written whole or not at all."""

import os
import sys

import pytest

from omma._atomic import replacing


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

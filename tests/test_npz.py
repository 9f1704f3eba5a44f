"""Archives of arrays: what is written is read, and what an enemy wrote is one sentence."""

import io
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy import sparse

from omma import npz

ETA = sparse.csr_array(np.array([[0.5, 0.0, 0.25], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
DTYPES = ["<f8", ">f8", "<f4", "<i8", ">i2", "|u1", "|b1", "<u8"]


def npy(array=None, header=None, body=b"", version=1):
    """An .npy file, or one whose header says something else than what follows."""
    if header is None:
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()
    text = header.encode() + b"\n"
    wide = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(wide, len(text)) + text + body


def archive(path, method=zipfile.ZIP_DEFLATED, **members):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(name + ".npy", content if isinstance(content, bytes) else npy(content))
    return path


def parts(matrix=ETA, **changed):
    """A matrix as SciPy keeps it, with some parts changed."""
    found = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    return found | {"shape": np.array(matrix.shape), "format": np.array(b"csr"), **changed}


def refusal(path, ask):
    with pytest.raises(ValueError, match=path.name) as caught, npz.opened(path) as file:
        ask(file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
    ),
    st.booleans(),
    st.booleans(),
)
def test_every_plain_array_reads_back_the_same(tmp_path_factory, array, pack, turned):
    path = tmp_path_factory.getbasetemp() / "any.npz"
    npz.write(path, {"a": array.T if turned else array}, pack=pack)
    with npz.opened(path) as file:
        found = file.array("a")
    assert found.dtype.isnative
    assert_array_equal(found, array.T if turned else array)


def test_texts_matrices_and_arrays_live_together(tmp_path):
    said = json.dumps({"metric": "macro_f1", "η": [1, 2.5]})
    npz.write(tmp_path / "a.npz", {"said": said, "n": np.arange(3), **npz.sparse_parts(ETA)})
    with npz.opened(tmp_path / "a.npz") as file:
        assert file.json("said") == {"metric": "macro_f1", "η": [1, 2.5]}
        assert file.array("n", kinds="iu", shape=(3,), low=0).tolist() == [0, 1, 2]
        assert_array_equal(file.matrix().toarray(), ETA.toarray())
        assert "n" in file
        assert "eta" not in file
    assert np.load(tmp_path / "a.npz")["n"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_what_scipy_writes_is_read(tmp_path, form, kind):
    given = getattr(sparse, f"{form}_{kind}")(ETA)
    sparse.save_npz(tmp_path / "a.npz", given)
    with npz.opened(tmp_path / "a.npz") as file:
        found = file.matrix()
    assert isinstance(found, sparse.csr_array)
    assert_array_equal(found.toarray(), ETA.toarray())


def test_scipy_reads_what_is_written(tmp_path):
    npz.write(tmp_path / "a.npz", npz.sparse_parts(ETA))
    assert_array_equal(sparse.load_npz(tmp_path / "a.npz").toarray(), ETA.toarray())


def test_rows_out_of_order_and_places_stored_twice_are_put_right(tmp_path):
    odd = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    path = archive(tmp_path / "a.npz", **parts(odd))
    with npz.opened(path) as file:
        found = file.matrix()
    assert found.indices.tolist() == [0, 2]
    assert found.data.tolist() == [2.0, 5.0]


UNSOUND = [
    ({"indptr": np.array([0, 2, 1, 3])}, "start at 0 and never go down in 'indptr'"),
    ({"indptr": np.array([0, 2, 1, 3], np.uint64)}, "start at 0 and never go down in 'indptr'"),
    ({"indptr": np.array([1, 2, 2, 3])}, "start at 0 and never go down in 'indptr'"),
    ({"indptr": np.array([0, 2, 2, 2**40])}, "in 'indices', got 3"),
    ({"indptr": np.array([0, 3])}, "expected 4 numbers in 'indptr', got 2"),
    ({"indptr": np.array([])}, "expected numbers in 'indptr', got the type float64"),
    ({"indptr": np.array([0.0, 2.0, 2.0, 3.0])}, "expected numbers in 'indptr'"),
    ({"indices": np.array([0, 2, 3])}, "from 0 to 2 in 'indices', got 3"),
    ({"indices": np.array([0, -1, 1])}, "from 0 to 2 in 'indices', got -1"),
    ({"indices": np.array([0, 2])}, "as many as in data in 'indices', got 2"),
    ({"shape": np.array([3, -3])}, "at least 0 in 'shape', got -3"),
    ({"shape": np.array([3, 2**62])}, "in 'shape', got 46116860184"),
    ({"shape": np.array([3])}, "expected 2 values in 'shape', got the shape"),
    ({"shape": np.array([2**31 - 1, 3])}, "numbers in 'indptr', got 4"),
    ({"data": np.array(["a", "b", "c"])}, "expected numbers in 'data', got the type <U1"),
    ({"data": np.ones((3, 1))}, "expected any values in 'data', got the shape"),
]


@pytest.mark.parametrize(("changed", "sentence"), UNSOUND)
def test_a_matrix_that_points_outside_is_refused(tmp_path, changed, sentence):
    path = archive(tmp_path / "a.npz", **parts(**changed))
    assert sentence in refusal(path, lambda file: file.matrix())


@pytest.mark.parametrize("form", ["csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("side", [0, 2**31 - 1, 10**15])
def test_other_formats_with_wrong_sides(tmp_path, form, side):
    sparse.save_npz(tmp_path / "a.npz", ETA.asformat(form))
    with np.load(tmp_path / "a.npz") as file:
        members = dict(file)
    path = archive(tmp_path / "b.npz", **{**members, "shape": np.array([side, 3])})
    if form != "dia" or side:  # no row of a band is an empty matrix
        refusal(path, lambda file: file.matrix())


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_pointers_that_end_at_zero(tmp_path, form):
    """SciPy's own check passes over them, and its compiled code crashes."""
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(np.eye(3)).asformat(form))
    with np.load(tmp_path / "a.npz") as file:
        members = dict(file)
    path = archive(tmp_path / "b.npz", **{**members, "indptr": np.array([0, 2, 3, 0])})
    assert "start at 0 and never go down" in refusal(path, lambda file: file.matrix())


def test_the_caller_says_what_is_right(tmp_path):
    odd = np.array([np.nan, -1.0, 2.0])
    path = archive(tmp_path / "a.npz", odd=odd)
    assert "finite numbers in 'odd', got nan" in refusal(
        path, lambda f: f.array("odd", finite=True)
    )
    assert "at least 0 in 'odd', got nan" in refusal(path, lambda f: f.array("odd", low=0))
    assert "at most 1 in 'odd'" in refusal(path, lambda f: f.array("odd", high=1))
    assert "4 values in 'odd'" in refusal(path, lambda f: f.array("odd", shape=(4,)))
    assert "text in 'odd'" in refusal(path, lambda f: f.json("odd"))
    assert "no 'n', only 'odd'" in refusal(path, lambda f: f.array("n"))
    assert "at most 23 bytes in 'odd'" in refusal(path, lambda f: f.array("odd", most=23))


HEADERS = [
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 150 + ",), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 99999999999999999999), }",
    "{'descr': '<f3', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000,), }",
    "{'descr': '<M8', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': __import__('os'), 'shape': (1,), }",
    "[" * 5000,
    "",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("version", [1, 2, 9])
def test_headers_that_lie(tmp_path, header, version):
    content = npy(header=header, body=bytes(8), version=version)
    refusal(archive(tmp_path / "a.npz", a=content), lambda file: file.array("a"))
    (tmp_path / "a.npy").write_bytes(content)
    if ("(0," not in header and "M8" not in header) or version == 9:  # mapping takes any plain type
        with pytest.raises(ValueError, match=r"a\.npy is not a sound \.npy file"):
            npz.mapped(tmp_path / "a.npy")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(tmp_path, method):
    path = archive(tmp_path / "a.npz", method, a=np.arange(3))
    assert "stored or deflated" in refusal(path, lambda file: file.array("a"))


def test_two_members_of_one_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "a", "w") as file:
        file.writestr("a.npy", npy(np.arange(3)))
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("a.npy", npy(np.arange(3)))
    assert "it has 'a' twice" in refusal(tmp_path / "a", lambda file: file.array("a"))


@pytest.mark.parametrize("letter", [0x110000, 0xFFFFFFFF, 0xD800])
def test_texts_of_what_is_no_letter(tmp_path, letter):
    """Python itself falls over them."""
    text = np.array(["ab", "cd"])
    text.view(np.uint32)[1] = letter
    path = archive(tmp_path / "a.npz", names=text, said=text[0:1].reshape(()))
    assert "expected letters in 'names'" in refusal(path, lambda f: f.array("names", kinds="U"))
    assert "expected letters in 'said'" in refusal(path, lambda f: f.json("said"))


def test_what_is_no_archive(tmp_path):
    for content in (b"", b"PK\x03\x04", npy(np.arange(3)), b"PK\x05\x06" + bytes(18)):
        (tmp_path / "a.npz").write_bytes(content)
        refusal(tmp_path / "a.npz", lambda file: file.array("a"))
    with pytest.raises(FileNotFoundError), npz.opened(tmp_path / "none.npz"):
        pass


def test_json_of_a_file(tmp_path):
    for text in ("[" * 100_000, "1" * 5000, "{", "", '{"a": ' * 2000):
        npz.write(tmp_path / "a.npz", {"said": text})
        assert "'said' of" in refusal(tmp_path / "a.npz", lambda file: file.json("said"))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """A file of a thousandth of what its one member unpacks to."""
    path, size = tmp_path_factory.mktemp("bomb") / "bomb.npz", 1 << 30
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},), }}"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("a.npy", "w") as member,
    ):
        member.write(npy(header=header))
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    return path


def test_a_bomb_costs_nothing(bomb):
    assert bomb.stat().st_size < 6 << 20
    tracemalloc.start()
    try:
        sentence = refusal(bomb, lambda file: file.array("a"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "1,073,741,824, more than a file of this size should unpack to" in sentence
    assert peak < 4 << 20


def test_members_share_what_a_file_may_unpack_to(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "SMALL", 1000)
    path = archive(tmp_path / "a.npz", **{f"a{j}": np.zeros(7000) for j in range(9)})
    assert 56_000 < npz.largest(path) < 9 * 56_000
    with npz.opened(path) as file:
        for j in range(9):
            file.array(f"a{j}", most=56_000)  # as its reader knows better
    for j in range(9):
        with npz.opened(path) as file:
            file.array(f"a{j}")
    sentence = refusal(path, lambda file: [file.array(f"a{j}") for j in range(9)])
    assert "more than a file of this size should unpack to" in sentence


# Room for half of what the bomb unpacks to, beyond what the interpreter has taken: one without a
# lock takes more than a gigabyte at its start.
LIMITED = """
import pathlib, re, resource, sys
from omma import npz
status = pathlib.Path("/proc/self/status")
taken = re.search(r"VmData:\\s*(\\d+) kB", status.read_text()) if status.exists() else None
room = (1024 * int(taken[1]) if taken else 0) + (1 << 29)
resource.setrlimit(resource.RLIMIT_DATA, (room, room))
with npz.opened(sys.argv[1]) as file:
    try:
        file.array("a")
    except ValueError as error:
        sys.exit(str(error))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of this kind")
@pytest.mark.parametrize("liar", [False, True])
def test_a_bomb_in_little_memory(bomb, tmp_path, liar):
    path = bomb
    if liar:  # the directory says that it unpacks to 300 bytes
        with zipfile.ZipFile(bomb) as file:
            told = struct.pack("<I", file.getinfo("a.npy").file_size)
        path = tmp_path / "liar.npz"
        path.write_bytes(bomb.read_bytes().replace(told, struct.pack("<I", 300)))
    folder = str(Path(npz.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((folder, *sys.path))},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.strip().startswith(str(path))


@given(data=st.data())
def test_flipped_bits_and_cut_ends_are_sentences(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "spoiled.npz"
    npz.write(path, {"said": "{}", **npz.sparse_parts(ETA)}, pack=data.draw(st.booleans()))
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        with npz.opened(path) as file:
            file.json("said")
            assert file.matrix().shape == (3, 3)
            file.array("data", finite=True, low=0, high=1)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017


def test_sums_of_bytes_are_compared(tmp_path):
    path = archive(tmp_path / "a.npz", zipfile.ZIP_STORED, a=np.arange(3))
    raw = path.read_bytes()
    body = np.arange(3).tobytes()
    assert zlib.crc32(body)
    path.write_bytes(raw.replace(body, np.array([0, 1, 3]).tobytes()))
    assert "CRC" in refusal(path, lambda file: file.array("a"))


def test_bytes_that_were_read_elsewhere():
    content = npz.to_bytes({"numbers": np.arange(3)})
    with npz.opened("store/7.npz", content=content) as archive:
        assert archive.array("numbers").tolist() == [0, 1, 2]
    with (
        pytest.raises(ValueError, match=r"store/7\.npz is not a sound state: "),
        npz.opened("store/7.npz", "state", content[:-9]),
    ):
        pass

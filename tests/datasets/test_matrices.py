"""Matrices in files: what is written is read, and what is wrong is named."""

import bz2
import gzip
import lzma
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from omma.datasets import read_csv, read_matrix, write_matrix
from omma.datasets.tables import named_table

ETA = np.array([[0.1, 0.0, 0.75], [1.0, 0.25, 0.0], [0.0, 0.0, 0.0], [0.3, 1e-300, 1 / 3]])
Y = (ETA > 0.2).astype(np.int8)
NAMES = ("a", 'say "b"', "c, d")
TEXT = [f".{kind}{more}" for kind in ("csv", "tsv", "txt") for more in ("", ".gz", ".bz2", ".xz")]
DTYPE = ["float64", "int8", "float32", "bool"]
OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def dense(values):
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


@pytest.mark.parametrize("values", [ETA, Y, ETA.astype(np.float32), ETA > 0.2], ids=DTYPE)
@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        (kind, ending)
        for kind in (np.asarray, sparse.csr_array, sparse.coo_array)
        for ending in (*TEXT, ".npz", ".npy", ".parquet")
        if kind is np.asarray or ending != ".npy"  # which holds no sparse matrix
    ],
)
def test_what_is_written_is_read(tmp_path, values, kind, ending):
    path = tmp_path / f"eta{ending}"
    write_matrix(path, kind(values))
    assert_array_equal(dense(read_matrix(path).values), values)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".npz", ".parquet"])
def test_names_are_kept(tmp_path, kind, ending):
    path = tmp_path / f"eta{ending}"
    write_matrix(path, kind(ETA), NAMES)
    assert read_matrix(path).names == NAMES
    assert_array_equal(dense(read_matrix(path).values), ETA)


@pytest.mark.parametrize("ending", [".csv", ".txt", ".npz", ".npy", ".parquet"])
def test_one_dimension_is_one_column(tmp_path, ending):
    path = tmp_path / f"y{ending}"
    write_matrix(path, np.array([0, 1, 1]))
    assert dense(read_matrix(path).values).ravel().tolist() == [0, 1, 1]


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.floats(0, 1) | st.just(0.0), min_size=3, max_size=3), min_size=1, max_size=6
    ),
    st.sampled_from([".csv", ".tsv", ".txt", ".npz", ".txt.gz"]),
)
def test_every_number_reads_back_the_same(tmp_path_factory, rows, ending):
    path = tmp_path_factory.mktemp("m") / f"eta{ending}"
    write_matrix(path, np.array(rows))
    assert_array_equal(dense(read_matrix(path).values), rows)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_any_matrix_of_scipy(tmp_path, form):
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_array(ETA).asformat(form))
    found = read_matrix(tmp_path / "a.npz").values
    assert isinstance(found, sparse.csr_array)
    assert_array_equal(found.toarray(), ETA)


def test_scipy_and_numpy_read_what_is_written(tmp_path):
    write_matrix(tmp_path / "a.npz", sparse.csr_array(ETA), NAMES)
    assert_array_equal(sparse.load_npz(tmp_path / "a.npz").toarray(), ETA)
    write_matrix(tmp_path / "b.npz", ETA, NAMES)
    assert_array_equal(np.load(tmp_path / "b.npz")["values"], ETA)


def test_one_array_of_several(tmp_path):
    path = tmp_path / "both.npz"
    np.savez(path, eta=ETA, y=Y)
    assert_array_equal(read_matrix(f"{path}:y").values, Y)
    with pytest.raises(ValueError, match=r"both.npz must hold one array, or .*both.npz:NAME; eta"):
        read_matrix(path)
    with pytest.raises(ValueError, match="has no array 'et'; did you mean 'eta'"):
        read_matrix(f"{path}:et")


def test_an_array_of_numpy_stays_on_the_disk(tmp_path):
    np.save(tmp_path / "a.npy", ETA)
    assert isinstance(read_matrix(str(tmp_path / "a.npy")).values, np.memmap)


def saved(tmp_path, name, text):
    path = tmp_path / name
    opener = OPENERS.get(path.suffix, open)
    with opener(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return path


def test_numbers_of_columns_are_names(tmp_path):
    path = saved(tmp_path, "a.csv", "0,1,2\n0.5,0.25,1\n")
    assert read_matrix(path).names == ("0", "1", "2")
    assert read_matrix(path).values.tolist() == [[0.5, 0.25, 1]]


def test_a_table_may_have_a_mark_first_blank_lines_and_windows_ends(tmp_path):
    path = saved(tmp_path, "a.csv", '\ufeff"a", b\r\n0.5,"1"\r\n\r\n0, 1e-1\r\n')
    assert read_matrix(path).names == ("a", "b")
    assert read_matrix(path).values.tolist() == [[0.5, 1], [0, 0.1]]


def test_numbers_with_blanks_between_them(tmp_path):
    assert read_matrix(saved(tmp_path, "a.txt", "1 0\n0 1\n1 1\n")).values.shape == (3, 2)
    np.savetxt(tmp_path / "b.txt", ETA)
    assert_array_equal(read_matrix(tmp_path / "b.txt").values, ETA)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_column_that_names_rows(tmp_path, ending):
    import pandas as pd

    frame = pd.DataFrame({"a": [0.1, 0.2], "who": ["x", "y,z"], "b": [1, 0]})
    path = tmp_path / f"a{ending}"
    frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
    found = read_matrix(path, id_column="who")
    assert found.ids == ("x", "y,z")
    assert found.names == ("a", "b")
    assert found.values.tolist() == [[0.1, 1], [0.2, 0]]
    with pytest.raises(
        ValueError, match=r"in the column 'who', got 'x'; if it names rows, pass id_column='who'"
    ):
        read_matrix(path)
    with pytest.raises(
        ValueError, match="no column 'woh', which id_column asks for; did you mean 'who'"
    ):
        read_matrix(path, id_column="woh")


TRUTHS = [
    ("sport,art\nTrue,False\nfalse,TRUE\n", ("sport", "art")),
    ("True,False\nFalse,True\n", None),
    ("False,True\n1,0\n0,1\n", ("False", "True")),
]


@pytest.mark.parametrize(("text", "names"), TRUTHS)
def test_true_and_false_are_one_and_zero(tmp_path, text, names):
    found = read_matrix(saved(tmp_path, "a.csv", text))
    assert found.values.tolist() == [[1, 0], [0, 1]]
    assert found.names == names


def test_tables_mean_the_same_wherever_they_are_read(tmp_path):
    """Cells over two lines, true and false below numbers, blank lines first."""
    text = '\n"a\nb",c,kind\n0.5,1,x\n0.25,True,"y\nz"\n'
    path = saved(tmp_path, "a.csv", text)
    found = read_matrix(path, id_column="kind")
    assert found.names == ("a\nb", "c")
    assert found.ids == ("x", "y\nz")
    assert found.values.tolist() == [[0.5, 1], [0.25, 1]]
    data = read_csv(path)
    assert data.X.tolist() == [[0.5, 1], [0.25, 1]]
    assert data.labels == ("x", "y\nz")


def test_true_and_false_beside_a_column_that_names_rows(tmp_path):
    path = saved(tmp_path, "a.csv", "who,spam\nu,True\nv,False\n")
    found = read_matrix(path, id_column="who")
    assert found.values.tolist() == [[1], [0]]
    assert found.ids == ("u", "v")


@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet"])
def test_truths_in_other_files(tmp_path, ending):
    import pandas as pd

    truths, path = np.array([[True, False], [False, True]]), tmp_path / f"a{ending}"
    if ending == ".parquet":
        pd.DataFrame(truths, columns=["a", "b"]).to_parquet(path)
    else:
        (np.save if ending == ".npy" else np.savez)(path, truths)
    assert_array_equal(read_matrix(path).values.astype(float), [[1, 0], [0, 1]])


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv", ".parquet"])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_rows_may_be_written_with_their_names(tmp_path, ending, make):
    path = tmp_path / f"a{ending}"
    write_matrix(path, make([[1, 0], [0, 1]]), ("a", "b"), rows=("who", ("x", "y,z")))
    found = read_matrix(path, id_column="who")
    assert found.ids == ("x", "y,z")
    assert found.names == ("a", "b")
    assert_array_equal(found.values, [[1, 0], [0, 1]])
    assert named_table(path).names == ("who", "a", "b")
    assert named_table(saved(tmp_path, "b.csv", "0.5,0.5\n")).names is None


def test_names_of_rows_have_a_place_in_tables_only(tmp_path):
    with pytest.raises(ValueError, match=r"a.npz has no place for names of rows"):
        write_matrix(tmp_path / "a.npz", [[1, 0]], rows=("who", ("x",)))
    with pytest.raises(ValueError, match=r"rows of write_matrix must be 1, .* got 2"):
        write_matrix(tmp_path / "a.csv", [[1, 0]], rows=("who", ("x", "y")))


XC = "3 4\n0:0.5 3:1\n\n2:1e-3\n"


def test_lines_of_labels_with_values(tmp_path):
    found = read_matrix(saved(tmp_path, "a.txt", XC)).values
    assert isinstance(found, sparse.csr_array)
    assert found.toarray().tolist() == [[0.5, 0, 0, 1], [0] * 4, [0, 0, 0.001, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "3 4\n3,0\n\n2\n",
        "3 4\n3,0\n\n2\n\n\n",
        "3 9 4\n0,3 0:1.5 8:2\n 1:1\n2\n",
        "3 9 4\n0,3 0:1.5 8:2\n1:1 2:3\n2 0:1\n",
    ],
)
def test_lines_of_labels(tmp_path, text):
    found = read_matrix(saved(tmp_path, "a.txt.gz", text)).values
    assert found.dtype == np.int8
    assert found.toarray().tolist() == [[1, 0, 0, 1], [0] * 4, [0, 0, 1, 0]]


@pytest.mark.parametrize("text", ["2 3\n\n\n", "2 3\n\n"])
def test_rows_without_labels(tmp_path, text):
    if text.count("\n") == 3:
        assert read_matrix(saved(tmp_path, "a.txt", text)).values.nnz == 0
    else:
        with pytest.raises(ValueError, match="expected 2 rows, as the header says, got 1"):
            read_matrix(saved(tmp_path, "a.txt", text))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "", r"a.csv, line 1: expected names of columns or numbers, got nothing"),
        ("a.csv", "a,b\n", r"a.csv must have rows of numbers, got none"),
        ("a.csv", "a,b\n0,1\n0\n", r"a.csv, line 3: expected 2 cells, as in line 1, got 1"),
        ("a.csv", "a,b\n0,1,1\n0,1,1\n", r"a.csv, line \d: expected 2 cells, .* got 3"),
        ("a.csv", "0.5,0.1\n0,1,1\n", r"a.csv, line 2: expected 2 cells, as in line 1, got 3"),
        ("a.csv", "a,b\n0,x\n", r"line 2: expected a number in the column 'b', got 'x'"),
        ("a.csv", "0,1\n\n0,x\n", r"a.csv, line 3: expected a number in column 2, got 'x'"),
        ("a.csv", "a,b\n0,\n", r"line 2: expected a number in the column 'b', got nothing"),
        ("a.csv", "id,b\n1,0\n", r"got the column 'id', .* pass id_column='id'"),
        (
            "a.csv",
            ",a\n0,0.5\n",
            r"got the unnamed first column.*index=False, or .* id_column=''",
        ),
        ("a.csv", "a,a\n0,0.5\n", r"line 1: expected distinct names, got 'a' twice"),
        ("a.csv", "x17,0.3\nx18,0.5\n", r"line 1: expected names of .* got 'x17' and '0.3'"),
        ("a.tsv.xz", "a\tb\n0,1\n", r"a.tsv.xz, line 2: expected 2 cells, as in line 1, got 1"),
        ("a.txt", "2 3\n0:1\n", r"a.txt, line 2: expected 2 rows, as the header says, got 1"),
        ("a.txt", "1 3\n0:1\n1:1\n", r"a.txt, line 3: expected no more than 1 rows, as the he"),
        ("a.txt", "2 3\n0:1\n3:0.5\n", r"line 3: expected labels from 0 to 2, got 3"),
        ("a.txt", "2 3\n0:1\n1:x\n", r"a.txt, line 3: expected label:value, got '1:x'"),
        ("a.txt", "2 3\n0:1\n1.5:1\n", r"a.txt, line 3: expected label:value, got '1.5:1'"),
        ("a.txt", "2 3\n0:1\n1: 2:1\n", r"a.txt, line 3: expected label:value, got '1:'"),
        ("a.txt", "2 3\n0\n-1\n", r"a.txt, line 3: expected a label, got '-1'"),
        ("a.txt", "2 3\n0\n1,,2\n", r"a.txt, line 3: expected a label, got ''"),
        ("a.txt", "2 3\n0\n1,1\n", r"a.txt, line 3: expected each label once, got 1 twice"),
        ("a.txt", "2 3\n0\n1 2\n", r"a.txt, line 3: expected a label, got '1 2'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message) as found:
        read_matrix(saved(tmp_path, name, text))
    assert "\n" not in str(found.value)


def test_no_file_is_run(tmp_path):
    np.savez(tmp_path / "a.npz", np.array([object()]))
    np.save(tmp_path / "a.npy", np.array([object()]))
    for name in ("a.npz", "a.npy"):
        with pytest.raises(ValueError, match=f"{name} is not a sound"):
            read_matrix(tmp_path / name)


def test_stored_indices_out_of_range_are_refused(tmp_path):
    for form in ("csr", "csc", "coo"):
        matrix = sparse.csr_matrix(ETA).asformat(form)
        (matrix.row if form == "coo" else matrix.indices)[-1] = 1000
        sparse.save_npz(tmp_path / "a.npz", matrix)
        with pytest.raises(ValueError, match=r"not a sound .npz file"):
            read_matrix(tmp_path / "a.npz")


@pytest.mark.parametrize("ending", [".npz", ".npy", ".parquet", ".csv.gz", ".csv.bz2", ".txt.xz"])
@pytest.mark.parametrize("cut", [0, 10, -20])
def test_a_file_cut_short_is_refused(tmp_path, ending, cut):
    path = tmp_path / f"a{ending}"
    rng = np.random.default_rng(0)
    write_matrix(path, rng.random((50, 4)))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match="a" + ending):
        read_matrix(path)


def test_strings_in_an_archive_are_no_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", np.array(["x", "y"]))
    with pytest.raises(ValueError, match=r"must hold numbers in one or two dimensions, got .*<U1"):
        read_matrix(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("x.npy", b"nonsense")
    with pytest.raises(ValueError, match="in 'x': no array, it starts with b'nonsense'"):
        read_matrix(tmp_path / "b.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("x.txt", b"nonsense")
    with pytest.raises(ValueError, match="must hold arrays"):
        read_matrix(tmp_path / "b.npz")


def test_no_such_file(tmp_path):
    for ending in (".npz", ".npy", ".csv", ".txt.gz", ".parquet"):
        with pytest.raises(FileNotFoundError):
            read_matrix(tmp_path / f"a{ending}")


def test_an_unknown_ending_is_refused_both_ways(tmp_path):
    for name in ("a.xls", "a", "a.npz.gz", "a.cvs"):
        with pytest.raises(ValueError, match=r"must end in .npz, .npy, .csv"):
            read_matrix(tmp_path / name)
        with pytest.raises(ValueError, match="must end in"):
            write_matrix(tmp_path / name, ETA)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.csv"
    write_matrix(path, Y)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="names of write_matrix must be 3"):
        write_matrix(path, Y, ("a",))
    with pytest.raises(UnicodeEncodeError):
        write_matrix(path, Y, ("a", "b", "\ud800"))
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"cannot hold a sparse matrix: .* end in .npz"):
        write_matrix(tmp_path / "a.npy", sparse.csr_array(Y))
    with pytest.raises(ValueError, match="values of write_matrix must be numbers"):
        write_matrix(tmp_path / "a.npy", np.array(["x"]))


def test_without_pyarrow_a_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    write_matrix(path, Y)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"a.parquet needs pyarrow, .* pip install pyarrow"):
        read_matrix(path)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_matrix(tmp_path / name, Y)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert first == second


def test_an_empty_cell_beside_an_id_does_not_move_the_rows_below(tmp_path):
    path = saved(tmp_path, "a.csv", "who,a\nx,1\ny,\nz,0\n")
    with pytest.raises(ValueError, match="line 3: expected a number in the column 'a', got n"):
        read_matrix(path, id_column="who")

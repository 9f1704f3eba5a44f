"""Plain tables read by NumPy: the same numbers and the same sentences as row by row."""

import gzip
import time
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from omma.datasets import read_csv, read_matrix, tables

NUMBERS = st.floats(width=64).map(repr) | st.integers(-(10**25), 10**25).map(str)
ODD = st.sampled_from(
    [
        *("", "x", "True", "nan", "-inf", "1e400", "1e-400", "0x10", "1_0", " 1", "1 ", '"1"', '"'),
        *("1,5", "+1", ".5", "5.", "1e", "١", "\0", "NA", "null", "-", "2.5e-324", "\x0c1"),
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fast")


def ways(read, path, **options):
    """What comes of a file row by row, and by NumPy where it can; and whether it could."""
    results, used = [], []
    by_numpy = tables.CsvTable._read_plain

    def recorded(*arguments):
        columns = by_numpy(*arguments)
        used.append(columns is not None)
        return columns

    for fast in (lambda *arguments: None, recorded):
        with mock.patch.object(tables.CsvTable, "_read_plain", fast):
            try:
                results.append(read(path, **options))
            except ValueError as error:
                results.append(str(error))
    return results, used


def same(first, second):
    if isinstance(first, str) or isinstance(second, str):
        assert first == second
        return
    assert (first.names, first.ids) == (second.names, second.ids)
    assert_array_equal(first.values, second.values)
    assert [*first.lines] == [*second.lines]
    assert first.values.flags.c_contiguous


@settings(max_examples=150)
@given(data=st.data())
def test_the_same_matrix_or_the_same_sentence(folder, data):
    m, n = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 4))
    cells = st.one_of(*[NUMBERS] * 9, ODD) if data.draw(st.booleans()) else NUMBERS
    rows = [[data.draw(cells) for _ in range(m)] for _ in range(n)]
    if rows and data.draw(st.sampled_from([False, False, True])):
        data.draw(st.sampled_from(rows)).append("1")
    named = data.draw(st.booleans())
    lines = [",".join(row) for row in ([[f"c{j}" for j in range(m)]] if named else []) + rows]
    end = data.draw(st.sampled_from(["\n", "\r\n", "\n\n", "\r"]))
    mark = data.draw(st.sampled_from(["", "\ufeff", "\n"]))
    path = folder / "a.csv"
    path.write_bytes((mark + end.join(lines) + data.draw(st.sampled_from(["", end]))).encode())
    id_column = "c0" if named and data.draw(st.booleans()) else None
    (own, fast), _ = ways(read_matrix, path, id_column=id_column)
    same(own, fast)


@settings(max_examples=100)
@given(data=st.data())
def test_the_same_dataset_or_the_same_sentence(folder, data):
    m, n = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 4))
    cells = st.one_of(*[st.floats(-1e6, 1e6).map(repr)] * 9, ODD)
    words = st.sampled_from(["cat", " dog", "b c ", "1", "1.0", "", "é", "a'b"])
    many = data.draw(st.booleans())
    labels = st.sampled_from(["0", "1", "1.0", "+1"] + ["2"] * data.draw(st.booleans()))
    rows = [
        [data.draw(cells) for _ in range(m - 1)] + [data.draw(labels if many else words)]
        for _ in range(n)
    ]
    lines = [",".join(row) for row in [[f"c{j}" for j in range(m)], *rows]]
    path = folder / "b.csv"
    path.write_text("\n".join(lines) + "\n", newline="")
    (own, fast), _ = ways(read_csv, path, labels=[m - 1] if many else -1)
    if isinstance(own, str) or isinstance(fast, str):
        assert own == fast
        return
    assert (own.labels, own.task, own.m) == (fast.labels, fast.task, fast.m)
    assert_array_equal(own.X, fast.X)
    assert own.X.dtype == fast.X.dtype
    assert_array_equal(*(y.toarray() if sparse.issparse(y) else y for y in (own.y, fast.y)))


@pytest.mark.parametrize("start", ["", "\n", "\n\n"])
def test_a_header_of_numbers_is_no_row(tmp_path, start):
    path = tmp_path / "a.csv"
    path.write_text(start + "0,1,2\n0.5,0.25,1\n")
    (own, fast), _ = ways(read_matrix, path)
    assert own.values.tolist() == [[0.5, 0.25, 1]]
    same(own, fast)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
def test_ids_and_blank_lines(tmp_path, ending):
    text = "who,a,b\nx,1,0.5\n\n y ,0,1\n".replace(",", "\t" if "tsv" in ending else ",")
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    (own, fast), used = ways(read_matrix, path, id_column="who")
    assert (own.ids, own.lines.tolist()) == (("x", "y"), [2, 4])
    same(own, fast)
    assert used == [True]


@pytest.mark.parametrize(
    "text",
    [
        'who,a\n"x,y",1\n',
        'who,a\n"x\ny",1\n',
        'who,a\n"x",1\n"",2\n',
        "who,a\nx,1\ny,\n",
        "who,a\nx,1\ny,1,2\n",
        "who,a\nx,1\n,\n",
        "who,a\nx,True\n",
        "who;a\nx;0,5\n",
        "a;b\n1.000,5;1\n",
        "who,a\n",
        "who\ta\nx\t1\n\t\n",
    ],
)
def test_what_is_not_plain(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    (own, fast), used = ways(read_matrix, path, id_column="who" if "who" in text else None)
    same(own, fast)
    assert used == [False]


def test_decimal_commas(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n0,5;1\n,25;1e-1\n")
    (own, fast), used = ways(read_matrix, path)
    assert own.values.tolist() == [[0.5, 1], [0.25, 0.1]]
    same(own, fast)
    assert used == [True]


def test_headers_cost_what_their_length_does(tmp_path):
    """80,000 names took 54 s where each was compared with all before it."""
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"label{j}" for j in range(80_000)) + "\n" + ",".join(["0"] * 80_000))
    before = time.process_time()
    assert len(read_matrix(path).names) == 80_000
    assert time.process_time() - before < 5

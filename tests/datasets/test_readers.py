"""Formats: what is written is read back, and what does not fit is named with its line."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from omma.datasets import (
    read,
    read_arff,
    read_arrays,
    read_csv,
    read_svmlight,
    read_xc,
)

NUMBERS = st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 0.0, 1.0, 1e-30, -3e37])
NAMES = st.text("ab,'\" \\%{}é?", min_size=1, max_size=5).filter(lambda s: s.strip() == s)


@st.composite
def features(draw, n=None):
    n = draw(st.integers(1, 6)) if n is None else n
    return draw(hnp.arrays(np.float32, (n, draw(st.integers(1, 5))), elements=NUMBERS))


@st.composite
def multilabel(draw):
    X = draw(features())
    m = draw(st.integers(1, 4))
    return X, draw(hnp.arrays(np.int8, (len(X), m), elements=st.integers(0, 1)))


@st.composite
def classes(draw, names):
    X = draw(features())
    return X, draw(st.lists(st.sampled_from(names), min_size=len(X), max_size=len(X)))


def written(path, text, packing=""):
    pack = {"": lambda data: data, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    target = path / f"toy{packing}"
    target.write_bytes(pack[target.suffix if target.suffix in pack else ""](text.encode()))
    return target


def pairs(row, first=0):
    return " ".join(f"{j + first}:{value!r}" for j, value in enumerate(row.tolist()) if value)


def ids(row, first=0):
    return ",".join(str(j + first) for j in np.flatnonzero(row))


def check(got, X, y):
    np.testing.assert_array_equal(got.X.toarray() if sparse.issparse(got.X) else got.X, X)
    np.testing.assert_array_equal(got.y.toarray() if sparse.issparse(got.y) else got.y, y)


def xc_text(X, Y):
    rows = [f"{ids(y)} {pairs(x)}" for x, y in zip(X, Y, strict=True)]
    return "\n".join([f"{len(X)} {X.shape[1]} {Y.shape[1]}", *rows]) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


# Extreme Classification Repository


@settings(max_examples=40)
@given(data=multilabel(), packing=st.sampled_from([".txt", ".txt.gz", ".txt.bz2", ".txt.xz"]))
def test_xc(folder, data, packing):
    path = written(folder, xc_text(*data), packing)
    got = read(path)
    check(got, *data)
    assert (got.name, got.task, got.split) == ("toy", "multilabel", None)


@settings(max_examples=40)
@given(train=multilabel(), test=multilabel())
def test_xc_with_a_test_file(folder, train, test):
    X, Y = train[0], train[1]
    T = np.resize(test[0], (len(test[0]), X.shape[1]))
    V = np.resize(test[1], (len(T), Y.shape[1]))
    got = read_xc(written(folder, xc_text(X, Y), "1"), written(folder, xc_text(T, V), "2"))
    check(got, np.vstack([X, T]), np.vstack([Y, V]))
    assert got.split == len(X)


def test_many_rows(folder):
    rng = np.random.default_rng(0)
    X = (rng.random((5000, 4)) * (rng.random((5000, 4)) < 0.5)).astype(np.float32)
    Y = (rng.random((5000, 3)) < 0.3).astype(np.int8)
    check(read_xc(written(folder, xc_text(X, Y), ".txt")), X, Y)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0,1 2:3\n", r", line 1: expected a header of three whole numbers.*svmlight"),
        ("2 2 2\n0 0:1\n", r", line 2: expected 2 rows, as the header says, got 1"),
        ("1 2 2\n0 0:1\n1 1:1\n", r", line 3: expected no more than 1 rows"),
        ("2 2 2\n0 0:1\n1 2:1\n", r", line 3: expected features from 0 to 1, got 2"),
        ("2 2 2\n0 0:1\n2 1:1\n", r", line 3: expected labels from 0 to 1, got 2"),
        ("2 2 2\n0 0:1\n1 1:one\n", r", line 3: expected feature:value.*got '1:one'"),
        ("2 2 2\n0 0:1\n1 1 1\n", r", line 3: expected feature:value.*got '1'"),
        ("2 2 2\n0 0:1\n1 1:nan\n", r", line 3: expected feature:value.*got '1:nan'"),
        ("2 2 2\n0 0:1\n1 -1:2\n", r", line 3: expected feature:value.*got '-1:2'"),
        ("2 2 2\n0 0:1\na 1:1\n", r", line 3: expected labels as whole numbers.*got 'a'"),
        ("2 2 2\n0 0:1\n-1 1:1\n", r", line 3: expected labels as whole numbers.*got '-1'"),
        ("2 2 2\n0 0:1\n1 9999999999:1\n", r", line 3: expected feature:value.*got '9999999999:1'"),
        ("2 2 2\n0 0:1\n1,,0 1:1\n", r", line 3: expected labels as whole numbers.*got '1,,0'"),
    ],
)
def test_xc_says_what_is_wrong(folder, text, sentence):
    with pytest.raises(ValueError, match=r"toy\.txt" + sentence):
        read_xc(written(folder, text, ".txt"))


# svmlight


@settings(max_examples=40)
@given(
    data=classes(["+1", "-1.0", "3", "2.5"]),
    first=st.sampled_from([0, 1]),
    noise=st.sampled_from(["", "  # a comment: 1:2", "\n\n# a whole line"]),
)
def test_svmlight_classes(folder, data, first, noise):
    X, names = data
    rows = [f"{name} qid:7 {pairs(x, first)}{noise}" for x, name in zip(X, names, strict=True)]
    got = read(written(folder, "\n".join(rows), ".svm"), first=first, n_features=X.shape[1])
    values = sorted({float(name) for name in names})
    check(got, X, [values.index(float(name)) for name in names])
    assert [float(name) for name in got.labels] == values
    assert got.task == ("binary" if len(values) == 2 else "multiclass")


@settings(max_examples=40)
@given(data=multilabel(), first=st.sampled_from([0, 1]))
def test_svmlight_multilabel(folder, data, first):
    X, Y = data
    rows = [f"{ids(y, first)} {pairs(x, first)}" for x, y in zip(X, Y, strict=True)]
    kept = [j for j, row in enumerate(rows) if row.strip()]  # a row of nothing cannot be told
    assume(kept)
    got = read_svmlight(
        written(folder, "\n".join(rows), ".svm"),
        task="multilabel",
        first=first,
        first_label=first,
        n_features=X.shape[1],
        n_labels=Y.shape[1],
    )
    check(got, X[kept], Y[kept])


def test_svmlight_agrees_with_scikit_learn(folder):
    datasets = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(0)
    X = (rng.random((40, 8)) * (rng.random((40, 8)) < 0.5)).astype(np.float32)
    y = rng.integers(0, 2, 40)
    for zero_based in (True, False):
        file = io.BytesIO()
        datasets.dump_svmlight_file(X, y, file, zero_based=zero_based, comment="hello")
        path = written(folder, file.getvalue().decode(), ".libsvm")
        theirs, labels = datasets.load_svmlight_file(str(path))
        got = read(path)
        np.testing.assert_array_equal(got.X.toarray(), theirs.toarray().astype(np.float32))
        np.testing.assert_array_equal(got.y, labels)


def test_svmlight_counts_from_one_unless_there_is_a_zero(folder):
    one = read_svmlight(written(folder, "1 1:5\n2 2:6\n", ".svm"))
    zero = read_svmlight(written(folder, "1 1:5\n2 0:6\n", ".svm"))
    assert one.X.toarray().tolist() == [[5, 0], [0, 6]]
    assert zero.X.toarray().tolist() == [[0, 5], [6, 0]]


def test_svmlight_counts_features_and_labels_each_in_its_own_way(folder):
    got = read_svmlight(written(folder, "0,2 1:5\n1 2:6\n", ".svm"))
    assert got.X.toarray().tolist() == [[5, 0], [0, 6]]
    assert got.y.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]


def test_tabs_are_blanks(folder):
    got = read_svmlight(written(folder, "0,1\t1:5\t2:6\n1\n\t1:7", ".svm"))
    assert got.X.toarray().tolist() == [[5, 6], [0, 0], [7, 0]]
    assert got.y.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]


def test_training_and_test_file_share_features_and_classes(folder):
    train, test = written(folder, "a 1:5\nc 1:5\n", "1"), written(folder, "b 3:6\n", "2")
    got = read_svmlight(train, test)
    assert got.X.toarray().tolist() == [[5, 0, 0], [5, 0, 0], [0, 0, 6]]
    assert got.y.tolist() == [0, 2, 1]
    assert (got.labels, got.split) == (("a", "b", "c"), 2)


def test_rows_without_labels_make_a_file_multilabel(folder):
    got = read_svmlight(written(folder, "1 1:5\n 2:6\n", ".svm"))
    assert got.task == "multilabel"
    assert got.y.toarray().tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("1 1:2\n3:4\n", {"task": "binary"}, r", line 2: expected a label before the features"),
        ("1 1:2\n1 x:4\n", {}, r", line 2: expected feature:value.*got 'x:4'"),
        ("1 0:2\n", {"first": 1}, "features counted from 1 were expected"),
        ("1 5:2\n", {"n_features": 3}, "n_features of read_svmlight must be at least 5, got 3"),
        ("1 5:2\n", {"first": 2}, "first of read_svmlight must be 0, 1 or None"),
        ("1 5:2\n", {"task": "multi"}, "task of read_svmlight must be"),
    ],
)
def test_svmlight_says_what_is_wrong(folder, text, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_svmlight(written(folder, text, ".svm"), **options)


# ARFF


def quoted(name):
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def arff_text(X, Y, names, *, as_sparse, relation, labels_first):
    d, m = X.shape[1], Y.shape[1]
    label = [f"@ATTRIBUTE {quoted(name)} {{0,1}}" for name in names]
    plain = [f"@attribute f{j} numeric" for j in range(d)]
    table = np.hstack([Y, X] if labels_first else [X, Y]).astype(float)
    kinds = [True] * m + [False] * d if labels_first else [False] * d + [True] * m
    lines = ["% a comment", f"@relation {quoted(relation)}", ""]
    lines += [*label, *plain] if labels_first else [*plain, *label]
    lines += ["@data", "% another"]
    for row in table:
        cells = [str(int(v)) if k else repr(float(v)) for v, k in zip(row, kinds, strict=True)]
        if as_sparse:
            stored = [f"{j} {cell}" for j, cell in enumerate(cells) if row[j]]
            lines.append("{" + ", ".join(stored) + "}")
        else:
            lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@settings(max_examples=40)
@given(
    data=multilabel(),
    as_sparse=st.booleans(),
    labels_first=st.booleans(),
    packing=st.sampled_from([".arff", ".arff.bz2", ".arff.gz"]),
    texts=st.lists(NAMES, min_size=4, max_size=4, unique=True),
)
def test_arff_of_meka(folder, data, as_sparse, labels_first, packing, texts):
    X, Y = data
    names = texts[: Y.shape[1]]
    relation = f"it's: -C {Y.shape[1] if labels_first else -Y.shape[1]} -x 3"
    text = arff_text(X, Y, names, as_sparse=as_sparse, relation=relation, labels_first=labels_first)
    got = read(written(folder, text, packing))
    check(got, X, Y)
    assert got.labels == tuple(names)
    assert sparse.issparse(got.X) == as_sparse


@settings(max_examples=40)
@given(data=multilabel(), as_sparse=st.booleans())
def test_arff_of_mulan(folder, data, as_sparse):
    X, Y = data
    names = [f"label <{j}>" for j in range(Y.shape[1])]
    text = arff_text(X, Y, names, as_sparse=as_sparse, relation="r", labels_first=False)
    path = written(folder, text, ".arff")
    tags = "".join(f'<label name="{name.replace("<", "&lt;")}"></label>' for name in names)
    labels = folder / "labels.xml"
    labels.write_text(f'<labels xmlns="http://mulan.sourceforge.net/labels">{tags}</labels>')
    check(read_arff(path, labels=labels), X, Y)
    check(read_arff(path, labels=-len(names)), X, Y)
    check(read_arff(path, labels=names), X, Y)
    beside = folder / "toy.xml"
    beside.write_text(labels.read_text())
    got = read_arff(path, path)
    beside.unlink()
    check(got, np.vstack([X, X]), np.vstack([Y, Y]))
    assert got.labels == tuple(names)


WEATHER = """@relation weather
@attribute outlook {sunny, 'over cast', rainy}
@attribute size {10, 20}
@attribute "wind \\"speed\\"" real
@attribute play {no, "well, yes"}
@data
sunny,10,1.5,no
'over cast',20,-2,"well, yes"
"""


def test_arff_with_a_class_column(folder):
    got = read_arff(written(folder, WEATHER, ".arff"))
    assert got.X.tolist() == [[0, 10, 1.5], [1, 20, -2]]
    assert (got.y.tolist(), got.labels, got.task) == ([0, 1], ("no", "well, yes"), "binary")


def test_arff_classes_may_be_numbers(folder):
    text = "@relation r\n@attribute a real\n@attribute b {0.3,0.1}\n@data\n5,0.1\n6,0.3\n"
    got = read_arff(written(folder, text, ".arff"))
    assert (got.y.tolist(), got.labels) == ([1, 0], ("0.3", "0.1"))


def test_sparse_arff_with_words(folder):
    text = WEATHER.replace("{10, 20}", "{0, 20}").partition("@data")[0]
    got = read_arff(
        written(folder, text + "@data\n{0 'over cast', 3 \"well, yes\"}\n{}\n", ".arff")
    )
    assert got.X.toarray().tolist() == [[1, 0, 0], [0, 0, 0]]
    assert got.y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "sunny,10,1.5,no",
            "snow,10,1.5,no",
            r", line 7: expected sunny or .*, got 'snow'",
        ),
        ("sunny,10,1.5,no", "sunny,10,?,no", r", line 7: expected a finite number .*got '\?'"),
        ("sunny,10,1.5,no", "sunny,10,no", r", line 7: expected 4 cells, got '3 cells'"),
        ("sunny,10,1.5,no", "'sunny,10,1.5,no", r", line 7: expected sunny or .*got \"'sunny\""),
        ("@relation weather", "@data", r", line 1: expected attributes before @data"),
        ("sunny,10,1.5,no", "{7 1}", r"expected 0 as the first value of 'size'"),
        ("real", "string", r", line 4: expected a numeric or a nominal attribute, got 'string'"),
        ("@data", "@date", r", line 6: expected @relation, @attribute or @data"),
        ("@attribute outlook {", "@attribute {", r", line 2: expected .*got"),
        ("@data", "% no data\n%", r"expected"),
    ],
)
def test_arff_says_what_is_wrong(folder, old, new, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_arff(written(folder, WEATHER.replace(old, new), ".arff"))


@pytest.mark.parametrize(
    "row",
    ["{2 1", "{9 1}", "{-1 1}", "{0 2}", "{2 x}", "{0 1 2 1}", "{0}", "{" + "9" * 5000 + " 1}"],
    ids=lambda row: row[:9],
)
def test_sparse_arff_says_what_is_wrong(folder, row):
    text = "@relation 'r -C 1'\n@attribute a {0,1}\n@attribute b real\n@attribute c real\n@data\n"
    with pytest.raises(ValueError, match=r"toy\.arff, line 6: expected \{column value, …\}"):
        read_arff(written(folder, text + row, ".arff"))


def test_labels_that_an_arff_file_does_not_have(folder):
    path = written(folder, WEATHER, ".arff")
    with pytest.raises(ValueError, match=r"expected a label 'plaz', got none; did you mean 'play'"):
        read_arff(path, labels=["plaz"])
    with pytest.raises(ValueError, match="expected from 1 to 4 label columns, got 5"):
        read_arff(path, labels=5)
    with pytest.raises(ValueError, match="expected labels to be 0 or 1, got 10"):
        read_arff(path, labels=["size"])
    (folder / "bad.xml").write_text("<labels/>")
    with pytest.raises(ValueError, match=r"bad\.xml: expected elements <label name=…>, got none"):
        read_arff(path, labels=folder / "bad.xml")
    other = folder / "other.arff"
    other.write_text(WEATHER.replace("rainy", "snowy"))
    with pytest.raises(ValueError, match=r"other\.arff: expected the attributes of .*toy\.arff"):
        read_arff(path, other)
    with pytest.raises(ValueError, match="a last attribute that is nominal, got the number 'b'"):
        read_arff(written(folder, "@relation r\n@attribute b real\n@data\n1\n", ".arff"))
    (folder / "bad.xml").write_text("<labels>\n<label")
    with pytest.raises(ValueError, match=r"bad\.xml, line 2: expected XML"):
        read_arff(path, labels=folder / "bad.xml")


# CSV


@settings(max_examples=40)
@given(
    data=classes(["cat", 'a "big", dog', "été"]),
    place=st.integers(0, 5),
    header=st.booleans(),
    by_name=st.booleans(),
    cut=st.sampled_from([",", "\t", ";"]),
)
def test_csv_classes(folder, data, place, header, by_name, cut):
    X, names = data
    place = min(place, X.shape[1])
    quote = ['"' + name.replace('"', '""') + '"' for name in names]
    rows = [[repr(v) for v in x.tolist()] for x in X]
    for row, name in zip(rows, quote, strict=True):
        row.insert(place, name)
    head = [f"c{j}" for j in range(X.shape[1] + 1)]
    lines = [cut.join(row) for row in ([head, *rows] if header else rows)]
    path = written(folder, "\r\n".join(lines), ".tsv" if cut == "\t" else ".csv")
    labels = f"c{place}" if by_name and header else place - (X.shape[1] + 1)
    options = {"delimiter": cut} if cut == ";" else {}
    got = read(path, labels=labels, header=header, **options)
    kinds = sorted(set(names))
    check(got, X, [kinds.index(name) for name in names])
    assert got.labels == tuple(kinds)


@settings(max_examples=40)
@given(data=multilabel())
def test_csv_indicators(folder, data):
    X, Y = data
    names = [f"is {j}" for j in range(Y.shape[1])]
    head = ",".join([*names, *(f"f{j}" for j in range(X.shape[1]))])
    rows = [",".join(map(str, [*y, *x.tolist()])) for x, y in zip(X, Y, strict=True)]
    path = written(folder, "\n".join([head, *rows]), ".csv")
    got = read_csv(path, path, labels=names)
    check(got, np.vstack([X, X]), np.vstack([Y, Y]))
    assert (got.labels, got.split) == (tuple(names), len(X))


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("", {}, r", line 1: expected names of columns or numbers, got nothing"),
        ("a,b\n", {}, r"toy.csv: expected rows, got none"),
        ("a,b\n1," + "x" * 140_000, {}, r", line 2: expected cells, .* \(field larger"),
        ("a,b\n1,x\n1,2,3\n", {}, r", line 3: expected 2 cells, as in line 1, got 3"),
        ("a,b\n1,x\nz,x\n", {}, r", line 3: expected a number in the column 'a', got 'z'"),
        ("a,b\n1,x\ninf,x\n", {}, r", line 3: expected finite numbers, got inf"),
        ("age,b\n1,x\n", {"labels": "agge"}, r"names of this file; did you mean 'age'"),
        ("age,b\n1,x\n", {"labels": 2}, r"a column from -2 to 1, got 2"),
        ("1,x\n", {"labels": "age", "header": False}, r"pass header=True"),
        ("1,2,x\n3,4,y\n", {}, r", line 1: expected names of columns \(pass header=False.*'1,2,x'"),
        ("1,0\n3,1\n", {"labels": [1]}, r", line 1: expected names of columns"),
        ("a,b\n1,x\n2, \n3,y\n", {}, r", line 3: expected a class, got ' *'"),
        (
            "a b\nx y\n",
            {},
            r", line 1: expected columns of features beside .*, got 'a b'",
        ),
        ("a,b\n1,0\n", {"labels": ["a", "b"]}, r", line 1: expected columns of features"),
        ("a,b,c\n1,0,1\n1,0,2\n", {"labels": [1, 2]}, r", line 3: expected 0 or 1 .*got 2"),
    ],
)
def test_csv_says_what_is_wrong(folder, text, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_csv(written(folder, text, ".csv"), **options)


@pytest.mark.parametrize("cut", [",", ";", "\t"])
@pytest.mark.parametrize("head", ["width{}height{}kind", '"a,b;c"{}height{}kind'])
def test_the_delimiter_is_found(folder, cut, head):
    text = head.format(cut, cut) + f"\n1{cut}2{cut}cat\n3{cut}4{cut}dog\n"
    got = read(written(folder, text, ".csv"))
    assert got.X.tolist() == [[1, 2], [3, 4]]
    assert got.labels == ("cat", "dog")


def test_a_first_line_of_numbers_is_what_it_is_told_to_be(folder):
    path = written(folder, "1,2,x\n3,4,y\n5,6,z\n", ".csv")
    assert read(path, header=False).n == 3
    assert read(path, header=True).n == read(path, labels="x").n == 2


# Arrays


@settings(max_examples=40)
@given(data=multilabel(), layout=st.sampled_from(["one file", "npy", "sparse"]))
def test_arrays(folder, data, layout):
    X, Y = data
    first, second = folder / "X.npz", folder / "Y.npz"
    if layout == "one file":
        np.savez(first, X=X, Y=Y)
        got = read_arrays(first, task="multilabel")
    elif layout == "npy":
        np.save(folder / "X.npy", X)
        np.save(folder / "Y.npy", Y)
        got = read(folder / "X.npy", labels=folder / "Y.npy", task="multilabel")
    else:
        sparse.save_npz(first, sparse.csr_array(X))
        sparse.save_npz(second, sparse.csr_array(Y))
        got = read_arrays(first, second, task="multilabel")
    check(got, X, Y)
    assert sparse.issparse(got.X) == (layout == "sparse")


def test_arrays_of_classes(folder):
    np.savez(folder / "a.npz", X=np.eye(3), y=np.array([[0], [1], [1]]))
    got = read(folder / "a.npz", split=2)
    assert (got.task, got.y.tolist(), got.split) == ("binary", [0, 1, 1], 2)
    np.savez(folder / "b.npz", X=np.eye(3), z=np.arange(3))
    with pytest.raises(ValueError, match=r"b.npz: expected arrays X and y, .* got X, z"):
        read(folder / "b.npz")


@pytest.mark.parametrize("name", ["a.npz", "a.npy"])
@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04 junk", b"\x93NUMPY junk"])
def test_spoiled_arrays_are_named(folder, name, content):
    (folder / name).write_bytes(content)
    np.save(folder / "y.npy", np.arange(3))
    for options in ({}, {"labels": folder / "y.npy"}):
        with pytest.raises(ValueError, match=rf"{name}( is not a sound \{name[1:]} file)?: "):
            read(folder / name, **options)


def test_an_array_is_no_archive(folder):
    np.save(folder / "a.npy", np.eye(2))
    (folder / "a.npy").rename(folder / "a.npz")
    with pytest.raises(ValueError, match=r"a\.npz is not a sound \.npz file"):
        read(folder / "a.npz")


# Choosing


def test_txt_files_are_told_apart_by_their_header(folder):
    assert read(written(folder, "1 3 4\n0,3 1:0.5\n", ".txt")).m == 4
    assert read(written(folder, "0,3 1:0.5\n", ".txt")).d == 1


def test_read_says_what_it_knows(folder):
    with pytest.raises(FileNotFoundError, match="expected a file or folder, there is none"):
        read(folder / "none.csv")
    with pytest.raises(ValueError, match=r"expected a name that ends in \.svm, .*or format="):
        read(written(folder, "1 1:2", ".dat"))
    with pytest.raises(ValueError, match="format of read must be"):
        read(written(folder, "1 1:2", ".dat"), format="svm")
    with pytest.raises(TypeError, match=r"'svmlight' takes test, .*got 'n_label'.*'n_labels'"):
        read(written(folder, "1 1:2", ".svm"), n_label=3)
    assert read(written(folder, "1 1:2", ".dat"), format="svmlight").n == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"indptr": np.array([0, 5, 1, 3])},
        {"indices": np.array([0, 10**6, 1])},
        {"indices": np.array([0, -7, 1])},
        {"indptr": np.array([0, 1, 2, 10**6])},
        {"data": np.array([1.0, np.nan, 1.0])},
        {"data": np.array([1.0, 1e300, 1.0])},
    ],
)
def test_unsound_sparse_features_are_refused(folder, changed):
    """Compiled code goes where these point: unchecked, this ends the process."""
    parts = {"data": np.ones(3), "indices": np.array([0, 2, 1]), "indptr": np.array([0, 1, 2, 3])}
    parts |= {"shape": np.array([3, 3]), "format": np.array(b"csr"), **changed}
    np.savez(folder / "unsound.npz", **parts)
    np.save(folder / "y.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"unsound\.npz"):
        read(folder / "unsound.npz", labels=folder / "y.npy")

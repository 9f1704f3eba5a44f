"""Files as people have them: the sentence names what is likely wrong, not only that it is."""

import numpy as np
import pytest

import omma
from omma.datasets import read, read_matrix, read_scored

ETA = "sport,art\n0.9,0.25\n0.1,0.5\n"
Y = "sport,art\n1,0\n0,1\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(**files):
        for name, text in files.items():
            raw = text if isinstance(text, bytes) else text.encode()
            (tmp_path / f"{name}.csv").write_bytes(raw)

    write(eta=ETA, y=Y)
    return write


def refusal(ask, *arguments, **options):
    with pytest.raises(ValueError, match=r"\.[a-z]+") as caught:
        ask(*arguments, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    return str(caught.value)


TABLES = [
    ('a,b\n"0,9","0,25"\n', "if the comma is a decimal one, write a point: 0.9"),
    (ETA.encode("utf-16"), "is UTF-16 text, and must be UTF-8"),
    (ETA.encode("utf-16-le"), "is UTF-16 text, and must be UTF-8"),
    ("é,b\n0,1\n".encode("latin-1"), "it is no UTF-8 text"),
    ("a," + "b" * 200_000 + "\n0,1\n", "field larger than field limit"),
    ("id,a,a\nx,0,1\n", "expected distinct names, got 'a' twice"),
    ("id,a,id\nx,0,1\n", "expected distinct names, got 'id' twice"),
    ("id\nx\n", "must have columns of numbers beside 'id'"),
]


@pytest.mark.parametrize(("text", "sentence"), TABLES)
def test_tables(written, text, sentence):
    written(a=text)
    options = {"id_column": "id"} if isinstance(text, str) and text.startswith("id") else {}
    assert sentence in refusal(read_matrix, "a.csv", **options)
    if not options:
        assert sentence in refusal(read_scored, "a.csv", "y.csv")
        assert sentence in refusal(read_scored, "eta.csv", "a.csv")


LABELS = [
    (
        {"eta": Y, "y": ETA},
        "must hold only 0 and 1, got 0.9 in row 0; are eta and labels swapped?",
    ),
    ({"eta": "p\n3\n1\n", "y": ETA}, "whole numbers look like labels: are eta and labels swap"),
    ({"eta": "p\n1\n0\n", "y": ETA}, "are eta and labels swapped?"),
    (
        {"eta": "a,b\n90.5,25\n10,50\n"},
        "divide them by 100: pass percent=True",
    ),
    ({"eta": "a,b\n-1.5,-0.25\n-10,0.5\n"}, "if these are log-odds"),
    ({"y": "1,0\n0,1\n1,1\n"}, "which has 2, got 3; perhaps the first line of one"),
    ({"y": Y + "0,1\n" * 9}, "which has 2, got 11; they must be of the same rows"),
    ({"y": "y\n1\n2\n"}, "whole numbers from 0 to 1, got 2 in row 1; if the first class is 1"),
]


@pytest.mark.parametrize(("files", "sentence"), LABELS)
def test_two_files(written, files, sentence):
    written(**files)
    assert sentence in refusal(read_scored, "eta.csv", "y.csv")


@pytest.mark.parametrize("options", [{"id": "who"}, {"label": "who"}, {"probability": "who"}])
def test_names_of_columns_are_shown_on_one_line_and_shortened(written, options):
    written(a='"sp\nort",' + "b" * 5000 + ",y_a\n0.5,0.5,1\n")
    sentence = refusal(read_scored, "a.csv", "a.csv", **options)
    assert "has no column 'who'" in sentence
    assert "it has sp ort, bbb" in sentence


@pytest.mark.parametrize("head", ["", "index"])
def test_hints_name_the_parameter_of_the_reader(written, head):
    written(numbered=f"{head},a\n0,0.5\n")
    assert f"pass id='{head}'" in refusal(read_scored, "numbered.csv")
    assert f"pass id_column='{head}'" in refusal(read_matrix, "numbered.csv")


def test_ids_twice(written):
    written(eta="id,a,a\nx,0.5,0.1\n", y="id,a,b\nx,0,1\n", words="id,id\nx,a\n")
    assert "distinct names, got 'a' twice" in refusal(read_scored, "eta.csv", "y.csv", id="id")
    written(eta="id,a,b\nx,0.5,0.1\n")
    assert "distinct names, got 'id' twice" in refusal(read_scored, "eta.csv", "words.csv", id="id")


def test_many_names_are_paired_in_time_that_grows_with_them(written):
    import time

    m = 30_000
    names = [f"p_label{j}" for j in range(m)]
    row = ",".join(["0.5"] * m)
    written(eta=",".join(names) + f"\n{row}\n")
    turned = ",".join(name[2:] for name in reversed(names))
    written(y=turned + "\n" + ",".join(["1"] * m))
    before = time.process_time()
    assert read_scored("eta.csv", "y.csv").notes
    written(y="topic\nlabel7\n")
    assert read_scored("eta.csv", "y.csv").batch.labels.values.indices.tolist() == [7]
    assert time.process_time() - before < 5


SPOILED = [
    ("a.npy", b"\x93NUMPY\x01\x00\x0a\x00{'descr': ("),
    ("a.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04"),
    ("a.csv.bz2", b"BZh91AY"),
    ("a.csv.xz", b"\xfd7zXZ\x00\x00\x04"),
    ("a.arff.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x04"),
    ("a.svm.xz", b"nothing"),
    ("a.txt.gz", b"nothing"),
    ("a.arff", "@relation r\n@attribute a real\n@data\n1e60\n".encode("utf-16")),
    ("a.svm", b"1 1:1e60\n"),
    ("a.csv", b"a,b\n1e60,x\n"),
]


@pytest.mark.parametrize(("name", "content"), SPOILED)
def test_spoiled_files_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert str(tmp_path / name) in refusal(read, tmp_path / name)
    if "arff" not in name and "svm" not in name:
        assert str(tmp_path / name) in refusal(read_matrix, tmp_path / name)


def test_a_text_that_unpacks_to_more_than_it_should(tmp_path, monkeypatch):
    import gzip

    monkeypatch.setattr("omma.npz.SMALL", 1 << 16)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"0,1\n" * 100_000))
    assert "more than a file of this size should: unpack it first" in refusal(
        read_matrix, tmp_path / "a.csv.gz"
    )
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"0,1\n" * 1000))
    assert np.shape(read_matrix(tmp_path / "a.csv.gz").values) == (1000, 2)


def test_metrics_of_one_label_lead_to_those_of_classes():
    eta, y = np.full((4, 3), 0.3), [0, 1, 2, 0]
    for name in ("accuracy", "balanced_accuracy", "gmean", "hmean", "qmean", "mcc"):
        with pytest.raises(ValueError, match=f"or multiclass_{name} for one class a row"):
            omma.replay(omma.Auto(name), eta, y)
        assert omma.metric(f"multiclass_{name}").multiclass
    with pytest.raises(ValueError, match=r"use macro_f1 or micro_f1$"):
        omma.replay(omma.Auto("f1"), eta, y)


CLASSED = ("accuracy", "balanced_accuracy", "gmean", "hmean", "qmean", "mcc")


@pytest.mark.parametrize("name", CLASSED)
def test_over_classes_a_metric_is_another_number_and_every_door_says_which(name):
    """Its macro and micro averages are other numbers, and are not what is meant."""
    from sklearn.datasets import load_wine
    from sklearn.naive_bayes import GaussianNB

    from omma.sklearn import MetricClassifier, make_scorer

    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match=f": use multiclass_{name}$"):
        MetricClassifier(GaussianNB(), metric=name).fit(X, y)
    with pytest.raises(ValueError, match=f"pass pos_label, or use multiclass_{name}$"):
        omma.metric(name).score([1, 2, 3], [1, 2, 2])
    with pytest.raises(ValueError, match=f"pass pos_label, or use multiclass_{name}$"):
        make_scorer(name)(GaussianNB().fit(X, y), X, y)
    words = np.where(y > 0, "b", "a")
    with pytest.raises(ValueError, match=f"pos_label='b', or use multiclass_{name}$"):
        MetricClassifier(GaussianNB(), metric=name).fit(X, words)
    for policy in (omma.Auto, omma.OMMA):
        with pytest.raises(ValueError, match=f"got 1: .* or multiclass_{name} for one class a row"):
            policy(name, k=1)
    with pytest.raises(ValueError, match=f"or multiclass_{name} for one class a row"):
        omma.choose(np.full((30, 3), 0.3), np.arange(30) % 3, f"{name}@1")


def test_f1_over_classes_has_no_such_form():
    with pytest.raises(ValueError, match=r"got 1: use macro_f1 or micro_f1$"):
        omma.Auto("f1", k=1)
    with pytest.raises(ValueError, match=r"pos_label, or use macro_f1$"):
        omma.metric("f1").score(["a", "b"], ["a", "a"])


def test_the_command_line_says_it_too(written):
    from click.testing import CliRunner

    from omma.cli import main

    files = ["--eta", "eta.csv", "--labels", "y.csv"]
    found = CliRunner().invoke(main, ["evaluate", *files, "--metric", "mcc", "-k", "1"])
    assert found.exit_code == 2
    assert "or multiclass_mcc for one class a row" in " ".join(found.output.split())


def test_a_limit_on_accuracy_leads_to_that_of_classes():
    eta, y = np.full((4, 3), 0.3), [0, 1, 2, 0]
    policy = omma.Auto("macro_f1", k=1, subject_to="accuracy >= 0.5")
    with pytest.raises(ValueError, match="or multiclass_accuracy for one class a row"):
        omma.replay(policy, eta, y)


def test_a_curve_has_no_classes():
    with pytest.raises(ValueError, match=r"got multiclass_mcc: one class a row has no thresholds"):
        omma.curve(np.full((4, 3), 0.3), [0, 1, 2, 0], "matthews_corrcoef")


def test_logits_of_a_single_row_are_told_what_to_do():
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), n_labels=3)
    with pytest.raises(ValueError, match=r"got -1\.5; if these are log-odds .* their softmax"):
        learner.predict(np.array([0.2, -1.5, 4.0]))

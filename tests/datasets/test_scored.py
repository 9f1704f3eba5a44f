"""Scored rows in files as people have them: every spelling gives the same batch."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal
from scipy import sparse

import omma
from omma.cli import main
from omma.datasets import read_scored

P = np.array([0.9, 0.25, 0.5, 0.125, 0.75])
TRUE = np.array([1, 0, 1, 0, 0])
ETA = np.column_stack([P, 1 - P, np.full(5, 0.5)])
CLASSES = np.array([2, 0, 1, 1, 0])
NAMES = ("red", "green", "blue")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def labels(scored):
    values = scored.batch.labels.values
    if scored.batch.class_ids:
        return values.indices.tolist()
    return np.ravel(values.toarray() if hasattr(values, "toarray") else values).tolist()


def table(separator=",", decimal=".", words=("0", "1"), more=""):
    lines = [separator.join(["tx", "amount", "p_fraud", "is_fraud"])]
    for row, (p, true) in enumerate(zip(P, TRUE, strict=True)):
        cells = [f"t{row}", f"{10.5 * row}", f"{p}{more}", words[true]]
        lines.append(separator.join(cell.replace(".", decimal) for cell in cells))
    return "\n".join(lines) + "\n"


COLUMNS = {"probability": "p_fraud", "label": "is_fraud", "id": "tx"}
PAIRS = [("0", "1"), ("no", "yes"), ("false", "true"), ("FALSE", "TRUE"), ("N", "Y"), ("f", "t")]


@pytest.mark.parametrize("words", PAIRS)
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_one_table_of_ids_probabilities_and_labels(separator, words):
    Path("scored.csv").write_text(table(separator, words=words))
    scored = read_scored("scored.csv", "scored.csv", **COLUMNS)
    assert scored.batch.values.ravel().tolist() == P.tolist()
    assert labels(scored) == TRUE.tolist()
    assert scored.rows == ("tx", tuple(f"t{row}" for row in range(5)))


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas(separator):
    Path("scored.csv").write_text(table(separator, decimal=","))
    scored = read_scored("scored.csv", **COLUMNS)  # a label column is in the same file
    assert scored.batch.values.ravel().tolist() == P.tolist()
    Path("one.csv").write_text("p\n" + "".join(f"{p}\n".replace(".", ",") for p in P))
    assert read_scored("one.csv").batch.values.ravel().tolist() == P.tolist()


@pytest.mark.parametrize("sign", ["", "%", " %"])
def test_percent_is_offered_and_taken(sign):
    text = "p,y\n" + "".join(f"{100 * p}{sign},{y}\n" for p, y in zip(P, TRUE, strict=True))
    Path("scored.csv").write_text(text)
    with pytest.raises(ValueError, match=r"if these are percent, .*pass percent=True"):
        read_scored("scored.csv", "scored.csv")
    scored = read_scored("scored.csv", "scored.csv", percent=True)
    assert scored.batch.values.ravel().tolist() == P.tolist()


def test_columns_by_their_start_or_as_a_list():
    frame = pd.DataFrame(ETA, columns=[f"p_{name}" for name in NAMES])
    for place, name in enumerate(NAMES):
        frame[f"is_{name}"] = np.where(place == CLASSES, "yes", "no")
    frame["amount"] = 17.5
    frame.to_csv("scored.csv", index=False)
    frame.to_parquet("scored.parquet")
    names = ",".join(f"p_{name}" for name in NAMES)
    for path in ("scored.csv", "scored.parquet"):
        for chosen in ("p_", "p_*", names, names.split(",")):
            scored = read_scored(path, path, probability=chosen, label="is_")
            assert_array_equal(scored.batch.values, ETA)
            assert labels(scored) == np.eye(3, dtype=int)[CLASSES].ravel().tolist()
        assert read_scored(path, path, probability="p_", label="is_").batch.names == NAMES


def test_names_tell_what_columns_are_as_in_a_stream():
    frame = pd.DataFrame(ETA, columns=NAMES)
    frame.insert(0, "id", list("abcde"))
    frame["y"] = np.array(NAMES)[CLASSES]
    frame.to_csv("classes.csv", index=False)
    assert labels(read_scored("classes.csv", "classes.csv")) == CLASSES.tolist()
    marked = frame.drop(columns="y")
    for place, name in reversed([*enumerate(NAMES)]):
        marked[f"y_{name}"] = place == CLASSES
    marked.to_csv("marked.csv", index=False)
    wanted = np.eye(3, dtype=int)[CLASSES].ravel().tolist()
    assert labels(read_scored("marked.csv", "marked.csv")) == wanted
    for path in ("classes.csv", "marked.csv"):
        metric = ["--metric", "macro_f1", "-k", "1"]
        done = CliRunner().invoke(main, ["stream", path, *metric, "--json"])
        assert done.exit_code == 0, done.stderr
        judged = ["evaluate", path, *metric, "--policy", "auto", "--json"]
        told = json.loads(CliRunner().invoke(main, judged).stdout)
        assert told["results"][0]["mean"] == json.loads(done.stdout.splitlines()[-1])["value"]


def test_lines_of_a_stream():
    rows = [
        {"id": "a", "eta": {"red": 0.5, "blue": 0.25}},
        {"id": "b", "eta": {"red": 0.125, "blue": 0.75}, "y": ["blue"]},
        {"id": "a", "y": ["red"]},
        {"id": "c", "eta": {"red": 0.5, "blue": 0.5}},
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = read_scored("rows.jsonl", "rows.jsonl")
    assert_array_equal(scored.batch.values, [[0.5, 0.25], [0.125, 0.75]])
    assert labels(scored) == [1, 0, 0, 1]
    assert scored.rows == ("id", ("a", "b"))
    assert scored.notes[0].startswith("1 of 3 rows have no labels and were skipped")
    Path("late.csv").write_text("id,red,y_red\na,0.5,\nb,0.25,0\na,,1\n")
    assert labels(read_scored("late.csv", "late.csv")) == [1, 0]
    Path("late.csv").write_text("id,red,y_red\na,0.5,\nq,,1\n")
    with pytest.raises(ValueError, match=r"late.csv, line 3: expected the id of an earlier row"):
        read_scored("late.csv", "late.csv")


@pytest.mark.parametrize("kind", ["csv", "parquet", "categories", "npy", "npz", "bytes"])
def test_classes_by_name_in_files_of_every_kind(kind):
    words = np.array(NAMES)[CLASSES]
    pd.DataFrame(ETA, columns=[f"p_{name}" for name in NAMES]).to_csv("eta.csv", index=False)
    frame = pd.DataFrame({"colour": words})
    path = {"csv": "y.csv", "npy": "y.npy", "bytes": "y.npy", "npz": "y.npz"}.get(kind, "y.parquet")
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif path.endswith("parquet"):
        frame.astype("category" if kind == "categories" else "str").to_parquet(path)
    elif kind == "npz":
        np.savez(path, words)
    else:
        np.save(path, words.astype("S") if kind == "bytes" else words)
    assert labels(read_scored("eta.csv", path)) == CLASSES.tolist()
    np.save("eta.npy", ETA)
    scored = read_scored("eta.npy", path)  # without names, classes are sorted as scikit-learn does
    assert labels(scored) == [sorted(NAMES).index(word) for word in words]
    assert "sorted order, blue, green, red" in scored.notes[0]


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_yes_and_no_in_files_of_every_kind(kind):
    words, path = np.where(TRUE == 1, "Yes", "No"), f"y.{kind}"
    np.save("p.npy", P)
    if kind == "npy":
        np.save(path, words)
    else:
        frame = pd.DataFrame({"fraud": words}).astype("category")
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    assert labels(read_scored("p.npy", path)) == TRUE.tolist()


def test_a_column_called_y_is_no_label():
    np.save("p.npy", P)
    Path("y.csv").write_text("y\n" + "".join("yes\n" if true else "no\n" for true in TRUE))
    assert labels(read_scored("p.npy", "y.csv")) == TRUE.tolist()
    Path("y.csv").write_text("".join("y\n" if true else "n\n" for true in TRUE))
    assert labels(read_scored("p.npy", "y.csv")) == TRUE.tolist()


def test_numbers_name_columns_that_are_called_by_numbers():
    pd.DataFrame(ETA, columns=["p_1", "p_2", "p_7"]).to_csv("eta.csv", index=False)
    Path("y.csv").write_text("class\n" + "".join(f"{(1, 2, 7)[place]}\n" for place in CLASSES))
    assert labels(read_scored("eta.csv", "y.csv")) == CLASSES.tolist()


def test_the_positive_class():
    words = ["churned" if true else "stayed" for true in TRUE]
    pd.DataFrame({"score": P, "status": words}).to_csv("scored.csv", index=False)
    with pytest.raises(ValueError, match=r"has the classes churned, stayed, .* positive='churned'"):
        read_scored("scored.csv", label="status")
    scored = read_scored("scored.csv", label="status", positive="churned")
    assert labels(scored) == TRUE.tolist()
    pd.DataFrame({"p_churned": P, "status": words}).to_csv("scored.csv", index=False)
    assert labels(read_scored("scored.csv", label="status")) == TRUE.tolist()


def test_choose_takes_what_was_read():
    eta, y = omma.datasets.long_tail(n=200, m=3, seed=0)
    frame = pd.DataFrame(eta, columns=NAMES)
    for place, name in enumerate(NAMES):
        frame[f"y_{name}"] = y[:, place]
    frame.to_csv("scored.csv", index=False)
    choice = omma.choose(read_scored("scored.csv", "scored.csv").batch, None, "macro_f1")
    assert choice.data == omma.choose(eta, y, "macro_f1").data


# What evaluate reads, a stream reads.


STREAMS = [
    ("tx;p_sport;p_art;y_sport;y_art\na;0,75;0,25;yes;no\nb;0,5;0,125;N;Y\n", ("--id", "tx")),
    ("p_sport,p_art,kind\n75%,25%,sport\n50%,12.5%,art\n", ("--label", "kind", "--percent")),
    ("x,p_sport,p_art,y\n7,.75,.25,0\n8,.5,.125,1\n", ("--probability", "p_")),
]


@pytest.mark.parametrize(("text", "options"), STREAMS)
def test_a_stream_reads_the_same_tables(text, options):
    Path("rows.csv").write_text(text)
    metric = ("--metric", "macro_f1@1", "--policy", "baseline", "--json")
    done = CliRunner().invoke(main, ["stream", "rows.csv", *metric, *options])
    assert done.exit_code == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    judged = CliRunner().invoke(main, ["evaluate", "rows.csv", *metric, *options])
    assert judged.exit_code == 0, judged.stderr
    assert last["value"] == json.loads(judged.stdout)["results"][0]["mean"]
    right = omma.replay(omma.TopK(1), [[0.75, 0.25], [0.5, 0.125]], [0, 1], metric="macro_f1")
    assert last["value"] == right.value


def test_a_stream_is_told_the_positive_class():
    Path("rows.csv").write_text("score,status\n0.75,churned\n0.25,stayed\n")
    options = ("--metric", "f1", "--policy", "baseline", "--json", "--label", "status")
    done = CliRunner().invoke(main, ["stream", "rows.csv", *options])
    assert done.exit_code == 3
    assert "pass --positive CLASS" in done.stderr
    done = CliRunner().invoke(main, ["stream", "rows.csv", *options, "--positive", "churned"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["value"] == 1.0


# Errors lead to a command that works.


def evaluate(*arguments):
    options = ["--metric", "f1", "--policy", "baseline", "--json"]
    return CliRunner().invoke(main, ["evaluate", *arguments, *options])


def refusal(done):
    assert done.exit_code in (1, 2), done.stdout
    (line,) = done.stderr.strip().splitlines()
    return line


def test_errors_are_followed_until_a_command_works():
    Path("scored.csv").write_text(table(";", ",", ("no", "yes")))
    line = refusal(evaluate("scored.csv"))
    assert "does not tell which columns hold labels; pass --label NAME" in line
    line = refusal(evaluate("scored.csv", "--label", "is_fraud"))
    assert "'tx' holds words; pass --probability NAME" in line
    line = refusal(evaluate("scored.csv", "--label", "is_fraud", "--probability", "fraud"))
    assert "no column 'fraud', which --probability asks for; did you mean 'p_fraud'" in line
    done = evaluate("scored.csv", "--label", "is_fraud", "--probability", "p_fraud")
    assert done.exit_code == 0, done.stderr
    both = ("--eta", "scored.csv", "--labels", "scored.csv")
    again = evaluate(*both, "--label", "is_fraud", "--probability", "p_fraud", "--id", "tx")
    assert (
        json.loads(again.stdout)["results"][0]["mean"]
        == (json.loads(done.stdout)["results"][0]["mean"])
    )


def test_a_column_of_classes_among_the_probabilities():
    frame = pd.DataFrame(ETA, columns=["p_0", "p_1", "p_2"])
    frame["digit"] = CLASSES
    frame.to_csv("scored.csv", index=False)
    line = refusal(evaluate("--eta", "scored.csv"))
    assert "the column 'digit': if it holds the labels, pass --label digit" in line
    metric = ["--metric", "multiclass_accuracy", "--json", "--policy", "baseline"]
    fixed = ["evaluate", "--eta", "scored.csv", "--label", "digit", *metric]
    done = CliRunner().invoke(main, fixed)
    assert done.exit_code == 0, done.stderr


def test_limits_of_a_label_by_name_where_there_are_no_names():
    np.save("eta.npy", ETA)
    np.save("y.npy", np.eye(3, dtype=np.int8)[CLASSES])
    files = ["evaluate", "--eta", "eta.npy", "--labels", "y.npy", "--metric", "macro_f1"]
    done = CliRunner().invoke(main, [*files, "--subject-to", "recall[red] >= 0.1"])
    assert "names=" not in done.stderr
    assert "write the label's place, such as recall[0]" in done.stderr
    done = CliRunner().invoke(main, [*files, "--subject-to", "recall[0] >= 0.1"])
    assert done.exit_code == 0, done.stderr
    for wrong in ("micro_precision > 0.9", "recall[0] - recall[1] <= 0.02"):
        done = CliRunner().invoke(main, [*files, "--subject-to", wrong])
        assert done.exit_code == 2
        assert ">=" in done.stderr


def test_rows_that_were_left_out_are_still_known(tmp_path):
    """Labels may be missing because of scores, which only all rows together tell."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y_a,y_b\n0.9,0.2,1,0\n0.2,0.1,,\n0.8,0.3,1,\n0.7,0.6,0,1\n")
    scored = read_scored(path, path, probability=["a", "b"], label=["y_a", "y_b"])
    assert (scored.batch.n, scored.logged.n) == (3, 4)
    fewer = scored.without(np.array([False, True, False]), "lack a label")
    assert (fewer.batch.n, fewer.logged.n) == (2, 4)


def test_labels_alone_need_the_id_of_their_row():
    Path("rows.jsonl").write_text('{"eta": [0.5, 0.25]}\n{"y": [1, 0]}\n')
    with pytest.raises(ValueError, match="line 2: expected an id with labels alone"):
        read_scored("rows.jsonl", "rows.jsonl")


def test_sparse_probabilities_with_labels_of_any_kind():
    eta = sparse.csr_array(np.where(ETA > 0.4, ETA, 0))
    y = np.eye(3, dtype=np.int8)[CLASSES]
    sparse.save_npz("eta.npz", eta)
    sparse.save_npz("y.npz", sparse.csr_array(y))
    np.save("y.npy", y)
    np.save("classes.npy", CLASSES)
    for path in ("y.npz", "y.npy"):
        assert labels(read_scored("eta.npz", path)) == y.ravel().tolist()
    scored = read_scored("eta.npz", "classes.npy")
    assert labels(scored) == CLASSES.tolist()
    assert_array_equal(scored.batch.values.toarray(), eta.toarray())
    np.save("short.npy", y[:3])
    with pytest.raises(ValueError, match=r"short.npy must have as many rows as eta.npz, which has"):
        read_scored("eta.npz", "short.npy")


@pytest.mark.parametrize(("column", "got"), [("p_", "got p_a, p_b"), ("", "got none")])
def test_one_column_is_one(column, got):
    Path("eta.csv").write_text("p_a,p_b\n0.5,0.25\n")
    with pytest.raises(ValueError, match=rf"column='{column}' must be one column of .* {got}"):
        read_scored("eta.csv", column=column)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "y.csv has 2 classes, and there are 3 columns of probabilities without names: name"),
        ({"positive": "red"}, "positive='red' needs one column of probabilities, got 3"),
    ],
)
def test_classes_that_no_column_can_have(options, sentence):
    np.save("eta.npy", ETA[:2])
    Path("y.csv").write_text("colour\nred\nblue\n")
    with pytest.raises(ValueError, match=sentence):
        read_scored("eta.npy", "y.csv", **options)


def test_numbers_of_classes_may_be_large_and_missing():
    np.savez("eta.npz", values=ETA[:3], names=["10", "1000003", "1000004"])
    np.save("y.npy", [1000004.0, np.nan, 10.0])
    assert labels(read_scored("eta.npz", "y.npy")) == [2, 0]

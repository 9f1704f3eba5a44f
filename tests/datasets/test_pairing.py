"""Files of probabilities and labels: rows and columns that belong together come together."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import omma
from omma.cli import main
from omma.datasets import read_matrix, write_matrix
from omma.datasets.column_roles import stems

ETA, Y = omma.datasets.long_tail(n=60, m=4, seed=1)
ETA[0] = 0.5  # a row that a threshold of one half decides
Y[0] = [0, 1, 0, 1]
NAMES = ("sport", "art", "law", "food")
TURN = [2, 0, 3, 1]
IDS = tuple(f"n{row}" for row in range(60))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_matrix("eta.csv", ETA, NAMES)
    write_matrix("y.csv", Y, NAMES)
    write_matrix("id_eta.csv", ETA, NAMES, rows=("article", IDS))
    write_matrix("id_y.csv", Y, NAMES, rows=("article", IDS))

    def start(eta, labels, *options, metric="macro_f1"):
        asked = ("--metric", metric, "--policy", "baseline", "--json", *options)
        files = ["--eta", eta, "--labels", labels]
        return CliRunner().invoke(main, ["evaluate", *files, *map(str, asked)])

    return start


def value(done):
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["results"][0]["mean"]


def refusal(done):
    assert done.exit_code == 1
    (line,) = done.stderr.strip().splitlines()
    return line


RIGHT = omma.replay(omma.Threshold(0.5), ETA, Y, metric="macro_f1").value
TURNED = omma.replay(omma.Threshold(0.5), ETA, Y[:, TURN], metric="macro_f1").value


@pytest.mark.parametrize("form", ["{}", "p_{}", "{}_true", "is_{}?"])
def test_columns_are_matched_by_their_names(run, form):
    write_matrix("turned.csv", Y[:, TURN], tuple(form.format(NAMES[j]) for j in TURN))
    done = run("eta.csv", "turned.csv")
    assert RIGHT != TURNED
    assert value(done) == RIGHT
    assert "put in the order of eta.csv" in json.loads(done.stdout)["notes"][0]


def test_names_that_do_not_match_are_refused_unless_positions_are_asked_for(run):
    write_matrix("other.csv", Y[:, TURN], ("Sports", "Arts", "Law", "Foods"))
    line = refusal(run("eta.csv", "other.csv"))
    assert "must name their columns alike, got 'sport' and 'Sports'" in line
    assert "--by-position" in line
    assert value(run("eta.csv", "other.csv", "--by-position")) == TURNED
    write_matrix("numbers.csv", Y[:, TURN])
    assert value(run("eta.csv", "numbers.csv")) == TURNED
    write_matrix("numbers.parquet", Y[:, TURN])  # whose columns are called 0, 1, 2, 3
    assert value(run("eta.csv", "numbers.parquet")) == TURNED


def test_stems():
    assert stems(["p_a_hat", "p_b_hat"]) == stems(["a", "b"]) == ("a", "b")
    assert stems(["y_a", "y_aa"]) == stems(["a", "aa"])
    assert stems(["space", "sports"]) == stems(["p_space", "p_sports"])


def test_rows_are_joined_by_their_ids(run):
    turn = np.random.default_rng(0).permutation(60)
    rows = ("article", tuple(IDS[row] for row in turn))
    write_matrix("turned.csv", Y[turn], NAMES, rows=rows)
    done = run("id_eta.csv", "turned.csv", "--id", "article")
    assert value(done) == RIGHT
    assert "by their ids" in json.loads(done.stdout)["notes"][0]
    classes = "".join(f"{IDS[row]},{NAMES[row % 4]}\n" for row in turn)
    with open("classes.csv", "w") as file:
        file.write("article,topic\n" + classes)
    options = ("--id", "article")
    found = run("id_eta.csv", "classes.csv", *options, metric="multiclass_accuracy")
    exact = omma.replay(omma.TopK(1), ETA, np.arange(60) % 4, metric="multiclass_accuracy").value
    assert value(found) == exact
    write_matrix("p.csv", ETA, tuple(f"p_{name}" for name in NAMES), rows=("article", IDS))
    assert value(run("p.csv", "classes.csv", *options, metric="multiclass_accuracy")) == exact


def test_rows_whose_ids_do_not_match_are_named(run):
    write_matrix("less.csv", Y[1:], NAMES, rows=("article", IDS[1:]))
    assert "1 of 60 ids of id_eta.csv have no labels in less.csv, such as 'n0'" in refusal(
        run("id_eta.csv", "less.csv", "--id", "article")
    )
    skipped = omma.replay(omma.Threshold(0.5), ETA[1:], Y[1:], metric="macro_f1").value
    done = run("id_eta.csv", "less.csv", "--id", "article", "--skip-unmatched")
    assert value(done) == skipped
    assert json.loads(done.stdout)["notes"] == [
        "1 rows of id_eta.csv are not in less.csv and were skipped."
    ]
    write_matrix("more.csv", Y[[*range(60), 0]], NAMES, rows=("article", (*IDS, "q")))
    assert "1 of 61 ids of more.csv have no probabilities in id_eta.csv, such as 'q'" in refusal(
        run("id_eta.csv", "more.csv", "--id", "article")
    )
    assert value(run("id_eta.csv", "more.csv", "--id", "article", "--skip-unmatched")) == RIGHT
    write_matrix("twice.csv", Y, NAMES, rows=("article", (*IDS[:-1], "n0")))
    assert "twice.csv must name each row once, got the id 'n0' twice" in refusal(
        run("id_eta.csv", "twice.csv", "--id", "article")
    )


def test_one_file_may_name_its_rows_alone(run):
    assert value(run("id_eta.csv", "y.csv", "--id", "article")) == RIGHT
    assert value(run("eta.csv", "id_y.csv", "--id", "article")) == RIGHT
    line = refusal(run("id_eta.csv", "id_y.csv", "--id", "artcle"))
    assert "no file has a column 'artcle', which --id asks for; did you mean 'article' or" in line
    assert line.endswith("?")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_decisions_keep_the_ids(run, ending):
    options = ("--id", "article", "--seed", 3, "--predictions", f"d{ending}")
    value(run("id_eta.csv", "id_y.csv", *options))
    frame = (pd.read_csv if ending == ".csv" else pd.read_parquet)(f"d{ending}")
    assert list(frame.columns) == ["article", *NAMES]
    assert tuple(frame["article"]) == IDS
    assert (frame[list(NAMES)].to_numpy() == (ETA >= 0.5)).all()
    value(run("id_eta.csv", "id_y.csv", "--id", "article", "--predictions", "d.npz"))
    assert (read_matrix("d.npz").values == (ETA >= 0.5)).all()  # which has no place for ids


def test_truths(run):
    truths = pd.DataFrame(Y == 1, columns=NAMES)
    truths.to_csv("truths.csv", index=False)
    truths.to_parquet("truths.parquet")
    np.save("truths.npy", Y == 1)
    for name in ("truths.csv", "truths.parquet", "truths.npy"):
        assert value(run("eta.csv", name)) == RIGHT
    truths[["law"]].to_csv("one.csv", index=False)
    one = omma.replay(omma.Threshold(0.5), ETA[:, 2], Y[:, 2], metric="f1").value
    assert value(run("eta.csv", "one.csv", "--column", "law", metric="f1")) == one
    assert value(run("eta.csv", "truths.csv", "--column", "law", metric="f1")) == one


@pytest.mark.parametrize("head", ["", "what\n"])
@pytest.mark.parametrize("columns", [["fraud"], ["ok", "fraud"], ["fraud", "amount"]])
def test_one_column_and_classes_by_name(run, head, columns):
    p = ETA[:, 2] / ETA[:, 2].max()
    table = {"fraud": p, "ok": 1 - p, "amount": np.arange(60) * 10.0}
    pd.DataFrame({name: table[name] for name in columns}).to_csv("p.csv", index=False)
    with open("what.csv", "w") as file:
        file.write(head + "".join("fraud\n" if yes else "ok\n" for yes in Y[:, 2]))
    one = omma.replay(omma.Threshold(0.5), p, Y[:, 2], metric="f1").value
    assert value(run("p.csv", "what.csv", "--column", "fraud", metric="f1")) == one
    with open("what.csv", "w") as file:
        file.write("what\n" + "Fraud\nok\n" * 30)
    line = refusal(run("p.csv", "what.csv", "--column", "fraud", metric="f1"))
    assert "what.csv has the classes Fraud, ok" in line
    assert "pass --positive Fraud" in line
    again = run("p.csv", "what.csv", "--column", "fraud", "--positive", "Fraud", metric="f1")
    assert again.exit_code == 0, again.stderr
    wrong = run("p.csv", "what.csv", "--column", "fraud", "--positive", "froud", metric="f1")
    assert "must hold 'froud' in some rows, got it in none; did you mean 'Fraud'" in refusal(wrong)


def test_a_column_that_is_no_probability_is_named(run):
    amounts = pd.DataFrame({"amount": 100000.0, "fraud": ETA[:, 2]}, index=range(60))
    amounts.to_csv("amounts.csv", index=False)
    line = refusal(run("amounts.csv", "y.csv"))
    assert "got 100000 in row 0, label 0, the column 'amount'" in line
    assert "--probability NAME" in line
    one = omma.replay(omma.Threshold(0.5), ETA[:, 2], Y[:, 2], metric="f1").value
    write_matrix("law.csv", Y[:, 2], ("law",))
    assert value(run("amounts.csv", "law.csv", "--probability", "fraud", metric="f1")) == one
    numbered = pd.DataFrame(Y, columns=NAMES)
    numbered.insert(0, "key", np.arange(60))
    numbered.to_csv("numbered.csv", index=False)
    assert "got 5; if 'key' names rows, pass --id key" in refusal(run("eta.csv", "numbered.csv"))


def test_the_index_of_a_frame(run):
    pd.DataFrame(ETA, columns=NAMES).to_csv("index.csv")
    line = refusal(run("index.csv", "y.csv"))
    assert "the unnamed first column" in line
    assert "index=False, or pass --id ''" in line
    assert value(run("index.csv", "y.csv", "--id", "")) == RIGHT


def test_a_sample_to_tune_on_is_put_in_order_by_its_names(run):
    write_matrix("turned_eta.csv", ETA[:, TURN], [NAMES[j] for j in TURN])
    write_matrix("turned_y.csv", Y[:, TURN], [NAMES[j] for j in TURN])
    tuned = ("--policy", "tuned", "--train-eta")
    straight = run("eta.csv", "y.csv", *tuned, "eta.csv", "--train-labels", "y.csv")
    turned = run("eta.csv", "y.csv", *tuned, "turned_eta.csv", "--train-labels", "turned_y.csv")
    values = [
        [one["mean"] for one in json.loads(done.stdout)["results"]] for done in (straight, turned)
    ]
    assert len(values[0]) == 2
    assert values[0] == values[1]
    write_matrix("other_eta.csv", ETA, ("a", "b", "c", "d"))
    write_matrix("other_y.csv", Y, ("a", "b", "c", "d"))
    other = run("eta.csv", "y.csv", *tuned, "other_eta.csv", "--train-labels", "other_y.csv")
    assert "must have the columns of --eta, sport, art, law, food" in refusal(other)


def test_two_numbered_columns_are_a_header_where_fractions_follow(tmp_path):
    pd.DataFrame(ETA[:, :2]).to_csv(tmp_path / "eta.csv", index=False)
    assert read_matrix(tmp_path / "eta.csv").values.shape == (60, 2)
    pd.DataFrame(Y[:, :2]).to_csv(tmp_path / "y.csv", index=False, header=False)
    assert read_matrix(tmp_path / "y.csv").values.shape == (60, 2)


def test_a_state_is_for_the_columns_that_it_was_learned_with(tmp_path):
    def stream(order):
        write_matrix(tmp_path / "rows.csv", ETA[:, order], [NAMES[j] for j in order])
        options = ["--metric", "macro_f1", "--policy", "omma_eta", "--state"]
        files = [str(tmp_path / "state.npz"), str(tmp_path / "rows.csv")]
        return CliRunner().invoke(main, ["stream", *options, *files])

    assert stream([0, 1, 2, 3]).exit_code == 0
    done = stream(TURN)
    assert done.exit_code == 1
    assert "expected the columns sport, art, law, food" in done.stderr
    assert omma.OnlineClassifier.load(tmp_path / "state.npz").state.totals[0] == 60
    assert stream([0, 1, 2, 3]).exit_code == 0

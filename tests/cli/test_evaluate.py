"""``omma evaluate``: the same numbers as the library, from files, and how it says no."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import omma
import omma.calibration
from omma.cli import main
from omma.datasets import read_matrix, text, write_matrix

ETA, Y = omma.datasets.long_tail(n=400, m=6, seed=1)
NAMES = ("a", "b", "c", "d", "e", "f")
CHOICE = omma.choose(ETA, Y, "macro_f1")
CLASSES = np.random.default_rng(0).integers(0, 6, 400)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_matrix("eta.csv", ETA, NAMES)
    write_matrix("y.csv", Y, NAMES)
    write_matrix("eta.npz", sparse.csr_array(ETA))
    write_matrix("y.npz", sparse.csr_array(Y))
    np.savez("both.npz", eta=ETA, y=Y)
    write_matrix("classes.csv", CLASSES, ("class",))
    write_matrix("p.npy", ETA[:, 2])
    write_matrix("yes.npy", Y[:, 2])
    np.savetxt(
        "id_eta.csv",
        np.column_stack([np.arange(400), ETA]),
        delimiter=",",
        header="id,a,b,c,d,e,f",
        comments="",
    )
    return lambda *arguments: CliRunner().invoke(main, ["evaluate", *map(str, arguments)])


FILES = ("--eta", "eta.csv", "--labels", "y.csv")


def values(done):
    assert done.exit_code == 0, done.stderr
    rows = json.loads(done.stdout)["results"]
    return {(row["policy"], row["metric"]): row["mean"] for row in rows}


@pytest.mark.parametrize(
    "files",
    [
        FILES,
        ("--eta", "eta.npz", "--labels", "y.npz"),
        ("--eta", "both.npz:eta", "--labels", "both.npz:y"),
        ("--eta", "eta.csv", "--labels", "y.npz"),
    ],
)
def test_the_same_values_as_replay(run, files):
    found = values(run(*files, "--metric", "macro_f1", "--metric", "macro_recall@2", "--json"))
    for name, policy in (
        ("baseline", omma.Threshold(0.5)),
        ("tuned", omma.TunedThresholds("macro_f1").fit(ETA, Y)),
        ("auto", omma.Auto("macro_f1")),
        ("ofo", omma.OFO()),
        ("greedy", omma.Greedy("macro_f1")),
        ("omma", omma.OMMA("macro_f1")),
        ("omma_eta", omma.OMMA("macro_f1", feedback="estimates")),
    ):
        assert found[name, "macro_f1"] == omma.replay(policy, ETA, Y, metric="macro_f1").value
    top = omma.replay(omma.TopK(2), ETA, Y, metric="macro_recall").value
    assert found["baseline", "macro_recall@2"] == top
    assert found["ofo", "macro_recall@2"] is None


def test_the_table_is_aligned_and_fits(run):
    many = ("macro_f1", "micro_f1", "macro_balanced_accuracy", "macro_gmean", "macro_hmean")
    metrics = [part for name in many for part in ("--metric", name)]
    done = run(*FILES, *metrics, "--repeat", 2, "--prior", 0.1, "--prior", 1e-3)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 82  # the hats of η̂ take no room
    heads = [line for line in lines if line.strip().startswith("policy")]
    assert len(heads) > 1  # not all fit side by side
    assert [name for head in heads for name in head.split()[1:]] == list(many)
    assert "…" not in done.stdout.replace(" … ", " to ")  # no cell is cut; intervals have it
    assert "400 rows, 6 labels" in lines[0]
    assert "Mean ± standard deviation over 2 shuffled sequences" in done.stdout
    assert "λ is the best of 0.1, 0.001" in " ".join(done.stdout.split())
    assert "* Tuned on the rows it is judged on" in done.stdout


def test_a_budget_for_all_metrics(run):
    found = run(*FILES, "--metric", "macro_f1", "-k", 2)
    assert "Top-2" in found.stdout
    assert "macro_f1@2" in found.stdout
    assert "OFO" not in found.stdout  # what supports none of the metrics is left out
    asked = run(*FILES, "--metric", "macro_f1", "-k", 2, "--policy", "ofo", "--policy", "omma")
    assert "×" in asked.stdout


def test_shuffled_rows(run):
    done = run(
        *FILES, "--metric", "macro_f1", "--policy", "omma", "--seed", 5, "--repeat", 2, "--json"
    )
    runs = {row["seed"]: row["value"] for row in json.loads(done.stdout)["runs"]}
    policy = omma.OMMA("macro_f1")
    assert runs == {seed: omma.replay(policy, ETA, Y, seed=seed).value for seed in (5, 6)}


def test_thresholds_tuned_on_other_rows(run):
    write_matrix("first.npy", ETA[:200])
    write_matrix("first_y.npy", Y[:200])
    done = run(
        *FILES,
        "--metric",
        "macro_f1",
        "--policy",
        "tuned",
        "--train-eta",
        "first.npy",
        "--train-labels",
        "first_y.npy",
        "--json",
    )
    tuned = omma.TunedThresholds("macro_f1").fit(ETA[:200], Y[:200])
    assert values(done)["tuned", "macro_f1"] == omma.replay(tuned, ETA, Y).value
    assert json.loads(done.stdout)["hindsight"] == []


@pytest.mark.parametrize("ending", [".csv", ".npz", ".npy", ".txt.gz", ".parquet"])
def test_decisions_and_the_rule_are_written(run, ending):
    done = run(
        *FILES,
        "--metric",
        "macro_f1",
        "--predictions",
        f"d{ending}",
        "--rule",
        "r.json",
        "--plot",
        "p.png",
        "--seed",
        3,
    )
    assert done.exit_code == 0, done.stderr
    trace = omma.replay(omma.Auto("macro_f1"), ETA, Y, seed=3)
    found = read_matrix(f"d{ending}")
    written = found.values.toarray() if sparse.issparse(found.values) else found.values
    assert (written == trace.predictions).all()
    assert (found.names == NAMES) == (ending in (".csv", ".npz", ".parquet"))
    with open("r.json") as file:
        assert omma.Rule.from_json(file.read()) == CHOICE.rule.named(NAMES)
    with open("p.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"
    said = " ".join(done.stdout.split())
    assert f"Saved the decisions of auto by macro_f1 to d{ending}" in said
    assert f"Saved the rule of {CHOICE.best.title} by macro_f1 to r.json" in said


# The rule to deploy


def test_the_answer_is_that_of_choose(run):
    done = run(*FILES, "--metric", "macro_f1", "--json")
    assert done.exit_code == 0, done.stderr
    (told,) = json.loads(done.stdout)["choices"]
    assert told["verdict"] == CHOICE.verdict
    assert told["best"] == CHOICE.best.name
    assert told["rules"] == CHOICE.data
    assert [one["threshold"] for one in told["labels"]] == CHOICE.rule.thresholds.tolist()
    assert [one["label"] for one in told["labels"]] == list(NAMES)


def test_the_answer_comes_first_and_in_words(run):
    shown = run(*FILES, "--metric", "macro_f1").stdout
    said = " ".join(shown.split())
    assert CHOICE.verdict in said
    assert "each row was decided by a rule made without it" in said
    assert said.index("Deploy") < said.index("Policies online") < said.index("Tuned on these rows*")
    for one in CHOICE.candidates:
        assert f"{100 * one.interval[0]:.2f} … {100 * one.interval[1]:.2f}" in said
    lines = [line.split() for line in shown.splitlines()]
    for name, cut in zip(NAMES, CHOICE.rule.thresholds, strict=True):
        assert any(line[:1] == [name] and f"{cut:.4g}" in line for line in lines)


def test_says_when_the_simple_rule_is_as_good(run):
    done = run(*FILES, "--metric", "macro_accuracy", "--rule", "r.json")
    assert "The 0.5 threshold is as good" in " ".join(done.stdout.split())
    top = run(*FILES, "--metric", "micro_recall", "-k", 2).stdout
    assert "The top-2 rule is as good" in " ".join(top.split())
    assert "threshold " not in top.partition("Policies online")[0]  # a budget has none


def test_of_many_labels_some_are_shown(run):
    eta, y = omma.datasets.long_tail(n=300, m=30, seed=0)
    write_matrix("many.npy", eta)
    write_matrix("many_y.npy", y)
    done = run("--eta", "many.npy", "--labels", "many_y.npy", "--metric", "macro_f1")
    assert "15 labels between these are left out; --json has them." in " ".join(done.stdout.split())


def test_who_names_policies_compares_these_and_no_more(run):
    done = run(*FILES, "--metric", "macro_f1", "--policy", "omma", "--rule", "r.json")
    assert "Deploy" not in done.stdout
    with open("r.json") as file:
        last = omma.replay(omma.OMMA("macro_f1"), ETA, Y).rule
        assert omma.Rule.from_json(file.read()) == last.named(NAMES)


def test_the_picture_has_rules_above_and_policies_below(run, monkeypatch):
    drawn = []
    monkeypatch.setattr("omma.plots.save", lambda figure, path: drawn.append(figure))
    done = run(*FILES, "--metric", "macro_f1", "--metric", "micro_f1", "--plot", "p.png")
    assert done.exit_code == 0, done.stderr
    axes = sorted(drawn[0].axes, key=lambda ax: -ax.get_position().y0)
    titles = [text.get_text() for text in axes[0].get_yticklabels()]
    assert titles == [one.title for one in CHOICE.candidates]
    assert {ax.get_ylabel() for ax in axes[2:]} == {"macro_f1 so far, %", "micro_f1 so far, %"}
    boxes = [ax.get_position() for ax in axes]
    assert boxes[0].y0 > boxes[1].y1 > boxes[1].y0 > boxes[2].y1
    assert min(box.y0 for box in boxes) >= 0
    assert max(box.y1 for box in boxes) <= 1


@pytest.mark.parametrize("labels", ["y.csv", "named.csv", "packed.csv.gz"])
def test_labels_are_opened_once(run, monkeypatch, labels):
    with open("named.csv", "w") as file:
        file.write("animal\n" + "".join(f"{NAMES[which]}\n" for which in CLASSES))
    write_matrix("packed.csv.gz", Y, NAMES)
    opened, plain = [], text.opened_bytes
    monkeypatch.setattr(text, "opened_bytes", lambda path: opened.append(str(path)) or plain(path))
    metric = "multiclass_gmean" if labels == "named.csv" else "macro_f1"
    done = run("--eta", "eta.csv", "--labels", labels, "--metric", metric, "--policy", "baseline")
    assert done.exit_code == 0, done.stderr
    assert opened.count(labels) == 1


def test_the_baseline_is_within_the_picture(run, monkeypatch):
    drawn = []
    monkeypatch.setattr("omma.plots.save", lambda figure, path: drawn.append(figure))
    faint = ("--eta", "faint.npy", "--labels", "y.npz", "--metric", "macro_f1")
    write_matrix("faint.npy", ETA / 2)  # none reaches one half
    done = run(*faint, "--policy", "baseline", "--policy", "omma", "--plot", "p.png")
    assert done.exit_code == 0, done.stderr
    (axes,) = drawn[0].axes
    low, high = axes.get_ylim()
    for line in axes.get_lines():
        assert low <= line.get_ydata()[-1] <= high
    assert not any("↓" in text.get_text() for text in axes.texts)


def test_whose_decisions_may_be_chosen(run):
    done = run(*FILES, "--metric", "macro_f1", "--decide", "greedy", "--rule", "r.json")
    assert done.exit_code == 0, done.stderr
    with open("r.json") as file:
        found = omma.Rule.from_json(file.read())
    assert found == omma.replay(omma.Greedy("macro_f1"), ETA, Y).rule.named(NAMES)
    refused = run(*FILES, "--metric", "macro_mcc", "--decide", "ofo", "--rule", "q.json")
    assert refused.exit_code == 1
    assert "ofo cannot decide by macro_mcc" in refused.stderr


@pytest.mark.parametrize("eta", ["eta.csv", "eta.npz"])
def test_without_labels_decisions_are_still_written(run, eta):
    done = run(
        "--eta", eta, "--metric", "macro_f1", "--predictions", "d.npz", "--rule", "r.json", "--json"
    )
    assert done.exit_code == 0, done.stderr
    trace = omma.replay(omma.OMMA("macro_f1", feedback="estimates"), ETA)
    found = read_matrix("d.npz").values
    assert ((found.toarray() if sparse.issparse(found) else found) == trace.predictions).all()
    (expected,) = (
        row["value"] for row in json.loads(done.stdout)["expected"] if row["policy"] == "omma_eta"
    )
    tp, predicted = (ETA * trace.predictions).sum(axis=0), trace.predictions.sum(axis=0)
    assert expected == pytest.approx((2 * tp / (predicted + ETA.sum(axis=0))).mean())
    assert "No labels" in run("--eta", eta, "--metric", "macro_f1").stdout


def test_one_class_a_row(run):
    files = ("--eta", "eta.csv", "--labels", "classes.csv")
    found = values(run(*files, "--metric", "multiclass_gmean", "--metric", "macro_f1@1", "--json"))
    trace = omma.replay(omma.OMMA("multiclass_gmean"), ETA, CLASSES)
    assert found["omma", "multiclass_gmean"] == trace.value
    text = run(*files, "--metric", "multiclass_gmean").stdout
    assert "6 classes, one a row" in text
    assert "Top-1" in text


@pytest.mark.parametrize("head", ["", "animal\n", "id,animal\n"])
def test_classes_by_name(run, head):
    start = "r," if head.startswith("id") else ""
    with open("named.csv", "w") as file:
        file.write(head + "".join(f"{start}{NAMES[which]}\n" for which in CLASSES))
    id_column = ("--id", "id") if start else ()
    if start:
        write_matrix("eta.csv.gz", np.column_stack([np.zeros(400), ETA]), ("id", *NAMES))
        with open("named.csv") as file:
            text = file.read().replace("r,", "0,")
        with open("named.csv", "w") as file:
            file.write(text)
    options = ("--metric", "multiclass_gmean", "--policy", "omma", "--json")
    eta = "eta.csv.gz" if start else "eta.csv"
    found = values(run("--eta", eta, "--labels", "named.csv", *id_column, *options))
    assert found == values(run("--eta", "eta.csv", "--labels", "classes.csv", *options))


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz"])
def test_classes_by_name_come_out_by_name(run, ending):
    with open("named.csv", "w") as file:
        file.write("animal\n" + "".join(f"{NAMES[which]}\n" for which in CLASSES))
    files, path = ("--eta", "eta.csv", "--labels", "named.csv"), f"d{ending}"
    for metric, policy in (
        ("multiclass_gmean", omma.OMMA("multiclass_gmean")),
        ("macro_f1@1", omma.OMMA("macro_f1", k=1)),
    ):
        done = run(*files, "--metric", metric, "--policy", "omma", "--predictions", path)
        assert done.exit_code == 0, done.stderr
        predictions = omma.replay(policy, ETA, CLASSES).predictions
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt") as file:
            found = file.read().split()
        assert found == ["class", *(NAMES[which] for which in predictions.argmax(axis=1))]
        again = run("--eta", "eta.csv", "--labels", path, "--metric", metric, "--json")
        assert again.exit_code == 0, again.stderr  # what was written can be read as labels


def test_brackets_in_the_name_of_a_file_are_no_markup(run):
    ids = tuple(map(str, range(400)))
    write_matrix("eta.csv", ETA, NAMES, ("id", ids))
    write_matrix("y[bold].csv", Y[::-1], NAMES, ("id", ids[::-1]))
    done = run("--eta", "eta.csv", "--labels", "y[bold].csv", "--metric", "macro_f1")
    assert "Rows of y[bold].csv were put in the order of eta.csv" in done.stdout


def test_classes_by_name_keep_the_names_of_rows(run):
    with open("named.csv", "w") as file:
        file.write("id,animal\n" + "".join(f"{row},{NAMES[row % 6]}\n" for row in range(400)))
    options = ("--id", "id", "--metric", "multiclass_gmean", "--predictions", "d.csv")
    write_matrix("eta_id.csv", ETA, NAMES, ("id", tuple(map(str, range(400)))))
    done = run("--eta", "eta_id.csv", "--labels", "named.csv", *options)
    assert done.exit_code == 0, done.stderr
    with open("d.csv") as file:
        head, first, *_ = file.read().splitlines()
    assert head == "id,class"
    assert first.startswith("0,")


@pytest.mark.parametrize("unknown", ["", "nan"])
def test_classes_by_name_may_be_unknown(run, unknown):
    """Also in the first rows, which tell words from numbers."""
    known = np.arange(400) % 4 > 1
    words = [NAMES[one] if there else unknown for one, there in zip(CLASSES, known, strict=True)]
    rows = tuple(map(str, range(400)))
    write_matrix("eta_id.csv", ETA, NAMES, ("id", rows))
    with open("named.csv", "w") as file:
        file.write("id,animal\n" + "".join(map("{},{}\n".format, rows, words)))
    files = ("--eta", "eta_id.csv", "--labels", "named.csv", "--id", "id", "--json")
    options = ("--metric", "multiclass_gmean", "--policy", "omma")
    done = run(*files, *options)
    wanted = omma.replay(omma.OMMA("multiclass_gmean"), ETA[known], CLASSES[known]).value
    assert values(done)["omma", "multiclass_gmean"] == wanted
    assert "200 of 400 rows have no labels" in json.loads(done.stdout)["notes"][0]
    done = run(*files, "--column", "b", "--metric", "f1", "--policy", "omma")
    wanted = omma.replay(omma.OMMA("f1"), ETA[known, 1], CLASSES[known] == 1).value
    assert values(done)["omma", "f1"] == wanted


def test_rows_of_several_labels_have_no_one_class(run):
    done = run(*FILES, "--metric", "multiclass_gmean")
    assert done.exit_code == 1
    found = Y.sum(axis=1)
    row = int(np.flatnonzero(found != 1)[0])
    assert f"one class a row for multiclass_gmean, got {found[row]} in row {row};" in done.stderr
    assert "choose a macro_ or micro_ metric" in done.stderr


def test_a_class_that_no_column_has(run):
    with open("named.csv", "w") as file:
        file.write("animal\na\nzz\n")
    done = run("--eta", "eta.csv", "--labels", "named.csv", "--metric", "multiclass_gmean")
    assert done.exit_code == 1
    assert (
        "named.csv, line 3: expected the name of a column of the probabilities, got 'zz'"
        in done.stderr
    )


def test_one_yes_or_no(run):
    found = values(run("--eta", "p.npy", "--labels", "yes.npy", "--metric", "f1", "--json"))
    assert found["omma", "f1"] == omma.replay(omma.OMMA("f1"), ETA[:, 2], Y[:, 2]).value
    for column in ("c", "2"):
        again = run(
            "--eta",
            "eta.csv",
            "--column",
            column,
            "--labels",
            "yes.npy",
            "--metric",
            "f1",
            "--json",
        )
        assert values(again) == found


WORK = [
    (("--labels", "classes.csv", "--metric", "macro_f1"), "pass -k 1 to predict one class a row"),
    (("--labels", "y.csv", "--metric", "f1"), "use macro_f1 or micro_f1"),
    (("--labels", "y.csv", "--metric", "macro_f1", "-k", "7"), "at most the number of labels, 6"),
    (("--labels", "short.csv", "--metric", "macro_f1"), "as many rows as eta.csv, which has 400"),
    (("--labels", "narrow.csv", "--metric", "macro_f1"), "must have 6 columns as eta.csv"),
    (
        ("--labels", "part.csv", "--metric", "macro_f1"),
        "must have the columns of eta.csv, got none",
    ),
    (("--labels", "eta.csv", "--metric", "macro_f1"), "eta.csv does not tell which columns hold"),
    (
        ("--labels", "many.csv", "--metric", "multiclass_gmean"),
        "whole numbers from 0 to 5, got 9 in row 0",
    ),
    (
        ("--labels", "word.csv", "--metric", "macro_f1"),
        "got 'x'; if it names rows, pass --id a",
    ),
]


@pytest.mark.parametrize(("arguments", "expected"), WORK)
def test_what_does_not_fit_gets_one_line_and_exit_code_1(run, arguments, expected):
    write_matrix("short.csv", Y[:9])
    write_matrix("narrow.csv", Y[:, :4])
    write_matrix("part.csv", Y, (*NAMES[:5], "z"))
    write_matrix("many.csv", np.full(400, 9))
    with open("word.csv", "w") as file:
        file.write("a,b\nx,1\n")
    done = run("--eta", "eta.csv", *arguments)
    assert done.exit_code == 1
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("Error: ")
    assert line.endswith(".")
    assert expected in line


def test_probabilities_out_of_range(run):
    write_matrix("bad.csv", ETA + 0.5, NAMES)
    done = run("--eta", "bad.csv", "--labels", "y.csv", "--metric", "macro_f1")
    assert done.exit_code == 1
    assert "eta of bad.csv must hold probabilities from 0 to 1, got" in done.stderr
    two = run("--eta", "id_eta.csv", "--labels", "y.csv", "--metric", "macro_f1")
    assert two.exit_code == 0, two.stderr  # a column called id names rows


USAGE = [
    (("--metric", "macro_f1"), "Missing argument 'FILE', or options '--eta'"),
    (("--eta", "eta.csv"), "Missing option '--metric'"),
    (("--eta", "no.csv", "--metric", "macro_f1"), "'no.csv' is not a file"),
    (("--eta", "eta.doc", "--metric", "macro_f1"), "must end in .npz"),
    ((*FILES, "--metric", "macro_f"), "did you mean 'macro_f1'"),
    ((*FILES, "--metric", "macro_f1@x"), "a whole number of at least 1 must follow the @"),
    ((*FILES, "--metric", "macro_f1", "-k", "0"), "-k"),
    ((*FILES, "--metric", "macro_f1", "--policy", "oma"), "did you mean 'omma'"),
    ((*FILES, "--metric", "macro_f1", "--prior", "-1"), "--prior"),
    ((*FILES, "--metric", "macro_f1", "--plot", "a.doc"), "must end in .png"),
    ((*FILES, "--metric", "macro_f1", "--predictions", "a.doc"), "must end in .npz"),
    ((*FILES, "--metric", "macro_f1", "--predictions", "no/a.csv"), "'no' is not a folder"),
    ((*FILES, "--metric", "macro_f1", "--rule", "a.txt"), "must end in .json"),
    ((*FILES, "--metric", "macro_f1", "--train-eta", "eta.csv"), "must be given together"),
    (("--eta", "eta.csv", "--metric", "macro_f1", "--policy", "omma"), "omma needs --labels"),
    (("--eta", "eta.csv", "--metric", "macro_f1", "--plot", "a.png"), "--plot needs --labels"),
    (("--eta", "eta.csv", "--metric", "macro_f1", "--repeat", "2"), "need --labels"),
    ((*FILES, "--metric", "multiclass_gmean", "-k", "2"), "k must be 1"),
]


@pytest.mark.parametrize(("arguments", "expected"), USAGE)
def test_bad_usage_gets_one_line_and_exit_code_2(run, arguments, expected):
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("Error: ")
    assert not line.endswith(("?.", ".."))
    assert expected in line


def test_says_whether_probabilities_look_calibrated(run):
    right = " ".join(run(*FILES, "--metric", "macro_f1", "--policy", "omma").stdout.split())
    assert "The probabilities look calibrated" in right
    write_matrix("odd.csv", ETA**0.5, NAMES)
    odd = ("--eta", "odd.csv", "--labels", "y.csv", "--metric", "macro_f1", "--policy", "omma")
    assert "do not look calibrated" in " ".join(run(*odd).stdout.split())
    gap = json.loads(run(*odd, "--json").stdout)["calibration_error"]
    assert gap == omma.calibration.expected_error(ETA**0.5, Y, bins=20)


def test_three_rows_say_nothing_about_calibration(run):
    Path("three.csv").write_text("p,y\n0.1,0\n0.4,1\n0.8,1\n")
    options = ("three.csv", "--probability", "p", "--label", "y", "--metric", "f1")
    said = " ".join(run(*options, "--policy", "omma").stdout.split())
    assert "Too few labels to say whether the probabilities are calibrated" in said
    assert "look calibrated" not in said


def test_classes_have_no_remark_on_calibration(run):
    done = run("--eta", "eta.csv", "--labels", "classes.csv", "--metric", "multiclass_gmean")
    assert done.exit_code == 0, done.stderr
    assert "calibrated" not in done.stdout


def test_says_when_everything_is_predicted(run):
    recall = ("--metric", "macro_recall", "--policy", "baseline")
    words = "macro_recall without a budget is maximal when everything is predicted: pass -k."
    assert words in " ".join(run(*FILES, *recall).stdout.split())
    assert words in " ".join(run("--eta", "eta.csv", *recall).stdout.split())
    for other in ((*recall, "-k", 2), ("--metric", "macro_f1", "--policy", "baseline")):
        assert "everything" not in run(*FILES, *other).stdout
    one = ("--eta", "p.npy", "--labels", "yes.npy", "--metric", "recall", "--policy", "baseline")
    assert "recall is maximal when everything is predicted: choose another metric" in " ".join(
        run(*one).stdout.split()
    )


def test_a_line_says_that_it_compiles_where_there_is_no_bar(run):
    done = run(*FILES, "--metric", "macro_f1", "--policy", "baseline", "--json")
    assert done.stderr == "deciding 400 rows; compiling takes some seconds at first\n"


def test_help_has_examples(run):
    for name in ("evaluate", "stream", "list"):
        text = CliRunner().invoke(main, [name, "--help"]).stdout
        assert f"omma {name}" in text.partition("Examples:")[2]


def test_up_to_so_many_labels_a_row(run):
    files = (*FILES, "--metric", "macro_f1", "--at-most", "2")
    done = run(*files, "--rule", "r.json", "--predictions", "d.csv", "--plot", "p.png", "--json")
    found = values(done)
    assert {policy for policy, _ in found} == {"baseline", "auto", "omma", "omma_eta"}
    trace = omma.replay(omma.Auto("macro_f1", at_most=2), ETA, Y)
    assert found["auto", "macro_f1"] == trace.value
    assert read_matrix("d.csv").values.sum(axis=1).max() == 2
    half = omma.FixedRule(omma.Rule(np.ones(6), np.full(6, -0.5), at_most=2))
    assert found["baseline", "macro_f1"] == omma.replay(half, ETA, Y, metric="macro_f1").value
    choice = omma.choose(ETA, Y, "macro_f1", at_most=2)
    assert json.loads(done.stdout)["choices"][0]["best"] == choice.best.name
    with open("r.json") as file:
        assert omma.Rule.from_json(file.read()) == choice.rule.named(NAMES)
    text = run(*files).stdout
    assert "0.5, at most 2" in text
    assert "Tuned" not in text
    blind = run(
        "--eta", "eta.csv", "--metric", "macro_f1", "--at-most", "1", "--predictions", "b.csv"
    )
    assert blind.exit_code == 0, blind.stderr
    assert read_matrix("b.csv").values.sum(axis=1).max() == 1
    limited = run(*files, "--subject-to", "labels_per_row <= 1", "--rule", "l.json")
    assert limited.exit_code == 0, limited.stderr
    with open("l.json") as file:
        assert omma.Rule.from_json(file.read()).at_most == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--metric", "macro_f1@2", "--at-most", "2"),
            "pass -k (exactly N labels) or --at-most (up",
        ),
        (("--metric", "multiclass_gmean", "--at-most", "2"), "a metric of one class a row"),
        (("--metric", "f1", "--at-most", "2"), "a metric of one label"),
        (
            ("--metric", "macro_f1", "--at-most", "2", "--policy", "ofo"),
            "ofo does not go with --at",
        ),
        (("--metric", "macro_f1", "--at-most", "9"), "must be at most the number of labels"),
        (
            ("--metric", "macro_f1", "--at-most", "2", "--decide", "ofo"),
            "ofo does not go with --at",
        ),
    ],
)
def test_budgets_that_do_not_go_together(run, options, said):
    done = run(*FILES, *options)
    assert done.exit_code != 0
    assert said in " ".join(done.stderr.split())


@pytest.mark.filterwarnings("default")
def test_what_the_library_warns_of_is_a_line_in_words_of_the_command_line(run):
    thin = np.where(ETA > 0.3, ETA, 0.0)
    write_matrix("thin.npz", sparse.csr_array(thin))
    done = run("--eta", "thin.npz", "--labels", "y.npz", "--metric", "macro_f1@3")
    assert done.exit_code == 0, done.stderr
    short = int(((thin > 0).sum(axis=1) < 3).sum())
    notes = [line for line in done.stderr.splitlines() if line.startswith("Note: ")]
    assert len(notes) == 1
    assert f"Note: {short} of 400 rows have fewer than k=3 labels" in notes[0]
    assert "pass --at-most 3 in place of k=3" in notes[0]
    assert ".py" not in done.stderr


@pytest.mark.parametrize(("metric", "star"), [("macro_f1", True), ("micro_f1@2", False)])
def test_the_picture_says_what_its_star_means(run, monkeypatch, metric, star):
    drawn = []
    monkeypatch.setattr("omma.plots.save", lambda figure, path: drawn.append(figure))
    done = run(*FILES, "--metric", metric, "--plot", "p.png")
    assert done.exit_code == 0, done.stderr
    texts = " ".join(
        one.get_text() for one in drawn[0].findobj(match=lambda x: hasattr(x, "get_text"))
    )
    assert ("chosen with hindsight" in texts) == star


def test_a_simple_rule_that_is_best_has_no_table_of_gains(run):
    best = omma.choose(ETA, Y, "micro_precision@2").best.name
    assert best == "baseline"
    text = run(*FILES, "--metric", "micro_precision@2").stdout
    assert "The top-2 rule is as good as anything here" in " ".join(text.split())
    assert "of each label on unseen rows" not in text
    assert "of each label on unseen rows" in run(*FILES, "--metric", "macro_f1").stdout


def cells(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_no_spreadsheet_takes_a_name_for_a_formula(run):
    names = ("=1+1", "b", "c", "d", "e", "@f")
    ids = ("-x", "-5", *map(str, range(398)))
    write_matrix("eta.csv", ETA, names, ("id", ids))
    write_matrix("y.csv", Y, names, ("id", ids))
    options = (*FILES, "--id", "id", "--metric", "macro_f1", "--policy", "omma")
    assert run(*options, "--predictions", "safe.csv").exit_code == 0
    assert run(*options, "--predictions", "raw.csv", "--raw-cells").exit_code == 0
    safe, raw = cells("safe.csv"), cells("raw.csv")
    assert safe[0] == ["id", "'=1+1", "b", "c", "d", "e", "'@f"]
    assert raw[0] == ["id", *names]
    assert [line[0] for line in safe[1:5]] == ["'-x", "-5", "0", "1"]
    assert [line[0] for line in raw[1:]] == list(ids)


def test_no_spreadsheet_takes_a_class_for_a_formula(run):
    names = ("=1+1", "b", "c", "d", "e", "@f")
    write_matrix("eta.csv", ETA, names)
    Path("classes.csv").write_text("\n".join(["class", *(names[one] for one in CLASSES)]) + "\n")
    files = ("--eta", "eta.csv", "--labels", "classes.csv", "-k", "1", "--metric", "macro_f1")
    assert run(*files, "--policy", "omma", "--predictions", "safe.csv").exit_code == 0
    assert run(*files, "--policy", "omma", "--predictions", "raw.csv", "--raw-cells").exit_code == 0
    safe, raw = cells("safe.csv"), cells("raw.csv")
    assert {cell for line in raw for cell in line} >= {"=1+1", "@f"}
    turned = {"=1+1": "'=1+1", "@f": "'@f"}
    assert safe == [[turned.get(cell, cell) for cell in line] for line in raw]

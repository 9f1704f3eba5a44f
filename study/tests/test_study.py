"""The study end to end: suites, records, tables and figures, by the command line."""

import csv
import io
import json
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest
from click.testing import CliRunner
from data_folder import require

import omma
import omma_study as study
from omma.datasets import Dataset, long_tail, write_folder
from omma_study import estimates, figures
from omma_study.cli import main
from omma_study.config import parse
from omma_study.estimators import LogisticRegression, Multinomial, OnlineLinear
from omma_study.paper import is_label_fed, paper_values
from omma_study.policies import POLICIES, PaperFrankWolfe
from omma_study.records import make, read
from omma_study.sections import policy_of, sections
from omma_study.tables import cells_csv, markdown, paper_tables, table_of, written

SUITE = """
title = "Mine"
protocol = "{protocol}"
task = "{task}"
datasets = ["toy"]
policies = ["baseline", "omma"]
metrics = ["macro_f1@1"]
priors = [1e-6]
seeds = 2

[estimator]
name = "{name}"
{options}
"""


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMMA_DATA", raising=False)
    return lambda *arguments, columns=100: CliRunner(env={"COLUMNS": str(columns)}).invoke(
        main, [*map(str, arguments)]
    )


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The records of the shipped suite."""
    folder = tmp_path_factory.mktemp("smoke")
    done = CliRunner().invoke(main, ["run", "smoke", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert "64 done, 0 there before, 0 failed" in done.stdout
    return folder


def toy(task="multiclass", n=300, split=None):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = np.eye(3)[y] + rng.normal(size=(n, 3))
    return Dataset("toy", "multiclass", X, y, split) if task == "multiclass" else Dataset(
        "toy", "multilabel", X, np.eye(3, dtype=np.int8)[y], split
    )  # fmt: skip


def write_suite(path, task="multiclass", name="multinomial", options="C = 1.0", protocol="fixed"):
    path.write_text(SUITE.format(task=task, name=name, options=options, protocol=protocol))
    return path


def test_what_is_there_is_not_run_again(invoke, smoke):
    before = (smoke / "smoke.jsonl").read_bytes()
    done = invoke("run", "smoke", "--out", smoke)
    assert done.exit_code == 0
    assert "0 done, 64 there before" in done.stdout
    assert (smoke / "smoke.jsonl").read_bytes() == before


def test_records_say_all_that_tables_need(smoke):
    records = read(smoke)
    assert len(records) == 64
    for record in records:
        result = record["result"]
        counts = result["counts"]
        metric = omma.metric(record["spec"]["metric"])
        again = omma.Counts(counts["tp"], counts["predicted"], counts["positive"], counts["n"])
        assert metric.value(again) == pytest.approx(result["value"], abs=1e-12)
        assert result["history"]["rows"][-1] == result["rows"] == counts["n"] == 300
        assert result["history"]["values"][-1] == pytest.approx(result["value"], abs=1e-12)
        assert set(record["seconds"]) >= {"compile", "estimate", "run", "evaluate"}
        assert record["suite"] == "smoke"
        assert record["versions"]["omma"] == omma.__version__


def test_a_run_is_a_replay(smoke):
    eta, y = omma.datasets.long_tail(n=300, m=8, seed=0)
    before = omma.datasets.long_tail(n=300, m=8, seed=1)
    fields = {"policy": "omma", "feedback": "estimates", "metric": "macro_f1", "k": 3}
    for record in read(smoke):
        spec = record["spec"]
        if fields.items() <= spec.items():
            policy = omma.OMMA("macro_f1", 3, "estimates", spec["prior"])
            assert (
                omma.replay(policy, eta, y, seed=spec["seed"]).value == (record["result"]["value"])
            )
        if spec["policy"] == "offline_fw" and spec["metric"] == "macro_gmean":
            mixture = omma.FrankWolfe("macro_gmean").fit(*before)
            assert (
                omma.replay(mixture, eta, y, seed=spec["seed"]).value == (record["result"]["value"])
            )


def best_by_hand(records):
    """Mean and deviation with the best λ, by policy, feedback, metric and k."""
    values = {}
    for record in records:
        spec = record["spec"]
        key = (spec["policy"], spec["feedback"], spec["metric"], spec["k"])
        values.setdefault(key, {}).setdefault(spec["prior"], []).append(record["result"]["value"])
    return {
        key: max((mean(of_prior), stdev(of_prior)) for of_prior in by_prior.values())
        for key, by_prior in values.items()
    }


def test_records_are_where_run_leaves_them(invoke, smoke, tmp_path):
    (tmp_path / "omma-records").symlink_to(smoke)
    done = invoke("report", "--format", "csv")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == invoke("report", smoke, "--format", "csv").stdout


def test_the_csv_has_means_of_the_best_prior(invoke, smoke):
    done = invoke("report", smoke, "--format", "csv")
    assert done.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    chosen = [row for row in rows if row["chosen"] == "True"]
    by_hand = best_by_hand(read(smoke))
    assert len(chosen) == len(by_hand) == 19
    for row in chosen:
        policy, eta = row["policy"].removesuffix("_eta"), row["policy"].endswith("_eta")
        still = policy in ("baseline", "offline_fw")
        feedback = "estimates" if eta else None if still else "labels"
        k = int(row["k"]) if row["k"] else None
        expected = by_hand[policy, feedback, row["metric"], k]
        assert float(row["mean"]) == pytest.approx(expected[0])
        assert float(row["std"]) == pytest.approx(expected[1], abs=1e-12)


@pytest.mark.parametrize("extended", [False, True])
def test_tables_fit_the_terminal(invoke, smoke, extended):
    done = invoke("report", smoke, *["--extended"] * extended)
    assert done.exit_code == 0, done.output
    table = [line for line in done.stdout.splitlines() if "chosen with hindsight" not in line]
    assert max(map(len, table)) <= 101
    assert "tiny (m = 8, n = 300)" in done.stdout
    assert "±" in done.stdout
    assert (" ms)" in done.stdout) == extended
    for name in ("OMMA(η̂)", "Offline-FW", "×", "chosen with hindsight"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("form", "inside"),
    [("markdown", "| OMMA(η̂) "), ("latex", r"\textbf{"), ("csv", "omma_eta"), ("terminal", "OFO")],
)
def test_reports_go_to_a_file_or_to_standard_output(invoke, smoke, tmp_path, form, inside):
    printed = invoke("report", smoke, "--format", form)
    written = invoke("report", smoke, "--format", form, "--output", tmp_path / "report")
    assert printed.exit_code == written.exit_code == 0
    text = (tmp_path / "report").read_text()
    assert inside in text
    assert inside in printed.stdout
    assert text.strip() == printed.stdout.strip()


def test_figures_are_drawn_for_each_dataset(invoke, smoke, tmp_path):
    done = invoke("report", smoke, "--format", "png", "--output", tmp_path / "figures")
    assert done.exit_code == 0, done.output
    files = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert files == ["01-smoke-tiny-known-priors.png", "01-smoke-tiny-known-running.png"]
    for path in (tmp_path / "figures").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


def test_the_page_is_one_file(invoke, smoke, tmp_path):
    done = invoke("report", smoke, "--format", "html", "--output", tmp_path / "study.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "study.html").read_text()
    assert "<b>" in page
    assert "data:image/png;base64," in page
    assert "http" not in page  # nothing is loaded from elsewhere


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere"], "no folder or file nowhere"),
        (["report", "."], "no finished runs"),
        (["run", "smok"], "did you mean 'smoke'?"),
        (["run", "nosuch"], "a suite must be one of"),
        (["run", "smoke", "--out", "taken/out"], "taken/out"),
        (["run", "theory-regret", "--quick", "--out", "taken/out"], "taken/out"),
        (["run", "smoke", "--datasets", "tiy"], "got 'tiy', did you mean 'tiny'"),
        (["run", "smoke", "--policies", "oma"], "got 'oma', did you mean 'omma'"),
        (["run", "auto", "--policies", "omma"], "--policies is for suites of policies"),
    ],
)
def test_the_commands_say_no_in_one_line(invoke, tmp_path, arguments, message):
    (tmp_path / "taken").touch()
    done = invoke(*arguments)
    assert done.exit_code != 0
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_quick_is_one_sequence_and_one_prior(invoke):
    assert invoke("run", "smoke", "--quick", "--out", "quick").exit_code == 0
    specs = [record["spec"] for record in read("quick")]
    assert {spec["seed"] for spec in specs} == {0}
    assert {spec["prior"] for spec in specs} == {1e-6, None}


def test_some_policies_alone(invoke):
    done = invoke("run", "smoke", "--quick", "--policies", "omma_eta, baseline", "--out", "some")
    assert done.exit_code == 0, done.output
    assert {policy_of(record) for record in read("some")} == {"omma_eta", "baseline"}


def test_failures_are_recorded_and_tried_again(invoke, tmp_path, monkeypatch):
    write_folder(toy(), tmp_path / "data" / "toy")
    suite = write_suite(tmp_path / "mine.toml")

    def broken(table):
        raise RuntimeError("the estimator broke")

    with monkeypatch.context() as patch:
        patch.setattr(estimates, "make_estimator", broken)
        done = invoke("run", suite, "--data", "data", "--out", "out")
    assert done.exit_code == 1
    assert "4 runs failed" in done.output
    assert done.stderr.count("RuntimeError: the estimator broke") == 4
    assert all(record["error"]["type"] == "RuntimeError" for record in read("out"))
    assert "no finished runs" in invoke("report", "out").output

    again = invoke("run", suite, "--data", "data", "--out", "out")
    assert again.exit_code == 0
    assert "4 done, 0 there before, 0 failed" in again.stdout
    assert all(record["error"] is None for record in read("out"))


def test_absent_data_are_skipped_unless_strict(invoke, tmp_path):
    done = invoke("run", "multiclass_fixed", "--quick", "--datasets", "caltech256", "--out", "out")
    assert done.exit_code == 1
    skipped, nothing = done.stderr.strip().splitlines()
    assert skipped.startswith("Skipped caltech256: ")
    assert "nothing could be run" in nothing
    assert "--data or OMMA_DATA" in nothing
    assert "0 done" in done.stdout
    strict = invoke(
        "run", "multiclass_fixed", "--quick", "--datasets", "caltech256", "--strict", "--out", "out"
    )
    assert strict.exit_code == 1
    assert "1 datasets are not there" in strict.stderr


def test_some_absent_data_are_no_error(invoke, tmp_path):
    write_folder(toy(), tmp_path / "data" / "toy")
    suite = write_suite(tmp_path / "mine.toml")
    suite.write_text(suite.read_text().replace('["toy"]', '["toy", "caltech256"]'))
    done = invoke("run", suite, "--data", "data", "--out", "out")
    assert done.exit_code == 0
    assert "Skipped caltech256: " in done.stderr


def test_estimates_are_made_once_and_shared_by_suites(invoke, tmp_path, monkeypatch):
    write_folder(toy(split=200), tmp_path / "data" / "toy")
    first = write_suite(tmp_path / "first.toml")
    second = write_suite(tmp_path / "second.toml")
    assert invoke("run", first, "--data", "data", "--out", "out").exit_code == 0

    def refuse(table):
        raise RuntimeError("fitted again")

    with monkeypatch.context() as patch:
        patch.setattr(estimates, "make_estimator", refuse)
        assert invoke("run", second, "--data", "data", "--out", "out").exit_code == 0
    values = {}
    for record in read("out"):
        values.setdefault(record["suite"], []).append(record["result"]["value"])
    assert values["first"] == values["second"]

    write_folder(toy(split=150), tmp_path / "data" / "toy")  # other data under the same name
    assert invoke("run", second, "--data", "data", "--out", "other").exit_code == 0
    assert {record["result"]["rows"] for record in read("other")} == {150}


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_fixed_estimates_are_those_of_the_test_part(invoke, tmp_path, task):
    data = toy(task, split=200)
    write_folder(data, tmp_path / "data" / "toy")
    name = "multinomial" if task == "multiclass" else "logistic"
    suite = write_suite(tmp_path / "mine.toml", task, name)
    assert invoke("run", suite, "--data", "data", "--out", "out").exit_code == 0
    train, test = data.parts()
    kind = Multinomial if task == "multiclass" else LogisticRegression
    eta = kind(C=1.0).fit(train.X, train.y).predict_proba(test.X)
    for record in read("out"):
        spec = record["spec"]
        policy = omma.TopK(1) if spec["policy"] == "baseline" else omma.OMMA("macro_f1", 1)
        trace = omma.replay(policy, eta, test.y, metric="macro_f1", seed=spec["seed"])
        assert record["result"]["value"] == pytest.approx(trace.value, abs=1e-12)
        assert record["estimator"]["train_rows"] == 200


def test_online_estimates_are_made_along_each_sequence(invoke, tmp_path):
    data = toy("multilabel", split=200)
    write_folder(data, tmp_path / "data" / "toy")
    suite = write_suite(
        tmp_path / "mine.toml", "multilabel", "online", "learning_rate = 0.1", "online"
    )
    assert invoke("run", suite, "--data", "data", "--out", "out").exit_code == 0
    records = read("out")
    assert len({record["result"]["value"] for record in records}) > 2
    for record in records:
        spec = record["spec"]
        order = np.random.default_rng(spec["seed"]).permutation(300)
        X, y = data.X[order], data.y[order]
        eta, _ = OnlineLinear(learning_rate=0.1).estimates(X, y)
        policy = omma.TopK(1) if spec["policy"] == "baseline" else omma.OMMA("macro_f1", 1)
        assert record["result"]["rows"] == 300
        assert record["result"]["value"] == omma.replay(policy, eta, y, metric="macro_f1").value


def test_classes_can_be_run_as_labels_and_training_rows_be_bounded(invoke, tmp_path):
    write_folder(toy(), tmp_path / "data" / "toy")
    suite = write_suite(tmp_path / "mine.toml", "multilabel", "logistic")
    suite.write_text(suite.read_text() + "\n[dataset.toy]\nmax_train = 50\n")
    assert invoke("run", suite, "--data", "data", "--out", "out").exit_code == 0
    for record in read("out"):
        assert record["estimator"]["train_rows"] == 50
        assert record["result"]["rows"] == 90
        assert sum(record["result"]["counts"]["positive"]) == 90


def test_labels_cannot_be_run_as_classes(invoke, tmp_path):
    write_folder(toy("multilabel"), tmp_path / "data" / "toy")
    done = invoke("run", write_suite(tmp_path / "mine.toml"), "--data", "data")
    assert done.exit_code == 1
    assert "'toy' is multilabel and cannot be run as multiclass" in done.stderr


def record_of(dataset, policy, value, *, seed=0, prior=1e-6, metric="macro_f1", k=3, made=None):
    spec = {
        "dataset": dataset, "task": "multiclass", "protocol": "fixed",
        "estimator": {"name": "multinomial"}, "policy": policy, "feedback": "labels",
        "metric": metric, "k": k, "prior": prior, "seed": seed,
    }  # fmt: skip
    counts = {"tp": [1.0], "predicted": [2.0], "positive": [3.0], "n": 4.0}
    result = {
        "value": value, "rows": 4, "history": {"rows": [4], "values": [value]}, "counts": counts,
        "names": None,
    }  # fmt: skip
    return make(
        "mine", {**spec, **({"made": made} if made else {})}, policy.upper(), result=result,
        seconds={"run": 0.5}, estimator={"name": "multinomial", "C": 3.0},
    )  # fmt: skip


def test_the_papers_figures_stand_beside_ours():
    records = [record_of("news20", "omma", 0.7), record_of("news20", "omma", 0.8, seed=1)]
    text = markdown(table_of(*sections(records)).frame)
    assert "**75.00 ± 7.07**<br>[**72.84**]" in text
    (row,) = csv.DictReader(io.StringIO(cells_csv(sections(records))))
    assert float(row["paper"]) == 0.7284
    assert float(row["difference"]) == pytest.approx(0.75 - 0.7284)
    for others in (
        [record_of("yeast", "omma", 0.7)],
        [record_of("news20", "omma", 0.7, made={"by": "like"})],
        [record_of("news20", "omma", 0.7, k=2)],
        # Sets that are only somewhat like one of the paper's.
        [record_of("delicious", "omma", 0.7)],
    ):
        assert "[" not in markdown(table_of(*sections(others)).frame)
    (like,) = sections([record_of("a", "omma", 0.7, made={"by": "like", "name": "News20"})])
    assert "[**72.84**]" in markdown(table_of(like).frame)


def test_online_frank_wolfe_refits_as_the_authors_code():
    """28 times in 1,000 rows by floored intervals, 25 by those that the paper prints."""
    eta, y = long_tail(n=1000, m=5, seed=0)

    def refits(kind):
        rows_seen = []

        class Counted(kind):
            def run_again(self, state, sample, rows):
                rows_seen.append(len(rows))
                super().run_again(state, sample, rows)

        omma.replay(Counted("macro_f1"), eta, y, checkpoints=0)
        return rows_seen[1:]  # the first run compiles

    assert refits(PaperFrankWolfe)[:4] == [10, 21, 33, 46]
    assert len(refits(PaperFrankWolfe)) == 28
    assert len(refits(omma.OnlineFrankWolfe)) == 25


def test_plug_in_greedy_divides_by_the_whole_sequence(tmp_path):
    suite = parse("mine", """
        title = "Mine"
        protocol = "fixed"
        task = "multilabel"
        datasets = ["tail"]
        policies = ["greedy_plug_in"]
        metrics = ["macro_precision@3"]
        priors = [1e-6]
        seeds = 1
        estimator.name = "known"
        dataset.tail.made = { by = "long_tail", n = 500, m = 20, seed = 1 }
    """)  # fmt: skip
    study.run(suite, tmp_path)
    (record,) = read(tmp_path)
    eta, y = long_tail(n=500, m=20, seed=1)
    value = {
        rows: omma.replay(
            omma.Greedy("macro_precision", 3, expectation="plug_in", rows=rows), eta, y, seed=0
        ).value
        for rows in (None, 500)
    }
    assert record["result"]["value"] == value[500] != value[None]


def test_the_papers_greedy_with_estimates_is_fed_labels_on_two_metrics():
    paper = paper_values()[["value", "std"]].xs(3, level="k").unstack("method")
    labels, estimates = (
        paper.xs(name, axis=1, level="method") for name in ("greedy", "greedy_eta")
    )
    is_same = (labels == estimates).all(axis=1).groupby("metric").agg(["sum", "size"])
    assert is_same.to_dict("index") == {
        "macro_f1": {"sum": 0, "size": 13},
        "macro_precision": {"sum": 13, "size": 13},
        "macro_recall": {"sum": 13, "size": 13},
    }
    assert is_label_fed("greedy_plug_in_eta", "macro_recall@3")


def test_runs_that_are_missing_are_marked():
    records = [
        record_of("a", "omma", 0.5, seed=0), record_of("a", "omma", 0.6, seed=1),
        record_of("a", "greedy", 0.4, seed=0),
    ]  # fmt: skip
    (section,) = sections(records)
    assert section.is_complete("omma", "macro_f1@3")
    assert "40.00†" in markdown(table_of(*sections(records)).frame)


def test_the_best_prior_is_chosen_of_those_with_all_sequences():
    records = [
        record_of("a", "omma", 0.5, seed=0), record_of("a", "omma", 0.6, seed=1),
        record_of("a", "omma", 0.9, seed=0, prior=0.1),
    ]  # fmt: skip
    (section,) = sections(records)
    assert section.cells.at[("omma", "macro_f1@3"), "prior"] == 1e-6


def test_a_line_that_is_no_record_is_named_and_left_out(invoke, smoke, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"format": 1}))
    done = invoke("report", smoke, bad, "--format", "csv")
    assert done.exit_code == 0
    assert "bad.json, line 1 is no record" in done.stderr
    assert done.stdout == invoke("report", smoke, "--format", "csv").stdout


def test_pictures_of_estimators_that_share_a_name_are_all_kept(tmp_path):
    records = [record_of("a/b", "omma", 0.5), record_of("a/b", "omma", 0.6)]
    records[1]["spec"]["estimator"]["C"] = 3.0
    assert [path.name for path in figures.to_png(records, tmp_path) if "running" in path.name] == [
        "01-mine-a_b-multinomial-running.png",
        "02-mine-a_b-multinomial-running.png",
    ]


def test_every_policy_that_a_suite_may_name_can_be_drawn():
    (section,) = sections([record_of("a", name, 0.5) for name in POLICIES])
    (ax, *_) = figures.draw(section).axes
    assert len(ax.lines) >= len(section.policies) == len(POLICIES)


@pytest.mark.parametrize(("form", "output"), [("png", "taken"), ("csv", "folder"), ("csv", "no/a")])
def test_a_report_that_cannot_be_written_says_so_in_one_line(invoke, smoke, form, output):
    Path("folder").mkdir()
    Path("taken").write_text("before")
    done = invoke("report", smoke, "--format", form, "--output", output)
    assert done.exit_code == 1
    (sentence,) = done.output.splitlines()
    assert f"'{output}': " in sentence
    assert Path("taken").read_text() == "before"


def test_twenty_newsgroups_as_in_the_paper(tmp_path):
    folder = require("news20")
    path = tmp_path / "news.toml"
    path.write_text(
        SUITE.format(
            protocol="fixed", task="multilabel", name="logistic", options="C = 30.0\ntol = 0.1"
        )
        .replace('"toy"', '"news20"')
        .replace('"omma"]', '"omma", "omma_eta"]')
        .replace('"macro_f1@1"', '"macro_f1@3", "macro_precision@3"')
        .replace("[1e-6]", "[1e-6, 0.1]")
        .replace("seeds = 2", "seeds = 1")
    )
    summary = study.run(study.suite(path), tmp_path / "out", data=folder)
    assert (summary.done, summary.failed) == (10, 0)
    (section,) = sections(read(tmp_path / "out"))
    assert (section.n, section.m) == (7532, 20)
    assert section.paper is None  # here labels, each by itself: the paper has classes
    value = 100 * section.cells["mean"]
    assert value["baseline", "macro_f1@3"] == pytest.approx(49.23, abs=1.5)
    assert value["baseline", "macro_precision@3"] == pytest.approx(33.95, abs=1.5)
    for policy in ("omma", "omma_eta"):
        assert value[policy, "macro_f1@3"] == pytest.approx(73, abs=7)
        assert value[policy, "macro_f1@3"] > value["baseline", "macro_f1@3"] + 15
        assert value[policy, "macro_precision@3"] == pytest.approx(84, abs=4)


def test_html_shows_names_as_they_are(invoke):
    record = record_of("<b>", "omma", 0.5)
    Path("one.json").write_text(json.dumps(record))
    page = invoke("report", "one.json", "--format", "html").stdout
    assert "&lt;b&gt; (m = 1" in page
    assert "<td><b> (m" not in page


def test_latex_has_a_block_of_rows_for_each_dataset():
    records = [
        record_of(name, policy, value)
        for name in ("a", "b_c")
        for policy, value in (("baseline", 0.1), ("greedy", 0.4), ("omma", 0.5))
    ]
    (table,) = paper_tables(sections(records), "latex")
    lines = written([table], "latex").splitlines()
    assert lines.count(r"\begin{tabular}{llr}") == 1
    block = lines.index(r"b\_c (m = 1, n = 4) & Top-k / $\hat\eta$ ≥ 0.5 & 10.00 \\")
    assert lines[block + 1 : block + 3] == [
        r" & Greedy & \textit{40.00} \\",
        r" & OMMA & \textbf{50.00} \\",
    ]

"""``omma stream``: the decisions of ``replay``, at once, in constant memory, and safely stopped."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from serving import keeper_of

import omma
from omma.cli import main
from omma.cli.lines import LineReader
from omma.cli.streaming import Stream

ETA, Y = omma.datasets.long_tail(n=300, m=5, seed=3)
NAMES = ("a", "b", "c", "d", "e")
START = [sys.executable, "-c", "from omma.cli import main; main(prog_name='omma')", "stream"]


@pytest.fixture
def stream(tmp_path, monkeypatch, request):
    """Runs ``omma stream``: by OMMA, whose decisions a replay tells, or Auto where it is tested."""
    monkeypatch.chdir(tmp_path)
    by_default = request.node.name.startswith(("test_auto", "test_a_journal"))

    def run(text, *options):
        omma_is_meant = "--metric" in options and "--policy" not in options and not by_default
        policy = ("--policy", "omma") if omma_is_meant else ()
        return CliRunner().invoke(main, ["stream", *map(str, (*options, *policy))], input=text)

    return run


def csv_lines(eta=ETA, y=Y, names=NAMES):
    head = ",".join([*names, *(f"y_{name}" for name in names)])
    rows = np.column_stack([eta, y])
    return "\n".join([head, *(",".join(map(repr, row.tolist())) for row in rows)]) + "\n"


def json_lines(**columns):
    rows = zip(*columns.values(), strict=True)
    objects = (dict(zip(columns, map(plain, row), strict=True)) for row in rows)
    return "".join(json.dumps(one) + "\n" for one in objects)


def plain(value):
    return value.tolist() if hasattr(value, "tolist") else value


def decisions(done):
    return np.array([json.loads(line)["decision"] for line in done.stdout.splitlines()])


POLICIES = [
    (("--metric", "macro_f1"), omma.OMMA("macro_f1")),
    (("--metric", "macro_recall", "-k", "2"), omma.OMMA("macro_recall", k=2)),
    (
        ("--metric", "micro_f1@2", "--policy", "omma_eta", "--prior", "0.1"),
        omma.OMMA("micro_f1", k=2, feedback="estimates", prior=0.1),
    ),
    (("--metric", "macro_gmean", "--policy", "greedy"), omma.Greedy("macro_gmean")),
    (("--metric", "micro_f1", "--policy", "ofo"), omma.OFO("micro")),
    (("--metric", "macro_f1", "--policy", "baseline"), omma.Threshold(0.5)),
    (("--metric", "macro_f1@3", "--policy", "baseline"), omma.TopK(3)),
    (
        ("--metric", "macro_f1", "--at-most", "2", "--policy", "auto"),
        omma.Auto("macro_f1", at_most=2),
    ),
]


@pytest.mark.parametrize(("options", "policy"), POLICIES, ids=lambda one: repr(one)[:40])
def test_decides_as_replay_does(stream, options, policy):
    metric = options[1].partition("@")[0]
    trace = omma.replay(policy, ETA, Y, metric=metric)
    done = stream(json_lines(eta=ETA, y=Y), "--json", *options)
    assert done.exit_code == 0, done.stderr
    assert (decisions(done) == trace.predictions).all()
    assert json.loads(done.stdout.splitlines()[-1])["value"] == trace.value
    text = stream(csv_lines(), *options).stdout.splitlines()
    assert text[0] == "a,b,c,d,e"
    assert [[int(cell) for cell in line.split(",")] for line in text[1:]] == (
        trace.predictions.tolist()
    )


def test_one_class_a_row(stream):
    classes = ETA.argmax(axis=1)
    trace = omma.replay(omma.OMMA("multiclass_gmean"), ETA, classes)
    done = stream(json_lines(eta=ETA, y=classes), "--json", "--metric", "multiclass_gmean")
    assert (decisions(done) == trace.predictions).all()
    named = "a,b,c,d,e,y\n" + "".join(
        ",".join([*map(repr, row.tolist()), NAMES[which]]) + "\n"
        for row, which in zip(ETA, classes, strict=True)
    )
    again = stream(named, "--json", "--metric", "multiclass_gmean")
    assert (decisions(again) == trace.predictions).all()
    labels = [json.loads(line)["labels"] for line in again.stdout.splitlines()]
    assert labels == [[NAMES[which]] for which in trace.predictions.argmax(axis=1)]


def test_one_yes_or_no(stream):
    trace = omma.replay(omma.OMMA("f1"), ETA[:, 0], Y[:, 0])
    for text in (
        json_lines(eta=ETA[:, 0], y=Y[:, 0]),
        csv_lines(ETA[:, :1], Y[:, :1], ["p"]),
        csv_lines(ETA[:, :1], Y[:, :1], ["p"]).replace("y_p", "y"),
    ):
        done = stream(text, "--json", "--metric", "f1")
        assert decisions(done).ravel().tolist() == trace.predictions.tolist(), done.stderr


def test_without_labels_the_summary_says_what_probabilities_expect(stream):
    trace = omma.replay(omma.OMMA("macro_f1", feedback="estimates"), ETA)
    done = stream(json_lines(eta=ETA), "--metric", "macro_f1", "--policy", "omma_eta")
    assert f"macro_f1 {100 * trace.expected_value:.2f} % expected by probabilities" in done.stderr


@pytest.mark.parametrize("labels", ["indicators", "classes", "none"])
def test_columns_without_names(stream, labels):
    y = {"indicators": Y, "classes": ETA.argmax(axis=1)[:, None], "none": Y[:, :0]}[labels]
    rows = np.column_stack([ETA, y])
    text = "".join(",".join(map(repr, row.tolist())) + "\n" for row in rows)
    done = stream(text, "--metric", "macro_f1", "-k", 1, "--n-labels", 5)
    assert done.exit_code == 0
    learned = 0 if labels == "none" else 300
    assert f"300 decided, {learned} learned" in done.stderr
    assert done.stdout.splitlines()[0].count("1") == 1  # no names in, none out


def delayed(eta, y, wait):
    """Each row's labels come so many rows after it."""
    for row in range(len(eta) + wait):
        if row < len(eta):
            yield {"id": row, "eta": eta[row].tolist()}
        if row >= wait:
            yield {"id": row - wait, "y": y[row - wait].tolist()}


@pytest.mark.parametrize("wait", [0, 1, 7])
def test_labels_may_come_late(stream, wait):
    learner, made, expected = omma.OnlineClassifier(omma.OMMA("macro_f1"), 5), {}, []
    for line in delayed(ETA, Y, wait):
        if "eta" in line:
            made[line["id"]] = learner.predict(np.array(line["eta"]))
            expected.append(made[line["id"]].tolist())
        else:
            learner.update(np.array(line["y"]), prediction=made[line["id"]])
    text = "".join(json.dumps(line) + "\n" for line in delayed(ETA, Y, wait))
    done = stream(text, "--metric", "macro_f1", "--json", "--state", "s.npz")
    assert done.exit_code == 0, done.stderr
    assert decisions(done).tolist() == expected
    assert omma.OnlineClassifier.load("s.npz").value == learner.value
    assert "300 decided, 300 learned" in done.stderr


def test_rows_that_wait_are_part_of_the_state(stream):
    lines = [json.dumps(line) + "\n" for line in delayed(ETA, Y, 7)]
    options = ("--metric", "macro_f1", "--json", "--state")
    whole = stream("".join(lines), *options, "whole.npz")
    parts = [stream("".join(lines[start : start + 50]), *options, "s.npz")
             for start in range(0, len(lines), 50)]  # fmt: skip
    assert not any(part.exit_code for part in parts), parts[1].stderr
    assert (np.vstack([decisions(part) for part in parts if part.stdout]) == decisions(whole)).all()
    one, other = (omma.OnlineClassifier.load(name) for name in ("s.npz", "whole.npz"))
    assert one.state == other.state


def test_late_labels_in_csv_leave_probabilities_empty(stream):
    text = "id,a,b,y_a,y_b\nx,0.9,0.2,,\nz,0.1,0.2,0,1\nx,,,1,0\n"
    done = stream(text, "--metric", "macro_f1")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == ["id,a,b", "x,1,0", "z,0,0"]  # F1 starts at 1/4
    assert "2 decided, 2 learned" in done.stderr


def test_late_labels_judge_a_policy_that_does_not_need_them(stream):
    text = "".join(json.dumps(line) + "\n" for line in delayed(ETA, Y, 3))
    policy = omma.OMMA("macro_f1", feedback="estimates")
    trace = omma.replay(policy, ETA, Y)
    done = stream(text, "--metric", "macro_f1", "--policy", "omma_eta", "--json")
    assert (decisions(done) == trace.predictions).all()
    assert f"macro_f1 {100 * trace.value:.2f} %" in done.stderr


def test_a_decision_may_be_brought_along(stream):
    text = '{"eta": [0.9, 0.4]}\n{"y": [1, 1], "decision": [1, 0]}\n'
    stream(text, "--metric", "macro_f1", "--state", "s.npz")
    counts = omma.OnlineClassifier.load("s.npz").counts
    assert counts.tp.tolist() == [1, 0]
    assert counts.positive.tolist() == [1, 1]


def test_a_decision_brought_along_judges_a_policy_that_counts_estimates(stream):
    """Its labels are counted; its probabilities were when it was made."""
    first, brought = '{"eta": [0.9, 0.4]}\n', '{"y": [1, 1], "decision": [1, 0]}\n'
    options = ("--metric", "macro_f1", "--policy", "omma_eta", "--state")
    stream(first, *options, "one.npz")
    done = stream(first + brought, *options, "two.npz")
    assert done.exit_code == 0, done.stderr
    one, two = (omma.OnlineClassifier.load(name) for name in ("one.npz", "two.npz"))
    assert two.counts.tp.tolist() == [1, 0]
    assert two.counts.positive.tolist() == [1, 1]
    assert two.rule == one.rule


def test_rows_that_wait_too_long_are_forgotten_with_a_warning(stream):
    text = "".join(json.dumps(line) + "\n" for line in delayed(ETA[:6], Y[:6], 4))
    done = stream(text, "--metric", "macro_f1", "--pending", 2)
    assert done.exit_code == 3
    assert done.stderr.count("was forgotten:") == 1
    assert "id 0 was forgotten: more than 2 rows wait for labels" in done.stderr
    assert "is not known: its decision was forgotten before the labels came" in done.stderr
    assert "forgotten." in done.stderr.splitlines()[-1]


def test_rows_forgotten_before_a_state_is_resumed_are_no_news(stream):
    rows = [json.dumps({"id": t, "eta": [0.6, 0.2]}) + "\n" for t in range(6)]
    stream("".join(rows[:5]), "--metric", "macro_f1", "--pending", 2, "--state", "s.npz")
    done = stream(rows[5], "--pending", 100, "--state", "s.npz", "--json")
    assert done.exit_code == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [5]
    assert "was forgotten" not in done.stderr
    assert "3 waiting for labels, 3 forgotten" in done.stderr


def test_a_row_may_be_forgotten_by_its_age(stream):
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 2, max_age=1)
    learner.predict([0.6, 0.2], id="old")
    learner.save("s.npz")
    rows = [json.dumps({"id": t, "eta": [0.6, 0.2]}) + "\n" for t in range(2)]
    done = stream("".join(rows), "--state", "s.npz", "--json")
    assert done.exit_code == 0, done.stderr
    assert "id 'old' was forgotten: more than 1 rows were decided after it" in done.stderr


def test_the_state_is_resumed(stream):
    whole = stream(json_lines(eta=ETA, y=Y), "--json", "--metric", "macro_f1")
    first = stream(
        json_lines(eta=ETA[:100], y=Y[:100]), "--json", "--metric", "macro_f1", "--state", "s.npz"
    )
    second = stream(json_lines(eta=ETA[100:], y=Y[100:]), "--json", "--state", "s.npz")
    assert second.exit_code == 0, second.stderr
    both = np.vstack([decisions(first), decisions(second)])
    assert (both == decisions(whole)).all()
    other = stream("", "--metric", "micro_f1", "--state", "s.npz")
    assert other.exit_code == 1
    assert "was asked for" in other.stderr
    wrong = stream(json_lines(eta=ETA[:, :2]), "--state", "s.npz")
    assert wrong.exit_code == 3
    assert "line 1: expected 5 probabilities, got 2" in wrong.stderr


def test_a_state_that_is_none(stream):
    Path("s.npz").write_text("nonsense")
    done = stream("", "--metric", "macro_f1", "--state", "s.npz")
    assert done.exit_code == 1
    assert "is not a sound omma learner" in done.stderr
    assert Path("s.npz").read_text() == "nonsense"


BAD = [
    ("nonsense", "expected JSON, got 'nonsense'"),
    ("[1]", "expected a JSON object, got [1]"),
    ('{"eat": [1]}', "expected the keys id, eta, y, decision, audited, got 'eat'"),
    ('{"eta": [0.1, 0.2]}', "expected 5 probabilities, got 2"),
    ('{"eta": ["x", 1, 1, 1, 1]}', "expected numbers in eta"),
    ('{"eta": [2, 0, 0, 0, 0]}', "probabilities from 0 to 1, got 2"),
    ('{"eta": [NaN, 0, 0, 0, 0]}', "probabilities from 0 to 1, got nan"),
    ('{"eta": [1, 0, 0, 0, 0], "y": [1, 0, 0, 0, 2]}', "expected 0 and 1 as labels, got 2"),
    ('{"eta": [1, 0, 0, 0, 0], "y": [1, 0]}', "expected 5 labels, got 2"),
    ('{"eta": [1, 0, 0, 0, 0], "y": 3}', "a class id needs -k 1"),
    ('{"y": 3, "decision": [1, 0, 0, 0, 0]}', "a class id needs -k 1"),
    ('{"y": [1, 0, 0, 0, 0], "decision": [1, 0, 0, 0, 0.5]}', "0 and 1 as decisions, got 0.5"),
    ('{"y": [1, 0, 0, 0, 0.5], "decision": [1, 0, 0, 0, 0]}', "0 and 1 as labels, got 0.5"),
    ('{"y": [1, 0, 0, 0, 0], "decision": [1, 0]}', "expected 5 decisions, got 2"),
    ('{"eta": [1, 0, 0, 0, 0], "decision": [1, 0, 0, 0, 0]}', "expected labels y with a decision"),
    ('{"eta": [1, 0, 0, 0, 0], "decision": [1, 0], "y": [1, 0]}', "expected 5 decisions, got 2"),
    ('{"id": "q", "y": [1, 0, 0, 0, 0]}', "id 'q' is not known: no decision waits"),
    ('{"y": [1, 0, 0, 0, 0]}', "need the id of a row decided before"),
    ('{"id": "q"}', "expected probabilities, labels or both, got neither"),
    ('{"id": [1], "eta": [1, 0, 0, 0, 0]}', "expected a text or whole number as id"),
    ('{"eta": {"1": 0.5}}', "need --n-labels"),
]


@pytest.mark.parametrize("policy", ["omma", "omma_eta"])
def test_bad_lines_are_named_and_change_nothing(stream, policy):
    good = json_lines(eta=ETA, y=Y).splitlines()
    text = "\n".join([*good[:5], *(line for line, _ in BAD), *good[5:]]) + "\n"
    options = ("--metric", "macro_f1", "--policy", policy, "--json")
    done = stream(text, *options)
    assert done.exit_code == 3
    fixed, *said = done.stderr.splitlines()
    assert "the number of labels at 5" in fixed
    for number, ((_, expected), line) in enumerate(zip(BAD, said, strict=False), start=6):
        assert line.startswith(f"line {number}: ")
        assert expected in line
    assert len(said) == len(BAD) + 1
    assert f"{len(BAD)} lines skipped" in said[-1]
    assert done.stdout == stream("\n".join(good), *options).stdout


def test_strict_stops_at_the_first_bad_line_and_keeps_what_was_learned(stream):
    good = json_lines(eta=ETA, y=Y).splitlines()
    done = stream(
        "\n".join([*good[:5], "nonsense", *good[5:]]),
        *("--metric", "macro_f1", "--strict", "--state", "s.npz"),
    )
    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) == 5
    assert omma.OnlineClassifier.load("s.npz").counts.n == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n0.5\n", "line 2: expected 2 cells, got 1"),
        ("a,b\n0.5,0.1\n0.5,x\n", "line 3: expected a number in the column 'b', got 'x'"),
        ("a,b\n0.5,\n", "line 2: expected a number in the column 'b', got nothing"),
        ("a,b,y\n0.5,0.1,1.5\n", "line 2: expected a whole number as class id, got 1.5"),
        ("a,b,y\n0.5,0.1,q\n", "line 2: expected a class among ('a', 'b'), got 'q'"),
    ],
)
def test_bad_cells(stream, text, expected):
    done = stream(text, "--metric", "multiclass_accuracy")
    assert done.exit_code == 3
    assert expected in done.stderr.splitlines()


ADVICE = "pass --id NAME if a column names rows"


@pytest.mark.parametrize(
    ("head", "first", "expected"),
    [
        ("who,a,b,y", "x1,0.5,0.1,b", "a number in the column 'who', got 'x1'"),
        ("amount,a,b,y", "1000,0.5,0.1,a", "0 to 1 in the column 'amount', got 1000"),
        ("a,b,animal", "0.5,0.1,a", "a number in the column 'animal', got 'a'"),
        ("a,b,y_a,y_b", "0.5,0.1,x,0", "a number in the column 'y_a', got 'x'"),
        ("0.5,0.1,7", "0.5,0.1,8", "0 to 1 in the column number 2, got 7"),
    ],
)
def test_a_column_of_another_kind_stops_the_stream_at_once(stream, head, first, expected):
    done = stream("\n".join([head, *[first] * 50]), "--metric", "macro_f1", "-k", 1)
    assert done.exit_code == 1
    *skipped, summary, line = done.stderr.splitlines()
    assert len(skipped) == 2
    assert "0 decided" in summary
    for said in (skipped[0], line.replace("got 8", "got 7")):
        assert expected in said
        assert ADVICE in said
        assert "in a column y, or y_NAME" in said


def test_a_column_that_counts_rows_stops_the_stream(stream):
    text = "".join(f"{row},0.5,0.1,1,0\n" for row in range(50))
    done = stream("row,a,b,y\n" + text.replace(",1,0", ",0"), "--metric", "macro_f1", "-k", 1)
    assert done.exit_code == 1
    assert "line 4: expected probabilities from 0 to 1 in the column 'row', got 2" in done.stderr
    assert ADVICE in done.stderr
    unnamed = ",a,b,y_a,y_b\n" + text
    assert "index=False, or pass --id ''" in stream(unnamed, "--metric", "macro_f1").stderr
    done = stream(unnamed, "--metric", "macro_f1", "--id", "")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[2].startswith("1,")


def test_one_column_of_several(stream):
    p, y = ETA[:, 0], Y[:, 0]
    trace = omma.replay(omma.OMMA("f1"), p, y)
    rows = list(zip(p.tolist(), y.tolist(), strict=True))
    texts = [
        "ok,fraud,y\n" + "".join(f"{1 - p!r},{p!r},{y}\n" for p, y in rows),
        "ok,fraud,y\n" + "".join(f"{1 - p!r},{p!r},{'fraud' if y else 'ok'}\n" for p, y in rows),
        "amount,fraud,y_fraud\n" + "".join(f"900,{p!r},{y == 1}\n" for p, y in rows),
    ]
    for text in texts:
        for column in ("fraud", "1"):
            done = stream(text, "--metric", "f1", "--json", "--column", column)
            assert done.exit_code == 0, done.stderr
            assert decisions(done).ravel().tolist() == trace.predictions.tolist()
    bare = "".join(f"{1 - p!r},{p!r},{y}\n" for p, y in rows)
    done = stream(bare, "--metric", "f1", "--json", "--column", 1, "--n-labels", 2)
    assert decisions(done).ravel().tolist() == trace.predictions.tolist(), done.stderr
    refused = stream(texts[0], "--metric", "f1", "--column", "frad")
    assert refused.exit_code == 1
    assert "did you mean 'fraud'?" in refused.stderr
    refused = stream(json_lines(eta=ETA, y=Y), "--metric", "f1", "--column", "1")
    assert "--column is for CSV" in refused.stderr


def test_two_columns_for_a_metric_of_one_label(stream):
    done = stream("ok,fraud,y\n0.5,0.5,1\n", "--metric", "f1")
    assert done.exit_code == 1
    assert "eta[" not in done.stderr
    assert "there are 2 columns: pass --column NAME" in done.stderr


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a,b,y_a\n", (), "line 1: expected a column y_NAME for each NAME, not so for 'b'"),
        ("who,a,y_a\n", (), "not so for 'who': pass --id who if it names rows"),
        ("a,b\n", ("--id", "q"), "line 1: the stream has no column 'q', which --id asks for"),
        ("id,y\n", (), "line 1: the stream does not tell which columns hold probabilities"),
        ("a,b\n0.1,0.2\n", ("-k", 3), "line 2: k of OMMA"),
        (
            "0.1,0.2,0.3\n" * 3,
            ("--n-labels", 1),
            "expected 1 columns of probabilities (--n-labels)",
        ),
    ],
)
def test_columns_that_make_no_sense_stop_the_stream(stream, text, options, expected):
    done = stream(text, "--metric", "macro_f1", *options)
    assert done.exit_code == 1
    assert expected in done.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "Missing option '--metric'"),
        (("--metric", "macro_f"), "did you mean 'macro_f1'"),
        (("--metric", "macro_f1", "--policy", "oma"), "did you mean 'omma'"),
        (("--metric", "macro_mcc", "--policy", "ofo"), "OFO is for f1, macro_f1 and micro_f1"),
        (("--metric", "f1", "-k", "1"), "takes no budget"),
        (("--metric", "multiclass_gmean", "-k", "2"), "k must be 1"),
        (("--metric", "macro_f1", "-k", "2", "--at-most", "2"), "not both"),
        (
            ("--metric", "macro_f1", "--at-most", "2", "--policy", "ofo"),
            "does not support it",
        ),
        (("--metric", "macro_f1", "--save-every", "3"), "--save-every needs --state"),
        (("--metric", "macro_f1", "--state", "s.txt"), "must end in .npz"),
        (("--metric", "macro_f1", "--state", "no/s.npz"), "'no' is not a folder"),
        (("--metric", "macro_f1", "rows.csv"), "'rows.csv' does not exist"),
    ],
)
def test_bad_usage(stream, options, expected):
    done = stream("", *options)
    assert done.exit_code == 2
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    assert expected in line


def test_files_compressed_or_not_and_odd_bytes(stream, tmp_path):
    import gzip

    text = csv_lines()
    Path("rows.csv").write_text("\ufeff" + text, encoding="utf-8")
    Path("rows.csv.gz").write_bytes(gzip.compress(text.encode()))
    spoiled = text.encode().splitlines()
    Path("odd.csv").write_bytes(b"\n".join([*spoiled[:3], b"\xff\xfe", *spoiled[3:]]))
    options = ("--metric", "macro_f1")
    plain, packed = stream("", "rows.csv", *options), stream("", "rows.csv.gz", *options)
    odd = stream("", "odd.csv", *options)
    assert plain.stdout == packed.stdout == odd.stdout == stream(text, *options).stdout
    assert plain.exit_code == packed.exit_code == 0
    assert odd.exit_code == 3


def test_few_of_many_labels(stream):
    dense = stream('{"eta": [0, 0.5, 0, 0.9]}\n', "--metric", "macro_f1", "--json")
    pairs = stream(
        '{"eta": {"3": 0.9, "1": 0.5}}\n', "--metric", "macro_f1", "--json", "--n-labels", 4
    )
    assert pairs.stdout == dense.stdout
    done = stream('{"eta": {"4": 0.9}}\n', "--metric", "macro_f1", "--n-labels", 4)
    assert "expected labels from 0 to 3 in eta, got '4'" in done.stderr


HOSTILE = {
    "brackets": b"[" * 100_000,
    "braces": b'{"eta": ' * 50_000,
    "digits": b'{"eta": [' + b"9" * 310 + b", 0, 0, 0, 0]}",
    "digits as label": b'{"eta": [1, 0, 0, 0, 0], "y": ' + b"9" * 310 + b"}",
    "more digits": b'{"eta": [' + b"9" * 5_000 + b", 0, 0, 0, 0]}",
    "digits of CSV": b"9" * 310 + b",0,0,0,0,0,0,0,0,0",
    "a label of digits": b"0,0,0,0,0,0,0,0,0," + b"9" * 310,
    "carriage return": b"0.1,0.2\r0.3,0.1,0.1,0,0,0,0,0",
    "long cell": b"0" * 131_073 + b",0,0,0,0,0,0,0,0,0",
    "NaN": b"nan,0,0,0,0,0,0,0,0,0",
    "infinite": b"inf,0,0,0,0,0,0,0,0,0",
    "no numbers": b'0.1,0.2,"0.3,0.1',
    "null": b"\0" * 10,
    "odd bytes": bytes(range(128, 256)),
    "wide": b",".join([b"0.5"] * 4_000),
    "wide of JSON": b'{"eta": [' + b", ".join([b"0.5"] * 4_000) + b', 2], "y": 3}',
    "wrong number": b'{"eta": [7, 0.5, 0.5]}',
    "long id": b'{"id": "' + b"x" * 2_000 + b'", "eta": [1, 0, 0, 0, 0]}',
    "long number as id": b'{"id": 1' + b"0" * 300 + b', "eta": [1, 0, 0, 0, 0]}',
}


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("place", [0, 1, 9])
def test_a_bad_line_anywhere_is_skipped_and_leaves_no_trace(stream, bad, form, place):
    if place == 0 and bad == HOSTILE["wide"]:
        pytest.skip("a good row: its width is what it says")
    text = {"csv": csv_lines(ETA[:20], Y[:20]), "json": json_lines(eta=ETA[:20], y=Y[:20])}[form]
    good = text.encode().splitlines()
    Path("rows").write_bytes(b"\n".join([*good[:place], bad, *good[place:]]) + b"\n")
    Path("good").write_bytes(b"\n".join(good) + b"\n")
    options = ("--metric", "macro_f1", "--json", "--state")
    done = stream("", "rows", *options, "bad.npz")
    assert done.exit_code == 3, done.output
    assert "20 decided, 20 learned" in done.stderr
    assert "1 line skipped" in done.stderr
    assert max(map(len, done.stderr.splitlines())) < 400
    assert done.stdout == stream("", "good", *options, "good.npz").stdout
    counts = [omma.OnlineClassifier.load(f"{name}.npz").counts for name in ("bad", "good")]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("place", [0, 1, 10])
@pytest.mark.parametrize("form", ["csv", "json"])
def test_rows_of_nan_are_skipped_by_one_rule_first_and_later(stream, form, place):
    good = {"csv": csv_lines(ETA[:20], Y[:20]), "json": json_lines(eta=ETA[:20], y=Y[:20])}[form]
    bad = {"csv": "nan,0,0,0,0,0,0,0,0,0", "json": '{"eta": [NaN, 0, 0, 0, 0]}'}[form]
    lines = good.splitlines()
    done = stream("\n".join([*lines[:place], *[bad] * 9, *lines[place:]]), "--metric", "macro_f1")
    assert done.exit_code == 3
    assert "20 decided, 20 learned" in done.stderr
    assert "9 lines skipped" in done.stderr
    assert done.stdout == stream(good, "--metric", "macro_f1").stdout


PIECES = st.sampled_from(
    [
        *(b"0.5", b"1", b"0", b"nan", b"-1", b"1e400", b"9" * 400, b"true", b"", b"a", b"y", b"id"),
        *(b"\r", b"\t", b";", b",", b'"', b"\0", b"\xff", b" ", b"[", b"]", b"{", b"}", b":"),
        *(b'{"eta": [0.5, 0.1]}', b'{"id": "a", "y": 1}', b'{"eta": {"a": 1, "b": 0.5}}'),
        *(b'"eta"', b'"y"', b'"id"', b'"decision"', b"null", b"a,b,y_a,y_b", b"0.5,0.1,1,0"),
    ]
)


@settings(max_examples=400, deadline=None)
@given(
    lines=st.lists(st.lists(PIECES, max_size=8).map(b"".join), max_size=12),
    metric=st.sampled_from(["macro_f1", "multiclass_gmean"]),
    policy=st.sampled_from(["omma", "omma_eta"]),
)
def test_nothing_but_sentences_comes_of_any_line(lines, metric, policy):
    options = ("--metric", metric, "--policy", policy, "--pending", 2, "--json")
    out, keeper = io.StringIO(), keeper_of("stream", *options)
    stream, said = Stream(out, keeper), []
    try:
        for complaint in LineReader(keeper).complaints(lines, stream.take):
            said.append(complaint)
    except ValueError as error:  # no further line can be read
        said.append(str(error))
    assert max(map(len, said), default=0) < 600  # with advice
    assert len(out.getvalue().splitlines()) == stream.decided
    if stream.keeper.learner is None:
        assert stream.decided == stream.learned == 0
    else:
        assert stream.keeper.learner.counts.n == stream.learned


def test_a_line_without_end_is_discarded_as_it_comes(stream, monkeypatch):
    import omma.cli.lines

    monkeypatch.setattr(omma.cli.lines.bounded_lines, "__defaults__", (1_000,))
    good = json_lines(eta=ETA[:3], y=Y[:3])
    done = stream("x" * 5_000 + "\n" + good + "y" * 5_000, "--metric", "macro_f1")
    assert done.exit_code == 3
    assert "line 1: longer than 16 MiB; with so many labels" in done.stderr
    assert "3 decided, 3 learned" in done.stderr
    assert "2 lines skipped" in done.stderr


def test_what_a_program_says_first_is_no_header(stream):
    options = ("--metric", "macro_f1", "--json")
    for text in (csv_lines(), json_lines(eta=ETA, y=Y)):
        done = stream("Loading the model ...\n" + text, *options)
        assert done.exit_code == 3
        assert "line 2 begins anew" in done.stderr
        assert done.stdout == stream(text, *options).stdout


def test_a_state_is_not_made_by_lines_that_are_refused(stream):
    done = stream('{"eta": [0.5, 7]}\n{"y": [1], "decision": [3]}\n', "--metric", "macro_f1",
                  "--state", "s.npz")  # fmt: skip
    assert done.exit_code == 3
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("policy", "metric"),
    [
        ("omma_eta", "macro_f1"),
        ("omma_eta", "micro_f1"),
        ("greedy_eta", "macro_f1"),
        ("ofo_eta", "micro_f1"),
    ],
)
def test_late_labels_of_a_policy_that_does_not_need_them_are_saved(stream, policy, metric):
    lines = [json.dumps(line) + "\n" for line in delayed(ETA, Y, 3)]
    options = ("--metric", metric, "--policy", policy, "--json", "--state", "s.npz")
    first, second = stream("".join(lines[:300]), *options), stream("".join(lines[300:]), *options)
    whole = stream("".join(lines), "--metric", metric, "--policy", policy, "--json")
    assert (np.vstack([decisions(first), decisions(second)]) == decisions(whole)).all()
    learner = omma.OnlineClassifier.load("s.npz")
    assert "4 waiting for labels" in first.stderr  # and they go on waiting
    assert learner.counts.n == 300
    assert second.exit_code == 0, second.stderr
    straight = omma.replay(learner.policy, ETA, Y)
    assert learner.state == straight.state
    assert f"{metric} {100 * learner.value:.2f} %" in second.stderr


def test_rows_of_several_labels_are_refused_where_a_row_has_one_class(stream):
    text = '{"eta": [0.5, 0.2], "y": [1, 0]}\n{"eta": [0.5, 0.2], "y": [1, 1]}\n'
    done = stream(text + '{"eta": [0.5, 0.2], "y": [0, 0]}\n', "--metric", "multiclass_gmean")
    assert done.exit_code == 3
    assert "line 2: expected one class a row for multiclass_gmean, got 2 labels" in done.stderr
    assert "line 3: expected one class a row for multiclass_gmean, got 0 labels" in done.stderr
    assert "1 decided, 1 learned" in done.stderr


def test_a_stream_without_labels_says_what_to_do(stream):
    rows = json_lines(eta=np.vstack([ETA] * 4))
    done = stream(rows, "--metric", "macro_f1")
    assert done.stderr.count("No labels came") == 2  # after 1,000 rows, and at the end
    assert "--policy omma_eta" in done.stderr
    for options in (("--policy", "omma_eta"), ("--policy", "baseline")):
        assert "No labels came" not in stream(rows, "--metric", "macro_f1", *options).stderr
    assert "No labels came" not in stream(json_lines(eta=ETA, y=Y), "--metric", "macro_f1").stderr


def test_labels_by_name_in_json(stream):
    named = [dict(zip(NAMES, row.tolist(), strict=True)) for row in ETA]
    sets = [[name for name, one in zip(NAMES, row, strict=True) if one] for row in Y]
    text = "".join(json.dumps({"eta": e, "y": y}) + "\n" for e, y in zip(named, sets, strict=True))
    done = stream(text, "--metric", "macro_f1", "--json", "--state", "s.npz")
    assert done.exit_code == 0, done.stderr
    trace = omma.replay(omma.OMMA("macro_f1"), ETA, Y)
    assert (decisions(done) == trace.predictions).all()
    more = (
        '{"eta": {"b": 0.99, "zz": 1}}\n{"eta": {"b": 0.99}, "y": ["bb"]}\n{"eta": {"b": 0.99}}\n'
    )
    again = stream(more, "--json", "--state", "s.npz")
    assert again.exit_code == 3
    assert "expected names of labels in eta, got 'zz'" in again.stderr
    assert "expected names of labels in y, got 'bb'; did you mean 'b'?" in again.stderr
    assert json.loads(again.stdout)["labels"] == ["b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n50,10\n", "got 50; if these are percent, pass --percent"),
        ("a,b\n50 %,10 %\n", "got '50 %'; if these are percent, pass --percent"),
        ("a,a\n0.5,0.1\n", "expected distinct names, got 'a' twice"),
    ],
)
def test_likely_causes_are_named(stream, text, expected):
    assert expected in stream(text, "--metric", "macro_f1").stderr


def test_semicolons_and_other_codes(stream):
    done = stream(csv_lines().replace(",", ";"), "--metric", "macro_f1")
    assert done.stdout == stream(csv_lines(), "--metric", "macro_f1").stdout
    Path("rows.csv").write_bytes(csv_lines().encode("utf-16"))
    assert "the text is UTF-16: save it as UTF-8" in stream(
        "", "rows.csv", "--metric", "macro_f1"
    ).stderr  # fmt: skip


def test_a_file_that_is_cut_short(stream):
    import gzip

    text = csv_lines(np.vstack([ETA] * 20), np.vstack([Y] * 20))  # more than is read ahead
    Path("rows.csv.gz").write_bytes(gzip.compress(text.encode())[:-30])
    done = stream("", "rows.csv.gz", "--metric", "macro_f1", "--state", "s.npz")
    assert done.exit_code == 1
    assert "rows.csv.gz cannot be read: Compressed file ended" in done.stderr
    assert omma.OnlineClassifier.load("s.npz").counts.n > 0


def test_many_columns_take_no_time(stream):
    import time

    names = [f"c{place}" for place in range(20_000)]
    text = ",".join([*names, *(f"y_{name}" for name in names)]) + "\n"
    start = time.process_time()  # a busy machine takes longer by the clock
    assert stream(text, "--metric", "macro_f1").exit_code == 0
    assert time.process_time() - start < 2


# As a process of its own.


@pytest.fixture
def process(tmp_path):
    started = []

    def start(*options, **how):
        environment = {**os.environ, "PYTHONPATH": str(Path(omma.__file__).parents[1])}
        one = subprocess.Popen(
            [*START, *map(str, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment,
            **how,
        )
        started.append(one)
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


def send(process, line):
    process.stdin.write(line)
    process.stdin.flush()


def test_a_decision_comes_before_the_next_line_and_the_state_is_saved_on_the_way(process, tmp_path):
    one = process("--metric", "macro_f1", "--json", "--state", "s.npz", "--save-every", 2)
    for row, line in enumerate(json_lines(eta=ETA[:5], y=Y[:5]).splitlines(), start=1):
        send(one, line + "\n")
        assert json.loads(one.stdout.readline())["row"] == row
    one.kill()
    one.wait()
    assert omma.OnlineClassifier.load(tmp_path / "s.npz").counts.n == 4


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_it_saves_the_state(process, tmp_path, number, code):
    one = process("--metric", "macro_f1", "--state", "s.npz")
    for line in json_lines(eta=ETA[:4], y=Y[:4]).splitlines():
        send(one, line + "\n")
        one.stdout.readline()
    one.send_signal(number)
    one.wait(timeout=20)
    assert one.returncode == code
    assert omma.OnlineClassifier.load(tmp_path / "s.npz").counts.n == 4
    said = one.stderr.read()
    assert "Traceback" not in said
    assert "4 decided" in said
    assert [path.name for path in tmp_path.iterdir()] == ["s.npz"]


def test_two_streams_do_not_share_a_state(process, tmp_path):
    first = process("--metric", "macro_f1", "--state", "s.npz")
    send(first, json_lines(eta=ETA[:1], y=Y[:1]))
    first.stdout.readline()
    second = process("--metric", "macro_f1", "--state", "s.npz")
    said = second.communicate()[1]
    assert second.returncode == 1
    assert f"s.npz is in use by another omma stream, process {first.pid}." in said
    first.kill()
    first.wait()
    third = process("--metric", "macro_f1", "--state", "s.npz")
    third.communicate(json_lines(eta=ETA[:3], y=Y[:3]))
    assert third.returncode == 0
    assert omma.OnlineClassifier.load(tmp_path / "s.npz").counts.n == 3


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to look at memory")
def test_a_line_of_100_megabytes_takes_no_such_memory(process):
    one = process("--metric", "macro_f1", "--json")
    good = json_lines(eta=ETA[:2], y=Y[:2]).splitlines()
    send(one, good[0] + "\n")
    one.stdout.readline()
    before = peak(one.pid)
    for _ in range(100):
        send(one, "0.1," * (1 << 18))
    send(one, "\n" + good[1] + "\n")
    assert json.loads(one.stdout.readline())["row"] == 2
    assert peak(one.pid) - before < 50 << 20
    assert "line 2: longer than 16 MiB" in one.communicate()[1]
    assert one.returncode == 3


def test_a_reader_that_goes_away_ends_it_quietly(process, tmp_path):
    one = process("--metric", "macro_f1", "--state", "s.npz", "--n-labels", "5")
    first, *more = json_lines(eta=ETA, y=Y).splitlines()
    send(one, first + "\n")
    one.stdout.readline()
    one.stdout.close()
    try:
        for line in more:
            send(one, line + "\n")
    except BrokenPipeError:
        pass  # it has gone, too
    one.wait(timeout=20)
    said = one.stderr.read()
    assert one.returncode == 0
    assert said == ""
    assert omma.OnlineClassifier.load(tmp_path / "s.npz").counts.n >= 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to look at memory")
def test_memory_does_not_grow_with_the_rows(process):
    one = process("--metric", "macro_f1", "--pending", 50)
    lines = [f'{{"id": {{}}, "eta": {json.dumps(row.tolist() * 60)}}}\n' for row in ETA.round(2)]

    def rows(start, stop):
        for number in range(start, stop):
            one.stdin.write(lines[number % 300].replace("{}", str(number)))
            one.stdin.flush()
            one.stdout.readline()

    rows(0, 1000)
    one.stdout.readline()  # the names of columns came first
    before = memory(one.pid)
    rows(1000, 5000)
    assert memory(one.pid) - before < 1 << 20


def memory(pid, what="VmRSS:"):
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.partition(what)[2].split()[0])


def peak(pid):
    return memory(pid, "VmHWM:")


def test_a_journal_survives_kill_9(process, stream, tmp_path):
    lines = [json.dumps(line) + "\n" for line in delayed(ETA[:60], Y[:60], 7)]
    options = ("--metric", "macro_f1", "--json")
    whole = stream("".join(lines), *options, "--state", str(tmp_path / "whole.npz"))
    found, start = [], 0
    for stop in (1, 24, 80):
        assert "eta" in lines[stop - 1]  # once it is answered, all before it is written down
        one = process(*options, "--journal", "j")
        for line in lines[start:stop]:
            send(one, line)
            if "eta" in line:
                found.append(json.loads(one.stdout.readline())["decision"])
        start = stop
        one.kill()
        one.wait()
    assert (tmp_path / "j").is_dir()
    last = process(*options, "--journal", "j")
    text, told = last.communicate("".join(lines[start:]))
    assert last.returncode == 0, told
    assert "Going on from j:" in told
    found += [json.loads(line)["decision"] for line in text.splitlines()]
    assert found == decisions(whole).tolist()
    with omma.Journal.resume(tmp_path / "j") as journal:
        learner = omma.OnlineClassifier.load(tmp_path / "whole.npz")
        assert journal.learner.state == learner.state


def test_a_journal_and_a_state_are_one_too_many(stream):
    done = stream("", "--metric", "macro_f1", "--journal", "j", "--state", "s.npz")
    assert done.exit_code == 2
    assert "not both" in done.stderr
    stream('{"eta": [0.5, 0.2]}\n', "--metric", "macro_f1", "--journal", "j")
    other = stream("", "--metric", "micro_f1", "--journal", "j")
    assert other.exit_code == 1
    assert "was asked for" in other.stderr
    bad = stream('{"eta": [2, 3]}\n', "--metric", "macro_f1", "--journal", "none")
    assert bad.exit_code == 3
    assert not Path("none").exists()


def test_auto_is_the_default_and_learns_from_labels_and_from_rows_without(stream):
    """Rows count by their probabilities; labels correct them, with the row or later by its id."""
    eta, y = omma.datasets.long_tail(n=60, m=3, seed=2)
    lines = []
    for t in range(60):
        row = {"eta": eta[t].tolist()}
        if t % 3 == 0:
            row["y"] = y[t].tolist()
        elif t % 3 == 1:
            row["id"] = t
        lines.append(json.dumps(row))
        if t % 3 == 2:
            lines.append(json.dumps({"id": t - 1, "y": y[t - 1].tolist()}))
    done = stream("\n".join(lines) + "\n", "--metric", "macro_f1", "--json")
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), 3)
    expected = []
    for t in range(60):
        expected.append(learner.predict(eta[t], id=t if t % 3 == 1 else None).tolist())
        if t % 3 == 0:
            learner.update(y[t])
        elif t % 3 == 2:
            learner.update(None)
            learner.update(y[t - 1], id=t - 1)
    told = [json.loads(line)["decision"] for line in done.stdout.splitlines()]
    assert told == expected


def test_auto_counts_forgotten_rows_by_their_probabilities_and_wants_eta_again(stream):
    rows = [json.dumps({"id": t, "eta": [0.6, 0.2]}) for t in range(5)]
    done = stream("\n".join(rows) + "\n", "--metric", "macro_f1", "--pending", "2", "--json")
    assert "forgotten" in done.stderr
    line = json.dumps({"y": [1, 0], "decision": [1, 1]})
    first = json.dumps({"eta": [0.6, 0.2], "y": [1, 0]})
    done = stream(f"{first}\n{line}\n", "--metric", "macro_f1")
    assert "expected probabilities eta beside a decision" in done.stderr


def test_other_widths_than_n_labels_are_refused_whatever_comes_first(stream):
    text = '{"eta": [0.9, 0.2]}\n{"y": [1, 0], "decision": [1, 0]}\n{"eta": {"a": 0.9}}\n'
    right = '{"eta": [0.9, 0.2, 0.1]}\n'
    done = stream(text + right, "--metric", "macro_f1", "--json", "--n-labels", 3)
    assert [one["decision"] for one in map(json.loads, done.stdout.splitlines())] == [[1, 0, 0]]
    for number, what in ((1, "probabilities, got 2"), (2, "decisions, got 2")):
        assert f"line {number}: expected 3 {what}" in done.stderr
    assert "line 3: expected 3 probabilities, got 1" in done.stderr
    done = stream("a,b\n0.5,0.1\n", "--metric", "macro_f1", "--n-labels", 3)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "expected 3 columns of probabilities (--n-labels), got 2: ('a', 'b')" in done.stderr


def test_it_says_what_the_first_row_has_fixed_unless_it_was_known(stream):
    text, fixed = "a,b\n0.5,0.1\n", "fixed the number of labels at 2 (('a', 'b'))"
    assert fixed in stream(text, "--metric", "macro_f1", "--state", "s.npz").stderr
    assert "fixed" not in stream(text, "--state", "s.npz").stderr
    assert "fixed" not in stream(text, "--metric", "macro_f1", "--n-labels", 2).stderr
    assert "fixed" not in stream("0.5\n", "--metric", "f1").stderr
    done = stream(text, "--state", "s.npz", "--n-labels", 3)
    assert (done.exit_code, "holds a learner of 2 labels" in done.stderr) == (1, True)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_cannot_be_written_is_skipped_and_not_counted(stream, options):
    """Ids and names may be halves of letters in JSON, which no file can hold."""
    half = r"\ud800"
    row = '{"id": "%s", "eta": {"%s": 0.9, "b": 0.1}}\n'
    labels = '{"id": "%s", "y": ["a"]}\n'
    text = row % (half, "a") + row % ("x", half) + row % ("x", "a") + labels % half + labels % "x"
    done = stream(text, "--metric", "macro_f1", *options)
    assert done.exit_code == 3
    assert "1 decided, 1 learned" in done.stderr
    assert "3 lines skipped" in done.stderr
    assert "expected a text or whole number as id, got '" + half in done.stderr
    assert "expected names of labels, got '" + half in done.stderr


def test_the_journal_is_synced_as_often_as_asked(stream, tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: [synced.append(file), fsync(file)][1])
    rows = [json_lines(id=range(start, start + 20), eta=ETA[:20]) for start in (0, 20)]
    times = []
    for often in (1, 1000):
        for text in rows:  # a new journal, and one to go on from
            synced.clear()
            journal = ("--journal", tmp_path / f"j{often}", "--sync", often)
            assert stream(text, "--metric", "macro_f1", *journal).exit_code == 0
            times.append(len(synced))
    assert times[0] - times[2] >= 19
    assert times[1] - times[3] >= 19
    done = stream(rows[0], "--metric", "macro_f1", "--sync", 1)
    assert (done.exit_code, "--sync needs --journal" in done.stderr) == (2, True)


FORMULAS = ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "＝1")
HARMLESS = ("a", "-5", "+1", "1e5", "a=b", "7-3", "")


def test_no_spreadsheet_takes_an_id_for_a_formula(stream):
    """Cells that a spreadsheet would run are written as text; --raw-cells leaves them alone."""
    names = ("=cmd|' /C calc'!A0", "b")
    eta = [dict.fromkeys(names, 0.9)] * (len(FORMULAS) + len(HARMLESS))
    rows = json_lines(id=[*FORMULAS, *HARMLESS], eta=eta)
    done = stream(rows, "--metric", "macro_f1")
    assert done.exit_code == 0
    written = list(csv.reader(io.StringIO(done.stdout, newline="")))
    assert written[0] == ["id", "'=cmd|' /C calc'!A0", "b"]
    ids = [line[0] for line in written[1:]]
    assert ids == [*("'" + one for one in FORMULAS), *HARMLESS]
    assert done.stderr.count("--raw-cells") == 1
    raw = stream(rows, "--metric", "macro_f1", "--raw-cells")
    written = list(csv.reader(io.StringIO(raw.stdout, newline="")))
    assert [line[0] for line in written] == ["id", *FORMULAS, *HARMLESS]
    assert "--raw-cells" not in raw.stderr
    as_json = stream(rows, "--metric", "macro_f1", "--json")
    assert [json.loads(line)["id"] for line in as_json.stdout.splitlines()] == [
        *FORMULAS,
        *HARMLESS,
    ]

"""Records: their files, and lists of jobs that leave them."""

import json
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from omma_study.bench import Job, Outcome, perform
from omma_study.fields import check_study
from omma_study.page import page as to_page
from omma_study.records import distinct, make, pack, path_of, read, write
from omma_study.sections import sections

WORDS = st.text(max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
SPECS = st.dictionaries(WORDS, VALUES, max_size=5)


def job(seed, run=None, suite="s", kind="study"):
    return Job(suite, {"seed": seed}, "A", run or (lambda: Outcome({"value": seed / 10})), kind)


def fail(message="no such luck"):
    raise ValueError(message)


@given(spec=SPECS, suite=WORDS, label=WORDS, result=st.dictionaries(WORDS, VALUES, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, spec, suite, label, result):
    folder = tmp_path_factory.mktemp("records")
    record = make(suite, spec, label, result=result)
    path = write(folder, record)
    assert path == path_of(folder, suite, "study", spec)
    assert read(folder) == read([path]) == [record]
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@given(spec=SPECS, other=SPECS)
def test_a_spec_has_one_name_whatever_its_order(spec, other):
    backwards = dict(reversed(list(spec.items())))
    assert path_of("f", "s", "study", spec) == path_of("f", "s", "study", backwards)
    same = json.dumps(spec, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (path_of("f", "s", "study", spec) == path_of("f", "s", "study", other)) == same
    assert path_of("f", "s", "study", spec) != path_of("f", "s", "theory", spec)


def test_names_are_readable_and_safe():
    spec = {"dataset": "a/b c", "policy": "omma", "metric": "macro_f1", "k": 3, "prior": 1e-6}
    path = path_of("out", "../up", "study", {**spec, "seed": 4})
    assert path.parent.as_posix() == "out/_up"
    assert path.name.startswith("a_b_c-omma-macro_f1-k3-prior1e-06-seed4-")
    assert path_of("out", "s", "study", {}).name.startswith("run-")


def test_numpy_becomes_plain_and_whole_numbers_are_short(tmp_path):
    result = {"counts": np.array([1.0, 2.0]), "values": np.array([0.5]), "n": np.int64(3)}
    path = write(tmp_path, make("s", {"prior": np.float64(0.1)}, "A", result=result))
    text = path.read_text()
    assert '"counts":[1,2],"values":[0.5],"n":3' in text
    assert read(path)[0]["spec"] == {"prior": 0.1}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.array([np.nan])])
def test_numbers_are_finite(tmp_path, value):
    with pytest.raises(ValueError, match="finite"):
        write(tmp_path, make("s", {}, "A", result={"value": value}))
    assert read(tmp_path) == []


def test_bad_files_are_named_each_in_one_sentence(tmp_path):
    good = write(tmp_path, make("s", {}, "A", result={"value": 1.0}))
    bad = {
        "half": '{"format": 1',
        "list": "[1]",
        "bytes": b"\xff\xfe\x00",
        "later": json.dumps({**json.loads(good.read_text()), "format": 2}),
        "kind": json.dumps({**json.loads(good.read_text()), "kind": "studie"}),
        "fields": json.dumps({"format": 1, "suit": "s"}),
        "neither": json.dumps({**json.loads(good.read_text()), "result": None}),
    }
    for name, text in bad.items():
        (tmp_path / f"{name}.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    sentences = []
    assert len(read(tmp_path, bad=sentences.append)) == 1
    assert len(sentences) == len(bad)
    for name in bad:
        assert sum(f"{name}.json is no record" in sentence for sentence in sentences) == 1
    assert any("did you mean 'suit'" in sentence for sentence in sentences)
    assert any("did you mean 'study'" in sentence for sentence in sentences)
    with pytest.raises(ValueError, match="is no record"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / "nowhere")


def test_of_several_records_of_a_run_a_finished_one_is_kept():
    failed = make("s", {"seed": 0}, "A", error=ValueError("no"))
    first, second = (make("s", {"seed": 0}, "A", result={"value": v}) for v in (1.0, 2.0))
    others = [
        make("t", {"seed": 0}, "A", result={}),
        make("s", {"seed": 1}, "A", result={}),
        make("s", {"seed": 0}, "A", result={}, kind="theory"),
    ]
    assert distinct([failed, first, *others, second, failed]) == [first, *others]
    assert distinct([failed, failed]) == [failed]


def test_finished_jobs_are_skipped_and_failed_ones_tried_again(tmp_path):
    calls = []
    runs = {
        0: lambda: calls.append(0) or Outcome({"value": 1.0}, {"run": 0.5}, {"C": 3.0}),
        1: lambda: calls.append(1) or fail(),
    }
    sentences = []
    first = perform([job(s, runs[s]) for s in runs], tmp_path, report=sentences.append)
    assert (first.done, first.skipped, first.failed, first.left) == (1, 0, 1, 0)
    assert len(sentences) == 1
    assert "ValueError: no such luck" in sentences[0]
    done, failed = sorted(read(tmp_path), key=lambda record: record["spec"]["seed"])
    assert done["seconds"] == {"run": 0.5}
    assert done["estimator"] == {"C": 3.0}
    assert failed["result"] is None
    assert failed["error"]["type"] == "ValueError"
    assert "in fail" in failed["error"]["traceback"]

    again = perform([job(0, runs[0]), job(1)], tmp_path)
    assert (again.done, again.skipped, again.failed) == (1, 1, 0)
    assert calls == [0, 1]
    assert [record["error"] for record in read(tmp_path)] == [None, None]


def test_a_result_that_cannot_be_written_is_a_failure(tmp_path):
    summary = perform([job(0, lambda: Outcome({"value": float("nan")}))], tmp_path)
    assert summary.failed == 1
    assert "finite" in read(tmp_path)[0]["error"]["message"]


def test_half_a_record_is_written_anew(tmp_path):
    path = path_of(tmp_path, "s", "study", {"seed": 0})
    path.parent.mkdir()
    path.write_text('{"format"')
    assert perform([job(0)], tmp_path).done == 1
    assert len(read(tmp_path)) == 1


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_any_number_of_threads_gives_the_same_records(tmp_path, n_jobs):
    threads = set()

    def run(seed):
        threads.add(threading.get_ident())
        time.sleep(0.01)
        return Outcome({"value": seed})

    jobs = [job(seed, lambda seed=seed: run(seed)) for seed in range(6)]
    assert perform(jobs, tmp_path, n_jobs=n_jobs).done == 6
    assert sorted(record["result"]["value"] for record in read(tmp_path)) == [*range(6)]
    assert len(threads) == n_jobs


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    def stop():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return Outcome({"value": 2})

    jobs = [job(0), job(1, stop), *map(job, range(2, 9))]
    summary = perform(jobs, tmp_path)
    assert summary.interrupted
    assert (summary.done, summary.left) == (2, 7)
    assert sorted(record["spec"]["seed"] for record in read(tmp_path)) == [0, 1]
    assert str(perform(jobs[:1] + jobs[2:], tmp_path)) == "7 done, 1 there before, 0 failed"


def test_jobs_must_differ(tmp_path):
    with pytest.raises(ValueError, match="twice"):
        perform([job(0), job(0)], tmp_path)
    summary = perform([job(0), job(0, suite="other"), job(0, kind="theory")], tmp_path)
    assert summary.done == 3


def test_progress_goes_to_standard_error(tmp_path, capsys):
    perform([job(0)], tmp_path, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "1/1" in printed.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "stduy"}, "did you mean 'study'"),
        ({"result": None}, "either a result or an error"),
    ],
)
def test_make_says_what_is_wrong(change, message):
    with pytest.raises(ValueError, match=message):
        make("s", {}, "A", **{"result": {}, **change})


def test_a_function_is_told_how_far_it_is_while_jobs_run(tmp_path):
    told = []
    jobs = [
        Job("mine", {"seed": seed}, "a", lambda: time.sleep(0.7) or Outcome({"value": 1.0}))
        for seed in range(2)
    ]
    perform(jobs, tmp_path, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 2)  # before the first has finished
    assert told[-1] == (2, 2)


def test_packed_records_are_read_as_others_are(tmp_path):
    some = [
        make("mine", {"dataset": "a", "seed": seed}, "OMMA", result={"value": 0.1 + seed / 3})
        for seed in range(3)
    ]
    failed = make("mine", {"dataset": "a", "seed": 9}, "OMMA", error=ValueError("no"))
    (path,) = pack([*some, failed], tmp_path)
    assert read(tmp_path) == some
    history = {"rows": [1, 2], "values": [1 / 3, 0.5]}
    long = make("mine", {"dataset": "b"}, "OMMA", result={"value": 1 / 3, "history": history},
                seconds={"run": 1 / 7})  # fmt: skip
    pack([long], tmp_path)
    (kept,) = read(tmp_path / "mine-b.jsonl.xz")
    assert kept["result"] == {"value": 1 / 3, "history": {"rows": [1, 2], "values": [0.3333, 0.5]}}
    assert kept["seconds"] == {"run": 0.143}
    path.write_bytes(path.read_bytes()[:-9])
    sentences = []
    assert len(read(tmp_path, bad=sentences.append)) == 1
    assert "mine-a.jsonl.xz holds no records" in sentences[0]


def test_of_many_labels_the_first_sequence_keeps_counts(tmp_path):
    """A section of such records is the same as before, and so is what is drawn of it."""
    counts = {name: [1.0] * 300 for name in ("tp", "predicted", "positive")} | {"n": 9.0}
    result = {
        "value": 0.25, "rows": 9, "history": {"rows": [9], "values": [0.25]},
        "counts": counts, "names": [f"label {j}" for j in range(300)],
    }  # fmt: skip
    spec = {
        "dataset": "wide", "task": "multilabel", "protocol": "fixed",
        "estimator": {"name": "known"}, "policy": "omma", "feedback": "labels",
        "metric": "macro_f1", "k": None, "prior": 0.1,
    }  # fmt: skip
    given = [make("mine", {**spec, "seed": seed}, "OMMA", result=result, seconds={"run": 1.0})
             for seed in (1, 0)]  # fmt: skip
    pack(given, tmp_path)
    found = read(tmp_path, check=check_study, bad=pytest.fail)
    assert [one["result"]["counts"] for one in found] == [None, counts]
    (section,) = sections(found)
    assert (section.m, section.comparison.seeds) == (300, (0, 1))
    assert section.comparison.cells["omma", "macro_f1"].mean == 0.25
    assert "label 299" in to_page(found)
    broken = {**found[0], "result": {**found[0]["result"], "labels": 0}}
    with pytest.raises(ValueError, match="labels of the record of a study must be"):
        check_study(broken)


def test_a_packed_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    (path,) = pack([make("mine", {"dataset": "a"}, "OMMA", result={"value": 1.0})], tmp_path)
    monkeypatch.setattr("omma_study.records.LARGEST", 10)
    with pytest.raises(ValueError, match="must unpack to at most 10 bytes"):
        read(path)

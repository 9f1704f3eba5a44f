"""Records: their files, and jobs that leave them."""

import json
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from omma_study.records import key_of, make, pack, read, write
from omma_study.runs import Job, once_a_minute, perform
from omma_study.sections import sections

WORDS = st.text(max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
SPECS = st.dictionaries(WORDS, VALUES, max_size=5)


def job(seed, run=None, suite="s", kind="theory"):
    run = run or (lambda: {"result": {"value": seed / 10}})
    return Job(suite, {"seed": seed}, "A", run, kind)


def fail(message="no such luck"):
    raise ValueError(message)


def record_of(seed, **parts):
    return make("s", {"seed": seed}, "A", kind="theory", **parts)


@given(spec=SPECS, suite=WORDS, label=WORDS, result=st.dictionaries(WORDS, VALUES, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, spec, suite, label, result):
    folder = tmp_path_factory.mktemp("records")
    record = make(suite, spec, label, kind="theory", result=result)
    path = write(folder, record)
    assert read(folder) == read([path]) == [record]
    assert [file.name for file in folder.iterdir()] == [path.name]


@given(spec=SPECS, other_spec=SPECS)
def test_a_spec_has_one_key_whatever_its_order(spec, other_spec):
    def key(spec, kind="study"):
        return key_of({"suite": "s", "kind": kind, "spec": spec})

    assert key(spec) == key(dict(reversed(list(spec.items()))))
    same = json.dumps(spec, sort_keys=True) == json.dumps(other_spec, sort_keys=True)
    assert (key(spec) == key(other_spec)) == same
    assert key(spec) != key(spec, "theory")


def test_numpy_becomes_plain_and_whole_numbers_are_short(tmp_path):
    result = {"counts": np.array([1.0, 2.0]), "values": np.array([0.5]), "n": np.int64(3)}
    spec = {"prior": np.float64(0.1)}
    path = write(tmp_path, make("../up", spec, "A", kind="auto", result=result))
    assert path.parent == tmp_path
    assert '"counts": [1, 2], "values": [0.5], "n": 3' in path.read_text()
    assert read(path)[0]["spec"] == {"prior": 0.1}


def test_bad_lines_are_named_each_in_one_sentence(tmp_path):
    write(tmp_path, record_of(0, result={"value": 1.0}))
    good = json.loads((tmp_path / "s.jsonl").read_text())
    bad = {
        "half": '{"format": 1',
        "list": "[1]",
        "bytes": b"\xff\xfe\x00",
        "later": json.dumps({**good, "format": 2}),
        "fields": json.dumps({"format": 1, "suite": "s"}),
        "neither": json.dumps({**good, "result": None}),
        "study": json.dumps({**good, "kind": "study"}),
    }
    for name, text in bad.items():
        (tmp_path / f"{name}.jsonl").write_bytes(text if isinstance(text, bytes) else text.encode())
    sentences = []
    assert len(read(tmp_path, bad=sentences.append)) == 1
    for name in bad:
        assert sum(f"{name}.jsonl, line 1 is no record" in sentence for sentence in sentences) == 1
    assert "its spec must have 'dataset', which is missing" in " ".join(sentences)
    with pytest.raises(ValueError, match="is no record"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / "nowhere")


def test_of_several_records_of_a_run_the_first_result_counts(tmp_path):
    for parts in ({"error": ValueError("no")}, {"result": {"value": 1}}, {"result": {"value": 2}}):
        write(tmp_path, record_of(0, **parts))
    write(tmp_path, record_of(1, result={"value": 3}))
    assert [record["result"]["value"] for record in read(tmp_path)] == [1, 3]


def test_finished_jobs_are_skipped_and_failed_ones_tried_again(tmp_path):
    calls = []
    parts = {"result": {"value": 1.0}, "seconds": {"run": 0.5}, "estimator": {"C": 3.0}}
    runs = {0: lambda: calls.append(0) or parts, 1: lambda: calls.append(1) or fail()}
    sentences = []
    first = perform([job(s, runs[s]) for s in runs], tmp_path, report=sentences.append)
    assert (first.done, first.skipped, first.failed, first.left) == (1, 0, 1, 0)
    (sentence,) = sentences
    assert sentence == "s 1 failed with ValueError: no such luck"
    done, failed = read(tmp_path)
    assert (done["seconds"], done["estimator"]) == ({"run": 0.5}, {"C": 3.0})
    assert failed["result"] is None
    assert "in fail" in failed["error"]["traceback"]
    again = perform([job(0, runs[0]), job(1)], tmp_path)
    assert (again.done, again.skipped, again.failed) == (1, 1, 0)
    assert calls == [0, 1]
    assert [record["error"] for record in read(tmp_path)] == [None, None]


@pytest.mark.parametrize("value", [float("nan"), np.array([np.inf])])
def test_a_result_that_json_does_not_have_is_a_failure(tmp_path, value):
    assert perform([job(0, lambda: {"result": {"value": value}})], tmp_path).failed == 1
    assert "JSON compliant" in read(tmp_path)[0]["error"]["message"]


def test_half_a_line_is_left_out_and_its_run_is_run_again(tmp_path):
    write(tmp_path, record_of(0, result={"value": 1}))
    whole = (tmp_path / "s.jsonl").read_text()
    (tmp_path / "s.jsonl").write_text(whole + whole[:40])
    sentences = []
    assert perform([job(0), job(1)], tmp_path, report=sentences.append).done == 1
    assert len(sentences) == 1
    assert len(read(tmp_path, bad=sentences.append)) == 2


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_any_number_of_threads_gives_the_same_records(tmp_path, n_jobs):
    threads = set()

    def run(seed):
        threads.add(threading.get_ident())
        time.sleep(0.05)
        return {"result": {"value": seed}}

    jobs = [job(seed, lambda seed=seed: run(seed)) for seed in range(6)]
    assert perform(jobs, tmp_path, n_jobs=n_jobs).done == 6
    assert sorted(record["result"]["value"] for record in read(tmp_path)) == [*range(6)]
    assert len(threads) == n_jobs


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    def stop():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)

    jobs = [job(0), job(1, stop), *map(job, range(2, 9))]
    summary = perform(jobs, tmp_path)
    assert (summary.done, summary.failed, summary.left) == (1, 0, 8)
    assert str(summary).endswith("8 not begun")
    assert [record["spec"]["seed"] for record in read(tmp_path)] == [0]
    assert str(perform(jobs[:1] + jobs[2:], tmp_path)) == "7 done, 1 there before, 0 failed"


def test_progress_is_told(tmp_path):
    lines, times = [], iter(range(0, 6000, 61))
    jobs = [job(seed) for seed in range(3)]
    perform(jobs, tmp_path, progress=once_a_minute(lines.append, lambda: next(times)))
    assert [line.split(",")[0] for line in lines] == ["1 of 3 runs", "2 of 3 runs"]


def test_packed_records_are_read_as_others_are(tmp_path):
    spec = {"dataset": "a"}
    records = [
        make("mine", {**spec, "seed": seed}, "A", kind="auto", result={"value": 0.1 + seed / 3})
        for seed in range(3)
    ]
    failed = make("mine", {**spec, "seed": 9}, "A", kind="auto", error=ValueError("no"))
    (path,) = pack([*records, failed], tmp_path)
    assert path.name == "mine.jsonl.xz"
    assert read(tmp_path) == records
    history = {"rows": [1, 2], "values": [1 / 3, 0.5]}
    long = make("long", spec, "A", kind="auto", result={"value": 1 / 3, "history": history},
                seconds={"run": 1 / 7})  # fmt: skip
    pack([long], tmp_path)
    (packed,) = read(tmp_path / "long.jsonl.xz")
    assert packed["result"] == {
        "value": 1 / 3,
        "history": {"rows": [1, 2], "values": [0.3333, 0.5]},
    }
    assert packed["seconds"] == {"run": 0.143}
    path.write_bytes(path.read_bytes()[:-9])
    sentences = []
    assert len(read(tmp_path, bad=sentences.append)) == 4  # whole lines before the end are there
    assert "mine.jsonl.xz, line 4 is no record: Compressed file ended" in sentences[0]


def test_of_many_labels_the_first_sequence_keeps_counts(tmp_path):
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
    records = [make("mine", {**spec, "seed": seed}, "OMMA", result=result, seconds={"run": 1.0})
               for seed in (1, 0)]  # fmt: skip
    (path,) = pack(records, tmp_path)
    assert path.name == "mine-wide.jsonl.xz"
    packed = read(tmp_path)
    assert [record["result"]["counts"] for record in packed] == [None, counts]
    (section,) = sections(packed)
    assert (section.m, section.seeds, len(section.positive)) == (300, 2, 300)
    assert section.mean("omma", "macro_f1") == 0.25

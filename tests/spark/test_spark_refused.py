"""What omma.spark refuses, each with a sentence; and frames that are whole."""

import json
import subprocess
import sys
from datetime import timedelta
from importlib import import_module

import numpy as np
import pytest
from naive_baselines import stream as long_stream
from spark_streams import batches_of, dense, read, write

import omma

POLICY = omma.OMMA("macro_f1", prior=1.0)
N = 60
TRY_TO_HOLD = """
import sys
from omma.spark.store import Store, hold
hold(Store(sys.argv[1]))
"""


@pytest.fixture
def data():
    return dense(*long_stream(0, N, 4))


def start(spark, data, folder, policy=POLICY, **more):
    options = {"eta": "eta", "y": "y", "id": "id", "trigger": {"availableNow": True}}
    options |= {"checkpoint": folder / "checkpoint"} | more
    return omma.spark.stream(read(spark, data, folder / "in"), policy, **options)


def test_a_checkpoint_is_for_one_driver_and_one_policy(spark, tmp_path, data):
    write(data, tmp_path / "in", batches_of(N, 60))
    query = start(spark, data, tmp_path, trigger={"processingTime": "0 seconds"})
    query.processAllAvailable()
    with pytest.raises(OSError, match="is in use by a stream of omma"):
        start(spark, data, tmp_path)
    place = str(tmp_path / "checkpoint")
    other = subprocess.run(
        [sys.executable, "-c", TRY_TO_HOLD, place], capture_output=True, text=True, check=False
    )
    assert other.returncode == 1
    assert "is in use by a stream of omma.spark, process" in other.stderr
    query.stop()
    for policy, what in (
        (omma.OMMA("micro_f1", prior=1.0), "its metric is"),
        (omma.OMMA("macro_f1", k=2, prior=1.0), "its k is"),
        (omma.OMMA("macro_f1", prior=0.5), "its prior is 1.0, and 0.5 was asked for"),
        (omma.OMMA("macro_f1", prior=1.0, feedback="estimates"), "its feedback is"),
        (omma.Auto("macro_f1"), "its policy is 'OMMA', and 'Auto' was asked for"),
        (omma.Forgetting(POLICY, 100), "its policy is 'OMMA', and 'Forgetting'"),
    ):
        with pytest.raises(ValueError, match=f"has counts of another policy: {what}"):
            start(spark, data, tmp_path, policy)
    with pytest.raises(ValueError, match="has counts of 4 labels, and 5 were asked for"):
        start(spark, data, tmp_path, n_labels=5)
    start(spark, data, tmp_path).awaitTermination()  # the same goes on
    assert omma.spark.load_state(place).rows == N
    with pytest.raises(ValueError, match="must have the state of batch 7, got 0 to 0"):
        omma.spark.load_state(place, 7)
    with pytest.raises(ValueError, match="has counts of another policy"):
        omma.spark.load_state(place, policy=omma.OMMA("f1"))


def test_what_cannot_be_streamed_is_refused(spark, tmp_path, data):
    write(data, tmp_path / "in", batches_of(N, 60))
    wrong = [
        (TypeError, {"policy": omma.OnlineFrankWolfe("macro_f1")}, "policy of stream must be one"),
        (TypeError, {"policy": "macro_f1"}, "policy of stream must be one whose state is counts"),
        (ValueError, {"eta": "probabilities"}, "stream needs the column 'probabilities'"),
        (TypeError, {"eta": ("a", "b", "c")}, "eta of stream must name a column"),
        (ValueError, {"eta": ("id", "y")}, "n_labels of stream must be given"),
        (ValueError, {"id": None, "sink": tmp_path}, "id of stream must name the column"),
        (TypeError, {"sink": 3}, "sink of stream must be a folder or a function, got 3"),
        (ValueError, {"labels": read(spark, data, tmp_path / "in")}, "time and watermark of"),
    ]
    for error, more, sentence in wrong:
        with pytest.raises(error, match=sentence):
            start(spark, data, tmp_path, **more)
    assert not (tmp_path / "checkpoint").exists()
    limited = omma.OMMA("macro_f1", subject_to="micro_precision >= 0.5")
    late = {"labels": read(spark, data, tmp_path / "in"), "time": "id"}
    with pytest.raises(ValueError, match="policy of stream must have no limits"):
        start(spark, data, tmp_path, limited, watermark=timedelta(1), **late)
    with pytest.raises(ValueError, match="sdf of stream must be a stream"):
        omma.spark.stream(spark.range(3), POLICY, eta="id", checkpoint=tmp_path)


def test_a_wrong_row_stops_the_query_and_is_not_counted(spark, tmp_path, data):
    data.eta[7, 2] = 1.5
    write(data, tmp_path / "in", batches_of(N, 60))
    query = start(spark, data, tmp_path)
    with pytest.raises(Exception, match=r"must hold probabilities from 0 to 1, got 1\.5 in row 7"):
        query.awaitTermination()
    with pytest.raises(ValueError, match="must have a state, got none"):
        omma.spark.load_state(tmp_path / "checkpoint")


def test_whole_frames(spark, tmp_path, data):
    write(data, tmp_path / "in", batches_of(N, 60))
    frame = spark.read.schema(data.schema).parquet(str(tmp_path / "in"))
    state = omma.spark.count(frame, POLICY, eta="eta", y="y")
    assert state == omma.step(POLICY, POLICY.init(4), data.eta, data.y)[1]
    again = omma.spark.count(frame, POLICY, state, eta="eta", y="y")
    assert again == state + omma.step(POLICY, state, data.eta, data.y)[1]
    rule = POLICY.rule(again)
    decided = omma.spark.predict(frame, rule, eta="eta").orderBy("id").collect()
    expected = rule.predict(data.eta)
    assert [row.prediction for row in decided] == [np.flatnonzero(row).tolist() for row in expected]
    with pytest.raises(TypeError, match="rule of predict must be a Rule"):
        omma.spark.predict(frame, POLICY, eta="eta")
    with pytest.raises(ValueError, match="name of predict must be no column"):
        omma.spark.predict(frame, rule, eta="eta", name="y")


def test_a_torn_state_is_told(tmp_path):
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    store_module = import_module("omma.spark.store")
    store = store_module.Store(str(tmp_path))
    state = omma.step(POLICY, POLICY.init(3), np.full((5, 3), 0.5), np.ones((5, 3)))[1]
    store.write(store_module.Saved(3, POLICY.to_json(), state))
    assert omma.spark.load_state(tmp_path) == state
    path = tmp_path / "omma" / "3.npz"
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(store_module.TornError, match="is no whole state of an omma stream"):
            store.read(3)
    path.with_name("4.npz").write_bytes(whole)
    with pytest.raises(store_module.TornError, match="expected batch 4, got 3"):
        store.read(4)
    assert json.loads(json.dumps(POLICY.to_json())) == POLICY.to_json()


def test_states_in_an_object_store(monkeypatch):
    """Where nothing is renamed, and nothing can be locked."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    store_module = import_module("omma.spark.store")
    from pyarrow import fs

    system = fs._MockFileSystem()
    place = property(lambda self: (system, "bucket/x/omma"))
    monkeypatch.setattr(store_module.Store, "_place", place)
    store = store_module.Store("s3://bucket/x")
    state = omma.step(POLICY, POLICY.init(3), np.full((5, 3), 0.5), np.ones((5, 3)))[1]
    for batch in range(3):
        store.write(store_module.Saved(batch, POLICY.to_json(), state))
    assert store.folder is None
    assert store.batches() == [0, 1, 2]
    assert store.read(1).state == state
    assert store.read(9) is None
    assert omma.spark.load_state("s3://bucket/x") == state

"""Labels in a stream of their own: counted once, with the decision that was made."""

import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_baselines import stream as long_stream
from spark_streams import as_ids, decisions

import omma
from omma.batch_step import handed_out, merged, settled

START = datetime(2026, 1, 1, tzinfo=UTC)
M, SIZE = 5, 200


def write(folder, tables):
    folder.mkdir()
    for number, table in enumerate(tables):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + 10 * number,) * 2)


def row_files(eta):
    """Three batches of rows, an hour apart."""
    for number in range(3):
        rows = range(number * SIZE, (number + 1) * SIZE)
        times = [START + timedelta(hours=number)] * SIZE
        kind = pa.timestamp("us", tz="UTC")
        columns = {"id": list(rows), "time": pa.array(times, kind)}
        columns["eta"] = pa.array([eta[i].tolist() for i in rows], pa.list_(pa.float64()))
        yield pa.table(columns)


def label_files(y, batches):
    for ids in batches:
        some = pa.array([y[i].tolist() for i in ids], pa.list_(pa.int32()))
        yield pa.table({"id": pa.array(ids, pa.int64()), "y": some})


def replayed(policy, eta, y, batches):
    """What one process counts: rows of a batch first, then labels, each with its own decision."""
    state, made = policy.init(M), np.zeros((3 * SIZE, M), dtype=np.int8)
    for number, ids in enumerate(batches):
        rows = slice(number * SIZE, (number + 1) * SIZE)
        given = handed_out(state)
        made[rows], delta = omma.step(policy, given, eta[rows])
        parts = [delta]
        if ids:
            parts.append(settled(policy, given, eta[ids], y[ids], made[ids]))
        state = merged(state, parts)
    return state, made


@pytest.mark.parametrize("policy", [omma.OMMA("macro_f1", prior=1.0), omma.Auto("macro_f1")])
def test_labels_join_by_id(spark, tmp_path, policy):
    eta, y = long_stream(1, 3 * SIZE, M)
    told = [list(range(0, 50)), [*range(40, 90), 250, 999], [10, 20, *range(260, 300), 450]]
    # Of the second batch 40 to 49 are told again; 999 is no row. The third comes two hours after
    # the first, whose rows wait no longer than one: 10 and 20 were counted before, 95 never is.
    told[2].append(95)
    write(tmp_path / "rows", row_files(eta))
    write(tmp_path / "labels", label_files({**dict(enumerate(y)), 999: y[0]}, told))
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    rows = reader.schema("id long, time timestamp, eta array<double>")
    labels = spark.readStream.option("maxFilesPerTrigger", 1).schema("id long, y array<int>")
    query = omma.spark.stream(
        rows.parquet(str(tmp_path / "rows")),
        policy,
        eta="eta",
        y="y",
        id="id",
        checkpoint=tmp_path / "checkpoint",
        sink=tmp_path / "out",
        labels=labels.parquet(str(tmp_path / "labels")),
        time="time",
        watermark=timedelta(minutes=30),
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    # A watermark moves between batches: rows of batch 0 still wait in batch 1, no more in batch 2.
    counted = [told[0], [*range(50, 90), 250], [*range(260, 300), 450]]
    expected, made = replayed(policy, eta, y, counted)
    state = omma.spark.load_state(tmp_path / "checkpoint")
    assert state.truth.rows == sum(map(len, counted))
    if policy.feedback == "labels":
        assert state == expected
        assert decisions(tmp_path / "out") == as_ids(made)
    else:  # what its calibration learned depends, a little, on who saw which rows
        np.testing.assert_allclose(state.cells, expected.cells, rtol=0.01)
        np.testing.assert_allclose(state.calibration.bias, expected.calibration.bias, atol=0.05)
        assert len(decisions(tmp_path / "out")) == 3 * SIZE
    left = sorted(one.name for one in (tmp_path / "checkpoint/omma/waiting").iterdir())
    assert left == ["batch=2"]

"""A state for each key: each learns from its own rows alone, and every row counts once."""

import numpy as np
import pytest
from naive_baselines import class_stream, stream as long_stream
from spark_streams import batches_of, decisions, dense, read, replayed, write

import omma

POLICY = omma.OMMA("macro_f1", prior=1.0)
N, SIZE, TENANTS = 600, 300, 3
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
TENANT = f"id % {TENANTS} as tenant"


def run(sdf, folder, policy, **more):
    decided = omma.spark.stream_per_key(sdf, policy, key="tenant", y="y", id="id", **more)
    writer = decided.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.format("parquet").option("path", str(folder / "out"))
    writer.trigger(availableNow=True).start().awaitTermination()


def alone(policy, data, tenant):
    """The state of one key, and its decisions by id: each key is a stream of its own."""
    rows = [slice(batch.start + tenant, batch.stop, TENANTS) for batch in batches_of(N, SIZE)]
    state, predictions = replayed(policy, data, rows)
    ids = [i for one in rows for i in range(one.start, one.stop, TENANTS)]
    table = predictions.reshape(len(ids), -1)
    return state, dict(zip(ids, (np.flatnonzero(row).tolist() for row in table), strict=True))


CLASS_ETA, CLASS_IDS = class_stream(0, N, 5)
CASES = {
    "labels": (POLICY, dense(*long_stream(0, N, 4))),
    "classes, some unknown": (
        omma.OMMA("multiclass_gmean", prior=1.0),
        dense(CLASS_ETA, np.where(np.arange(N) % 7, CLASS_IDS, np.nan)),
    ),
    "fading": (omma.Forgetting(POLICY, half_life=100), dense(*long_stream(1, N, 4), "binary")),
}


@pytest.mark.parametrize("case", CASES)
def test_each_key_learns_for_itself(spark, tmp_path, case, monkeypatch):
    from spark_faults import DyingPerKey

    policy, data = CASES[case]
    dying = type("Dying", (DyingPerKey,), {"row": SIZE + 100, "flag": str(tmp_path / "flag")})
    monkeypatch.setattr("omma.spark.per_key.PerKey", dying)
    write(data, tmp_path / "in", batches_of(N, SIZE))
    sdf = read(spark, data, tmp_path / "in").selectExpr("*", TENANT)
    run(sdf, tmp_path, policy, eta="eta")
    assert (tmp_path / "flag").exists()  # a worker was killed on the way
    states, expected = omma.spark.load_states(spark, tmp_path / "checkpoint"), {}
    assert sorted(states) == list(range(TENANTS))
    for tenant, state in states.items():
        other, found = alone(policy, data, tenant)
        assert state == other
        expected |= found
    assert decisions(tmp_path / "out") == expected
    assert len(expected) == N


def test_keys_may_have_labels_of_their_own_number(spark, tmp_path):
    rows = [(i, i % 2, [0.5] * (2 + i % 2), [1] * (2 + i % 2)) for i in range(10)]
    schema = "id long, tenant int, eta array<double>, y array<int>"
    spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "in"))
    run(spark.readStream.schema(schema).parquet(str(tmp_path / "in")), tmp_path, POLICY, eta="eta")
    states = omma.spark.load_states(spark, tmp_path / "checkpoint")
    assert {key: (state.m, state.rows) for key, state in states.items()} == {0: (2, 5), 1: (3, 5)}


def test_what_a_key_cannot_have_is_refused(spark, tmp_path):
    from pyspark.errors import StreamingQueryException

    data = dense(*long_stream(0, 60, 4))
    write(data, tmp_path / "in", batches_of(60, 30))
    sdf = read(spark, data, tmp_path / "in").selectExpr("*", TENANT)
    with pytest.raises(ValueError, match="stream_per_key needs the column 'owner'"):
        omma.spark.stream_per_key(sdf, POLICY, key="owner", eta="eta", id="id")
    whole = spark.read.schema(sdf.schema).parquet(str(tmp_path / "in"))
    with pytest.raises(ValueError, match="sdf of stream_per_key must be a stream"):
        omma.spark.stream_per_key(whole, POLICY, key="tenant", eta="eta", id="id")
    with pytest.raises(
        ValueError, match="must be that of a query of stream_per_key, with no space"
    ):
        omma.spark.load_states(spark, tmp_path)
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, before.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(ValueError, match=f"needs the state store RocksDB: set {PROVIDER} to"):
            run(sdf, tmp_path, POLICY, eta="eta")
    finally:
        spark.conf.set(PROVIDER, before)
    run(sdf, tmp_path, POLICY, eta="eta")
    write(data, tmp_path / "more", [slice(0, 30)])
    other = omma.OMMA("macro_f1", prior=2.0)
    (tmp_path / "more" / "000.parquet").rename(tmp_path / "in" / "002.parquet")
    sdf = read(spark, data, tmp_path / "in").selectExpr("*", TENANT)
    with pytest.raises(StreamingQueryException, match=r"its prior is 1\.0, and 2\.0 was asked for"):
        run(sdf, tmp_path, other, eta="eta")
    states = omma.spark.load_states(spark, tmp_path / "checkpoint")
    assert sum(one.rows for one in states.values()) == 60

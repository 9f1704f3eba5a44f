"""The same stream under Spark Connect: python spark_connect.py FOLDER.

One process is the server. The client is another one, as it would be on another machine.
"""

import os
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from spark_child import POLICY, N, data, rows, start
from spark_listeners import open_to_others, with_children
from spark_session import begin
from spark_streams import as_ids, decisions, read, replayed, write

import omma

BUSY = 75


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serve(folder):
    write(data(), folder / "in", rows())
    port = str(free_port())
    spark = begin(
        "local[2]",
        folder,
        **{
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
            "spark.log.level": "ERROR",
        },
    )
    client = [sys.executable, __file__, str(folder), port]
    code = subprocess.run(client, check=False, timeout=520).returncode
    assert open_to_others(with_children(os.getpid())) == []
    spark.stop()
    sys.exit(code)


def patiently(start, tries=6):
    """A query that runs.

    Spark gives the process that runs its batches ten seconds to come up, which no setting changes
    and a busy machine may not have: then this process ends with ``BUSY``.
    """
    from pyspark.errors import PySparkException

    for _ in range(tries):
        try:
            return start()
        except PySparkException as error:
            if "failed to connect back" not in str(error):
                raise
    sys.exit(BUSY)


def connect(folder, port):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    out = str(folder / "out")
    patiently(lambda: start(spark, folder, out)).awaitTermination()
    expected, predictions = replayed(POLICY, data(), rows())
    assert omma.spark.load_state(folder / "checkpoint") == expected
    assert decisions(folder / "out") == as_ids(predictions)
    again = omma.OMMA("macro_f1", prior=2.0)
    with pytest.raises(ValueError, match=r"its prior is 1\.0, and 2\.0 was asked for"):
        start(spark, folder, out, policy=again)
    with pytest.raises(ValueError, match="checkpoint of stream must be a whole path"):
        start(spark, folder, out, checkpoint="here")
    whole_frames(spark, folder, expected)
    a_state_for_each_key(spark, folder)
    labels_that_come_later(spark, folder)
    spark.stop()


def whole_frames(spark, folder, state):
    frame, given = spark.read.parquet(str(folder / "in")), data()
    rule = POLICY.rule(state)
    found = omma.spark.predict(frame, rule, eta="eta").select("id", "prediction").collect()
    assert {row[0]: row[1] for row in found} == as_ids(rule.predict(given.eta))
    counted = omma.spark.count(frame, POLICY, eta="eta", y="y")
    assert counted == replayed(POLICY, given, [slice(0, N)])[0]


def a_state_for_each_key(spark, folder):
    sdf = read(spark, data(), folder / "in", files=3).selectExpr("*", "id % 2 as tenant")
    keyed = omma.spark.stream_per_key(sdf, POLICY, key="tenant", eta="eta", y="y", id="id")
    writer = keyed.writeStream.option("checkpointLocation", str(folder / "keyed"))
    writer = writer.format("parquet").option("path", str(folder / "by-key"))
    writer.trigger(availableNow=True).start().awaitTermination()
    states = omma.spark.load_states(spark, folder / "keyed")
    assert {key: state.rows for key, state in states.items()} == {0: N / 2, 1: N / 2}
    assert len(decisions(folder / "by-key")) == N


def labels_that_come_later(spark, folder):
    both = read(spark, data(), folder / "in", files=3)
    patiently(
        lambda: omma.spark.stream(
            both.selectExpr("id", "eta", "timestamp_seconds(id) as time"),
            POLICY,
            eta="eta",
            y="y",
            id="id",
            checkpoint=folder / "late",
            labels=read(spark, data(), folder / "in", files=3).select("id", "y"),
            time="time",
            watermark=timedelta(hours=1),
            trigger={"availableNow": True},
        )
    ).awaitTermination()
    assert omma.spark.load_state(folder / "late") == replayed(POLICY, data(), [slice(0, N)])[0]


if __name__ == "__main__":
    given = Path(sys.argv[1])
    serve(given) if len(sys.argv) == 2 else connect(given, sys.argv[2])

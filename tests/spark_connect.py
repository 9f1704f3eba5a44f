"""The same stream under Spark Connect: python spark_connect.py FOLDER."""

import os
import socket
import sys
from pathlib import Path

import pytest
from spark_child import POLICY, data, rows, start
from spark_listeners import open_to_others, with_children
from spark_session import SETTINGS, settle
from spark_streams import as_ids, decisions, replayed, write

import omma


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def session(folder):
    from pyspark.sql import SparkSession

    settle()
    builder = SparkSession.builder.remote("local[2]")
    own = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(free_port()),
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/local",
        "spark.log.level": "ERROR",
    }
    for name, value in {**SETTINGS, **own}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main(folder):
    write(data(), folder / "in", rows())
    spark = session(folder)
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    start(spark, folder, str(folder / "out")).awaitTermination()
    assert open_to_others(with_children(os.getpid())) == []
    expected, predictions = replayed(POLICY, data(), rows())
    assert omma.spark.load_state(folder / "checkpoint") == expected
    assert decisions(folder / "out") == as_ids(predictions)
    again = omma.OMMA("macro_f1", prior=2.0)
    with pytest.raises(ValueError, match=r"its prior is 1\.0, and 2\.0 was asked for"):
        start(spark, folder, str(folder / "out"), policy=again)
    spark.stop()
    sys.stdout.write("exact\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

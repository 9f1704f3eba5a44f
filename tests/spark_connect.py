"""The same stream under Spark Connect: python spark_connect.py FOLDER.

One process is the server. The client is another one, as it would be on another machine.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from spark_child import POLICY, data, rows, start
from spark_listeners import open_to_others, with_children
from spark_session import begin
from spark_streams import as_ids, decisions, replayed, write

import omma


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
    subprocess.run([sys.executable, __file__, str(folder), port], check=True, timeout=400)
    assert open_to_others(with_children(os.getpid())) == []
    spark.stop()


def begun(spark, folder, tries=6):
    """A query that runs: Spark gives the process that runs its batches ten seconds to come up,
    which is not always enough on a busy machine."""
    from pyspark.errors import PySparkException

    for left in reversed(range(tries)):
        try:
            return start(spark, folder, str(folder / "out"))
        except PySparkException as error:
            if not left or "failed to connect back" not in str(error):
                raise
    return None


def connect(folder, port):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    begun(spark, folder).awaitTermination()
    expected, predictions = replayed(POLICY, data(), rows())
    assert omma.spark.load_state(folder / "checkpoint") == expected
    assert decisions(folder / "out") == as_ids(predictions)
    again = omma.OMMA("macro_f1", prior=2.0)
    with pytest.raises(ValueError, match=r"its prior is 1\.0, and 2\.0 was asked for"):
        start(spark, folder, str(folder / "out"), policy=again)
    spark.stop()


if __name__ == "__main__":
    given = Path(sys.argv[1])
    serve(given) if len(sys.argv) == 2 else connect(given, sys.argv[2])

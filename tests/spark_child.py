"""A driver that is killed, or loses something, at a chosen point: spark_child.py FOLDER POINT.

The point "resume" goes on where another was killed. One that comes to its end leaves ``seconds``:
until Spark was up, and of its last two batches.
"""

import json
import os
import sys
import time
from pathlib import Path

from naive_baselines import stream as long_stream
from spark_faults import DyingStore, KillAt
from spark_session import begin
from spark_streams import batches_of, dense, read, write

import omma
from omma.spark import streaming

N, SIZE, AT = 900, 300, 1
POLICY = omma.OMMA("macro_f1", prior=1.0)


def data():
    return dense(*long_stream(0, N, 6))


def rows():
    return batches_of(N, SIZE)


def start(spark, folder, sink, policy=POLICY, **more):
    sdf = read(spark, data(), folder / "in")
    if "kill" in more:
        sdf = sdf.mapInArrow(more.pop("kill"), sdf.schema)
    options = {"checkpoint": folder / "checkpoint", "trigger": {"availableNow": True}, **more}
    return omma.spark.stream(sdf, policy, eta="eta", y="y", id="id", sink=sink, **options)


def main(folder, point):
    started = time.perf_counter()
    if point != "resume":
        write(data(), folder / "in", rows())
    master = {"executor": "local-cluster[2,1,1024]", "worker": "local[1,4]"}.get(point, "local[1]")
    spark = begin(master, folder, **{"spark.log.level": "ERROR"})
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    pids = (jvm, os.getpid())
    up = time.perf_counter() - started
    sink, more, flag = folder / "out", {}, str(folder / "flag")
    if point == "after":
        streaming.Store = lambda checkpoint: DyingStore(checkpoint, AT, pids)
    elif point in ("executor", "worker"):
        more["kill"] = KillAt(SIZE + 200, flag, executor=point == "executor")
    elif point != "resume":

        def sink(frame, number):
            if number == AT and point == "writing":  # one part is written, another is not
                frame = frame.mapInArrow(KillAt(2 * SIZE - 1, flag, pids), frame.schema)
            frame.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))
            if number == AT:
                for pid in pids:
                    os.kill(pid, 9)

    query = start(spark, folder, sink, **more)
    query.awaitTermination()
    took = [one["batchDuration"] / 1000 for one in query.recentProgress if one["numInputRows"]]
    (folder / "seconds").write_text(json.dumps([up, *took[-2:]]))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

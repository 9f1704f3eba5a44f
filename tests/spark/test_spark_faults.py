"""Processes killed at chosen points: each row is counted once and decided once nevertheless."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from left_running import run
from spark_listeners import open_to_others, with_children
from spark_session import missing
from spark_streams import as_ids, decisions, replayed, write

import omma

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

CHILD = Path(__file__).parents[1] / "spark_child.py"


def killed(folder, *point, script=CHILD):
    """Run a driver that is killed; returns how it ended. Nothing of it is left."""
    command = [sys.executable, str(script), str(folder), *point]
    with (folder / "log").open("wb") as log:  # a busy machine needs a minute for each JVM
        code, left = run(command, timeout=540, stdout=subprocess.DEVNULL, stderr=log)
    assert not left, f"left running: {left}"
    return code


def check_exact(folder):
    from spark_child import POLICY, N, data, rows

    expected, predictions = replayed(POLICY, data(), rows())
    state = omma.spark.load_state(folder / "checkpoint")
    assert state.rows == N
    assert state == expected
    assert decisions(folder / "out") == as_ids(predictions)


@pytest.mark.parametrize("point", ["before", "writing", "after"])
def test_a_killed_driver_goes_on_where_it_was(spark, tmp_path, point):
    from spark_child import AT, SIZE, N, start

    assert killed(tmp_path, point) == -signal.SIGKILL, (tmp_path / "log").read_text()[-2000:]
    there = omma.spark.store.Store(str(tmp_path / "checkpoint")).batches()
    assert there == list(range(AT + (point == "after")))
    committed = [int(one.name) for one in (tmp_path / "checkpoint/commits").glob("[0-9]*")]
    assert committed == [0]
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "control")
    if (tmp_path / "out").exists():
        shutil.copytree(tmp_path / "out", tmp_path / "out again")
    start(spark, tmp_path, tmp_path / "out").awaitTermination()
    check_exact(tmp_path)
    if point == "after":  # without versions the same fault counts a batch twice
        start_unversioned(spark, tmp_path).awaitTermination()
        assert omma.spark.load_state(tmp_path / "control").rows == N + SIZE
    if point == "before":  # without a place for each batch the same fault decides rows twice
        start(
            spark, tmp_path, Added(tmp_path / "out again"), checkpoint=tmp_path / "control"
        ).awaitTermination()
        assert len(pq.read_table(tmp_path / "out again", partitioning=None)) == N + SIZE


class Added:
    """A sink that does not replace what it wrote for a batch."""

    def __init__(self, folder):
        self._folder = folder

    def __call__(self, frame, number):
        frame.write.mode("append").parquet(str(self._folder / f"batch={number}"))


def start_unversioned(spark, folder):
    from spark_child import start
    from spark_faults import Unversioned

    from omma.spark import streaming

    versioned, streaming.Runner = streaming.Runner, Unversioned
    try:
        return start(spark, folder, folder / "out again", checkpoint=folder / "control")
    finally:
        streaming.Runner = versioned


def test_a_killed_worker_is_replaced(spark, tmp_path):
    from spark_child import SIZE, data, rows, start
    from spark_faults import KillAt

    write(data(), tmp_path / "in", rows())
    kill = KillAt(SIZE + 200, str(tmp_path / "flag"))
    start(spark, tmp_path, tmp_path / "out", kill=kill).awaitTermination()
    assert (tmp_path / "flag").exists()
    check_exact(tmp_path)


def test_a_killed_executor_is_replaced(tmp_path):
    assert killed(tmp_path, "executor") == 0, (tmp_path / "log").read_text()[-2000:]
    assert (tmp_path / "flag").exists()
    check_exact(tmp_path)


def test_under_connect_it_is_the_same(tmp_path):
    pytest.importorskip("grpc", reason='Connect is not installed: pip install "pyspark[connect]"')
    script = CHILD.with_name("spark_connect.py")
    code = killed(tmp_path, script=script)
    if code == 75:
        pytest.skip("Spark Connect gives its processes ten seconds to start: not enough just now")
    assert code == 0, (tmp_path / "log").read_text()[-3000:]


def test_nothing_is_seen_from_outside(spark):
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert open_to_others([*with_children(jvm), os.getpid()]) == []

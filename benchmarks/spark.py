"""omma.spark: rows a second, quality against the merge interval, and how long recovery takes.

python -m benchmarks.spark [--quick] needs omma[spark] and Java 17; --quality needs neither.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import omma
from benchmarks.clock import race
from omma.merging import Part, handed_out, merged

LABELS = 200
SIZES = (100, 1_000, 10_000, 20_000)
WARM = 2  # batches until nothing is compiled any more


def rows_of(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Calibrated probabilities of labels with a long tail, as in the table of merge intervals."""
    rng = np.random.default_rng(seed)
    means = np.geomspace(0.3, 0.004, LABELS)
    eta = rng.beta(means * 2, (1 - means) * 2, size=(n, LABELS)).astype(np.float32)
    return eta, (rng.random((n, LABELS)) < eta).astype(np.int8)


def quality(n: int) -> None:
    """Macro-F1 of batches of S rows spread over two workers, against one row after another."""
    eta, y = rows_of(n)
    wrong = eta**1.5  # what calibration has to find out
    metric = omma.metric("macro_f1")
    cases = {
        "OMMA, prior 1": (omma.OMMA("macro_f1", prior=1.0), eta),
        "Auto": (omma.Auto("macro_f1"), eta),
        "Auto, eta ** 1.5": (omma.Auto("macro_f1"), wrong),
    }
    print(f"\nmacro-F1, {n:,} rows, {LABELS} labels; loss against one row after another, in %")
    print("S", *cases, sep="\t")
    alone = {name: omma.replay(policy, p, y).value for name, (policy, p) in cases.items()}
    print("alone", *(f"{100 * value:.2f}" for value in alone.values()), sep="\t")
    for size in SIZES:
        lost = []
        for name, (policy, p) in cases.items():
            value = metric.score(y, merged_every(policy, p, y, size))
            lost.append(f"{100 * (alone[name] - value) / alone[name]:+.3f}")
        print(size, *lost, sep="\t", flush=True)


def merged_every(policy: Any, eta: Any, y: Any, size: int, workers: int = 2) -> Any:
    """Decisions where all rows between two merges are decided on one state."""
    state, made = policy.init(eta.shape[1]), np.empty(y.shape, dtype=np.int8)
    for start in range(0, len(eta), size):
        deltas = []
        for rows in np.array_split(np.arange(start, min(start + size, len(eta))), workers):
            part = Part(policy, handed_out(state))
            made[rows] = part.decide(eta[rows], y[rows])
            deltas.append(part.delta)
        state = merged(state, [one for one in deltas if one is not None])
    return made


def alone(eta: Any, y: Any, size: int) -> float:
    """Rows a CPU second of one process that merges as often; best of three."""
    policy = omma.OMMA("macro_f1", prior=1.0)
    (seconds,) = race(lambda: merged_every(policy, eta, y, size, workers=1), rounds=3)
    return len(eta) / seconds


def on_spark(folder: Path, n: int, size: int, cores: int) -> dict[str, Any]:
    """Rows a second of batches after the first two, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.spark", "--child", str(folder), str(cores)]
    started = time.perf_counter()
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    *seconds, cpu, batches = (float(one) for one in said.split())
    return {
        "first batch": seconds[0],
        "rows a second": size / float(np.median(seconds[WARM:])),
        "rows a CPU second": size * batches / cpu,
        "all": time.perf_counter() - started,
    }


def child(folder: Path, cores: int) -> None:
    """Run the files of a folder as a stream, one a batch; writes the seconds of each."""
    sys.path.insert(0, "tests")
    from spark_session import begin

    spark = begin(f"local[{cores}]", folder / f"spark-{cores}-{os.getpid()}")
    schema = "id long, eta binary, y binary"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    with tempfile.TemporaryDirectory() as room:
        query = omma.spark.stream(
            reader.parquet(str(folder / "in")),
            omma.OMMA("macro_f1", prior=1.0),
            eta="eta",
            y="y",
            id="id",
            checkpoint=f"{room}/checkpoint",
            sink=f"{room}/out",
            trigger={"availableNow": True},
        )
        while query.isActive and len(query.recentProgress) < WARM:
            time.sleep(0.05)
        before, at = cpu_seconds(), len(query.recentProgress)
        query.awaitTermination()
        done = [one for one in query.recentProgress if one["numInputRows"]]
        spent = cpu_seconds() - before
        print(*(one["batchDuration"] / 1000 for one in done), spent, len(done) - at)
    spark.stop()


def cpu_seconds() -> float:
    """What this process, the JVM and all workers have used: other programs do not matter to it."""
    from spark_listeners import with_children

    ticks = 0
    for pid in with_children(os.getpid()):
        parts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(parts[11]) + int(parts[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def write(folder: Path, eta: Any, y: Any, size: int) -> None:
    """Packed rows, a file a batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "in").mkdir(parents=True)
    for number, start in enumerate(range(0, len(eta), size)):
        rows = range(start, min(start + size, len(eta)))
        columns = {
            "id": pa.array(rows, pa.int64()),
            "eta": pa.array([eta[i].tobytes() for i in rows], pa.binary()),
            "y": pa.array([y[i].tobytes() for i in rows], pa.binary()),
        }
        path = folder / "in" / f"{number:03}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=max(1, size // 4))
        os.utime(path, (1_000_000 + 10 * number,) * 2)


def speed(batches: int, sizes: tuple[int, ...]) -> None:
    """Rows a second of one process and of Spark."""
    print(
        f"\nrows a second (rows a CPU second), {LABELS} labels; Spark also reads and writes Parquet"
    )
    print("S", "one process", "Spark, 1 core", "Spark, 2 cores", "first batch, s", sep="\t")
    for size in sizes:
        eta, y = rows_of(size * batches)
        with tempfile.TemporaryDirectory() as room:
            write(Path(room), eta, y, size)
            found = [on_spark(Path(room), len(eta), size, cores) for cores in (1, 2)]
        plain = alone(eta, y, size)
        speeds = [f"{one['rows a second']:,.0f} ({one['rows a CPU second']:,.0f})" for one in found]
        first = " / ".join(f"{one['first batch']:.1f}" for one in found)
        print(f"{size:,}", f"({plain:,.0f})", *speeds, first, sep="\t", flush=True)


def recovery() -> None:
    """Seconds from the death of a driver to the end of the batch that it had not finished."""
    sys.path.insert(0, "tests")
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        command = [sys.executable, "tests/spark_child.py", room, "after"]
        code = subprocess.run(command, capture_output=True, check=False).returncode
        assert code == -signal.SIGKILL, code
        died = time.perf_counter()
        from spark_child import start
        from spark_session import begin

        spark = begin(folder=room)
        up = time.perf_counter()
        start(spark, folder, folder / "out").awaitTermination()
        print(f"\nkilled after the state of batch 1: Spark up after {up - died:.1f} s, ", end="")
        print(f"batches 1 (skipped) and 2 done after {time.perf_counter() - died:.1f} s")
        spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--quality", action="store_true", help="only this, without Spark")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(Path(given.child[0]), int(given.child[1]))
        return
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    quality(20_000 if given.quick else 100_000)
    if given.quality:
        return
    speed(4 if given.quick else 8, (20_000,) if given.quick else (20_000, 100_000))
    recovery()
    print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

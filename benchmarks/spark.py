"""omma.spark: rows a second, and quality against the merge interval.

It needs omma-learn[spark] and Java 17; ``--only quality`` needs neither. Seconds on the processor
do not depend on what else runs; those on the wall do.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import omma
from benchmarks.measure import Table, output_of, processor_seconds, race
from omma.batch_step import WorkerPart, handed_out, merged

LABELS = 200
SIZES = (100, 1_000, 10_000, 20_000)
DAY = 1e9 / 86_400
TESTS = Path(__file__).parents[1] / "tests"
POLICY = omma.OMMA("macro_f1", prior=1.0)


def rows_of(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Calibrated probabilities of labels with a long tail, as in the table of merge intervals."""
    rng = np.random.default_rng(seed)
    means = np.geomspace(0.3, 0.004, LABELS)
    eta = rng.beta(means * 2, (1 - means) * 2, size=(n, LABELS)).astype(np.float32)
    return eta, (rng.random((n, LABELS)) < eta).astype(np.int8)


def quality(n: int) -> Table:
    """Macro-F1 of batches of S rows spread over two workers, against one row after another."""
    eta, y = rows_of(n)
    metric = omma.metric("macro_f1")
    cases = {
        "`OMMA`, prior 1": (POLICY, eta),
        "`Auto`": (omma.Auto("macro_f1"), eta),
        # What calibration has to find out.
        "`Auto`, probabilities ** 1.5": (omma.Auto("macro_f1"), eta**1.5),
    }
    alone = {name: omma.replay(policy, p, y).value for name, (policy, p) in cases.items()}
    values = {name: f"{100 * value:.2f}" for name, value in alone.items()}
    rows: list[dict[str, Any]] = [{"rows between merges": "value of 1", **values}]
    for size in SIZES:
        row = {"rows between merges": f"{size:,}"}
        for name, (policy, p) in cases.items():
            value = metric.score(y, merged_every(policy, p, y, size))
            row[name] = f"{100 * (alone[name] - value) / alone[name]:.2f}".replace("-", "−")
        rows.append(row)
    note = "loss against one row after another, in %"
    return Table(f"macro-F1, {n:,} rows, {LABELS} labels", note, rows)


def merged_every(policy: Any, eta: Any, y: Any, size: int, workers: int = 2) -> Any:
    """Decisions where all rows between two merges are decided on one state."""
    state, decisions = policy.init(eta.shape[1]), np.empty(y.shape, dtype=np.int8)
    for start in range(0, len(eta), size):
        deltas = []
        for rows in np.array_split(np.arange(start, min(start + size, len(eta))), workers):
            part = WorkerPart(policy, handed_out(state))
            decisions[rows] = part.decide(eta[rows], y[rows])
            deltas.append(part.delta)
        state = merged(state, [delta for delta in deltas if delta is not None])
    return decisions


def speed(sizes: dict[int, int]) -> Table:
    """Rows a second of one process and of Spark, and what a billion rows a day need of it."""
    note = "of the processor; Spark also reads and writes Parquet"
    table = Table(f"rows a second, {LABELS} labels", note)
    for size, batches in sizes.items():
        eta, y = rows_of(size)
        call = partial(merged_every, POLICY, eta, y, size, workers=1)
        (seconds,) = race(call, rounds=3)
        with tempfile.TemporaryDirectory() as room:
            write(Path(room) / "in", eta, y, batches)
            one_core, two_cores = (on_spark(Path(room), cores) for cores in (1, 2))
        both = (one_core, two_cores)
        rates = [f"{size / t['cpu']:,.0f} (wall {size / t['wall']:,.0f})" for t in both]
        table.rows.append(
            {
                "rows a batch": size,
                "one process": round(size / seconds),
                "Spark, 1 core": rates[0],
                "Spark, 2 cores": rates[1],
                "seconds a batch, 1 / 2 cores": " / ".join(f"{t['wall']:.2f}" for t in both),
                "first batch, s": " / ".join(f"{t['first']:.1f}" for t in both),
                "cores for 10⁹ rows a day": round(DAY / (size / two_cores["cpu"]), 2),
            }
        )
    return table


def on_spark(folder: Path, cores: int) -> dict[str, float]:
    """Seconds of a batch, on the wall (median) and on all processors (mean), of the second half.

    A JVM goes on compiling what it runs for many batches; what that takes is in the first half.
    """
    code = "import sys; from benchmarks import spark; spark.child(sys.argv[1], int(sys.argv[2]))"
    return dict(json.loads(output_of(code, folder, cores).splitlines()[-1]))


def child(path: str, cores: int) -> None:
    """Run the files of a folder as a stream, one a batch."""
    folder = Path(path)
    sys.path.insert(0, str(TESTS))
    from spark_session import begin

    room = folder / f"spark-{cores}"
    # What a JVM is in tests, which are over soon, it is not in a stream that goes on.
    spark = begin(f"local[{cores}]", room, **{"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"})
    schema = "id long, eta binary, y binary"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    options = {"checkpoint": room / "checkpoint", "sink": room / "out"}
    query = omma.spark.stream(
        reader.parquet(str(folder / "in")),
        POLICY,
        eta="eta",
        y="y",
        id="id",
        trigger={"availableNow": True},
        **options,
    )
    last = len(list((folder / "in").iterdir())) - 1
    while query.isActive and len(query.recentProgress) <= last // 2:
        time.sleep(0.05)
    before, at = cpu_seconds(), len(query.recentProgress)
    while query.isActive and query.recentProgress[-1]["batchId"] < last:
        time.sleep(0.05)
    spent = cpu_seconds() - before
    query.awaitTermination()
    batches = [batch for batch in query.recentProgress if batch["numInputRows"]]
    done = [batch["batchDuration"] / 1000 for batch in batches]
    wall, cpu = float(np.median(done[at:])), spent / (len(done) - at)
    print(json.dumps({"first": done[0], "wall": wall, "cpu": cpu}))
    spark.stop()


def cpu_seconds() -> float:
    """What this process, the JVM and all workers have used: other programs do not matter to it."""
    from spark_listeners import with_children

    seconds = 0.0
    for pid in with_children(os.getpid()):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended: its parent has its time
            seconds += processor_seconds(pid)
    return seconds


def write(folder: Path, eta: Any, y: Any, batches: int) -> None:
    """Packed rows in a file, and as many copies of it as there are to be batches."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    columns = {
        "id": pa.array(range(len(eta)), pa.int64()),
        "eta": pa.array([row.tobytes() for row in eta], pa.binary()),
        "y": pa.array([row.tobytes() for row in y], pa.binary()),
    }
    first = folder / "000.parquet"
    pq.write_table(pa.table(columns), first, row_group_size=max(1, len(eta) // 4))
    for number in range(1, batches):
        shutil.copy(first, folder / f"{number:03}.parquet")
    for number in range(batches):
        os.utime(folder / f"{number:03}.parquet", (1_000_000 + 10 * number,) * 2)


def spark(quick: bool = False, only: str | None = None) -> Iterator[Table]:
    """``only`` one of speed and quality."""
    parts: dict[str, Callable[[], Table]] = {
        "speed": lambda: speed({20_000: 8} if quick else {20_000: 40, 100_000: 16}),
        "quality": lambda: quality(20_000 if quick else 100_000),
    }
    for name, part in parts.items():
        if only in (None, name):
            load = f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
            table = part()
            table.note = f"{table.note}; {load}, after: {os.getloadavg()[0]:.1f}"
            yield table

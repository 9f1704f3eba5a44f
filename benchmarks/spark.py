"""omma.spark: rows a second, quality against the merge interval, and how long recovery takes.

python -m benchmarks spark [--quick] needs omma[spark] and Java 17; --only quality needs neither.
Tables are Markdown. Seconds on the processor do not depend on what else runs; those on the wall do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import omma
from benchmarks.measure import race
from omma.merging import Part, handed_out, merged

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


def line(*cells: Any) -> None:
    print("| " + " | ".join(str(one) for one in cells) + " |", flush=True)


def head(*cells: Any) -> None:
    line(*cells)
    line(*("---" for _ in cells))


def quality(n: int) -> None:
    """Macro-F1 of batches of S rows spread over two workers, against one row after another."""
    eta, y = rows_of(n)
    wrong = eta**1.5  # what calibration has to find out
    metric = omma.metric("macro_f1")
    cases = {
        "`OMMA`, prior 1": (POLICY, eta),
        "`Auto`": (omma.Auto("macro_f1"), eta),
        "`Auto`, probabilities ** 1.5": (omma.Auto("macro_f1"), wrong),
    }
    print(f"\nmacro-F1, {n:,} rows, {LABELS} labels; loss against one row after another, in %\n")
    head("rows between merges", *cases)
    alone = {name: omma.replay(policy, p, y).value for name, (policy, p) in cases.items()}
    line("value of 1", *(f"{100 * value:.2f}" for value in alone.values()))
    for size in SIZES:
        lost = []
        for name, (policy, p) in cases.items():
            value = metric.score(y, merged_every(policy, p, y, size))
            lost.append(f"{100 * (alone[name] - value) / alone[name]:.2f}".replace("-", "−"))
        line(f"{size:,}", *lost)


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
    (seconds,) = race(lambda: merged_every(POLICY, eta, y, size, workers=1), rounds=3)
    return len(eta) / seconds


def speed(sizes: dict[int, int]) -> None:
    """Rows a second of one process and of Spark, and what a billion rows a day need of it."""
    print(
        f"\nrows a second of the processor, {LABELS} labels; Spark also reads and writes Parquet\n"
    )
    head(
        "rows a batch",
        "one process",
        "Spark, 1 core",
        "Spark, 2 cores",
        "seconds a batch, 1 / 2 cores",
        "first batch, s",
        "cores for 10⁹ rows a day",
    )
    for size, batches in sizes.items():
        eta, y = rows_of(size)
        plain = alone(eta, y, size)
        with tempfile.TemporaryDirectory() as room:
            write(Path(room) / "in", eta, y, batches)
            one, two = (on_spark(Path(room), cores) for cores in (1, 2))
        needed = DAY / (size / two["cpu"])
        line(
            f"{size:,}",
            f"{plain:,.0f}",
            *(
                f"{size / found['cpu']:,.0f} (wall {size / found['wall']:,.0f})"
                for found in (one, two)
            ),
            f"{one['wall']:.2f} / {two['wall']:.2f}",
            f"{one['first']:.1f} / {two['first']:.1f}",
            f"{needed:.2f}",
        )


def on_spark(folder: Path, cores: int) -> dict[str, float]:
    """Seconds of a batch, on the wall (median) and on all processors (mean), of the second half.

    A JVM goes on compiling what it runs for many batches; what that takes is in the first half.
    """
    command = [sys.executable, "-m", "benchmarks", "spark", "--child", str(folder), str(cores)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    if said.returncode:
        raise RuntimeError(said.stderr[-3000:])
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


def child(folder: Path, cores: int) -> None:
    """Run the files of a folder as a stream, one a batch."""
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
    done = [one["batchDuration"] / 1000 for one in query.recentProgress if one["numInputRows"]]
    found = {
        "first": done[0],
        "wall": float(np.median(done[at:])),
        "cpu": spent / (len(done) - at),
    }
    print(json.dumps(found))
    spark.stop()


def cpu_seconds() -> float:
    """What this process, the JVM and all workers have used: other programs do not matter to it."""
    from spark_listeners import with_children

    ticks = 0
    for pid in with_children(os.getpid()):
        try:
            parts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):  # it ended: its parent has its time
            continue
        ticks += sum(int(one) for one in parts[11:15])  # with children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


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


def first_rows() -> None:
    """Seconds of a fresh worker for its first 10,000 rows, with and without machine code."""
    sys.path.insert(0, str(TESTS))
    from spark_worker import first_rows as fresh, prepare

    eta, y = rows_of(10_000)
    print("\nthe first 10,000 rows of a fresh worker, imports included, in seconds\n")
    head("policy", "machine code on disk", "of the processor", "on the wall")
    for policy in (POLICY, omma.Auto("macro_f1")):
        with tempfile.TemporaryDirectory() as room:
            prepare(f"{room}/work", policy, eta, y)
            for there in ("no", "yes"):
                wall, cpu = fresh(f"{room}/work", f"{room}/cache")
                line(f"`{type(policy).__name__}`", there, f"{cpu:.1f}", f"{wall:.1f}")


def recovery() -> None:
    """Seconds from a kill to the end of the batch that was not finished."""
    sys.path.insert(0, str(TESTS))
    print("\nafter a kill, in seconds on the wall; batches of 300 rows\n")
    head("killed", "batch that was hit", "batch after it", "a new driver is up after")
    with tempfile.TemporaryDirectory() as room:
        hit, after = durations(Path(room), "worker")
        line("a Python worker", f"{hit:.1f}", f"{after:.1f}", "")
    with tempfile.TemporaryDirectory() as room:
        hit, after = durations(Path(room), "executor")
        line("an executor of two", f"{hit:.1f}", f"{after:.1f}", "")
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room)
        code = run_child(folder, "before")
        assert code == -signal.SIGKILL, code
        died = time.perf_counter()
        code = run_child(folder, "resume")
        assert code == 0, (folder / "log").read_text()[-2000:]
        up, hit, after = json.loads((folder / "seconds").read_text())
        line("the driver", f"{hit:.1f}", f"{after:.1f}", f"{up:.1f}")
        print(f"\nall batches done {time.perf_counter() - died:.1f} s after the driver was killed")


def run_child(folder: Path, point: str) -> int:
    with (folder / "log").open("wb") as log:
        command = [sys.executable, str(TESTS / "spark_child.py"), str(folder), point]
        return subprocess.run(command, stdout=log, stderr=log, check=False).returncode


def durations(folder: Path, point: str) -> tuple[float, float]:
    code = run_child(folder, point)
    assert code == 0, (folder / "log").read_text()[-2000:]
    _, hit, after = json.loads((folder / "seconds").read_text())
    return hit, after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("first", "recovery", "speed", "quality"))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(Path(given.child[0]), int(given.child[1]))
        return
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    parts = {
        "first": first_rows,
        "recovery": recovery,
        "speed": lambda: speed({20_000: 8} if given.quick else {20_000: 40, 100_000: 16}),
        "quality": lambda: quality(20_000 if given.quick else 100_000),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            part()
    print(f"\nload after: {os.getloadavg()[0]:.1f}")

"""What a fresh worker does with its first rows: python spark_worker.py FILE.

FILE is the work as Spark sends it, pickled, beside rows in Arrow's format. Says how many seconds it
took on the wall and on the processor, imports included, from the start of the process.
"""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path


def main(path):
    import pyarrow as pa
    from pyspark import cloudpickle

    work = cloudpickle.loads(Path(path).read_bytes())
    with pa.ipc.open_file(f"{path}.arrow") as rows:
        *decided, last = work(iter([rows.get_batch(0)]))
    assert sum(one.num_rows for one in decided) == rows.get_batch(0).num_rows
    assert last.num_rows == 1


def prepare(path, policy, eta, y):
    """Write what a worker is given."""
    import pyarrow as pa
    from pyspark import cloudpickle

    from omma.batch_step import handed_out
    from omma.spark.columns import read_columns
    from omma.spark.work import decide_rows

    m = eta.shape[1]
    state = handed_out(policy.init(m))
    layout = read_columns("stream", "eta", "y", m)
    work = partial(decide_rows, policy, state, layout, ("id",))
    Path(path).write_bytes(cloudpickle.dumps(work))
    columns = {
        "id": pa.array(range(len(eta))),
        "eta": pa.array([row.tobytes() for row in eta], pa.binary()),
        "y": pa.array([row.tobytes() for row in y], pa.binary()),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    with pa.OSFile(f"{path}.arrow", "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def first_rows(path, cache):
    """Seconds that a fresh process needs, on the wall and on the processor."""

    started = time.perf_counter()
    said = subprocess.run(
        [sys.executable, __file__, str(path)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - started, float(said.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
    sys.stdout.write(str(time.process_time()))

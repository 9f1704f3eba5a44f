"""Streams of files for the tests of Spark, and the same run in one process."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import omma
from omma.batch_step import handed_out, merged


@dataclass
class Data:
    """Rows in batches, as arrays and as a schema that Spark knows them by."""

    eta: Any
    y: Any  # indicators, class ids; NaN rows are unknown
    schema: str
    columns: dict[str, Any]
    options: dict[str, Any]

    def table(self, rows):
        ids = pa.array(np.arange(rows.start, rows.stop))
        return pa.table({"id": ids, **{name: make(rows) for name, make in self.columns.items()}})


def lists(matrix, kind):
    """A matrix as an Arrow column of arrays; rows that begin with NaN are null."""
    rows = [None if np.isnan(row[0]) else row.tolist() for row in np.asarray(matrix, float)]
    return pa.array(rows, pa.list_(kind))


def dense(eta, y, kind="array<float>"):
    eta = np.asarray(eta, np.float32)
    pack = {
        "array<float>": lambda rows: lists(eta[rows], pa.float32()),
        "binary": lambda rows: pa.array([row.tobytes() for row in eta[rows]], pa.binary()),
        "float": lambda rows: pa.array(eta[rows, 0]),
    }
    if y.ndim == 1:
        known = ~np.isnan(y.astype(float))
        made = lambda rows: pa.array(y[rows].astype(float), mask=~known[rows]).cast(pa.int32())  # noqa: E731
        labels = "int"
    elif kind == "binary":
        made = lambda rows: pa.array([row.astype(np.uint8).tobytes() for row in y[rows]])  # noqa: E731
        labels = "binary"
    else:
        made = lambda rows: lists(y[rows], pa.int8())  # noqa: E731
        labels = "array<tinyint>"
    columns = {"eta": pack[kind], "y": made}
    return Data(eta, y, f"id long, eta {kind}, y {labels}", columns, {"eta": "eta"})


def thin(eta, y):
    """Probabilities below the middle are not stored."""
    eta = np.where(eta < np.median(eta), 0, eta).astype(np.float32)

    def ids(rows):
        return pa.array([np.flatnonzero(row).tolist() for row in eta[rows]], pa.list_(pa.int32()))

    def values(rows):
        return pa.array([row[row > 0].tolist() for row in eta[rows]], pa.list_(pa.float32()))

    def true(rows):
        found = [None if np.isnan(row[0]) else np.flatnonzero(row).tolist() for row in y[rows]]
        return pa.array(found, pa.list_(pa.int32()))

    schema = "id long, ids array<int>, p array<float>, y array<int>"
    options = {"eta": ("ids", "p"), "n_labels": eta.shape[1]}
    columns = {"ids": ids, "p": values, "y": true}
    return Data(sparse.csr_array(eta), y, schema, columns, options)


def write(data, folder, batches):
    """One file a batch, each with several row groups, in the order of their times."""
    folder.mkdir(parents=True)
    for number, rows in enumerate(batches):
        path = folder / f"{number:03}.parquet"
        pq.write_table(data.table(rows), path, row_group_size=max(1, (rows.stop - rows.start) // 3))
        os.utime(path, (1_000_000 + 10 * number,) * 2)


def batches_of(n, size):
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def read(spark, data, folder, files=1):
    """A stream of these files, which Spark cuts into two parts or more."""
    reader = spark.readStream.schema(data.schema).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder))


def replayed(policy, data, batches, state=None):
    """The state and the decisions of one process that merges as often: the textbook."""
    m = data.eta.shape[1]
    state = policy.init(m) if state is None else state
    made = []
    for rows in batches:
        eta, y = data.eta[rows], data.y[rows]
        flat = np.asarray(y, float).reshape(len(y), -1)
        known = ~np.isnan(flat[:, 0])
        predictions, _ = omma.step(policy, handed_out(state), eta)
        if policy.needs_labels:
            parts = [omma.step(policy, handed_out(state), eta[known], y[known])[1]]
        elif known.all():
            parts = [omma.step(policy, handed_out(state), eta, y)[1]]
        else:
            parts = [omma.step(policy, handed_out(state), eta, y.astype(float))[1]]
        state = merged(state, parts)
        made.append(predictions.toarray() if sparse.issparse(predictions) else predictions)
    return state, np.concatenate(made)


def decisions(folder):
    """The decisions in a sink, by id: each has exactly one."""
    table = pq.read_table(folder, partitioning=None).to_pydict()
    found = dict(zip(table["id"], table["prediction"], strict=True))
    assert len(found) == len(table["id"])
    return found


def as_ids(predictions):
    table = predictions.reshape(len(predictions), -1)
    return {i: np.flatnonzero(row).tolist() for i, row in enumerate(table)}

"""One state for each key, such as a tenant: each learns for itself, in one query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from omma.merging import Part, handed_out, merged
from omma.policies import LinearPolicy, Policy
from omma.spark.columns import Columns, check_there, label_ids, read_columns
from omma.spark.streaming import check_policy
from omma.spark.warm import compiled_once
from omma.spark.work import PREDICTION, packed, unpacked
from omma.state import State

KEPT = "state"


def stream_per_key(
    sdf: DataFrame,
    policy: Policy,
    *,
    key: str,
    eta: str | tuple[str, str],
    y: str | None = None,
    id: str,  # noqa: A002 — as learners call it
    n_labels: int,
) -> DataFrame:
    """Decide a stream of rows where each key has counts of its own, in Spark's own state store.

    The rows of a key in a micro-batch are decided on its state before it. Spark keeps the states in
    the checkpoint of whatever query the result is written by, and takes them back where a batch
    fails. It needs ``spark.sql.streaming.stateStore.providerClass`` to be RocksDB's.

    Parameters
    ----------
    sdf, policy, eta, y, n_labels
        As for ``stream``.
    key : str
        The column that says whose row it is.
    id : str
        The column that names a row.

    Returns
    -------
    DataFrame
        A stream of key, id and ``prediction``, an array of label ids: write it where you like.
    """
    linear = check_policy("stream_per_key", policy)
    columns = read_columns("stream_per_key", eta, y, n_labels)
    check_there("stream_per_key", sdf, [*columns.names, key, id])
    kept = [StructField(name, sdf.schema[name].dataType) for name in (key, id)]
    schema = StructType([*kept, StructField(PREDICTION, ArrayType(IntegerType()))])
    return (
        sdf.select(*dict.fromkeys((key, id, *columns.names)))
        .groupBy(key)
        .transformWithStateInPandas(PerKey(linear, columns, key, id), schema, "Append", "None")
    )


def load_states(spark: SparkSession, checkpoint: str | Path) -> dict[Any, State]:
    """The states of a query of ``stream_per_key``, by key.

    Parameters
    ----------
    spark : SparkSession
    checkpoint : str or Path
        Of the query that the result was written by.
    """
    reader = spark.read.format("statestore").option("stateVarName", KEPT)
    rows = reader.load(str(Path(checkpoint).absolute())).select("key", "value").collect()
    return {row["key"][0]: unpacked(bytes(row["value"][0])) for row in rows}


class PerKey(StatefulProcessor):  # type: ignore[misc]
    """Decides the rows of one key after another's, for ``transformWithStateInPandas``."""

    def __init__(self, policy: LinearPolicy, columns: Columns, key: str, id: str) -> None:  # noqa: A002
        self._policy, self._columns, self._key, self._id = policy, columns, key, id

    def init(self, handle: Any) -> None:
        self._kept = handle.getValueState(KEPT, "content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Decide the rows of a key on its state, and keep the state after them."""
        columns = self._columns
        assert columns.m is not None
        found = self._kept.get() if self._kept.exists() else None
        state = self._policy.init(columns.m) if found is None else unpacked(bytes(found[0]))
        part = Part(self._policy, handed_out(state))
        for frame in rows:
            batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
            with compiled_once(self._policy, columns):
                predictions = part.decide(*columns.read(batch))
            decided = frame[[self._key, self._id]].copy()
            decided[PREDICTION] = label_ids(predictions).to_pylist()
            yield decided
        if part.delta is not None:
            self._kept.update((packed(merged(state, [part.delta])),))

    def close(self) -> None:
        """Nothing to give back."""

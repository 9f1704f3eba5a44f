"""One state for each key, such as a tenant: one query, and each key learns by itself."""

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from omma._validate import shown
from omma.batch_step import WorkerPart, handed_out, merged
from omma.policies import Policy
from omma.spark.columns import Columns, check_there, label_ids, read_columns
from omma.spark.store import check_same, options_of
from omma.spark.streaming import check_policy, whole_path
from omma.spark.work import PREDICTION, packed, unpacked
from omma.state import State

STATE = "omma"  # the name of the state variable in the checkpoint
# transformWithStateInPandas works with this state store alone.
SETTING = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "RocksDBStateStoreProvider"


def stream_per_key(
    sdf: DataFrame,
    policy: Policy,
    *,
    key: str,
    eta: str | tuple[str, str],
    y: str | None = None,
    id: str,  # noqa: A002 — as learners call it
    n_labels: int | None = None,
) -> DataFrame:
    """Decide a stream of rows where each key has counts of its own, in Spark's own state store.

    The rows of a key in a micro-batch are decided on its state before it. Spark keeps states in the
    checkpoint of whatever query the result is written by, and takes them back where a batch fails,
    so that each row counts once; decisions are there once if the sink does that, as files do.

    Spark has this for RocksDB only: before it starts, set
    ``spark.sql.streaming.stateStore.providerClass`` to
    ``org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider``.

    Parameters
    ----------
    sdf, policy, eta, y
        As for ``stream``.
    key : str
        The column that says whose row it is.
    id : str
        The column that names a row.
    n_labels : int, optional
        How many labels there are; by default the first row of a key tells how many it has.

    Returns
    -------
    DataFrame
        A stream of key, id and ``prediction``, an array of label ids: write it where you like.

    Examples
    --------
    >>> from pathlib import Path
    >>> import omma
    >>> rows, labels = omma.datasets.long_tail(n=600, m=5, seed=0)
    >>> table = [(i, i % 2, *pair) for i, pair in enumerate(zip(rows.tolist(), labels.tolist()))]
    >>> schema = "id long, tenant int, eta array<double>, y array<int>"
    >>> folder = Path.cwd()
    >>> spark.createDataFrame(table, schema).write.parquet(f"{folder}/rows")
    >>> decided = omma.spark.stream_per_key(
    ...     spark.readStream.schema(schema).parquet(f"{folder}/rows"),
    ...     omma.OMMA("macro_f1", prior=1.0), key="tenant", eta="eta", y="y", id="id",
    ... )
    >>> writer = decided.writeStream.format("parquet").option("path", f"{folder}/decisions")
    >>> writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    >>> writer.trigger(availableNow=True).start().awaitTermination()
    >>> omma.spark.load_states(spark, folder / "checkpoint")
    {0: <State of 5 labels, 300 rows>, 1: <State of 5 labels, 300 rows>}
    """
    check_policy("stream_per_key", policy)
    columns = read_columns("stream_per_key", eta, y, n_labels)
    check_there("stream_per_key", sdf, [*columns.names, key, id])
    if not sdf.isStreaming:
        raise ValueError("sdf of stream_per_key must be a stream, as of spark.readStream")
    check_state_store(sdf.sparkSession)
    names = [StructField(name, sdf.schema[name].dataType) for name in (key, id)]
    schema = StructType([*names, StructField(PREDICTION, ArrayType(IntegerType()))])
    return (
        sdf.select(*dict.fromkeys((key, id, *columns.names)))
        .groupBy(key)
        .transformWithStateInPandas(PerKey(policy, columns, key, id), schema, "Append", "None")
    )


def load_states(spark: SparkSession, checkpoint: str | Path) -> dict[Any, State]:
    """The states of a query of ``stream_per_key``, by key.

    Parameters
    ----------
    spark : SparkSession
    checkpoint : str or Path
        Of the query that the result was written by.

    Returns
    -------
    dict from key to State

    Raises
    ------
    ValueError
        Where it is the checkpoint of another query.

    Examples
    --------
    ``policy.rule(omma.spark.load_states(spark, checkpoint)["acme"])`` is what that key has learned.
    """
    place = whole_path("checkpoint", checkpoint, remote=False)
    reader = spark.read.format("statestore").option("stateVarName", STATE)
    try:
        rows = reader.load(place).select("key", "value.content").collect()
    except PySparkException as error:
        raise ValueError(
            "checkpoint of load_states must be that of a query of stream_per_key, with no space in "
            f"its path, got {str(checkpoint)!r}: {error.getCondition()}"
        ) from error
    return {row["key"][0]: unpacked(bytes(row["content"])) for row in rows}


def check_state_store(spark: SparkSession) -> None:
    """Refuse a session that Spark itself would refuse later, with a long message."""
    provider = str(spark.conf.get(SETTING))
    if not provider.endswith(ROCKS):
        raise ValueError(
            f"stream_per_key needs the state store RocksDB: set {SETTING} to "
            f"org.apache.spark.sql.execution.streaming.state.{ROCKS}, got {provider}"
        )
    # PySpark needs protobuf for its state store, and does not install it.
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise ImportError(
            "stream_per_key needs protobuf, which is not installed: pip install 'omma-learn[spark]'"
        )


class PerKey(StatefulProcessor):  # type: ignore[misc]
    """Decides rows key by key, for ``transformWithStateInPandas``."""

    def __init__(self, policy: Policy, columns: Columns, key: str, id: str) -> None:  # noqa: A002
        self._policy, self._columns, self._key, self._id = policy, columns, key, id
        self._options = options_of(policy)

    def init(self, handle: Any) -> None:
        """Have Spark store a state for each key."""
        self._stored = handle.getValueState(STATE, "policy string, content binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Decide the rows of a key on its state, and store the state after them."""
        state, part = self._before(key), None
        for frame in rows:
            batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
            if state is None:  # the first row of the key tells the number of labels
                state = self._policy.init(self._columns.m or self._columns.first_width(batch))
            if part is None:  # Spark hands the rows of a key over in several frames
                part = WorkerPart(self._policy, handed_out(state))
            columns = replace(self._columns, m=state.m)
            predictions = part.decide(*columns.read(batch))
            decided = frame[[self._key, self._id]].copy()
            decided[PREDICTION] = label_ids(predictions).to_pylist()
            yield decided
        if state is not None and part is not None and part.delta is not None:
            content = packed(merged(state, [part.delta]))
            self._stored.update((json.dumps(self._options), content))

    def _before(self, key: Any) -> State | None:
        """The state of a key; None where it has none yet."""
        stored = self._stored.get() if self._stored.exists() else None
        if stored is None:
            return None
        options, content = stored
        # A query may be restarted with other options.
        check_same(f"the key {shown(key[0])}", json.loads(options), self._options)
        return unpacked(bytes(content))

    def close(self) -> None:
        """Nothing to give back."""

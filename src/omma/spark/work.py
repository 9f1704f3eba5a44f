"""What workers do: decide the rows of a partition on one state, and return what they add to it."""

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omma import npz
from omma.batch_step import WorkerPart, settled
from omma.policies import Policy
from omma.rule import Rule
from omma.spark.columns import Columns, indicators, label_ids
from omma.state import State

PREDICTION, DELTA = "prediction", "delta"  # columns that workers add

# Functions for ``mapInArrow``; the arguments before ``batches`` are the same for all workers.


def decide_rows(
    policy: Policy,
    state: State,
    columns: Columns,
    keep: tuple[str, ...],
    batches: Iterator[Any],
) -> Iterator[Any]:
    """Decisions, batch by batch, and a last row with what all rows add to the state.

    All rows are decided on one state. Decisions come with the columns to ``keep``.
    """
    part = WorkerPart(policy, state)
    rows: Any = None
    for batch in batches:
        if not batch.num_rows:
            continue
        predictions = part.decide(*columns.read(batch))
        decided = {name: batch.column(name) for name in keep}
        decided[PREDICTION] = label_ids(predictions)
        decided[DELTA] = pa.nulls(batch.num_rows, pa.binary())
        rows = pa.RecordBatch.from_pydict(decided)
        yield rows
    if part.delta is not None:
        yield _delta_row(part.delta, rows.schema)


def _delta_row(delta: State, schema: Any) -> Any:
    """One row with what was counted; its other columns are null."""
    return pa.RecordBatch.from_pylist([{DELTA: packed(delta)}], schema=schema)


def count_late(
    policy: Policy, state: State, columns: Columns, batches: Iterator[Any]
) -> Iterator[Any]:
    """One row with what late labels add to the present state, given the earlier decisions."""
    total = None
    for batch in batches:
        if not batch.num_rows:
            continue
        eta, y, _ = columns.read(batch)
        decided = indicators(batch.column(PREDICTION), eta)
        delta = settled(policy, state, eta, y, decided)
        total = delta if total is None else total + delta
    if total is not None:
        yield _delta_row(total, pa.schema([(DELTA, pa.binary())]))


def decide_by_rule(
    rule: Rule, columns: Columns, name: str, batches: Iterator[Any]
) -> Iterator[Any]:
    """The same columns, and decisions by a rule as another one; nothing is counted."""
    for batch in batches:
        eta, _, _ = columns.read(batch)
        ids = label_ids(rule.predict(eta))
        names = [*batch.schema.names, name]
        yield pa.RecordBatch.from_arrays([*batch.columns, ids], names)


def packed(state: State) -> bytes:
    """A state as bytes, for the way to the driver."""
    return npz.to_bytes(state.arrays())


def unpacked(content: bytes) -> State:
    """The state that ``packed`` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return State.from_arrays({name: archive[name] for name in archive.files})

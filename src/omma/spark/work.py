"""What workers do: decide the rows of a partition on one state, and say what they add to it."""

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omma import npz
from omma.batch_step import WorkerPart, settled
from omma.policies import Policy
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.spark.columns import Columns, indicators, label_ids
from omma.state import State

if sys.platform != "win32":
    import fcntl

_DONE: set[Any] = set()  # kinds of batches that this process has run
PREDICTION, DELTA = "prediction", "delta"  # columns that workers add
DELTA_ALONE = pa.schema([(DELTA, pa.binary())])


@contextmanager
def compiled_once(policy: Any, columns: Columns) -> Iterator[None]:
    """Let one process of a host at a time run its first batch of a kind.

    The first of them may compile for seconds, and leaves machine code on the disk that the others
    read in a fraction of one. Later batches of a process do not wait for anything.
    """
    kind = (repr(policy), columns.eta, columns.y is None)
    if kind in _DONE or sys.platform == "win32":
        yield
        return
    os.environ.setdefault("OMMA_QUIET", "1")  # the log of a worker is nobody's terminal
    place = Path(tempfile.gettempdir()) / f"omma-compiling-{os.getuid()}"
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # freed with the file, or with the process
        yield
    finally:
        os.close(handle)
    _DONE.add(kind)


# Functions for ``mapInArrow``; what comes before ``batches`` is the same for all workers.


def decide_rows(
    policy: Policy,
    arrays: dict[str, Any],
    columns: Columns,
    keep: tuple[str, ...] | None,
    batches: Iterator[Any],
) -> Iterator[Any]:
    """Decisions, batch by batch, and one last row with what all of them add.

    ``arrays`` are those of the state that all rows are decided on. Columns to ``keep`` go with each
    decision; where it is None, only what is counted comes back.
    """
    part = WorkerPart(policy, State.from_arrays(arrays))
    schema = DELTA_ALONE
    for batch in batches:
        if not batch.num_rows:
            continue
        with compiled_once(policy, columns):
            predictions = part.decide(*columns.read(batch))
        if keep is not None:
            decided = {name: batch.column(name) for name in keep}
            decided[PREDICTION] = label_ids(predictions)
            decided[DELTA] = pa.nulls(batch.num_rows, pa.binary())
            rows = pa.RecordBatch.from_pydict(decided)
            schema = rows.schema
            yield rows
    if part.delta is not None:
        yield _delta_row(part.delta, schema)


def _delta_row(delta: State, schema: Any) -> Any:
    """One row with what was counted, of which all else is null."""
    return pa.RecordBatch.from_pylist([{DELTA: packed(delta)}], schema=schema)


def count_late(
    policy: Policy, arrays: dict[str, Any], columns: Columns, batches: Iterator[Any]
) -> Iterator[Any]:
    """One row with what labels add to the present state, by the decisions that were made before."""
    state, total = State.from_arrays(arrays), None
    for batch in batches:
        if not batch.num_rows:
            continue
        eta, y, _ = columns.read(batch)
        decided = indicators(batch.column(PREDICTION), eta)
        with compiled_once(policy, columns):
            delta = settled(policy, state, eta, y, decided)
        total = delta if total is None else total + delta
    if total is not None:
        yield _delta_row(total, DELTA_ALONE)


def decide_by_rule(
    rule: Rule, columns: Columns, name: str, batches: Iterator[Any]
) -> Iterator[Any]:
    """The columns that came, and decisions by a rule under a name; nothing is counted."""
    for batch in batches:
        values = Batch.read(columns.owner, columns.read(batch)[0])
        ids = label_ids(rule.predict(values.check(columns.owner).values))
        names = [*batch.schema.names, name]
        yield pa.RecordBatch.from_arrays([*batch.columns, ids], names)


def packed(state: State) -> bytes:
    """A state on its way to the driver."""
    return npz.to_bytes(state.arrays())


def unpacked(content: bytes) -> State:
    """The state that ``packed`` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return State.from_arrays({name: archive[name] for name in archive.files})

"""What workers do: decide the rows of a partition on one state, and say what they add to it."""

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

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


@dataclass(frozen=True)
class Decide:
    """Decides partitions and counts them, for ``mapInArrow``.

    Columns to ``keep`` go with each decision; where it is None, only what is counted comes back.
    """

    policy: Policy
    arrays: dict[str, Any]  # of the state that all rows are decided on
    columns: Columns
    keep: tuple[str, ...] | None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Decisions, batch by batch, and one last row with what all of them add."""
        part, schema = WorkerPart(self.policy, State.from_arrays(self.arrays)), None
        for batch in batches:
            if not batch.num_rows:
                continue
            schema = batch.schema
            with compiled_once(self.policy, self.columns):
                predictions = part.decide(*self.columns.read(batch))
            if self.keep is not None:
                decided = {name: batch.column(name) for name in self.keep}
                decided[PREDICTION] = label_ids(predictions)
                decided[DELTA] = pa.nulls(batch.num_rows, pa.binary())
                yield pa.RecordBatch.from_pydict(decided)
        if part.delta is not None and schema is not None:
            last = {name: pa.nulls(1, schema.field(name).type) for name in self.keep or ()}
            if self.keep is not None:
                last[PREDICTION] = pa.nulls(1, pa.list_(pa.int32()))
            last[DELTA] = pa.array([packed(part.delta)], pa.binary())
            yield pa.RecordBatch.from_pydict(last)


@dataclass(frozen=True)
class CountLate:
    """Counts labels with the decisions that were made before, for ``mapInArrow``."""

    policy: Policy
    arrays: dict[str, Any]  # of the present state
    columns: Columns

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One row with what all labels add."""
        state, total = State.from_arrays(self.arrays), None
        for batch in batches:
            if not batch.num_rows:
                continue
            eta, y, _ = self.columns.read(batch)
            decided = indicators(batch.column(PREDICTION), eta)
            with compiled_once(self.policy, self.columns):
                delta = settled(self.policy, state, eta, y, decided)
            total = delta if total is None else total + delta
        if total is not None:
            yield pa.RecordBatch.from_pydict({DELTA: pa.array([packed(total)], pa.binary())})


@dataclass(frozen=True)
class ByRule:
    """Decides partitions by a rule, for ``mapInArrow``; nothing is counted."""

    rule: Rule
    columns: Columns
    name: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The columns that came, and the decisions."""
        for batch in batches:
            values = Batch.read(self.columns.owner, self.columns.read(batch).eta)
            ids = label_ids(self.rule.predict(values.check(self.columns.owner).values))
            names = [*batch.schema.names, self.name]
            yield pa.RecordBatch.from_arrays([*batch.columns, ids], names)


def packed(state: State) -> bytes:
    """A state on its way to the driver."""
    room = io.BytesIO()
    arrays: dict[str, Any] = state.arrays()
    np.savez(room, **arrays)
    return room.getvalue()


def unpacked(content: bytes) -> State:
    """The state that ``packed`` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return State.from_arrays({name: archive[name] for name in archive.files})

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

from omma.merging import Part
from omma.policies import Policy
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.spark.columns import Columns, label_ids
from omma.state import State

if sys.platform != "win32":
    import fcntl

_DONE: set[Any] = set()
PREDICTION, DELTA = "prediction", "delta"


@contextmanager
def compiled_once(policy: Any, columns: Columns) -> Iterator[None]:
    """Let one process of a host at a time run its first batch of a kind.

    The first of them may compile for seconds, and leaves machine code on the disk that the others
    read in a fraction of one. Later batches of a process do not wait for anything.
    """
    what = (repr(policy), columns.eta, columns.y is None)
    if what in _DONE or sys.platform == "win32":
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
    _DONE.add(what)


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
        part, kinds = Part(self.policy, State.from_arrays(self.arrays)), None
        for batch in batches:
            if not batch.num_rows:
                continue
            with compiled_once(self.policy, self.columns):
                predictions = part.decide(*self.columns.read(batch))
            kinds = [batch.schema.field(name).type for name in self.keep or ()]
            if self.keep is not None:
                kept = [batch.column(name) for name in self.keep]
                found = label_ids(predictions)
                missing = pa.nulls(len(found), pa.binary())
                yield self._batch([*kept, found, missing])
        if part.delta is not None and kinds is not None:
            nothing = [pa.nulls(1, kind) for kind in kinds]
            nothing += [] if self.keep is None else [pa.nulls(1, label_ids(np.zeros((1, 1))).type)]
            yield self._batch([*nothing, pa.array([packed(part.delta)], pa.binary())])

    def _batch(self, parts: list[Any]) -> Any:
        names = [DELTA] if self.keep is None else [*self.keep, PREDICTION, DELTA]
        return pa.RecordBatch.from_arrays(parts, names)


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
            found = label_ids(self.rule.predict(values.check(self.columns.owner).values))
            names = [*batch.schema.names, self.name]
            yield pa.RecordBatch.from_arrays([*batch.columns, found], names)


def packed(state: State) -> bytes:
    """A state on its way to the driver."""
    room = io.BytesIO()
    arrays: dict[str, Any] = state.arrays()
    np.savez(room, **arrays)
    return room.getvalue()


def unpacked(content: bytes) -> State:
    """What ``packed`` packed."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return State.from_arrays({name: archive[name] for name in archive.files})

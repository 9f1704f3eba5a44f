"""One batch after the other: decided on the state before it, and counted once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StructField, StructType

from omma._validate import shown
from omma.merging import handed_out, merged
from omma.policies import Policy
from omma.spark.columns import Columns
from omma.spark.store import Saved, Store, TornError, check_same, hold, is_held, restored
from omma.spark.work import DELTA, PREDICTION, Decide, unpacked
from omma.state import State

Function = Callable[[DataFrame, int], None]


@dataclass(frozen=True)
class Runner:
    """Runs one batch after the other, for ``foreachBatch``.

    Nothing is remembered in it: under Spark Connect it is a copy of itself, elsewhere.
    """

    policy: Policy
    columns: Columns
    store: Store
    sink: str | Function | None
    id: str | None

    def check(self) -> None:
        """Refuse a checkpoint that was made for something else."""
        there = self.store.batches()
        saved = self.store.read(there[-1]) if there else None
        if saved is not None:
            self._check(saved)

    def _check(self, saved: Saved) -> None:
        check_same(self.store.checkpoint, saved, self.policy, self.columns.m)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Read the state before, decide, write decisions, write the state after: in this order."""
        if not is_held(self.store):  # the process that runs batches is not that which began
            hold(self.store)
        if self._is_done(number):
            return
        state, m, more = self._before(batch, number)
        after = None
        if state is not None:
            runner = replace(self, columns=replace(self.columns, m=m))
            deltas, more = runner.decide(batch, state, number, more)
            after = merged(state, deltas)
        self.store.write(Saved(number, self.policy.to_json(), m, after, more))
        self.clean(more)

    def _is_done(self, number: int) -> bool:
        try:
            found = self.store.read(number)
        except TornError:  # its batch did not end: it is run again, and writes it anew
            return False
        if found is not None:
            self._check(found)
        return found is not None

    def clean(self, more: dict[str, Any]) -> None:
        """Remove what a batch has left that is whole: nothing."""

    def _before(
        self, batch: DataFrame, number: int
    ) -> tuple[State | None, int | None, dict[str, Any]]:
        """The state that a batch is decided on, and the number of labels; None with no row yet."""
        saved = self.store.read(number - 1) if number else None
        if number and saved is None:
            raise ValueError(
                f"{self.store.checkpoint} must have the state of batch {number - 1}, which batch "
                f"{number} is decided on, got {shown(self.store.batches())}"
            )
        if saved is not None:
            self._check(saved)
            state = restored(saved, self.policy)
            if state is not None:
                return state, saved.m, saved.more
        m = self.columns.m or labels_in(batch, self.columns.eta)
        return (None if m is None else self.policy.init(m)), m, {}

    def decide(
        self, batch: DataFrame, state: State, number: int, more: dict[str, Any]
    ) -> tuple[list[State], dict[str, Any]]:
        """What the parts of a batch add; its decisions are in the sink when this returns."""
        keep = () if self.id is None else (self.id,)
        wanted = list(dict.fromkeys((*keep, *self.columns.names)))
        frame = batch.select(*(functions.col(f"`{one}`") for one in wanted))
        work = Decide(
            self.policy,
            handed_out(state).arrays(),
            self.columns,
            None if self.sink is None else keep,
        )
        if self.sink is None:
            return collected(frame.mapInArrow(work, schema_of(batch, None))), more
        decided = frame.mapInArrow(work, schema_of(batch, keep)).persist()
        try:
            self.write(decided.where(functions.col(DELTA).isNull()).drop(DELTA), number)
            deltas = decided.where(functions.col(DELTA).isNotNull()).select(DELTA)
            return collected(deltas), more
        finally:
            decided.unpersist()

    def write(self, rows: DataFrame, number: int) -> None:
        """Hand decisions to the sink; what it had of this batch is replaced."""
        if callable(self.sink):
            self.sink(rows, number)
        else:
            rows.write.mode("overwrite").parquet(f"{self.sink}/batch={number}")


def collected(deltas: DataFrame) -> list[State]:
    """What workers counted, in the order of partitions."""
    return [unpacked(bytes(row[0])) for row in deltas.collect()]


def schema_of(batch: DataFrame, keep: tuple[str, ...] | None) -> StructType:
    """What comes back from workers: columns kept, decisions and counts, or counts alone."""
    delta = StructField(DELTA, BinaryType())
    if keep is None:
        return StructType([delta])
    kept = [StructField(name, batch.schema[name].dataType) for name in keep]
    return StructType([*kept, StructField(PREDICTION, ArrayType(IntegerType())), delta])


def labels_in(batch: DataFrame, eta: str | tuple[str, str]) -> int | None:
    """How many labels the first row has; None where there is no row."""
    assert isinstance(eta, str)
    kind, column = batch.schema[eta].dataType, functions.col(f"`{eta}`")
    if isinstance(kind, ArrayType):
        size = functions.size(column)
    elif isinstance(kind, BinaryType):
        size = functions.length(column) / 4
    else:
        size = functions.lit(1)
    first = batch.where(column.isNotNull()).select(size.cast("int")).first()
    return None if first is None or first[0] < 1 else int(first[0])

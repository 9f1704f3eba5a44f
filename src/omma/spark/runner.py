"""One batch after the other: decided on the state before it, and counted once.

Labels may come later, in a stream of their own, and are joined by id to what was decided before.
One query reads both streams. What was decided waits in the checkpoint, by the number of its batch,
with its probabilities; a batch of labels is joined to all that waits, and counted with the decision
that was made then. Which batches still wait is part of the state, so that all of it is committed at
once, and what a failed batch has written is written again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    StructField,
    StructType,
)

from omma._validate import shown
from omma.merging import handed_out, merged, settled
from omma.policies import Policy
from omma.spark.columns import Columns, check_there, indicators
from omma.spark.store import Saved, Store, TornError, check_same, hold, is_held, restored
from omma.spark.work import DELTA, PREDICTION, Decide, compiled_once, packed, unpacked
from omma.state import State

Function = Callable[[DataFrame, int], None]
LATE = "omma_label"  # which of the two streams a row is from


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


@dataclass(frozen=True)
class LateRunner(Runner):
    """Runs batches of rows and of labels, which were ``united``."""

    time: str = ""  # the column of event times of rows
    patience: float = 0.0  # seconds that a decision waits, by these times

    def decide(
        self, batch: DataFrame, state: State, number: int, more: dict[str, Any]
    ) -> tuple[list[State], dict[str, Any]]:
        """What rows add without labels, and what labels add; and which batches wait after it."""
        assert self.id is not None
        waiting = {int(one): latest for one, latest in more.get("waiting", {}).items()}
        deltas, waiting[number] = self._decide_rows(batch, state, number)
        latest = max(waiting.values())
        deltas += self._count_labels(batch, state, number, sorted(waiting))
        # What is too old now was counted once more: a watermark moves between batches.
        waiting = {one: t for one, t in waiting.items() if t >= latest - self.patience}
        return deltas, {"waiting": waiting}

    def _decide_rows(
        self, batch: DataFrame, state: State, number: int
    ) -> tuple[list[State], float]:
        rows, columns = batch.where(~functions.col(LATE)), self.columns
        keep = (str(self.id), *self.eta_columns, self.time)
        work = Decide(self.policy, handed_out(state).arrays(), replace(columns, y=None), keep)
        decided = rows.select(*keep).mapInArrow(work, schema_of(batch, keep)).persist()
        try:
            some = decided.where(functions.col(DELTA).isNull()).drop(DELTA)
            some.write.mode("overwrite").parquet(self._place("waiting", number))
            if self.sink is not None:
                self.write(some.select(str(self.id), PREDICTION), number)
            deltas = collected(decided.where(functions.col(DELTA).isNotNull()).select(DELTA))
            latest = some.agg(functions.max(functions.col(self.time).cast("double"))).first()
        finally:
            decided.unpersist()
        found = None if latest is None else latest[0]
        return deltas, float("-inf") if found is None else float(found)

    def _count_labels(
        self, batch: DataFrame, state: State, number: int, waiting: list[int]
    ) -> list[State]:
        name, y = str(self.id), str(self.columns.y)
        spark = batch.sparkSession
        labels = batch.where(functions.col(LATE)).select(name, y)
        labels = labels.where(functions.col(y).isNotNull()).dropDuplicates([name])
        rows = spark.read.parquet(*(self._place("waiting", one) for one in waiting))
        found = rows.join(labels, name)
        before = [self._place("counted", one) for one in waiting if one != number]
        if before:
            found = found.join(spark.read.parquet(*before), name, "left_anti")
        work = CountLate(self.policy, handed_out(state).arrays(), self.columns)
        found = found.persist()
        try:
            found.select(name).write.mode("overwrite").parquet(self._place("counted", number))
            return collected(
                found.select(*self.eta_columns, y, PREDICTION).mapInArrow(
                    work, schema_of(batch, None)
                )
            )
        finally:
            found.unpersist()

    @property
    def eta_columns(self) -> list[str]:
        """Those of probabilities."""
        return replace(self.columns, y=None).names

    def _place(self, what: str, number: int) -> str:
        return f"{self.store.checkpoint}/omma/{what}/batch={number}"

    def clean(self, more: dict[str, Any]) -> None:
        """Remove what waits no longer, once that is committed."""
        for what in ("waiting", "counted"):
            self.store.remove_folders(what, {f"batch={one}" for one in more["waiting"]})


@dataclass(frozen=True)
class CountLate:
    """Counts labels with the decisions that were made before, for ``mapInArrow``."""

    policy: Policy
    arrays: dict[str, Any]
    columns: Columns

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """One row with what all labels add."""
        state, total = State.from_arrays(self.arrays), None
        for batch in batches:
            if not batch.num_rows:
                continue
            eta, y, _ = self.columns.read(batch)
            chosen = indicators(batch.column(PREDICTION), eta)
            with compiled_once(self.policy, self.columns):
                delta = settled(self.policy, state, eta, y, chosen)
            total = delta if total is None else total + delta
        if total is not None:
            yield pa.RecordBatch.from_arrays([pa.array([packed(total)], pa.binary())], [DELTA])


def united(rows: DataFrame, labels: DataFrame, columns: Columns, name: str, time: str) -> DataFrame:
    """One stream of rows and of their labels."""
    check_there("stream", rows, [name, time, *replace(columns, y=None).names])
    check_there("stream", labels, [name, str(columns.y)])
    flag = functions.lit(False).cast(BooleanType())
    first = rows.select(name, time, *replace(columns, y=None).names).withColumn(LATE, flag)
    second = labels.select(name, str(columns.y)).withColumn(LATE, ~flag)
    return first.unionByName(second, allowMissingColumns=True)


def late_runner(
    policy: Policy,
    columns: Columns,
    store: Store,
    sink: Any,
    name: str | None,
    time: str | None,
    watermark: timedelta | None,
) -> LateRunner:
    """Read what is said of labels that come later."""
    if name is None or columns.y is None:
        raise ValueError("id and y of stream must name columns of labels, where these are given")
    if time is None or not isinstance(watermark, timedelta):
        raise ValueError(
            "time and watermark of stream must be given with labels: the column of event times "
            "of rows, and the timedelta that a decision waits for its labels"
        )
    if policy.limits:
        raise ValueError(
            "policy of stream must have no limits where labels come later: their prices follow "
            "every row as it comes"
        )
    patience = watermark.total_seconds()
    return LateRunner(policy, columns, store, sink, name, time, patience)

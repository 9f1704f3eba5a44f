"""Batches one after another: each is decided on the state before it, and counted once.

Labels may come later, in a stream of their own, and are joined by id to earlier decisions. One
query reads both streams. The decisions of a batch wait in the checkpoint, in a folder with the
number of the batch, with their probabilities. A batch of labels is joined to all of them, and
counted with the decisions made then. The list of waiting batches is part of the state, so all of it
is committed at once, and what a failed batch has written is overwritten.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StructField, StructType

from omma._validate import shown
from omma.batch_step import handed_out, merged
from omma.policies import Policy
from omma.spark.columns import Columns, check_there
from omma.spark.store import (
    Saved,
    Store,
    TornError,
    check_same,
    hold,
    is_held,
    options_of,
    restored,
)
from omma.spark.work import DELTA, PREDICTION, count_late, decide_rows, unpacked
from omma.state import State

Function = Callable[[DataFrame, int], None]
Waiting = dict[int, float]  # the latest event time of each batch whose labels are to come
LATE = "omma_label"  # a column that is true for rows of the stream of labels


@dataclass(frozen=True)
class Runner:
    """Runs batches one after another, for ``foreachBatch``.

    It has no memory of its own: under Spark Connect, Spark runs a copy in another process.
    """

    policy: Policy
    columns: Columns
    store: Store
    sink: str | Function | None
    id: str | None

    def check(self) -> None:
        """Refuse a checkpoint that was made for something else."""
        # The last state is enough: each batch has checked the one before it.
        for number in self.store.batches()[-1:]:
            self._saved(number)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Read the state before, decide, write decisions, write the state after: in this order."""
        if not is_held(self.store):  # under Spark Connect, another process started the query
            hold(self.store)
        if self._is_done(number):
            return
        state, waiting = self._before(batch, number)
        after = None
        if state is not None:
            runner = replace(self, columns=replace(self.columns, m=state.m))
            deltas, waiting = runner.decide(batch, state, number, waiting)
            after = merged(state, deltas)
        self.store.write(Saved(number, options_of(self.policy), after, waiting))

    def _saved(self, number: int) -> Saved | None:
        """What was saved after a batch, by the same policy with as many labels."""
        saved = self.store.read(number)
        if saved is None:
            return None
        checkpoint, m = self.store.checkpoint, self.columns.m
        check_same(checkpoint, saved.policy, options_of(self.policy))
        if m is not None and saved.state is not None and m != saved.state.m:
            raise ValueError(
                f"{checkpoint} has counts of {saved.state.m} labels, and {m} were asked for; use "
                "another checkpoint"
            )
        return saved

    def _is_done(self, number: int) -> bool:
        try:
            return self._saved(number) is not None
        except TornError:  # the batch did not end: it is run again, and writes the file again
            return False

    def _before(self, batch: DataFrame, number: int) -> tuple[State | None, Waiting]:
        """The state that decides a batch, None before the first row; and the batches that wait."""
        saved = self._saved(number - 1) if number else None
        if number and saved is None:
            raise ValueError(
                f"{self.store.checkpoint} must have the state of batch {number - 1}, which batch "
                f"{number} is decided on, got {shown(self.store.batches())}"
            )
        state = None if saved is None else restored(saved, self.policy)
        if saved is not None and state is not None:
            return state, saved.waiting
        m = self.columns.m or labels_in(batch, self.columns)
        return None if m is None else self.policy.init(m), {}

    def decide(
        self, batch: DataFrame, state: State, number: int, waiting: Waiting
    ) -> tuple[list[State], Waiting]:
        """What the parts of a batch add to the state; before returning, write its decisions."""
        keep = () if self.id is None else (self.id,)
        names = dict.fromkeys((*keep, *self.columns.names))
        # Quoted: a dot in a name would mean a field of a record.
        rows = batch.select(*(functions.col(f"`{name}`") for name in names))
        work = partial(decide_rows, self.policy, handed_out(state), self.columns)
        with decided(rows, work, keep) as (decisions, results):
            if self.sink is not None:
                self.write(decisions, number)
            return collected(results), {}

    def write(self, decisions: DataFrame, number: int) -> None:
        """Write decisions to the sink, in place of earlier ones of the same batch."""
        if callable(self.sink):
            self.sink(decisions, number)
        else:
            decisions.write.mode("overwrite").parquet(f"{self.sink}/batch={number}")


@dataclass(frozen=True)
class LateRunner(Runner):
    """Runs batches of rows and labels, from one stream that ``united`` made of both."""

    time: str | None = None  # the column of event times of rows
    watermark: timedelta | None = None  # how long a decision waits, by these times

    def __post_init__(self) -> None:
        if self.id is None or self.columns.y is None:
            raise ValueError(
                "id and y of stream must name columns of labels, where these are given"
            )
        if self.time is None or not isinstance(self.watermark, timedelta):
            raise ValueError(
                "time and watermark of stream must be given with labels: the column of event times "
                "of rows, and the timedelta that a decision waits for its labels"
            )
        if self.policy.limits:
            raise ValueError(
                "policy of stream must have no limits where labels come later: their prices follow "
                "every row as it comes"
            )

    def united(self, rows: DataFrame, labels: DataFrame) -> DataFrame:
        """One stream with the rows of both."""
        of_rows = [str(self.id), str(self.time), *self.columns.eta_names]
        of_labels = [str(self.id), str(self.columns.y)]
        check_there("stream", rows, of_rows)
        check_there("stream", labels, of_labels)
        first = rows.select(*of_rows).withColumn(LATE, functions.lit(False))
        second = labels.select(*of_labels).withColumn(LATE, functions.lit(True))
        return first.unionByName(second, allowMissingColumns=True)

    def decide(
        self, batch: DataFrame, state: State, number: int, waiting: Waiting
    ) -> tuple[list[State], Waiting]:
        """What rows and labels add to the state, and the batches that wait after this one."""
        assert self.time is not None
        assert self.watermark is not None
        name, y, eta = str(self.id), str(self.columns.y), self.columns.eta_names
        spark, frozen = batch.sparkSession, handed_out(state)
        keep = (name, *eta, self.time)
        work = partial(decide_rows, self.policy, frozen, replace(self.columns, y=None))
        unlabelled = batch.where(~functions.col(LATE)).select(*keep)
        with decided(unlabelled, work, keep) as (rows, results):
            # Overwritten where a failed run of the same batch has left something.
            rows.write.mode("overwrite").parquet(self._place("waiting", number))
            if self.sink is not None:
                self.write(rows.select(name, PREDICTION), number)
            total = collected(results)
            latest = rows.agg(functions.max(functions.col(self.time).cast("double"))).first()
        has_rows = latest is not None and latest[0] is not None
        waiting = {**waiting, number: float(latest[0]) if has_rows else float("-inf")}

        labels = batch.where(functions.col(LATE)).select(name, y)
        labels = labels.where(functions.col(y).isNotNull()).dropDuplicates([name])
        rows = spark.read.parquet(
            *(self._place("waiting", batch_number) for batch_number in sorted(waiting))
        )
        labelled = rows.join(labels, name)
        before = [
            self._place("counted", batch_number)
            for batch_number in sorted(waiting)
            if batch_number != number
        ]
        if before:  # of two labels for one id the first counts
            labelled = labelled.join(spark.read.parquet(*before), name, "left_anti")
        labelled = labelled.persist()  # read twice: ids are written, and rows are counted
        try:
            labelled.select(name).write.mode("overwrite").parquet(self._place("counted", number))
            count = partial(count_late, self.policy, frozen, self.columns)
            added = labelled.select(*eta, y, PREDICTION).mapInArrow(count, f"{DELTA} binary")
            total += collected(added)
        finally:
            labelled.unpersist()
        # The watermark moves between batches, so rows that are too old now were joined once more.
        oldest = max(waiting.values()) - self.watermark.total_seconds()
        return total, {batch_number: t for batch_number, t in waiting.items() if t >= oldest}

    def _place(self, name: str, number: int) -> str:
        return f"{self.store.checkpoint}/omma/{name}/batch={number}"


@contextmanager
def decided(
    rows: DataFrame, work: Callable[..., Iterator[Any]], keep: tuple[str, ...]
) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Decisions on rows, with the columns to ``keep``; and these with what workers counted."""
    # Persisted while decisions and counts are read: otherwise Spark would decide the rows twice.
    results = rows.mapInArrow(partial(work, keep), schema_of(rows, keep)).persist()
    try:
        yield results.where(functions.col(DELTA).isNull()).drop(DELTA), results
    finally:
        results.unpersist()


def collected(rows: DataFrame) -> list[State]:
    """What workers counted, in the order of partitions."""
    deltas = rows.where(functions.col(DELTA).isNotNull()).select(DELTA)
    return [unpacked(bytes(row[0])) for row in deltas.collect()]


def schema_of(rows: DataFrame, keep: tuple[str, ...]) -> StructType:
    """The columns that workers return: those kept, decisions and counts."""
    columns = [StructField(name, rows.schema[name].dataType) for name in keep]
    decisions = StructField(PREDICTION, ArrayType(IntegerType()))
    return StructType([*columns, decisions, StructField(DELTA, BinaryType())])


def labels_in(batch: DataFrame, columns: Columns) -> int | None:
    """The number of labels of the first row; None if there is no row."""
    eta = functions.col(f"`{columns.eta}`")
    # Rows whose probabilities are null are refused later, by the workers.
    first = batch.where(eta.isNotNull()).select(eta).limit(1).toArrow()
    width = columns.first_width(first.to_batches()[0]) if first.num_rows else 0
    return width if width > 0 else None

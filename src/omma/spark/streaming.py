"""Streams of batches, each decided on the state before it and counted once; and whole frames."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from omma._validate import shown
from omma.batch_step import handed_out, merged
from omma.policies import Policy
from omma.rule import Rule
from omma.spark.columns import check_there, read_columns
from omma.spark.runner import Function, LateRunner, Runner, collected, labels_in, schema_of
from omma.spark.store import Store, check_same, hold, options_of, restored
from omma.spark.work import PREDICTION, decide_by_rule, decide_rows
from omma.state import State


def predict(
    df: DataFrame, rule: Rule, *, eta: str | tuple[str, str], name: str = PREDICTION
) -> DataFrame:
    """Decide the rows of a frame, or of a stream, by a fixed rule.

    Parameters
    ----------
    df : DataFrame
    rule : Rule
        Such as ``policy.rule(omma.spark.load_state(checkpoint))`` or ``trace.rule``.
    eta : str or pair of str
        As for ``stream``.
    name : str
        Of the column that is added: an array of the ids of labels that are predicted.

    Returns
    -------
    DataFrame
        The same with that column.

    Examples
    --------
    >>> import omma
    >>> df = spark.createDataFrame([([0.3, 0.5],), ([0.9, 0.9],)], "eta array<double>")
    >>> rule = omma.Rule([1.0, 1.0], [-0.2, -0.8])
    >>> [row.prediction for row in omma.spark.predict(df, rule, eta="eta").collect()]
    [[0], [0, 1]]
    """
    if not isinstance(rule, Rule):
        raise TypeError(f"rule of predict must be a Rule, as policy.rule gives, got {shown(rule)}")
    columns = read_columns("predict", eta, None, rule.m)
    check_there("predict", df, columns.names)
    if name in df.columns:
        raise ValueError(f"name of predict must be no column of the frame, got {name!r}")
    # Ids, not indicators: an array of millions of labels in each row would be slow.
    schema = StructType([*df.schema.fields, StructField(name, ArrayType(IntegerType()))])
    return df.mapInArrow(partial(decide_by_rule, rule, columns, name), schema)


def count(
    df: DataFrame,
    policy: Policy,
    state: State | None = None,
    *,
    eta: str | tuple[str, str],
    y: str | None = None,
    n_labels: int | None = None,
) -> State:
    """The state after the rows of a frame, all of them decided on the state before.

    Parameters
    ----------
    df : DataFrame
    policy, eta, y, n_labels
        As for ``stream``.
    state : State, optional
        From ``load_state``, ``trace.state`` or ``policy.init(m)``; by default a new one.

    Returns
    -------
    State
        ``policy.rule(state)`` is the rule it makes.

    Examples
    --------
    >>> import omma
    >>> df = spark.createDataFrame([([0.3, 0.5], [0, 1])] * 7, "eta array<double>, y array<int>")
    >>> omma.spark.count(df, omma.OMMA("macro_f1", prior=1.0), eta="eta", y="y")
    <State of 2 labels, 7 rows>
    """
    check_policy("count", policy)
    columns = read_columns("count", eta, y, n_labels)
    check_there("count", df, columns.names)
    if df.isStreaming:
        raise ValueError("df of count must be a whole frame, got a stream; see stream")
    # Without a number, that of the state, or of the first row.
    m = n_labels or (state.m if state is not None else labels_in(df, columns))
    if m is None:
        raise ValueError("df of count must have a row, or n_labels be given")
    start = policy.init(m) if state is None else state
    columns = replace(columns, m=m)
    # All rows are decided on one state, so any worker may have any of them.
    work = partial(decide_rows, policy, handed_out(start), columns, ())
    rows = df.select(*columns.names).mapInArrow(work, schema_of(df, ()))
    return merged(start, collected(rows))


def stream(
    sdf: DataFrame,
    policy: Policy,
    *,
    eta: str | tuple[str, str],
    y: str | None = None,
    id: str | None = None,  # noqa: A002 — as learners call it
    checkpoint: str | Path,
    sink: str | Path | Function | None = None,
    n_labels: int | None = None,
    trigger: dict[str, Any] | None = None,
    name: str | None = None,
    labels: DataFrame | None = None,
    time: str | None = None,
    watermark: timedelta | None = None,
) -> StreamingQuery:
    """Decide a stream of rows, and learn from their labels, on as many machines as Spark has.

    All rows of a micro-batch are decided on the state before it; what they add is summed up and
    written to the checkpoint as the state after it. A batch that Spark runs again, after whatever
    failed, is decided as before and counted once.

    Parameters
    ----------
    sdf : DataFrame
        A stream from a source that can be read again.
    policy : Policy
        ``omma.OMMA``, ``omma.Auto``, ``omma.OFO``, ``omma.Forgetting`` of these, or a fixed rule.
        With ``OMMA`` take ``prior=1.0``: the first batch is decided on nothing else.
    eta : str or pair of str
        The column of probabilities: an array with one for each label, packed float32 (binary), or
        a number where there is one label. Or two columns of arrays: label ids and their
        probabilities, all others being zero.
    y : str, optional
        The column of labels, null where they are unknown: an array of zeros and ones, the same as
        packed bytes, or a class id; beside label ids in ``eta``, an array of label ids.
    id : str, optional
        The column that names a row; it goes with each decision. Needed for a sink.
    checkpoint : str or Path
        The checkpoint of the query; states are in its folder ``omma``.
    sink : str, Path or function, optional
        Where decisions go: a folder, which gets a folder of Parquet files for each batch, or a
        function of (frame, batch number), which is called again with the same frame if something
        fails, and has to replace what it wrote for that batch. The frame has ``id`` and
        ``prediction``, an array of label ids.
    n_labels : int, optional
        How many labels there are; by default the first row tells.
    trigger : dict, optional
        When a batch begins, as for Spark's ``trigger``: ``{"processingTime": "10 seconds"}``.
    name : str, optional
        Of the query.
    labels : DataFrame, optional
        A stream of labels that come later, with the columns ``id`` and ``y``; rows then have none.
        They are counted with what was decided for their id; a second one for it is not.
    time : str, optional
        The column of rows that says when they happened, a timestamp; needed with ``labels``.
    watermark : timedelta, optional
        How long decisions wait for labels, by these times: what waits is kept in the checkpoint,
        and read with every batch.

    Returns
    -------
    StreamingQuery

    Examples
    --------
    >>> from pathlib import Path
    >>> import omma
    >>> rows, labels = omma.datasets.long_tail(n=1000, m=5, seed=0)
    >>> table = [(i, *pair) for i, pair in enumerate(zip(rows.tolist(), labels.tolist()))]
    >>> frame = spark.createDataFrame(table, "id long, eta array<double>, y array<int>")
    >>> folder = Path.cwd()
    >>> frame.write.parquet(f"{folder}/rows")
    >>> sdf = spark.readStream.schema(frame.schema).parquet(f"{folder}/rows")
    >>> query = omma.spark.stream(
    ...     sdf, omma.OMMA("macro_f1", prior=1.0), eta="eta", y="y", id="id",
    ...     checkpoint=folder / "checkpoint", sink=folder / "decisions",
    ...     trigger={"availableNow": True},
    ... )
    >>> query.awaitTermination()
    >>> omma.spark.load_state(folder / "checkpoint").rows
    1000.0
    >>> spark.read.parquet(f"{folder}/decisions").count()
    1000
    """
    check_policy("stream", policy)
    columns = read_columns("stream", eta, y, n_labels)
    if labels is None:  # else the two frames are checked where they are united
        check_there("stream", sdf, [*columns.names, *([] if id is None else [id])])
    if not sdf.isStreaming:
        raise ValueError("sdf of stream must be a stream, as of spark.readStream; see predict")
    if sink is not None and id is None:
        raise ValueError("id of stream must name the column that decisions in a sink are found by")
    if not isinstance(sink, str | Path | None) and not callable(sink):
        raise TypeError(f"sink of stream must be a folder or a function, got {shown(sink)}")
    # Whether the driver is elsewhere, behind Spark Connect.
    remote = type(sdf).__module__.startswith("pyspark.sql.connect")
    place = whole_path("checkpoint", checkpoint, remote)
    if isinstance(sink, str | Path):
        sink = whole_path("sink", sink, remote)
    runner = Runner(policy, columns, Store(place), sink, id)
    if labels is not None:
        late = LateRunner(policy, columns, Store(place), sink, id, time, watermark)
        runner, sdf = late, late.united(sdf, labels)
    # Behind Spark Connect batches run elsewhere: there the runner takes the lock itself.
    lock = None if remote else hold(runner.store)
    try:
        runner.check()
        writer = sdf.writeStream.foreachBatch(runner).option("checkpointLocation", place)
        writer = writer if trigger is None else writer.trigger(**trigger)
        writer = writer if name is None else writer.queryName(name)
        query = writer.start()
    except BaseException:
        if lock is not None:
            lock.release()
        raise
    if lock is not None:
        lock.release_after(sdf.sparkSession, query)
    return query


def load_state(
    checkpoint: str | Path, batch_id: int | None = None, *, policy: Policy | None = None
) -> State:
    """The state of a stream after a batch.

    Parameters
    ----------
    checkpoint : str or Path
        Of the query; it may run meanwhile.
    batch_id : int, optional
        By default the last one that was counted; the last hundred are kept.
    policy : Policy, optional
        That of the stream: needed where its metric is a function, which no file holds.

    Returns
    -------
    State

    Raises
    ------
    ValueError
        Where the checkpoint has no such state, or one of another policy.

    Examples
    --------
    ``policy.rule(omma.spark.load_state(checkpoint))`` is what the stream has learned so far.
    """
    store = Store(str(checkpoint))
    batches = store.batches()
    number = batches[-1] if batch_id is None and batches else batch_id
    saved = store.read(number) if number in batches and number is not None else None
    if saved is None:
        expected = "a state" if batch_id is None else f"the state of batch {batch_id}"
        available = f"{batches[0]} to {batches[-1]}" if batches else "none"
        raise ValueError(f"{checkpoint} must have {expected}, got {available}")
    if policy is not None:
        check_same(str(checkpoint), saved.policy, options_of(policy))
    state = restored(saved, policy)
    if state is None:
        raise ValueError(f"{checkpoint} must have a state, got no row in {saved.batch + 1} batches")
    return state


def whole_path(parameter: str, path: str | Path, remote: bool) -> str:
    """A path that means the same to Python and to the JVM, whose folders may differ."""
    text = str(path)
    if ":/" in text or Path(text).is_absolute():  # a URI, such as s3://, or a whole path
        return text
    if remote:
        raise ValueError(
            f"{parameter} of stream must be a whole path, as the driver is elsewhere, got {text!r}"
        )
    return str(Path(text).absolute())


def check_policy(owner: str, policy: Any) -> None:
    """Refuse policies whose states do not add up."""
    if isinstance(policy, Policy):
        # A number of labels that the policy can have: that of its rule, or enough for its budget.
        rule, metric = getattr(policy, "decision", None), policy.objective
        m = max(2, policy.budget or 0) if rule is None else rule.m
        m = 1 if metric is not None and metric.binary else m
        if policy.init(m).adds_up:
            return
    raise TypeError(
        f"policy of {owner} must be one whose state is counts, which add up: omma.OMMA, "
        f"omma.Auto, omma.OFO, omma.Forgetting of these, or a fixed rule; got {shown(policy)}"
    )

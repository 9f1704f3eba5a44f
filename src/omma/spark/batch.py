"""Frames that are whole: decided by a rule, or counted for a state."""

from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from omma._validate import shown
from omma.merging import handed_out, merged
from omma.policies import Policy
from omma.rule import Rule
from omma.spark.columns import check_there, read_columns
from omma.spark.runner import collected, labels_in, schema_of
from omma.spark.streaming import check_policy
from omma.spark.work import PREDICTION, ByRule, Decide
from omma.state import State


def predict(
    df: DataFrame, rule: Rule, *, eta: str | tuple[str, str], name: str = PREDICTION
) -> DataFrame:
    """Decide the rows of a frame, or of a stream, by a rule that stands still.

    Parameters
    ----------
    df : DataFrame
    rule : Rule
        Such as ``policy.rule(omma.spark.load_state(checkpoint))`` or ``trace.rule``.
    eta : str or pair of str
        As for ``stream``.
    name : str
        Of the column that is added: an array of the ids of labels that are predicted.

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
    schema = StructType([*df.schema.fields, StructField(name, ArrayType(IntegerType()))])
    return df.mapInArrow(ByRule(rule, columns, name), schema)


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

    Examples
    --------
    >>> import omma
    >>> df = spark.createDataFrame([([0.3, 0.5], [0, 1])] * 7, "eta array<double>, y array<int>")
    >>> omma.spark.count(df, omma.OMMA("macro_f1", prior=1.0), eta="eta", y="y")
    <State of 2 labels, 7 rows>
    """
    linear = check_policy("count", policy)
    columns = read_columns("count", eta, y, n_labels)
    check_there("count", df, columns.names)
    if df.isStreaming:
        raise ValueError("df of count must be a whole frame, got a stream; see stream")
    m = n_labels or (state.m if state is not None else None) or _labels(df, columns.eta)
    start = linear.init(m) if state is None else state
    work = Decide(linear, handed_out(start).arrays(), replace(columns, m=m), None)
    frame = df.select(*columns.names)
    return merged(start, collected(frame.mapInArrow(work, schema_of(df, None))))


def _labels(df: DataFrame, eta: Any) -> int:
    found = labels_in(df, eta)
    if found is None:
        raise ValueError("df of count must have a row, or n_labels be given")
    return found

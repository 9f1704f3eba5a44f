"""The results of ``omma evaluate`` as tables and sentences, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy import sparse

import omma
from omma._json import finite
from omma.calibration.reliability import CalibrationCheck
from omma.cli.evaluation import Evaluation, hindsight, titled
from omma.comparison.choice import SIMPLE
from omma.datasets import Scored
from omma.policies.registry import REGISTRY
from omma.state_parts import in_proportion
from omma.tables import UNSUPPORTED, Grid, GridEntry, fitting
from omma.unseen import everything_is_best

VALUES = 4  # columns of a rule's value and its distance from the best, with their intervals
MOST, LEAST = 10, 5  # labels that are shown: those that gain most, and least
CROSS_FITTED = (
    "each row was decided by a rule made without it; intervals are from a bootstrap over rows, "
    "corrected for choosing the best."
)


def show(evaluation: Evaluation, console: Console) -> None:
    """Print the data in a sentence, the tables, and what a reader has to know."""
    show_inputs(evaluation.inputs, console)
    for choice in evaluation.choices.values():
        show_choice(choice, console, with_labels=len(evaluation.choices) == 1)
    if evaluation.choices:
        console.print("Policies online, each row decided before its labels are seen:")
    comparison = evaluation.comparison
    grid = _blind_grid(evaluation) if comparison is None else comparison.grid(True)
    for table in fitting(grid, console):
        console.print(table)
    console.print(" ".join(grid.notes))  # under the table it would be as narrow as that
    if comparison is not None and hindsight(comparison):
        console.print("* Tuned on the rows it is judged on: an upper bound, not a fair comparison.")
    for remark in _remarks(evaluation):
        console.print(remark)


def as_json(evaluation: Evaluation, wrote: dict[str, str]) -> str:
    """Everything as one JSON object; unknown numbers are null."""
    inputs, comparison = evaluation.inputs, evaluation.comparison
    content: dict[str, Any] = {
        "rows": inputs.batch.n,
        "labels": inputs.batch.m,
        "notes": list(inputs.notes),
    }
    if comparison is None:
        content["expected"] = [
            {"policy": name, "metric": metric, "value": _expected(inputs, trace)}
            for (name, metric), trace in evaluation.blind_traces.items()
        ]
    else:
        content["results"] = comparison.rows
        content["runs"] = comparison.runs
        check = _calibration(evaluation)
        if check is not None:
            content["calibration_error"] = check.error
            content["calibration"] = asdict(check)
        content["hindsight"] = hindsight(comparison)
        content["choices"] = [*map(choice_data, evaluation.choices.values())]
    content["remarks"] = list(_remarks(evaluation))
    content["wrote"] = sorted(wrote)
    return json.dumps(finite(content))


def show_inputs(inputs: Scored, console: Console) -> None:
    """The data in a few words."""
    for note in inputs.notes:
        console.print(note, soft_wrap=True)
    batch, y, m = inputs.batch, labels_of(inputs.batch), inputs.batch.m
    rows = f"{batch.n:,} row{'s' * (batch.n != 1)}"
    title = "classes, one a row" if batch.class_ids else "labels"
    kind = "sparse probabilities" if batch.is_sparse else "probabilities"
    data = f"{rows}, one binary label" if m == 1 else f"{rows}, {m:,} {title}; {kind}"
    if y is None:
        labels = "no labels."
    elif batch.class_ids:
        counts = np.bincount(y.astype(np.int64), minlength=m)
        labels = f"the rarest class is in {int(counts.min()):,} rows."
    else:
        positive, known = _sums(y, batch.n), rows_known(batch)
        per_row = float((positive / np.maximum(known, 1.0)).sum())
        share = known.sum() / (batch.n * m)
        partial = "" if share == 1.0 else f", {100 * share:.3g} % of all are known"
        rarest = int(positive.min())
        labels = f"{per_row:.3g} labels a row, the rarest in {rarest:,} rows{partial}."
        if m == 1:
            labels = f"{100 * per_row:.3g} % are positive."
    console.print(f"{data}{';' if m == 1 else ','} {labels}", soft_wrap=True)


def show_choice(choice: omma.Choice, console: Console, *, with_labels: bool) -> None:
    """What to deploy, in words; the candidates; and what the best does for each label."""
    console.print()
    console.print(choice.verdict, style="bold", markup=False)
    if choice.as_good:
        titles = ", ".join(candidate.title for candidate in choice.as_good)
        console.print(f"Not distinguishable on this data: {titles}.")
    # Values and limits side by side are too wide for a terminal. Values online, the column between
    # both, are in a table of their own.
    parts = [slice(VALUES), slice(VALUES + 1, None)]
    for columns in parts if choice.best.limits else parts[:1]:
        entries = tuple(line[columns] for line in choice.table.entries)
        part = choice.table.columns[columns]
        console.print(replace(choice.table, columns=part, entries=entries, notes=()))
    console.print(f"{choice.metric} in %, {choice.how}: {CROSS_FITTED}")
    for note in choice.notes:
        console.print(note, soft_wrap=True)
    gains = choice.best.name != SIMPLE  # the simple rule gains nothing over itself
    if with_labels and gains and choice.labels is not None and choice.rule.m > 1:
        console.print()
        # All labels, or of many those that gain and lose most.
        table, data = choice.label_table, choice.label_data
        order = sorted(range(len(data)), key=lambda place: -data[place]["gain"])
        left_out = max(0, len(order) - MOST - LEAST)
        if left_out:
            order = order[:MOST] + order[-LEAST:]
        names = tuple(table.names[place] for place in order)
        entries = tuple(table.entries[place] for place in order)
        console.print(replace(table, names=names, entries=entries, notes=()))
        more = f" {left_out:,} labels between these are left out; --json has them."
        console.print(f"{table.notes[0]}{more if left_out else ''}")
    console.print()


def choice_data(choice: omma.Choice) -> dict[str, Any]:
    """A recommendation as data."""
    return {
        "metric": choice.metric,
        "verdict": choice.verdict,
        "best": choice.best.name,
        "notes": list(choice.notes),
        "as_good": [candidate.name for candidate in choice.as_good],
        "rules": choice.data,
        "labels": [] if choice.labels is None else choice.label_data,
    }


def _blind_grid(evaluation: Evaluation) -> Grid:
    """What each policy may be worth, if the probabilities are right."""
    columns = tuple(titled(*target) for target in evaluation.targets)
    entries = tuple(
        tuple(
            GridEntry(_expected(evaluation.inputs, evaluation.blind_traces[name, column]))
            if (name, column) in evaluation.blind_traces
            else GridEntry(instead=UNSUPPORTED)
            for column in columns
        )
        for name in evaluation.policies
    )
    note = "No labels: values are expected values, in %, if the probabilities are right."
    titles = {name: entry.title for name, entry in REGISTRY.items()}
    titles["baseline"] = evaluation.baseline_title
    return Grid(columns, tuple(titles[name] for name in evaluation.policies), entries, (note,))


def _expected(inputs: Scored, trace: omma.Trace) -> float:
    """What the metric would be if the probabilities were right: η is counted in place of labels."""
    batch, n = inputs.batch, inputs.batch.n
    eta = batch.values if batch.is_sparse else batch.values.reshape(n, -1)
    predictions = trace.predictions.reshape(eta.shape)
    hits = eta.multiply(predictions) if batch.is_sparse else eta * predictions
    tp, predicted, positive = (_sums(values, n) for values in (hits, predictions, eta))
    return trace.metric.value(omma.Counts(tp, predicted, positive, float(n)))


def _remarks(evaluation: Evaluation) -> Iterator[str]:
    """What a reader of the table has to know, a sentence each."""
    for metric, k in evaluation.targets:
        is_noted = titled(metric, k) in evaluation.choices  # which has it among its notes
        if k is None and not is_noted and _everything_is_best(evaluation.inputs, metric):
            title = metric.name if metric.binary else f"{metric.name} without a budget"
            advice = "choose another metric, such as f1" if metric.binary else "pass -k"
            yield f"{title} is maximal when everything is predicted: {advice}."
    check = _calibration(evaluation)
    if check is not None:
        yield str(check)


def _calibration(evaluation: Evaluation) -> CalibrationCheck | None:
    """Whether the probabilities look calibrated, with the gain by the first metric if known."""
    inputs = evaluation.inputs
    if inputs.batch.labels is None or inputs.batch.class_ids:
        return None
    for choice in evaluation.choices.values():
        if choice.calibration is not None:
            return choice.calibration
    return CalibrationCheck.of(inputs.batch)


def _everything_is_best(inputs: Scored, metric: omma.Metric) -> bool:
    """Whether to predict every label in every row is best, by labels or else by probabilities."""
    batch, n = inputs.batch, float(inputs.batch.n)
    y = labels_of(batch)
    positive = _sums(batch.values if y is None else y, batch.n)
    return everything_is_best(metric, in_proportion(positive, n, n - rows_known(batch)), n)


def labels_of(batch: omma.Batch) -> Any:
    """Labels as numbers, or None."""
    return None if batch.labels is None else batch.labels.values


def rows_known(batch: omma.Batch) -> NDArray[np.float64]:
    """In how many rows each label is known."""
    known = np.full(batch.m, float(batch.n))
    if batch.labels is not None and batch.labels.missing is not None:
        known -= np.bincount(batch.labels.missing.indices, minlength=batch.m)
    return known


def _sums(values: Any, n: int) -> NDArray[np.float64]:
    matrix = values if sparse.issparse(values) else np.reshape(values, (n, -1))
    return np.asarray(matrix.sum(axis=0, dtype=np.float64)).ravel()

"""The results of ``omma evaluate`` as tables and sentences, or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy import sparse

from omma._json import finite
from omma.cli.evaluation import LimitedResults, Results, baseline_title, titled
from omma.cli.inputs import Inputs
from omma.comparison import Choice, Comparison
from omma.comparison.calibration_check import CalibrationCheck
from omma.comparison.choice import SIMPLE
from omma.comparison.cross_fitting import everything_is_best
from omma.comparison.entrants import TITLES
from omma.counts import Counts
from omma.frontiers import Frontier
from omma.metrics import Metric
from omma.state import in_proportion
from omma.tables import MISSING, UNSUPPORTED, Entry, Grid, fitting, texts
from omma.trace import Trace

VALUES = 4  # columns of a rule's value and its distance from the best, with their intervals
MOST, LEAST = 10, 5  # labels that are shown: those that gain most, and least
CROSS_FITTED = (
    "each row was decided by a rule made without it; intervals are from a bootstrap over rows, "
    "corrected for choosing the best."
)


def expected(inputs: Inputs, trace: Trace) -> float:
    """What the metric would be if the probabilities were right: η is counted in place of labels."""
    batch, n = inputs.batch, inputs.batch.n
    eta = batch.values if batch.thin else batch.values.reshape(n, -1)
    chosen = trace.predictions.reshape(eta.shape)
    both = eta.multiply(chosen) if batch.thin else eta * chosen
    tp, predicted, positive = (_sums(one, n) for one in (both, chosen, eta))
    return trace.metric.value(Counts(tp, predicted, positive, float(n)))


def show(results: Results, console: Console) -> None:
    """Print the data in a sentence, the table, and what a reader has to know."""
    _show_inputs(results.inputs, console)
    for choice in results.choices.values():
        _show_choice(choice, console, labels=len(results.choices) == 1)
    if results.choices:
        console.print("Policies online, each row decided before its labels are seen:")
    grid = _blind_grid(results) if results.comparison is None else results.comparison.grid(True)
    for table in fitting(grid, console):
        console.print(table)
    console.print(" ".join(grid.notes))  # under the table it would be as narrow as that
    if results.comparison is not None and _hindsight(results.comparison):
        console.print("* Chosen with hindsight on the rows judged: a ceiling, not a rival.")
    for remark in remarks(results):
        console.print(remark)


def show_limited(results: LimitedResults, inputs: Inputs, console: Console) -> None:
    """Rules under limits on unseen rows, and how the metric and the limits stand online."""
    _show_inputs(inputs, console)
    _show_choice(results.choice, console, labels=True)
    value = results.trace.value
    assert value is not None
    console.print(f"Auto online over all rows: {results.trace.metric.name} {100 * value:.2f} %.")
    for held in results.trace.limits:
        console.print(f"{held}.", soft_wrap=True, markup=False)


def limited_json(results: LimitedResults, inputs: Inputs) -> str:
    """The same as one JSON object."""
    trace = results.trace
    limits = [
        {
            "limit": str(held.limit),
            "value": held.value,
            "interval": list(held.interval),
            "holds": held.holds,
            "error": held.error,
        }
        for held in trace.limits
    ]
    content = {
        "metric": trace.metric.name,
        "notes": list(inputs.notes),
        "online": {"value": trace.value, "limits": limits},
        "choice": _choice_data(results.choice),
    }
    return json.dumps(finite(content), indent=2)


def show_frontier(frontier: Frontier, console: Console) -> None:
    """A table with a row for each bound of a limit."""
    sign = "at least" if frontier.limit.sign > 0 else "at most"
    rows = zip(frontier.bounds, frontier.reached, frontier.values, frontier.met, strict=True)
    grid = texts(
        "",
        list(rows),
        {f"{frontier.limit.name} {sign}": lambda row: f"{row[0]:.4f}"},
        {
            "reached": lambda row: (
                MISSING if np.isnan(row[1]) else f"{row[1]:.4f}" + ("" if row[3] else " (missed)")
            ),
            f"{frontier.metric.name}, %": lambda row: f"{100 * row[2]:.2f}",
        },
    )
    console.print(grid)
    console.print(f"{frontier.how}.", soft_wrap=True)


def frontier_json(frontier: Frontier) -> str:
    """The same as one JSON object."""
    content = {
        "metric": frontier.metric.name,
        "limit": frontier.limit.name,
        "how": frontier.how,
        "bounds": frontier.bounds.tolist(),
        "reached": frontier.reached.tolist(),
        "values": frontier.values.tolist(),
        "met": frontier.met.tolist(),
        "without": {"limit": frontier.free[0], "value": frontier.free[1]},
    }
    return json.dumps(finite(content), indent=2)


def _show_inputs(inputs: Inputs, console: Console) -> None:
    for note in inputs.notes:
        console.print(note, soft_wrap=True)
    console.print(inputs.sentence(), soft_wrap=True)


def _show_choice(choice: Choice, console: Console, *, labels: bool) -> None:
    """What to deploy, in words; the candidates; and what the best does for each label."""
    console.print()
    console.print(choice.verdict, style="bold", markup=False)
    if choice.as_good:
        titles = ", ".join(candidate.title for candidate in choice.as_good)
        console.print(f"Not distinguishable on this data: {titles}.")
    console.print(_rules(choice.table))
    if choice.best.limits:
        console.print(_rules(choice.table, limits=True))
    console.print(f"{choice.metric} in %, {choice.how}: {CROSS_FITTED}")
    for note in choice.notes:
        console.print(note, soft_wrap=True)
    gains = choice.best.name != SIMPLE  # the simple rule gains nothing over itself
    if labels and gains and choice.labels is not None and choice.rule.m > 1:
        console.print()
        _show_labels(choice, console)
    console.print()


def _rules(grid: Grid, *, limits: bool = False) -> Grid:
    """The columns of values, or those of limits: both side by side are too wide for a terminal."""
    # Values online, the column between both, are in a table of their own.
    columns = slice(VALUES + 1, None) if limits else slice(VALUES)
    entries = tuple([line[columns] for line in grid.entries])
    return replace(grid, columns=grid.columns[columns], entries=entries, notes=())


def _show_labels(choice: Choice, console: Console) -> None:
    """All labels, or of many those that gain and lose most."""
    table, data = choice.label_table, choice.label_data
    order = sorted(range(len(data)), key=lambda at: -data[at]["gain"])
    left = len(order) - MOST - LEAST
    shown = order if left <= 0 else order[:MOST] + order[-LEAST:]
    names = tuple([table.names[at] for at in shown])
    entries = tuple([table.entries[at] for at in shown])
    console.print(replace(table, names=names, entries=entries, notes=()))
    more = f" {left:,} labels between these are left out; --json has them." if left > 0 else ""
    console.print(f"{table.notes[0]}{more}")


def _hindsight(comparison: Comparison) -> list[str]:
    return [name for name in comparison.policies if comparison.titles[name].endswith("*")]


def _blind_grid(results: Results) -> Grid:
    """What each policy may be worth, if the probabilities are right."""
    job = results.job
    columns = tuple(titled(*target) for target in job.targets)
    entries = tuple(
        tuple(
            Entry(expected(results.inputs, results.blind[name, column]))
            if (name, column) in results.blind
            else Entry(instead=UNSUPPORTED)
            for column in columns
        )
        for name in job.policies
    )
    note = "No labels: values are what they would be if the probabilities were right, in %."
    titles = {**TITLES, "baseline": baseline_title(job)}
    return Grid(columns, tuple(titles[name] for name in job.policies), entries, (note,))


def as_json(results: Results, wrote: dict[str, str]) -> str:
    """Everything as one JSON object; unknown numbers are null."""
    content: dict[str, Any] = {
        "rows": results.inputs.batch.n,
        "labels": results.inputs.batch.m,
        "notes": list(results.inputs.notes),
    }
    if results.comparison is None:
        content["expected"] = [
            {"policy": name, "metric": metric, "value": expected(results.inputs, trace)}
            for (name, metric), trace in results.blind.items()
        ]
    else:
        content["results"] = results.comparison.rows
        content["runs"] = results.comparison.runs
        check = calibration(results)
        if check is not None:
            content["calibration_error"] = check.error
            content["calibration"] = asdict(check)
        content["hindsight"] = _hindsight(results.comparison)
        content["choices"] = [_choice_data(choice) for choice in results.choices.values()]
    content["remarks"] = list(remarks(results))
    content["wrote"] = sorted(wrote)
    return json.dumps(finite(content))


def _choice_data(choice: Choice) -> dict[str, Any]:
    """A recommendation as data."""
    labels = [] if choice.labels is None else choice.label_data
    return {
        "metric": choice.metric,
        "verdict": choice.verdict,
        "best": choice.best.name,
        "notes": list(choice.notes),
        "as_good": [candidate.name for candidate in choice.as_good],
        "rules": choice.data,
        "labels": labels,
    }


def remarks(results: Results) -> Iterator[str]:
    """What a reader of the table has to know, a sentence each."""
    for metric, k in results.job.targets:
        noted = titled(metric, k) in results.choices  # which has it among its notes
        if k is None and not noted and _everything_is_best(results.inputs, metric):
            what = metric.name if metric.binary else f"{metric.name} without a budget"
            how = "choose another metric, such as f1" if metric.binary else "pass -k"
            yield f"{what} is maximal when everything is predicted: {how}."
    check = calibration(results)
    if check is not None:
        yield str(check)


def calibration(results: Results) -> CalibrationCheck | None:
    """Whether the probabilities look calibrated, with the gain by the first metric if known."""
    if results.inputs.y is None or results.inputs.batch.class_ids:
        return None
    checks = [choice.calibration for choice in results.choices.values() if choice.calibration]
    return checks[0] if checks else CalibrationCheck.of(results.inputs.batch)


def _everything_is_best(inputs: Inputs, metric: Metric) -> bool:
    """Whether to predict every label in every row is best, by labels or else by probabilities."""
    n = float(inputs.batch.n)
    positive = _sums(inputs.batch.values if inputs.y is None else inputs.y, inputs.batch.n)
    in_all_rows = in_proportion(positive, n, n - inputs.rows_known)
    return everything_is_best(metric, in_all_rows, n)


def _sums(values: Any, n: int) -> NDArray[np.float64]:
    matrix = values if sparse.issparse(values) else np.reshape(values, (n, -1))
    return np.asarray(matrix.sum(axis=0, dtype=np.float64)).ravel()

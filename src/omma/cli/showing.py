"""What ``omma evaluate`` found, as tables and sentences, or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy import sparse

from omma._json import finite
from omma.calibration import reliability
from omma.choice import Choice, Table
from omma.choice.makers import SIMPLE
from omma.cli.evaluation import Found, baseline_title, titled
from omma.cli.inputs import Inputs
from omma.comparison import Comparison
from omma.comparison.entrants import TITLES
from omma.counts import Counts
from omma.metrics import Metric
from omma.state import in_proportion
from omma.tables import UNSUPPORTED, Entry, Grid, fitting
from omma.trace import Trace

# What policies are worth online stands below, in the order of the file.
RULES = ("rule", "unseen rows", "95 % interval", "to best", "95 % interval")
MOST, LEAST = 10, 5  # labels that are shown: those that gain most, and least
CROSS_FITTED = (
    "every row was decided by a rule made without it; rows drawn again give the intervals."
)


def expected(inputs: Inputs, trace: Trace) -> float:
    """What the metric would be if the probabilities were right: η is counted in place of labels."""
    batch, n = inputs.batch, inputs.batch.n
    eta = batch.values if batch.thin else batch.values.reshape(n, -1)
    chosen = trace.predictions.reshape(eta.shape)
    both = eta.multiply(chosen) if batch.thin else eta * chosen
    tp, predicted, positive = (_sums(one, n) for one in (both, chosen, eta))
    return trace.metric.value(Counts(tp, predicted, positive, float(n)))


def show(found: Found, console: Console) -> None:
    """Print the data in a sentence, the table, and what a reader has to know."""
    for note in found.inputs.notes:
        console.print(note, soft_wrap=True)
    console.print(found.inputs.sentence(), soft_wrap=True)
    for choice in found.choices.values():
        _show_choice(choice, console, labels=len(found.choices) == 1)
    if found.choices:
        console.print("Policies online, each row decided before its labels are seen:")
    grid = _blind_grid(found) if found.comparison is None else found.comparison.grid(True)
    for table in fitting(grid, console):
        console.print(table)
    console.print(" ".join(grid.notes))  # under the table it would be as narrow as that
    if found.comparison is not None and _hindsight(found.comparison):
        console.print("* Chosen with hindsight on the rows judged: a ceiling, not a rival.")
    for remark in remarks(found):
        console.print(remark)


def _show_choice(choice: Choice, console: Console, *, labels: bool) -> None:
    """What to deploy, in words; the candidates; and what the best does for each label."""
    console.print()
    console.print(choice.verdict, style="bold")
    equals = [one.title for one in choice.candidates if one.as_good and one is not choice.best]
    if equals:
        console.print(f"By these rows as good: {', '.join(equals)}.")
    lines = tuple(line[: len(RULES)] for line in choice.table.lines)
    console.print(replace(choice.table, columns=RULES, lines=lines, note=""))
    console.print(f"{choice.metric} in %, {choice.how}: {CROSS_FITTED}")
    for note in choice.notes:
        console.print(note, soft_wrap=True)
    gains = choice.best.name != SIMPLE  # the simple rule gains nothing over itself
    if labels and gains and choice.labels is not None and choice.rule.m > 1:
        console.print()
        _show_labels(choice.label_table, console)
    console.print()


def _show_labels(table: Table, console: Console) -> None:
    """All labels, or of many those that gain and lose most."""
    order = sorted(range(len(table.lines)), key=lambda at: -table.data[at]["gain"])
    left = len(order) - MOST - LEAST
    kept = order if left <= 0 else order[:MOST] + order[-LEAST:]
    if all(np.isnan(one["threshold"]) for one in table.data):  # a budget has none
        columns = tuple(name for name in table.columns if name != "threshold")
        place = table.columns.index("threshold")
        lines = tuple((*line[:place], *line[place + 1 :]) for line in table.lines)
        table = replace(table, columns=columns, lines=lines)
    shown = replace(table, lines=tuple(table.lines[at] for at in kept), note="")
    console.print(shown)
    more = f" {left:,} labels between these are left out; --json has them." if left > 0 else ""
    console.print(f"{table.note}{more}")


def _hindsight(comparison: Comparison) -> list[str]:
    return [name for name in comparison.policies if comparison.titles[name].endswith("*")]


def _blind_grid(found: Found) -> Grid:
    """What each policy may be worth, if the probabilities are right."""
    job = found.job
    columns = tuple(titled(*target) for target in job.targets)
    entries = tuple(
        tuple(
            Entry(expected(found.inputs, found.blind[name, column]))
            if (name, column) in found.blind
            else Entry(instead=UNSUPPORTED)
            for column in columns
        )
        for name in job.policies
    )
    note = "No labels: values are what they would be if the probabilities were right, in %."
    titles = {**TITLES, "baseline": baseline_title(job)}
    return Grid(columns, tuple(titles[name] for name in job.policies), entries, (note,))


def as_json(found: Found, wrote: dict[str, str]) -> str:
    """Everything as one JSON object; unknown numbers are null."""
    content: dict[str, Any] = {
        "rows": found.inputs.batch.n,
        "labels": found.inputs.batch.m,
        "notes": list(found.inputs.notes),
    }
    if found.comparison is None:
        content["expected"] = [
            {"policy": name, "metric": metric, "value": expected(found.inputs, trace)}
            for (name, metric), trace in found.blind.items()
        ]
    else:
        content["results"] = found.comparison.rows
        content["runs"] = found.comparison.runs
        if not found.inputs.batch.class_ids:
            content["calibration_error"] = trust(found.inputs)[0]
        content["hindsight"] = _hindsight(found.comparison)
        content["choices"] = [_told(choice) for choice in found.choices.values()]
    content["remarks"] = list(remarks(found))
    content["wrote"] = sorted(wrote)
    return json.dumps(finite(content))


def _told(choice: Choice) -> dict[str, Any]:
    """A recommendation as data."""
    labels = [] if choice.labels is None else choice.label_table.data
    return {
        "metric": choice.metric,
        "verdict": choice.verdict,
        "best": choice.best.name,
        "notes": list(choice.notes),
        "as_good": [one.name for one in choice.candidates if one.as_good],
        "rules": choice.data,
        "labels": labels,
    }


def remarks(found: Found) -> Iterator[str]:
    """What a reader of the table has to know, a sentence each."""
    for metric, k in found.job.targets:
        if k is None and everything_is_best(found.inputs, metric):
            what = metric.name if metric.binary else f"{metric.name} without a budget"
            how = "choose another metric, such as f1" if metric.binary else "pass -k"
            yield f"{what} is maximal when everything is predicted: {how}."
    if found.inputs.y is not None and not found.inputs.batch.class_ids:
        yield trust(found.inputs)[1]


def everything_is_best(inputs: Inputs, metric: Metric) -> bool:
    """Whether no decision can be better than to predict every label in every row."""
    positive = _sums(inputs.batch.values if inputs.y is None else inputs.y, inputs.batch.n)
    n = float(inputs.batch.n)
    positive = in_proportion(positive, n, n - inputs.rows_known)
    if (positive == n).all():  # then it is right, and no fault of the metric
        return False
    everything = Counts(positive, np.full(len(positive), n), positive, n)
    exact = Counts(positive, positive, positive, n)
    return metric.value(everything) >= metric.value(exact)


def _sums(values: Any, n: int) -> NDArray[np.float64]:
    matrix = values if sparse.issparse(values) else np.reshape(values, (n, -1))
    return np.asarray(matrix.sum(axis=0, dtype=np.float64)).ravel()


def trust(inputs: Inputs) -> tuple[float, str]:
    """How far probabilities are from frequencies on average, and whether that is much."""
    curve = reliability(inputs.batch, bins=20)
    full = curve.count > 0
    share = curve.count[full] / curve.count.sum()
    predicted, rate = curve.predicted[full], float(share @ curve.observed[full])
    # What chance alone makes of right probabilities, and a tenth of what there is to find.
    chance = float(share @ np.sqrt(predicted * (1 - predicted) / curve.count[full]))
    gap = curve.expected_error
    words = (
        f"on average they are {100 * gap:.2g} percentage points from how often labels are true, "
        f"which is {100 * rate:.2g} % of the time"
    )
    if gap <= 0.1 * rate + 2 * chance:
        return gap, f"The probabilities look calibrated: {words}."
    return gap, (
        f"The probabilities do not look calibrated: {words}. OMMA(η̂) trusts them, and does better "
        "where they are right."
    )

"""The work of ``omma evaluate``: compare, decide, write and show."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from omma._atomic import replacing
from omma.calibration import reliability
from omma.cli.inputs import Inputs, check_task
from omma.cli.targets import make_policy
from omma.comparison import NAMES, Comparison, compare
from omma.comparison.entrants import read_entrants
from omma.counts import Counts
from omma.datasets import write_matrix
from omma.evaluation import Trace, replay
from omma.metrics import Metric
from omma.policies import UnsupportedMetricError
from omma.tables import UNSUPPORTED, Entry, Grid, to_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ALL = tuple(name for name in NAMES if name != "top_k_or_half")
USUAL = ("baseline", "tuned", "ofo", "greedy", "omma", "omma_eta")
BLIND = ("baseline", "omma_eta")  # what runs without labels, unless somebody asks for more
HINDSIGHT = "Tuned on these rows*"


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    targets: list[tuple[Metric, int | None]]
    policies: tuple[str, ...]
    priors: tuple[float, ...]
    seeds: tuple[int | None, ...]
    decide: str | None
    asked: bool = True  # whether somebody named the policies


@dataclass(frozen=True)
class Found:
    """What came out: a comparison, or traces where there are no labels to judge by."""

    job: Job
    inputs: Inputs
    train: Any
    comparison: Comparison | None
    blind: dict[tuple[str, str], Trace]

    @property
    def decider(self) -> str:
        """Whose decisions are written."""
        if self.job.decide is not None:
            return self.job.decide
        if len(self.job.policies) == 1:
            return self.job.policies[0]
        return "omma_eta" if self.inputs.y is None else "omma"

    @cached_property
    def trace(self) -> Trace:
        """The decisions of one policy, by the first metric, on the first sequence."""
        metric, k = self.job.targets[0]
        name = titled(metric, k)
        prior = self.job.priors[0]
        if self.comparison is not None and (self.decider, name) in self.comparison.cells:
            best = self.comparison.cells[self.decider, name].prior
            prior = prior if best is None else best
        try:
            policy = make_policy(self.decider, metric, k, prior, self.train)
        except UnsupportedMetricError as error:
            raise ValueError(f"{self.decider} cannot decide by {name}: {error}") from error
        return replay(policy, self.inputs.eta, self.inputs.y, metric=metric, seed=self.job.seeds[0])


def titled(metric: Metric, k: int | None) -> str:
    """A metric's name with its budget, where it needs one."""
    return metric.name if k is None or metric.multiclass else f"{metric.name}@{k}"


def chosen_policies(given: tuple[str, ...], labels: bool) -> tuple[str, ...]:
    """Whom to compare."""
    if given:
        blind = [name for name in given if name.endswith("_eta") or name == "baseline"]
        if not labels and len(blind) < len(given):
            other = next(name for name in given if name not in blind)
            raise ValueError(
                f"{other} needs --labels; without them baseline runs, and names that end in _eta"
            )
        return tuple(dict.fromkeys(given))
    return USUAL if labels else BLIND


def run(job: Job, inputs: Inputs, train: Any, *, progress: bool) -> Found:
    """Run every policy for every metric."""
    check_task(inputs, job.targets)
    if inputs.y is None:
        return Found(job, inputs, None, None, dict(_blind(job, inputs)))
    sample = (inputs.eta, inputs.y) if train is None else train
    results = compare(
        inputs.eta,
        inputs.y,
        [(metric, k) if not metric.multiclass else metric for metric, k in job.targets],
        list(job.policies),
        train=sample,
        seeds=job.seeds,
        priors=job.priors,
        progress=progress,
    )
    titles = dict(results.titles)
    if "baseline" in titles:
        titles["baseline"] = _baseline(job)
    if "tuned" in titles and train is None:
        titles["tuned"] = HINDSIGHT
    if "offline_fw" in titles and train is None:
        titles["offline_fw"] = "Offline-FW on these rows*"
    kept = tuple(one for one in results.policies if job.asked or _runs(results, one))
    return Found(job, inputs, sample, replace(results, policies=kept, titles=titles), {})


def _runs(results: Comparison, policy: str) -> bool:
    """Whether a policy supports any of the metrics."""
    return any(results.cell(policy, metric).supported for metric in results.metrics)


def _baseline(job: Job) -> str:
    budgets = {k for _, k in job.targets}
    if budgets == {None}:
        return "Threshold 0.5"
    return f"Top-{budgets.pop()}" if len(budgets) == 1 else "Top-k / 0.5"


def _blind(job: Job, inputs: Inputs) -> Iterator[tuple[tuple[str, str], Trace]]:
    """What policies decide that need no labels."""
    for name in job.policies:
        for metric, k in job.targets:
            try:
                policy = make_policy(name, metric, k, job.priors[0])
            except UnsupportedMetricError:
                continue
            yield (
                (name, titled(metric, k)),
                replay(policy, inputs.eta, metric=metric, seed=job.seeds[0]),
            )


def expected(inputs: Inputs, trace: Trace) -> float:
    """What the metric would be if the probabilities were right: η is counted in place of labels."""
    eta = inputs.eta if sparse.issparse(inputs.eta) else inputs.eta.reshape(inputs.n, -1)
    chosen = trace.predictions.reshape(eta.shape)
    both = eta.multiply(chosen) if sparse.issparse(eta) else eta * chosen
    tp, predicted, positive = (
        np.asarray(one.sum(axis=0, dtype=np.float64)).ravel() for one in (both, chosen, eta)
    )
    return trace.metric.value(Counts(tp, predicted, positive, float(inputs.n)))


def write(
    found: Found, picture: Path | None, predictions: Path | None, rule: Path | None
) -> dict[str, str]:
    """Write what was asked for; a sentence about each file."""
    wrote = {}
    if picture is not None and found.comparison is not None:
        from omma.plots import save

        save(found.comparison.plot(), picture)
        wrote["plot"] = f"Saved the running performance to {picture}"
    whose = f"{found.decider} by {titled(*found.job.targets[0])}"
    if predictions is not None:
        write_matrix(predictions, found.trace.predictions, _names(found, predictions))
        wrote["predictions"] = f"Saved the decisions of {whose} to {predictions}"
    if rule is not None:
        with replacing(rule) as file:
            file.write(found.trace.rule.to_json().encode() + b"\n")
        wrote["rule"] = f"Saved the rule of {whose} to {rule}"
    return wrote


def _names(found: Found, path: Path) -> tuple[str, ...] | None:
    named = {".csv", ".tsv", ".npz", ".parquet"} & {one.lower() for one in path.suffixes}
    return found.inputs.names if named else None


def show(found: Found, console: Console) -> None:
    """Print the data in a sentence, the table, and what a reader has to know."""
    for note in found.inputs.notes:
        console.print(note, soft_wrap=True)
    console.print(found.inputs.sentence(), soft_wrap=True)
    if found.comparison is None:
        tables = [to_terminal(_blind_grid(found))]
    else:
        tables = list(_tables(found.comparison, console))
    caption = tables[0].caption
    for table in tables:
        table.caption = None  # it would be as narrow as the table
        console.print(table)
    console.print(caption)
    if found.comparison is not None and _hindsight(found.comparison):
        console.print("* Chosen with hindsight on the rows judged: a ceiling, not a rival.")
    if found.inputs.y is not None:
        console.print(trust(found.inputs)[1])


def trust(inputs: Inputs) -> tuple[float, str]:
    """How far probabilities are from frequencies on average, and whether that is much."""
    curve = reliability(inputs.eta, inputs.y, bins=20)
    full = curve.count > 0
    share = curve.count[full] / curve.count.sum()
    predicted, rate = curve.predicted[full], float(share @ curve.observed[full])
    # What chance alone makes of right probabilities, and a tenth of what there is to find.
    chance = float(share @ np.sqrt(predicted * (1 - predicted) / curve.count[full]))
    gap = curve.expected_error
    words = (
        f"{100 * gap:.2g} points from frequencies on average, where {100 * rate:.2g} % is positive"
    )
    if gap <= 0.1 * rate + 2 * chance:
        return gap, f"The probabilities look calibrated: {words}."
    return gap, (
        f"The probabilities do not look calibrated: {words}. OMMA(η̂) trusts them, and does better "
        "where they are right."
    )


def _hindsight(comparison: Comparison) -> list[str]:
    return [name for name in comparison.policies if comparison.titles[name].endswith("*")]


def _tables(comparison: Comparison, console: Console) -> Iterator[Table]:
    """The comparison by as many metrics at a time as the terminal has room for."""
    metrics = list(comparison.metrics)
    while metrics:
        for number in range(len(metrics), 0, -1):
            table = replace(comparison, metrics=tuple(metrics[:number])).to_terminal()
            table.caption, caption = None, table.caption
            if _width(table, console) <= console.width or number == 1:
                break
        table.caption = caption
        yield table
        metrics = metrics[number:]


def _width(table: Table, console: Console) -> int:
    """How wide the table would be with all the room it wants."""
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=10_000), table).maximum


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
    return Grid(columns, tuple(_title(job, name) for name in job.policies), entries, (note,))


def _title(job: Job, name: str) -> str:
    if name == "baseline":
        return _baseline(job)
    (entrant,) = read_entrants([name], None, job.priors)
    return entrant.title


def as_json(found: Found, wrote: dict[str, str]) -> str:
    """Everything as one JSON object; unknown numbers are null."""
    content: dict[str, Any] = {
        "rows": found.inputs.n,
        "labels": found.inputs.m,
        "notes": list(found.inputs.notes),
    }
    if found.comparison is None:
        content["expected"] = [
            {"policy": name, "metric": metric, "value": expected(found.inputs, trace)}
            for (name, metric), trace in found.blind.items()
        ]
    else:
        content["results"] = [_plain(row) for row in found.comparison.rows]
        content["runs"] = [_plain(row) for row in found.comparison.runs]
        content["calibration_error"] = trust(found.inputs)[0]
        content["hindsight"] = _hindsight(found.comparison)
    content["wrote"] = sorted(wrote)
    return json.dumps(content)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in row.items()
    }

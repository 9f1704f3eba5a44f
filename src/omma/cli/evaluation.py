"""The work of ``omma evaluate``: choose a rule, compare policies, decide and write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omma._atomic import replacing
from omma.choice import Choice, choose
from omma.choice.makers import Task, simple_rule
from omma.cli.inputs import Inputs
from omma.cli.targets import make_policy
from omma.comparison import NAMES, Comparison, compare
from omma.comparison.entrants import TITLES
from omma.datasets import write_matrix
from omma.datasets.csv_text import csv_line, spreadsheet_text
from omma.datasets.matrices import TABLES, file_ending
from omma.datasets.text import compressing
from omma.evaluation import replay
from omma.metrics import Metric
from omma.metrics.target import Target
from omma.policies import FixedRule, Policy, UnsupportedMetricError
from omma.rows.batch import Batch
from omma.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = tuple(name for name in NAMES if name != "top_k_or_half")
USUAL = ("baseline", "tuned", "auto", "ofo", "greedy", "omma", "omma_eta")
BLIND = ("baseline", "omma_eta")  # what runs without labels, unless somebody asks for more
TRAINED = ("tuned", "offline_fw")  # what learns beforehand
BOUNDED = ("baseline", "auto", "omma", "omma_eta")  # what can predict up to so many labels a row
HINDSIGHT = {"tuned": "Tuned on these rows*", "offline_fw": "Offline-FW on these rows*"}
FOLDS = 5


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    targets: list[tuple[Metric, int | None]]
    policies: tuple[str, ...]
    priors: tuple[float, ...]
    seeds: tuple[int | None, ...]
    decide: str | None
    asked: bool = True  # whether somebody named the policies
    at_most: int | None = None

    def policy(
        self, name: str, metric: Metric, k: int | None, prior: float, m: int, train: Any = None
    ) -> Policy:
        """One of the policies, for so many labels."""
        if name == "baseline" and self.at_most is not None:
            return FixedRule(simple_rule(Task(metric, None, self.at_most, m)))
        return make_policy(name, metric, k, prior, train, at_most=self.at_most)


@dataclass(frozen=True)
class Found:
    """What came out: a comparison, or traces where there are no labels to judge by."""

    job: Job
    inputs: Inputs
    train: Batch | None
    comparison: Comparison | None
    blind: dict[tuple[str, str], Trace]
    choices: dict[str, Choice] = field(default_factory=dict)

    @property
    def decider(self) -> str:
        """Whose decisions are written."""
        if self.job.decide is not None:
            return self.job.decide
        if len(self.job.policies) == 1:
            return self.job.policies[0]
        return "omma_eta" if self.inputs.y is None else "auto"

    @property
    def choice(self) -> Choice | None:
        """What is recommended by the first metric, unless somebody else is to decide."""
        first = titled(*self.job.targets[0])
        return None if self.job.decide is not None else self.choices.get(first)

    @cached_property
    def trace(self) -> Trace:
        """The decisions of one policy, by the first metric, on the first sequence."""
        metric, k = self.job.targets[0]
        name = titled(metric, k)
        prior = self.job.priors[0]
        if self.comparison is not None and (self.decider, name) in self.comparison.cells:
            best = self.comparison.cells[self.decider, name].prior
            prior = prior if best is None else best
        batch, train = self.inputs.batch, self.train
        try:
            policy = self.job.policy(self.decider, metric, k, prior, batch.m, train)
        except UnsupportedMetricError as error:
            raise ValueError(f"{self.decider} cannot decide by {name}: {error}") from error
        return replay(policy, batch, metric=metric, seed=self.job.seeds[0])


def titled(metric: Metric, k: int | None) -> str:
    """A metric's name with its budget, where it needs one."""
    return str(Target(metric.name, None if metric.multiclass else k))


def chosen_policies(
    given: tuple[str, ...], labels: bool, at_most: int | None = None
) -> tuple[str, ...]:
    """Whom to compare."""
    if given:
        check_bounded(given, at_most)
        blind = [name for name in given if name.endswith("_eta") or name == "baseline"]
        if not labels and len(blind) < len(given):
            other = next(name for name in given if name not in blind)
            raise ValueError(
                f"{other} needs --labels; without them baseline runs, and names that end in _eta"
            )
        return tuple(dict.fromkeys(given))
    every = USUAL if labels else BLIND
    return every if at_most is None else tuple(name for name in every if name in BOUNDED)


def check_bounded(given: tuple[str, ...], at_most: int | None) -> None:
    """Refuse policies that cannot predict up to so many labels a row, where that is wanted."""
    others = [name for name in given if name not in BOUNDED]
    if at_most is not None and others:
        known = f"{', '.join(BOUNDED[:-1])} and {BOUNDED[-1]}"
        raise ValueError(f"{others[0]} does not go with --at-most; {known} do")


def run(job: Job, inputs: Inputs, train: Batch | None, *, progress: bool) -> Found:
    """Run every policy for every metric."""
    if inputs.y is None:
        return Found(job, inputs, None, None, dict(_blind(job, inputs)))
    check_one_class(inputs.batch, job)
    sample = inputs.batch if train is None else train
    results = compare(
        inputs.batch,
        None,
        [(metric, k) if not metric.multiclass else metric for metric, k in job.targets],
        list(job.policies) if job.at_most is None else _bounded(job, inputs.batch.m),
        train=sample if set(TRAINED) & set(job.policies) else None,
        seeds=job.seeds,
        priors=job.priors,
        progress=progress,
    )
    own = {"baseline": baseline_title(job)} | (HINDSIGHT if train is None else {})
    titles = {name: own.get(name, TITLES[name]) for name in results.titles}
    supported = {cell.policy for cell in results.cells.values() if cell.supported}
    kept = tuple(one for one in results.policies if job.asked or one in supported)
    compared = replace(results, policies=kept, titles=titles)
    return Found(job, inputs, sample, compared, {}, _choices(job, inputs))


def _choices(job: Job, inputs: Inputs) -> dict[str, Choice]:
    """Which rule to deploy, by each metric; nothing where somebody names who is to be compared."""
    if job.asked or inputs.batch.n < 2:
        return {}
    folds = min(FOLDS, inputs.batch.n)
    return {
        titled(metric, k): choose(
            inputs.batch, None, metric, None if metric.multiclass else k, job.at_most, folds=folds
        )
        for metric, k in job.targets
    }


def _bounded(job: Job, m: int) -> list[tuple[str, Any]]:
    """Policies that predict up to so many labels a row, each with its name."""

    def maker(name: str) -> Any:
        return lambda metric, k, prior: job.policy(name, metric, k, prior, m)

    return [(name, maker(name)) for name in job.policies]


def check_one_class(batch: Batch, job: Job) -> None:
    """Refuse rows of several labels, or none, where a metric is for one class a row."""
    metric = next((metric for metric, _ in job.targets if metric.multiclass), None)
    if metric is None or batch.class_ids or batch.m == 1:
        return
    if batch.odd_row is not None:
        row, found = batch.odd_row
        raise ValueError(
            f"the labels must be one class a row for {metric.name}, got {found} in row {row}; "
            "for rows of several labels choose a macro_ or micro_ metric"
        )


def baseline_title(job: Job) -> str:
    """What the baseline is called, which depends on the budgets."""
    budgets = {k for _, k in job.targets}
    if budgets == {None}:
        return "Threshold 0.5" if job.at_most is None else f"0.5, at most {job.at_most}"
    return f"Top-{budgets.pop()}" if len(budgets) == 1 else "Top-k / 0.5"


def _blind(job: Job, inputs: Inputs) -> Iterator[tuple[tuple[str, str], Trace]]:
    """What policies decide that need no labels."""
    for name in job.policies:
        for metric, k in job.targets:
            try:
                policy = job.policy(name, metric, k, job.priors[0], inputs.batch.m)
            except UnsupportedMetricError:
                continue
            yield (
                (name, titled(metric, k)),
                replay(policy, inputs.batch, metric=metric, seed=job.seeds[0]),
            )


def write(
    found: Found,
    picture: Path | None,
    predictions: Path | None,
    rule: Path | None,
    raw_cells: bool = False,
) -> dict[str, str]:
    """Write what was asked for; a sentence about each file."""
    wrote = {}
    if picture is not None and found.comparison is not None:
        from omma.plots import save

        _check_drawable(found.comparison)
        save(_picture(found, found.comparison), picture)
        what = "rules on unseen rows and policies online" if found.choices else "running values"
        wrote["plot"] = f"Saved a picture of {what} to {picture}"
    whose = f"{found.decider} by {titled(*found.job.targets[0])}"
    if predictions is not None:
        _write_decisions(found, predictions, raw_cells)
        wrote["predictions"] = f"Saved the decisions of {whose} to {predictions}"
    if rule is not None:
        if found.choice is not None:
            made, whose = found.choice.rule, f"{found.choice.best.title} by {found.choice.metric}"
        else:
            made = found.trace.rule.named(found.inputs.batch.names)
        with replacing(rule) as file:
            file.write(made.to_json().encode() + b"\n")
        wrote["rule"] = f"Saved the rule of {whose} to {rule}"
    return wrote


def _check_drawable(comparison: Comparison) -> None:
    """Say why there is nothing to draw, where none of the policies could run."""
    cells = [comparison.cell(one, x) for one in comparison.policies for x in comparison.metrics]
    if not any(cell.supported for cell in cells):
        first = cells[0]
        raise ValueError(
            f"--plot has nothing to draw: no policy ran; {first.policy} by {first.metric}: "
            f"{first.reason}"
        )


def _picture(found: Found, comparison: Comparison) -> Figure:
    """One picture: above, what rules are worth on unseen rows; below, policies as they go on."""
    from omma.plots.choice import above

    if not found.choices:
        return comparison.plot(everything=True)
    star = any(comparison.titles[one].endswith("*") for one in comparison.policies)
    title = f"Policies online{' (*: chosen with hindsight)' * star}. "
    running = comparison.plot(title=title, everything=True)
    panels = {
        f"{name} on unseen rows, %": (choice.bars, choice.best.title)
        for name, choice in found.choices.items()
    }
    return above(running, panels)


def _write_decisions(found: Found, path: Path, raw_cells: bool) -> None:
    """The names of columns and rows go where there is a place for them."""
    ending, compressed = file_ending(path)
    batch = found.inputs.batch
    names = batch.names if ending in (*TABLES, ".parquet", ".npz") else None
    rows = found.inputs.rows if ending in (*TABLES, ".parquet") else None
    if ending in TABLES and not raw_cells:
        names = None if names is None else tuple(map(spreadsheet_text, names))
        rows = rows and (spreadsheet_text(rows[0]), tuple(map(spreadsheet_text, rows[1])))
    if ending in TABLES and batch.class_ids and names and found.job.targets[0][1] == 1:
        # One column with the name of each row's class, as labels are given.
        column = [names[place] for place in np.ravel(found.trace.predictions.argmax(axis=1))]
        columns = [] if rows is None else [(rows[0], *rows[1])]
        lines = zip(*columns, ("class", *column), strict=True)
        with replacing(path) as file, compressing(file, compressed) as text:
            text.writelines(csv_line(cells, TABLES[ending]) for cells in lines)
        return
    write_matrix(path, found.trace.predictions, names, rows)

"""The work of ``omma evaluate``: calls ``omma.choose`` and ``omma.compare``, and writes files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import omma
from omma._atomic import replacing
from omma.cli.options import make_policy
from omma.comparison import NAMES
from omma.comparison.cross_fitting import simple_rule
from omma.datasets import Scored, write_matrix
from omma.datasets.csv_text import csv_line, spreadsheet_text
from omma.datasets.matrices import TABLES, file_ending
from omma.datasets.text import compressing
from omma.metrics.target import Target
from omma.policies import UnsupportedMetricError
from omma.policies.base import whole_for
from omma.policies.registry import REGISTRY

MetricAndBudget = tuple[omma.Metric, int | None]

ALL = tuple(name for name in NAMES if name != "top_k_or_half")  # another name of baseline
USUAL = ("baseline", "tuned", "auto", "ofo", "greedy", "omma", "omma_eta")
BLIND = ("baseline", "omma_eta")  # what runs without labels, unless somebody asks for more
TRAINED = ("tuned", "offline_fw")  # what learns beforehand
BOUNDED = ("baseline", "auto", "omma", "omma_eta")  # what can predict up to so many labels a row
HINDSIGHT = {"tuned": "Tuned on these rows*", "offline_fw": "Offline-FW on these rows*"}
FOLDS = 5


def titled(metric: omma.Metric, k: int | None) -> str:
    """A metric's name with its budget, where it needs one."""
    return str(Target(metric.name, None if metric.multiclass else k))


def check_bounded(names: tuple[str, ...], at_most: int | None) -> None:
    """Refuse policies that cannot predict up to so many labels a row, where that is asked for."""
    others = [name for name in names if name not in BOUNDED]
    if at_most is not None and others:
        known = f"{', '.join(BOUNDED[:-1])} and {BOUNDED[-1]}"
        raise ValueError(f"{others[0]} does not go with --at-most; {known} do")


def chosen_policies(
    names: tuple[str, ...], has_labels: bool, at_most: int | None
) -> tuple[str, ...]:
    """The policies to compare: those that were named, else the usual ones."""
    if not names:
        usual = USUAL if has_labels else BLIND
        return usual if at_most is None else tuple(name for name in usual if name in BOUNDED)
    check_bounded(names, at_most)
    for name in names:
        if not has_labels and not name.endswith("_eta") and name != "baseline":
            raise ValueError(
                f"{name} needs --labels; without them baseline runs, and names that end in _eta"
            )
    return tuple(dict.fromkeys(names))


def fully_labelled(inputs: Scored, metrics: list[MetricAndBudget]) -> Scored:
    """Without rows that are labelled in part, where a metric is about one class a row."""
    labels = inputs.batch.labels
    if labels is None or labels.missing is None:
        return inputs
    for metric, _ in metrics:
        reason = whole_for(metric)
        if reason is not None:
            part = np.diff(labels.missing.indptr) > 0  # rows with unknown entries
            if part.all():
                labels.refuse_partly_known(labels.owner, reason)
            why = f"lack some labels and were skipped: {metric.name} is about one class a row"
            return inputs.without(part, why)
    return inputs


def check_task(
    batch: omma.Batch, metrics: list[MetricAndBudget], at_most: int | None = None
) -> None:
    """Refuse metrics and budgets that do not go with the data, and say what to pass."""
    m = batch.m
    if at_most is not None and at_most > m:
        raise ValueError(f"--at-most must be at most the number of labels, {m}, got {at_most}")
    for metric, k in metrics:
        # Classifiers return two columns for a binary problem, of which the second is positive.
        if metric.binary and m == 2:
            raise ValueError(
                f"{metric.name} takes the probability of one label, and there are 2 columns: pass "
                "--column 1 for the second, or a macro_ or multiclass_ metric"
            )
        metric.check_labels(m)
        if k is not None and k > m:
            raise ValueError(f"k must be at most the number of labels, {m}, got {k}")
        if batch.class_ids and k is None and not metric.multiclass:
            raise ValueError(
                f"the labels are class ids, and {metric.name} has no budget: pass -k 1 to predict "
                "one class a row, or labels as columns of 0 and 1"
            )
        needs_one = metric.multiclass and m > 1 and batch.labels is not None
        if needs_one and batch.odd_row is not None:
            row, count = batch.odd_row
            raise ValueError(
                f"the labels must be one class a row for {metric.name}, got {count} in row {row}; "
                "for rows of several labels choose a macro_ or micro_ metric"
            )


@dataclass(frozen=True)
class Evaluation:
    """Policies online by every metric, and the rule to deploy; each part is run when asked for."""

    inputs: Scored
    train: omma.Batch | None  # rows to tune on beforehand
    targets: list[MetricAndBudget]
    policies: tuple[str, ...]
    priors: tuple[float, ...]
    seeds: tuple[int | None, ...]
    decide: str | None  # whose decisions and rule are written, if somebody said so
    are_named: bool  # whether somebody named the policies
    at_most: int | None
    shows_progress: bool

    @property
    def baseline_title(self) -> str:
        """What the baseline is called, which depends on the budgets."""
        budgets = {k for _, k in self.targets}
        if budgets == {None}:
            return "Threshold 0.5" if self.at_most is None else f"0.5, at most {self.at_most}"
        return f"Top-{budgets.pop()}" if len(budgets) == 1 else "Top-k / 0.5"

    @property
    def sample(self) -> omma.Batch | None:
        """Rows to tune on: those for it, else the rows judged, with hindsight, if labelled."""
        return (
            self.inputs.batch
            if self.train is None and self.inputs.batch.labels is not None
            else self.train
        )

    def policy(self, name: str, metric: omma.Metric, k: int | None, prior: float) -> omma.Policy:
        """One of the policies, trained where it learns beforehand."""
        if name == "baseline" and self.at_most is not None:
            return omma.FixedRule(simple_rule(None, self.at_most, self.inputs.batch.m))
        return make_policy(name, metric, k, prior, self.sample, at_most=self.at_most)

    @cached_property
    def comparison(self) -> omma.Comparison | None:
        """Policies online; None without labels to judge by."""
        if self.inputs.batch.labels is None:
            return None
        policies: list[Any] = [*self.policies]
        if self.at_most is not None:
            policies = [(name, partial(self.policy, name)) for name in self.policies]
        results = omma.compare(
            self.inputs.batch,
            None,
            [metric if metric.multiclass else (metric, k) for metric, k in self.targets],
            policies,
            train=self.sample if set(TRAINED) & set(self.policies) else None,
            seeds=self.seeds,
            priors=self.priors,
            progress=self.shows_progress,
        )
        own = {"baseline": self.baseline_title} | (HINDSIGHT if self.train is None else {})
        titles = {name: own.get(name, REGISTRY[name].title) for name in results.titles}
        # Of the usual policies, those that no metric supports are not worth a line.
        supported = {cell.policy for cell in results.cells.values() if cell.supported}
        lines = tuple(name for name in results.policies if self.are_named or name in supported)
        return replace(results, policies=lines, titles=titles)

    @cached_property
    def choices(self) -> dict[str, omma.Choice]:
        """The rules to deploy, by metric; none where policies were named."""
        if self.are_named or self.inputs.batch.labels is None or self.inputs.batch.n < 2:
            return {}
        return {
            titled(*target): recommend(self.inputs, target, self.at_most) for target in self.targets
        }

    @cached_property
    def blind_traces(self) -> dict[tuple[str, str], omma.Trace]:
        """Without labels: what policies that need none decide, by policy and metric."""
        traces = {}
        for name in self.policies:
            for metric, k in self.targets:
                try:
                    policy = self.policy(name, metric, k, self.priors[0])
                except UnsupportedMetricError:
                    continue
                trace = omma.replay(policy, self.inputs.batch, metric=metric, seed=self.seeds[0])
                traces[name, titled(metric, k)] = trace
        return traces

    @property
    def decider(self) -> str:
        """Whose decisions are written."""
        if self.decide is not None:
            return self.decide
        if len(self.policies) == 1:
            return self.policies[0]
        return "omma_eta" if self.inputs.batch.labels is None else "auto"

    @cached_property
    def trace(self) -> omma.Trace:
        """The decisions of one policy, by the first metric, on the first sequence."""
        metric, k = self.targets[0]
        name, prior = titled(metric, k), self.priors[0]
        if self.comparison is not None and (self.decider, name) in self.comparison.cells:
            best = self.comparison.cells[self.decider, name].prior
            prior = prior if best is None else best
        try:
            policy = self.policy(self.decider, metric, k, prior)
        except UnsupportedMetricError as error:
            raise ValueError(f"{self.decider} cannot decide by {name}: {error}") from error
        return omma.replay(policy, self.inputs.batch, metric=metric, seed=self.seeds[0])

    def run(self) -> None:
        """Run everything that is shown; what is written may take one run more."""
        if self.inputs.batch.labels is None:
            self.blind_traces  # noqa: B018
        else:
            self.comparison, self.choices  # noqa: B018

    def write(
        self, picture: Path | None, predictions: Path | None, rule: Path | None, raw_cells: bool
    ) -> dict[str, str]:
        """Write the files that were asked for; a sentence about each."""
        wrote = {}
        if picture is not None:
            self._draw(picture)
            content = (
                "rules on unseen rows and policies online" if self.choices else "running values"
            )
            wrote["plot"] = f"Saved a picture of {content} to {picture}"
        first = titled(*self.targets[0])
        whose = f"{self.decider} by {first}"
        if predictions is not None:
            self._write_decisions(predictions, raw_cells)
            wrote["predictions"] = f"Saved the decisions of {whose} to {predictions}"
        if rule is not None:
            if self.decide is None and first in self.choices:
                choice = self.choices[first]
                write_rule(choice.rule, rule)
                whose = f"{choice.best.title} by {choice.metric}"
            else:
                write_rule(self.trace.rule.named(self.inputs.batch.names), rule)
            wrote["rule"] = f"Saved the rule of {whose} to {rule}"
        return wrote

    def _draw(self, path: Path) -> None:
        """One picture: above, rules on new rows; below, policies as they go on."""
        from omma.plots.choice import above

        comparison = self.comparison
        assert comparison is not None  # --plot needs --labels
        cells = [
            comparison.cell(policy, metric)
            for policy in comparison.policies
            for metric in comparison.metrics
        ]
        if not any(cell.supported for cell in cells):
            policy, metric, reason = cells[0].policy, cells[0].metric, cells[0].reason
            raise ValueError(
                f"--plot has nothing to draw: no policy ran; {policy} by {metric}: {reason}"
            )
        if not self.choices:
            omma.plots.save(comparison.plot(everything=True), path)
            return
        star = " (*: chosen with hindsight)" if hindsight(comparison) else ""
        running = comparison.plot(title=f"Policies online{star}. ", everything=True)
        panels = {
            f"{name} on new rows, %": (choice.bars, choice.best.title)
            for name, choice in self.choices.items()
        }
        omma.plots.save(above(running, panels), path)

    def _write_decisions(self, path: Path, raw_cells: bool) -> None:
        """Names of columns and rows go along where the format has a place for them."""
        ending, compressed = file_ending(path)
        batch, predictions = self.inputs.batch, self.trace.predictions
        names = batch.names if ending in (*TABLES, ".parquet", ".npz") else None
        rows = self.inputs.rows if ending in (*TABLES, ".parquet") else None
        if ending in TABLES and not raw_cells:
            names = None if names is None else tuple(map(spreadsheet_text, names))
            rows = rows and (spreadsheet_text(rows[0]), tuple(map(spreadsheet_text, rows[1])))
        if ending in TABLES and batch.class_ids and names and self.targets[0][1] == 1:
            # One column with the name of each row's class, as labels are given.
            classes = [names[place] for place in np.ravel(predictions.argmax(axis=1))]
            columns = [("class", *classes)]
            if rows is not None:
                columns.insert(0, (rows[0], *rows[1]))
            with replacing(path) as file, compressing(file, compressed) as text:
                lines = zip(*columns, strict=True)
                text.writelines(csv_line(cells, TABLES[ending]) for cells in lines)
            return
        write_matrix(path, predictions, names, rows)


def recommend(
    inputs: Scored,
    target: MetricAndBudget,
    at_most: int | None,
    subject_to: tuple[str, ...] = (),
) -> omma.Choice:
    """The rule to deploy by one metric, as ``omma.choose`` has it."""
    metric, k = target
    budget, folds = None if metric.multiclass else k, min(FOLDS, inputs.batch.n)
    # Why labels are unknown was looked at when the files were read.
    options: dict[str, Any] = {"subject_to": [*subject_to] or None, "seen": "random"}
    return omma.choose(inputs.batch, None, metric, budget, at_most, folds=folds, **options)


def hindsight(comparison: omma.Comparison) -> list[str]:
    """Policies that were tuned on the rows that they are judged on."""
    return [name for name in comparison.policies if comparison.titles[name].endswith("*")]


def write_rule(rule: omma.Rule, path: Path) -> None:
    """Write a rule as JSON."""
    with replacing(path) as file:
        file.write(rule.to_json().encode() + b"\n")

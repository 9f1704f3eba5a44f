"""The work of ``omma evaluate``: runs ``omma.choose`` and ``omma.compare``, shows and writes."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import omma
from omma._atomic import replacing
from omma._json import finite
from omma.calibration.reliability import CalibrationCheck
from omma.cli.options import make_policy, shows_progress
from omma.comparison.choice import SIMPLE
from omma.comparison.cross_fitting import TUNED
from omma.comparison.protocol import BudgetedMetric
from omma.datasets.csv_text import spreadsheet_text
from omma.datasets.matrices import file_ending, write_matrix
from omma.datasets.scored import Scored
from omma.datasets.tables import NAMED_COLUMNS, SEPARATORS
from omma.plots.choice import above
from omma.policies import UnsupportedMetricError
from omma.policies.base import whole_for
from omma.policies.registry import REGISTRY
from omma.rule import simple_rule
from omma.tables import MISSING, UNSUPPORTED, Grid, GridEntry, fitting, text_grid
from omma.unseen import everything_is_best

HINDSIGHT = {"tuned": "Tuned on these rows*", "offline_fw": "Offline-FW on these rows*"}
FOLDS = 5
VALUES = 4  # columns of the table of rules that have scores and their intervals
MOST, LEAST = 10, 5  # labels in the table: those that gain most, and those that gain least


# Checks of the data.


def fully_labelled(inputs: Scored, targets: list[BudgetedMetric]) -> Scored:
    """Without rows that are labelled in part, if a metric is about one class a row."""
    labels = inputs.batch.labels
    metrics = [target.metric for target in targets if whole_for(target.metric) is not None]
    if not metrics or labels is None or labels.missing is None:
        return inputs
    is_partial = np.diff(labels.missing.indptr) > 0  # rows with unknown entries
    if is_partial.all():
        labels.refuse_partly_known(labels.owner, whole_for(metrics[0]) or "")
    why = f"lack some labels and were skipped: {metrics[0].name} is about one class a row"
    return inputs.without(is_partial, why)


def check_task(batch: omma.Batch, targets: list[BudgetedMetric], at_most: int | None) -> None:
    """Refuse metrics and budgets that do not go with the data, and say what to pass."""
    m = batch.m
    if at_most is not None and at_most > m:
        raise ValueError(f"--at-most must be at most the number of labels, {m}, got {at_most}")
    for _, metric, k in targets:
        metric.check_labels(m)
        if k is not None and k > m:
            raise ValueError(f"k must be at most the number of labels, {m}, got {k}")
        if batch.class_ids and k is None:
            raise ValueError(
                f"the labels are class ids, and {metric.name} has no budget: pass -k 1 to predict "
                "one class a row, or labels as columns of 0 and 1"
            )
        if metric.multiclass and m > 1 and batch.odd_row is not None:
            row, count = batch.odd_row
            raise ValueError(
                f"the labels must be one class a row for {metric.name}, got {count} in row {row}; "
                "for rows of several labels choose a macro_ or micro_ metric"
            )


# Runs.


class Results(NamedTuple):
    """Policies compared online, and a recommended rule by metric.

    Without labels there is neither, but the expected value of each policy by each metric.
    """

    inputs: Scored
    targets: list[BudgetedMetric]
    titles: dict[str, str]  # of the policies, in the order of the table
    comparison: omma.Comparison | None
    choices: dict[str, omma.Choice]
    expected: dict[tuple[str, str], float]
    calibration: CalibrationCheck | None  # None for one class a row, and without labels

    @property
    def hindsight(self) -> list[str]:
        """Policies that were tuned on the rows on which they are scored."""
        return [name for name, title in self.titles.items() if title.endswith("*")]


def run(
    options: Any,
    targets: list[BudgetedMetric],
    policies: tuple[str, ...],
    inputs: Scored,
    train: omma.Batch | None,
) -> None:
    """Compare policies online, choose the rule to deploy, write files, and show it all."""
    batch, at_most, priors = inputs.batch, options.at_most, tuple(dict.fromkeys(options.prior))
    has_labels, first = batch.labels is not None, targets[0]
    progress = shows_progress(batch.n)
    # Rows keep the order of the files unless somebody asks for a seed or for repetitions.
    start = options.seed or 0
    seeds = [options.seed] if options.repeat == 1 else [*range(start, start + options.repeat)]
    # Without --train-eta, thresholds are tuned on the same rows, with hindsight.
    sample = batch if train is None else train

    def policy(name: str, metric: omma.Metric, k: int | None, prior: float) -> omma.Policy:
        if name == "baseline" and at_most is not None:
            return omma.FixedRule(simple_rule(None, batch.m, at_most))
        return make_policy(name, metric, k, prior, sample, at_most=at_most)

    def replayed(name: str, target: BudgetedMetric, prior: float) -> omma.Trace:
        entrant = policy(name, target.metric, target.k, prior)
        return omma.replay(entrant, batch, metric=target.metric, seed=seeds[0])

    own_titles = {"baseline": _baseline_title(targets, at_most)}
    if train is None:
        own_titles |= HINDSIGHT
    titles = {name: own_titles.get(name, REGISTRY[name].title) for name in policies}
    comparison, choices, expected = None, {}, {}
    if has_labels:
        entrants: list[Any] = [*policies]
        if at_most is not None:  # compare makes policies without this bound from their names
            entrants = [(name, partial(policy, name)) for name in policies]
        comparison = omma.compare(
            batch,
            None,
            [target.name for target in targets],
            entrants,
            train=sample,
            seeds=seeds,
            priors=priors,
            progress=progress,
        )
        if not options.policies:
            # The table leaves out usual policies that support none of the metrics.
            supported = {cell.policy for cell in comparison.cells.values() if cell.supported}
            titles = {name: title for name, title in titles.items() if name in supported}
        comparison = replace(comparison, policies=tuple(titles), titles=titles)
        if not options.policies and batch.n > 1:
            choices = {target.name: recommend(batch, target, at_most) for target in targets}
    else:
        for name, target in product(policies, targets):
            with suppress(UnsupportedMetricError):
                decisions = replayed(name, target, priors[0]).predictions
                # Probabilities take the place of labels.
                counts = omma.Counts.from_labels(batch.values, decisions, n_labels=batch.m)
                expected[name, target.name] = target.metric.value(counts)
    # The check of a choice also says what calibration would gain on its metric.
    calibration = next((choice.calibration for choice in choices.values()), None)
    if calibration is None and has_labels and not batch.class_ids:
        calibration = CalibrationCheck.of(batch)
    results = Results(inputs, targets, titles, comparison, choices, expected, calibration)

    # All that can fail runs before the first file is written.
    usual = "auto" if has_labels else "omma_eta"
    decider = options.decide or (policies[0] if len(policies) == 1 else usual)
    recommended = None if options.decide else choices.get(first.name)
    whose = maker = f"{decider} by {first.name}"
    trace: Any = None
    rule: Any = None
    if options.predictions is not None or (options.rule is not None and recommended is None):
        cells = {} if comparison is None else comparison.cells
        prior = cells[decider, first.name].prior if (decider, first.name) in cells else None
        try:
            trace = replayed(decider, first, priors[0] if prior is None else prior)
        except UnsupportedMetricError as error:
            raise ValueError(f"{decider} cannot decide by {first.name}: {error}") from error
    if recommended is not None:
        rule, maker = recommended.rule, f"{recommended.best.title} by {recommended.metric}"
    elif options.rule is not None:
        rule = trace.rule

    content = "rules on unseen rows and policies online" if choices else "running values"
    wrote = _write(options, partial(_draw, results), content, rule, maker)
    if options.predictions is not None:
        _write_decisions(options.predictions, trace, inputs, options.raw_cells)
        wrote["predictions"] = f"Saved the decisions of {whose} to {options.predictions}"
    if options.as_json:
        click.echo(json.dumps(finite(_data(results, wrote))))
        return
    _show(results, Console(highlight=False))
    for sentence in wrote.values():
        click.echo(sentence)


def recommend(
    batch: omma.Batch, target: BudgetedMetric, at_most: int | None, subject_to: Any = ()
) -> omma.Choice:
    """The recommendation of ``omma.choose`` for one metric."""
    # seen="random": --seen was checked when the files were read.
    return omma.choose(
        batch,
        None,
        target.name,
        at_most=at_most,
        subject_to=[*subject_to] or None,
        folds=min(FOLDS, batch.n),
        seen="random",
    )


def _baseline_title(targets: list[BudgetedMetric], at_most: int | None) -> str:
    """The title of the baseline, which depends on the budgets."""
    budgets = {target.k for target in targets}
    if budgets == {None}:
        return "Threshold 0.5" if at_most is None else f"0.5, at most {at_most}"
    return f"Top-{budgets.pop()}" if len(budgets) == 1 else "Top-k / 0.5"


def run_limited(options: Any, target: BudgetedMetric, policy: omma.Auto, inputs: Scored) -> None:
    """Score rules under limits on unseen rows, run Auto under them online, and show both."""
    batch = inputs.batch
    if batch.n < 2:
        raise ValueError("--subject-to needs at least two rows, some to judge rules of the others")
    # The choice is about fixed rules on unseen rows; the trace shows how Auto keeps limits online.
    choice = recommend(batch, target, options.at_most, options.subject_to)
    trace = omma.replay(policy, batch, seed=options.seed)
    rule, maker = choice.rule, choice.best.title
    if options.decide == "auto":
        rule, maker = trace.rule, "Auto after all rows"
    elif options.decide == TUNED:
        # Thresholds are tuned label by label, which needs a metric that is a mean over labels.
        if TUNED not in [candidate.name for candidate in choice.candidates]:
            raise ValueError(
                "--decide tuned needs a macro_ metric or one of one label, and no budget, got "
                f"{target.name}"
            )
        tuner = omma.TunedThresholds(target.metric, policy.limits)
        rule, maker = tuner.fit(batch).decision.named(batch.names), "tuned thresholds"
    # Files are written first, so that an error there is not lost below the tables.
    draw = partial(omma.plots.plot_limits, {"Auto": trace})
    wrote = _write(options, draw, "the metric and the limits so far", rule, maker)
    if options.as_json:
        limits = [
            {
                "limit": str(status.limit),
                "value": status.value,
                "interval": list(status.interval),
                "holds": status.holds,
                "error": status.error,
            }
            for status in trace.limits
        ]
        content = {
            "metric": trace.metric.name,
            "notes": list(inputs.notes),
            "online": {"value": trace.value, "limits": limits},
            "choice": _choice_data(choice),
        }
        click.echo(json.dumps(finite(content), indent=2))
        return
    console = Console(highlight=False)
    _show_inputs(inputs, console)
    _show_choice(choice, console, with_labels=True)
    value = 100 * (trace.value or 0.0)
    console.print(f"Auto online over all rows: {trace.metric.name} {value:.2f} %.")
    for status in trace.limits:
        console.print(f"{status}.", soft_wrap=True, markup=False)
    for sentence in wrote.values():
        click.echo(sentence)


def run_frontier(options: Any, target: BudgetedMetric, inputs: Scored) -> None:
    """Show the best score under each bound of a limit."""
    metric = target.metric
    costs = omma.frontier(inputs.batch, None, metric, options.frontier, k=target.k)
    if options.plot is not None:
        omma.plots.save(omma.plots.plot_frontier(costs).figure, options.plot)  # type: ignore[arg-type]
    if options.as_json:
        content = {
            "metric": metric.name,
            "limit": costs.limit.name,
            "how": costs.how,
            "bounds": costs.bounds.tolist(),
            "reached": costs.reached.tolist(),
            "values": costs.values.tolist(),
            "met": costs.met.tolist(),
            "without": {"limit": costs.free[0], "value": costs.free[1]},
        }
        click.echo(json.dumps(finite(content), indent=2))
        return
    lines = []
    rows = zip(costs.bounds, costs.reached, costs.values, costs.met, strict=True)
    for bound, value, performance, is_met in rows:
        reached = MISSING if np.isnan(value) else f"{value:.4f}{'' if is_met else ' (missed)'}"
        lines.append((f"{bound:.4f}", reached, f"{100 * performance:.2f}"))
    sign = "at least" if costs.limit.sign > 0 else "at most"
    columns = ("reached", f"{metric.name}, %")
    console = Console(highlight=False)
    console.print(text_grid(f"{costs.limit.name} {sign}", columns, lines))
    console.print(f"{costs.how}.", soft_wrap=True)


# Files.


def _write(
    options: Any, draw: Callable[[], Any], content: str, rule: omma.Rule, maker: str
) -> dict[str, str]:
    """Write the files of --plot and --rule; return a sentence about each."""
    wrote = {}
    if options.plot is not None:
        omma.plots.save(draw(), options.plot)
        wrote["plot"] = f"Saved a picture of {content} to {options.plot}"
    if options.rule is not None:
        with replacing(options.rule) as file:
            file.write(rule.to_json().encode() + b"\n")
        wrote["rule"] = f"Saved the rule of {maker} to {options.rule}"
    return wrote


def _draw(results: Results) -> Any:
    """One picture: above, scores of rules on new rows; below, policies online."""
    comparison = results.comparison
    assert comparison is not None  # --plot needs --labels
    if not results.choices:
        return comparison.plot(everything=True)
    star = " (*: chosen with hindsight)" if results.hindsight else ""
    running = comparison.plot(title=f"Policies online{star}. ", everything=True)
    panels = {
        f"{name} on new rows, %": (choice.bars, choice.best.title)
        for name, choice in results.choices.items()
    }
    return above(running, panels)


def _write_decisions(path: Path, trace: Any, inputs: Scored, raw_cells: bool) -> None:
    """Write decisions, with names of columns and rows if the format has a place for them."""
    ending, names, values = file_ending(path), inputs.batch.names, trace.predictions
    rows = inputs.rows if ending in NAMED_COLUMNS else None
    if ending in SEPARATORS and not raw_cells:
        names = names and tuple(map(spreadsheet_text, names))
        rows = rows and (spreadsheet_text(rows[0]), tuple(map(spreadsheet_text, rows[1])))
    if ending in SEPARATORS and inputs.batch.class_ids and names and trace.policy.budget == 1:
        # A column with the name of each row's class, so that the file can be read as labels.
        values, names = np.array(names)[trace.classes], ("class",)
    write_matrix(path, values, names, rows)


# Tables and JSON.


def _show(results: Results, console: Console) -> None:
    """Print a sentence about the data, the tables, and remarks."""
    _show_inputs(results.inputs, console)
    for choice in results.choices.values():
        _show_choice(choice, console, with_labels=len(results.choices) == 1)
    if results.choices:
        console.print("Policies online, each row decided before its labels are seen:")
    if results.comparison is not None:
        grid = results.comparison.grid(True)
    else:
        columns = tuple(target.name for target in results.targets)
        values = {place: GridEntry(value) for place, value in results.expected.items()}
        entries = tuple(
            tuple(values.get((name, column), GridEntry(instead=UNSUPPORTED)) for column in columns)
            for name in results.titles
        )
        note = "No labels: values are expected values, in %, if the probabilities are right."
        grid = Grid(columns, tuple(results.titles.values()), entries, (note,))
    for table in fitting(grid, console):
        console.print(table)
    console.print(" ".join(grid.notes))  # as a caption it would be as narrow as the table
    if results.hindsight:
        console.print("* Tuned on the rows it is judged on: an upper bound, not a fair comparison.")
    for remark in _remarks(results):
        console.print(remark)


def _data(results: Results, wrote: dict[str, str]) -> dict[str, Any]:
    """All results for --json."""
    inputs, comparison = results.inputs, results.comparison
    content: dict[str, Any] = {
        "rows": inputs.batch.n,
        "labels": inputs.batch.m,
        "notes": list(inputs.notes),
    }
    if comparison is None:
        content["expected"] = [
            {"policy": name, "metric": metric, "value": value}
            for (name, metric), value in results.expected.items()
        ]
    else:
        content["results"] = comparison.rows
        content["runs"] = comparison.runs
        if results.calibration is not None:
            content["calibration_error"] = results.calibration.error
            content["calibration"] = asdict(results.calibration)
        content["hindsight"] = results.hindsight
        content["choices"] = [*map(_choice_data, results.choices.values())]
    content["remarks"] = list(_remarks(results))
    content["wrote"] = sorted(wrote)
    return content


def _show_inputs(inputs: Scored, console: Console) -> None:
    """Print a sentence about the data."""
    for note in inputs.notes:
        console.print(note, soft_wrap=True, markup=False)
    batch, m = inputs.batch, inputs.batch.m
    rows = f"{batch.n:,} row{'s' * (batch.n != 1)}"
    title = "classes, one a row" if batch.class_ids else "labels"
    kind = "sparse probabilities" if batch.is_sparse else "probabilities"
    data = f"{rows}, one binary label;" if m == 1 else f"{rows}, {m:,} {title}; {kind},"
    console.print(f"{data} {_about_labels(batch)}", soft_wrap=True)


def _about_labels(batch: omma.Batch) -> str:
    """How many labels there are, in a few words."""
    if batch.labels is None:
        return "no labels."
    positive, base_rates = _occurrences(batch)
    rarest = f"{int(positive.min()):,} rows"
    if batch.class_ids:
        return f"the rarest class is in {rarest}."
    if batch.m == 1:
        return f"{100 * float(base_rates[0]):.3g} % are positive."
    known = ""
    if batch.labels.missing is not None:
        share = 1.0 - batch.labels.missing.nnz / (batch.n * batch.m)
        known = f", {100 * share:.3g} % of all are known"
    return f"{float(base_rates.sum()):.3g} labels a row, the rarest in {rarest}{known}."


def _show_choice(choice: omma.Choice, console: Console, *, with_labels: bool) -> None:
    """Print the recommendation, the table of candidates, and the gain on each label."""
    console.print()
    console.print(choice.verdict, style="bold", markup=False)
    if choice.as_good:
        titles = ", ".join(candidate.title for candidate in choice.as_good)
        console.print(f"Not distinguishable on this data: {titles}.")
    # Scores and limits side by side are too wide for a terminal. The column between them, scores
    # online, is part of the table of policies.
    rules, parts = choice.table, [slice(VALUES), slice(VALUES + 1, None)]
    for part in parts if choice.best.limits else parts[:1]:
        entries = tuple(line[part] for line in rules.entries)
        console.print(replace(rules, columns=rules.columns[part], entries=entries, notes=()))
    console.print(choice.note.partition(" stream:")[0])  # the column that is left out
    for note in choice.notes:
        console.print(note, soft_wrap=True, markup=False)
    gains = choice.best.name != SIMPLE  # the simple rule gains nothing over itself
    if with_labels and gains and choice.labels is not None and choice.rule.m > 1:
        console.print()
        # All labels, or if there are many, those that gain most and least.
        table, order = choice.label_table, np.argsort(-choice.labels.gains, kind="stable")
        left_out = max(0, len(order) - MOST - LEAST)
        if left_out:
            order = np.delete(order, slice(MOST, -LEAST))
        names = tuple(table.names[place] for place in order)
        entries = tuple(table.entries[place] for place in order)
        console.print(replace(table, names=names, entries=entries, notes=()))
        more = f" {left_out:,} labels between these are left out; --json has them."
        console.print(f"{table.notes[0]}{more if left_out else ''}")
    console.print()


def _choice_data(choice: omma.Choice) -> dict[str, Any]:
    """A recommendation for --json."""
    return {
        "metric": choice.metric,
        "verdict": choice.verdict,
        "best": choice.best.name,
        "notes": list(choice.notes),
        "as_good": [candidate.name for candidate in choice.as_good],
        "rules": choice.data,
        "labels": [] if choice.labels is None else choice.label_data,
    }


def _remarks(results: Results) -> Iterator[str]:
    """Sentences that a reader of the table has to know."""
    batch = results.inputs.batch
    # As if labels were known in all rows.
    positive = batch.n * _occurrences(batch)[1]
    for name, metric, k in results.targets:
        is_noted = name in results.choices  # the notes of a choice say the same
        if k is None and not is_noted and everything_is_best(metric, positive, float(batch.n)):
            title = metric.name if metric.binary else f"{metric.name} without a budget"
            advice = "choose another metric, such as f1" if metric.binary else "pass -k"
            yield f"{title} is maximal when everything is predicted: {advice}."
    if results.calibration is not None:
        yield str(results.calibration)


def _occurrences(batch: omma.Batch) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How often each label occurs, and its base rate; by probabilities where labels are not known.

    The base rate is over the rows in which the label is known.
    """
    if batch.labels is None:
        expected = np.ravel(batch.values.sum(axis=0, dtype=np.float64))
        return expected, expected / batch.n
    positive, missing = batch.labels.matrix.sum(axis=0), batch.labels.missing
    known = batch.n if missing is None else batch.n - missing.sum(axis=0, dtype=np.int64)
    return positive, positive / np.maximum(known, 1)

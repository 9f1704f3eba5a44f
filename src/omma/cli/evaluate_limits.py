"""``omma evaluate`` with ``--subject-to`` or ``--frontier``: rules under limits, and their cost."""

from __future__ import annotations

import json
from typing import Any

import click
import numpy as np
from rich.console import Console

import omma
from omma._json import finite
from omma.cli.evaluate_report import choice_data, show_choice, show_inputs
from omma.cli.evaluation import MetricAndBudget, recommend, titled, write_rule
from omma.comparison.cross_fitting import TUNED
from omma.datasets import Scored
from omma.tables import MISSING, texts


def run_limited(options: Any, target: MetricAndBudget, policy: omma.Auto, inputs: Scored) -> None:
    """Judge rules that are made under limits on unseen rows, run Auto online, and show both."""
    batch = inputs.batch
    if batch.n < 2:
        raise ValueError("--subject-to needs at least two rows, some to judge rules of the others")
    # The choice judges fixed rules on unseen rows; the trace shows how Auto keeps limits online.
    choice = recommend(inputs, target, options.at_most, options.subject_to)
    trace = omma.replay(policy, batch, seed=options.seed)
    rule, maker = choice.rule, choice.best.title
    if options.decide == "auto":
        rule, maker = trace.rule.named(batch.names), "Auto after all rows"
    elif options.decide == TUNED:
        # Thresholds are tuned label by label, which needs a metric that is a mean over labels.
        if TUNED not in [candidate.name for candidate in choice.candidates]:
            raise ValueError(
                "--decide tuned needs a macro_ metric or one of one label, and no budget, got "
                f"{titled(*target)}"
            )
        tuner = omma.TunedThresholds(target[0], policy.limits)
        rule, maker = tuner.fit(batch).decision.named(batch.names), "tuned thresholds"
    # Files are written first, so that an error there is not lost below the tables.
    if options.plot is not None:
        omma.plots.save(omma.plots.plot_limits({"Auto": trace}), options.plot)
    if options.rule is not None:
        write_rule(rule, options.rule)
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
            "choice": choice_data(choice),
        }
        click.echo(json.dumps(finite(content), indent=2))
        return
    console = Console(highlight=False)
    show_inputs(inputs, console)
    show_choice(choice, console, with_labels=True)
    value = 100 * (trace.value or 0.0)
    console.print(f"Auto online over all rows: {trace.metric.name} {value:.2f} %.")
    for status in trace.limits:
        console.print(f"{status}.", soft_wrap=True, markup=False)
    if options.plot is not None:
        click.echo(f"Saved a picture of the metric and the limits so far to {options.plot}")
    if options.rule is not None:
        click.echo(f"Saved the rule of {maker} to {options.rule}")


def run_frontier(options: Any, target: MetricAndBudget, inputs: Scored) -> None:
    """Show what each bound of a limit costs."""
    metric, k = target
    costs = omma.frontier(inputs.batch, None, metric, options.frontier, k=k)
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

    def reached(row: Any) -> str:
        return MISSING if np.isnan(row[1]) else f"{row[1]:.4f}{'' if row[3] else ' (missed)'}"

    rows = zip(costs.bounds, costs.reached, costs.values, costs.met, strict=True)
    sign = "at least" if costs.limit.sign > 0 else "at most"
    bound = {f"{costs.limit.name} {sign}": lambda row: f"{row[0]:.4f}"}
    numbers = {"reached": reached, f"{metric.name}, %": lambda row: f"{100 * row[2]:.2f}"}
    console = Console(highlight=False)
    console.print(texts("", list(rows), bound, numbers))
    console.print(f"{costs.how}.", soft_wrap=True)

"""``omma evaluate`` with limits: how a metric fares while they hold, and what each bound costs."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from scipy import sparse

from omma._atomic import replacing
from omma._json import finite
from omma.choice.truth import Truth
from omma.cli.inputs import Inputs
from omma.counts import Counts
from omma.evaluation import replay
from omma.frontiers import Frontier
from omma.held import Held
from omma.limits import Limit
from omma.metrics import LabelMetric, Macro, Metric
from omma.metrics.target import Target
from omma.policies import Auto, FixedRule, TunedThresholds
from omma.rule import Rule
from omma.tables import MISSING, Entry, Grid, texts, to_terminal
from omma.trace import Trace

ONLINE, LAST, TUNED = "Auto, online", "Auto's rule of the first half", "tuned on the first half"


@dataclass(frozen=True)
class Limited:
    """What came out: the whole stream, and three ways to decide its second half.

    ``rule`` is the one to deploy, made of all rows by the way that ``maker`` says.
    """

    metric: Metric
    limits: tuple[Limit, ...]
    trace: Trace
    halves: dict[str, Counts]
    rule: Rule
    maker: str

    def held(self, counts: Counts) -> list[Held]:
        """How limits stand by some counts."""
        return [Held.by(one, counts) for one in self.limits]


def limited(inputs: Inputs, policy: Auto, seed: int | None, decide: str | None = None) -> Limited:
    """Run a policy with limits, and judge what is made of the first half on the second.

    ``decide`` says whose rule is to be deployed: "auto" or "tuned", by default the latter where
    there is such a thing.
    """
    batch, metric = inputs.batch, policy.objective
    middle = batch.n // 2
    if middle == 0:
        raise ValueError("--subject-to needs at least two rows, one half to judge the other by")
    trace = replay(policy, batch, seed=seed)
    order = np.arange(batch.n) if seed is None else np.random.default_rng(seed).permutation(batch.n)
    first, second = batch.take(order[:middle]), batch.take(order[middle:])
    made = trace.predictions
    made = made if sparse.issparse(made) else np.reshape(made, (batch.n, -1))
    halves = {ONLINE: Truth.of(second).counts(sparse.csr_array(made)[order[middle:]])}
    rules = {LAST: replay(policy, first, checkpoints=0).rule}
    free = policy.budget is None and policy.at_most is None
    cuts = free and isinstance(metric, Macro | LabelMetric)
    rule, maker = trace.rule, "that of Auto after all rows"
    if decide == "tuned" and not cuts:
        raise ValueError(
            f"--decide tuned needs a macro_ metric or one of one label, and no budget, got "
            f"{Target(metric.name, policy.budget)}"
        )
    if cuts:
        tuner = TunedThresholds(metric, policy.limits)
        rules[TUNED] = tuner.fit(first).decision
        if decide != "auto":
            rule = tuner.fit(batch).decision.named(batch.names)
            maker = "thresholds tuned on all rows"
    for name, one in rules.items():
        counts = replay(FixedRule(one, metric), second, checkpoints=0).counts
        assert counts is not None
        halves[name] = counts
    found = tuple(one.named(batch.names, batch.m, "--subject-to") for one in policy.limits)
    return Limited(metric, found, trace, halves, rule, maker)


def show(found: Limited, console: Console) -> None:
    """A table of the second half, and how limits stand over the whole stream."""
    entries = [
        (Entry(found.metric.value(counts)), *(Entry(instead=_said(one)) for one in held))
        for counts, held in ((each, found.held(each)) for each in found.halves.values())
    ]
    columns = (found.metric.name, *(escape(str(one)) for one in found.limits))
    notes = (
        "the second half of the rows; rules were made of the first; in brackets, where a limit's "
        "value lies on rows like these, with 95 % confidence",
    )
    grid = Grid(columns, tuple(found.halves), tuple(entries), notes, head="decided by")
    console.print(to_terminal(grid))
    assert found.trace.value is not None
    console.print(f"All rows online: {found.metric.name} {100 * found.trace.value:.2f} %.")
    for one in found.trace.limits:
        console.print(f"{one}.", soft_wrap=True, markup=False)


def as_json(found: Limited) -> str:
    """The same for programs."""
    halves = {
        name: {"value": found.metric.value(counts), "limits": _listed(found.held(counts))}
        for name, counts in found.halves.items()
    }
    whole = {"value": found.trace.value, "limits": _listed(list(found.trace.limits))}
    content = {"metric": found.metric.name, "online": whole, "second_half": halves}
    return json.dumps(finite(content), indent=2)


def write(found: Limited, picture: Path | None, rule: Path | None) -> Iterator[str]:
    """Write what was asked for; a sentence for each file."""
    if picture is not None:
        from omma.plots import plot_limits, save

        save(plot_limits({"Auto": found.trace}), picture)
        yield f"Metric and limits so far: {picture}"
    if rule is not None:
        with replacing(rule) as file:
            file.write(found.rule.to_json().encode() + b"\n")
        yield f"Rule to deploy, {found.maker}: {rule}"


def show_costs(found: Frontier, console: Console) -> None:
    """A table with a row for each bound."""
    sign = "at least" if found.limit.sign > 0 else "at most"
    rows = zip(found.bounds, found.reached, found.values, found.met, strict=True)
    grid = texts(
        "",
        list(rows),
        {escape(f"{found.limit.name} {sign}"): lambda row: f"{row[0]:.4f}"},
        {
            "reached": lambda row: (
                MISSING if math.isnan(row[1]) else f"{row[1]:.4f}" + ("" if row[3] else " (missed)")
            ),
            f"{found.metric.name}, %": lambda row: f"{100 * row[2]:.2f}",
        },
    )
    console.print(to_terminal(grid))
    console.print(f"{found.how}.", soft_wrap=True)


def costs_json(found: Frontier) -> str:
    """The same for programs."""
    content = {
        "metric": found.metric.name,
        "limit": found.limit.name,
        "how": found.how,
        "bounds": found.bounds.tolist(),
        "reached": found.reached.tolist(),
        "values": found.values.tolist(),
        "met": found.met.tolist(),
        "without": {"limit": found.free[0], "value": found.free[1]},
    }
    return json.dumps(finite(content), indent=2)


def _said(held: Held) -> str:
    """The value, where it lies on rows like these, and by how much it misses the bound."""
    if math.isnan(held.value):
        return f"{MISSING} (nothing to judge it by)"
    low, high = held.interval
    missed = "" if held.holds else f", misses by {held.excess:.4f}"
    return f"{held.value:.4f} ({low:.3f} to {high:.3f}){missed}"


def _listed(every: list[Held]) -> list[dict[str, Any]]:
    return [
        {
            "limit": str(one.limit),
            "value": one.value,
            "interval": list(one.interval),
            "holds": one.holds,
            "error": one.error,
        }
        for one in every
    ]

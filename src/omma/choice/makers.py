"""The rules that compete, and how each is made of labelled rows."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from omma.evaluation import replay
from omma.limits import Limit
from omma.metrics import Metric
from omma.policies import OMMA, Auto, FrankWolfe, Policy, TunedThresholds, UnsupportedMetricError
from omma.policies.best_mixture import top
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.tables import HAT_ETA

Make = Callable[[Batch], Rule]
SIMPLE, TUNED, AUTO = "baseline", "tuned", "auto"


@dataclass(frozen=True)
class Maker:
    """One way to a rule; ``policy`` is what would run online, where there is such a thing."""

    name: str
    title: str
    make: Make
    policy: Policy | None = None


@dataclass(frozen=True)
class Task:
    """What rules are to maximize, and how many labels a row they may predict."""

    metric: Metric
    k: int | None
    at_most: int | None
    m: int
    limits: tuple[Limit, ...] = ()


def makers(task: Task, frank_wolfe: bool) -> Iterator[Maker]:
    """All that can be made for a task, the simplest first: of equals, the first is the best."""
    simple = simple_rule(task)
    title = "0.5 threshold" if task.k is None else f"top-{task.k} rule"
    yield Maker(SIMPLE, title, lambda batch: simple)
    metric, k, most, limits = task.metric, task.k, task.at_most, task.limits or None
    tuned = None
    if k is None and most is None:
        with suppress(UnsupportedMetricError):  # no thresholds can be found one label at a time
            tuned = TunedThresholds(metric, limits)
    if tuned is not None:
        yield Maker(TUNED, "tuned thresholds", lambda batch: tuned.fit(batch).decision)
    options: dict[str, Any] = {"at_most": most, "subject_to": limits}
    online: tuple[tuple[str, str, Policy], ...] = (
        (AUTO, "Auto", Auto(metric, k, **options)),
        ("omma_eta", f"OMMA({HAT_ETA})", OMMA(metric, k, feedback="estimates", **options)),
        ("omma", "OMMA", OMMA(metric, k, **options)),
    )
    for name, title, policy in online:
        yield Maker(name, title, partial(_last_rule, policy), policy)
    if frank_wolfe:
        yield Maker("frank_wolfe", "Frank-Wolfe's best rule", _offline(task))


def simple_rule(task: Task) -> Rule:
    """What people do without this library: half, or the k most probable."""
    return Rule(*top(task.k, task.m), task.k, at_most=task.at_most)


def _last_rule(policy: Policy, batch: Batch) -> Rule:
    return replay(policy, batch, predictions=False, checkpoints=0).rule


def _offline(task: Task) -> Make:
    if task.at_most is not None:
        raise ValueError("frank_wolfe of choose goes without at_most: it has no such rules")
    if task.limits:
        raise ValueError(
            "frank_wolfe of choose goes without subject_to: its mixture keeps a limit, and no rule "
            "of it alone does"
        )
    search = FrankWolfe(task.metric, task.k)
    return lambda batch: search.fit(batch).deterministic().rules[0]

"""The rules that compete in ``omma.choose``, and how each is made of labelled rows."""

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
SIMPLE, TUNED, AUTO, TRUSTING = "baseline", "tuned", "auto", "omma_eta"


@dataclass(frozen=True)
class Maker:
    """A way to make a rule; ``policy`` is what would run online, for rules that are learned so."""

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
    """All rules that a task has, the simplest first: of equal rules the first is the best."""
    simple = simple_rule(task)
    title = "0.5 threshold" if task.k is None else f"top-{task.k} rule"
    yield Maker(SIMPLE, title, lambda batch: simple)
    metric, k, most, limits = task.metric, task.k, task.at_most, task.limits or None
    if k is None and most is None:
        with suppress(UnsupportedMetricError):  # no thresholds can be found one label at a time
            tuned = TunedThresholds(metric, limits)
            yield Maker(TUNED, "tuned thresholds", lambda batch: tuned.fit(batch).decision)
    options: dict[str, Any] = {"at_most": most, "subject_to": limits}
    yield _online(AUTO, "Auto", Auto(metric, k, **options))
    trusting = OMMA(metric, k, feedback="estimates", **options)
    yield _online(TRUSTING, f"OMMA({HAT_ETA})", trusting)
    yield _online("omma", "OMMA", OMMA(metric, k, **options))
    if frank_wolfe:
        yield Maker("frank_wolfe", "Frank-Wolfe's best rule", _offline(task))


def calibrated(task: Task) -> Maker:
    """OMMA(η̂) on calibrated probabilities: what calibration gains for rules that trust them."""
    options: dict[str, Any] = {"at_most": task.at_most, "subject_to": task.limits or None}
    policy = OMMA(task.metric, task.k, feedback="estimates", calibration="online", **options)
    return _online("calibrated", f"OMMA({HAT_ETA}), calibrated", policy)


def simple_rule(task: Task) -> Rule:
    """The threshold 0.5, or the k most probable labels."""
    return Rule(*top(task.k, task.m), task.k, at_most=task.at_most)


def _online(name: str, title: str, policy: Policy) -> Maker:
    return Maker(name, title, partial(_last_rule, policy), policy)


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

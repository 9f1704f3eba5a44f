"""Metrics, budgets and policies as the command line names them."""

from collections.abc import Callable, Iterable
from typing import Any

import click

from omma.cli.options import Command, sentence, usage
from omma.metrics import Metric, read_target
from omma.policies import Policy

budget_option = click.option(
    "-k",
    "--k",
    "k",
    type=click.IntRange(min=1),
    metavar="N",
    help="Labels that each row gets, exactly; without it each label has a threshold. "
    "multiclass_ metrics take 1.",
)
at_most_option = click.option(
    "--at-most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Labels that each row gets at most, of those that gain; in place of -k.",
)
limits_option = click.option(
    "--subject-to",
    multiple=True,
    metavar="LIMIT",
    help="What must hold, such as 'micro_precision >= 0.9', 'recall[fraud] >= 0.8' or "
    "'labels_per_row <= 2'; may be given several times. With '(margin 1.28)' after it, so many "
    "standard errors away.",
)


def prior_option(text: str, multiple: bool) -> Callable[[Command], Command]:
    """λ, once or several times."""
    return click.option(
        "--prior",
        type=click.FloatRange(min=0.0),
        metavar="λ",
        multiple=multiple,
        default=(1e-6,) if multiple else 1e-6,
        help=text,
    )


def read_metric(text: str, k: int | None) -> tuple[Metric, int | None]:
    """A metric with its budget: what comes after an @, else the one given, else its own."""
    with usage("--metric"):
        found, own = read_target(text)
    budget = k if own is None else own
    if found.binary and budget is not None:
        raise click.BadParameter(
            f"{found.name} is a metric of one label and takes no budget: {found.over_many()}.",
            param_hint="-k",
        )
    if found.multiclass:
        if budget not in (None, 1):
            raise click.BadParameter(
                f"{found.name} is for one class a row, so k must be 1, got {budget}.",
                param_hint="-k",
            )
        budget = 1
    return found, budget


def check_at_most(metric: Metric, k: int | None, at_most: int | None) -> None:
    """Refuse two budgets, and one where there is nothing to leave out."""
    if at_most is None:
        return
    if metric.multiclass or metric.binary or metric.needs_matrix:
        kind = "one label" if metric.binary else "one class a row"
        raise click.BadParameter(
            f"{metric.name} is a metric of {kind} and takes no budget.", param_hint="--at-most"
        )
    if k is not None:
        raise click.UsageError("Pass -k (exactly so many) or --at-most (up to so many), not both.")


def check_policies(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a policy that does not exist."""
    from omma._validate import nearest

    choices = tuple(known)
    for name in names:
        if name not in choices:
            hint = nearest(name, choices) or f"; policies are {', '.join(choices)}"
            raise click.BadParameter(
                sentence(f"unknown policy {name!r}{hint}"), param_hint="--policy"
            )


def make_policy(
    name: str,
    metric: Metric,
    k: int | None,
    prior: float,
    train: Any = None,
    subject_to: tuple[str, ...] = (),
    at_most: int | None = None,
) -> Policy:
    """A policy by the name that comparisons know it by, with limits where these are given."""
    from dataclasses import replace

    from omma.policies.roster import ROSTER

    policy = ROSTER[name].policy(metric, k, prior, train)
    if at_most is not None:
        if not hasattr(policy, "at_most"):
            raise click.BadParameter(
                f"{name} has no such rules: pass --policy auto, omma or omma_eta.",
                param_hint="--at-most",
            )
        policy = replace(policy, at_most=at_most)  # type: ignore[type-var]
    if not subject_to:
        return policy
    if not hasattr(policy, "subject_to"):
        raise click.BadParameter(
            f"{name} keeps no limits: pass --policy auto or omma.", param_hint="--subject-to"
        )
    with usage("--subject-to"):
        limited: Policy = replace(policy, subject_to=list(subject_to))  # type: ignore[type-var]
    return limited

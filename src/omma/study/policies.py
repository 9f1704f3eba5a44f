"""The policies of a study: their names, what they support, and how they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from omma._validate import nearest, shown
from omma.metrics import Metric, metric as find_metric
from omma.policies import Policy, UnsupportedMetricError
from omma.policies.roster import ETA, NAMES, ONLINE, ROSTER, TRAINED as LEARNS_BEFOREHAND
from omma.rows.batch import Batch

# They learn from the training part.
TRAINED = tuple(name for name, entry in ROSTER.items() if entry.kind == LEARNS_BEFOREHAND)


def check_name(owner: str, name: Any) -> str:
    """A policy that a suite may name."""
    if name not in NAMES:
        hint = nearest(str(name), NAMES) or f"; names are {', '.join(NAMES)}"
        raise ValueError(f"policies of {owner} must be known, got {shown(name)}{hint}")
    return str(name)


def parts_of(name: str) -> tuple[str, str | None]:
    """The policy and what it counts; nothing for those that count nothing.

    >>> parts_of("omma_eta"), parts_of("offline_fw")
    (('omma', 'estimates'), ('offline_fw', None))
    """
    if name.endswith(ETA):
        return name.removesuffix(ETA), "estimates"
    return name, "labels" if ROSTER[name].priors else None


def name_of(policy: str, feedback: str | None) -> str:
    """The name again, from the two fields of a record.

    >>> name_of("omma", "estimates")
    'omma_eta'
    """
    return policy + ETA if feedback == "estimates" else policy


def has_prior(name: str) -> bool:
    """Whether λ has to be chosen for it."""
    return ROSTER[name].priors


def learns(name: str) -> bool:
    """Whether its rule changes as rows come.

    >>> learns("auto"), learns("offline_fw")
    (True, False)
    """
    return ROSTER[name].kind == ONLINE


def supports(name: str, metric: str, k: int | None) -> bool:
    """Whether a policy can be run for a metric; a × stands in tables where it cannot.

    >>> supports("ofo", "macro_f1", None), supports("ofo", "macro_f1", 3)
    (True, False)
    """
    target = find_metric(metric)
    try:
        ROSTER[name].make(target, k, 0.0)
    except UnsupportedMetricError:
        return False
    return True


def make(
    name: str,
    metric: Metric,
    k: int | None,
    prior: float | None,
    train: Batch | None = None,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """The policy for one run; those that learn from the training part are fitted here."""
    policy = ROSTER[name].policy(metric, k, prior or 0.0, train)
    return replace(policy, **options) if options else policy  # type: ignore[type-var]


def check_options(owner: str, name: str, options: Mapping[str, Any]) -> None:
    """Options must be those of the policy, and none that the suite sets by itself."""
    check_name(owner, name)
    if not ROSTER[name].priors:
        raise ValueError(f"the policy {name!r} of {owner} takes no options, got {shown(options)}")
    made = make(name, find_metric("macro_f1"), None, 0.0)
    known = {one.name for one in fields(made)} - {"metric", "k", "feedback", "prior", "average"}  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            hint = nearest(option, known) or f"; it has {', '.join(sorted(known)) or 'none'}"
            raise ValueError(f"the policy {name!r} of {owner} has no option {option!r}{hint}")
    replace(made, **options)  # type: ignore[type-var]

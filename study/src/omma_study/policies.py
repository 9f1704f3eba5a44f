"""The policies and estimators that suites may name: what they support, how they are made."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from omma._validate import nearest, shown
from omma.metrics import Metric, metric as find_metric
from omma.policies import Policy, UnsupportedMetricError
from omma.policies.roster import ETA, NAMES, ROSTER, TRAINED as LEARNS_BEFOREHAND
from omma.rows.batch import Batch

# They learn from the training part.
TRAINED = tuple(name for name, entry in ROSTER.items() if entry.kind == LEARNS_BEFOREHAND)
KNOWN = "known"  # the probabilities that made-up data were drawn with
CLASSES = {
    "logistic": "LogisticRegression",
    "multinomial": "Multinomial",
    "adam": "LinearAdam",
    "boosted": "BoostedTrees",
    "online": "OnlineLinear",
}
PROTOCOLS = {
    "fixed": ("logistic", "multinomial", "adam", "boosted", KNOWN),
    "online": ("online", KNOWN),
}


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
    _check_known(f"the policy {name!r} of {owner}", options, known)
    replace(made, **options)  # type: ignore[type-var]


def check_estimator(owner: str, given: Mapping[str, Any], protocol: str) -> None:
    """A known name that fits the protocol, with options that the estimator has."""
    name = given.get("name")
    if not isinstance(name, str):
        raise ValueError(f"estimator of {owner} must have a name, got {shown(dict(given))}")
    every = (*CLASSES, KNOWN)
    if name not in every:
        hint = nearest(name, every) or f"; names are {', '.join(every)}"
        raise ValueError(f"estimator of {owner} must be known, got {name!r}{hint}")
    if name not in PROTOCOLS[protocol]:
        raise ValueError(
            f"estimator of {owner} must fit the protocol {protocol!r}, got {name!r}; those that do "
            f"are {', '.join(PROTOCOLS[protocol])}"
        )
    known = set() if name == KNOWN else {one.name for one in fields(_class(name))}
    _check_known(f"the estimator {name!r} of {owner}", given, {"name", *known})
    if name != KNOWN:
        make_estimator(given)


def make_estimator(given: Mapping[str, Any]) -> Any:
    """The estimator with its options."""
    options = {key: value for key, value in given.items() if key != "name"}
    return _class(given["name"])(**options)


def _class(name: str) -> Any:
    from omma_study import estimators

    return getattr(estimators, CLASSES[name])


def _check_known(whose: str, options: Iterable[str], known: set[str]) -> None:
    for option in options:
        if option not in known:
            names = sorted(known - {"name"})
            hint = nearest(option, names) or f"; it has {', '.join(names) or 'none'}"
            raise ValueError(f"{whose} has no option {option!r}{hint}")

"""The estimators that suites may name, and their options."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from omma._validate import nearest, shown

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
    if name == KNOWN:
        _check_options(owner, name, given, set())
    else:
        kind = _class(name)
        _check_options(owner, name, given, {one.name for one in dataclasses.fields(kind)})
        make_estimator(given)


def make_estimator(given: Mapping[str, Any]) -> Any:
    """The estimator with its options."""
    return _class(given["name"])(**_options(given))


def _class(name: str) -> Any:
    from omma import estimators

    return getattr(estimators, CLASSES[name])


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != "name"}


def _check_options(owner: str, name: str, given: Mapping[str, Any], known: set[str]) -> None:
    for option in _options(given):
        if option not in known:
            hint = nearest(option, known) or f"; it has {', '.join(sorted(known)) or 'none'}"
            raise ValueError(f"the estimator {name!r} of {owner} has no option {option!r}{hint}")

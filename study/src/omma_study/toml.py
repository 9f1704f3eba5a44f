"""Suites from TOML files: those shipped with omma, and a user's own."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from omma._validate import check_choice, check_number, check_positive_int, nearest, shown
from omma.comparison.protocol import PRIORS
from omma.metrics import read_target
from omma_study.policies import TRAINED, check_estimator, check_name, check_options
from omma_study.suite import SEEDS, Source, Suite

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = (
    "title", "paper", "protocol", "task", "datasets", "policies", "metrics", "priors", "seeds",
    "checkpoints", "estimator", "dataset", "policy", "suites",
)  # fmt: skip
DATASET_KEYS = ("max_train", "estimator", "task", "made")
PROTOCOLS = ("fixed", "online")
TASKS = ("multilabel", "multiclass")


def suites() -> list[Suite]:
    """All suites that come with omma.

    Examples
    --------
    >>> import omma_study as study
    >>> [one.name for one in study.suites()][:2]
    ['multiclass_adam', 'multiclass_fixed']
    """
    return [suite(name) for name in shipped()]


def shipped() -> list[str]:
    """Their names."""
    files = resources.files("omma_study") / "suites"
    return sorted(one.name[:-5] for one in files.iterdir() if one.name.endswith(".toml"))


def suite(name: str | Path) -> Suite:
    """A suite that comes with omma, by its name, or one of your own, by the path of its file.

    Examples
    --------
    >>> import omma_study as study
    >>> study.suite("smoke").seeds
    2
    >>> study.suite("smok")
    Traceback (most recent call last):
    ...
    ValueError: there is no suite 'smok'; did you mean 'smoke'? ...
    """
    if str(name) in shipped():
        file = resources.files("omma_study") / "suites" / f"{name}.toml"
        return parse(str(name), file.read_text(encoding="utf-8"))
    path = Path(name)
    if path.suffix != ".toml":
        hint = nearest(str(name), shipped()) or "."
        raise ValueError(
            f"there is no suite {str(name)!r}{hint} They are {', '.join(shipped())}; or give the "
            "path of a .toml file"
        )
    try:
        return parse(path.stem, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"the suite {str(name)!r} cannot be read: {error.strerror}") from error


def parse(name: str, text: str) -> Suite:
    """A suite from the text of its file."""
    owner = f"the suite {name!r}"
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{owner} is no TOML: {error}") from error
    check_keys(owner, given, KEYS)
    title = _text(owner, given, "title")
    if "suites" in given:
        check_keys(f"{owner}, which runs other suites,", given, ("title", "paper", "suites"))
        parts = tuple(map(suite, _list(owner, given, "suites", str)))
        return Suite(name, title, _text(owner, given, "paper", ""), parts=parts)
    _require(owner, given, ("protocol", "datasets", "policies", "metrics", "estimator"))
    protocol = given["protocol"]
    check_choice(owner, "protocol", protocol, PROTOCOLS)
    policies = tuple(check_name(owner, one) for one in _list(owner, given, "policies", str))
    learned = [one for one in policies if one in TRAINED]
    if protocol == "online" and learned:
        raise ValueError(
            f"policies of {owner} cannot hold {learned[0]!r}: it learns from a training part, "
            "which the online protocol does not have"
        )
    options = _tables(owner, given, "policy", policies)
    for policy, table in options.items():
        check_options(owner, policy, table)
    return Suite(
        name,
        title,
        _text(owner, given, "paper", ""),
        tuple(_sources(owner, given, protocol)),
        policies,
        tuple(_target(owner, one) for one in _list(owner, given, "metrics", str)),
        tuple(
            check_number(owner, "priors", one, low=0.0) for one in given.get("priors", list(PRIORS))
        ),
        check_positive_int(owner, "seeds", given.get("seeds", SEEDS)),
        options,
        check_positive_int(owner, "checkpoints", given.get("checkpoints", 50)),
    )


def check_keys(owner: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    """A misspelt key is an error, not a wish that nobody hears."""
    for key in given:
        if key not in known:
            hint = nearest(key, known) or f"; it may have {', '.join(known)}"
            raise ValueError(f"{owner} has the unknown key {key!r}{hint}")


def _sources(owner: str, given: Mapping[str, Any], protocol: str) -> Iterator[Source]:
    """One for each dataset and estimator."""
    names = _list(owner, given, "datasets", str)
    tables = _tables(owner, given, "dataset", names)
    estimators = given["estimator"]
    for name in names:
        table, whose = tables.get(name, {}), f"[dataset.{name}] of {owner}"
        check_keys(whose, table, DATASET_KEYS)
        task = table.get("task", given.get("task"))
        check_choice(whose if "task" in table else owner, "task", task, TASKS)
        made = _table(whose, "made", table.get("made", {}))
        most = check_positive_int(whose, "max_train", table.get("max_train"), optional=True)
        for one in estimators if isinstance(estimators, list) else [estimators]:
            estimator = {**_table(owner, "estimator", one), **table.get("estimator", {})}
            check_estimator(owner, estimator, protocol)
            yield Source(name, str(task), protocol, estimator, made, most)


def _target(owner: str, text: str) -> tuple[str, int | None]:
    """A metric, with its budget after an @."""
    try:
        metric, k = read_target(text)
    except ValueError as error:
        raise ValueError(f"metrics of {owner}: {error}") from error
    return metric.name, 1 if k is None and metric.multiclass else k


def _require(owner: str, given: Mapping[str, Any], keys: Collection[str]) -> None:
    for key in keys:
        if key not in given:
            raise ValueError(f"{owner} must have the key {key!r}, which is missing")


def _text(owner: str, given: Mapping[str, Any], key: str, default: str | None = None) -> str:
    if default is None:
        _require(owner, given, [key])
    value = given.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key} of {owner} must be a text, got {shown(value)}")
    return value


def _list(owner: str, given: Mapping[str, Any], key: str, kind: Callable[..., Any]) -> list[Any]:
    value = given[key]
    good = isinstance(value, list) and value and all(type(one) is kind for one in value)
    if not good or len(set(value)) < len(value):
        raise ValueError(f"{key} of {owner} must be a list of distinct names, got {shown(value)}")
    return list(value)


def _table(owner: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{key} of {owner} must be a table, got {shown(value)}")
    return value


def _tables(
    owner: str, given: Mapping[str, Any], key: str, known: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Tables by name, as [policy.online_fw], each of something that the suite names."""
    found = _table(owner, key, given.get(key, {}))
    check_keys(f"[{key}] of {owner}", found, known)
    return {name: _table(owner, f"{key}.{name}", value) for name, value in found.items()}

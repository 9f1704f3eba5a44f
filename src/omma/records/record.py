"""What a record holds: what was run, what came out, how long it took, with which versions."""

from __future__ import annotations

import platform
import traceback
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import Any

from omma._validate import check_choice, nearest, shown

FORMAT = 1
KINDS = ("study", "theory")
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")

Record = dict[str, Any]
FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "suite": str,
    "kind": str,
    "spec": dict,
    "label": str,
    "result": (dict, type(None)),
    "estimator": (dict, type(None)),
    "seconds": dict,
    "versions": dict,
    "error": (dict, type(None)),
}


def make(
    suite: str,
    spec: Mapping[str, Any],
    label: str,
    *,
    kind: str = "study",
    result: Mapping[str, Any] | None = None,
    seconds: Mapping[str, float] | None = None,
    estimator: Mapping[str, Any] | None = None,
    error: BaseException | None = None,
) -> Record:
    """The record of one run: either a result, or the error that it ended with.

    Parameters
    ----------
    suite : str
        What the run is part of.
    spec : dict
        Everything that decides the outcome; with suite and kind, it is what a run is known by.
    label : str
        How tables name what ran.
    kind : str
        ``"study"`` or ``"theory"``.
    result, seconds, estimator : dict, optional
        What came out, how long each part took, what the estimator says of itself.
    error : exception, optional
        Why there is no result.

    Examples
    --------
    >>> from omma.records import make
    >>> record = make("mine", {"policy": "omma", "seed": 0}, "OMMA", result={"value": 0.7})
    >>> record["result"]["value"], record["error"]
    (0.7, None)
    """
    check_choice("make", "kind", kind, KINDS)
    if (result is None) == (error is None):
        raise ValueError("make takes either a result or an error, and one of them")
    return {
        "format": FORMAT,
        "suite": suite,
        "kind": kind,
        "spec": dict(spec),
        "label": label,
        "result": None if result is None else dict(result),
        "estimator": None if estimator is None else dict(estimator),
        "seconds": dict(seconds or {}),
        "versions": versions(),
        "error": None if error is None else _told(error),
    }


@cache
def _versions() -> dict[str, str]:
    from omma import __version__

    found = {"omma": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # optional, and not there
            continue
    return found


def versions() -> dict[str, str]:
    """Of omma, of Python, and of the packages that numbers depend on.

    Examples
    --------
    >>> from omma.records import versions
    >>> "numpy" in versions()
    True
    """
    return dict(_versions())


def check(record: Any) -> Record:
    """Say in one sentence what a record lacks; else give it back."""
    if not isinstance(record, dict):
        raise ValueError(f"a record must be a JSON object, got {shown(record)}")
    for name, kind in FIELDS.items():
        if name not in record:
            hint = nearest(name, [key for key in record if key not in FIELDS])
            raise ValueError(f"a record must have the field {name!r}{hint or ', which is missing'}")
        if not isinstance(record[name], kind):
            raise ValueError(f"the field {name!r} cannot be {shown(record[name])}")
    if record["format"] != FORMAT:
        raise ValueError(f"its format must be {FORMAT}, got {record['format']}")
    check_choice("a record", "kind", record["kind"], KINDS)
    if (record["result"] is None) == (record["error"] is None):
        raise ValueError("a record must have either a result or an error")
    return record


def _told(error: BaseException) -> dict[str, str]:
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": "".join(lines),
    }

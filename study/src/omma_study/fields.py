"""What the record of a study must hold, so that tables and figures can be made of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from omma._validate import check_choice, check_number, check_positive_int, check_seed, shown
from omma.counts import Counts
from omma.metrics import metric as find_metric
from omma_study.policies import check_name, name_of
from omma_study.records import Record

OWNER = "the record of a study"
WORDS = ("dataset", "task", "protocol", "policy", "metric")
FEEDBACK = (None, "labels", "estimates")


def check_study(record: Record) -> None:
    """Say in one sentence what is wrong with a record; those of other kinds are passed over.

    >>> from omma_study.records import make
    >>> check_study(make("mine", {"dataset": 3}, "OMMA", result={}))
    Traceback (most recent call last):
    ...
    ValueError: dataset of the record of a study must be a text, got 3
    """
    if record["kind"] != "study":
        return
    try:
        _check_spec(record["spec"])
        if "name" in (record["estimator"] or {}):
            _kind(record["estimator"], "name", str, "a text")
        if record["result"] is not None:
            _check_result(record["result"])
            _number(record["seconds"], "run")
    except TypeError as error:  # a number that is none
        raise ValueError(str(error)) from error


def _check_spec(spec: Mapping[str, Any]) -> None:
    for name in WORDS:
        _kind(spec, name, str, "a text")
    _kind(_kind(spec, "estimator", dict, "an object"), "name", str, "a text")
    check_choice(OWNER, "feedback", _field(spec, "feedback"), FEEDBACK)
    check_name(OWNER, name_of(spec["policy"], spec["feedback"]))
    find_metric(spec["metric"])
    check_positive_int(OWNER, "k", _field(spec, "k"), optional=True)
    if _field(spec, "prior") is not None:
        _number(spec, "prior")
    check_seed(OWNER, _field(spec, "seed"))


def _check_result(result: Mapping[str, Any]) -> None:
    _number(result, "value")
    check_positive_int(OWNER, "rows", _field(result, "rows"))
    _columns(result, "history", ("rows", "values"))
    if _field(result, "counts") is None:  # left out where there are many labels
        check_positive_int(OWNER, "labels", _field(result, "labels"))
        return
    labels = _columns(result, "counts", ("tp", "predicted", "positive"))
    counts = result["counts"]
    _number(counts, "n")
    Counts(counts["tp"], counts["predicted"], counts["positive"], counts["n"])
    names = result.get("names")
    given = isinstance(names, list) and len(names) == labels
    if names is not None and not (given and all(isinstance(name, str) for name in names)):
        raise ValueError(f"names of {OWNER} must be {labels} texts, got {shown(names)}")


def _columns(result: Mapping[str, Any], owner: str, names: tuple[str, ...]) -> int:
    """The one length of lists of finite numbers."""
    table = _kind(result, owner, dict, "an object")
    lengths = []
    for name in names:
        values = _kind(table, name, list, "a list")
        if not _are_numbers(values):
            raise ValueError(f"{name} in {owner} of {OWNER} must be numbers, got {shown(values)}")
        lengths.append(len(values))
    if len(set(lengths)) > 1:
        found = " and ".join(map(str, lengths))
        raise ValueError(f"lists in {owner} of {OWNER} must be of one length, got {found}")
    return lengths[0]


def _are_numbers(values: list[Any]) -> bool:
    try:
        array = np.array(values)
    except (ValueError, OverflowError):  # lists within, of several lengths
        return False
    plain = array.ndim == 1 and len(array) > 0 and array.dtype.kind in "iuf"
    return plain and bool(np.isfinite(array).all())


def _field(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise ValueError(f"{OWNER} must have {name!r}, which is missing")
    return given[name]


def _kind(given: Mapping[str, Any], name: str, kind: type, wanted: str) -> Any:
    value = _field(given, name)
    if not isinstance(value, kind):
        raise ValueError(f"{name} of {OWNER} must be {wanted}, got {shown(value)}")
    return value


def _number(given: Mapping[str, Any], name: str) -> None:
    check_number(OWNER, name, _field(given, name))

"""What can be bounded: rates, as ratios of two sums over rows."""

from __future__ import annotations

import re
from typing import Any

from omma._validate import nearest
from omma.metrics import NAMES as METRICS, Binary, fbeta, metric as find_metric
from omma.metrics.binary import Rate
from omma.metrics.target import parse_target

PREDICTED = Rate(over=(0, 1, 0, 0), under=(0, 0, 0, 1))
STEADY_NAMES = ("labels_per_row", "predicted_rate")
ALIASES = {
    "multiclass_accuracy": "micro_recall",
    "multiclass_balanced_accuracy": "macro_recall",
    "weighted_recall": "micro_recall",
}
ELSEWHERE = {  # names that others have for these rates, or for what is missing to one
    "sensitivity": "recall",
    "tpr": "recall",
    "tnr": "specificity",
    "ppv": "precision",
    "fpr": "1 - specificity",
    "false_positive_rate": "1 - specificity",
    "fnr": "1 - recall",
    "false_negative_rate": "1 - recall",
    "fdr": "1 - precision",
    "alarm_rate": "predicted_rate",
    "alert_rate": "predicted_rate",
    "selection_rate": "predicted_rate",
}
FBETA = re.compile(r"f(\d+(?:\.\d+)?)")


def own_name(name: str) -> str:
    """A limit's name in the spelling of omma, where it is scikit-learn's or another.

    >>> own_name("recall_micro"), own_name("accuracy_score"), own_name("labels_per_row")
    ('micro_recall', 'micro_recall', 'labels_per_row')
    """
    if name in STEADY_NAMES:
        return name
    spelled = parse_target(name).name
    known = spelled in METRICS or FBETA.fullmatch(_of_one_label(spelled))
    return ALIASES.get(spelled, spelled) if known else name  # as it was given, for its error


def rate_of(name: str) -> Rate:
    """The rate that a limit is on, or why it cannot be one."""
    plain = _of_one_label(name)
    if FBETA.fullmatch(plain) and float(plain[1:]) > 0:
        found: Any = fbeta(float(plain[1:]))
    elif plain in METRICS:
        found = find_metric(plain)
    else:
        raise ValueError(f"unknown limit {name!r}{_hint(name, plain.lower())}")
    if not isinstance(found, Binary) or found.rate is None:
        raise ValueError(
            f"{name} cannot be a limit: it is no ratio of two sums over rows; bound the rates that "
            "it is made of, such as recall and specificity"
            + (f", or multiclass_{name}" if f"multiclass_{name}" in ALIASES else "")
        )
    if name.startswith("macro_") and plain != "recall":
        raise ValueError(
            f"{name} cannot be a limit: it holds at a price that is no longer that of one sum over "
            f"rows, and the metric falls far below what is possible; use micro_{plain}, or "
            f"{plain}[j] of single labels"
        )
    return found.rate


def _hint(name: str, plain: str) -> str:
    """What an unknown limit is called here, what looks like it, or what there is."""
    if plain in ELSEWHERE:
        return f", which is {ELSEWHERE[plain]} here"
    return nearest(name.lower(), known_limits()) or f"; there are {', '.join(known_limits())}"


def _of_one_label(name: str) -> str:
    return name.removeprefix("macro_" if name.startswith("macro_") else "micro_")


def known_limits() -> tuple[str, ...]:
    """The names that limits have, without those of single labels."""
    rates = [
        one.removeprefix("micro_")
        for one in METRICS
        if one.startswith("micro_") and getattr(find_metric(one).of, "rate", None) is not None  # type: ignore[attr-defined]
    ]
    every = (*(f"micro_{one}" for one in rates), *rates, "macro_recall")
    return (*every, *STEADY_NAMES, *ALIASES)


def variance(of: str, bound: float) -> float:
    """Of one draw of what a rate counts; labels a row come about as Poisson's do."""
    return bound if of == "labels_per_row" else bound * (1.0 - bound)

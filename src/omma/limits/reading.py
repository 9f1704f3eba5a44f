"""Limits read from texts, calls and JSON, and checked alone and against each other.

Checks that need the number of labels or the budget wait until these are known.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from omma._validate import check_number, shown
from omma.limits.limit import STEADY_NAMES, Limit, own_name, rate_of

TEXT = re.compile(
    r"\s*([\w.][\w.\-]*)\s*(?:\[\s*(.+?)\s*\])?\s*(>=|<=|≥|≤|=>|=<)\s*([^\s(]+)\s*"
    r"(?:\(\s*margin\s+([^\s)]+)\s*\)\s*)?"
)
STRICT = re.compile(r"[^<>=!]*[^<>=!\s]\s*([<>])\s*[^<>=\s][^<>=]*")  # as in "precision > 0.9"
SEVERAL = re.compile(r"[^\[\]]*\[[^\]]*\]\s*[-+*/]|[\w.]+\s+[-+*/]\s")  # "recall[0] - recall[1]"
ROUNDING = 1e-9  # sums of bounds differ by less
SENSES = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<="}


def at_least(of: str, bound: float, label: int | str | None = None, *, margin: float = 0) -> Limit:
    """A limit from below, for ``subject_to`` of a policy.

    Parameters
    ----------
    of : str
        A rate counted over all labels ("micro_precision", "micro_recall", "micro_specificity",
        "micro_accuracy", "micro_f1", "micro_jaccard"), "macro_recall" or "labels_per_row"; or of
        one label "precision", "recall", "specificity", "accuracy", "f1", "jaccard" or
        "predicted_rate", the share of rows in which it is predicted. The label may be part of the
        name, as in "recall[fraud]".
    bound : float
    label : int or str, optional
        The place or the name of that label; a problem of one label needs none.
    margin : float
        Aim this number of standard errors above the bound, so that it is more likely to hold on
        new rows.

    >>> print(at_least("micro_precision", 0.9))
    micro_precision >= 0.9
    >>> print(at_least("recall", 0.8, label="fraud", margin=2))
    recall[fraud] >= 0.8 (margin 2)
    """
    return _limit(of, ">=", bound, label, margin)


def at_most(of: str, bound: float, label: int | str | None = None, *, margin: float = 0) -> Limit:
    """A limit from above, for ``subject_to`` of a policy; see ``at_least``.

    >>> print(at_most("labels_per_row", 2))
    labels_per_row <= 2
    """
    return _limit(of, "<=", bound, label, margin)


def read_limit(limit: Any) -> Limit:
    """A limit from a text or from ``Limit.to_json``; a limit is returned as it is.

    >>> read_limit("recall[fraud] >= 0.8 (margin 1.28)")
    at_least('recall[fraud]', 0.8, margin=1.28)
    >>> read_limit("micro_precission >= 0.9")
    Traceback (most recent call last):
    ...
    ValueError: unknown limit 'micro_precission'; did you mean 'micro_precision' or 'precision' \
or 'micro_specificity'?
    """
    if isinstance(limit, Limit):
        return limit
    if isinstance(limit, dict):
        try:
            parts = [limit[name] for name in ("of", "sense", "bound", "label", "margin")]
        except KeyError as error:
            raise ValueError(f"a limit must have {error}, got {shown(limit)}") from error
        index = limit.get("index")
        return replace(_limit(*parts), index=index if type(index) is int and index >= 0 else None)
    match = TEXT.fullmatch(limit) if isinstance(limit, str) else None
    if isinstance(limit, str) and (strict := STRICT.fullmatch(limit)):
        sign = strict[1]
        raise ValueError(
            f"a limit must be written with >= or <=, got {shown(limit)}: write "
            f"{shown(limit.replace(sign, f'{sign}='))}"
        )
    if isinstance(limit, str) and SEVERAL.match(limit):
        raise ValueError(
            f"a limit must be on one rate, got an expression of several in {shown(limit)}: bound "
            "each rate by itself, such as ['recall[0] >= 0.8', 'recall[1] >= 0.8']"
        )
    if match is None:
        raise ValueError(
            "a limit must be a text such as 'micro_precision >= 0.9', or made by omma.at_least or "
            f"omma.at_most, got {shown(limit)}"
        )
    of, label, sense, *texts = match.groups()
    sense = SENSES.get(sense, sense)
    numbers = []
    for name, text in zip(("bound", "margin"), texts, strict=True):
        try:
            numbers.append(float(text or 0))
        except ValueError:
            # "0.9 <= precision" has the rate on the wrong side.
            is_swapped = re.fullmatch(r"[0-9.]+", of) is not None
            hint = f": write '{text} {'<=' if sense == '>=' else '>='} {of}'" if is_swapped else ""
            message = f"the {name} of a limit must be a number, got {shown(limit)}{hint}"
            raise ValueError(message) from None
    bound, margin = numbers
    return _limit(of, sense, bound, label, margin)


def read_limits(owner: str, subject_to: Any) -> tuple[Limit, ...] | None:
    """``subject_to`` of a policy: one limit or several that can hold together."""
    if subject_to is None:
        return None
    single = isinstance(subject_to, str | bytes | Limit | dict)
    several = not single and isinstance(subject_to, Sequence)
    limits = tuple(read_limit(limit) for limit in (subject_to if several else (subject_to,)))
    # Bounds on one rate can be compared before labels are known; ``check_limits`` does the rest.
    for low, high in product(limits, limits):
        apart = low.bound > high.bound and (low.sense, high.sense) == (">=", "<=")
        if low.name == high.name and apart:
            raise ValueError(
                f"limits in subject_to of {owner} must be compatible: {low} and {high} cannot both "
                "hold"
            )
    return limits or None


def _limit(of: Any, sense: Any, bound: Any, label: Any, margin: Any) -> Limit:
    """A limit, checked as far as possible without knowing the labels."""
    if not isinstance(of, str):
        raise TypeError(f"a limit must be on a name such as 'micro_precision', got {shown(of)}")
    if sense not in (">=", "<="):
        raise ValueError(f"a limit must be '>=' or '<=', got {shown(sense)}")
    inside = re.fullmatch(r"([\w.][\w.\-]*)\[\s*(.+?)\s*\]", of)
    if inside is not None and label is None:
        of, label = inside.groups()
    of = own_name(of)
    if isinstance(label, np.integer) or (
        isinstance(label, str) and label.isascii() and label.isdigit()
    ):
        label = int(label)
    if label is not None:
        if not isinstance(label, int | str) or isinstance(label, bool) or label == "":
            raise TypeError(f"the label of a limit must be a place or a name, got {shown(label)}")
        if isinstance(label, int) and label < 0:
            raise ValueError(f"the label of a limit must be a place from 0 on, got {label}")
        if of == "labels_per_row" or of.startswith(("micro_", "macro_")):
            raise ValueError(f"{of} is about all labels: write it without [{label}]")
    name = Limit(of, sense, 0.0, label).name
    rate_of(of)  # refuses unknown names, and metrics that are no rates
    high = math.inf if of == "labels_per_row" else 1.0
    bound = check_number("a limit", f"the bound of {name}", bound, low=0.0, high=high)
    if of in STEADY_NAMES and bound == 0.0:
        instead = "predict nothing instead" if sense == "<=" else "it is never below"
        raise ValueError(f"the bound of {name} must be above 0: {instead}")
    margin = check_number("a limit", "margin", margin, low=0.0)
    if margin and of == "macro_recall":
        raise ValueError("margin of a limit must be 0 for macro_recall, a mean of many rates")
    return Limit(of, sense, bound, label, margin)


def check_per_row(
    owner: str, limits: tuple[Limit, ...], low: float, high: float
) -> tuple[float, float]:
    """Refuse limits on labels a row that contradict a budget; returns the range that is left."""
    least, most = low, high
    for limit in limits:
        if limit.of != "labels_per_row":
            continue
        if limit.sense == "<=":
            asked, contradicts, most = "at most", limit.bound < low, min(most, limit.bound)
        else:
            asked, contradicts, least = "at least", limit.bound > high, max(least, limit.bound)
        if contradicts:
            per_row = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            raise ValueError(
                f"{limit} in subject_to of {owner} contradicts its budget: rows get {per_row} "
                f"labels, and {asked} {limit.bound:g} are asked for"
            )
    return least, most


def check_limits(owner: str, limits: tuple[Limit, ...], m: int, low: float, high: float) -> None:
    """Refuse limits that no decisions can meet, where a row gets from ``low`` to ``high`` labels.

    Limits on what is predicted are linear in decisions: all of them together can be checked.
    """
    if not limits:
        return
    low, high = check_per_row(owner, limits, low, high)
    least, most = np.zeros(m), np.ones(m)
    # Rates are checked by label, and over all labels: -1. Of one label, all are the same.
    groups: dict[int, list[Limit]] = {}
    for limit in limits:
        j = limit.index or 0
        if limit.of == "predicted_rate" and limit.sense == ">=":
            least[j] = max(least[j], limit.bound)
        elif limit.of == "predicted_rate":
            most[j] = min(most[j], limit.bound)
        if m == 1 or limit.of != "macro_recall":  # which is no sum over labels
            groups.setdefault(-1 if limit.over_all and m > 1 else j, []).append(limit)
    excluded = f"limits in subject_to of {owner} must be compatible:"
    for label in np.flatnonzero(least > most).tolist():
        raise ValueError(
            f"{excluded} label {label} cannot be predicted in at least {least[label]:g} and at "
            f"most {most[label]:g} of rows"
        )
    if least.sum() > high + ROUNDING:
        raise ValueError(
            f"{excluded} predicted_rate asks for at least {least.sum():g} labels a row in all, and "
            f"rows get at most {high:g}"
        )
    if most.sum() < low - ROUNDING:
        raise ValueError(
            f"{excluded} predicted_rate leaves at most {most.sum():g} labels a row in all, and "
            f"rows get at least {low:g}"
        )
    for group in groups.values():
        # Floors alone are always compatible: perfect decisions have every rate at one.
        has_ceiling = any(limit.needs_labels and limit.sign < 0 for limit in group)
        if has_ceiling and len(group) > 1 and not _possible(group, m):
            both = "both" if len(group) == 2 else "all"
            raise ValueError(f"{excluded} {' and '.join(map(str, group))} cannot {both} hold")


def _possible(limits: list[Limit], m: int) -> bool:
    """Whether some shares of hits, predictions and occurrences keep all limits.

    Shares are of rows, or of all cells of rows and labels. Labels that always or never occur are
    left out, as they would keep almost any limit.
    """
    from scipy.optimize import linprog  # takes longer to import than all of omma

    # Forms of (hits, predicted, occurs, one, how far occurrences are from never and always) that
    # are at most 0: hits are among predictions and among occurrences, and all are shares.
    forms = [
        (1.0, -1.0, 0.0, 0.0, 0.0),
        (1.0, 0.0, -1.0, 0.0, 0.0),
        (-1.0, 1.0, 1.0, -1.0, 0.0),
        (0.0, 0.0, -1.0, 0.0, 1.0),
        (0.0, 0.0, 1.0, -1.0, 1.0),
    ]
    for limit in limits:
        # Predictions are shares of cells here, and labels a row are m times as many.
        each = (1.0, m if limit.of == "labels_per_row" else 1.0, 1.0, 1.0)
        forms.append((*(-limit.form * each), 0.0))
    table = np.array(forms)
    result = linprog(
        [0.0, 0.0, 0.0, -1.0],
        A_ub=table[:, [0, 1, 2, 4]],
        b_ub=-table[:, 3],
        bounds=[(0.0, 1.0)] * 4,
    )
    return bool(result.success and -result.fun > ROUNDING)

"""Limits as they are written, in texts, calls and JSON; checked alone, and against each other.

As far as labels need not be known that is done at once, else when the budget and they are.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_number, shown
from omma.limits.limit import STEADY_NAMES, Limit, own_name, rate_of

TEXT = re.compile(
    r"\s*([\w.][\w.\-]*)\s*(?:\[\s*(.+?)\s*\])?\s*(>=|<=|≥|≤|=>|=<)\s*([^\s(]+)\s*"
    r"(?:\(\s*margin\s+([^\s)]+)\s*\)\s*)?"
)
HAIR = 1e-9  # sums of bounds differ by less
SENSES = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<="}


def at_least(of: str, bound: float, label: int | str | None = None, *, margin: float = 0) -> Limit:
    """A limit from below, for ``subject_to`` of a policy.

    Parameters
    ----------
    of : str
        A rate counted over all labels ("micro_precision", "micro_recall", "micro_specificity",
        "micro_accuracy", "micro_f1", "micro_jaccard"), "macro_recall" or "labels_per_row"; or of
        one label "precision", "recall", "specificity", "accuracy", "f1", "jaccard" or
        "predicted_rate", the share of rows that it is predicted in. The label may be part of the
        name, as in "recall[fraud]".
    bound : float
    label : int or str, optional
        The place or the name of that label; a problem of one label needs none.
    margin : float
        Aim so many standard errors above the bound, so that it holds more surely on rows not seen.

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


def read_limit(given: Any) -> Limit:
    """A limit as it is, from a text, or from what ``Limit.to_json`` gave.

    >>> read_limit("recall[fraud] >= 0.8 (margin 1.28)")
    at_least('recall[fraud]', 0.8, margin=1.28)
    >>> read_limit("micro_precission >= 0.9")
    Traceback (most recent call last):
    ...
    ValueError: unknown limit 'micro_precission'; did you mean 'micro_precision' or 'precision' \
or 'micro_specificity'?
    """
    if isinstance(given, Limit):
        return given
    if isinstance(given, dict):
        try:
            parts = [given[name] for name in ("of", "sense", "bound", "label", "margin")]
        except KeyError as error:
            raise ValueError(f"a limit must have {error}, got {shown(given)}") from error
        made = _limit(*parts)
        index = given.get("index")
        return replace(made, index=index if type(index) is int and index >= 0 else None)
    found = TEXT.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise ValueError(
            "a limit must be a text such as 'micro_precision >= 0.9', or what omma.at_least and "
            f"omma.at_most make, got {shown(given)}"
        )
    of, label, sense, bound, margin = found.groups()
    number = _number("bound", bound, given)
    errors = 0.0 if margin is None else _number("margin", margin, given)
    return _limit(of, SENSES.get(sense, sense), number, label, errors)


def _number(what: str, text: str, given: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"the {what} of a limit must be a number, got {shown(given)}") from None


def read_limits(owner: str, given: Any) -> tuple[Limit, ...] | None:
    """``subject_to`` of a policy: one limit or several, which do not exclude each other."""
    if given is None:
        return None
    several = not isinstance(given, str | bytes | Limit | dict) and isinstance(given, Sequence)
    found = tuple(read_limit(one) for one in (given if several else (given,)))
    if not found:
        return None
    for low, high in product(found, found):
        apart = low.bound > high.bound and (low.sense, high.sense) == (">=", "<=")
        if low.name == high.name and apart:
            raise ValueError(
                f"subject_to of {owner} must not exclude itself: {low} and {high} cannot both hold"
            )
    return found


def _limit(of: Any, sense: Any, bound: Any, label: Any, margin: Any) -> Limit:
    """Check a limit, as far as it can be without knowing the labels."""
    if not isinstance(of, str):
        raise TypeError(f"a limit must be on a name such as 'micro_precision', got {shown(of)}")
    if sense not in (">=", "<="):
        raise ValueError(f"a limit must be '>=' or '<=', got {shown(sense)}")
    inside = re.fullmatch(r"([\w.][\w.\-]*)\[\s*(.+?)\s*\]", of)
    if inside is not None and label is None:
        of, label = inside.groups()
    of = own_name(of)
    if isinstance(label, str) and label.isascii() and label.isdigit():
        label = int(label)
    made = Limit(of, sense, 0.0, _checked_label(of, label))
    if of not in STEADY_NAMES:
        rate_of(of)
    high = math.inf if of == "labels_per_row" else 1.0
    bound = check_number("a limit", f"the bound of {made.name}", bound, low=0.0, high=high)
    if of in STEADY_NAMES and bound == 0.0:
        instead = "predict nothing instead" if sense == "<=" else "it is never below"
        raise ValueError(f"the bound of {made.name} must be above 0: {instead}")
    margin = check_number("a limit", "margin", margin, low=0.0)
    if margin and of == "macro_recall":
        raise ValueError("margin of a limit must be 0 for macro_recall, a mean of many rates")
    return replace(made, bound=bound, margin=margin)


def _checked_label(of: str, label: Any) -> Any:
    if label is None:
        return None
    if isinstance(label, np.integer):
        label = int(label)
    if not isinstance(label, int | str) or isinstance(label, bool) or label in ("",):
        raise TypeError(f"the label of a limit must be a place or a name, got {shown(label)}")
    if isinstance(label, int) and label < 0:
        raise ValueError(f"the label of a limit must be a place from 0 on, got {label}")
    if of == "labels_per_row" or of.startswith(("micro_", "macro_")):
        raise ValueError(f"{of} is about all labels: write it without [{label}]")
    return label


def check_per_row(
    owner: str, limits: tuple[Limit, ...], low: float, high: float
) -> tuple[float, float]:
    """Refuse limits on labels a row that a budget contradicts; returns what they leave of it."""
    for one in (one for one in limits if one.of == "labels_per_row"):
        wanted = "at most" if one.sense == "<=" else "at least"
        if (one.sense == "<=" and one.bound < low) or (one.sense == ">=" and one.bound > high):
            given = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            raise ValueError(
                f"{one} in subject_to of {owner} contradicts its budget: rows get {given} labels, "
                f"and {wanted} {one.bound:g} are asked for"
            )
    most = [one.bound for one in limits if one.of == "labels_per_row" and one.sense == "<="]
    least = [one.bound for one in limits if one.of == "labels_per_row" and one.sense == ">="]
    return max([low, *least]), min([high, *most])


def check_limits(owner: str, limits: tuple[Limit, ...], m: int, low: float, high: float) -> None:
    """Refuse limits that no decisions can meet, where a row gets from ``low`` to ``high`` labels.

    Limits on what is predicted are linear in decisions: all of them together can be checked.
    """
    if not limits:
        return
    low, high = check_per_row(owner, limits, low, high)
    least, most = np.zeros(m), np.ones(m)
    for one in (one for one in limits if one.of == "predicted_rate"):
        j = 0 if one.index is None else one.index
        if one.sense == ">=":
            least[j] = max(least[j], one.bound)
        else:
            most[j] = min(most[j], one.bound)
    excluded = f"subject_to of {owner} must not exclude itself:"
    for place in np.flatnonzero(least > most):
        j = int(place)
        raise ValueError(
            f"{excluded} label {j} cannot be predicted in at least {least[j]:g} and at most "
            f"{most[j]:g} of rows"
        )
    if least.sum() > high + HAIR:
        raise ValueError(
            f"{excluded} predicted_rate asks for at least {least.sum():g} labels a row in all, and "
            f"rows get at most {high:g}"
        )
    if most.sum() < low - HAIR:
        raise ValueError(
            f"{excluded} predicted_rate leaves at most {most.sum():g} labels a row in all, and "
            f"rows get at least {low:g}"
        )
    _check_rates(excluded, limits, m)


def _check_rates(excluded: str, limits: tuple[Limit, ...], m: int) -> None:
    """Refuse rates of one label, or of all together, that no counts have.

    Floors alone never exclude each other: who is always right has every rate at one.
    """
    groups: dict[int, list[Limit]] = {}
    for one in limits:
        if m == 1:
            groups.setdefault(0, []).append(one)
        elif one.of != "macro_recall":  # no sum over labels
            place = -1 if one.over_all else one.index or 0
            groups.setdefault(place, []).append(one)
    for every in groups.values():
        ceiling = any(one.needs_labels and one.sign < 0 for one in every)
        if ceiling and len(every) > 1 and not _possible(every, m):
            both = "both" if len(every) == 2 else "all"
            raise ValueError(f"{excluded} {' and '.join(map(str, every))} cannot {both} hold")


def _possible(limits: list[Limit], m: int) -> bool:
    """Whether some shares of hits, predictions and occurrences keep all limits.

    They are shares of rows, or of all cells of rows and labels; a label that always or never occurs
    would keep too many.
    """
    from scipy.optimize import linprog  # takes longer to import than all of omma

    # Of (hits, predicted, occurs, one, how far occurrences are from never and always): at most 0.
    rows: list[NDArray[np.float64]] = [
        np.array(row, dtype=float)
        for row in (
            (1, -1, 0, 0, 0),
            (1, 0, -1, 0, 0),
            (-1, 1, 1, -1, 0),
            (0, 0, -1, 0, 1),
            (0, 0, 1, -1, 1),
        )
    ]
    for one in limits:
        over, under = (np.array(form, dtype=float) for form in (one.rate.over, one.rate.under))
        if one.of == "labels_per_row":
            over *= m
        rows.append(np.append(-one.sign * (over - one.bound * under), 0.0))
    every = np.array(rows)
    found = linprog(
        [0.0, 0.0, 0.0, -1.0],
        A_ub=every[:, [0, 1, 2, 4]],
        b_ub=-every[:, 3],
        bounds=[(0.0, 1.0)] * 4,
    )
    return bool(found.success and -found.fun > HAIR)

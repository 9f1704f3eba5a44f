"""Limits against each other and the budget: linear in counts, and checked at once."""

import numpy as np
from numpy.typing import NDArray

from omma.limits.limit import Limit

HAIR = 1e-9  # sums of bounds differ by less


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

"""Limits on what is predicted against each other and the budget: linear, and checked at once."""

from __future__ import annotations

import numpy as np

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

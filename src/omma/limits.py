"""Limits: what must hold while a metric is maximized.

A limit is a text such as ``"micro_precision >= 0.9"`` or ``"recall[fraud] >= 0.8"``, or what
``at_least`` and ``at_most`` make. Rates of one label, or of all labels counted together, are held
by their linear form; so is the mean of recalls over labels, whose denominators no decision changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from omma._validate import check_number, nearest, shown
from omma.counts import Counts
from omma.kernels.limits import (
    CAP,
    COUNTED,
    FORM,
    MARGIN,
    MEAN,
    NUMBERS,
    SIZE,
    STEADY,
    UNDER,
    WEIGHT,
)
from omma.metrics import NAMES as METRICS, Binary, fbeta, metric as find_metric
from omma.metrics.binary import Rate
from omma.rows.frames import Names
from omma.running.plan import Limited

PREDICTED = Rate(over=(0, 1, 0, 0), under=(0, 0, 0, 1))
STEADY_NAMES = ("labels_per_row", "predicted_rate")
ALIASES = {
    "multiclass_accuracy": "micro_recall",
    "multiclass_balanced_accuracy": "macro_recall",
}
TEXT = re.compile(r"\s*([\w.]+)\s*(?:\[\s*(.+?)\s*\])?\s*(>=|<=|≥|≤|=>|=<)\s*(\S+)\s*")
SENSES = {"≥": ">=", "≤": "<=", "=>": ">=", "=<": "<="}
# The first price of micro precision: rare labels gain much by macro metrics, and a floor that was
# missed is slow to make up for.
CAREFUL = 2.5
HAIR = 1e-9  # sums of bounds differ by less
FBETA = re.compile(r"f(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Limit:
    """A bound on a rate; ``at_least`` and ``at_most`` make it, and check it.

    Attributes
    ----------
    of : str
        What is bounded: "micro_" and a rate, "macro_recall", "labels_per_row"; or of one label a
        rate or "predicted_rate".
    sense : {">=", "<="}
    bound : float
    label : int or str, optional
        The label that it is about, by its place or name.
    margin : float
        How many standard errors to stay on the safe side of the bound.
    index : int, optional
        The place of the label, once names are known.

    >>> limit = read_limit("recall[fraud] >= 0.8")
    >>> limit.label, limit.sense, limit.bound
    ('fraud', '>=', 0.8)
    >>> print(limit)
    recall[fraud] >= 0.8
    """

    of: str
    sense: str
    bound: float
    label: int | str | None = None
    margin: float = 0.0
    index: int | None = None

    @property
    def name(self) -> str:
        """What is bounded, with the label that it is about."""
        return self.of if self.label is None else f"{self.of}[{self.label}]"

    @property
    def sign(self) -> float:
        """One where more is better, minus one where less is."""
        return 1.0 if self.sense == ">=" else -1.0

    @property
    def needs_labels(self) -> bool:
        """Whether only true labels, or estimates of them, tell its value."""
        return self.of not in STEADY_NAMES

    @property
    def over_all(self) -> bool:
        """Whether it is about all labels, and not one of them."""
        return self.of in ("labels_per_row", "macro_recall") or self.of.startswith("micro_")

    @property
    def rate(self) -> Rate:
        """Numerator and denominator; of the mean of recalls, those of one label."""
        if not self.needs_labels:
            return PREDICTED
        return _rate_of(self.of.removeprefix("micro_").removeprefix("macro_"))

    @property
    def variance(self) -> float:
        """Of one draw of what is counted, where the value is at the bound."""
        return max(_variance(self.of, self.bound), 0.0)

    def cells(self, counts: Counts) -> tuple[Any, Any, Any, float]:
        """The counts that it looks at: (tp, predicted, positive, all)."""
        if self.over_all:
            whole = counts.n * (counts.m if self.of.startswith("micro_") else 1)
            tp, predicted = counts.tp.sum(), counts.predicted.sum()
            return tp, predicted, counts.positive.sum(), whole
        j = 0 if self.index is None else self.index
        return counts.tp[j], counts.predicted[j], counts.positive[j], counts.n

    def value(self, counts: Counts) -> float:
        """What is bounded, of some counts; NaN where it is 0/0.

        >>> counts = Counts([3, 1], [4, 1], [5, 2], 10)
        >>> read_limit("micro_precision >= 0.9").value(counts)
        0.8
        >>> read_limit("labels_per_row <= 2").value(counts)
        0.5
        """
        if self.of == "macro_recall":
            some = counts.positive > 0
            return float((counts.tp[some] / counts.positive[some]).mean()) if some.any() else np.nan
        return float(self.rate.of(*self.cells(counts), np.nan))

    def error(self, counts: Counts) -> float:
        """The standard error of that value, as of independent draws; NaN where there are none."""
        value = self.value(counts)
        if self.of == "macro_recall":
            some = counts.positive > 0
            recall = counts.tp[some] / counts.positive[some]
            spread = (recall * (1.0 - recall) / counts.positive[some]).sum()
            return float(np.sqrt(spread) / max(some.sum(), 1))
        cells = np.array(self.cells(counts), dtype=float)
        under = float(np.array(self.rate.under, dtype=float) @ cells)
        if not under > 0:
            return math.nan
        return math.sqrt(max(_variance(self.of, value), 0.0) / under)

    def tighter(self, counts: Counts) -> float:
        """What the margin takes off the bound: so many standard errors of a value at the bound."""
        if not self.margin:
            return 0.0
        under = float(np.array(self.rate.under, dtype=float) @ np.array(self.cells(counts)))
        return self.margin * math.sqrt(self.variance / under) if under > 0 else 0.0

    def named(self, names: Names | None, m: int, owner: str) -> Limit:
        """The same limit with the place of its label, among ``names`` where these are known."""
        if self.label is None:
            if not self.over_all and m != 1:
                raise ValueError(
                    f"{self.name} in subject_to of {owner} is a rate of one label, and there are "
                    f"{m}: write {self.of}[j] for label j{_or_micro(self.of)}"
                )
            return replace(self, index=None if self.over_all else 0)
        if names is not None and str(self.label) in names:
            return replace(self, index=list(names).index(str(self.label)))
        if self.index is not None and isinstance(self.label, str) and names is None:
            return self  # found before, among names that are not given again
        if isinstance(self.label, int):
            if self.label >= m:
                raise ValueError(
                    f"{self.name} in subject_to of {owner} must be about a label from 0 to {m - 1}"
                )
            return replace(self, index=self.label)
        if names is None:
            raise ValueError(
                f"{self.name} in subject_to of {owner} names a label, and the labels have no "
                "names: pass names=, a frame, or the label's place"
            )
        raise ValueError(
            f"{self.name} in subject_to of {owner} must name a label"
            f"{nearest(self.label, names) or ', got ' + shown(self.label)}"
        )

    def to_json(self) -> dict[str, Any]:
        """What ``read_limit`` makes the same limit of."""
        return {
            "of": self.of,
            "sense": self.sense,
            "bound": self.bound,
            "label": self.label,
            "margin": self.margin,
            "index": self.index,
        }

    def __str__(self) -> str:
        margin = f" (margin {self.margin:g})" if self.margin else ""
        return f"{self.name} {self.sense} {self.bound:g}{margin}"


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
    of, label, sense, bound = found.groups()
    try:
        number = float(bound)
    except ValueError:
        raise ValueError(f"the bound of a limit must be a number, got {shown(given)}") from None
    return _limit(of, SENSES.get(sense, sense), number, label, 0.0)


def read_limits(owner: str, given: Any) -> tuple[Limit, ...] | None:
    """``subject_to`` of a policy: one limit or several, which do not exclude each other."""
    if given is None:
        return None
    several = not isinstance(given, str | Limit | dict) and isinstance(given, Sequence)
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
    inside = re.fullmatch(r"([\w.]+)\[\s*(.+?)\s*\]", of)
    if inside is not None and label is None:
        of, label = inside.groups()
    of = ALIASES.get(of, of)
    if isinstance(label, str) and label.isascii() and label.isdigit():
        label = int(label)
    made = Limit(of, sense, 0.0, _checked_label(of, label))
    if of not in STEADY_NAMES:
        _rate_of(of)
    high = math.inf if of == "labels_per_row" else 1.0
    bound = check_number("a limit", f"the bound of {made.name}", bound, low=0.0, high=high)
    if of in STEADY_NAMES and bound == 0.0:
        raise ValueError(f"the bound of {made.name} must be above 0: predict nothing instead")
    margin = check_number("a limit", "margin", margin, low=0.0)
    if margin and of == "macro_recall":
        raise ValueError("margin of a limit must be 0 for macro_recall, a mean of many rates")
    return replace(made, bound=bound, margin=margin)


def _checked_label(of: str, label: Any) -> Any:
    if label is None:
        return None
    if not isinstance(label, int | str) or isinstance(label, bool) or label in ("",):
        raise TypeError(f"the label of a limit must be a place or a name, got {shown(label)}")
    if isinstance(label, int) and label < 0:
        raise ValueError(f"the label of a limit must be a place from 0 on, got {label}")
    if of == "labels_per_row" or of.startswith(("micro_", "macro_")):
        raise ValueError(f"{of} is about all labels: write it without [{label}]")
    return label


def _rate_of(name: str) -> Rate:
    """The rate that a limit is on, or why it cannot be one."""
    plain = (
        name.removeprefix("macro_") if name.startswith("macro_") else name.removeprefix("micro_")
    )
    if FBETA.fullmatch(plain) and float(plain[1:]) > 0:
        found: Any = fbeta(float(plain[1:]))
    elif plain in METRICS:
        found = find_metric(plain)
    else:
        raise ValueError(f"unknown limit {name!r}{nearest(name, known_limits())}")
    if not isinstance(found, Binary) or found.rate is None:
        raise ValueError(
            f"{name} cannot be a limit: it is no ratio of two sums over rows; bound the rates that "
            "it is made of, such as recall and specificity"
        )
    if name.startswith("macro_") and plain != "recall":
        raise ValueError(
            f"{name} cannot be a limit: it holds at a price that is no longer that of one sum over "
            f"rows, and the metric falls far below what is possible; use micro_{plain}, or "
            f"{plain}[j] of single labels"
        )
    return found.rate


def known_limits() -> tuple[str, ...]:
    """The names that limits have, without those of single labels."""
    rates = [
        one.removeprefix("micro_")
        for one in METRICS
        if one.startswith("micro_") and getattr(find_metric(one).of, "rate", None) is not None  # type: ignore[attr-defined]
    ]
    every = (*(f"micro_{one}" for one in rates), *rates, "macro_recall")
    return (*every, *STEADY_NAMES, *ALIASES)


def _or_micro(of: str) -> str:
    return ", or labels_per_row" if of == "predicted_rate" else f", or micro_{of}"


def _variance(of: str, bound: float) -> float:
    """Of one draw of what a rate counts; labels a row come about as Poisson's do."""
    return bound if of == "labels_per_row" else bound * (1.0 - bound)


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


def limited(limits: tuple[Limit, ...], m: int) -> Limited:
    """Limits, their labels found, as the kernels know them."""
    numbers = np.zeros((len(limits), NUMBERS))
    kinds, labels = np.empty(len(limits), dtype=np.int64), np.empty(len(limits), dtype=np.int64)
    for row, one, place in zip(numbers, limits, range(len(limits)), strict=True):
        labels[place] = -1 if one.over_all else one.index or 0
        kinds[place] = _fill(row, one, m)
    return Limited(numbers, kinds, labels)


def _fill(row: Any, limit: Limit, m: int) -> int:
    """Write the numbers of one limit; returns its kind."""
    row[WEIGHT] = 1.0 if limit.over_all else 1.0 / math.sqrt(m)
    if limit.of == "macro_recall":
        row[FORM], row[FORM + 1] = limit.bound, limit.sign
        return MEAN
    over, under = (np.array(form, dtype=float) for form in (limit.rate.over, limit.rate.under))
    if limit.of.startswith("micro_"):  # each row has m cells
        over[3] *= m
        under[3] *= m
    kind, scale = (COUNTED, 1.0) if limit.needs_labels else (STEADY, 1.0 / limit.bound)
    row[FORM : FORM + 4] = scale * limit.sign * (over - limit.bound * under)
    row[UNDER : UNDER + 4] = scale * under
    row[SIZE : SIZE + 4] = under
    if not np.any(under[[0, 2, 3]]):  # precision: what is predicted alone
        row[SIZE : SIZE + 4] = 0.0, 0.5, 0.5, 0.0
        row[WEIGHT] *= CAREFUL if limit.over_all and m > 1 else 1.0
    row[MARGIN] = limit.margin * math.sqrt(limit.variance)
    row[CAP] = (1.0 - limit.bound if limit.sign > 0 and limit.needs_labels else limit.bound) / 2.0
    return kind


def price_unit(limit: Limit, counts: Counts) -> float:
    """How much of the metric one more of a limit costs, where its price in the kernels is one."""
    row = np.zeros(NUMBERS)
    kind = _fill(row, limit, counts.m)
    if kind == MEAN:
        return 1.0
    if kind == STEADY:
        return float(row[WEIGHT] / limit.bound)
    tp, predicted, positive, _ = limit.cells(counts)
    cells = np.array((tp, predicted, positive, counts.n))
    under, size = (max(float(row[at : at + 4] @ cells), 1.0) for at in (UNDER, SIZE))
    return float(row[WEIGHT]) * under / size

"""What ``omma.choose`` returns: a recommendation in words, as tables, as data and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma import plots
from omma._validate import nearest
from omma.comparison.calibration_check import CalibrationCheck
from omma.comparison.intervals import Range
from omma.held import Held
from omma.rule import Rule
from omma.tables import MISSING, Entry, Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

SIMPLE = "baseline"  # the name of the 0.5 threshold, or of the top k
HAIR = 1e-9  # of a limit: less is rounding
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """A rule, judged on rows that it was made without.

    Attributes
    ----------
    name, title : str
        For programs, and for people.
    value : float
        The metric to expect on new rows, corrected for the choice of the best.
    interval : tuple of float
        The 95 % interval of that value.
    behind : float
        How far the rule is below the best on new rows: 0 for the best, else at most 0, unless the
        rule misses a limit.
    behind_interval : tuple of float
        The 95 % interval of that difference. Both rules are judged on the same rows, so it is known
        better than either value.
    out_of_fold : float
        The metric of the decisions on all folds, uncorrected: by it the best is chosen.
    stream : float or None
        The metric of its policy online over all rows, which learns as it decides.
    limits : tuple of Held
        How the limits stand on unseen rows, where there are any.
    """

    name: str
    title: str
    value: float
    interval: Range
    behind: float
    behind_interval: Range
    out_of_fold: float
    stream: float | None
    limits: tuple[Held, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether all limits, with their margins, hold on unseen rows."""
        return shortfall(self.limits) == 0.0

    @property
    def as_good(self) -> bool:
        """Whether the rule is not distinguishable from the best on this data."""
        return self.behind_interval[1] >= 0.0


def shortfall(limits: tuple[Held, ...]) -> float:
    """By how much limits, with their margins, are missed in all; what is 0/0 misses nothing.

    >>> from omma.limits import at_least
    >>> plain, safe = (at_least("recall", 0.8, margin=margin) for margin in (0, 2))
    >>> shortfall((Held(plain, 0.8, 0.0, 0.01),)), shortfall((Held(safe, 0.8, 0.0, 0.01),))
    (0.0, 0.02)
    """
    return sum(map(_missed_by, limits))


def _missed_by(held: Held) -> float:
    excess = held.excess + (held.limit.margin * held.error if held.limit.margin else 0.0)
    return float(excess) if excess > HAIR else 0.0  # NaN is no more than anything


@dataclass(frozen=True, eq=False)
class PerLabel:
    """A metric of each label: by the simple rule, and by the best one.

    Attributes
    ----------
    metric : str
        Of one label.
    positive : ndarray of shape (m,)
        How often each label occurs, where it is known.
    simple, best : ndarray of shape (m,)
    """

    metric: str
    positive: Vector
    simple: Vector
    best: Vector

    @property
    def gains(self) -> Vector:
        """What the best rule adds to each label."""
        return np.asarray(self.best - self.simple)


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """Rules judged on rows that they were made without; what ``omma.choose`` returns.

    Attributes
    ----------
    metric : str
        What rules are judged by.
    candidates : tuple of Candidate
        The simplest first.
    best_name : str
        The name of the best candidate.
    rule : Rule
        The best, made again of all rows: what to deploy.
    labels : PerLabel or None
        What it gains on each label over the simple rule; None where labels have no metric of
        their own.
    how : str
        How many folds and rows there were.
    notes : tuple of str
        Sentences about rules that were left out, rows that were skipped, and thin data.
    calibration : CalibrationCheck or None
        Whether the probabilities look calibrated, and what calibrating gains; print it. None for
        one class a row.
    """

    metric: str
    candidates: tuple[Candidate, ...]
    best_name: str
    rule: Rule
    labels: PerLabel | None
    how: str
    notes: tuple[str, ...] = ()
    calibration: CalibrationCheck | None = None

    @property
    def best(self) -> Candidate:
        """The candidate of the highest out-of-fold value, of equal ones the simplest.

        Under limits, the best of those that hold them; if none does, the one that misses least.
        """
        return self[self.best_name]

    @property
    def as_good(self) -> list[Candidate]:
        """Other rules that this data does not distinguish from the best, and that hold limits."""
        best = self.best
        return [one for one in self.candidates if one.as_good and one.holds and one is not best]

    def __getitem__(self, name: str) -> Candidate:
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        known = [candidate.name for candidate in self.candidates]
        hint = nearest(str(name), known) or f"; there are {', '.join(known)}"
        raise KeyError(f"a choice has no candidate {name!r}{hint}")

    @property
    def verdict(self) -> str:
        """What to do, in a few sentences."""
        best, simple = self.best, self[SIMPLE]
        expect = f"expect {100 * best.value:.2f} % ({_to(best.interval)}) on new rows"
        if best.limits:
            return self._verdict_with_limits(expect)
        if best.name == SIMPLE:
            return f"The {simple.title} is as good as anything here: {expect}."
        low, high = simple.behind_interval
        gain = f"{-100 * simple.behind:.2f} points ({_to((-high, -low))})"
        if simple.as_good:
            return (
                f"{best.title} and the {simple.title} are not distinguishable on this data: "
                f"{best.title} is ahead by {gain}; {expect}."
            )
        return f"Deploy {best.title}: {expect}, {gain} more than the {simple.title}."

    def _verdict_with_limits(self, expect: str) -> str:
        """Limits come first; who would score more and misses them is named."""
        best = self.best
        title = f"the {best.title}" if best.name == SIMPLE else best.title
        values = "; ".join(map(_limit_value, best.limits))
        if not best.holds:
            return (
                f"No rule here holds all limits. Nearest is {title}, which {_misses(best)}: "
                f"{expect}. On unseen rows, {values}."
            )
        text = f"Deploy {title}: {expect}. On unseen rows, {values}."
        ahead = [one for one in self.candidates if not one.holds and one.behind > 0.0]
        if ahead:
            near = min(ahead, key=lambda candidate: shortfall(candidate.limits))
            text += (
                f" {_capital(near.title)} scores {100 * near.behind:.2f} points more, but "
                f"{_misses(near)}."
            )
        return text

    @property
    def table(self) -> Grid:
        """A line for each candidate, in %; print it."""
        limits = tuple(str(held.limit) for held in self.candidates[0].limits)
        columns = ("new rows", "95 % interval", "to best", "95 % interval", "stream", *limits)
        names = tuple(candidate.title for candidate in self.candidates)
        return Grid(columns, names, tuple(map(self._line, self.candidates)), (self.note,), "rule")

    def _line(self, candidate: Candidate) -> tuple[Entry, ...]:
        is_best = candidate.name == self.best_name
        stream = candidate.stream
        texts = (
            f"{100 * candidate.value:.2f}",
            _range(candidate.interval),
            "best" if is_best else f"{100 * candidate.behind:+.2f}",
            "" if is_best else _range(candidate.behind_interval),
            MISSING if stream is None else f"{100 * stream:.2f}",
            *map(_limit_cell, candidate.limits),
        )
        return tuple([Entry(instead=text or " ") for text in texts])

    @property
    def data(self) -> list[dict[str, Any]]:
        """A record for each candidate, as fractions and in full."""
        return [
            {
                "rule": candidate.name,
                "value": candidate.value,
                "low": candidate.interval[0],
                "high": candidate.interval[1],
                "behind": candidate.behind,
                "behind_low": candidate.behind_interval[0],
                "behind_high": candidate.behind_interval[1],
                "out_of_fold": candidate.out_of_fold,
                "stream": candidate.stream,
                "best": candidate.name == self.best_name,
                **_limits_data(candidate),
            }
            for candidate in self.candidates
        ]

    @property
    def note(self) -> str:
        """How values were estimated."""
        return (
            f"{self.metric} in %, {self.how}: each row was decided by a rule made without it; "
            "intervals are from a bootstrap over rows, corrected for choosing the best. stream: "
            "the policy learns as it decides."
        )

    @property
    def label_data(self) -> list[dict[str, Any]]:
        """A record for each label: its threshold, where the rule has thresholds, and its gain."""
        if self.labels is None:
            raise ValueError(f"{self.metric} has no part for each label, so there is no table")
        free = self.rule.k is None and self.rule.at_most is None
        thresholds = self.rule.thresholds if free else np.full(self.rule.m, np.nan)
        labels = self.labels
        numbers = (labels.positive, thresholds, labels.simple, labels.best, labels.gains)
        fields = ("label", "occurs", "threshold", "simple", "best", "gain")
        names = self.rule.names or tuple(map(str, range(self.rule.m)))
        lines = zip(names, *(column.tolist() for column in numbers), strict=True)
        return [dict(zip(fields, line, strict=True)) for line in lines]

    @property
    def label_table(self) -> Grid:
        """The threshold of each label, where the rule has thresholds, and what it gains."""
        data = self.label_data
        assert self.labels is not None
        has_thresholds = not all(np.isnan(label["threshold"]) for label in data)
        threshold = ("threshold",) if has_thresholds else ()  # a budget has none
        columns = ("occurs", *threshold, self[SIMPLE].title, self.best.title, "gain")
        note = f"{self.labels.metric} of each label on unseen rows, in %."
        lines = tuple(_label_line(label, has_thresholds) for label in data)
        return Grid(columns, tuple(label["label"] for label in data), lines, (note,), "label")

    @property
    def bars(self) -> dict[str, tuple[float, float, float]]:
        """Value, low and high end of each candidate in %, by its title: what a picture shows."""
        return {
            one.title: (100 * one.value, 100 * one.interval[0], 100 * one.interval[1])
            for one in self.candidates
        }

    def plot(self) -> Figure:
        """Draw the value of each candidate with its interval; the figure has a ``savefig``."""
        title = f"{self.metric} on new rows, %"
        return plots.plot_choice(self.bars, self.best.title, title=title)

    def __rich__(self) -> Table:
        return self.table.__rich__()

    def __str__(self) -> str:
        calibration = () if self.calibration is None else (str(self.calibration),)
        parts = (f"{self.table}\n", self.verdict, self.note, *self.notes, *calibration)
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"<choice by {self.metric}: {self.best.title}, {100 * self.best.value:.2f} %>"


def _range(ends: Range) -> str:
    return f"{100 * ends[0]:.2f} … {100 * ends[1]:.2f}"


def _to(ends: Range) -> str:
    return f"{100 * ends[0]:.2f} to {100 * ends[1]:.2f}"


def _capital(title: str) -> str:
    """A title at the start of a sentence; names of rules that are no names have an article."""
    return title if title[0].isupper() else f"The {title}"


def _misses(candidate: Candidate) -> str:
    """Which limits a candidate misses, and by how much."""
    said = []
    for held in candidate.limits:
        by = _missed_by(held)
        if by:
            chance = ", less than its standard error" if by < held.error else ""
            said.append(f"misses {held.limit} by {by:.4f}{chance}")
    return " and ".join(said)


def _limit_value(held: Held) -> str:
    """The value of a limit and its interval, in words."""
    if np.isnan(held.value):
        return f"{held.limit}: nothing to judge it by"
    low, high = held.interval
    return f"{held.limit}: {held.value:.4f} ({low:.4f} to {high:.4f})"


def _limit_cell(held: Held) -> str:
    """The value of a limit, and whether it is missed; 0/0 says nothing."""
    if np.isnan(held.value):
        return MISSING
    return f"{held.value:.4f}{' (missed)' if _missed_by(held) else ''}"


def _limits_data(candidate: Candidate) -> dict[str, Any]:
    """The limits of a candidate for programs; nothing where there are none."""
    if not candidate.limits:
        return {}
    records = [
        {
            "limit": str(held.limit),
            "value": None if np.isnan(held.value) else held.value,
            "interval": list(held.interval),
            "error": None if np.isnan(held.error) else held.error,
            "holds": _missed_by(held) == 0.0,
            "missed_by": _missed_by(held),
        }
        for held in candidate.limits
    ]
    return {"limits": records, "holds": candidate.holds}


def _label_line(label: dict[str, Any], has_thresholds: bool) -> tuple[Entry, ...]:
    threshold = label["threshold"]
    shown = MISSING if np.isnan(threshold) else f"{threshold:.4g}"
    texts = [f"{label['occurs']:g}"]
    texts += [shown] if has_thresholds else []
    texts += [f"{100 * label['simple']:.2f}", f"{100 * label['best']:.2f}"]
    texts.append(f"{100 * label['gain']:+.2f}")
    return tuple([Entry(instead=text) for text in texts])

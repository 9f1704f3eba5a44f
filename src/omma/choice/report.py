"""What was found, in words, as a table, as data and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omma import plots
from omma._validate import nearest
from omma.choice.makers import SIMPLE
from omma.held import Held
from omma.rule import Rule
from omma.tables import MISSING, padded

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table as Drawn

Range = tuple[float, float]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Candidate:
    """One rule, judged on rows that it has not seen.

    Attributes
    ----------
    name, title : str
        For programs, and for people.
    value : float
        The metric.
    interval : tuple of float
        Where the value lies with 95 % confidence, were the rows drawn again; the rule itself is
        taken as it is.
    behind : float
        How far it is below the best: 0 for the best, below 0 for the others.
    behind_interval : tuple of float
        The same for that difference. Both rules are judged on the same rows, so it is known better
        than either value.
    stream : float or None
        The metric of its policy as it runs online over all rows, learning as it goes.
    limits : tuple of Held
        How the limits stand on these rows, where there are any.
    """

    name: str
    title: str
    value: float
    interval: Range
    behind: float
    behind_interval: Range
    stream: float | None
    limits: tuple[Held, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether all limits hold on these rows, or are missed by less than a standard error.

        Those with a margin hold where they keep it, or miss it by less than that.
        """
        return missed(self.limits) == 0.0

    @property
    def as_good(self) -> bool:
        """Whether it may be as good as the best, by these rows."""
        return self.behind_interval[1] >= 0.0


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
        found: Vector = self.best - self.simple
        return found


@dataclass(frozen=True)
class Table:
    """Columns and lines: printed as text, drawn by rich, or taken as data."""

    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    data: list[dict[str, Any]] = field(repr=False)
    note: str = ""

    def __str__(self) -> str:
        every = padded([list(line) for line in (self.columns, *self.lines)], left=1)
        return "\n".join("  ".join(line).rstrip() for line in every)

    def __rich__(self) -> Drawn:
        from rich import box
        from rich.table import Table as Drawn

        table = Drawn(box=box.SIMPLE_HEAD, caption=self.note or None, caption_justify="left")
        for place, column in enumerate(self.columns):
            table.add_column(column, justify="right" if place else "left")
        for line in self.lines:
            table.add_row(*line)
        return table


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """Rules judged on rows that they have not seen; what ``omma.choose`` returns.

    Attributes
    ----------
    metric : str
        What they are judged by.
    candidates : tuple of Candidate
        The simplest first.
    rule : Rule
        The best, made again of all rows: what to deploy.
    labels : PerLabel or None
        What it gains on each label over the simple rule; None where labels have no metric of
        their own.
    how : str
        How many folds and rows there were.
    notes : tuple of str
        A sentence about each rule, and about the rows, that could not be judged.
    """

    metric: str
    candidates: tuple[Candidate, ...]
    rule: Rule
    labels: PerLabel | None
    how: str
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> Candidate:
        """The candidate of the highest value, of equals the simplest.

        Under limits, it is that of those which hold, or else the one that misses them least.
        """
        return min(self.candidates, key=lambda one: (missed(one.limits), -one.value))

    def __getitem__(self, name: str) -> Candidate:
        known = {one.name: one for one in self.candidates}
        if name not in known:
            hint = nearest(str(name), tuple(known)) or f"; there are {', '.join(known)}"
            raise KeyError(f"a choice has no candidate {name!r}{hint}")
        return known[name]

    @property
    def verdict(self) -> str:
        """What to do, in a sentence or two."""
        best, simple = self.best, self[SIMPLE]
        low, high = (100 * one for one in best.interval)
        worth = f"expect {100 * best.value:.2f} % ({low:.2f} to {high:.2f}) on new rows"
        if best.limits:
            return f"{self._under_limits(best, worth)} {_stands(best)}"
        if best.name == SIMPLE:
            return f"The {simple.title} is as good as anything here: {worth}."
        less, more = -100 * simple.behind_interval[1], -100 * simple.behind_interval[0]
        gain = f"{-100 * simple.behind:.2f} points ({less:.2f} to {more:.2f})"
        if simple.as_good:
            return (
                f"The {simple.title} is as good, as far as these rows can tell: {best.title} is "
                f"ahead by {gain}; {worth}."
            )
        return f"Deploy {best.title}: {worth}, {gain} more than the {simple.title}."

    def _under_limits(self, best: Candidate, worth: str) -> str:
        """What to do where limits come first."""
        title = f"the {best.title}" if best.name == SIMPLE else best.title
        if not best.holds:
            return f"No rule here keeps the limits; the nearest is {title}: {worth}."
        others = [one for one in self.candidates if not one.holds]
        more = f"; {len(others)} of {len(self.candidates)} rules break a limit" if others else ""
        return f"Deploy {title}: {worth}{more}."

    @property
    def table(self) -> Table:
        """A line for each candidate, in %: as text, for rich, and as ``data``."""
        columns = ("rule", "unseen rows", "95 % interval", "to the best", "95 % interval", "stream")
        limits = tuple(str(one.limit) for one in self.candidates[0].limits)
        return Table((*columns, *limits), tuple(map(_line, self.candidates)), self.data, self.note)

    @property
    def data(self) -> list[dict[str, Any]]:
        """A record for each candidate, as fractions and in full."""
        return [
            {
                "rule": one.name,
                "value": one.value,
                "low": one.interval[0],
                "high": one.interval[1],
                "behind": one.behind,
                "behind_low": one.behind_interval[0],
                "behind_high": one.behind_interval[1],
                "stream": one.stream,
                "best": one is self.best,
                **_limits_data(one),
            }
            for one in self.candidates
        ]

    @property
    def note(self) -> str:
        """How values were found."""
        return (
            f"{self.metric} in %, {self.how}: every row is decided by a rule made without it. "
            "stream: the policy goes on learning as it decides."
        )

    @property
    def label_table(self) -> Table:
        """The threshold of each label, where the rule has thresholds, and what it gains."""
        if self.labels is None:
            raise ValueError(f"{self.metric} has no part for each label, so there is no table")
        free = self.rule.k is None and self.rule.at_most is None
        cuts = self.rule.thresholds if free else np.full(self.rule.m, np.nan)
        names = self.rule.names or tuple(map(str, range(self.rule.m)))
        columns = ("label", "occurs", "threshold", self[SIMPLE].title, self.best.title, "gain")
        found, numbers = self.labels, []
        for name, *cells in zip(
            names, found.positive, cuts, found.simple, found.best, found.gains, strict=True
        ):
            numbers.append(dict(zip(LABEL_FIELDS, (name, *map(float, cells)), strict=True)))
        lines = tuple(_label_line(one) for one in numbers)
        return Table(columns, lines, numbers, f"{found.metric} of each label on unseen rows, in %.")

    @property
    def bars(self) -> dict[str, tuple[float, float, float]]:
        """Value, low and high end of each candidate in %, by its title: what a picture shows."""
        return {
            one.title: (100 * one.value, 100 * one.interval[0], 100 * one.interval[1])
            for one in self.candidates
        }

    def plot(self) -> Figure:
        """Draw the value of each candidate with its interval; the figure has a ``savefig``."""
        title = f"{self.metric} on unseen rows, %"
        return plots.plot_choice(self.bars, self.best.title, title=title)

    def __rich__(self) -> Drawn:
        return self.table.__rich__()

    def __str__(self) -> str:
        return "\n".join((f"{self.table}\n", self.verdict, self.note, *self.notes))

    def __repr__(self) -> str:
        return f"<choice by {self.metric}: {self.best.title}, {100 * self.best.value:.2f} %>"


LABEL_FIELDS = ("label", "occurs", "threshold", "simple", "best", "gain")


def _line(one: Candidate) -> tuple[str, ...]:
    leads = one.behind == 0.0 and one.behind_interval == (0.0, 0.0)
    return (
        one.title,
        f"{100 * one.value:.2f}",
        _range(one.interval),
        "best" if leads else f"{100 * one.behind:+.2f}",
        "" if leads else _range(one.behind_interval),
        MISSING if one.stream is None else f"{100 * one.stream:.2f}",
        *map(_value, one.limits),
    )


def _value(held: Held) -> str:
    """The value of a limit, and whether it is missed; 0/0 says nothing."""
    if np.isnan(held.value):
        return MISSING
    return f"{held.value:.4f}{'' if held.holds else ' (missed)'}"


def missed(limits: tuple[Held, ...]) -> float:
    """By how much limits, with their margins, are missed in all, beyond a standard error of each.

    >>> from omma.limits import at_least
    >>> wide, narrow = (at_least("recall", 0.8, margin=margin) for margin in (0, 2))
    >>> missed((Held(wide, 0.8, 0.0, 0.01),)), round(missed((Held(narrow, 0.8, 0.0, 0.01),)), 6)
    (0.0, 0.01)
    """
    return sum(map(_missed, limits))


def _missed(held: Held) -> float:
    margin = held.limit.margin
    if np.isnan(held.value) or (held.holds and not margin):
        return 0.0
    return max(float(held.excess + (margin - 1.0) * held.error), 0.0)


def _stands(best: Candidate) -> str:
    """The limits of the best rule, in words."""
    said = []
    for one in best.limits:
        low, high = one.interval
        value = f"{one.value:.4f} ({low:.4f} to {high:.4f})"
        said.append(f"{one.limit}: {'nothing to judge it by' if np.isnan(one.value) else value}")
    return f"On rows not seen, {'; '.join(said)}."


def _limits_data(one: Candidate) -> dict[str, Any]:
    """The limits of a candidate for programs; nothing where there are none."""
    if not one.limits:
        return {}
    found = [
        {
            "limit": str(held.limit),
            "value": None if np.isnan(held.value) else held.value,
            "error": None if np.isnan(held.error) else held.error,
            "holds": held.holds,
        }
        for held in one.limits
    ]
    return {"limits": found, "holds": one.holds}


def _range(ends: Range) -> str:
    return f"{100 * ends[0]:.2f} … {100 * ends[1]:.2f}"


def _label_line(one: dict[str, Any]) -> tuple[str, ...]:
    cut = MISSING if np.isnan(one["threshold"]) else f"{one['threshold']:.4g}"
    rates = (f"{100 * one[name]:.2f}" for name in ("simple", "best"))
    return (one["label"], f"{one['occurs']:g}", cut, *rates, f"{100 * one['gain']:+.2f}")

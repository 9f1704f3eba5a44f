"""What ``omma.choose`` returns: a recommendation in words, as tables, as data and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from omma._validate import nearest
from omma.calibration.reliability import CalibrationCheck
from omma.comparison.resampling import Array, Range
from omma.limits import LimitStatus
from omma.rule import Rule
from omma.tables import MISSING, Grid, text_grid, to_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

SIMPLE = "baseline"  # the name of the 0.5 threshold, or of the top k


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
    limits : tuple of LimitStatus
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
    limits: tuple[LimitStatus, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether all limits, with their margins, hold on unseen rows."""
        return self.shortfall == 0.0

    @property
    def shortfall(self) -> float:
        """The sum of how much each limit is missed, margins included."""
        return sum(status.missed_by for status in self.limits)

    @property
    def as_good(self) -> bool:
        """Whether the rule is not distinguishable from the best on this data."""
        return self.behind_interval[1] >= 0.0


@dataclass(frozen=True, eq=False)
class PerLabel:
    """The metric of each label under the simple rule and under the best one.

    Attributes
    ----------
    metric : str
        Of one label.
    positive : ndarray of shape (m,)
        How often each label occurs, where it is known.
    simple, best : ndarray of shape (m,)
    """

    metric: str
    positive: Array
    simple: Array
    best: Array

    @property
    def gains(self) -> Array:
        """What the best rule adds to each label."""
        return np.asarray(self.best - self.simple)


@dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """The result of ``omma.choose``: rules with their scores on unseen rows.

    Attributes
    ----------
    metric : str
        The metric of the scores.
    candidates : tuple of Candidate
        The simplest first.
    best_name : str
        The name of the best candidate.
    rule : Rule
        The rule to deploy: the best candidate, learned from all rows.
    labels : PerLabel or None
        Its gain on each label over the 0.5 threshold or the top k; None if the metric is not
        defined for single labels.
    how : str
        The number of folds and rows.
    notes : tuple of str
        Notes about rules that were left out, rows that were skipped, and too little data.
    calibration : CalibrationCheck or None
        Whether the probabilities look calibrated, and what calibration would gain; print it. None
        for one class per row.
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
        """The candidate with the highest out-of-fold value; of equal ones, the simplest.

        With limits, the best of those that meet them. If none does, the one with the smallest
        violation.
        """
        return self[self.best_name]

    @property
    def as_good(self) -> list[Candidate]:
        """Other rules that this data does not distinguish from the best, and that hold limits."""
        best = self.best
        return [rule for rule in self.candidates if rule.as_good and rule.holds and rule != best]

    def __getitem__(self, name: str) -> Candidate:
        known = {candidate.name: candidate for candidate in self.candidates}
        if name in known:
            return known[name]
        hint = nearest(str(name), known) or f"; there are {', '.join(known)}"
        raise KeyError(f"a choice has no candidate {name!r}{hint}")

    @property
    def verdict(self) -> str:
        """What to do, in a few sentences."""
        best, simple = self.best, self[SIMPLE]
        # Values are fractions everywhere; people read percent.
        expect = f"expect {100 * best.value:.2f} % ({_range(best.interval)}) on new rows"
        if best.limits:
            return self._verdict_with_limits(expect)
        if best is simple:
            return f"The {simple.title} is as good as anything here: {expect}."
        # The gain of the best rule is how far the simple one is behind, with its sign turned.
        low, high = simple.behind_interval
        gain = f"{-100 * simple.behind:.2f} points ({_range((-high, -low))})"
        if simple.as_good:
            return (
                f"{best.title} and the {simple.title} are not distinguishable on this data: "
                f"{best.title} is ahead by {gain}; {expect}."
            )
        return f"Deploy {best.title}: {expect}, {gain} more than the {simple.title}."

    def _verdict_with_limits(self, expect: str) -> str:
        """Limits first, then a rule that scores more but misses them, if there is one."""
        best = self.best
        title = f"the {best.title}" if best.name == SIMPLE else best.title
        values = "; ".join(map(_limit_value, best.limits))
        if not best.holds:
            return (
                f"No rule here holds all limits. Nearest is {title}, which {_misses(best)}: "
                f"{expect}. On unseen rows, {values}."
            )
        text = f"Deploy {title}: {expect}. On unseen rows, {values}."
        # The table shows rules with higher values: say why they were not chosen.
        ahead = [rule for rule in self.candidates if not rule.holds and rule.behind > 0.0]
        if ahead:
            near = min(ahead, key=lambda rule: rule.shortfall)
            # A title that is no name, such as top-3 rule, needs an article here.
            subject = near.title if near.title[0].isupper() else f"The {near.title}"
            text += f" {subject} scores {100 * near.behind:.2f} points more, but {_misses(near)}."
        return text

    @property
    def table(self) -> Grid:
        """A line for each candidate, in %; print it."""
        lines = []
        for rule in self.candidates:
            is_best = rule.name == self.best_name
            cells = [
                rule.title,
                f"{100 * rule.value:.2f}",
                _range(rule.interval, "…"),
                "best" if is_best else f"{100 * rule.behind:+.2f}",
                " " if is_best else _range(rule.behind_interval, "…"),
                # A rule that does not learn has no value online.
                MISSING if rule.stream is None else f"{100 * rule.stream:.2f}",
                *map(_limit_cell, rule.limits),
            ]
            lines.append(cells)
        limits = [str(status.limit) for status in self.best.limits]
        columns = ["new rows", "95 % interval", "to best", "95 % interval", "stream", *limits]
        return text_grid("rule", columns, lines, self.note)

    @property
    def data(self) -> list[dict[str, Any]]:
        """A record for each candidate, as fractions and in full."""
        records: list[dict[str, Any]] = []
        for rule in self.candidates:
            record = {
                "rule": rule.name,
                "value": rule.value,
                "low": rule.interval[0],
                "high": rule.interval[1],
                "behind": rule.behind,
                "behind_low": rule.behind_interval[0],
                "behind_high": rule.behind_interval[1],
                "out_of_fold": rule.out_of_fold,
                "stream": rule.stream,
                "best": rule.name == self.best_name,
            }
            limits = [
                {
                    "limit": str(status.limit),
                    "value": None if np.isnan(status.value) else status.value,
                    "interval": list(status.interval),
                    "error": None if np.isnan(status.error) else status.error,
                    "holds": status.missed_by == 0.0,
                    "missed_by": status.missed_by,
                }
                for status in rule.limits
            ]
            records.append({**record, "limits": limits, "holds": rule.holds} if limits else record)
        return records

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
        labels, rule = self.labels, self.rule
        # With a budget, a label is predicted where its gain is among the highest of the row.
        has_thresholds = rule.k is None and rule.at_most is None
        thresholds = rule.thresholds if has_thresholds else np.full(rule.m, np.nan)
        numbers = (labels.positive, thresholds, labels.simple, labels.best, labels.gains)
        names = rule.names or tuple(map(str, range(rule.m)))
        keys = ("label", "occurs", "threshold", "simple", "best", "gain")
        # Plain Python numbers, so that records go into JSON as they are.
        lines = zip(names, *(column.tolist() for column in numbers), strict=True)
        return [dict(zip(keys, line, strict=True)) for line in lines]

    @property
    def label_table(self) -> Grid:
        """The threshold of each label, where the rule has thresholds, and what it gains."""
        lines = [
            [
                label["label"],
                f"{label['occurs']:g}",
                MISSING if np.isnan(label["threshold"]) else f"{label['threshold']:.4g}",
                f"{100 * label['simple']:.2f}",
                f"{100 * label['best']:.2f}",
                f"{100 * label['gain']:+.2f}",
            ]
            for label in self.label_data
        ]
        columns = ["occurs", "threshold", self[SIMPLE].title, self.best.title, "gain"]
        if all(line[2] == MISSING for line in lines):  # a budget has no thresholds
            columns.remove("threshold")
            lines = [line[:2] + line[3:] for line in lines]
        assert self.labels is not None
        note = f"{self.labels.metric} of each label on unseen rows, in %."
        return text_grid("label", columns, lines, note)

    @property
    def bars(self) -> dict[str, tuple[float, float, float]]:
        """Value, low and high end of each candidate in %, by its title: what a picture shows."""
        return {
            rule.title: (100 * rule.value, 100 * rule.interval[0], 100 * rule.interval[1])
            for rule in self.candidates
        }

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the value of each candidate with its interval; the figure has a ``savefig``."""
        from omma.plots import plot_choice

        title = f"{self.metric} on new rows, %"
        return plot_choice(self.bars, self.best.title, title=title, ax=ax)

    def __rich__(self) -> Table:
        return self.table.__rich__()

    def _repr_html_(self) -> str:
        return to_html(replace(self.table, notes=(self.note, *self.notes)), self.verdict)

    def __str__(self) -> str:
        calibration = () if self.calibration is None else (str(self.calibration),)
        return "\n".join((f"{self.table}\n", self.verdict, self.note, *self.notes, *calibration))

    def __repr__(self) -> str:
        return f"<choice by {self.metric}: {self.best.title}, {100 * self.best.value:.2f} %>"


def _range(ends: Range, between: str = "to") -> str:
    return f"{100 * ends[0]:.2f} {between} {100 * ends[1]:.2f}"


def _misses(rule: Candidate) -> str:
    """Which limits a candidate misses, and by how much."""
    return " and ".join(
        f"misses {status.limit} by {status.missed_by:.4f}"
        + (", less than its standard error" if status.missed_by < status.error else "")
        for status in rule.limits
        if status.missed_by
    )


def _limit_value(status: LimitStatus) -> str:
    """The value of a limit and its interval, in words."""
    if np.isnan(status.value):
        return f"{status.limit}: nothing to judge it by"
    low, high = status.interval
    return f"{status.limit}: {status.value:.4f} ({low:.4f} to {high:.4f})"


def _limit_cell(status: LimitStatus) -> str:
    """The value of a limit and whether it is missed; a dash where it is 0/0."""
    if np.isnan(status.value):
        return MISSING
    return f"{status.value:.4f}{' (missed)' if status.missed_by else ''}"

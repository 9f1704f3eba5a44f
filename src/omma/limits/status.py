"""The status of limits: the value of each so far, its price, and whether it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from omma.counts import Counts, counts_of
from omma.limits.compiled import price_unit
from omma.limits.limit import Limit
from omma.state import State

TWO_SIDED = 1.959964  # standard errors on either side of 95 %, by the normal distribution
# A limit counts as out of reach at a price at which all that it leaves free costs ten times the
# whole metric, which is at most one.
UNREACHABLE_PRICE = 10.0
LEAST_ROOM = 0.02  # a limit that leaves less room is taken to leave this much
ROUNDING = 1e-9


@dataclass(frozen=True)
class LimitStatus:
    """A limit, its value so far, and whether it holds.

    Attributes
    ----------
    limit : Limit
    value : float
        The bounded rate so far; NaN where it is 0/0, as precision is where nothing was predicted.
    price : float
        How much of the metric a unit of the limit costs; decisions trade one for the other at it.
    error : float
        The standard error of the value, as of independent draws.
    draws : float
        The number of draws: predictions for precision, occurrences for recall. NaN where that is
        not known, and for a mean of rates.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=4000, m=20, seed=0)
    >>> trace = omma.replay(omma.Auto("macro_f1", subject_to="labels_per_row <= 1"), eta, y)
    >>> (status,) = trace.limits
    >>> status.name, status.bound, abs(status.value - 1) < 0.01
    ('labels_per_row', 1.0, True)
    """

    limit: Limit
    value: float
    price: float
    error: float
    draws: float = math.nan

    @classmethod
    def of(cls, limit: Limit, counts: Counts, price: float = 0.0) -> LimitStatus:
        """The status of a limit at some counts; NaN where these have no rows."""
        if not counts.n > 0:
            return cls(limit, math.nan, price, math.nan)
        return cls(limit, limit.value(counts), price, limit.error(counts), limit.draws(counts))

    @property
    def name(self) -> str:
        """The name of the bounded rate."""
        return self.limit.name

    @property
    def bound(self) -> float:
        """The bound of the limit."""
        return self.limit.bound

    @property
    def excess(self) -> float:
        """By how much the limit is missed; below zero where there is room."""
        return self.limit.sign * (self.bound - self.value)

    @property
    def holds(self) -> bool:
        """Whether the limit holds; a value that is not known yet counts as holding."""
        return math.isnan(self.value) or self.excess <= ROUNDING

    @property
    def missed_by(self) -> float:
        """By how much the limit is missed, its margin of standard errors included; 0 if it holds.

        A rate of 0/0 misses nothing.

        >>> from omma.limits import at_least
        >>> plain, safe = (at_least("recall", 0.8, margin=margin) for margin in (0, 2))
        >>> [LimitStatus(limit, 0.8, 0.0, 0.01).missed_by for limit in (plain, safe)]
        [0.0, 0.02]
        """
        excess = self.excess + (self.limit.margin * self.error if self.limit.margin else 0.0)
        return float(excess) if excess > ROUNDING else 0.0  # NaN is no more than anything

    @property
    def reachable(self) -> bool:
        """False where the limit is missed by more than chance at an extremely high price.

        A price is compared with the room that the limit leaves: the last hundredth of specificity
        always has a high price.
        """
        by_chance = not self.excess > 2.0 * self.error
        free = self.bound
        if self.limit.needs_labels:
            free = max(1.0 - self.bound if self.limit.sign > 0 else self.bound, LEAST_ROOM)
        return self.holds or by_chance or self.price * free < UNREACHABLE_PRICE

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % confidence interval of the value on rows like these.

        A rate has Wilson's score interval, which does not end at 1 where seven of seven were hits.

        >>> from omma.limits import at_least
        >>> low, high = LimitStatus(at_least("precision", 0.9), 1.0, 0.0, 0.0, draws=7).interval
        >>> round(low, 2), high
        (0.65, 1.0)
        """
        spread = TWO_SIDED * self.error
        share = self.limit.of != "labels_per_row"
        if not share or not self.draws > 0:
            return max(self.value - spread, 0.0), min(
                self.value + spread, 1.0 if share else math.inf
            )
        # Wilson (1927): (p + z²/2n ± z √(p (1 − p) / n + z²/4n²)) / (1 + z²/n).
        per_draw = TWO_SIDED**2 / self.draws
        middle = (self.value + per_draw / 2.0) / (1.0 + per_draw)
        half = math.sqrt(per_draw * self.value * (1.0 - self.value) + per_draw**2 / 4.0)
        half /= 1.0 + per_draw
        return max(middle - half, 0.0), min(middle + half, 1.0)

    def __str__(self) -> str:
        digits = max(2, len(f"{self.bound:g}".partition(".")[2]))
        if not self.reachable:
            return (
                f"{self.name}: reached {self.value:.{digits}f}, asked {self.bound:.{digits}f}: no "
                "rule does better here"
            )
        if math.isnan(self.value):
            return f"{self.limit}: nothing to judge it by yet"
        said = f"{self.limit}: {self.value:.4f}"
        if self.holds:
            return f"{said}, holds"
        chance = ", less than its standard error" if self.excess < self.error else ""
        return f"{said}, misses it by {self.excess:.4f}{chance}"


def limit_statuses(limits: tuple[Limit, ...], state: State) -> tuple[LimitStatus, ...]:
    """The status of a policy's limits in one of its states."""
    if state.prices is None:
        return ()
    labels, own = counts_of(state), Counts._unchecked(state.cells.copy(), state.own.rows)
    statuses = []
    for limit, price in zip(limits, state.prices.mu.tolist(), strict=True):
        limit = limit.named(None, state.m, "a policy")
        # Predictions are known of all rows; rates of rows whose labels came, or of estimates.
        of_all_rows = state.known is None or not limit.needs_labels
        counts = own if of_all_rows and state.labels is not None else labels
        if counts.n > 0:
            price *= price_unit(limit, counts)
        statuses.append(LimitStatus.of(limit, counts, price))
    return tuple(statuses)

"""What a decision rule looks like to the kernels: numbers, and parts that it has or does without.

Fixed rules, one or several to pick from, are plans without a metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import Calibrator, Settled, calibrating
from omma.kernels.count import Sums, summing
from omma.kernels.decide import Deciding, deciding
from omma.kernels.fade import Fading
from omma.kernels.feedback import (
    OF_A_ROW,
    OF_NO_LABEL,
    Counted,
    FromAll,
    FromBoth,
    FromEstimates,
    FromLabels,
    FromSome,
    products,
)
from omma.kernels.kinds import Costs, Fixed, Nothing
from omma.kernels.layout import SUMS_AND_PRODUCTS
from omma.kernels.limits import MEAN, SETTLED, STEADY as STEADY_KIND, OnEstimates, OnLabels
from omma.kernels.partly import Parted
from omma.kernels.ranks import ranked
from omma.kernels.signs import forms
from omma.kernels.slide import Sliding
from omma.parts import Prices
from omma.recent import WindowState
from omma.rows.labels import Ids
from omma.running.empty import NO_NUMBERS
from omma.state import State

NOTHING = Nothing(0.0)
STEADY = np.array([1.0, 1.0, 0.0])  # the pace of a state that forgets nothing


class Shrinkage(NamedTuple):
    """How much labels correct counts of probabilities; see ``omma.kernels.feedback``."""

    hits: float = 10.0
    positives: float = 10.0
    unhit: float = 10.0
    lucky: float = 0.0
    eager: float = 0.0
    whole: bool = False  # decisions look at all labels
    sums_only: bool = False  # at none of them, but at sums

    @property
    def strengths(self) -> tuple[float, float, float, float, float]:
        """The numbers among them."""
        return self.hits, self.positives, self.unhit, self.lucky, self.eager


class Limited(NamedTuple):
    """Limits as the kernels know them; see ``omma.kernels.limits``."""

    numbers: NDArray[np.float64]
    kinds: NDArray[np.int64]
    labels: NDArray[np.int64]

    def start(self) -> Prices:
        """The prices before the first row."""
        return Prices.start(len(self.labels), rates=bool((self.kinds == MEAN).any()))


@dataclass(frozen=True)
class Plan:
    """A linear rule that follows its counts: what every kernel needs to know of it."""

    k: int | None
    term: Any = NOTHING
    matrix: NDArray[Any] | None = None  # None is left out by the compiler
    prior: float = 0.0
    soft: bool = False
    sums: int = 0
    at_most: int | None = None
    shrinkage: Shrinkage | None = None  # feedback from labels and estimates both
    calibrated: bool = False
    settled: tuple[float, float, NDArray[Any]] | None = None  # calibration that learns no more
    growth: float | None = None  # of the weight of rows, where the past fades
    limits: Limited | None = None
    window: int | None = None  # rows that decisions look at

    @property
    def budget(self) -> int:
        """How many labels a row gets, as the kernels know it."""
        return (self.k or 0) if self.at_most is None else -self.at_most

    @cached_property
    def deciding(self) -> Deciding:
        """How rows are decided, as the kernels know it."""
        term = self.term
        if self.matrix is not None:
            term = Costs(term, np.ascontiguousarray(self.matrix, dtype=np.float64))
        return deciding(term, float(self.prior), self.budget, self.limits is not None)

    @cached_property
    def signs(self) -> NDArray[np.float64] | None:
        """The numbers by which signs of gains decide; None where it takes gains, or more."""
        if self.budget or not self._counts_alone:
            return None
        return forms(self.term, float(self.prior))

    @cached_property
    def ranked(self) -> bool:
        """Whether gains of each label, ranked within a budget, decide dense rows, and no more."""
        return bool(self.budget) and self._counts_alone and self._of_each

    @cached_property
    def corrected_signs(self) -> NDArray[np.float64] | None:
        """The numbers by which signs decide where labels correct calibrated probabilities."""
        by = self.shrinkage
        if self.budget or by is None or not self._corrects_alone or by.unhit != by.hits:
            return None
        return forms(self.term, float(self.prior)) if self.sums < SUMS_AND_PRODUCTS else None

    @cached_property
    def corrected_ranked(self) -> bool:
        """The same with a budget."""
        return bool(self.budget) and self._corrects_alone and self._of_each

    @property
    def _counts_alone(self) -> bool:
        """Whether labels are counted, and nothing else is done."""
        return self.shrinkage is None and not self.calibrated and not self._besides

    @property
    def _corrects_alone(self) -> bool:
        """Whether labels correct calibrated probabilities, and nothing else is done."""
        both = self.shrinkage is not None and self.calibrated and self.settled is None
        return both and not self._besides

    @property
    def _besides(self) -> bool:
        return any(one is not None for one in (self.matrix, self.growth, self.limits, self.window))

    @property
    def _of_each(self) -> bool:
        """Whether gains of a label take its own counts, and sums over labels."""
        return ranked(self.term) and self.sums < SUMS_AND_PRODUCTS

    def start(self, m: int) -> State:
        """The state before the first row."""
        both = self.shrinkage is not None
        made = State.zeros(
            m, soft=self.soft, both=both, calibrated=self.calibrated, growth=self.growth
        )
        if self.window is not None:
            made = WindowState.over(made, self.window)
        made.prices = None if self.limits is None else self.limits.start()
        if self.settled is not None and made.calibration is not None:
            made.calibration.take(*self.settled)
        return made

    def feedback(self, state: State, own: Counted | None = None) -> Any:
        """The counts of a state, as the kernels know them; ``own`` may stand for what it looks at.

        That is for labels that come late, of rows whose probabilities were counted before.
        """
        found = self._counted(state)
        if own is not None and not isinstance(found, FromLabels | FromSome):
            found = found._replace(own=own)
        if state.judged is None:
            return found
        judged = Counted(state.judged.cells, state.judged.totals)
        if isinstance(state, WindowState):
            recent = state.window.kernel()
            return Sliding(found, judged, recent, state.window.pace, kept_sums(self.sums))
        return Fading(found, judged, state.pace)

    def _counted(self, state: State) -> Any:
        own = Counted(state.cells, state.totals)
        if state.labels is None and state.missed is not None:
            seen = Counted(np.zeros_like(state.cells), np.zeros_like(state.totals))
            return FromSome(own, state.missed, seen)
        if state.labels is None:
            return FromLabels(own)
        labels = Counted(state.labels.cells, state.labels.totals)
        if state.known is None or self.shrinkage is None:
            return FromEstimates(own, labels)
        known = Counted(state.known.cells, state.known.totals)
        seen = Counted(np.zeros_like(state.cells), np.zeros_like(state.totals))
        strength = self.shrinkage
        looked: Any = OF_NO_LABEL if strength.sums_only else OF_A_ROW
        whole = products() if strength.whole else looked
        return FromBoth(own, labels, known, *strength.strengths, seen, whole)

    def feedback_of_all(self, state: State) -> FromAll | None:
        """The same for rows that all have labels, after rows that all had; None where it is more.

        What is counted of rows with labels is then not counted again: it is copied at the end.
        """
        if self.shrinkage is None or state.judged is not None or not state.all_labelled:
            return None
        found = self._counted(state)
        return FromAll(*(getattr(found, name) for name in FromAll._fields))

    def prices(self, state: State, *, late: bool = False) -> OnLabels | OnEstimates | None:
        """The prices of a state, as the kernels know them.

        Where labels come ``late``, what was predicted moved its prices when it was, and so did
        probabilities.
        """
        found = state.prices
        if self.limits is None or found is None:
            return None
        looked = state.limited
        kind = OnEstimates if looked is state and state.labels is not None else OnLabels
        if late and kind is OnEstimates:
            return None
        limits = self.limits
        if late:
            kinds = np.where(limits.kinds == STEADY_KIND, SETTLED, limits.kinds)
            limits = limits._replace(kinds=kinds)
        counted = Counted(looked.cells, looked.totals)
        pace = STEADY if state.pace is None else state.pace
        return kind(*limits, found.mu, found.mean, found.spread, found.rates, counted, pace)

    def parted(self, state: State, unknown: Ids | None) -> Parted | None:
        """What is counted of rows that are labelled in part, beside what of rows without labels."""
        if unknown is None:
            return None
        state.take_parts()
        nowhere = Counted(np.zeros_like(state.cells), np.zeros_like(state.totals))
        missed = NO_NUMBERS if state.truth is state else state.truth.missed
        feedback = self.feedback(state, nowhere)
        return Parted(*unknown, feedback, self.prices(state, late=True), missed)


def fixed_plan(
    slope: NDArray[np.float64],
    offset: NDArray[np.float64],
    k: int | None,
    *,
    matrix: NDArray[np.float64] | None = None,
    soft: bool = False,
    at_most: int | None = None,
    calibration: tuple[float, float, NDArray[Any]] | None = None,
) -> Plan:
    """The plan of a rule that never changes."""
    return Plan(
        k,
        Fixed(np.stack((slope, offset))[np.newaxis]),
        matrix,
        soft=soft,
        at_most=at_most,
        calibrated=calibration is not None,
        settled=calibration,
    )


@cache
def kept_sums(level: int) -> Sums:
    """What keeps sums over labels of the rows of a window, which are kept as sparse ones."""
    return summing(level, True)


def calibrator_of(state: State, settled: bool = False) -> Calibrator | Settled | None:
    """The calibration of a state, as the kernels know it; a ``settled`` one learns no more."""
    found = state.calibration
    if found is None:
        return None
    pace = STEADY if state.clock is None else state.clock
    kind = Settled if settled else Calibrator
    return kind(found.shared, found.bias, found.precision, pace, *calibrating(settled))

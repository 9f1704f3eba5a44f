"""Runs the replay kernels over a whole sequence, a block of rows at a time.

A ``Plan`` is what a decision rule looks like to the kernels: numbers, and for a user's own metric
the compiled derivatives. Fixed rules, one or several to pick from, are plans without a metric.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels import (
    fade as fade_kernel,
    gradient as gradient_kernel,
    limits as limits_kernel,
)
from omma.kernels.calibrate import Calibrator, Settled, calibrating
from omma.kernels.count import Sums, summing
from omma.kernels.decide import EVERY, Deciding, deciding
from omma.kernels.fade import Fading
from omma.kernels.feedback import Counted, FromBoth, FromEstimates, FromLabels, FromSome, whole
from omma.kernels.kinds import Costs, Fixed, Nothing
from omma.kernels.layout import ONES, SCRATCH
from omma.kernels.limits import MEAN, SETTLED, STEADY as STEADY_KIND, OnEstimates, OnLabels
from omma.kernels.partly import Parted
from omma.kernels.replay import Indicated, Listed, Marks, replay_dense, replay_sparse
from omma.kernels.slide import Sliding
from omma.recent import WindowState
from omma.rows.arrays import (
    DenseProbabilities,
    Probabilities,
    Rows,
    SparseProbabilities,
    blocks,
    csr,
    entries_of,
)
from omma.rows.batch import Batch
from omma.rows.labels import Ids, Labels
from omma.state import Prices, State

NOTHING = Nothing(0.0)
WINDOW_ENTRIES = 20_000  # of rows that a window makes room for at once
NO_MATRIX = np.empty((0, 0))
NO_ROWS = np.empty(0, dtype=np.int64)
NO_LABELS = np.empty(0, dtype=np.int32)
NO_PICKS = np.empty(0, dtype=np.int32)
NO_NUMBERS = np.empty(0)
STEADY = np.array([1.0, 1.0, 0.0])  # the pace of a state that forgets nothing

Progress = Callable[[int], None]


class Shrinkage(NamedTuple):
    """How much labels correct counts of probabilities; see ``omma.kernels.feedback``."""

    hits: float = 1.0
    positives: float = 10.0
    unhit: float = 1.0
    lucky: float = 0.0
    whole: bool = False


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

    @property
    def deciding(self) -> Deciding:
        """How rows are decided, as the kernels know it."""
        term = self.term
        if self.matrix is not None:
            term = Costs(term, np.ascontiguousarray(self.matrix, dtype=np.float64))
        return deciding(term, float(self.prior), self.budget, self.limits is not None)

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
        numbers = (strength.hits, strength.positives, strength.unhit, strength.lucky)
        return FromBoth(own, labels, known, *numbers, seen, whole(strength.whole))

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


def scratch_space(m: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Space for the kernels to work in: its size does not depend on the number of rows."""
    try:
        ids, scratch = np.empty((2, m), dtype=np.int32), np.zeros((SCRATCH, m))
    except MemoryError:
        needed = 8 * SCRATCH * m / 2**30
        raise MemoryError(
            f"{m:,} labels take {needed:,.0f} GiB of space to work in, more than there is"
        ) from None
    ids[EVERY] = np.arange(m)
    scratch[ONES] = 1.0
    return scratch, ids


def weights_now(
    plan: Plan, state: State, *, settled: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Slope and offset of every label, at the present counts.

    Those of a rule that will stand still (``settled``) are at the mean price of each limit.
    """
    slope, offset = np.empty(state.m), np.empty(state.m)
    cells, totals = state.side_by_side, state.totals
    corrected = plan.shrinkage is not None and state.known is not None
    if corrected or (state.labels is None and state.missed is not None):
        cells, totals = looked_at(plan, state)
    prior = float(plan.prior) * state.unit
    gradient_kernel.gradient(plan.term, prior, cells, totals, slope, offset)
    if plan.limits is not None:
        own, prices = np.zeros((2, state.m)), plan.prices(state)
        if settled and prices is not None and state.prices is not None:
            prices = prices._replace(mu=state.prices.settled)
        limits_kernel.add_prices(prices, own[0], own[1], slope, offset)
    return slope, offset


def looked_at(plan: Plan, state: State) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The counts that decisions look at, where these are not those that are kept."""
    feedback = plan.feedback(state)
    fade_kernel.seen(feedback, Sums(plan.sums, 0))
    seen = (feedback if state.judged is None else feedback.of).seen
    return np.ascontiguousarray(seen.cells), seen.totals


def calibrator_of(state: State, settled: bool = False) -> Calibrator | Settled | None:
    """The calibration of a state, as the kernels know it; a ``settled`` one learns no more."""
    found = state.calibration
    if found is None:
        return None
    pace = STEADY if state.clock is None else state.clock
    kind = Settled if settled else Calibrator
    return kind(found.shared, found.bias, found.precision, pace, *calibrating(settled))


@dataclass(frozen=True)
class Sequence:
    """What a policy is to run over.

    ``order`` says in which order the rows come (None is theirs), ``checkpoints`` after how many
    rows to keep the counts, ``keep`` whether to keep predictions; ``progress`` hears of rows done.
    """

    batch: Batch
    order: Rows | None = None
    checkpoints: NDArray[np.int64] = field(default_factory=lambda: NO_ROWS)
    keep: bool = True
    progress: Progress | None = None

    @property
    def eta(self) -> Probabilities:
        """The probabilities of the batch."""
        return self.batch.eta

    @property
    def weights(self) -> NDArray[Any]:
        """The weights of the batch."""
        return self.batch.weights

    def true(self, rows: Rows) -> Any:
        """The true labels of some rows, as kernels read them."""
        return labels_of(self.batch.labels, rows, listed=self.batch.thin)

    def unknown(self, rows: Rows) -> Ids | None:
        """Which labels are unknown in rows that are labelled in part."""
        return None if self.batch.labels is None else self.batch.labels.unknown_of(rows)

    def pieces(self, rows: Rows, start: int) -> Iterator[Rows]:
        """Rows that come one after another; to each checkpoint, where labels are known in part."""
        if self.batch.labels is None or self.batch.labels.missing is None:
            yield rows
            return
        places = self.checkpoints - start
        yield from np.split(rows, places[(places > 0) & (places < len(rows))])


# Labels that are not known have the same type as others: no kernel is compiled again for them.
ALL_KNOWN = np.empty(0, dtype=np.uint8)
UNKNOWN = Listed(NO_ROWS, NO_ROWS, NO_LABELS, ALL_KNOWN)
NOT_INDICATED = Indicated(np.empty((1, 0), dtype=np.uint8), NO_ROWS, ALL_KNOWN)


def labels_of(labels: Labels | None, rows: Rows, listed: bool) -> Listed | Indicated:
    """True labels of some rows as kernels read them: ids for sparse rows, indicators for dense."""
    if listed:
        return UNKNOWN if labels is None else Listed(*labels.block(rows), labels.known_of(rows))
    if labels is None:
        return NOT_INDICATED
    return Indicated(*labels.indicators(rows), labels.known_of(rows))


def part_of(true: Listed | Indicated, which: Any) -> Listed | Indicated:
    """The labels of some of the rows that ``true`` has, a slice or a mask of them."""
    if isinstance(true, Indicated):
        if not len(true.rows):
            return true
        known = true.known[which] if len(true.known) else true.known
        return Indicated(true.array, true.rows[which], known)
    if not len(true.starts):
        return true
    known = true.known[which] if len(true.known) else true.known
    return Listed(true.starts[which], true.ends[which], true.ids, known)


@dataclass
class Run:
    """What is left when a sequence has been replayed."""

    state: State
    predictions: Any
    chosen: NDArray[np.int32] | None
    snapshots: NDArray[np.float64]
    snapshot_rows: NDArray[np.float64]
    seconds: float
    missed: NDArray[np.float64] | None = None  # of each label, at the snapshots


class Runner:
    """Feeds rows to the replay kernels, and keeps what comes out of them.

    ``plan`` may be exchanged between feeds for another with the same budget.
    """

    def __init__(
        self,
        owner: str,
        plan: Plan,
        eta: Probabilities,
        *,
        checkpoints: NDArray[np.int64] = NO_ROWS,
        keep: bool = True,
        state: State | None = None,
    ) -> None:
        self.owner = owner
        self.plan = plan
        self.eta = eta
        # A sparse row touches few labels: all counts of one label then come in one cache line.
        order: Literal["C", "F"] = "F" if isinstance(eta, SparseProbabilities) else "C"
        self.state = plan.start(eta.m) if state is None else state
        self.state.laid_out(order)
        self.checkpoints = checkpoints
        self.snapshots = np.empty((len(checkpoints), 3, eta.m))
        self.snapshot_rows = np.empty(len(checkpoints))
        self.missed: NDArray[np.float64] | None = None
        self.fed = 0
        self._work = scratch_space(eta.m)
        self._sink: _SparseSink | _DenseSink
        if isinstance(eta, SparseProbabilities):
            self._sink = _SparseSink(eta, plan, keep)
        else:
            self._sink = _DenseSink(eta, plan, keep)

    def feed(
        self,
        rows: Rows,
        true: Listed | Indicated,
        weights: Any = NO_NUMBERS,
        picks: Any = NO_PICKS,
        unknown: Ids | None = None,
    ) -> None:
        """Replay some rows after those that came before; ``unknown`` labels some of them lack."""
        stop = self.fed + len(rows)
        first, last = np.searchsorted(self.checkpoints, (self.fed, stop), side="right")
        plan, state = self.plan, self.state
        if isinstance(state, WindowState):
            ids, values = self._entries(rows, true)
            twice = 1 if unknown is None else 2  # what is known of a row is kept beside it
            state.window.make_room(twice * len(rows), twice * ids, twice * values)
        part = plan.parted(state, unknown)
        marks = Marks(
            self.checkpoints[first:last] - self.fed,
            self.snapshots[first:last].reshape(-1, self.eta.m),
            self.snapshot_rows[first:last],
            np.zeros(1, dtype=np.int64),
        )
        deciding = plan.deciding  # stays while the kernel runs
        good = self._sink.replay(
            rows,
            (
                true,
                weights,
                deciding.decider,
                picks,
                plan.feedback(state),
                summing(plan.sums, isinstance(self.eta, SparseProbabilities)),
                calibrator_of(state, plan.settled is not None),
                plan.prices(state),
                part,
                marks,
                *self._work,
            ),
        )
        if good < len(rows):
            wrong = self.eta.explain(int(rows[good]))
            raise ValueError(f"eta of {self.owner} must hold {wrong}")
        self.fed = stop
        if part is not None:
            self._note_missed(first, last)

    def _note_missed(self, first: int, last: int) -> None:
        """Keep what each label missed so far at a checkpoint, which is where such rows end."""
        if self.missed is None:
            self.missed = np.zeros((len(self.checkpoints), self.eta.m))
        self.missed[first:last] = self.state.truth.missed

    def _entries(self, rows: Rows, true: Listed | Indicated) -> tuple[int, int]:
        """How many labels and probabilities of rows a window has to keep at most."""
        eta, k = self.eta, self.plan.k or 0
        if isinstance(eta, SparseProbabilities):
            _, _, starts, ends = eta.block(rows)
            stored = int((ends - starts).sum())
            assert isinstance(true, Listed)
            present = int((true.ends - true.starts).sum())
            return 2 * stored + k * len(rows) + present, stored
        stored = eta.m * len(rows)
        return 3 * stored, stored

    def result(self, seconds: float) -> Run:
        """What is left at the end."""
        self.state.laid_out("C")
        if isinstance(self.state, WindowState):
            self.state.window.trim()
        return Run(
            self.state,
            self._sink.predictions(),
            self._sink.chosen,
            self.snapshots,
            self.snapshot_rows,
            seconds,
            self.missed,
        )


def run(
    owner: str,
    plan: Plan,
    given: Sequence,
    picks: NDArray[np.int32] = NO_PICKS,
    state: State | None = None,
) -> Run:
    """Replay a sequence by one plan; ``picks`` chooses among its fixed rules, row by row."""
    eta, weights = given.eta, given.weights
    runner = Runner(owner, plan, eta, checkpoints=given.checkpoints, keep=given.keep, state=state)
    # Compiles, or loads from disk, outside the clock.
    runner.feed(NO_ROWS, given.true(NO_ROWS), unknown=given.unknown(NO_ROWS))
    started = time.perf_counter()
    step = eta.rows_per_block
    if plan.window is not None:  # or there would have to be room for all of a block
        step = min(step, max(1, WINDOW_ENTRIES // eta.m, plan.window // 8))
    for start, block in blocks(eta.n, step, given.order):
        for rows in given.pieces(block, start):
            row_weights = weights[rows] if len(weights) else weights
            some = picks[runner.fed : runner.fed + len(rows)]
            runner.feed(rows, given.true(rows), row_weights, some, given.unknown(rows))
        if given.progress is not None:
            given.progress(len(block))
    return runner.result(time.perf_counter() - started)


class _DenseSink:
    """Decisions on dense rows go into an int8 array of the same shape."""

    chosen: NDArray[np.int32] | None = None

    def __init__(self, eta: DenseProbabilities, plan: Plan, keep: bool) -> None:
        self.eta = eta
        self.keep = keep
        self.out = np.zeros((eta.n if keep else 0, eta.m), dtype=np.int8)

    def replay(self, rows: Rows, arguments: tuple[Any, ...]) -> int:
        array, wanted = self.eta.block(rows)
        if not self.keep or wanted is rows:
            return int(replay_dense(array, wanted, *arguments, self.out))
        out = np.empty((len(rows), self.eta.m), dtype=np.int8)
        good = int(replay_dense(array, wanted, *arguments, out))
        self.out[rows] = out
        return good

    def predictions(self) -> Any:
        if not self.keep:
            return None
        return self.out[:, 0] if self.eta.vector else self.out


class _SparseSink:
    """Decisions on sparse rows become a sparse matrix of the same kind.

    Its parts are written where they will stay: a second copy of all predictions would take memory
    that grows with the number of rows.
    """

    def __init__(self, eta: SparseProbabilities, plan: Plan, keep: bool) -> None:
        self.eta = eta
        self.k = None if plan.at_most is not None else plan.k
        self.keep = keep
        rows = eta.n if keep else 0
        if plan.k is not None:
            self.out = np.zeros((rows, plan.k), dtype=np.int32)  # the labels of each row
        else:
            self.ends = np.zeros(rows + 1, dtype=np.int32)
            self.out = self.ends[1:].reshape(rows, 1)  # how many labels each row has
        self.ids = np.empty(0, dtype=np.int32)  # without a budget, the labels of all rows
        self.next = 0
        self.came: list[Rows] = []  # in which order rows came, once that is not their own

    @property
    def chosen(self) -> NDArray[np.int32] | None:
        return self.out if self.keep and self.k is not None else None

    def replay(self, rows: Rows, arguments: tuple[Any, ...]) -> int:
        indices, data, starts, ends = self.eta.block(rows)
        unbudgeted = self.keep and self.k is None
        room = int((ends - starts).sum()) if unbudgeted else 0
        listed = np.empty(room, dtype=np.int32) if self.k is None else None
        good = replay_sparse(indices, data, starts, ends, rows, *arguments, listed, self.out)
        if unbudgeted and listed is not None:
            found = int(self.out[rows, 0].sum())
            self.ids.resize(len(self.ids) + found, refcheck=False)  # grows in place
            self.ids[len(self.ids) - found :] = listed[:found]
            self._note(rows)
        return int(good)

    def _note(self, rows: Rows) -> None:
        """Remember the order of rows only if it is not their own."""
        if self.came or not np.array_equal(rows, np.arange(self.next, self.next + len(rows))):
            self.came += [rows] if self.came else [np.arange(self.next), rows]
        self.next += len(rows)

    def predictions(self) -> Any:
        if not self.keep:
            return None
        if self.k is not None:
            ids = self.out.ravel()
            kind = np.int32 if len(ids) < 2**31 else np.int64
            indptr = np.arange(0, len(ids) + 1, self.k, dtype=kind)
        else:
            kind = np.int32 if len(self.ids) < 2**31 else np.int64
            ids = self._in_order()
            indptr = np.cumsum(self.ends, dtype=kind, out=self.ends if kind is np.int32 else None)
        parts = (np.ones(len(ids), dtype=np.int8), ids.astype(kind, copy=False), indptr)
        return csr(parts, (self.eta.n, self.eta.m), type(self.eta.matrix))

    def _in_order(self) -> NDArray[np.int32]:
        """The labels of all rows, in the order of the rows."""
        if not self.came:
            return self.ids
        came = np.concatenate(self.came)
        lengths = self.out[came, 0].astype(np.int64)
        starts = np.empty(self.eta.n, dtype=np.int64)
        starts[came] = np.cumsum(lengths) - lengths
        return self.ids[entries_of(starts, starts + self.out[:, 0])]

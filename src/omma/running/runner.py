"""Runs the replay kernels over a whole sequence, a block of rows at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from omma.kernels.count import summing
from omma.kernels.replay import Indicated, Listed, Marks
from omma.kernels.shared import NOT_CALIBRATED, Shared, shared
from omma.recent import WindowState
from omma.rows.arrays import Probabilities, Rows, SparseProbabilities, blocks
from omma.rows.labels import Ids, Labels
from omma.running import worth
from omma.running.empty import NO_NUMBERS, NO_PICKS, NO_ROWS
from omma.running.plan import Plan, calibrator_of
from omma.running.scratch import scratch_space
from omma.running.sequence import Sequence
from omma.running.sinks import DenseSink, SparseSink
from omma.running.truth import all_known, part_of
from omma.state import State

WINDOW_ENTRIES = 20_000  # of rows that a window makes room for at once


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
    filled: int | None = None  # rows with fewer candidates than k, where that was looked at


def counts_labels(state: State) -> bool:
    """Whether true labels are counted, and nothing else: no estimates, no parts, no fading."""
    return state.labels is None and state.missed is None and state.judged is None


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
        self.ranked = 0  # rows of which it is known whether they were filled up
        self._filled = np.zeros(1, dtype=np.int64)
        # Whether all rows so far had labels: None asks the state, which takes a while.
        self._labelled = (self.state.known is not None) if state is None else None
        self.aside = 0.0  # seconds in which something was compiled between rows
        self._kept: Any = None  # what addresses lead to, while a kernel runs
        self._sink: SparseSink | DenseSink
        if isinstance(eta, SparseProbabilities):
            self._sink = SparseSink(eta, plan, keep)
        else:
            self._sink = DenseSink(eta, plan, keep)

    def feed(
        self,
        rows: Rows,
        true: Listed | Indicated,
        weights: Any = NO_NUMBERS,
        picks: Any = NO_PICKS,
        unknown: Ids | None = None,
    ) -> None:
        """Replay some rows after those that came before; ``unknown`` labels some of them lack."""
        signs = self._signs
        plain = not len(weights) and not len(picks) and unknown is None and all_known(true)
        if plain and self._ranked:
            self._feed_by_ranks(rows, true)
            return
        if signs is None or not plain:
            self.feed_by_gains(rows, true, weights, picks, unknown)
            return
        done, some = self._feed_by_signs(signs, rows, true), 1
        while done < len(rows):  # a row that is not sure: where that goes on, signs are of no use
            self._compile_gains(true)
            part = slice(done, done + some)
            self.feed_by_gains(rows[part], part_of(true, part))
            rest = slice(done + some, None)
            rows, true = rows[rest], part_of(true, rest)
            done, some = self._feed_by_signs(signs, rows, true), 2 * some

    def by_signs(self, labels: Labels | None) -> bool:
        """Whether signs decide rows with such labels, where these have no weights and no picks."""
        known = labels is not None and labels.known is None and labels.missing is None
        return known and (self._signs is not None or self._ranked)

    @property
    def _ranked(self) -> bool:
        """Whether the loop that ranks gains decides."""
        if counts_labels(self.state):
            found = self.plan.ranked
        else:
            found = self.plan.corrected_ranked and self._all_labelled
        return found and not isinstance(self.eta, SparseProbabilities) and self._worth_it

    @property
    def _signs(self) -> NDArray[np.float64] | None:
        """The numbers by which signs decide; None where they do not."""
        thin = isinstance(self.eta, SparseProbabilities)
        if counts_labels(self.state):
            found = self.plan.signs
        else:
            found = None if thin or not self._all_labelled else self.plan.corrected_signs
        return found if found is None or thin or self._worth_it else None

    @property
    def _all_labelled(self) -> bool:
        """Whether labels of all rows so far are counted."""
        if self._labelled is None:
            self._labelled = self.state.all_labelled
        return self._labelled

    @cached_property
    def _worth_it(self) -> bool:
        """Whether signs decide these rows, where they could: gains may do until all is compiled."""
        return worth.compiling(self._kind, self._loop, self.eta.n * self.eta.m)

    @property
    def _loop(self) -> tuple[Any, ...]:
        """What tells apart the loops over dense rows that go by gains."""
        return ("gains", *self._sink.kind)

    @property
    def _kind(self) -> tuple[Any, ...]:
        """What tells apart the kernels that decide by signs."""
        term = self.plan.term
        kinds = (type(term), type(getattr(term, "of", None)))
        ranked = kinds if self.plan.ranked or self.plan.corrected_ranked else None
        return (*self._sink.kind, self.state.known is not None, ranked)

    @property
    def ready(self) -> bool:
        """Whether this process has compiled the kernel that decides by signs before."""
        return worth.ready(self._kind)

    def _feed_by_signs(
        self, signs: NDArray[np.float64], rows: Rows, true: Listed | Indicated
    ) -> int:
        """Replay rows up to the first that is not sure; returns how many."""
        marks = self._marks(rows)
        if self.plan.shrinkage is None:
            by: tuple[Any, ...] = (signs, self.plan.sums)
            good = self._sink.replay_by_signs(rows, true, by, self.state, marks)
        else:
            assert isinstance(self._sink, DenseSink)
            by = (signs, self.plan.shrinkage.strengths, self.plan.sums)
            good = self._sink.replay_corrected(rows, true, by, self.state, marks)
        worth.note(self._kind)
        done = good if good >= 0 else -1 - good
        if done == good:
            self._refuse(rows, done)
        self.fed += done
        return done

    def _feed_by_ranks(self, rows: Rows, true: Listed | Indicated) -> None:
        """Replay rows with a budget, of which nothing but labels is counted."""
        assert isinstance(self._sink, DenseSink)
        plan, rest = self.plan, (self.state, self._marks(rows), self._filled)
        by: tuple[Any, ...] = (plan.term, float(plan.prior), plan.budget)
        if plan.shrinkage is None:
            good = self._sink.replay_by_ranks(rows, true, (*by, plan.sums), *rest)
        else:
            by = (*by, plan.shrinkage.strengths, plan.sums)
            good = self._sink.replay_corrected_by_ranks(rows, true, by, *rest)
        worth.note(self._kind)
        self._refuse(rows, good)
        self.fed += len(rows)
        self.ranked += len(rows)

    def _marks(self, rows: Rows) -> tuple[Any, ...]:
        """After which of these rows to keep the counts, and where."""
        first, last = self._checkpoints_in(rows)
        return (
            self.checkpoints[first:last] - self.fed,
            self.snapshots[first:last],
            self.snapshot_rows[first:last],
        )

    def _checkpoints_in(self, rows: Rows) -> tuple[int, int]:
        """Which checkpoints lie in rows that come next: the first, and the first after these."""
        ends = (self.fed, self.fed + len(rows))
        first, last = np.searchsorted(self.checkpoints, ends, side="right").tolist()
        return first, last

    def _compile_gains(self, true: Listed | Indicated) -> None:
        """Compile, or load from disk, aside from the clock."""
        started = time.perf_counter()
        self.feed_by_gains(NO_ROWS, part_of(true, slice(0, 0)))
        self.aside += time.perf_counter() - started

    def _refuse(self, rows: Rows, good: int) -> None:
        if good < len(rows):
            wrong = self.eta.explain(int(rows[good]))
            raise ValueError(f"eta of {self.owner} must hold {wrong}")

    @cached_property
    def _work(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        return scratch_space(self.eta.m)

    def feed_by_gains(
        self,
        rows: Rows,
        true: Listed | Indicated,
        weights: Any = NO_NUMBERS,
        picks: Any = NO_PICKS,
        unknown: Ids | None = None,
    ) -> None:
        """Replay rows of any kind."""
        first, last = self._checkpoints_in(rows)
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
        whole = unknown is None and all_known(true)
        of_all = plan.feedback_of_all(state) if whole else None
        deciding = plan.deciding  # stays while the kernel runs
        feedback: Any = plan.feedback(state) if of_all is None else of_all
        calibrator = calibrator_of(state, plan.settled is not None)
        stored = isinstance(self.eta, SparseProbabilities)
        sums = summing(plan.sums, stored)
        scratch, chosen = self._work
        if not stored:
            feedback, self._kept = shared(feedback, sums, scratch)
            calibrator = NOT_CALIBRATED if calibrator is None else calibrator
        good = self._sink.replay(
            rows,
            (
                true,
                weights,
                deciding.decider,
                picks,
                feedback,
                sums,
                calibrator,
                plan.prices(state),
                part,
                marks,
                scratch,
                chosen,
            ),
        )
        if of_all is not None:
            state.take_known()
        else:
            self._labelled = None
        parts = (part, plan.limits, plan.settled)
        if isinstance(feedback, Shared) and all(one is None for one in parts):
            worth.note(self._loop)
        self._refuse(rows, good)
        self.fed += len(rows)
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
            int(self._filled[0]) if self.ranked == self.fed else None,
        )


def run(
    owner: str,
    plan: Plan,
    given: Sequence,
    picks: NDArray[np.int32] = NO_PICKS,
    state: State | None = None,
    *,
    timed: bool = True,
) -> Run:
    """Replay a sequence by one plan; ``picks`` chooses among its fixed rules, row by row.

    Where nobody wants to know how long it takes, it need not be ``timed``.
    """
    eta, weights = given.eta, given.weights
    runner = Runner(owner, plan, eta, checkpoints=given.checkpoints, keep=given.keep, state=state)
    # Compiles, or loads from disk, outside the clock.
    if timed and (len(weights) or len(picks) or not runner.by_signs(given.batch.labels)):
        runner.feed_by_gains(NO_ROWS, given.true(NO_ROWS), unknown=given.unknown(NO_ROWS))
    elif timed and not runner.ready:
        runner.feed(NO_ROWS, given.true(NO_ROWS))
    started = time.perf_counter()
    step = eta.rows_per_run
    if plan.window is not None:  # or there would have to be room for all of a block
        step = min(step, max(1, WINDOW_ENTRIES // eta.m, plan.window // 8))
    for start, block in blocks(eta.n, step, given.order):
        for rows in given.pieces(block, start):
            row_weights = weights[rows] if len(weights) else weights
            some = picks[runner.fed : runner.fed + len(rows)]
            runner.feed(rows, given.true(rows), row_weights, some, given.unknown(rows))
        if given.progress is not None:
            given.progress(len(block))
    return runner.result(time.perf_counter() - started - runner.aside)

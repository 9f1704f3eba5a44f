"""Rows taken in one after another, each for what its best decision is worth on a tangent."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.certificate.gap import Gap, effective_rows, gap_from
from omma.certificate.tangent import settled, tangent, unseen
from omma.engine import NO_IDS, NO_NUMBERS, memory_of, sparse_memory, work_space
from omma.kernels import certificate as kernel
from omma.kernels.layout import N
from omma.kernels.replay import Extras
from omma.metrics import Metric, Sum, Weighted, smoothed
from omma.metrics.smoothed import is_minimum
from omma.plan import fixed_plan
from omma.policies.omma import OMMA
from omma.replaying import NO_FLAGS, NO_ROWS, Replay, extras_of, ids_of, longest_row
from omma.rows.arrays import Rows, SparseProbabilities
from omma.rows.batch import Batch
from omma.rows.row import Row, alone, as_block
from omma.state import Shapes

FIRST = 16  # rows before the first tangent
GROWTH = 1.25  # of the number of rows between tangents
SKIPPED = 0.25  # of the rows, at the start
# Keeps tangents at rare labels from being too steep. It must be small: a prior makes labels look
# more frequent than they are; with 1, the estimate fell below ψ(C*) on the first 200 rows of a
# stream whose labels have frequencies near 0.03.
PRIOR = 0.1
Look = Callable[[float | None], Gap | None]  # what is known, for values that come later
HEAVIEST = 1e60  # in units; what is heavier still says no more, and its square would be no number
# How sums over rows grow with the unit of weights.
SUM_POWERS = np.array([1, 2, 1, 2, 2, 1, 2, 1, 2, 2, 0])


class Certificate:
    """Estimates the best attainable value of a metric, with k predictions a row."""

    def __init__(self, owner: str, metric: Metric, k: int | None, m: int) -> None:
        check_metric(owner, metric)
        self.metric = metric
        kinked = is_minimum(metric) and metric.concave and not metric.smooth
        self.used = smoothed(metric) if kinked else metric
        self.k = k
        self.shadow = OMMA(self.used, k=k, feedback="estimates", prior=PRIOR)
        self.state = self.shadow.init(m)
        self.weights = np.zeros((3, m))
        self.intercept = 0.0
        self.rows = 0
        self.next = FIRST
        self.unit = 0.0  # the weight that counts as one row; the first row's, then their mean
        self.starts = [0]
        self.unseen = [1.0]  # when each tangent was taken
        self.sums = np.zeros((1, kernel.SUMMED))
        self._prepare()

    def _prepare(self) -> None:
        self._engine = self.shadow.engine(self.state)
        self._replay: Replay | None = None

    def gap(self, value: float | None) -> Gap | None:
        """What could be gained over a value; None before there is anything to tell."""
        return self.look()(value)

    def look(self) -> Look:
        """What is known now, for values that are worked out later."""
        kept = np.array(self.starts) >= max(SKIPPED * self.rows, 1.0)
        sums = self.sums[kept]
        used = sums[:, kernel.SUM_W]
        if sums[:, kernel.ROWS_USED].sum() < 2 or used.sum() <= 0.0:
            return _nothing
        of_rows = min(effective_rows(sums), effective_rows(self.sums))
        unsure = float(used @ np.array(self.unseen)[kept] / used.sum())
        unsure = max(unsure - settled(self.metric, self.state), 0.0)
        return partial(gap_from, self.metric, self.shadow.budget, sums, of_rows, unsure)

    def replay(self, batch: Batch, rows: Rows) -> None:
        """Take in some rows of a batch after those that came before, but for those of no weight."""
        if self._replay is None:
            self._replay = Replay(
                "gap", self.shadow.plan(batch.m), replace(batch, labels=None), keep=False,
                state=self.state,
            )  # fmt: skip
        weights = batch.weights
        rows = rows[weights[rows] > 0.0] if len(weights) else rows
        done = 0
        while done < len(rows):
            some = rows[done : done + self.next - self.rows]
            in_units = self._in_units(weights[some]) if len(weights) else weights
            extras = extras_of(batch.labels, some, NO_NUMBERS)._replace(weights=in_units)
            true = ids_of(batch.labels, some)
            is_sparse = isinstance(batch.eta, SparseProbabilities)
            longest = longest_row(batch.eta) if isinstance(batch.eta, SparseProbabilities) else 0
            self._certify(is_sparse, batch.eta.block(some), true, extras, longest)
            self._feed(batch, some, in_units)
            self._advance(len(some))
            done += len(some)

    def _feed(self, batch: Batch, rows: Rows, in_units: NDArray[np.float64]) -> None:
        """Let the shadow policy decide rows, and count their probabilities."""
        assert self._replay is not None
        if len(in_units):
            weights = np.zeros(batch.n)
            weights[rows] = in_units
            self._replay.batch = replace(self._replay.batch, weights=weights)
        self._replay.gather()  # a new unit of weights changes the counts between feeds
        self._replay.feed(rows)
        self._replay.settle()

    def step(self, row: Row, true: Any, weight: float) -> None:
        """Take in one row, with the ids of its labels where they are known, else None."""
        if weight <= 0.0:
            return
        weights = self._in_units(np.array([weight]))
        is_sparse = isinstance(row, tuple)
        lists = (NO_IDS, NO_ROWS, NO_ROWS) if true is None else (true, *alone(true))
        nothing = (NO_FLAGS, true is not None, NO_ROWS, NO_ROWS, NO_IDS)
        extras = Extras(*nothing, weights, NO_IDS)
        self._certify(is_sparse, as_block(row), lists, extras, len(row[0]) if is_sparse else 0)
        chosen = self._engine.decide(row)
        self._engine.learn(row, None, chosen, float(weights[0]))
        self._advance(1)

    def _certify(
        self,
        is_sparse: bool,
        block: tuple[Any, ...],
        true: tuple[Any, ...],
        extras: Any,
        longest: int,
    ) -> None:
        """Add what rows are worth, each decided by the tangent."""
        slope, offset, _ = self.weights
        plan = fixed_plan(slope, offset, self.shadow.budget)
        state = plan.start(self.state.m)
        columns, totals = state.lay_out()
        tangent_now = (self.weights, self.intercept, self.sums[-1])
        if is_sparse:
            room = longest + (self.shadow.budget or 0)
            memory, sparse = sparse_memory(plan, state, columns, totals, room)
            by = (extras, sparse, plan.spec(state), memory)
            kernel.certify_sparse(*block, *true, *by, *tangent_now)
        else:
            work = work_space(columns.shape[1])
            memory = memory_of(plan, state, columns, columns, totals, work)
            kernel.certify_dense(*block, *true, extras, plan.spec(state), memory, *tangent_now)

    def _in_units(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of the next rows, as numbers of rows; none given are ones."""
        if self.unit <= 0.0:
            self.unit = float(weights[0]) if len(weights) else 1.0
        return np.minimum(weights, HEAVIEST * self.unit) / self.unit

    def _advance(self, rows: int) -> None:
        self.rows += rows
        if self.rows == self.next:
            self.next = math.ceil(GROWTH * self.rows)
            self._count_in_mean_weights()
            self.weights, self.intercept = tangent(self.used, self.state, PRIOR)
            self.starts.append(self.rows)
            self.unseen.append(unseen(self.metric, self.state, effective_rows(self.sums)))
            self.sums = np.vstack((self.sums, np.zeros((1, kernel.SUMMED))))

    def _count_in_mean_weights(self) -> None:
        """Make the unit such that as many rows are counted as have come."""
        factor = self.rows / float(self.state.totals[N])
        if factor == 1.0:
            return
        self.unit /= factor
        self.state.cells *= factor
        self.state.totals *= factor
        self.sums *= factor**SUM_POWERS

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that changes, as plain arrays, for a file."""
        return {
            **self.state.arrays(),
            "weights": self.weights,
            "intercept": np.array(self.intercept),
            "place": np.array([self.rows, self.next]),
            "unit": np.array(self.unit),
            "starts": np.array(self.starts, dtype=np.int64),
            "unseen": np.array(self.unseen),
            "sums": self.sums,
        }

    def shapes(self) -> Shapes:
        """What ``arrays`` may give; None is any shape."""
        fixed = {name: one.shape for name, one in self.arrays().items()}
        return {**fixed, **dict.fromkeys(("starts", "unseen", "sums"))}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` gave."""
        tangents = len(arrays["starts"])
        shapes = {
            "weights": self.weights.shape,
            "intercept": (),
            "place": (2,),
            "unit": (),
            "starts": (tangents,),
            "unseen": (tangents,),
            "sums": (tangents, kernel.SUMMED),
        }
        for name, shape in shapes.items():
            found = arrays[name]
            if found.shape != shape or not np.isfinite(found).all():
                raise ValueError(f"{name} of the gap must be finite numbers of shape {shape}")
        rows, following = (int(place) for place in arrays["place"])
        if tangents < 1 or not 0 <= rows < following or not arrays["unit"] >= 0.0:
            raise ValueError("place, starts and unit of the gap must belong together")
        self.state.restore(arrays)
        self.weights = np.array(arrays["weights"], dtype=np.float64)
        self.intercept, self.unit = float(arrays["intercept"]), float(arrays["unit"])
        self.rows, self.next = rows, following
        self.starts = [int(start) for start in arrays["starts"]]
        self.unseen = [float(share) for share in arrays["unseen"]]
        self.sums = np.array(arrays["sums"], dtype=np.float64)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for made_again in ("_engine", "_replay"):
            del state[made_again]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()


def _nothing(value: float | None) -> None:
    """The gap over any value, before there is anything to tell."""


def check_metric(owner: str, metric: Metric) -> None:
    """Refuse metrics without a tangent."""
    if metric.needs_matrix:
        raise ValueError(
            f"gap of {owner} needs a metric of label counts, got {metric.name}, which has a matrix"
        )
    terms = metric.terms if isinstance(metric, Sum) else ((1.0, metric),)
    if any(isinstance(part, Weighted) for _, part in terms):
        raise ValueError(
            f"gap of {owner} needs a metric whose tangent is known, got {metric.name}: use its "
            "macro or micro average"
        )
    if not metric.compiles:
        raise ValueError(f"gap of {owner} needs a metric that compiles; {metric.name} does not")

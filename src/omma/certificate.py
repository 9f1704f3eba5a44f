"""The live certificate: an upper estimate of the best attainable value, beside any policy.

Let z be any counts that the rows before i decide. For a concave metric ψ, the tangent at z lies
above ψ, so ψ(C*) ≤ ψ(z) + ∇ψ(z)·(C* − z). With right probabilities, the decision that is best on
the tangent gains in expectation at least what C* does. So the worth of a row,

    u_i = ψ(z) + ∇ψ(z)·(C(η_i, best decision) − z),

has an expectation of at least ψ(C*), whatever the policy does; and the mean of the u_i is tight if
z is near C*. So z are the counts of OMMA(η̂), which runs along in the background, and ∇ψ includes
the derivative by label frequencies, which makes up to first order for those being estimated.
(To second order it does not: metrics are concave at fixed frequencies only. So the inequality holds
once labels have occurred some times, not from the first row.)

The tangent is renewed each time the number of rows has grown by a quarter, so that a row costs what
its stored entries cost, for every metric. Sums are kept for each tangent by itself; the gap is
made of those that began after a quarter of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._rows import Probabilities, Rows, SparseProbabilities
from omma._run import NO_LABELS, NO_NUMBERS, UNKNOWN, Runner, scratch_space
from omma.gap import Gap, gap_from
from omma.kernels import certificate as kernel
from omma.metrics import Metric, smoothed
from omma.metrics.tangent import is_minimum, tangent
from omma.policies.base import SparseRow
from omma.policies.omma import OMMA

FIRST = 16  # rows before the first tangent
GROWTH = 1.25  # of the number of rows between tangents
SKIPPED = 0.25  # of the rows, at the start
# Keeps tangents at rare labels from being too steep. It must be small: a prior makes labels look
# more frequent than they are; with 1, the estimate fell below ψ(C*) on the first 200 rows of a
# stream whose labels have frequencies near 0.03.
PRIOR = 0.1


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
        self.starts: list[int] = []
        self.sums = np.zeros((0, kernel.SUMMED))
        self._prepare()

    def _prepare(self) -> None:
        self._stepper = self.shadow.stepper(self.state.m)
        self._work = scratch_space(self.state.m)
        self._runner: Runner | None = None

    def gap(self, value: float | None) -> Gap | None:
        """What could be gained over a value; None before there is anything to tell."""
        return self.look()(value)

    def look(self) -> Callable[[float | None], Gap | None]:
        """What is known now, for values that are worked out later."""
        kept = np.array([start >= SKIPPED * self.rows for start in self.starts], dtype=bool)
        sums = self.sums[kept]
        if not len(sums) or sums[:, kernel.ROWS_USED].sum() < 2:
            return lambda value: None
        return partial(gap_from, self.metric, self.shadow.budget, sums)

    def replay(
        self, eta: Probabilities, rows: Rows, true: Any = UNKNOWN, weights: Any = NO_NUMBERS
    ) -> None:
        """Take in some rows of a sequence after those that came before."""
        if self._runner is None:
            plan = self.shadow.plan(eta.m)
            self._runner = Runner("gap", plan, eta, keep=False)
            self._runner.state = self.state
        starts, ends, ids = true
        done = 0
        while done < len(rows):
            part = slice(done, done + self.next - self.rows)
            row_weights = weights[part] if len(weights) else weights
            some = rows[part]
            self._certify(eta, some, (starts[part], ends[part], ids), row_weights)
            self._runner.feed(some, weights=row_weights)
            self._advance(len(some))
            done += len(some)

    def step(self, row: NDArray[np.float64] | SparseRow, true: Any, weight: float) -> None:
        """Take in one row, with the ids of its labels where they are known, else None."""
        known = UNKNOWN if true is None else (_at(0), _at(len(true)), true)
        thin = isinstance(row, tuple)
        if self.starts:
            given: tuple[Any, ...]
            if isinstance(row, tuple):
                given = (*row, _at(0), _at(len(row[0])))
            else:
                given = (row[np.newaxis], _at(0))
            certify = kernel.certify_sparse if thin else kernel.certify_dense
            self._run(certify, given, known, np.array([weight]))
        chosen = self._stepper.decide(self.state, row)
        nothing: Any = NO_LABELS if thin else NO_NUMBERS
        self._stepper.count(self.state, row, nothing, chosen, weight)
        self._advance(1)

    def _certify(self, eta: Probabilities, rows: Rows, true: Any, weights: Any) -> None:
        if not self.starts:
            return
        if isinstance(eta, SparseProbabilities):
            self._run(kernel.certify_sparse, eta.block(rows), true, weights)
        else:
            self._run(kernel.certify_dense, eta.block(rows), true, weights)

    def _run(self, certify: Any, given: tuple[Any, ...], true: Any, weights: Any) -> None:
        budget = self.shadow.budget or 0
        tangent_now = (self.weights, self.intercept, budget, self.sums[-1])
        certify(*given, *true, weights, *tangent_now, *self._work)

    def _advance(self, rows: int) -> None:
        self.rows += rows
        if self.rows == self.next:
            self.next = math.ceil(GROWTH * self.rows)
            self.weights, self.intercept = tangent(self.used, self.state, PRIOR)
            self.starts.append(self.rows)
            self.sums = np.vstack((self.sums, np.zeros((1, kernel.SUMMED))))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that changes, as plain arrays, for a file."""
        return {
            **self.state.arrays(),
            "weights": self.weights,
            "intercept": np.array(self.intercept),
            "place": np.array([self.rows, self.next]),
            "starts": np.array(self.starts, dtype=np.int64),
            "sums": self.sums,
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what ``arrays`` gave."""
        sums = arrays["sums"]
        starts = [int(start) for start in arrays["starts"]]
        if arrays["weights"].shape != self.weights.shape or sums.shape != (
            len(starts),
            kernel.SUMMED,
        ):
            raise ValueError("the gap's arrays must fit the number of labels")
        self.state.restore(arrays)
        self.weights = np.array(arrays["weights"], dtype=np.float64)
        self.intercept = float(arrays["intercept"])
        self.rows, self.next = (int(place) for place in arrays["place"])
        self.starts, self.sums = starts, np.array(sums, dtype=np.float64)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for made_again in ("_stepper", "_work", "_runner"):
            del state[made_again]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()


def check_metric(owner: str, metric: Metric) -> None:
    """Refuse metrics without a tangent."""
    if metric.needs_matrix:
        raise ValueError(
            f"gap of {owner} needs a metric of label counts, got {metric.name}, which has a matrix"
        )
    if not metric.compiles:
        raise ValueError(f"gap of {owner} needs a metric that compiles; {metric.name} does not")


def _at(number: int) -> NDArray[np.int64]:
    return np.array([number], dtype=np.int64)

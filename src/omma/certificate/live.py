"""The certificate of a stream: each row adds the value of its best decision on a tangent."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.certificate.gap import Gap, effective_rows, gap_from
from omma.certificate.tangent import settled, tangent, unseen
from omma.engine import Engine
from omma.kernels import certificate as kernel
from omma.kernels.layout import N
from omma.metrics import Metric, Weighted, smoothed
from omma.metrics.averages import is_minimum
from omma.plan import fixed_plan
from omma.policies.omma import OMMA
from omma.rows.arrays import Rows, csr
from omma.rows.batch import Batch
from omma.rows.labels import TrueLabels
from omma.rows.row import Row, probabilities_of_row
from omma.state import Shapes

FIRST = 16  # rows before the first tangent
GROWTH = 1.25  # of the number of rows between tangents
SKIPPED = 0.25  # of the rows, at the start
# Keeps tangents at rare labels from being too steep. It must be small, as a prior makes labels
# look more frequent than they are: with 1, the estimate fell below ψ(C*) on the first 200 rows of
# a stream with label frequencies near 0.03.
PRIOR = 0.1
HEAVIEST = 1e60  # weight of a row in units: the square of a larger one would overflow
# Columns of the table of tangents, after the sums that the kernel adds to: the rows before the
# tangent, and the part of the metric that depended on unseen labels then.
START, UNSEEN = kernel.SUMMED, kernel.SUMMED + 1
# How sums over rows grow with the unit of weights.
SUM_POWERS = np.array([1, 2, 1, 2, 2, 1, 2, 1, 2, 2, 0])


class Certificate:
    """Estimates the best attainable value of a metric, with k predictions a row."""

    def __init__(self, owner: str, metric: Metric, k: int | None, m: int) -> None:
        check_metric(owner, metric)
        self.metric = metric
        has_kink = is_minimum(metric) and metric.concave and not metric.smooth
        self.smooth = smoothed(metric) if has_kink else metric
        self.shadow = OMMA(self.smooth, k=k, feedback="estimates", prior=PRIOR)
        self.state = self.shadow.init(m)
        self.weights = np.zeros((3, m))  # of the present tangent, with its intercept
        self.intercept = 0.0
        self.rows = 0
        self.next = FIRST  # the number of rows at which the tangent is renewed
        self.unit = 0.0  # the weight that counts as one row; the first row's, then their mean
        self.tangents = np.zeros((1, UNSEEN + 1))  # a row for each
        self.tangents[0, UNSEEN] = 1.0

    def gap(self, value: float | None) -> Gap | None:
        """The gap to a value; None while there are too few rows."""
        late = self.tangents[self.tangents[:, START] >= max(SKIPPED * self.rows, 1.0)]
        weight = late[:, kernel.SUM_W]
        if late[:, kernel.ROWS_USED].sum() < 2 or weight.sum() <= 0.0:
            return None
        effective = min(effective_rows(late), effective_rows(self.tangents))
        unsure = float(weight @ late[:, UNSEEN] / weight.sum())
        unsure = max(unsure - settled(self.metric, self.state), 0.0)
        return gap_from(self.metric, self.shadow.budget, late, effective, unsure, value)

    def replay(self, batch: Batch, rows: Rows) -> None:
        """Add rows of a batch; rows without weight are skipped."""
        batch = replace(batch, weights=batch.row_weights)
        rows = rows[batch.weights[rows] > 0.0]
        while len(rows):
            block, rows = np.split(rows, [self.next - self.rows])  # up to the next tangent
            part = batch if batch.n == 1 else batch.take(block)  # a step need not copy its row
            part = replace(part, weights=self._in_units(part.weights))
            self._certify(part)
            # The shadow policy decides the rows, and counts their probabilities.
            self.shadow.engine(self.state).replay("gap", replace(part, labels=None), keep=False)
            self._advance(len(block))

    def step(self, row: Row, true: Any, weight: float) -> None:
        """Add one row, with the ids of its labels, or None where they are unknown."""
        m, labels = self.state.m, None
        if true is not None:
            present = csr((np.ones(len(true)), true, np.array([0, len(true)])), (1, m))
            labels = TrueLabels("gap", present, m)
        batch = Batch(probabilities_of_row(row, m), labels, np.array([weight]))
        self.replay(batch, np.zeros(1, dtype=np.int64))

    def _certify(self, part: Batch) -> None:
        """Add the values of rows, each decided by the tangent."""
        slope, offset, _ = self.weights
        engine = Engine.start(fixed_plan(slope, offset, self.shadow.budget), part.m)
        rows = np.arange(part.n, dtype=np.int64)
        block = (*part.eta.block(rows), *part.label_ids(rows), part.extras(rows))
        # The best decision on the tangent is that of Eq. (3), at the weights of the tangent.
        sums = (self.weights, self.intercept, self.tangents[-1])
        if part.is_sparse:
            memory, sparse = engine.sparse(part.longest + (self.shadow.budget or 0))
            kernel.certify_sparse(*block, sparse, engine.spec, memory, *sums)
        else:
            kernel.certify_dense(*block, engine.spec, engine.dense().memory, *sums)

    def _in_units(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of the next rows in units of the mean weight."""
        if self.unit <= 0.0:
            self.unit = float(weights[0])
        return np.minimum(weights, HEAVIEST * self.unit) / self.unit

    def _advance(self, rows: int) -> None:
        """Count added rows; renew the tangent where that is due."""
        self.rows += rows
        if self.rows < self.next:
            return
        self.next = math.ceil(GROWTH * self.rows)
        # Make the mean weight the unit, so that weights add up to the number of rows.
        factor = self.rows / float(self.state.totals[N])
        if factor != 1.0:
            self.unit /= factor
            self.state.cells[...] *= factor
            self.state.totals[...] *= factor
            self.tangents[:, : kernel.SUMMED] *= factor**SUM_POWERS
        self.weights, self.intercept = tangent(self.smooth, self.state, PRIOR)
        hanging = unseen(self.metric, self.state, effective_rows(self.tangents))
        self.tangents = np.vstack((self.tangents, [*np.zeros(START), self.rows, hanging]))

    def _own_arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "weights": self.weights,
            "intercept": np.array(self.intercept),
            "place": np.array([self.rows, self.next]),
            "unit": np.array(self.unit),
            "tangents": self.tangents,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, as plain arrays, for a file."""
        return {**self.state.arrays(), **self._own_arrays()}

    def shapes(self) -> Shapes:
        """The shapes of ``arrays``; None is any shape."""
        shapes: Shapes = {name: array.shape for name, array in self.arrays().items()}
        return {**shapes, "tangents": None}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over the arrays of such a certificate, after checks."""
        tangents = len(arrays["tangents"])
        for name, own in self._own_arrays().items():
            shape = (tangents, UNSEEN + 1) if name == "tangents" else own.shape
            if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} of the gap must be finite numbers of shape {shape}")
        rows, following = (int(place) for place in arrays["place"])
        if tangents < 1 or not 0 <= rows < following or not arrays["unit"] >= 0.0:
            raise ValueError("place, tangents and unit of the gap must belong together")
        self.state.restore(arrays)
        self.weights = np.array(arrays["weights"], dtype=np.float64)
        self.intercept, self.unit = float(arrays["intercept"]), float(arrays["unit"])
        self.rows, self.next = rows, following
        self.tangents = np.array(arrays["tangents"], dtype=np.float64)


def check_metric(owner: str, metric: Metric) -> None:
    """Refuse metrics without a tangent."""
    if metric.needs_matrix:
        raise ValueError(
            f"gap of {owner} needs a metric of label counts, got {metric.name}, which has a matrix"
        )
    if any(isinstance(part, Weighted) for _, part in metric.parts):
        raise ValueError(
            f"gap of {owner} needs a metric whose tangent is known, got {metric.name}: use its "
            "macro or micro average"
        )
    if not metric.compiles:
        raise ValueError(f"gap of {owner} needs a metric that compiles; {metric.name} does not")

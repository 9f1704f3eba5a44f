"""What a reader of the table of ``omma evaluate`` has to know, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma.calibration import reliability
from omma.cli.evaluation import Found
from omma.cli.inputs import Inputs
from omma.counts import Counts
from omma.metrics import Metric
from omma.state import in_proportion


def remarks(found: Found) -> Iterator[str]:
    """All that apply."""
    for metric, k in found.job.targets:
        if k is None and everything_is_best(found.inputs, metric):
            what = metric.name if metric.binary else f"{metric.name} without a budget"
            how = "choose another metric, such as f1" if metric.binary else "pass -k"
            yield f"{what} is maximal when everything is predicted: {how}."
    if found.inputs.y is not None and not found.inputs.class_ids:
        yield trust(found.inputs)[1]


def everything_is_best(inputs: Inputs, metric: Metric) -> bool:
    """Whether no decision can be better than to predict every label in every row."""
    positive = _sums(inputs.eta if inputs.y is None else inputs.y, inputs.n)
    n = float(inputs.n)
    positive = in_proportion(positive, n, n - inputs.rows_known)
    if (positive == n).all():  # then it is right, and no fault of the metric
        return False
    everything = Counts(positive, np.full(len(positive), n), positive, n)
    exact = Counts(positive, positive, positive, n)
    return metric.value(everything) >= metric.value(exact)


def _sums(values: Any, n: int) -> NDArray[np.float64]:
    matrix = values if sparse.issparse(values) else np.reshape(values, (n, -1))
    return np.asarray(matrix.sum(axis=0, dtype=np.float64)).ravel()


def trust(inputs: Inputs) -> tuple[float, str]:
    """How far probabilities are from frequencies on average, and whether that is much."""
    curve = reliability(inputs.batch, bins=20)
    full = curve.count > 0
    share = curve.count[full] / curve.count.sum()
    predicted, rate = curve.predicted[full], float(share @ curve.observed[full])
    # What chance alone makes of right probabilities, and a tenth of what there is to find.
    chance = float(share @ np.sqrt(predicted * (1 - predicted) / curve.count[full]))
    gap = curve.expected_error
    words = (
        f"on average they are {100 * gap:.2g} percentage points from how often labels are true, "
        f"which is {100 * rate:.2g} % of the time"
    )
    if gap <= 0.1 * rate + 2 * chance:
        return gap, f"The probabilities look calibrated: {words}."
    return gap, (
        f"The probabilities do not look calibrated: {words}. OMMA(η̂) trusts them, and does better "
        "where they are right."
    )

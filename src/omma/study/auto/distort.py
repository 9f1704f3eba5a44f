"""Probabilities that are off, in ways that calibration can undo and in ways that it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from omma.rows.batch import Batch

Floats = NDArray[np.float64]
NEAR = 1e-7
SPREAD = 3.0  # powers of labels are from a third to three
POWERS_SEED = 0


def _logits(values: Floats) -> Floats:
    near = np.clip(values, NEAR, 1.0 - NEAR)
    found: Floats = np.log(near) - np.log1p(-near)
    return found


def _moved(scale: float, shift: float) -> Callable[[Floats, Any, int], Floats]:
    def change(values: Floats, places: Any, m: int) -> Floats:
        found: Floats = expit(scale * _logits(values) + shift)
        return found

    return change


def _powers(values: Floats, places: Any, m: int) -> Floats:
    """A random power for each label: not of the shape of any logistic calibration."""
    drawn = np.random.default_rng(POWERS_SEED).uniform(-1.0, 1.0, m)
    found: Floats = values ** (SPREAD ** drawn[places])
    return found


AS_IS = "as is"
DISTORTIONS: dict[str, Callable[[Floats, Any, int], Floats] | None] = {
    AS_IS: None,
    "logits × 0.5": _moved(0.5, 0.0),
    "logits × 2": _moved(2.0, 0.0),
    "logits + 1.5": _moved(1.0, 1.5),
    "logits − 1.5": _moved(1.0, -1.5),
    "powers by label": _powers,
}


def distorted(batch: Batch, name: str) -> Batch:
    """The same rows and labels, probabilities moved; zeros stay zeros, as they are no candidates.

    >>> import omma
    >>> batch = omma.Batch.of([[0.5, 0.0]], [[1, 0]])
    >>> distorted(batch, "logits + 1.5").values.round(2)
    array([[0.82, 0.  ]])
    """
    change = DISTORTIONS[name]
    if change is None:
        return batch
    values = batch.values
    if sparse.issparse(values):
        moved = values.astype(np.float64)
        moved.data = np.where(values.data > 0, change(moved.data, values.indices, batch.m), 0.0)
    else:
        table = np.asarray(values, dtype=np.float64).reshape(batch.n, batch.m)
        moved = np.where(table > 0, change(table, np.arange(batch.m), batch.m), 0.0)
        moved = moved.reshape(values.shape)
    read = Batch.read("the study", moved)
    return replace(batch, eta=read.eta, close=read.close).ready()

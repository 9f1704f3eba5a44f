"""Probabilities and labels of a user, and whether metrics go with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from omma.metrics import Metric


@dataclass(frozen=True)
class Inputs:
    """What files hold: ``y`` is None where there are no labels; notes are for the user.

    ``rows`` is what the column that names rows is called, and its cells.
    """

    eta: Any
    y: Any
    names: tuple[str, ...] | None
    notes: tuple[str, ...] = ()
    rows: tuple[str, tuple[str, ...]] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.eta.shape[0])

    @property
    def m(self) -> int:
        """Number of labels."""
        return 1 if self.eta.ndim == 1 else int(self.eta.shape[1])

    @property
    def class_ids(self) -> bool:
        """Whether labels are one class id a row."""
        return self.y is not None and self.y.ndim == 1 and self.m > 1

    def sentence(self) -> str:
        """The data in a few words."""
        rows = f"{self.n:,} row{'s' * (self.n != 1)}"
        kind = "sparse probabilities" if sparse.issparse(self.eta) else "probabilities"
        if self.m == 1:
            return f"{rows}, one yes or no each; {self._positive()}"
        what = "classes, one a row" if self.class_ids else "labels"
        return f"{rows}, {self.m:,} {what}; {kind}, {self._positive()}"

    def _positive(self) -> str:
        if self.y is None:
            return "no labels."
        if self.class_ids:
            found = np.bincount(self.y.astype(np.int64), minlength=self.m)
            return f"the rarest class is in {int(found.min()):,} rows."
        per_row = self.y.sum() / max(1, self.n)
        if self.m == 1:
            return f"{100 * per_row:.3g} % are positive."
        rarest = int(np.asarray(self.y.sum(axis=0)).min())
        return f"{per_row:.3g} labels a row, the rarest in {rarest:,} rows."


def check_task(inputs: Inputs, metrics: list[tuple[Metric, int | None]]) -> None:
    """Refuse metrics and budgets that do not go with the data, and say what to pass."""
    for metric, k in metrics:
        if metric.binary and inputs.m == 2:
            raise ValueError(
                f"{metric.name} takes the probability of one label, and there are 2 columns: pass "
                "--column 1 for the second, or a macro_ or multiclass_ metric"
            )
        metric.check_labels(inputs.m)
        if k is not None and k > inputs.m:
            raise ValueError(f"k must be at most the number of labels, {inputs.m}, got {k}")
        if inputs.class_ids and k is None and not metric.multiclass:
            raise ValueError(
                f"the labels are class ids, and {metric.name} has no budget: pass -k 1 to predict "
                "one class a row, or labels as columns of 0 and 1"
            )


def in_order(path: str, sample: Inputs, names: tuple[str, ...] | None) -> tuple[Any, Any]:
    """Probabilities and labels of a sample, their columns in the order of the names."""
    if names is None or sample.names is None or sample.names == names:
        return sample.eta, sample.y
    if set(sample.names) != set(names):
        raise ValueError(
            f"{path} must have the columns of --eta, {_listed(names)}, got {_listed(sample.names)}"
        )
    place = {name: number for number, name in enumerate(sample.names)}
    places = [place[name] for name in names]
    if not sample.class_ids:
        return sample.eta[:, places], sample.y[:, places]
    back = np.argsort(places)  # the new place of each class
    return sample.eta[:, places], back[sample.y]


def _listed(names: tuple[str, ...]) -> str:
    more = ", …" if len(names) > 9 else ""
    return ", ".join(names[:9]) + more

"""Probabilities and labels of a user, and whether metrics go with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from omma.metrics import Metric
from omma.rows.batch import Batch


@dataclass(frozen=True)
class Inputs:
    """What files hold: labels may be missing from the batch; notes are for the user.

    ``rows`` is what the column that names rows is called, and its cells.
    """

    batch: Batch
    notes: tuple[str, ...] = ()
    rows: tuple[str, tuple[str, ...]] | None = None

    @property
    def eta(self) -> Any:
        """Probabilities, dense or sparse."""
        return self.batch.values

    @property
    def y(self) -> Any:
        """Labels, or None."""
        return None if self.batch.labels is None else self.batch.labels.given

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the columns."""
        return self.batch.names

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.batch.n

    @property
    def m(self) -> int:
        """Number of labels."""
        return self.batch.m

    @property
    def class_ids(self) -> bool:
        """Whether labels are one class id a row."""
        return self.batch.class_ids

    def sentence(self) -> str:
        """The data in a few words."""
        rows = f"{self.n:,} row{'s' * (self.n != 1)}"
        kind = "sparse probabilities" if self.batch.thin else "probabilities"
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


def in_order(path: str, sample: Batch, names: tuple[str, ...] | None) -> Batch:
    """A sample with its columns in the order of the names."""
    if names is None or sample.names is None or sample.names == names:
        return sample
    if set(sample.names) != set(names):
        raise ValueError(
            f"{path} must have the columns of --eta, {_listed(names)}, got {_listed(sample.names)}"
        )
    assert sample.labels is not None
    place = {name: number for number, name in enumerate(sample.names)}
    places = [place[name] for name in names]
    y = sample.labels.given
    # Of classes, the new place of each; of indicators, the columns.
    y = np.argsort(places)[y] if sample.class_ids else y[:, places]
    made = Batch.read(path, sample.values[:, places]).labelled(path, y)
    return replace(made, names=names).ready()


def _listed(names: tuple[str, ...]) -> str:
    more = ", …" if len(names) > 9 else ""
    return ", ".join(names[:9]) + more

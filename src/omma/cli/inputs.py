"""Probabilities and labels of a user, and whether metrics go with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.metrics import Metric
from omma.policies.base import whole_for
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
    def y(self) -> Any:
        """Labels, or None."""
        return None if self.batch.labels is None else self.batch.labels.given

    def without(self, rows: NDArray[np.bool_], why: str) -> Inputs:
        """The same without some rows, and a note that says how many and why."""
        note = f"{int(rows.sum()):,} of {self.batch.n:,} rows {why}"
        names = self.rows
        if names is not None:
            kept = tuple(one for one, left in zip(names[1], rows, strict=True) if not left)
            names = (names[0], kept)
        return Inputs(self.batch.take(~rows), (*self.notes, note), names)

    def whole(self, metrics: list[tuple[Metric, int | None]]) -> Inputs:
        """Without rows that are labelled in part, where a metric is about one class a row."""
        labels = self.batch.labels
        if labels is None or labels.missing is None:
            return self
        for metric, _ in metrics:
            if whole_for(metric) is not None:
                part = np.diff(labels.missing.indptr) > 0
                if part.all():
                    labels.refuse_halves(labels.owner, whole_for(metric) or "")
                why = f"lack some labels, and are left out: {metric.name} is about one class a row"
                return self.without(part, why)
        return self

    def sentence(self) -> str:
        """The data in a few words."""
        rows = f"{self.batch.n:,} row{'s' * (self.batch.n != 1)}"
        kind = "sparse probabilities" if self.batch.thin else "probabilities"
        if self.batch.m == 1:
            return f"{rows}, one binary label; {self._positive()}"
        what = "classes, one a row" if self.batch.class_ids else "labels"
        return f"{rows}, {self.batch.m:,} {what}; {kind}, {self._positive()}"

    def _positive(self) -> str:
        if self.y is None:
            return "no labels."
        if self.batch.class_ids:
            found = np.bincount(self.y.astype(np.int64), minlength=self.batch.m)
            return f"the rarest class is in {int(found.min()):,} rows."
        positive = np.asarray(self.y.sum(axis=0, dtype=np.float64)).ravel()
        known = self.rows_known
        per_row = float((positive / np.maximum(known, 1.0)).sum())
        if self.batch.m == 1:
            return f"{100 * per_row:.3g} % are positive."
        share = known.sum() / (self.batch.n * self.batch.m)
        some = "" if share == 1.0 else f", {100 * share:.3g} % of all are known"
        return f"{per_row:.3g} labels a row, the rarest in {int(positive.min()):,} rows{some}."

    @property
    def rows_known(self) -> NDArray[np.float64]:
        """In how many rows each label is known."""
        labels, m = self.batch.labels, self.batch.m
        every = np.full(m, float(self.batch.n))
        if labels is None or labels.missing is None:
            return every
        return every - np.bincount(labels.missing.indices, minlength=m)


def check_task(
    batch: Batch, metrics: list[tuple[Metric, int | None]], at_most: int | None = None
) -> None:
    """Refuse metrics and budgets that do not go with the data, and say what to pass."""
    if at_most is not None and at_most > batch.m:
        raise ValueError(
            f"--at-most must be at most the number of labels, {batch.m}, got {at_most}"
        )
    for metric, k in metrics:
        if metric.binary and batch.m == 2:
            raise ValueError(
                f"{metric.name} takes the probability of one label, and there are 2 columns: pass "
                "--column 1 for the second, or a macro_ or multiclass_ metric"
            )
        metric.check_labels(batch.m)
        if k is not None and k > batch.m:
            raise ValueError(f"k must be at most the number of labels, {batch.m}, got {k}")
        if batch.class_ids and k is None and not metric.multiclass:
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
    y, missing = sample.labels.given, sample.labels.missing
    # Of classes, the new place of each; of indicators, the columns.
    y = np.argsort(places)[y] if sample.class_ids else y[:, places]
    made = Batch.read(path, sample.values[:, places]).labelled(path, y)
    if missing is not None:
        assert made.labels is not None
        made = replace(made, labels=replace(made.labels, missing=missing[:, places]))
    return replace(made, names=names).ready()


def _listed(names: tuple[str, ...]) -> str:
    more = ", …" if len(names) > 9 else ""
    return ", ".join(names[:9]) + more

"""What is predicted: yes or no, one class of several, or any number of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from omma._frames import Names, opened
from omma._validate import shown
from omma.metrics import Metric

OWNER = "MetricClassifier"
YES, CLASSES, LABELS = "yes or no", "one class a row", "labels"


@dataclass(frozen=True)
class Target:
    """How y is told to omma, and how decisions are told to the user.

    ``kind`` is YES for a metric of the positive class alone, CLASSES for one class a row, LABELS
    for indicators. ``dtype`` and ``thin`` (sparse) are those of y.
    """

    kind: str
    classes: NDArray[Any]
    names: Names | None
    dtype: Any
    thin: bool = False

    @property
    def m(self) -> int:
        """The number of columns that decisions are made of."""
        return 1 if self.kind == YES else len(self.classes)

    def encode(self, y: Any) -> Any:
        """True labels as omma takes them: 0/1, class ids, or indicators."""
        if self.kind == LABELS:
            return self._indicators(y)
        values = np.asarray(column_or_1d(y))
        unknown = ~np.isin(values, self.classes)
        if unknown.any():
            raise ValueError(
                f"y of {OWNER} must hold the classes {shown(self.classes.tolist())}, got "
                f"{shown(values[unknown][0])}"
            )
        ids = np.searchsorted(self.classes, values)
        return ids.astype(np.int8) if self.kind == YES else ids

    def _indicators(self, y: Any) -> Any:
        values = opened(OWNER, "y", y, self.names).values
        values = values.tocsr() if sparse.issparse(values) else np.asarray(values)
        if values.ndim != 2 or values.shape[1] != len(self.classes):
            raise ValueError(
                f"y of {OWNER} must have {len(self.classes)} columns, got shape {values.shape}"
            )
        return values

    def decode(self, decisions: Any) -> Any:
        """Indicators as users want them: classes, or indicators of y's own type."""
        if self.kind == YES:
            return self.classes[decisions]
        if self.kind == CLASSES:
            ids = decisions.indices if sparse.issparse(decisions) else decisions.argmax(axis=1)
            return self.classes[ids]
        if self.thin or sparse.issparse(decisions):
            return sparse.csr_matrix(decisions, dtype=self.dtype)
        return decisions.astype(self.dtype)


def read_target(y: Any, metric: Metric, classes: Any = None) -> Target:
    """See what kind of problem y is; ``classes`` are all that may come, where y has but some."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        return _labels(y)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"y of {OWNER} must be classes or 0/1 indicators. Unknown label type: {kind}"
        )
    values = np.asarray(column_or_1d(y, warn=True))
    known = np.unique(values if classes is None else np.asarray(classes))
    if len(known) < 2:
        raise ValueError(
            f"y of {OWNER} must have at least two classes, got one class, {shown(known.tolist())}"
        )
    one = metric.binary and len(known) == 2
    if not one:
        metric.check_labels(len(known))
    names = tuple(str(name) for name in (known[1:] if one else known))
    return Target(YES if one else CLASSES, known, names, known.dtype)


def _labels(y: Any) -> Target:
    """Indicators; a frame brings the names of its columns."""
    table = opened(OWNER, "y", y)
    values = table.values if hasattr(table.values, "shape") else np.asarray(table.values)
    m = values.shape[1]
    return Target(LABELS, np.arange(m), table.names, values.dtype, sparse.issparse(values))

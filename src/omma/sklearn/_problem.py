"""The kind of problem that y poses: converts labels, probabilities, decisions and scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from omma._validate import shown
from omma.export import seats_of
from omma.metrics import Metric
from omma.metrics.base import OF_CLASSES
from omma.rows.arrays import read_probabilities
from omma.rows.batch import Batch
from omma.rows.frames import Names, open_table
from omma.rows.labels import read_labels
from omma.rule import Rule, calibrated

Floats = NDArray[np.float64]
ABOVE_ZERO = np.finfo(np.float64).tiny  # to scikit-learn, a score of zero is negative
NEVER = 2.0  # a threshold that no probability reaches
BINARY, MULTICLASS, MULTILABEL = "binary", "multiclass", "multilabel"
ROUNDING = 1e-6  # a number this far outside of 0 to 1 is still taken for a probability


@dataclass(frozen=True)
class Problem:
    """Converts y to labels of omma, and decisions to predictions of scikit-learn.

    ``kind`` is BINARY for two classes and a metric of one label, the positive class; MULTICLASS for
    one class per row, also of two; MULTILABEL for indicators. ``dtype`` and ``is_sparse`` are those
    of y. ``positive`` is the position of the positive class. Messages name the ``owner``.
    """

    owner: str
    kind: str
    classes: NDArray[Any]
    names: Names | None
    dtype: Any
    is_sparse: bool = False
    positive: int = 1

    @property
    def m(self) -> int:
        """The number of labels of a decision."""
        return 1 if self.kind == BINARY else len(self.classes)

    def encode(self, y: Any) -> Any:
        """True labels in omma's form: 0/1, class ids, or indicators."""
        if self.kind == MULTILABEL:
            values = open_table(self.owner, "y", y, self.names).values
            values = values if sparse.issparse(values) else np.asarray(values)
            if values.ndim != 2 or values.shape[1] != self.m:
                raise ValueError(
                    f"y of {self.owner} must have {self.m} columns, got shape {values.shape}"
                )
            # Check before an estimator is trained on y, and not later with the probabilities.
            labels = read_labels(self.owner, values, *values.shape)
            labels.refuse_unknown_rows(self.owner)
            labels.refuse_partly_known(self.owner)
            return labels.values
        values = np.asarray(column_or_1d(y))
        unknown = ~np.isin(values, self.classes)
        if unknown.any():
            raise ValueError(
                f"y of {self.owner} must hold the classes {shown(self.classes.tolist())}, got "
                f"{shown(values[unknown][0])}"
            )
        ids = np.searchsorted(self.classes, values)  # classes are sorted
        return (ids == self.positive).astype(np.int8) if self.kind == BINARY else ids

    def check_same_classes(self, classes: Any) -> None:
        """Refuse classes that differ from those of the first call."""
        known = _of_one_output(classes)
        if known is None or self.kind == MULTILABEL:
            return
        if not np.array_equal(np.unique(np.asarray(known)), self.classes):
            raise ValueError(
                f"`classes={shown(classes)}` is not the same as on last call to partial_fit, "
                f"was: {shown(self.classes.tolist())}"
            )

    def ordered(self, y: Any) -> Any:
        """The user's own y; where columns of a frame are in another order, an array in ours."""
        if self.kind != MULTILABEL or self.names is None:
            return y
        table = open_table(self.owner, "y", y, self.names)
        return table.values if table.is_reordered else y

    def eta(self, estimator: Any, X: Any) -> Any:
        """The estimator's probabilities of rows, with a column for each class or label.

        Without an estimator, X holds the probabilities, as any classifier returns them.
        """
        raw, known, source = X, None, "y_prob"
        if estimator is not None:
            raw, known = estimator.predict_proba(X), getattr(estimator, "classes_", None)
            source = f"predict_proba of {type(estimator).__name__}"
        if self.kind == MULTILABEL:
            eta = self._eta_of_labels(raw, known, source)
        else:
            eta = self._eta_of_classes(self._array(raw), known, source)
        values = eta.data if sparse.issparse(eta) else eta
        low, high = values.min(initial=0), values.max(initial=0)
        # Rounding errors are clipped; numbers further outside of 0 to 1 are refused below.
        if (low < 0 or high > 1) and low >= -ROUNDING and high <= 1 + ROUNDING:
            eta = eta.minimum(1).maximum(0) if sparse.issparse(eta) else np.clip(eta, 0, 1)
        # Checked alone: folds are read as one batch once all of them are there.
        return Batch(read_probabilities(self.owner, eta)).check(self.owner).values

    def _array(self, raw: Any) -> Any:
        values = open_table(self.owner, "predict_proba", raw).values
        return values.tocsr() if sparse.issparse(values) else np.asarray(values)

    def _eta_of_labels(self, raw: Any, known: Any, source: str) -> Any:
        """Probabilities of shape (n, m), from that shape, (n, m, 2) or a list of m of (n, 2)."""
        # Forests and MultiOutputClassifier give a list, OneVsRestClassifier and networks a matrix.
        if isinstance(raw, list | tuple):
            if not isinstance(known, list | tuple) or len(known) != len(raw):
                known = [None] * len(raw)
            columns = []
            for part, classes in zip(map(self._array, raw), known, strict=True):
                if part.ndim == 1 or classes is None:
                    columns.append(part if part.ndim == 1 else part[:, -1])
                else:  # zero for a label that no training row had: there is no column of class 1
                    columns.append(part[:, np.asarray(classes) == 1].sum(axis=1))
            eta = np.stack(columns, axis=1)
        else:
            eta = self._array(raw)
            eta = eta[..., 1] if eta.ndim == 3 and eta.shape[2] == 2 else eta
        if eta.ndim != 2 or eta.shape[1] != self.m:
            raise ValueError(
                f"{source} in {self.owner} must give {self.m} labels, got shape {eta.shape}"
            )
        return eta

    def _eta_of_classes(self, eta: Any, known: Any, source: str) -> Any:
        """A column for each class; a class that the estimator has not seen has probability zero."""
        # Some classifiers of two classes give the probability of the second alone.
        if eta.ndim == 1 or (eta.shape[1] == 1 and len(self.classes) == 2):
            positive = (eta.toarray() if sparse.issparse(eta) else eta).reshape(-1)
            eta = np.column_stack((1 - positive, positive))
        own = np.asarray(self.classes if known is None else known)
        if eta.shape[1] != len(own) or not np.isin(own, self.classes).all():
            raise ValueError(
                f"{source} in {self.owner} must give the classes "
                f"{self.classes.tolist()}, got {eta.shape[1]} columns for {own.tolist()}"
            )
        if not np.array_equal(own, self.classes):  # a training fold may lack a class
            places = np.searchsorted(self.classes, own)
            entries = (np.ones(len(own)), (np.arange(len(own)), places))
            eta = eta @ sparse.csr_array(entries, shape=(len(own), len(self.classes)))
        if self.kind != BINARY:
            return eta
        column = eta[:, [self.positive]]
        return (column.toarray() if sparse.issparse(column) else np.asarray(column)).reshape(-1)

    def decode(self, decisions: Any) -> Any:
        """Decisions as scikit-learn predicts: classes, or indicators of y's own type."""
        if self.kind == BINARY:
            # A decision of 1 means the positive class, which may be the first of the two.
            return self.classes[decisions if self.positive == 1 else 1 - decisions]
        if self.kind == MULTICLASS:
            ids = decisions.indices if sparse.issparse(decisions) else decisions.argmax(axis=1)
            return self.classes[ids]
        if self.is_sparse or sparse.issparse(decisions):
            return sparse.csr_matrix(decisions, dtype=self.dtype)
        return decisions.astype(self.dtype)


def labels_problem(owner: str, m: int) -> Problem:
    """The problem of m labels, where there is no y to read it from."""
    return Problem(owner, MULTILABEL, np.arange(m), None, np.dtype(np.int64))


def _of_one_output(classes: Any) -> Any:
    """The classes of one output; None for a list of classes per label, which are always 0 and 1."""
    return None if classes is None or np.ndim(classes[0]) else classes


def read_problem(
    owner: str, y: Any, metric: Metric, classes: Any = None, pos_label: Any = None
) -> Problem:
    """Read the problem from y; ``classes`` are all classes if y may lack some."""
    kind = type_of_target(y, input_name="y")
    if kind == "multilabel-indicator":
        if pos_label is not None:
            _refuse_pos_label(owner, pos_label, "indicators of labels")
        table = open_table(owner, "y", y)  # a frame brings the names of its columns
        values = table.values if hasattr(table.values, "shape") else np.asarray(table.values)
        labels = np.arange(values.shape[1])
        return Problem(
            owner, MULTILABEL, labels, table.names, values.dtype, sparse.issparse(values)
        )
    if kind not in ("binary", "multiclass"):  # the last words are those of scikit-learn
        raise ValueError(
            f"y of {owner} must be classes or 0/1 indicators. Unknown label type: {kind}"
        )
    values = np.asarray(column_or_1d(y, warn=True))
    classes = _of_one_output(classes)
    known = np.unique(values if classes is None else np.asarray(classes))
    # With a single class there is nothing to decide, and no positive or no negative rows.
    if len(known) < 2:
        raise ValueError(
            f"y of {owner} must have at least two classes, got one class, {shown(known.tolist())}"
        )
    # Two classes and a metric over both, such as macro_f1, are one class per row.
    binary = metric.binary and len(known) == 2
    # A metric of one label has another value over classes, if it has a form for them.
    if metric.binary and metric.name in OF_CLASSES and not binary:
        raise ValueError(
            f"metric of {owner} must be one of classes for {len(known)} classes, got "
            f"{metric.name}: use multiclass_{metric.name}"
        )
    if not binary:  # the error names the metrics of several classes
        metric.check_labels(len(known))
    positive = _positive(owner, known, metric, pos_label)
    names = tuple(str(name) for name in (known[[positive]] if binary else known))
    kind = BINARY if binary else MULTICLASS
    return Problem(owner, kind, known, names, known.dtype, positive=positive)


def _positive(owner: str, known: NDArray[Any], metric: Metric, pos_label: Any) -> int:
    """The position of the positive class of two, by scikit-learn's convention."""
    classes = known.tolist()
    if pos_label is not None:
        if len(classes) != 2 or pos_label not in classes:
            _refuse_pos_label(owner, pos_label, f"the classes {shown(classes)}")
        return int(classes.index(pos_label))
    if metric.binary and classes not in ([0, 1], [-1, 1]):  # False and True are 0 and 1
        raise ValueError(
            f"pos_label of {owner} must be given where {metric.name} is to be that of one of the "
            f"classes {classes[0]!r} and {classes[1]!r}: pass pos_label={classes[0]!r} or "
            f"pos_label={classes[1]!r}"
            + (f", or use multiclass_{metric.name}" if metric.name in OF_CLASSES else "")
        )
    return 1


def _refuse_pos_label(owner: str, pos_label: Any, y_has: str) -> None:
    raise ValueError(
        f"pos_label of {owner} must be one of two classes, got {shown(pos_label)} where y has "
        f"{y_has}"
    )


# Scores of a rule, for ``decision_function``


def decision_scores(rule: Rule, eta: Any, problem: Problem) -> Floats:
    """Scores that are above zero for predicted labels, or largest for the predicted class.

    Their shape is (n,) for two classes, else (n, m), with a column for each class or label.
    """
    dense = eta.toarray() if sparse.issparse(eta) else np.asarray(eta, dtype=np.float64)
    decided = np.asarray(rule.predict(dense)).reshape(len(dense), problem.m)
    eta = dense.reshape(decided.shape).astype(np.float64)
    budget = seats_of(rule)
    if budget is None:
        # A label that is never predicted, or only below its threshold, ranks by its probability.
        scores = eta - np.nan_to_num(np.minimum(rule.thresholds, NEVER), nan=NEVER)
    else:
        scores = _gains(rule, eta)
        if problem.kind == MULTICLASS and problem.m > 2:
            return scores
        if problem.kind == MULTICLASS:
            return _with_signs((scores[:, 1] - scores[:, 0]) / 2, decided[:, 1])
        last = np.sort(scores, axis=1)[:, [-budget]]
        # Up to at_most labels are predicted if their gains are at least 0; k labels in any case.
        scores = scores - (last if rule.k else np.maximum(last, 0.0))
    scores = _with_signs(scores, decided)
    if problem.kind != BINARY:
        return scores
    if problem.positive == 1:
        return scores[:, 0]
    return _with_signs(-scores[:, 0], 1 - decided[:, 0])  # the second class is the negative one


def _gains(rule: Rule, eta: Floats) -> Floats:
    """Gains in the unit of a probability; labels of probability zero come last."""
    values = eta if rule.curve is None else calibrated(eta, rule.curve)
    gains = values * rule.slope + rule.offset
    if rule.matrix is not None:
        gains, unit = gains + values @ rule.matrix, np.abs(rule.matrix).max()
    else:
        gains, unit = np.where(eta > 0, gains, gains.min() - 1.0), np.abs(rule.slope).max()
    return np.asarray(gains / (unit or 1.0), dtype=np.float64)


def _with_signs(scores: Floats, decided: Any) -> Floats:
    """Scores above zero where labels are predicted, else at most zero; ties and rounding differ."""
    return np.where(decided == 1, np.maximum(scores, ABOVE_ZERO), np.minimum(scores, 0.0))

"""The kind of problem that y is: how y, probabilities, decisions and scores are translated."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from omma._validate import shown
from omma.kernels.layout import LEAST, MOST
from omma.metrics import Metric
from omma.metrics.base import OF_CLASSES
from omma.rows.arrays import sound_csr
from omma.rows.batch import Batch
from omma.rows.frames import Names, open_table
from omma.rows.labels import refuse_labels
from omma.rule import Rule, squashed

Floats = NDArray[np.float64]
ABOVE_ZERO = np.finfo(np.float64).tiny  # scikit-learn takes a score of zero for a no
BINARY, MULTICLASS, MULTILABEL = "binary", "multiclass", "multilabel"
ROUNDING = 1e-6  # how far beyond 0 and 1 a probability may lie and still be one


@dataclass(frozen=True)
class Problem:
    """How y becomes labels of omma, and decisions become predictions of scikit-learn.

    ``kind`` is BINARY where one of two classes is the positive one, as a metric of one label needs
    it; MULTICLASS for one class a row, also of two; MULTILABEL for indicators. ``dtype`` and
    ``is_sparse`` are those of y. ``positive`` is the place of the positive class among the classes.
    ``owner`` is named in messages.
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
        """The number of columns that decisions are made of."""
        return 1 if self.kind == BINARY else len(self.classes)

    def encode(self, y: Any) -> Any:
        """True labels as omma takes them: 0/1, class ids, or indicators."""
        if self.kind == MULTILABEL:
            values = open_table(self.owner, "y", y, self.names).values
            is_sparse = sparse.issparse(values)
            values = sound_csr(self.owner, "y", values) if is_sparse else np.asarray(values)
            if values.ndim != 2 or values.shape[1] != len(self.classes):
                raise ValueError(
                    f"y of {self.owner} must have {len(self.classes)} columns, got shape "
                    f"{values.shape}"
                )
            _check_indicators(self.owner, values)
            return values
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
        """Refuse other classes than those of the first call."""
        known = _of_one_output(classes)  # estimators of many labels take a list for each
        if known is None or self.kind == MULTILABEL:
            return
        if not np.array_equal(np.unique(np.asarray(known)), self.classes):
            raise ValueError(
                f"`classes={shown(classes)}` is not the same as on last call to partial_fit, "
                f"was: {shown(self.classes.tolist())}"
            )

    def ordered(self, y: Any) -> Any:
        """The user's own y; a frame of labels with its columns in the order of the names."""
        if self.kind != MULTILABEL or self.names is None:
            return y
        table = open_table(self.owner, "y", y, self.names)
        if not table.is_reordered:
            return y
        in_our_order = replace(table.restore_type, columns=list(self.names), column_order=None)
        return in_our_order(table.values)

    def eta(self, estimator: Any, X: Any) -> Any:
        """The estimator's probabilities of some rows: a column for each class or label."""
        known = getattr(estimator, "classes_", None)
        source = f"predict_proba of {type(estimator).__name__}"
        return self.read_eta(estimator.predict_proba(X), known, source)

    def checked_eta(self, estimator: Any, X: Any) -> Any:
        """The same, or a sentence that says which number is no probability."""
        return Batch.read(self.owner, self.eta(estimator, X)).check(self.owner).values

    def read_eta(self, raw: Any, known: Any, source: str) -> Any:
        """Probabilities of the classes ``known``, as any classifier gives them.

        ``source`` says in messages where they are from.
        """
        if self.kind == MULTILABEL:
            eta = self._eta_of_labels(raw, known, source)
        else:
            eta = self._eta_of_classes(self._array(raw), known, source)
        values = eta.data if sparse.issparse(eta) else eta
        if not values.size:
            return eta
        low, high = values.min(), values.max()
        # A rounding beyond 0 or 1 is taken off; anything further out is left to be refused.
        if (low < 0 or high > 1) and low >= -ROUNDING and high <= 1 + ROUNDING:
            return eta.minimum(1).maximum(0) if sparse.issparse(eta) else np.clip(eta, 0, 1)
        return eta

    def _array(self, raw: Any) -> Any:
        values = open_table(self.owner, "predict_proba", raw).values
        return values.tocsr() if sparse.issparse(values) else np.asarray(values)

    def _eta_of_labels(self, raw: Any, known: Any, source: str) -> Any:
        """(n, m) as it is; of (n, m, 2), or of m arrays (n, 2), the part that says yes."""
        # Forests and MultiOutputClassifier give a list, OneVsRestClassifier and networks a matrix.
        if isinstance(raw, list | tuple):
            if not isinstance(known, list | tuple) or len(known) != len(raw):
                known = [None] * len(raw)
            columns = []
            for part, classes in zip(map(self._array, raw), known, strict=True):
                if part.ndim == 1 or classes is None:
                    columns.append(part if part.ndim == 1 else part[:, -1])
                else:  # training rows may have had the label always, or never
                    place = np.flatnonzero(np.asarray(classes) == 1)
                    columns.append(part[:, place[0]] if len(place) else np.zeros(len(part)))
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


def _of_one_output(classes: Any) -> Any:
    """Classes of one output; those of several say nothing that indicators do not."""
    return None if classes is None or np.ndim(classes[0]) else classes


def _check_indicators(owner: str, values: Any) -> None:
    """Refuse anything but zeros and ones, before an estimator is trained on it."""
    rows, entries = np.arange(values.shape[0]), values
    if sparse.issparse(values):
        rows, entries = np.repeat(rows, np.diff(values.indptr)), values.data
    if entries.dtype.kind not in "fiub":
        raise TypeError(f"y of {owner} must hold numbers, got the type {entries.dtype}")
    wrong = np.flatnonzero(((entries != 0) & (entries != 1)).reshape(len(rows), -1).any(axis=1))
    if len(wrong):
        refuse_labels(owner, "y", int(rows[wrong[0]]), np.atleast_1d(entries[wrong[0]]))


def read_problem(
    owner: str, y: Any, metric: Metric, classes: Any = None, pos_label: Any = None
) -> Problem:
    """Read the problem from y; ``classes`` are all that may come, where y has but some."""
    check_classification_targets(y)
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
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"y of {owner} must be classes or 0/1 indicators. Unknown label type: {kind}"
        )
    values = np.asarray(column_or_1d(y, warn=True))
    classes = _of_one_output(classes)
    known = np.unique(values if classes is None else np.asarray(classes))
    # A single class leaves nothing to decide, and gives no positive or no negative rows.
    if len(known) < 2:
        raise ValueError(
            f"y of {owner} must have at least two classes, got one class, {shown(known.tolist())}"
        )
    # Two classes and a metric over both, such as macro_f1, are decided as one class a row.
    binary = metric.binary and len(known) == 2
    if metric.binary and metric.name in OF_CLASSES and not binary:  # another number over classes
        raise ValueError(
            f"metric of {owner} must be one of classes for {len(known)} classes, got "
            f"{metric.name}: use multiclass_{metric.name}"
        )
    if not binary:  # a metric of one label says what to use for several classes
        metric.check_labels(len(known))
    positive = _positive(owner, known, metric, pos_label)
    names = tuple(str(name) for name in (known[[positive]] if binary else known))
    kind = BINARY if binary else MULTICLASS
    return Problem(owner, kind, known, names, known.dtype, positive=positive)


def _positive(owner: str, known: NDArray[Any], metric: Metric, pos_label: Any) -> int:
    """The place of the positive one of two classes, by scikit-learn's convention."""
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
    """Scores whose sign, or of which the largest, is the decision of a rule.

    They are (n,) for two classes, else a column for each class or label.
    """
    dense = eta.toarray() if sparse.issparse(eta) else np.asarray(eta, dtype=np.float64)
    decided = np.asarray(rule.predict(dense)).reshape(len(dense), problem.m)
    eta = dense.reshape(decided.shape).astype(np.float64)
    seats = rule.at_most if rule.k is None else rule.k
    if seats is None:
        thresholds = rule.thresholds
        plain = np.isfinite(thresholds) & (rule.slope > 0)
        distance = eta - np.where(plain, thresholds, 0.0)
        # Where a label has no threshold, every yes is above every no.
        scores = np.where(plain, distance, eta - 2 + 3 * decided)
    else:
        gains = _gains(rule, eta)
        if problem.kind == MULTICLASS:
            two = gains.shape[1] == 2
            return _signed((gains[:, 1] - gains[:, 0]) / 2, decided[:, 1]) if two else gains
        last = np.sort(gains, axis=1)[:, [-seats]]
        # Up to at_most labels are predicted if they gain, exactly k whatever they gain.
        scores = gains - (last if rule.k else np.maximum(last, 0.0))
    scores = _signed(scores, decided)
    if problem.kind != BINARY:
        return scores
    if problem.positive == 1:
        return scores[:, 0]
    return _signed(-scores[:, 0], 1 - decided[:, 0])  # the second class is the negative one


def _gains(rule: Rule, eta: Floats) -> Floats:
    """Gains in the units of a probability; labels of probability zero are behind all others."""
    values = eta
    if rule.curve is not None:
        a, b, biases, s = rule.curve
        calibrated = expit(a * squashed(logit(np.clip(eta, LEAST, MOST)), s) + b + biases)
        values = np.where(eta > 0, calibrated, 0.0)
    gains = values * rule.slope + rule.offset
    if rule.matrix is not None:
        gains, unit = gains + values @ rule.matrix, np.abs(rule.matrix).max()
    else:
        gains, unit = np.where(eta > 0, gains, gains.min() - 1.0), np.abs(rule.slope).max()
    return np.asarray(gains / (unit or 1.0), dtype=np.float64)


def _signed(scores: Floats, decided: Any) -> Floats:
    """Above zero where the rule says yes, at most zero elsewhere: ties and roundings may differ."""
    return np.where(decided == 1, np.maximum(scores, ABOVE_ZERO), np.minimum(scores, 0.0))

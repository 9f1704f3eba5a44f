"""Models of other libraries, as estimators."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import shown
from omma.estimators._data import (
    check_rows_fit,
    is_indicator,
    read_classes,
    read_features,
    read_indicators,
)
from omma.estimators.layouts import from_river, to_columns

OWNER = "Wrapped"
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Wrapped:
    """A model of another library: scikit-learn's protocol, or river's.

    ``fit`` and ``estimates`` work on a copy; the model given is left as it is. Classes that the
    training part lacks get the probability 0, in a column of their own.

    Parameters
    ----------
    model
        With ``predict_proba`` and ``fit`` or ``partial_fit``, as scikit-learn has them; all the
        shapes that its classifiers give are understood. Or with ``predict_proba_one`` and
        ``learn_one``, as river has them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from omma.estimators import Wrapped
    >>> X, y = np.array([[0.0], [0.1], [1.0], [1.1]]), np.array([0, 0, 2, 2])
    >>> model = Wrapped(GaussianNB()).fit(X, y, n_labels=4)
    >>> model.predict_proba([[0.0], [1.0]]).round(2)
    array([[1., 0., 0., 0.],
           [0., 0., 1., 0.]])
    """

    model: Any

    def __post_init__(self) -> None:
        has = {name for name in _METHODS if hasattr(self.model, name)}
        river = {"predict_proba_one", "learn_one"} <= has
        if not river and not ("predict_proba" in has and has & {"fit", "partial_fit"}):
            raise TypeError(
                f"model of {OWNER} must have predict_proba with fit or partial_fit, or "
                f"predict_proba_one with learn_one, got {shown(self.model)}"
            )

    @property
    def by_row(self) -> bool:
        """Whether the model speaks river's protocol."""
        return hasattr(self.model, "learn_one") and not hasattr(self.model, "predict_proba")

    def fit(self, X: Any, y: Any, n_labels: int | None = None) -> WrappedModel:  # noqa: N803
        """Fit a copy of the model.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n, d)
        y : class ids of shape (n,), or indicators of shape (n, m), dense or sparse
            Handed on in the form given, as int64: scikit-learn mixes up columns of int8.
        n_labels : int, optional
            How many classes there are, where y may lack the last ones.
        """
        fitted, X, given = self._start(X, y, n_labels)  # noqa: N806
        if self.by_row:
            for t in range(X.shape[0]):
                fitted.learn_row(X, given, t)
        elif hasattr(fitted.model, "fit"):
            fitted.model.fit(X, given)
        else:
            fitted.learn_rows(X, given)
        return fitted

    def estimates(
        self,
        X: Any,  # noqa: N803
        y: Any,
        n_labels: int | None = None,
    ) -> tuple[Floats, dict[str, Any]]:
        """Probabilities of every row, each predicted before the model learns it.

        Before a scikit-learn model has seen a row it cannot predict: the first row gets even
        probabilities.
        """
        fitted, X, given = self._start(X, y, n_labels)  # noqa: N806
        if not self.by_row and not hasattr(fitted.model, "partial_fit"):
            raise TypeError(
                f"model of {OWNER} must have partial_fit to learn row by row, "
                f"got {shown(self.model)}"
            )
        m = fitted.n_labels
        eta = np.full((X.shape[0], m), 1 / m if fitted.classes else 0.5)
        for t in range(X.shape[0]):
            if self.by_row:
                eta[t] = fitted.predict_row(X, t)
                fitted.learn_row(X, given, t)
            else:
                if t:
                    eta[t] = fitted.predict_proba(X[t : t + 1])
                fitted.learn_rows(X[t : t + 1], given[t : t + 1])
        return eta, fitted.report

    def _start(self, X: Any, y: Any, n_labels: int | None) -> tuple[WrappedModel, Any, Any]:  # noqa: N803
        X = read_features(OWNER, X)  # noqa: N806
        if not is_indicator(y):
            given, m = read_classes(OWNER, y, n_labels)
        else:
            given = read_indicators(OWNER, y, n_labels).astype(np.int64)
            m = given.shape[1]
            if not sparse.issparse(y) or self.by_row:
                given = given.toarray()
            if m == 1 and not self.by_row:
                given = (given.toarray() if sparse.issparse(given) else given)[:, 0]
        check_rows_fit(OWNER, X, given.shape[0])
        report = {"model": type(self.model).__name__, "rows": X.shape[0], "labels": m}
        return WrappedModel(deepcopy(self.model), m, not is_indicator(y), report), X, given


_METHODS = ("fit", "partial_fit", "predict_proba", "predict_proba_one", "learn_one")


@dataclass
class WrappedModel:
    """A fitted model of another library."""

    model: Any
    n_labels: int
    classes: bool
    report: dict[str, Any] = field(default_factory=dict)

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Probabilities of shape (n, m), a column for each label or class id."""
        X = read_features("predict_proba", X)  # noqa: N806
        if hasattr(self.model, "predict_proba"):
            known = getattr(self.model, "classes_", None)
            return to_columns(self.model.predict_proba(X), known, self.n_labels, self.classes)
        return np.array([self.predict_row(X, t) for t in range(X.shape[0])])

    def learn_rows(self, X: Any, y: Any) -> None:  # noqa: N803
        """Hand rows to ``partial_fit``, with all classes there are."""
        first: Callable[..., Any] = self.model.partial_fit
        several = not self.classes and self.n_labels > 1
        every = np.arange(self.n_labels if self.classes else 2)
        first(X, y, classes=[every] * self.n_labels if several else every)

    def predict_row(self, X: Any, t: int) -> Floats:  # noqa: N803
        """Row t by river's protocol."""
        found = self.model.predict_proba_one(as_dict(X, t))
        return from_river(found, self.n_labels, self.classes)

    def learn_row(self, X: Any, y: Any, t: int) -> None:  # noqa: N803
        """Row t by river's protocol: a class id, True or False, or a dictionary of them."""
        if self.classes:
            label: Any = int(y[t])
        elif self.n_labels == 1:
            label = bool(y[t, 0])
        else:
            label = {j: bool(value) for j, value in enumerate(y[t])}
        self.model.learn_one(as_dict(X, t), label)


def as_dict(X: Any, t: int) -> dict[int, float]:  # noqa: N803
    """Row t as a dictionary: all features of a dense row, the stored ones of a sparse row."""
    if sparse.issparse(X):
        stored = slice(X.indptr[t], X.indptr[t + 1])
        return dict(zip(X.indices[stored].tolist(), X.data[stored].tolist(), strict=True))
    return dict(enumerate(X[t].tolist()))

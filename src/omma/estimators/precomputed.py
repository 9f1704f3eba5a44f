"""Probabilities that somebody else has computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omma._rows import check_rows, read_probabilities

OWNER = "Precomputed"


@dataclass(frozen=True, eq=False)
class Precomputed:
    """Probabilities from elsewhere, in the place of an estimator.

    They are those of the rows that will be asked for, in that order; nothing is fitted.

    Parameters
    ----------
    eta : ndarray or sparse matrix of shape (n, m)

    Examples
    --------
    >>> from omma.estimators import Precomputed
    >>> model = Precomputed([[0.2, 0.7], [0.1, 0.4]]).fit()
    >>> model.predict_proba([[1.0], [2.0]])
    array([[0.2, 0.7],
           [0.1, 0.4]])
    """

    eta: Any

    def __post_init__(self) -> None:
        rows = read_probabilities(OWNER, self.eta)
        check_rows(OWNER, rows)
        found = rows.matrix if not hasattr(rows, "array") else rows.array
        object.__setattr__(self, "eta", found)

    @property
    def report(self) -> dict[str, Any]:
        """What there is."""
        return {"rows": self.eta.shape[0], "labels": self.eta.shape[1]}

    def fit(self, X: Any = None, y: Any = None, n_labels: int | None = None) -> Precomputed:  # noqa: N803
        """Nothing to do; what is given is not looked at."""
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """The probabilities, where X has as many rows as they have."""
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if rows != self.eta.shape[0]:
            raise ValueError(
                f"X of {OWNER} must have {self.eta.shape[0]} rows as eta has, got {rows}"
            )
        return self.eta

    def estimates(self, X: Any, y: Any = None, n_labels: int | None = None) -> Any:  # noqa: N803
        """The probabilities and a report, as an online estimator gives them."""
        return self.predict_proba(X), self.report

"""A limit: a bound on a rate, the rate's value at some counts, and its standard error.

Rates can be bounded: ratios of two sums over rows.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import nearest, shown
from omma.counts import Counts
from omma.metrics import NAMES as METRICS, metric as find_metric
from omma.metrics.binary import Rate
from omma.metrics.target import parse_target
from omma.rows.frames import Names

PREDICTED = Rate(over=(0, 1, 0, 0), under=(0, 0, 0, 1))
STEADY_NAMES = ("labels_per_row", "predicted_rate")
ALIASES = {
    "multiclass_accuracy": "micro_recall",
    "multiclass_balanced_accuracy": "macro_recall",
    "weighted_recall": "micro_recall",
}
ELSEWHERE = {  # other names of these rates, or of one minus them
    "sensitivity": "recall",
    "tpr": "recall",
    "tnr": "specificity",
    "ppv": "precision",
    "fpr": "1 - specificity",
    "false_positive_rate": "1 - specificity",
    "fnr": "1 - recall",
    "false_negative_rate": "1 - recall",
    "fdr": "1 - precision",
    "alarm_rate": "predicted_rate",
    "alert_rate": "predicted_rate",
    "selection_rate": "predicted_rate",
}
OF_ALL_LABELS = {  # to bound in place of a rate of one label
    "accuracy": "micro_accuracy, or multiclass_accuracy for one class a row",
    "predicted_rate": "labels_per_row",
}
# The rates of one label, and all names that limits have, without those of single labels.
RATES = [name for name in METRICS if getattr(find_metric(name), "rate", None) is not None]
KNOWN = (*(f"micro_{rate}" for rate in RATES), *RATES, "macro_recall", *STEADY_NAMES, *ALIASES)
FBETA = re.compile(r"f(\d+(?:\.\d+)?)")


@dataclass(frozen=True, repr=False)
class Limit:
    """A bound on a rate; ``at_least`` and ``at_most`` make it, and check it.

    Attributes
    ----------
    of : str
        The bounded rate: "micro_" and a rate, "macro_recall", "labels_per_row"; or of one label a
        rate or "predicted_rate".
    sense : {">=", "<="}
    bound : float
    label : int or str, optional
        The place or name of the bounded label.
    margin : float
        The number of standard errors to stay on the safe side of the bound.
    index : int, optional
        The place of the label, once names are known.

    >>> from omma.limits import read_limit
    >>> limit = read_limit("recall[fraud] >= 0.8")
    >>> limit.label, limit.sense, limit.bound
    ('fraud', '>=', 0.8)
    >>> print(limit)
    recall[fraud] >= 0.8
    >>> limit
    at_least('recall[fraud]', 0.8)
    """

    of: str
    sense: str
    bound: float
    label: int | str | None = None
    margin: float = 0.0
    index: int | None = None

    @property
    def name(self) -> str:
        """The name of the bounded rate, with its label."""
        return self.of if self.label is None else f"{self.of}[{self.label}]"

    @property
    def sign(self) -> float:
        """1 where more is better, −1 where less is."""
        return 1.0 if self.sense == ">=" else -1.0

    @property
    def needs_labels(self) -> bool:
        """Whether its value depends on true labels, and not on predictions alone."""
        return self.of not in STEADY_NAMES

    @property
    def over_all(self) -> bool:
        """Whether it bounds a rate over all labels, not of one label."""
        return self.of in ("labels_per_row", "macro_recall") or self.of.startswith("micro_")

    @property
    def rate(self) -> Rate:
        """Numerator and denominator; of the mean of recalls, those of one label."""
        return rate_of(self.of)

    @property
    def form(self) -> NDArray[np.float64]:
        """The linear form over (tp, predicted, positive, n) that is at least 0 where it holds."""
        over, under = np.array(self.rate.over), np.array(self.rate.under)
        return np.asarray(self.sign * (over - self.bound * under))

    def variance_at(self, value: float) -> float:
        """The variance of one draw: Poisson for labels a row, Bernoulli for all else."""
        return max(value if self.of == "labels_per_row" else value * (1.0 - value), 0.0)

    def cells(self, counts: Counts) -> tuple[Any, Any, Any, float]:
        """The counts of its rate: (tp, predicted, positive, n)."""
        tp, predicted, positive = (counts.cells * self.label_weights(counts)).sum(axis=1)
        # Counted over all labels together, each row has m cells; labels a row are per row.
        n = counts.n * (counts.m if self.of.startswith("micro_") else 1)
        return tp, predicted, positive, n

    def label_weights(self, counts: Counts) -> NDArray[np.float64]:
        """The factor of each label's counts in those of the rate.

        A mean of recalls is a ratio of two sums, too: each label that occurs is weighed so that its
        occurrences add up to the same share of the rows.

        >>> from omma.limits import read_limit
        >>> counts = Counts([3, 1, 0], [4, 1, 0], [5, 2, 0], 10)
        >>> read_limit("macro_recall >= 0.8").label_weights(counts)
        array([1. , 2.5, 0. ])
        """
        if self.of == "macro_recall":
            occurs = counts.positive > 0
            share = counts.n / max(int(occurs.sum()), 1)
            return np.divide(share, counts.positive, out=np.zeros(counts.m), where=occurs)
        is_bounded = self.over_all | (np.arange(counts.m) == (self.index or 0))
        return np.asarray(is_bounded, dtype=np.float64)

    def value(self, counts: Counts) -> float:
        """The bounded rate at some counts; NaN where it is 0/0.

        >>> counts = Counts([3, 1], [4, 1], [5, 2], 10)
        >>> from omma.limits import read_limit
        >>> read_limit("micro_precision >= 0.9").value(counts)
        0.8
        >>> read_limit("labels_per_row <= 2").value(counts)
        0.5
        """
        return float(self.rate.of(*self.cells(counts), np.nan))

    def error(self, counts: Counts) -> float:
        """The standard error of that value, as of independent draws; NaN without any."""
        if self.of == "macro_recall":
            positive = counts.positive[counts.positive > 0]
            recalls = counts.tp[counts.positive > 0] / positive
            variance = (recalls * (1.0 - recalls) / positive).sum()
            return float(np.sqrt(variance) / max(len(positive), 1))
        draws = self.draws(counts)
        return math.sqrt(self.variance_at(self.value(counts)) / draws) if draws > 0 else math.nan

    def draws(self, counts: Counts) -> float:
        """The number of draws behind a rate, its denominator; NaN for a mean of rates.

        >>> from omma.limits import read_limit
        >>> read_limit("micro_precision >= 0.9").draws(Counts([3, 1], [4, 1], [5, 2], 10))
        5.0
        """
        if self.of == "macro_recall":  # each of its recalls has draws of its own
            return math.nan
        return float(np.dot(self.rate.under, self.cells(counts)))

    def tighter(self, counts: Counts) -> float:
        """By how much the margin tightens the bound: standard errors of a value at the bound."""
        draws = self.draws(counts)
        return self.margin * math.sqrt(self.variance_at(self.bound) / draws) if draws > 0 else 0.0

    def named(self, names: Names | None, m: int, owner: str) -> Limit:
        """The same limit with the place of its label, among ``names`` where these are known."""
        where = f"{self.name} in subject_to of {owner}"
        if self.label is None:
            if not self.over_all and m != 1:
                instead = OF_ALL_LABELS.get(self.of, f"micro_{self.of}")
                raise ValueError(
                    f"{where} is a rate of one label, and there are {m}: write {self.of}[j] for "
                    f"label j, or {instead}"
                )
            return replace(self, index=None if self.over_all else 0)
        if names is not None and str(self.label) in names:
            return replace(self, index=list(names).index(str(self.label)))
        if self.index is not None and self.index < m and names is None:
            return self  # its place was found before, when names were known
        # Where labels have numbers for names, a number is a name, not a place.
        numbered = names is not None and all(name.removeprefix("-").isdecimal() for name in names)
        if isinstance(self.label, int) and not numbered:
            if self.label >= m:
                raise ValueError(f"{where} must be about a label from 0 to {m - 1}")
            return replace(self, index=self.label)
        if names is None:
            raise ValueError(
                f"{where} names a label, and the labels have no names: pass names=, a frame, or "
                "the label's place"
            )
        hint = nearest(str(self.label), names) or f", got {shown(self.label)}"
        raise ValueError(f"{where} must name a label{hint}")

    def to_json(self) -> dict[str, Any]:
        """The limit as JSON, for ``read_limit``."""
        return asdict(self)

    def __repr__(self) -> str:
        function = "at_least" if self.sign > 0 else "at_most"
        margin = f", margin={self.margin:g}" if self.margin else ""
        return f"{function}({self.name!r}, {self.bound:g}{margin})"

    def __str__(self) -> str:
        margin = f" (margin {self.margin:g})" if self.margin else ""
        return f"{self.name} {self.sense} {self.bound:g}{margin}"


def own_name(name: str) -> str:
    """A limit's name in omma's spelling, where it is scikit-learn's or another.

    >>> own_name("recall_micro"), own_name("accuracy_score"), own_name("labels_per_row")
    ('micro_recall', 'micro_recall', 'labels_per_row')
    """
    spelled = parse_target(name).name
    known = spelled in METRICS or FBETA.fullmatch(_of_one_label(spelled))
    return ALIASES.get(spelled, spelled) if known else name  # as it was written, for its error


def rate_of(name: str) -> Rate:
    """The rate of a limit's name, of one label; refuses names that no limit can have."""
    if name in STEADY_NAMES:
        return PREDICTED
    plain = _of_one_label(name)
    if plain not in METRICS and not (FBETA.fullmatch(plain) and float(plain[1:]) > 0):
        hint = nearest(name.lower(), KNOWN) or f"; there are {', '.join(KNOWN)}"
        if plain.lower() in ELSEWHERE:
            hint = f", which is {ELSEWHERE[plain.lower()]} here"
        raise ValueError(f"unknown limit {name!r}{hint}")
    rate: Rate | None = getattr(find_metric(plain), "rate", None)
    if rate is None:
        raise ValueError(
            f"{name} cannot be a limit: it is no ratio of two sums over rows; bound the rates that "
            "it is computed from, such as recall and specificity"
            + (f", or multiclass_{name}" if f"multiclass_{name}" in ALIASES else "")
        )
    if name.startswith("macro_") and plain != "recall":
        raise ValueError(
            f"{name} cannot be a limit: its price is not that of one sum over rows, and the metric "
            f"would fall far below the best possible; use micro_{plain}, or {plain}[j] of single "
            "labels"
        )
    return rate


def _of_one_label(name: str) -> str:
    return name.removeprefix("macro_" if name.startswith("macro_") else "micro_")

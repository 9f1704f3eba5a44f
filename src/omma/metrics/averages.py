"""Averages of a metric over labels or classes, and sums of metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_choice
from omma.counts import Counts
from omma.kernels import objectives as kinds
from omma.kernels.layout import EPSILON, SUMS
from omma.metrics.base import Metric, divide
from omma.metrics.binary import MEANS, RECALL, UNSMOOTHED, LabelMetric, Minimum, Smoothing, mean_of

Terms = tuple[tuple[float, Metric], ...]


@dataclass(frozen=True, repr=False)
class OverLabels(Metric):
    """The base of all averages of a metric of one label over many labels."""

    of: LabelMetric
    average: ClassVar[str]
    template: ClassVar[str]  # of the formula, around that of one label

    def __post_init__(self) -> None:
        of = self.of
        self._set(
            name=f"{self.average}_{of.name}",
            formula=self.template.format(of.formula),
            concave=of.concave,
            smooth=of.smooth,
            linear=of.linear,
            # A sum of ratios is a ratio only where nothing is divided; micro is a single one.
            linear_fractional=of.linear_fractional if self.average == "micro" else of.linear,
        )

    @property
    def per_label(self) -> LabelMetric:
        return self.of

    @property
    def compiles(self) -> bool:
        return self.of.compiles

    def of_labels(self, counts: Counts, zero_division: float = 0.0) -> NDArray[np.float64]:
        """The metric of each label, before averaging."""
        self.check_counts(counts)
        tp, predicted, positive = counts.cells
        return self.of.of_cells(tp, predicted, positive, counts.n, zero_division)

    def to_json(self) -> Any:
        return {self.average: self.of.to_json()}


@dataclass(frozen=True, repr=False)
class Macro(OverLabels):
    """The mean over labels of a metric of one label.

    >>> import omma
    >>> omma.metrics.macro(omma.metrics.fbeta(2.0))
    <metric macro_f2>
    """

    average = "macro"
    template = "mean over labels of {}"

    def values(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        # Macro-ψ of the paper's Section 2, as of one label: the mean over all.
        return self.of.values(tp, predicted, positive, n, zero_division)

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        return self.of.term(weight, exact)


@dataclass(frozen=True, repr=False)
class Micro(OverLabels):
    """A metric of one label at the counts averaged over labels.

    >>> import omma
    >>> omma.metrics.micro(omma.metrics.f1).score([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    0.8
    """

    average = "micro"
    template = "{}, of the counts averaged over labels"
    sums = SUMS

    def values(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        # Micro-ψ of the paper's Section 2: ψ of the mean of all C_j. Sums do as well as means if
        # the rows are counted m times.
        m = tp.shape[-1]
        tp, predicted, positive = (
            cell.sum(axis=-1, keepdims=True) for cell in (tp, predicted, positive)
        )
        return self.of.values(tp, predicted, positive, n * m, zero_division)

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        return kinds.MicroTerm(float(weight), self.of.kind)


@dataclass(frozen=True, repr=False)
class Weighted(OverLabels):
    """The mean over labels of a metric of one label, weighed by how often each label occurs.

    >>> import omma
    >>> round(omma.metric("weighted_f1").score([[1, 0], [1, 1]], [[1, 0], [0, 1]]), 4)
    0.7778
    """

    average = "weighted"
    template = "mean over labels, weighed by tp + fn, of {}"
    sums = SUMS

    def values(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        of_labels = self.of.of_cells(tp, predicted, positive, n[..., np.newaxis], zero_division)
        # scikit-learn's average="weighted"; without any positives it is 0/0.
        weighed = (positive * of_labels).sum(axis=-1)
        return divide(weighed, positive.sum(axis=-1), zero_division)  # type: ignore[no-any-return]

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        return kinds.WeightedTerm(float(weight), self.of.kind)


@dataclass(frozen=True, repr=False)
class OverClasses(Metric):
    """A metric of classes, one a row: a mean of recalls, or an agreement beyond chance.

    ``kind`` is "accuracy", "balanced_accuracy", "gmean", "hmean", "qmean", "min_recall", "mcc" or
    "kappa". The last two need exactly one prediction a row; the others also allow a budget. The
    smallest recall is best ``smoothed`` before it is maximized.

    >>> import omma
    >>> omma.metrics.over_classes("gmean").score([0, 0, 1, 1], [0, 1, 1, 1])
    0.7071067811865476
    """

    kind: str
    smoothing: Smoothing = UNSMOOTHED

    def __post_init__(self) -> None:
        check_choice("over_classes", "kind", self.kind, tuple(KINDS))
        name, kind, smoothing = f"multiclass_{self.kind}", KINDS[self.kind], self.smoothing
        self._set(
            name=f"smoothed_{name}" if smoothing else name,
            formula=kind.formula,
            concave=kind.concave,
            smooth=kind.smooth or bool(smoothing),
            linear=kind.linear,
            linear_fractional=kind.linear or self.kind == "kappa",
            multiclass=True,
            single_label=self.kind in ("mcc", "kappa"),
            sums=SUMS if self.kind == "accuracy" else 0,
            __doc__=f"{name}: {kind.formula}",
        )

    def check_labels(self, m: int) -> None:
        if m < 2:  # ``score`` has a case of its own for data of one class
            raise ValueError(f"{self.name} needs at least two classes, got {m}")

    def values(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        # The total is of classes, not of rows: a row may have none.
        total, right = positive.sum(axis=-1), tp.sum(axis=-1)
        chance = (predicted * positive).sum(axis=-1)
        if self.kind == "accuracy":
            over, under = right, total
        elif self.kind == "kappa":
            over, under = right * total - chance, total**2 - chance
        elif self.kind == "mcc":
            spread = (total**2 - (cell**2).sum(axis=-1) for cell in (predicted, positive))
            # Weights may add up so that a square exceeds the total by a rounding.
            roots = (np.sqrt(np.maximum(square, 0.0)) for square in spread)
            over, under = right * total - chance, math.prod(roots)
        else:
            recalls = RECALL.of(tp, predicted, positive, n[..., np.newaxis], zero_division)
            return mean_of(KINDS[self.kind].mean, np.moveaxis(recalls, -1, 0))
        return divide(over, under, zero_division)  # type: ignore[no-any-return]

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        # Accuracy is a micro recall and balanced accuracy a macro recall, with one class a row.
        weight, recall = float(weight), RECALL.kind
        if self.kind == "accuracy":
            return kinds.MicroTerm(weight, recall)
        if self.kind == "balanced_accuracy":
            return kinds.MacroTerm(weight, recall)
        if self.kind == "min_recall":
            return kinds.Smallest(weight, recall, *self.smoothing.numbers)
        if self.kind == "kappa":
            return kinds.Kappa(weight, EPSILON)
        if self.kind == "mcc":
            return kinds.ClassCorrelation(weight, EPSILON)
        # A positive factor that all classes share does not change their ranking. It is left out
        # unless the derivatives themselves are needed.
        mean = MEANS[KINDS[self.kind].mean](EPSILON)
        return (kinds.WeighedClasses if exact else kinds.Classes)(weight, mean, recall)

    def to_json(self) -> Any:
        return self.smoothing.to_json(f"multiclass_{self.kind}")


class ClassKind(NamedTuple):
    """A metric of classes: its formula, the mean of recalls that it is, and its traits."""

    formula: str
    mean: str
    concave: bool = False
    smooth: bool = False
    linear: bool = False


# The columns for m classes of the paper's Table 1; mcc and kappa as scikit-learn defines them.
KINDS = {
    "accuracy": ClassKind("Σ tp / Σ positive", "rate", True, True, True),
    "balanced_accuracy": ClassKind(
        "mean over classes of tp / positive", "arithmetic", True, True, True
    ),
    "gmean": ClassKind("(Π over classes of tp / positive)^(1/m)", "geometric", True),
    "hmean": ClassKind("m / Σ over classes of positive / tp", "harmonic", True),
    "qmean": ClassKind(
        "1 − √(mean over classes of (1 − tp / positive)²)", "quadratic", concave=True
    ),
    "min_recall": ClassKind("min over classes of tp / positive", "minimum", True),
    "mcc": ClassKind(
        "(s·Σtp − Σ predicted·positive) / √((s² − Σ predicted²)(s² − Σ positive²)), s = Σ positive",
        "correlation",
    ),
    "kappa": ClassKind(
        "(s·Σtp − Σ predicted·positive) / (s² − Σ predicted·positive), s = Σ positive",
        "kappa",
        smooth=True,
    ),
}


def over_classes(kind: str) -> OverClasses:
    """A metric of classes, one a row.

    >>> over_classes("kappa").formula
    '(s·Σtp − Σ predicted·positive) / (s² − Σ predicted·positive), s = Σ positive'
    """
    return OverClasses(kind)


def is_minimum(metric: Metric) -> bool:
    """Whether a metric is a minimum of rates, smoothed or not."""
    if isinstance(metric, OverClasses):
        return metric.kind == "min_recall"
    return isinstance(metric.per_label, Minimum)


@dataclass(frozen=True, repr=False)
class Sum(Metric):
    """A weighted sum of metrics.

    A sum that contains a geometric, harmonic or quadratic mean over classes looks at every class
    once a row, to weigh that mean against the rest.

    >>> import omma
    >>> omma.metric("macro_recall") - 0.5 * omma.metric("micro_precision")
    <metric macro_recall - 0.5*micro_precision>
    """

    terms: Terms

    def __post_init__(self) -> None:
        # A sum of sums is one sum, so that its terms are compiled once.
        flat = [
            (weight * factor, part)
            for weight, metric in self.terms
            for factor, part in metric.parts
        ]
        parts = [metric for _, metric in flat]
        if len({metric.binary for metric in parts}) > 1:
            names = ", ".join(metric.name for metric in parts)
            raise ValueError(
                f"a sum cannot mix metrics of one label and of many, got {names}: wrap the first "
                "in omma.metrics.macro or omma.metrics.micro"
            )
        linear = all(metric.linear for metric in parts)
        # Gains η @ matrix are linear in the matrix: those of several costs add up.
        matrices = [weight * part.matrix for weight, part in flat if part.needs_matrix]
        self._set(
            terms=tuple(flat),
            name=self._join(flat, [metric.name for metric in parts]),
            formula=self._join(flat, [f"({metric.formula})" for metric in parts]),
            concave=all(part.linear or (weight >= 0 and part.concave) for weight, part in flat),
            smooth=all(metric.smooth for metric in parts),
            linear=linear,
            linear_fractional=parts[0].linear_fractional if len(parts) == 1 else linear,
            binary=all(metric.binary for metric in parts),
            multiclass=any(metric.multiclass for metric in parts),
            single_label=any(metric.single_label for metric in parts),
            matrix=np.sum(matrices, axis=0) if matrices else None,
            sums=max((metric.sums for metric in parts), default=0),
        )

    @property
    def parts(self) -> Terms:
        return self.terms

    @staticmethod
    def _join(terms: list[tuple[float, Metric]], names: list[str]) -> str:
        text = ""
        for (weight, _), name in zip(terms, names, strict=True):
            sign = " - " if weight < 0 else " + "
            factor = "" if abs(weight) == 1 else f"{abs(weight):g}*"
            text += f"{sign}{factor}{name}"
        return text[3:] if text.startswith(" + ") else "-" + text[3:]

    def check_labels(self, m: int) -> None:
        for _, metric in self.terms:
            metric.check_labels(m)

    def value(self, counts: Counts, zero_division: float = 0.0) -> float:
        # Term by term: those of costs look at pairs of classes.
        return float(
            sum(weight * metric.value(counts, zero_division) for weight, metric in self.terms)
        )

    def values(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        parts = (
            weight * metric.values(tp, predicted, positive, n, zero_division)
            for weight, metric in self.terms
        )
        return sum(parts)  # type: ignore[return-value]

    def term(self, weight: float = 1.0, exact: bool = False) -> Any:
        # Beside another term, a mean over classes must be weighed by its factor.
        exact = exact or len(self.terms) > 1
        parts = [
            metric.term(weight * factor, exact)
            for factor, metric in self.terms
            if not metric.needs_matrix
        ]
        return reduce(kinds.SumOfTerms, parts) if parts else kinds.Nothing(0.0)

    @property
    def compiles(self) -> bool:
        return all(metric.compiles for _, metric in self.terms)

    def to_json(self) -> Any:
        return {"sum": [[weight, metric.to_json()] for weight, metric in self.terms]}

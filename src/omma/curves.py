"""A metric as a function of the threshold, exact at every threshold, by one sort a label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omma._html import html_table
from omma._validate import check_number, check_positive_int, check_seed, shown
from omma.metrics import LabelMetric, Macro, Metric, Micro, metric as find_metric
from omma.metrics.names import MetricName
from omma.policies.base import check_task
from omma.policies.thresholds import RankedLabel, pooled, ranked_labels, threshold_rule
from omma.rows.batch import Batch, read_labelled
from omma.rule import Rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
POINTS = 400  # thresholds at which a band is computed, at most
AT_ONCE = 1 << 22  # weights of bootstrap samples held in memory


@dataclass(frozen=True, eq=False)
class CurveLine:
    """The metric of one label, or of all with a common threshold, at every threshold.

    Attributes
    ----------
    name : str
        The name of the label; that of the metric where all labels have one threshold.
    thresholds : ndarray
        Every probability above zero that occurs, rising, and infinity. A label is predicted where
        its probability is at least the threshold.
    values : ndarray
        The metric at each threshold. Between two thresholds it is that of the upper one.
    at : ndarray of int
        Indices of the thresholds at which the band was computed.
    low, high : ndarray
        The band there; empty without a bootstrap.
    best : int
        The index of the best threshold; of equals, the highest.
    """

    name: str
    thresholds: Floats
    values: Floats
    at: NDArray[np.int64]
    low: Floats
    high: Floats
    best: int

    @property
    def threshold(self) -> float:
        """The best threshold; infinite where it is best to predict nothing."""
        return float(self.thresholds[self.best])

    @property
    def value(self) -> float:
        """The metric at the best threshold."""
        return float(self.values[self.best])

    def value_at(self, threshold: float) -> float:
        """The metric at any threshold.

        >>> import omma
        >>> line = omma.curve([0.2, 0.6, 0.9], [0, 1, 1], "recall", bootstrap=0)[0]
        >>> line.value_at(0.5), line.value_at(0.7), line.value_at(0.95)
        (1.0, 0.5, 0.0)
        >>> line.value_at(float("inf"))  # predict nothing
        0.0
        """
        if threshold != np.inf:
            check_number("CurveLine.value_at", "threshold", threshold)
        return float(self.values[np.searchsorted(self.thresholds, threshold, side="left")])


@dataclass(frozen=True, eq=False)
class Curve:
    """A metric against the threshold: a line for each label, or one for all.

    ``curve[j]`` and ``curve["name"]`` are its lines; ``curve.rule`` has the best thresholds, and
    ``curve.plot()`` draws it all.
    """

    metric: Metric
    lines: tuple[CurveLine, ...]
    level: float
    rule: Rule | None

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[CurveLine]:
        return iter(self.lines)

    def __getitem__(self, label: int | str) -> CurveLine:
        if not isinstance(label, str):
            return self.lines[label]
        names = [line.name for line in self.lines]
        if label not in names:
            raise KeyError(f"a curve has lines for {shown(names)}, got {label!r}")
        return self.lines[names.index(label)]

    def plot(self, title: str = "", *, ax: Any = None) -> Figure:
        """Draw a panel for each line, on a new figure or on as many matplotlib Axes."""
        from omma.plots import plot_curve

        return plot_curve(self, title=title, ax=ax)

    def __repr__(self) -> str:
        best = ", ".join(
            f"{line.name}: {line.value:.4g} at {line.threshold:.4g}" for line in self.lines[:3]
        )
        more = f", … {len(self) - 3} more" if len(self) > 3 else ""
        return f"<curve of {self.metric.name}, best {best}{more}>"

    def _repr_html_(self) -> str:
        rows = ((line.name, line.threshold, line.value) for line in self.lines)
        head = ("label", "best threshold", self.metric.name.removeprefix("macro_"))
        title = f"{self.metric.name} against the threshold"
        return html_table(title, head, rows, len(self))


def curve(
    eta: Any,
    y: Any,
    metric: MetricName | str | Metric,
    *,
    weights: ArrayLike | None = None,
    labels: Sequence[int | str] | None = None,
    bootstrap: int = 200,
    level: float = 0.9,
    seed: int = 0,
    zero_division: float = 0.0,
) -> Curve:
    """Compute the metric at every threshold, as ROC and PR curves do, for any metric.

    Parameters
    ----------
    eta : ndarray, CSR or frame of shape (n, m), or (n,)
    y : indicators of shape (n, m), class ids of shape (n,), or 0/1 of shape (n,)
    metric : str or Metric
        Of one label; ``macro_``, which gives a line for each label; or ``micro_``, which gives one
        line, as all labels have one threshold.
    weights : array-like of shape (n,), optional
        A row of weight w counts as w rows. Weights are not costs: see ``omma.metrics.RowCosts``.
    labels : sequence of int or str, optional
        The labels to look at, of a macro metric (default: all).
    bootstrap : int
        Number of bootstrap samples of rows for the band; 0 has no band.
    level : float
        The confidence level of the band, at each threshold by itself.
    seed : int
    zero_division : float
        The value of a rate of 0/0.

    Returns
    -------
    Curve

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=3, seed=0)
    >>> curve = omma.curve(eta, y, "macro_f1")
    >>> curve.rule == omma.TunedThresholds("macro_f1").fit(eta, y).decision
    True
    >>> bool((curve[0].low <= curve[0].values[curve[0].at]).mean() > 0.9)
    True
    """
    objective = find_metric(metric)
    is_common = _has_common_threshold(objective)
    check_positive_int("curve", "bootstrap", bootstrap, least=0)
    check_number("curve", "level", level, low=0.0, high=1.0)
    check_seed("curve", seed)
    sample = read_labelled("curve", eta, y, weights).check("curve")
    objective.check_labels(sample.m)
    check_task("curve", sample, k=1, metric=None)  # a class is a label of its own
    if labels is not None and is_common:
        raise ValueError(f"labels of curve must be None for a micro_ metric, got {shown(labels)}")
    all_names = sample.names or tuple(f"label {j}" for j in range(sample.m))
    places = range(sample.m) if labels is None else [_place(sample, label) for label in labels]
    names = [all_names[j] for j in places]
    ranked = list(ranked_labels(sample, places))
    if is_common:
        names, ranked = [objective.name], [pooled(ranked)]
    weight = sample.row_weights
    thresholds = [label.thresholds(label.cuts)[::-1] for label in ranked]
    bands = [(np.empty(0, np.int64), np.empty(0), np.empty(0))] * len(ranked)
    if bootstrap:
        spread = [_spread_places(rising) for rising in thresholds]
        drawn: list[list[Floats]] = [[] for _ in ranked]
        for weights in _drawn_weights(weight, bootstrap, seed):  # the same for all lines
            for values_of_line, label, at in zip(drawn, ranked, spread, strict=True):
                values_of_line.append(_values(objective, label, at, weights, zero_division))
        shares = ((1 - level) / 2, (1 + level) / 2)
        bands = [
            (at, *np.quantile(np.concatenate(values_of_line), shares, axis=0))
            for at, values_of_line in zip(spread, drawn, strict=True)
        ]
    lines = []
    for name, label, rising, band in zip(names, ranked, thresholds, bands, strict=True):
        everywhere = np.arange(len(rising))
        (values,) = _values(objective, label, everywhere, weight[np.newaxis], zero_division)
        best = len(values) - 1 - int(np.argmax(values[::-1]))  # of equals, the highest
        lines.append(CurveLine(name, rising, values, *band, best))
    rule = None
    if labels is None:
        best_thresholds = [line.threshold for line in lines] * (sample.m if is_common else 1)
        rule = threshold_rule(np.array(best_thresholds)).named(sample.names)
    return Curve(objective, tuple(lines), level, rule)


def _has_common_threshold(metric: Metric) -> bool:
    """Whether all labels share one threshold; refuses metrics that have no thresholds."""
    parts = [part for _, part in metric.parts]
    for kind in (LabelMetric, Macro, Micro):
        if all(isinstance(part, kind) for part in parts):
            return kind is Micro
    raise ValueError(
        "metric of curve must be one of one label, a macro_ or a micro_ metric, or a sum of one "
        f"kind of them, got {metric.name}"
        + (": one class a row has no thresholds" if metric.multiclass else "")
    )


def _place(sample: Batch, label: Any) -> int:
    """The column of a label by its number or its name."""
    all_names: tuple[Any, ...] = sample.names or tuple(range(sample.m))
    if isinstance(label, str) and label in all_names:
        return all_names.index(label)
    is_whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    if not is_whole or not 0 <= int(label) < sample.m:
        raise ValueError(
            f"labels of curve must be among {shown(list(all_names))}, or places from 0 to "
            f"{sample.m - 1}, got {shown(label)}"
        )
    return int(label)


def _values(
    metric: Metric, label: RankedLabel, at: Places, weights: Floats, zero_division: float
) -> Floats:
    """The metric of each sample of weights, at some of the label's thresholds, which rise.

    It takes the cells (tp, predicted, positive, n) of all labels for those of one.
    """
    # The higher the threshold, the fewer rows are predicted; cells of the fewest come first.
    cuts = label.cuts[::-1][at][::-1]
    tp, predicted, positive, n = label.cells(cuts, weights)[..., ::-1]
    values = np.zeros(tp.shape)
    for weight, part in metric.parts:
        assert part.per_label is not None
        values += weight * part.per_label.of_cells(tp, predicted, positive, n, zero_division)
    return values


def _drawn_weights(weights: Floats, bootstrap: int, seed: int) -> Iterator[Floats]:
    """How often each row was drawn, times its weight: some samples at a time, a row each."""
    generator = np.random.default_rng(seed)
    n = len(weights)
    step = max(1, AT_ONCE // n)
    for start in range(0, bootstrap, step):
        size = min(step, bootstrap - start)
        yield generator.multinomial(n, np.full(n, 1 / n), size=size) * weights


def _spread_places(thresholds: Floats) -> Places:
    """Places of some thresholds, close to each other by their rank or by their value; both ends."""
    last = len(thresholds) - 1
    if last < POINTS:
        return np.arange(last + 1)
    by_rank = np.linspace(0, last, POINTS // 2).astype(np.int64)
    levels = np.linspace(thresholds[0], thresholds[-2], POINTS // 2)
    return np.unique(np.append(by_rank, np.searchsorted(thresholds, levels)))

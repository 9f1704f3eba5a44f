"""What any threshold would give: a metric against the threshold, exactly, in one sort a label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from omma._curve_data import Cells, Entries, Reading, read_entries
from omma._validate import check_number, check_seed, shown
from omma.metrics import LabelMetric, Macro, Metric, Micro, Sum, metric as find_metric
from omma.metrics.names import MetricName
from omma.policies.thresholds import threshold_rule
from omma.rule import Rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
POINTS = 400  # thresholds at which a band is worked out, at most
AT_ONCE = 1 << 22  # weights of draws held in memory


@dataclass(frozen=True, eq=False)
class Line:
    """The metric of one label, or of all with a common threshold, at every threshold.

    Attributes
    ----------
    name : str
        Of the label; the metric's own where one threshold is common to all.
    thresholds : ndarray
        Every probability above zero that occurs, rising, and infinity. A label is predicted from
        its threshold on.
    values : ndarray
        The metric at each of them. Between two it is that of the upper one.
    at : ndarray of int
        Places among the thresholds at which a band was worked out.
    low, high : ndarray
        The band there; empty without a bootstrap.
    best : int
        The place of the best threshold; of equals, the highest.
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
            check_number("Line.value_at", "threshold", threshold)
        return float(self.values[np.searchsorted(self.thresholds, threshold, side="left")])


@dataclass(frozen=True, eq=False)
class Curve:
    """A metric against the threshold: a line for each label, or one for all.

    ``curve[j]`` and ``curve["name"]`` are its lines; ``curve.rule`` has the best thresholds, and
    ``curve.plot()`` draws it all.
    """

    metric: Metric
    lines: tuple[Line, ...]
    level: float
    rule: Rule | None

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __getitem__(self, which: int | str) -> Line:
        if not isinstance(which, str):
            return self.lines[which]
        found = [line for line in self.lines if line.name == which]
        if not found:
            names = [line.name for line in self.lines]
            raise KeyError(f"a curve has lines for {shown(names)}, got {which!r}")
        return found[0]

    def plot(self, title: str = "") -> Figure:
        """A panel for each line, with its band and its best threshold."""
        from omma.plots import plot_curve

        return plot_curve(self, title=title)

    def __repr__(self) -> str:
        best = ", ".join(
            f"{one.name}: {one.value:.4g} at {one.threshold:.4g}" for one in self.lines[:3]
        )
        more = f", … {len(self) - 3} more" if len(self) > 3 else ""
        return f"<curve of {self.metric.name}, best {best}{more}>"


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
    """What any threshold would give: the ROC and PR way of looking, for every metric.

    Parameters
    ----------
    eta : ndarray, CSR or frame of shape (n, m), or (n,)
    y : indicators of shape (n, m), class ids of shape (n,), or 0/1 of shape (n,)
    metric : str or Metric
        Of one label; ``macro_``, which gives a line for each label; or ``micro_``, which gives one
        line, as all labels have one threshold.
    weights : array-like of shape (n,), optional
    labels : sequence of int or str, optional
        The labels to look at, of a macro metric (default: all).
    bootstrap : int
        How often rows are drawn anew for the band; 0 draws none.
    level : float
        The share of draws within the band, at each threshold by itself.
    seed : int
    zero_division : float
        What a rate of 0/0 is worth.

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
    owner = "curve"
    found = find_metric(metric)
    common = _is_common(found)
    draws = _check_options(bootstrap, level, seed)
    data = read_entries(owner, eta, y, weights, found.check_labels)
    places = _places(data, labels, common)
    parts = [data.together()] if common else [data.label(j) for j in places]
    names = [found.name] if common else [data.name(j) for j in places]
    cuts = [_Cuts.of(one) for one in parts]
    values = [_values(found, one.cells(data.weights), zero_division) for one in cuts]
    bands = _bands(found, cuts, data, draws, level, seed, zero_division)
    lines = tuple(map(_line, names, cuts, values, bands))
    return Curve(found, lines, level, _rule(lines, data, common) if labels is None else None)


def _is_common(metric: Metric) -> bool:
    """Whether all labels have one threshold; refuses metrics that do not go by thresholds."""
    parts = [part for _, part in metric.terms] if isinstance(metric, Sum) else [metric]
    kinds = {type(part) if isinstance(part, Macro | Micro) else LabelMetric for part in parts}
    known = all(isinstance(part, LabelMetric | Macro | Micro) for part in parts)
    if not known or len(kinds) > 1:
        raise ValueError(
            "metric of curve must be one of one label, a macro_ or a micro_ metric, or a sum of "
            f"one kind of them, got {metric.name}"
            + (": one class a row has no thresholds" if metric.multiclass else "")
        )
    return Micro in kinds


def _check_options(bootstrap: Any, level: Any, seed: Any) -> int:
    whole = isinstance(bootstrap, int | np.integer) and not isinstance(bootstrap, bool)
    if not whole or bootstrap < 0:
        raise ValueError(
            f"bootstrap of curve must be a whole number of at least 0, got {shown(bootstrap)}"
        )
    check_number("curve", "level", level, low=0.0, high=1.0)
    check_seed("curve", seed)
    return int(bootstrap)


def _places(data: Reading, labels: Sequence[int | str] | None, common: bool) -> list[int]:
    """The labels to look at, by place."""
    if labels is None:
        return list(range(data.m))
    if common:
        raise ValueError(f"labels of curve must be None for a micro_ metric, got {shown(labels)}")
    return [data.place(label) for label in labels]


def _values(metric: Metric, cells: Cells, zero_division: float) -> Floats:
    """The metric at cells that it takes for those of one label."""
    if isinstance(metric, Sum):
        return sum(
            (weight * _values(part, cells, zero_division) for weight, part in metric.terms),
            start=np.zeros(len(cells[0])),
        )
    of = metric.of if isinstance(metric, Macro | Micro) else metric
    assert isinstance(of, LabelMetric)
    return of.of_cells(*cells, zero_division)


@dataclass(frozen=True)
class _Cuts:
    """Entries in the order of their probability, falling, and where a cut may stand."""

    entries: Entries
    ends: NDArray[np.int64]  # how many entries are predicted at each threshold, falling
    thresholds: Floats  # rising

    @classmethod
    def of(cls, entries: Entries) -> _Cuts:
        """The one sort."""
        entries = entries.take(np.argsort(-entries.values, kind="stable"))
        falling = entries.values
        # A cut stands only where the probability changes: equal ones are decided alike.
        ends = np.append(np.flatnonzero(np.diff(falling) != 0) + 1, len(falling))
        ends = ends[ends > 0]
        return cls(entries, ends, np.append(falling[ends - 1][::-1], np.inf))

    def cells(self, weight: Floats) -> Cells:
        """tp, predicted, positive and n at each threshold, rising."""
        ends = np.append(self.ends[::-1], 0)
        own = weight[self.entries.rows]
        tp = np.append(0.0, np.cumsum(own * self.entries.hits))[ends]
        total = weight.sum() * self.entries.labels
        # Weights may add up to more than their total by a rounding.
        predicted = np.minimum(np.append(0.0, np.cumsum(own))[ends], total)
        positive = np.full(len(ends), weight @ self.entries.positive)
        return tp, predicted, positive, np.full(len(ends), total)

    def drawn_cells(self, weight: Floats, at: NDArray[np.int64]) -> Cells:
        """The same at some thresholds, for a column of weights a draw: (thresholds, draws).

        Entries between two cuts lie side by side, so that they are a row of a sparse matrix as
        they are, and one product sums them up for all draws.
        """
        ends = np.append(self.ends[::-1], 0)[at][::-1]
        shape = (len(ends) - 1, weight.shape[0])
        sums = []
        for data in (self.entries.hits.astype(np.float64), np.ones(len(self.entries.rows))):
            between = sparse.csr_array((data, self.entries.rows, ends), shape=shape) @ weight
            rising = np.cumsum(np.vstack((np.zeros(weight.shape[1]), between)), axis=0)[::-1]
            sums.append(rising)
        total = np.broadcast_to(weight.sum(axis=0) * self.entries.labels, sums[0].shape)
        positive = np.broadcast_to(self.entries.positive @ weight, sums[0].shape)
        return sums[0], np.minimum(sums[1], total), positive, total


def _bands(
    metric: Metric,
    cuts: list[_Cuts],
    data: Reading,
    draws: int,
    level: float,
    seed: int,
    zero_division: float,
) -> list[tuple[NDArray[np.int64], Floats, Floats]]:
    """Where the band is worked out, and between what: rows drawn anew, the same for all lines."""
    if not draws:
        return [(np.empty(0, np.int64), np.empty(0), np.empty(0))] * len(cuts)
    places = [_spread_places(one.thresholds) for one in cuts]
    drawn = [np.empty((len(at), draws)) for at in places]
    for start, weight in _drawn_weights(data, draws, seed):
        stop = start + weight.shape[1]
        for found, one, at in zip(drawn, cuts, places, strict=True):
            cells = [cell.ravel() for cell in one.drawn_cells(weight, at)]
            values = _values(metric, tuple(cells), zero_division)  # type: ignore[arg-type]
            found[:, start:stop] = values.reshape(len(at), -1)
    shares = ((1 - level) / 2, (1 + level) / 2)
    bands = [np.quantile(one, shares, axis=1) for one in drawn]
    return [(at, low, high) for at, (low, high) in zip(places, bands, strict=True)]


def _drawn_weights(data: Reading, draws: int, seed: int) -> Iterator[tuple[int, Floats]]:
    """How often each row was drawn, times its weight: some draws at a time, a column each."""
    generator = np.random.default_rng(seed)
    chance = np.full(data.n, 1 / data.n)
    step = max(1, AT_ONCE // data.n)
    for start in range(0, draws, step):
        times = generator.multinomial(data.n, chance, size=min(step, draws - start))
        yield start, np.ascontiguousarray(times.T * data.weights[:, np.newaxis])


def _spread_places(thresholds: Floats) -> NDArray[np.int64]:
    """Places of some thresholds, close to each other by their rank or by their value; both ends."""
    last = len(thresholds) - 1
    by_rank = np.linspace(0, last, POINTS // 2).astype(np.int64)
    if last < POINTS:
        return np.arange(last + 1)
    levels = np.linspace(thresholds[0], thresholds[-2], POINTS // 2)
    return np.unique(np.append(by_rank, np.searchsorted(thresholds, levels)))


def _line(name: str, cuts: _Cuts, values: Floats, band: tuple[Any, Floats, Floats]) -> Line:
    best = len(values) - 1 - int(np.argmax(values[::-1]))  # of equals, the highest
    return Line(name, cuts.thresholds, values, *band, best)


def _rule(lines: tuple[Line, ...], data: Reading, common: bool) -> Rule:
    """The best thresholds as a rule."""
    each = [line.threshold for line in lines] * (data.m if common else 1)
    return threshold_rule(np.array(each)).named(data.names)

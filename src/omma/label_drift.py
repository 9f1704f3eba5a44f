"""Which labels have moved: a test of counts.

Counts are kept anyway, so the test costs nothing while rows come. Unlike detectors of single
streams (ADWIN, Page-Hinkley), it has no threshold to tune for each label. One test for each label,
corrected for their number, says which labels occur more or less often than before, and how often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from omma._validate import check_number, shown
from omma.counts import Counts, counts_of
from omma.kernels.layout import GROWTH, POSITIVE, N
from omma.state import State

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drift:
    """How often labels occur, before and now.

    Attributes
    ----------
    before, now : ndarray of shape (m,)
        The share of rows with each label.
    p_values : ndarray of shape (m,)
        How likely so large a difference is by chance, corrected for the number of labels.
    moved : tuple of int
        The labels that moved, the clearest case first.
    """

    before: Vector
    now: Vector
    p_values: Vector
    moved: tuple[int, ...]

    def __bool__(self) -> bool:
        """Whether any label moved."""
        return bool(self.moved)

    def __str__(self) -> str:
        if not self.moved:
            return f"none of {len(self.now)} labels moved"
        lines = [f"{len(self.moved)} of {len(self.now)} labels moved:"]
        for j in self.moved:
            lines.append(f"label {j}: {self.before[j]:.3%} of rows before, {self.now[j]:.3%} now")
        return "\n".join(lines)


def drift(earlier: Any, later: Any = None, *, level: float = 0.01) -> Drift:
    """Say which labels occur more or less often than before.

    Two sets of rows are compared label by label (Fisher's exact test, corrected by Bonferroni for
    the number of labels). With ``omma.Forgetting`` or ``omma.Window`` one argument is enough: the
    rows that decisions depend on are compared with all earlier rows.

    Parameters
    ----------
    earlier : Counts, trace or learner
        True labels of some rows.
    later : Counts, trace or learner, optional
        Those of other, later rows, such as ``learner.counts - counts_of_last_week``. May be omitted
        if ``earlier`` forgets.
    level : float
        The probability of a false alarm: that any label is said to have moved if none has.

    Returns
    -------
    Drift

    Examples
    --------
    >>> import omma
    >>> last_week = omma.Counts([50, 9], [90, 20], [100, 30], 1000)
    >>> this_week = omma.Counts([40, 0], [80, 20], [98, 6], 1000)
    >>> print(omma.drift(last_week, this_week))
    1 of 2 labels moved:
    label 1: 3.000% of rows before, 0.600% now
    """
    check_number("drift", "level", level, low=0.0, high=1.0)
    if later is None:
        (first, n_first), (second, n_second) = _before_and_now(earlier)
    else:
        first, n_first = _label_counts("earlier", earlier)
        second, n_second = _label_counts("later", later)
    if len(first) != len(second):
        raise ValueError(
            f"earlier and later of drift must have the same labels, got {len(first)} and "
            f"{len(second)} of them"
        )
    if min(n_first, n_second) <= 0:
        raise ValueError(
            f"earlier and later of drift must have rows, got {n_first:g} and {n_second:g}"
        )
    # Fisher's exact test, two-sided: twice the smaller tail of the hypergeometric distribution.
    # Rows of other weights than 1 are rounded to whole rows.
    rows = round(n_second)
    all_rows = round(n_first) + rows
    hits = np.round(second)
    all_hits = np.minimum(np.round(first) + hits, all_rows)
    below = stats.hypergeom.cdf(hits, all_rows, all_hits, rows)
    above = stats.hypergeom.sf(hits - 1, all_rows, all_hits, rows)
    p_values = np.minimum(2.0 * np.minimum(below, above), 1.0)
    p_values = np.minimum(len(first) * p_values, 1.0)  # Bonferroni
    order = np.argsort(p_values, kind="stable")
    moved = tuple(int(j) for j in order if p_values[j] < level)
    return Drift(first / n_first, second / n_second, p_values, moved)


def _label_counts(parameter: str, source: Any) -> tuple[Vector, float]:
    """How often each label occurs, and the number of rows."""
    counts = source if isinstance(source, Counts) else getattr(source, "counts", None)
    if not isinstance(counts, Counts):
        raise TypeError(
            f"{parameter} of drift must be counts, a trace or a learner, got {shown(source)}"
        )
    return counts.positive, counts.n


def _before_and_now(source: Any) -> tuple[tuple[Vector, float], tuple[Vector, float]]:
    """The label counts before and now, of a state that forgets."""
    state = source if isinstance(source, State) else getattr(source, "state", None)
    if not isinstance(state, State) or state.pace is None:
        raise ValueError(
            "later of drift must be given, except for what omma.Forgetting or omma.Window has "
            f"counted, got {shown(source)} alone"
        )
    recent = state.now()
    labels = recent.labels or recent.own
    total = counts_of(state)
    positive, rows = labels.cells[POSITIVE], float(labels.totals[N])
    if rows <= 0 or total.n - rows <= 0:
        return (total.positive, total.n), (positive, rows)
    before = total.positive - positive, total.n - rows
    if state.window is not None:  # its rows count in full
        return before, (positive, rows)
    # Rows of smaller weight are less evidence: weights d^t have the effective sample size
    # (Σw)² / Σw², the number of whole rows that are as much evidence.
    decay = 1.0 / state.pace[GROWTH]
    effective = rows**2 * (1 - decay**2) / (1 - decay ** (2 * total.n))
    return before, (positive * (effective / rows), effective)

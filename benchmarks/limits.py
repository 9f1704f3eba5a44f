"""How close policies with limits come to the best possible value, and how reliably limits hold.

``limits`` replays `omma.Auto` with limits on a known distribution, over more and more rows, with
exact and with distorted probabilities. The best value under each limit is exact: thresholds by
bisection of prices on the distribution itself, not on a sample. Each run leaves a record, a line of
JSON in ``--records``; ``--figure`` draws all records of the file, also of earlier runs. ``--others
6`` runs on six random distributions instead, on which no constant was chosen: they have 3 to 40
labels, and bounds from loose to tight.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

import omma
from benchmarks.measure import Table, add_line, at_least, at_most
from omma.counts import Counts
from omma.limits import read_limits
from omma.policies.thresholds import best_cuts

Array = NDArray[Any]
Record = dict[str, Any]
GRID = 20_001  # places of a probability that the exact answer looks at
DISTORTED = (0.6, 1.0)  # log-odds times this, and that more
MARKERS = (".", "s")  # of cases, as there are more of them than colours
NEAR = 0.005  # of the best, and of the bound, at JUDGED rows
JUDGED = 10_000
CASES = (
    ("macro_recall", ("micro_precision >= 0.9",)),
    ("macro_recall", ("micro_precision >= 0.8",)),
    ("macro_f1", ("micro_precision >= 0.8",)),
    ("macro_f1", ("micro_recall >= 0.85",)),
    ("macro_recall", ("micro_specificity >= 0.99",)),
    ("macro_f1", ("labels_per_row <= 1.5",)),
    ("macro_gmean", ("labels_per_row <= 2.5",)),
    ("macro_f1", ("micro_precision >= 0.7", "micro_recall >= 0.5")),
    ("macro_recall", ("micro_precision >= 0.7", "labels_per_row <= 2")),
    ("macro_gmean", ("micro_precision >= 0.5", "micro_recall >= 0.7")),
)


@dataclass(frozen=True)
class Known:
    """A distribution: labels whose log-odds are normal, independent of each other."""

    middles: tuple[float, ...]
    spread: float

    @property
    def m(self) -> int:
        """The number of labels."""
        return len(self.middles)


TWENTY = Known(tuple(np.linspace(-4.5, 0.2, 20)), 1.5)  # from rare labels to one in two


def drawn(seed: int, n: int, known: Known = TWENTY) -> tuple[Array, Array]:
    """Rows of a known distribution: probabilities, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    eta = expit(known.spread * rng.normal(size=(n, known.m)) + np.array(known.middles))
    return eta, (rng.random((n, known.m)) < eta).astype(np.int8)


def cuts_of(middle: float, spread: float) -> Array:
    """Counts of each threshold of a label, as shares of all rows: see ``best_cuts``."""
    z = np.linspace(9.0, -9.0, GRID)
    weight = np.exp(-(z**2) / 2.0)
    weight /= weight.sum()
    eta = expit(spread * z + middle)
    tp, predicted = (np.append(0.0, np.cumsum(cell)) for cell in (weight * eta, weight))
    ones = np.ones(len(tp))
    return np.stack((tp, predicted, tp[-1] * ones, ones, predicted))


def best(metric: str, limits: Sequence[str], known: Known = TWENTY) -> tuple[float, Counts]:
    """The best value of thresholds on a distribution under some limits, and their counts."""
    judge = omma.metric(metric)
    labels = [cuts_of(middle, known.spread) for middle in known.middles]
    bounds = read_limits("benchmarks.limits", list(limits)) or ()
    named = tuple(bound.named(None, known.m, "benchmarks.limits") for bound in bounds)
    chosen = best_cuts(labels, judge.of, named, n=1.0, all_rows=1.0)  # type: ignore[attr-defined]
    cells = np.array([cells[:, cut] for cells, cut in zip(labels, chosen, strict=True)])
    counts = Counts(cells[:, 0], cells[:, 1], cells[:, 2], 1.0)
    return judge.value(counts), counts


def further(count: int) -> Iterator[tuple[Known, str, tuple[str, ...]]]:
    """Random distributions, with limits that lower the best value there."""
    for seed in range(count):
        rng = np.random.default_rng(1000 + seed)
        m = int(rng.choice((3, 8, 15, 40)))
        known = Known(tuple(np.sort(rng.uniform(-4.5, 0.0, m))), float(rng.uniform(1.2, 2.5)))
        free = best("macro_f1", (), known)[1]
        precision = float(free.tp.sum() / free.predicted.sum())
        recall = float(free.tp.sum() / free.positive.sum())
        per_row = float(free.predicted.sum())
        sure = precision + 0.4 * (1.0 - precision)
        yield known, "macro_recall", (f"micro_precision >= {sure:.2f}",)
        yield known, "macro_f1", (f"micro_recall >= {recall + 0.4 * (1.0 - recall):.2f}",)
        yield known, "macro_f1", (f"labels_per_row <= {0.6 * per_row:.2f}",)
        less = precision + 0.15 * (1.0 - precision)
        both = (f"micro_precision >= {less:.2f}", f"labels_per_row <= {0.7 * per_row:.2f}")
        yield known, "macro_gmean", both


def runs(rows: Iterable[int], seeds: int, cases: Iterable[Any]) -> Iterator[Record]:
    """A record of each replay, with the best possible value."""
    for known, metric, limits in cases:
        most = best(metric, limits, known)[0]
        for n, seed, wrong in product(rows, range(seeds), (False, True)):
            eta, y = drawn(seed, n, known)
            if wrong:
                by, more = DISTORTED
                eta = expit(by * logit(eta) + more)
            trace = omma.replay(omma.Auto(metric, subject_to=list(limits)), eta, y, checkpoints=0)
            yield {
                "metric": metric,
                "limits": list(limits),
                "rows": n,
                "seed": seed,
                "distorted": wrong,
                "value": trace.value,
                "excess": [status.excess for status in trace.limits],
                "price": [status.price for status in trace.limits],
                "best": most,
                "labels": known.m,
                "spread": round(known.spread, 3),
            }


def summed(records: Sequence[Record]) -> pd.DataFrame:
    """Of each case and number of rows: mean of value - best, mean and largest excess."""
    frame = pd.DataFrame(records)
    case = frame["metric"] + ", " + frame["limits"].map(" and ".join)
    shape = frame["labels"].astype(str) + " labels, spread " + frame["spread"].astype(str) + ", "
    frame["case"] = case.where(frame["labels"] == TWENTY.m, shape + case)
    frame["short"] = frame["value"] - frame["best"]
    frame["excess"] = frame["excess"].map(max)  # of the limit that is missed most
    groups = frame.groupby(["case", "distorted", "rows"], sort=False)
    return groups.agg(short=("short", "mean"), mean=("excess", "mean"), most=("excess", "max"))


def table(records: Sequence[Record]) -> Table:
    """All cases, a row each."""
    rows = []
    for (case, wrong, n), short, mean, most in summed(records).itertuples(name=None):
        judged = n == JUDGED
        rows.append(
            {
                "case": case + (", distorted" if wrong else ""),
                "rows": n,
                "value - best": at_least(round(short, 4), -NEAR if judged else None),
                "mean excess": round(mean, 4),
                "largest excess": at_most(round(most, 4), NEAR if judged else None),
            }
        )
    note = "the best is exact, of the distribution; excess is of the limit that is missed most"
    return Table("Limits on a known distribution", note, rows)


def draw(records: Sequence[Record], path: Path) -> None:
    """Value and excess against the number of rows, dashed where probabilities are distorted."""
    from matplotlib.figure import Figure

    from omma.plots import save
    from omma.plots.frames import AXIS, FAINT, INK
    from omma.plots.palette import DASHES, LEARNING

    sums = summed(records).sort_index(level="rows", sort_remaining=False)
    figure = Figure(figsize=(11.0, 5.4))
    sides = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.06, right=0.98, top=0.9, bottom=0.36, wspace=0.16)
    panels = {"short": "value − best possible", "most": "largest excess of any draw"}
    names = list(dict.fromkeys(sums.index.get_level_values("case")))
    for ax, (part, title) in zip(sides, panels.items(), strict=True):
        for (case, wrong), line in sums[part].groupby(["case", "distorted"], sort=False):
            again, color = divmod(names.index(case), len(LEARNING))
            label = case if not wrong and part == "short" else None
            ax.plot(
                line.index.get_level_values("rows"),
                line,
                color=LEARNING[color],
                linestyle=DASHES[wrong],
                marker=MARKERS[again],
                label=label,
            )
        ax.axhline(
            NEAR if part == "most" else -NEAR, color=AXIS, linewidth=1.0, linestyle=DASHES[2]
        )
        ax.axhline(0.0, color=INK, linewidth=0.8)
        ax.set_xscale("log")
        ax.set_xticks(sums.index.unique("rows"))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.minorticks_off()
        ax.set_title(title, loc="left", size=11, color=INK)
        ax.set_xlabel("rows", size=9.5, color=INK)
        ax.grid(axis="y", color=FAINT)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="lower left", ncols=2, frameon=False, fontsize=9, bbox_to_anchor=(0.05, 0.0))
    save(figure, path)


def limits(
    seeds: int = 5,
    rows: tuple[int, ...] = (1_000, 10_000, 100_000),
    records: str | None = None,
    figure: str | None = None,
    others: int = 0,
) -> Iterator[Table]:
    """Run, record, show, draw."""
    done = []
    if records is not None and Path(records).exists():
        done = [json.loads(line) for line in Path(records).read_text().splitlines()]
    cases = further(others) if others else ((TWENTY, *case) for case in CASES)
    for run in runs(rows, seeds, cases):
        done.append(run)
        add_line(records, run)
    yield table(done)
    if figure is not None:
        draw(done, Path(figure))

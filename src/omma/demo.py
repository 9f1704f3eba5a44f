"""The demo: policies compared on a stream with a long tail of rare labels.

``run`` computes; ``table``, ``summary`` and ``picture`` show what it returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table
from rich.text import Text

from omma.datasets import long_tail
from omma.evaluation import replay
from omma.metrics.target import Target
from omma.policies import OMMA, Auto, Policy, Threshold, TopK, TunedThresholds
from omma.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHOUT_BUDGET = ("macro_f1", "micro_f1", "macro_balanced_accuracy", "macro_gmean")
WITH_BUDGET = ("macro_f1", "macro_precision", "macro_recall", "macro_gmean")
PICTURED = ("macro_f1", "macro_gmean", "macro_precision@", "macro_recall@")
TUNING_ROWS = 1000  # labelled rows that thresholds are tuned on
STEPS = 2 + len(WITHOUT_BUDGET) + len(WITH_BUDGET)  # how often run reports

HALF, TUNED, AUTO, LABELS, ESTIMATES = "threshold 0.5", "tuned", "Auto", "OMMA", "OMMA(η̂)"


@dataclass(frozen=True)
class MetricResults:
    """The traces of all policies that apply to one metric."""

    metric: str
    k: int | None
    traces: dict[str, Trace]  # by the name of the policy

    @property
    def title(self) -> str:
        """The metric as papers write it: its budget comes after an @."""
        return str(Target(self.metric, self.k))


@dataclass(frozen=True)
class Demo:
    """The results of the demo."""

    rows: int
    labels: int
    k: int
    labels_per_row: float  # on average
    rarest: int  # how many rows have the rarest label
    comparisons: tuple[MetricResults, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of all policies, as the table orders them."""
        return (HALF, f"top-{self.k}", TUNED, AUTO, LABELS, ESTIMATES)

    def seconds(self, policy: str) -> float:
        """How long all replays of a policy took."""
        traces = (comparison.traces.get(policy) for comparison in self.comparisons)
        return sum(trace.seconds for trace in traces if trace is not None)


def run(
    rows: int = 20_000,
    labels: int = 50,
    k: int = 3,
    seed: int = 0,
    *,
    report: Callable[[str], None] = lambda step: None,
) -> Demo:
    """Replay every policy for every metric on one stream; ``report`` hears what comes next."""
    report("drawing a stream of labels")
    # A row has 2.5 labels on average, as a tagging problem might; few labels have room for less.
    labels_per_row = min(2.5, labels / 2)
    eta, y = long_tail(rows, labels, labels_per_row=labels_per_row, seed=seed)
    # Other rows of the same kind: those who tune thresholds have labels before the stream begins.
    sample = long_tail(TUNING_ROWS, labels, labels_per_row=labels_per_row, seed=seed + 1)
    report("compiling: some seconds in all at first, then cached")
    # Compiled before the clock starts: seconds of traces are those of deciding.
    replay(OMMA("macro_f1", feedback="estimates"), eta[:1], y[:1])
    comparisons = []
    without = [(name, None) for name in WITHOUT_BUDGET]
    for metric, budget in [*without, *((name, k) for name in WITH_BUDGET)]:
        report(f"{rows:,} rows for {Target(metric, budget)}")
        traces = {
            name: replay(policy, eta, y, metric=metric, predictions=False, checkpoints=200)
            for name, policy in policies(metric, budget, *sample).items()
        }
        comparisons.append(MetricResults(metric, budget, traces))
    label_counts = y.sum(axis=0)
    mean_labels, rarest = float(label_counts.sum() / rows), int(label_counts.min())
    return Demo(rows, labels, k, mean_labels, rarest, tuple(comparisons))


def policies(
    metric: str, k: int | None, eta: NDArray[np.float64], y: NDArray[Any]
) -> dict[str, Policy]:
    """Every policy that applies to a metric, by its name; thresholds are tuned on eta and y."""
    usual: dict[str, Policy] = {HALF: Threshold(0.5)} if k is None else {f"top-{k}": TopK(k)}
    if k is None and metric.startswith("macro_"):
        usual[TUNED] = TunedThresholds(metric).fit(eta, y)
    return {
        **usual,
        AUTO: Auto(metric, k=k),
        LABELS: OMMA(metric, k=k),
        ESTIMATES: OMMA(metric, k=k, feedback="estimates"),
    }


def summary(demo: Demo) -> str:
    """The stream in a sentence."""
    return (
        f"{demo.rows:,} rows, {demo.labels:,} labels, {demo.labels_per_row:.1f} a row; "
        f"the rarest label is in {demo.rarest:,} rows."
    )


def table(demo: Demo) -> Table:
    """Values of every policy for every metric in %, the best of each in bold."""
    grid = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption="in %, best in bold; × does not apply; tuned: thresholds tuned on "
        f"{TUNING_ROWS:,} other labelled rows; OMMA(η̂) never sees a label",
        caption_justify="left",
    )
    grid.add_column("metric")
    for name in demo.policies:
        grid.add_column(name.replace(" ", "\n"), justify="right")  # 80 columns are enough
    for number, comparison in enumerate(demo.comparisons, start=1):
        last_of_part = number in (len(WITHOUT_BUDGET), len(demo.comparisons))
        cells = _cells(comparison, demo.policies)
        grid.add_row(comparison.title, *cells, end_section=last_of_part)
    times = (f"{demo.seconds(name):.2f}" for name in demo.policies)
    grid.add_row("seconds for the above", *times, style="dim")
    return grid


def _cells(comparison: MetricResults, names: tuple[str, ...]) -> list[Text]:
    """Formatted values, with × for policies that do not apply."""
    values = {name: f"{100 * trace.value:.2f}" for name, trace in comparison.traces.items()}  # type: ignore[operator]
    best = max(values.values(), key=float)
    styles = {"×": "dim", best: "bold"}
    texts = (values.get(name, "×") for name in names)
    return [Text(text, style=styles.get(text, "")) for text in texts]


def picture(demo: Demo) -> Figure:
    """Running performance on four of the metrics, as a matplotlib figure."""
    from omma.plots import plot_panels

    titles = {f"{name}{demo.k}" if name.endswith("@") else name for name in PICTURED}
    panels = {
        comparison.title: comparison.traces
        for comparison in demo.comparisons
        if comparison.title in titles
    }
    title = f"Policies compared on {demo.rows:,} rows of {demo.labels:,} labels"
    return plot_panels(panels, title=title)

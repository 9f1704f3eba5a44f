"""How near the streams of ``omma.datasets.like`` are to the first row of Tables 2 and 3.

``python -m benchmarks likeness [NAME ...]`` decides each stream at 0.5, and by the top k, and
prints how many points that is from what the paper reports.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import omma
from omma.datasets.paper_like import SHAPES
from omma.metrics.target import Target
from omma.study.sections import find

LABELS = (
    ("micro_f1", None), ("macro_f1", None), ("macro_gmean", None), ("macro_hmean", None),
    ("macro_f1", 3), ("macro_recall", 3), ("macro_precision", 3),
)  # fmt: skip
CLASSES = (
    ("macro_f1", 1), ("macro_f1", 3), ("macro_recall", 3), ("macro_precision", 3),
    ("multiclass_gmean", 1), ("multiclass_hmean", 1), ("multiclass_qmean", 1),
)  # fmt: skip


def main() -> None:
    """Print a table of labels and one of classes."""
    names = sys.argv[1:] or list(SHAPES)
    for targets, classes in ((LABELS, False), (CLASSES, True)):
        heads = [str(Target(*target)) for target in targets]
        table = Table("set", "rows", *heads, box=SIMPLE_HEAD)
        for name in names:
            if SHAPES[name].classes == classes:
                table.add_row(*row(name, targets))
        if table.row_count:
            Console(width=150).print(table)


def row(name: str, targets: Sequence[tuple[str, int | None]]) -> list[str]:
    """A stream: each value, and how far from the paper's."""
    eta, y = omma.datasets.like(name)
    cells = []
    for metric, k in targets:
        policy = omma.Threshold(0.5) if k is None else omma.TopK(k)
        value = omma.replay(policy, eta, y, metric=metric, predictions=False).value
        figure = find("fixed", name, "baseline", metric, k)
        assert value is not None
        assert figure is not None
        cells.append(f"{100 * value:.2f} ({100 * (value - figure.value):+.2f})")
    return [name, f"{eta.shape[0]:,}", *cells]

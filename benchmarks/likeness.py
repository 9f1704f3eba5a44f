"""How near the streams of ``omma.datasets.like`` are to the first row of the paper's Table 2.

``python -m benchmarks.likeness [NAME ...]`` decides each stream at 0.5, and by the top 3, and
prints how many points that is from what the paper reports.
"""

from __future__ import annotations

import sys

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import omma
from omma.datasets.shapes import SHAPES
from omma.study.paper import find

TARGETS = (
    ("micro_f1", None), ("macro_f1", None), ("macro_gmean", None), ("macro_hmean", None),
    ("macro_f1", 3), ("macro_recall", 3), ("macro_precision", 3),
)  # fmt: skip


def main() -> None:
    """Print the table."""
    every = [name for name, shape in SHAPES.items() if not shape.classes]
    heads = [f"{metric}@{k}" if k else metric for metric, k in TARGETS]
    table = Table("set", "rows", *heads, box=SIMPLE_HEAD)
    for name in sys.argv[1:] or every:
        eta, y = omma.datasets.like(name)
        cells = []
        for metric, k in TARGETS:
            policy = omma.Threshold(0.5) if k is None else omma.TopK(k)
            value = omma.replay(policy, eta, y, metric=metric, predictions=False).value
            figure = find("fixed", name, "baseline", metric, k)
            assert value is not None
            assert figure is not None
            cells.append(f"{100 * value:.2f} ({100 * (value - figure.value):+.2f})")
        table.add_row(name, f"{eta.shape[0]:,}", *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()

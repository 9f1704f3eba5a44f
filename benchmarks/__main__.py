"""Benchmarks: ``python -m benchmarks [CASE ...]``.

Without a case, all that is about speed is measured, as tables of ratios; nothing is asserted, and
the last line counts the targets met and missed. The other cases make tables of the documentation;
each runs alone and has options of its own: ``python -m benchmarks CASE --help``.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.measure import Table

# What is about speed: a function of a module, which makes a table.
SPEED = {
    "replays": "speed",
    "auto": "speed",
    "feedbacks": "speed",
    "many_labels": "speed",
    "steps": "speed",
    "matrix": "speed",
    "growth": "speed",
    "memory": "speed",
    "custom": "speed",
    "baselines": "baselines",
    "imports": "startup",
    "first_answers": "startup",
    "river_cost": "river_cost",
}
# A module each, with a function ``main`` that reads its own options.
OTHERS = (
    "drift", "likeness", "limits", "limits_drift", "limits_real", "peers", "risk", "river", "serve",
    "sklearn_adapter", "soak", "spark", "starts", "threads",
)  # fmt: skip
BY_DEFAULT = tuple(name for name in SPEED if name != "river_cost")  # which needs river


def environment() -> dict[str, Any]:
    """What the figures were measured with."""
    import numba
    import numpy
    import scipy

    from omma.kernels.jit import CACHE

    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "kernels": "not kept on disk" if CACHE is None else CACHE.name,
    }


def table_of(name: str, quick: bool) -> Table:
    make: Callable[[bool], Table] = getattr(import_module(f"benchmarks.{SPEED[name]}"), name)
    return make(quick)


def main() -> None:
    """Run the cases asked for."""
    if len(sys.argv) > 1 and sys.argv[1] in OTHERS:
        name = sys.argv.pop(1)
        sys.argv[0] = f"python -m benchmarks {name}"
        import_module(f"benchmarks.{name}").main()
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"About speed: {', '.join(SPEED)}.\nOthers, one at a time: {', '.join(OTHERS)}.",
    )
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--quick", action="store_true", help="a small version, for a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in SPEED]
    if unknown:
        parser.error(f"unknown case {unknown[0]!r}: see --help")
    console = Console()
    console.width = max(console.width, 140)
    console.print(" · ".join(f"{name} {value}" for name, value in environment().items()) + "\n")
    tables = {}
    for name in options.cases or BY_DEFAULT:
        tables[name] = table_of(name, options.quick)
        tables[name].show(console)
    if options.json is not None:
        content = {name: table.as_json() for name, table in tables.items()}
        text = json.dumps({"environment": environment(), **content}, indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")
    targets = [target for table in tables.values() for target in table.targets]
    met = sum(target.met for target in targets)
    console.print(f"{met} targets met, {len(targets) - met} missed")


if __name__ == "__main__":
    main()

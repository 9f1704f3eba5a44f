"""Measure what omma promises about speed and print it as tables: ``python -m benchmarks.speed``.

Nothing is asserted: the last line counts the targets met and missed.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.auto import auto
from benchmarks.growth import growth, memory
from benchmarks.replays import custom, replays
from benchmarks.startup import first_answers, imports
from benchmarks.steps import matrix, steps
from benchmarks.table import Table

SECTIONS: dict[str, Callable[[bool], Table]] = {
    "replays": replays,
    "auto": auto,
    "steps": steps,
    "matrix": matrix,
    "growth": growth,
    "memory": memory,
    "imports": imports,
    "first_answers": first_answers,
    "custom": custom,
}


def environment() -> dict[str, Any]:
    """What the figures were measured with."""
    import numba
    import numpy
    import scipy
    from omma.kernels.cache import hash_of_sources

    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "kernels": hash_of_sources()[:16],
    }


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small version, for a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS)
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run the sections asked for."""
    options = parsed(arguments)
    console = Console()
    console.width = max(console.width, 140)
    console.print(" · ".join(f"{name} {value}" for name, value in environment().items()) + "\n")
    tables = {}
    for name in options.only or SECTIONS:
        tables[name] = SECTIONS[name](options.quick)
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

"""Benchmarks: ``python -m benchmarks [CASE ...] [OPTIONS]``.

Without a case, all that is about speed is measured. Every case prints tables, of ratios where it is
about speed; nothing is asserted, and the last line counts the targets met and missed. Options are
the parameters of the cases: ``python -m benchmarks CASE --help`` lists them.
"""

import argparse
import json
import platform
import sys
from importlib import import_module
from inspect import signature
from itertools import takewhile
from pathlib import Path
from typing import Any

from rich.console import Console

# Each case is a function of a module, which yields tables.
CASES = {
    "replays": "speed",
    "auto": "speed",
    "feedbacks": "speed",
    "many_labels": "speed",
    "steps": "speed",
    "choices": "speed",
    "stream": "speed",
    "growth": "speed",
    "memory": "speed",
    "imports": "startup",
    "first_answers": "startup",
    "drift": "drift",
    "limits": "limits",
    "peers": "peers",
    "river": "river",
    "river_cost": "river",
    "serve": "serve",
    "spark": "spark",
}
BY_DEFAULT = tuple(name for name, module in CASES.items() if module in ("speed", "startup"))


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


def options_of(functions: list[Any]) -> dict[str, Any]:
    """What was asked for on the command line; the options are the parameters of all functions."""
    about = __doc__ if len(functions) > 1 else sys.modules[functions[0].__module__].__doc__
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"Cases: {', '.join(CASES)}. Default: {', '.join(BY_DEFAULT)}.",
    )
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[*CASES, []])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    defaults = {p.name: p.default for of in functions for p in signature(of).parameters.values()}
    for name, default in defaults.items():
        option: dict[str, Any] = {"type": str if default is None else type(default)}
        if default is False:
            option = {"action": "store_true"}
        elif isinstance(default, tuple):
            option = {"type": type(default[0]), "nargs": "+"}
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, **option)
    return vars(parser.parse_args())


def main() -> None:
    """Run the cases asked for."""
    names = list(takewhile(lambda word: not word.startswith("-"), sys.argv[1:])) or BY_DEFAULT
    known = [name for name in names if name in CASES]
    functions = [getattr(import_module(f"benchmarks.{CASES[name]}"), name) for name in known]
    options = options_of(functions or [main])  # which refuses cases that are unknown
    console = Console()
    console.width = max(console.width, 140)
    console.print(" · ".join(f"{name} {value}" for name, value in environment().items()) + "\n")
    tables = []
    for function in functions:
        own = {name: options[name] for name in signature(function).parameters}
        for table in function(**own):
            table.show(console, markdown=options["markdown"])
            tables.append(table)
    if options["json"] is not None:
        content = {table.title: table.as_json() for table in tables}
        text = json.dumps({"environment": environment(), **content}, indent=1, ensure_ascii=False)
        options["json"].write_text(text + "\n", encoding="utf-8")
    targets = [target for table in tables for target in table.targets]
    met = sum(target.met for target in targets)
    console.print(f"{met} targets met, {len(targets) - met} missed")


if __name__ == "__main__":
    main()

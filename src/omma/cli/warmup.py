"""``omma warmup``: compile ahead, for images and containers."""

import os
import time

import click

from omma.cli.options import work
from omma.cli.progress import steps


@click.command("warmup")
@click.option("--all", "every", is_flag=True, help="All kinds of metrics and ways to run them.")
def command(every: bool) -> None:
    """Compile ahead what would be compiled at first use.

    Machine code is kept beside the package, or in the folder that the environment variable
    NUMBA_CACHE_DIR names. In an image set it to a folder that the image's user may write to, and
    keep the setting. Code is made for the processor at hand. Without --all this takes about a
    minute, for macro and micro averages of rates such as F1; with --all, long.

    \b
    Examples:
        omma warmup
        NUMBA_CACHE_DIR=/opt/omma omma warmup --all
    """  # noqa: D301
    from rich.console import Console

    from omma.cli import warming

    os.environ["OMMA_QUIET"] = "1"  # the progress bar says what is compiled
    started = time.perf_counter()
    with work():
        wanted = warming.paths(every)
        with steps(Console(stderr=True), len(wanted)) as report:
            for path in wanted:
                report(path.title)
                path.run()
    seconds = time.perf_counter() - started
    folder = warming.cache_folder()
    where = f"kept in {folder}" if folder else "not kept: no folder can be written to"
    click.echo(f"{len(wanted)} paths are compiled, in {seconds:.0f} s; machine code is {where}")

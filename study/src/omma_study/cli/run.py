"""``omma-study run``: perform a suite of the study."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omma.cli.options import names_in, say

if TYPE_CHECKING:
    from omma_study import Performed, Suite

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("run")
@click.argument("name", metavar="SUITE")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The folder of data.  [default: what OMMA_DATA names]",
)
@click.option(
    "--out",
    type=FOLDER,
    metavar="FOLDER",
    default=Path("omma-records"),
    show_default=True,
    help="Where records go.",
)
@click.option("--datasets", metavar="A,B", help="Run on these datasets of the suite only.")
@click.option("--policies", metavar="A,B", help="Run these policies of the suite only.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", default=1, show_default=True,
              help="Runs at a time.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Number of sequences.")
@click.option("--quick", is_flag=True, help="One sequence and one λ (1e-6): a first look.")
@click.option("--strict", is_flag=True, help="A dataset that is not there is an error.")
def command(
    name: str,
    data: Path | None,
    out: Path,
    datasets: str | None,
    policies: str | None,
    jobs: int,
    seeds: int | None,
    quick: bool,
    strict: bool,
) -> None:
    """Perform a suite of the study, and keep a record of each run.

    SUITE is a name (`omma-study list suites` has them) or the path of a TOML file;
    `theory` simulates what the paper proves, which takes no data and some minutes; `auto` sets
    omma.Auto against every choice of feedback and λ.
    Runs that have a record are skipped, so that an interrupted study goes on where it stopped;
    failed ones are tried again.

    \b
    Examples:
        omma-study run smoke
        omma-study run theory --jobs 2
        omma-study run multilabel_fixed --data ~/data --datasets yeast,news20
    """  # noqa: D301
    import omma_study as study
    from omma_study import theory

    # A bar in a terminal; elsewhere, such as in a log, a line a minute.
    how: dict[str, Any] = {"progress": sys.stderr.isatty() or Minutely(say), "report": say}
    if policies is not None and (name == "auto" or name.startswith("theory")):
        raise click.ClickException(f"--policies is for suites of policies, and {name} is none")
    try:
        if name == "theory" or name.startswith("theory-"):  # simulations have no data
            found = study.Performed(theory.run(name, out, jobs, quick, **how), {})
        elif name == "auto":
            amount: dict[str, Any] = {"datasets": names_in(datasets), "seeds": seeds}
            found = study.auto.run(out, data=data, n_jobs=jobs, quick=quick, **amount, **how)
        else:
            suite = _limited(study.suite(name), datasets, policies, seeds, quick)
            found = study.run(suite, out, data=data, n_jobs=jobs, **how)
    except (ValueError, ImportError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # a full disk names no file, and records are what is written
        what = f"'{error.filename or out}': {error.strerror or error}"
        raise click.ClickException(what) from error
    _tell(found, out, strict)


def _limited(
    suite: Suite, datasets: str | None, policies: str | None, seeds: int | None, quick: bool
) -> Suite:
    return suite.limited(
        datasets=_some(suite, "dataset", datasets, suite.datasets),
        policies=_some(suite, "policy", policies, suite.entrants),
        seeds=1 if quick and seeds is None else seeds,
        priors=[1e-6] if quick else None,
    )


def _some(suite: Suite, kind: str, given: str | None, known: tuple[str, ...]) -> list[str] | None:
    """Names with commas between them, each one that the suite has."""
    from omma._validate import nearest

    names = names_in(given)
    for one in names or []:
        if one not in known:
            hint = nearest(one, known) or f"; it has {', '.join(known)}"
            raise ValueError(f"the suite {suite.name!r} has no {kind} {one!r}{hint}")
    return names


def _tell(found: Performed, out: Path, strict: bool) -> None:
    """What became of it, and an exit code that says whether anything failed."""
    for name, sentence in found.skipped.items():
        say(f"Skipped {name}: {sentence}")
    click.echo(f"Runs: {found.summary}. Records are in {out}")
    if found.summary.interrupted:
        raise click.exceptions.Exit(130)
    if found.summary.failed:
        raise click.ClickException(f"{found.summary.failed} runs failed; their records say why")
    if strict and found.skipped:
        raise click.ClickException(f"{len(found.skipped)} datasets are not there")
    if found.skipped and not found.summary.total:
        raise click.ClickException(
            "nothing could be run, as no dataset is there: name the folder of your data by --data "
            "or OMMA_DATA, or get one by omma_study.datasets.load(name, folder, download=True)"
        )


class Minutely:
    """Called with how much is done of how much, it says so at most once a minute.

    >>> now = 0.0
    >>> log = Minutely(lambda line: lines.append(line), clock=lambda: now)
    >>> lines = []
    >>> for now, done in ((30.0, 2), (60.0, 5), (90.0, 8), (120.0, 10)):
    ...     log(done, 20)
    >>> lines
    ['5 of 20 runs, 1 min, about 3 min left', '10 of 20 runs, 2 min, about 2 min left']
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.say = say
        self.clock = clock
        self._start = self._said = clock()

    def __call__(self, done: int, total: int) -> None:
        now = self.clock()
        if now - self._said < 60 or done == total:  # at the end a summary follows
            return
        self._said = now
        spent = (now - self._start) / 60
        left = f", about {spent * (total - done) / done:.0f} min left" if done else ""
        self.say(f"{done:,} of {total:,} runs, {spent:.0f} min{left}")

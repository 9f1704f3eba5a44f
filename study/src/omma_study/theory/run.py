"""All suites of the theory: run them, and show what their records say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from omma_study.checks import choice
from omma_study.records import Record, key_of
from omma_study.runs import Progress, Summary, perform
from omma_study.tables import Table
from omma_study.theory.simulation import Simulation
from omma_study.theory.simulations import bounds, estimation, order, regret, rules

ALL = "theory"
_SUITES = {
    suite.name: suite
    for suite in (
        regret.REGRET,
        regret.RATIOS,
        rules.POPULATION,
        bounds.BOUNDS,
        estimation.ESTIMATION,
        estimation.CALIBRATION,
        bounds.SMOOTHING,
        order.ADVERSARY,
        order.SHIFT,
        rules.AGREEMENT,
    )
}


def suites() -> list[Simulation]:
    """Every suite: its name, its title and its runs.

    >>> from omma_study.theory import suites
    >>> [suite.name for suite in suites()][:3]
    ['theory-regret', 'theory-ratios', 'theory-population']
    """
    return list(_SUITES.values())


def run(
    name: str,
    folder: str | Path,
    *,
    n_jobs: int = 1,
    quick: bool = False,
    progress: Progress | None = None,
    report: Callable[[str], None] | None = None,
) -> Summary:
    """Perform a suite and leave a record of each run.

    Runs that have a record are skipped; failed ones are tried again.

    Parameters
    ----------
    name : str
        A suite's name, or ``"theory"`` for all of them.
    folder : path
        Where records go.
    n_jobs : int
        Runs at a time.
    quick : bool
        Short sequences, and few: a first look.
    progress, report : function, optional
        As for ``omma_study.run``.

    Examples
    --------
    >>> from omma_study.theory import run
    >>> print(run("theory-shift", "records-of-run", quick=True))
    8 done, 0 there before, 0 failed
    """
    # A wrong name is an error before anything is simulated.
    choice("a suite of the theory", name, (ALL, *_SUITES))
    chosen = suites() if name == ALL else [_SUITES[name]]
    jobs = [job for suite in chosen for job in suite.jobs(quick)]
    return perform(jobs, folder, n_jobs=n_jobs, progress=progress, report=report)


def tables(records: list[Record]) -> list[Table]:
    """Tables of what records of the theory say, suite by suite."""
    return [table for suite, finished in _by_suite(records) for table in suite.tables(finished)]


def figures(records: list[Record]) -> dict[str, Any]:
    """Figures of what records of the theory say, by name."""
    of_suites = [suite.figures(finished) for suite, finished in _by_suite(records)]
    return {name: figure for by_name in of_suites for name, figure in by_name.items()}


def _by_suite(records: list[Record]) -> list[tuple[Simulation, list[Record]]]:
    """Finished runs of each suite that has some, in the order in which they are planned.

    A suite may have been run both quickly and in full: then the longest runs count.
    """
    # By key, as records have lists where grids have tuples.
    finished = {key_of(record): record for record in records if record["result"]}
    groups = []
    for suite in suites():
        full, short = (
            [finished[key] for job in suite.jobs(quick) if (key := key_of(vars(job))) in finished]
            for quick in (False, True)
        )
        if full or short:
            groups.append((suite, full or short))
    return groups

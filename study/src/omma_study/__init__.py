"""The empirical study of the OMMA paper: suites of runs, their records, tables and figures.

A suite is a TOML file; ``run`` performs it and leaves a record of each run; tables and figures are
made of records alone. ``omma_study.theory`` checks what the paper proves, ``omma_study.auto`` sets
``omma.Auto`` against every choice of feedback and λ.

From a suite to a page, module by module:

- ``config`` reads the TOML file. A ``Suite`` is a grid of ``Run``, each one policy on one sequence
  of a ``Source``: a dataset with an estimator.
- ``estimates`` makes the ``Estimates`` of a source once for all of its runs.
- ``runs`` performs each run as a ``Job``, several at a time.
- ``records`` keeps what a job returns as a line of JSON. All that follows reads these lines alone.
- ``sections`` averages over sequences: a ``Section`` is the records of one source in one suite.
- ``tables`` and ``figures`` show sections, beside what ``paper`` has; ``study/pages`` makes pages.
"""

from omma_study.config import Run, Source, Suite, suite, suites
from omma_study.records import read
from omma_study.runs import Summary, run

__all__ = ["Run", "Source", "Suite", "Summary", "read", "run", "suite", "suites"]

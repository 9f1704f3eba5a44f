"""The empirical study of the OMMA paper: suites of runs, their records, tables and figures.

A suite is a TOML file; ``run`` performs it and leaves a record of each run; tables and figures are
made of records alone. ``omma_study.theory`` checks what the paper proves, ``omma_study.auto`` sets
``omma.Auto`` against every choice of feedback and λ.
"""

from omma_study.config import Run, Source, Suite, suite, suites
from omma_study.records import read
from omma_study.runs import Summary, run

__all__ = ["Run", "Source", "Suite", "Summary", "read", "run", "suite", "suites"]

"""The empirical study: suites of runs, their records, and tables and figures made of them.

A suite is a TOML file; ``run`` performs it and leaves a record of each run; everything shown comes
from records alone.
"""

from omma_study import auto
from omma_study.bench import Performed, run
from omma_study.suite import Run, Source, Suite
from omma_study.toml import suite, suites

__all__ = ["Performed", "Run", "Source", "Suite", "auto", "run", "suite", "suites"]

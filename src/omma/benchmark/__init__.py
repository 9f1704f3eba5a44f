"""The empirical study: suites of runs, their records, and tables and figures made of them.

A suite is a TOML file; ``run`` performs it and leaves a record of each run; everything shown comes
from records alone.
"""

from omma.benchmark.performing import Performed, run
from omma.benchmark.run import Run, Source
from omma.benchmark.suite import Suite
from omma.benchmark.toml import suite, suites

__all__ = ["Performed", "Run", "Source", "Suite", "run", "suite", "suites"]

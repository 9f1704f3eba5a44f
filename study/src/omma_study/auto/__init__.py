"""The evidence for ``omma.Auto``: one setting against every choice that OMMA leaves open.

``run`` leaves a record for each sequence of each cell; ``tables`` says what records show, and
``goals`` what was to be reached.
"""

from omma_study.auto.cells import DATASETS, SUITE, run, size
from omma_study.auto.verdict import DESIGN, Cell, Goal, cells_of, goals, tables

__all__ = [
    "DATASETS",
    "DESIGN",
    "SUITE",
    "Cell",
    "Goal",
    "cells_of",
    "goals",
    "run",
    "size",
    "tables",
]

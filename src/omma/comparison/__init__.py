"""Compare policies on the same sequences, for several metrics at once."""

from omma.comparison.protocol import compare
from omma.comparison.report import Comparison
from omma.comparison.results import Cell, Runs
from omma.policies.roster import NAMES

__all__ = ["NAMES", "Cell", "Comparison", "Runs", "compare"]

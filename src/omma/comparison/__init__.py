"""Compare policies online, and choose the rule to deploy.

``compare`` runs policies on the same sequences, for several metrics at once. ``choose`` judges
rules on rows that they were made without, and recommends one.
"""

from omma.comparison.choice import Candidate, Choice
from omma.comparison.cross_fitting import choose
from omma.comparison.protocol import compare
from omma.comparison.results import Cell, Comparison, Runs
from omma.policies.registry import NAMES

__all__ = [
    "NAMES",
    "Candidate",
    "Cell",
    "Choice",
    "Comparison",
    "Runs",
    "choose",
    "compare",
]

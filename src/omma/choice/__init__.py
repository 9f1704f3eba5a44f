"""Which rule to deploy, and what it will be worth: judged on rows that no rule has seen."""

from omma.choice.protocol import choose
from omma.choice.report import Candidate, Choice, Table

__all__ = ["Candidate", "Choice", "Table", "choose"]

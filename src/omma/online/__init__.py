"""Rows one at a time: a policy and its state in one object."""

from omma.online.journal import Journal
from omma.online.learner import OnlineClassifier

__all__ = ["Journal", "OnlineClassifier"]

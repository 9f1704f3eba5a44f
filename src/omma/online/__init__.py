"""Rows one at a time: a policy and its state in one object."""

from omma.online.learner import OnlineClassifier

__all__ = ["OnlineClassifier"]

"""Data to run on: generators with known probabilities."""

from omma.datasets.synthetic import long_tail

__all__ = ["long_tail"]

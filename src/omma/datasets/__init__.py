"""Data to run on: generators with known probabilities."""

from omma.datasets.matrices import Matrix, read_matrix, write_matrix
from omma.datasets.synthetic import long_tail

__all__ = ["Matrix", "long_tail", "read_matrix", "write_matrix"]

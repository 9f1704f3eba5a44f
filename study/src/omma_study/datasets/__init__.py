"""A catalogue of public datasets, how to get them, and streams in the shapes of the paper's."""

from omma.datasets import long_tail
from omma_study.datasets.catalogue import CATALOGUE, Entry, File
from omma_study.datasets.loading import load
from omma_study.datasets.paper_like import like

__all__ = ["CATALOGUE", "Entry", "File", "like", "load", "long_tail"]

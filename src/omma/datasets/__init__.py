"""Data to run on: files in many formats, and streams with known η."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omma.datasets.dataset import Dataset
from omma.datasets.synthetic import long_tail

if TYPE_CHECKING:
    from omma.datasets.any_format import read
    from omma.datasets.formats.arff import read_arff
    from omma.datasets.formats.arrays import read_arrays, read_folder, write_folder
    from omma.datasets.formats.csv_table import read_csv
    from omma.datasets.formats.svmlight import read_svmlight, read_xc
    from omma.datasets.matrices import Matrix, read_matrix, write_matrix

# Found when they are asked for: serving does without readers, and starts faster.
_LATER = {
    "any_format": ("read",),
    "formats.arff": ("read_arff",),
    "formats.arrays": ("read_arrays", "read_folder", "write_folder"),
    "formats.csv_table": ("read_csv",),
    "formats.svmlight": ("read_svmlight", "read_xc"),
    "matrices": ("Matrix", "read_matrix", "write_matrix"),
}


_MOVED = ("CATALOGUE", "Entry", "File", "like", "load")


def __getattr__(name: str) -> Any:
    """Import a reader when it is asked for."""
    for place, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"omma.datasets.{place}"), name)
    if name in _MOVED:
        raise AttributeError(
            f"omma.datasets.{name} moved to the package omma-study: pip install omma-study, then "
            f"omma_study.datasets.{name}"
        )
    raise AttributeError(f"module 'omma.datasets' has no attribute {name!r}")


__all__ = [
    "Dataset",
    "Matrix",
    "long_tail",
    "read",
    "read_arff",
    "read_arrays",
    "read_csv",
    "read_folder",
    "read_matrix",
    "read_svmlight",
    "read_xc",
    "write_folder",
    "write_matrix",
]

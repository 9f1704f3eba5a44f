"""Types of parameters and results, for editors and type checkers."""

from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Feedback = Literal["labels", "estimates", "both"]
Calibration = Literal["online"] | None

# Input of NumPy: decisions on it are an array.
Arrays = NDArray[Any] | list[Any] | tuple[Any, ...]
Decisions = NDArray[np.int8]
Frame = TypeVar("Frame")  # a frame or a tensor: decisions on it are of its own kind


class SparseMatrix(Protocol):
    """A sparse matrix of SciPy, of any format."""

    def tocsr(self) -> Any:
        """The same in rows."""

"""The arrays of a state in a file: which are whose, and what they cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def under(start: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names begin so, without that."""
    return {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}


def check_part(name: str, found: Any, shape: tuple[int, ...], *, signed: bool = True) -> None:
    """Refuse an array of a state that cannot be one: kernels believe what they are given."""
    wanted = f"{name} of a state must be finite numbers of shape {shape}"
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        raise ValueError(f"{wanted}, got {'nothing' if found is None else found.dtype}")
    if found.shape != shape or not np.isfinite(found).all():
        wrong = "what is not finite" if found.shape == shape else f"shape {found.shape}"
        raise ValueError(f"{wanted}, got {wrong}")
    if not signed and found.size and found.min() < -1e-9 * max(1.0, float(found.max())):
        raise ValueError(f"{name} of a state must be at least 0, got {found.min():g}")

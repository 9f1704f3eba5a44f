"""The arrays of a state in a file: which are whose, and what they cannot be.

Where the past fades, its pace is one: the weight of a row now, by what it grows, and how often all
was divided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma.kernels.layout import ERAS, GROWTH, LARGEST_UNIT, UNIT

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


def common_pace(first: Array | None, second: Array | None) -> tuple[float, Array | None]:
    """How often counts of both are divided, and the pace of the one that went on for longer."""
    if first is None or second is None:
        return 0.0, None
    later = max(first, second, key=lambda pace: (pace[ERAS], pace[UNIT]))
    return float(later[ERAS]), later.copy()


def check_pace(found: Any, wanted: Array) -> None:
    """Refuse a pace that no stream with this half-life can have."""
    check_part("pace", found, wanted.shape, signed=False)
    right = 1.0 <= found[UNIT] < LARGEST_UNIT and found[ERAS] == np.floor(found[ERAS])
    if not right or found[GROWTH] != wanted[GROWTH]:
        raise ValueError(
            f"pace of a state must have a weight of at least 1 that grows by {wanted[GROWTH]!r} a "
            f"row, got {found.tolist()}"
        )

"""How fast the past fades: the weight of a row now, by what it grows, how often all was divided."""

from __future__ import annotations

from typing import Any

import numpy as np

from omma.kernels.layout import ERAS, GROWTH, LARGEST_UNIT, UNIT
from omma.parts import Array, check_part


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

"""Space for the kernels to work in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from omma.kernels.decide import EVERY
from omma.kernels.layout import ONES, SCRATCH


def scratch_space(m: int) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Space for the kernels to work in: its size does not depend on the number of rows."""
    try:
        ids, scratch = np.empty((2, m), dtype=np.int32), np.zeros((SCRATCH, m))
    except MemoryError:
        needed = 8 * SCRATCH * m / 2**30
        raise MemoryError(
            f"{m:,} labels take {needed:,.0f} GiB of space to work in, more than there is"
        ) from None
    ids[EVERY] = np.arange(m)
    scratch[ONES] = 1.0
    return scratch, ids

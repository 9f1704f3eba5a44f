"""Dense rows by a rule without a budget: each label by itself, so NumPy alone decides them.

The kernels do the same arithmetic, so both give the same bits; but a kernel has to be set up, which
for a thousand rows takes as long as deciding them, and the first time it is compiled.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from omma.rows.arrays import DenseProbabilities

ENTRIES: Final = 2**16  # decided at once: what is worked out on the way stays in the cache


def decided_by_cuts(
    eta: DenseProbabilities, slope: NDArray[np.float64], offset: NDArray[np.float64]
) -> NDArray[np.int8] | None:
    """Decisions on all rows; None where some of eta is no probability."""
    flags = np.empty((eta.n, eta.m), dtype=bool)
    step = max(1, ENTRIES // max(1, eta.m))
    for start in range(0, eta.n, step):
        part = np.asarray(eta.array[start : start + step], dtype=np.float64)  # as kernels widen it
        # Whatever is NaN makes both ends NaN, which compare as false.
        if not (part.min() >= 0.0 and part.max() <= 1.0):
            return None
        gains = part * slope
        gains += offset
        chosen = flags[start : start + step]
        np.greater_equal(gains, 0.0, out=chosen)
        chosen &= part > 0.0
    decided = flags.view(np.int8)
    return decided[:, 0] if eta.vector else decided

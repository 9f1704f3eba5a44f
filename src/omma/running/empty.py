"""Arrays without entries, for what a caller does without: each of the type kernels know."""

from __future__ import annotations

import numpy as np

NO_MATRIX = np.empty((0, 0))
NO_ROWS = np.empty(0, dtype=np.int64)
NO_LABELS = np.empty(0, dtype=np.int32)
NO_PICKS = np.empty(0, dtype=np.int32)
NO_NUMBERS = np.empty(0)

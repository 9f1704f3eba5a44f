"""True labels of some rows, as the kernels read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from omma.kernels.replay import Indicated, Listed
from omma.rows.arrays import Rows
from omma.rows.labels import Labels
from omma.running.empty import NO_LABELS, NO_ROWS

# Labels that are not known have the same type as others: no kernel is compiled again for them.
ALL_KNOWN = np.empty(0, dtype=np.uint8)
UNKNOWN = Listed(NO_ROWS, NO_ROWS, NO_LABELS, ALL_KNOWN)
NOT_INDICATED = Indicated(np.empty((1, 0), dtype=np.uint8), NO_ROWS, ALL_KNOWN)


def labels_of(labels: Labels | None, rows: Rows, listed: bool) -> Listed | Indicated:
    """True labels of some rows as kernels read them: ids for sparse rows, indicators for dense."""
    if listed:
        return UNKNOWN if labels is None else Listed(*labels.block(rows), labels.known_of(rows))
    if labels is None:
        return NOT_INDICATED
    return Indicated(*labels.indicators(rows), labels.known_of(rows))


def all_known(true: Listed | Indicated) -> bool:
    """Whether labels are there, all of them."""
    return true is not UNKNOWN and true is not NOT_INDICATED and not len(true.known)


def part_of(true: Listed | Indicated, which: Any) -> Listed | Indicated:
    """The labels of some of the rows that ``true`` has, a slice or a mask of them."""
    if isinstance(true, Indicated):
        if not len(true.rows):
            return true
        known = true.known[which] if len(true.known) else true.known
        return Indicated(true.array, true.rows[which], known)
    if not len(true.starts):
        return true
    known = true.known[which] if len(true.known) else true.known
    return Listed(true.starts[which], true.ends[which], true.ids, known)

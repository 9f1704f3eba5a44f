"""OMMA by labels of which some are unknown, in plain NumPy, with no code shared.

Each label is counted over the rows in which it is known, and looked at in proportion: times all
rows over these.
"""

import naive_auto
import numpy as np

PRIOR = 1e-6


def decided(metric, eta, y, prior=PRIOR):
    """Decisions of OMMA without a budget, a row at a time; NaN in y is unknown."""
    kind, m = naive_auto.METRICS[metric], eta.shape[1]
    tp, predicted, positive, known = np.zeros((4, m))
    n, made = 0.0, []
    for row, true in zip(eta, y, strict=True):
        factor = n / np.where(known > 0, known, max(n, 1.0))
        inverse = 1.0 / (n + 4 * prior)
        cells = (factor * tp + prior, factor * predicted + 2 * prior, factor * positive + 2 * prior)
        slope, offset = naive_auto.gradient(kind, *(cell * inverse for cell in cells))
        chosen = (slope * row + offset >= 0) & (row > 0)
        there = ~np.isnan(true)
        n += 1.0
        known += there
        tp += np.where(there, true, 0) * chosen
        predicted += there & chosen
        positive += np.where(there, true, 0)
        made.append(chosen)
    return np.array(made, dtype=np.int8)


def counted(y, predictions):
    """(tp, predicted, positive) over the rows in which each label is known, in proportion."""
    there = ~np.isnan(y)
    n = there.any(axis=1).sum()
    true = np.where(there, y, 0)
    cells = [(one * there).sum(axis=0) for one in (true * predictions, predictions, true)]
    return np.array(cells) * (n / np.maximum(there.sum(axis=0), 1)), n

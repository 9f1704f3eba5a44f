"""Labels of which some are unknown, in plain NumPy, with no code shared.

Each label is counted over the rows in which it is known, and looked at in proportion: times all
rows over these.
"""

import naive
import naive_auto
import naive_baselines
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


def cells(y, predictions, weights=None):
    """(tp, fp, fn, tn) of each label over the rows in which it is known, in proportion."""
    y, predictions = (naive.as_columns(one) for one in (y, predictions))
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    there = ~np.isnan(y)
    n = weights[there.any(axis=1)].sum()
    found = []
    for j in range(y.shape[1]):
        rows = there[:, j]
        if weights[rows].sum() == 0:  # never known is as never there
            found.append([0.0, 0.0, 0.0, n])
            continue
        (own,) = naive.cells(y[rows, j], predictions[rows, j], weights[rows])
        found.append(own * (n / own.sum()))
    return np.array(found)


def value(name, y, predictions, weights=None):
    """A metric by its name, of labels of which some are unknown."""
    return naive.utility(name)(naive.label_fractions(cells(y, predictions, weights)), 0)


def best_worth(name, eta, y, weights):
    """Thresholds of one label and what each is worth on the rows in which the label is known."""
    rows = ~np.isnan(y)
    if not rows.any():
        return [np.inf], [0.0]
    eta, y = eta[rows], y[rows]
    cuts = [*np.unique(eta[eta > 0]), np.inf]
    weights = None if weights is None else weights[rows]
    made = [((eta >= cut) & (eta > 0)).astype(int) for cut in cuts]
    return cuts, [naive.value(name, y, one, weights) for one in made]


def greedy(f, eta, y, prior):
    """Decisions of Greedy without a budget, with the gains; counts are looked at in proportion."""
    n, m = eta.shape
    counts, known = np.zeros((m, 4)), np.zeros(m)
    made, gains = np.zeros((n, m), dtype=int), np.zeros((n, m))
    for t in range(n):
        for j in range(m):
            # A label that was never known is as one that is never there.
            own = counts[j] * t / known[j] if known[j] else np.array([0.0, 0.0, 0.0, t])
            both = (naive_baselines.expected(f, own + prior, eta[t, j], p) for p in (1, 0))
            gains[t, j] = next(both) - next(both)
        made[t] = (gains[t] >= 0) & (eta[t] > 0)
        for j in np.flatnonzero(~np.isnan(y[t])):
            counts[j] += naive.cells([y[t, j]], [made[t, j]])[0]
            known[j] += 1
    return made, gains

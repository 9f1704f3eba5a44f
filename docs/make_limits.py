"""Draws the pictures of docs/limits.md.

    python docs/make_limits.py

Takes a minute.
"""

import numpy as np
from page_parts import save

import omma
from omma.plots import plot_frontier, plot_limits


def payments(seed=0, n=100_000):
    """Payments, one in sixteen of them fraud: probabilities, and what was found out later."""
    rng = np.random.default_rng(seed)
    eta = 1 / (1 + np.exp(-(2.5 * rng.normal(size=n) - 4.5)))
    return eta, (rng.random(n) < eta).astype(np.int8)


def frontier():
    """The best recall at each required precision."""
    return plot_frontier(omma.frontier(*payments(), "recall", "precision")).figure


def limits():
    """Recall and precision so far, with a limit and without."""
    eta, y = payments()
    limited = omma.replay(omma.Auto("recall", subject_to="precision >= 0.7"), eta, y)
    free = omma.replay(omma.Auto("f1"), eta, y, metric="recall")
    return plot_limits({"with the limit": limited, "F1, no limit": free})


PICTURES = {"frontier": frontier, "limits": limits}

if __name__ == "__main__":
    save(PICTURES)

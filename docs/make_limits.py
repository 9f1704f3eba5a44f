"""Draws the pictures of docs/limits.md.

    python docs/make_limits.py

Takes a minute.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import omma
from omma.plots import plot_frontier, plot_limits, save

IMAGES = Path(__file__).parent / "images"


def payments(seed=0, n=100_000):
    """Payments, one in sixteen of them fraud: probabilities, and what was found out later."""
    rng = np.random.default_rng(seed)
    eta = 1 / (1 + np.exp(-(2.5 * rng.normal(size=n) - 4.5)))
    return eta, (rng.random(n) < eta).astype(np.int8)


if __name__ == "__main__":
    eta, y = payments()
    found = omma.frontier(eta, y, "recall", "precision")
    save(plot_frontier(found).figure, IMAGES / "frontier.png")
    limited = omma.replay(omma.Auto("recall", subject_to="precision >= 0.7"), eta, y)
    free = omma.replay(omma.Auto("f1"), eta, y, metric="recall")
    save(
        plot_limits({"with the limit": limited, "F1 without it": free}),
        IMAGES / "limits.png",
    )

"""
The learned rule: one threshold per label
=========================================

A learned rule is two numbers per label. Without a budget, these are thresholds. For F1, the
threshold is half of the label's F1, so rare and hard labels have low ones. F0.5 favours precision
and has higher thresholds; F2 favours recall and has lower ones. The rule is plain data, and works
without omma.
"""

import json

import numpy as np
from matplotlib.figure import Figure

import omma
from omma.plots import LEARNING, save

eta, y = omma.datasets.long_tail(n=50_000, m=80, seed=2)
figure = Figure(figsize=(7, 4.2))
axes = figure.add_axes((0.1, 0.14, 0.84, 0.76))
metrics = (omma.metrics.fbeta(0.5), omma.metrics.fbeta(1.0), omma.metrics.fbeta(2.0))
for color, one in zip(LEARNING, metrics, strict=False):
    rule = omma.replay(omma.OMMA(omma.metrics.macro(one)), eta, y).rule
    axes.plot(
        100 * y.mean(axis=0), rule.thresholds, "o", ms=4, alpha=0.8, color=color, label=one.name
    )

kept = json.loads(rule.to_json())
by_hand = np.array(kept["slope"]) * eta[:1000] + np.array(kept["offset"]) >= 0
assert np.array_equal(by_hand, rule.predict(eta[:1000]))

axes.set_xscale("log")
axes.axhline(0.5, color="#999999", lw=0.8)
axes.text(100 * y.mean(axis=0).min(), 0.505, "0.5", color="#777777", size=8, va="bottom")
axes.set_xlabel("rows that have the label, %")
axes.set_ylabel("learned threshold")
axes.set_title("80 labels, 50,000 rows, one pass", loc="left", size=10)
axes.legend(frameon=False, title="macro average of")
axes.spines[["top", "right"]].set_visible(False)
save(figure, "plot_thresholds.png")

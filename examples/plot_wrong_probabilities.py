"""
Miscalibrated probabilities
===========================

OMMA trusts the probabilities. Here the log-odds of a model are too small or too large by a factor,
as the reliability curves on the left show. The right panel has the macro F1. If the model is
overconfident, labels help, because counts then follow what really happens, but they do not correct
the scale. If it is underconfident, OMMA(η̂) loses less, because it stays on the model's own scale.
Draw a reliability curve first, and calibrate: the best factor is 1.
"""

import numpy as np
from matplotlib.figure import Figure

import omma
from omma.calibration import reliability
from omma.plots import LEARNING, save

eta, y = omma.datasets.long_tail(n=30_000, m=20, labels_per_row=3, seed=7)
log_odds = np.log(eta / (1 - eta))

figure = Figure(figsize=(9.5, 4.2))
left, right = figure.add_axes((0.07, 0.14, 0.36, 0.76)), figure.add_axes((0.53, 0.14, 0.44, 0.76))
left.plot((0, 1), (0, 1), color="#999999", lw=0.8)
factors = np.array((0.5, 0.7, 1.0, 1.4, 2.0))
for color, factor in zip(LEARNING, (0.5, 1.0, 2.0), strict=False):
    curve = reliability(1 / (1 + np.exp(-factor * log_odds)), y, bins=12)
    text = f"log-odds × {factor:g}, error {curve.expected_error:.3f}"
    left.plot(curve.predicted, curve.observed, "o-", ms=3, color=color, label=text)
left.set_xlabel("predicted probability")
left.set_ylabel("share of rows that have the label")
left.legend(frameon=False, fontsize=8)

policies = {"OMMA, with labels": "labels", "OMMA(η̂), without": "estimates"}
given = [1 / (1 + np.exp(-factor * log_odds)) for factor in factors]
for color, (name, feedback) in zip(LEARNING, policies.items(), strict=False):
    policy = omma.OMMA("macro_f1", feedback=feedback)
    right.plot(factors, [100 * omma.replay(policy, one, y).value for one in given], "o-",
               color=color, label=name)  # fmt: skip
half = [100 * omma.replay(omma.Threshold(0.5), one, y, metric="macro_f1").value for one in given]
right.plot(factors, half, "o-", color="#777777", label="threshold 0.5")
right.set_xscale("log")
right.set_xticks(factors, [f"{factor:g}" for factor in factors])
right.minorticks_off()
right.set_ylim(bottom=0)
right.set_xlabel("log-odds are multiplied by")
right.set_ylabel("macro-F1, %")
right.legend(frameon=False, loc="lower center")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
save(figure, "plot_wrong_probabilities.png")

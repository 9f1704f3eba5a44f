"""
Fraud at 1 in 500: the best threshold of each metric
====================================================

One payment in 500 is fraud. The best threshold depends on the metric: F1 and MCC punish false
alarms, while G-mean accepts many of them to catch nearly all fraud. Auto finds the threshold of
each metric in one pass. The dots mark the best fixed threshold, which is known only in hindsight.
"""

import numpy as np
from matplotlib.figure import Figure

import omma
from omma.plots import LEARNING, save

rng = np.random.default_rng(0)
n = 100_000
log_odds = np.log(1 / 500) - 3.1 + 2.5 * rng.standard_normal(n)
eta = 1 / (1 + np.exp(-log_odds))
y = (rng.random(n) < eta).astype(np.int8)

figure = Figure(figsize=(8.5, 4.2))
axes = figure.add_axes((0.1, 0.14, 0.6, 0.74))
for color, name in zip(LEARNING, ("f1", "mcc", "balanced_accuracy", "gmean"), strict=False):
    learner = omma.OnlineClassifier(omma.Auto(name), n_labels=1)
    rows, thresholds = [], []
    for start in range(0, n, 500):
        block = slice(start, start + 500)
        decided = learner.predict(eta[block])
        learner.update(y[block], prediction=decided, eta=eta[block])
        rows.append(start + 500)
        thresholds.append(learner.rule.thresholds[0])
    tuned = omma.TunedThresholds(name).fit(eta, y)
    best = omma.replay(tuned, eta, y).rule.thresholds[0]
    value = omma.replay(omma.Auto(name), eta, y).value
    axes.plot(rows, thresholds, color=color, lw=1.6, label=f"{name}: {100 * value:.1f} %")
    axes.plot(n, best, "o", color=color, clip_on=False)
axes.set_yscale("log")
axes.set_ylim(5e-4, 0.6)  # the first thresholds, with no fraud seen yet, are far below
axes.set_xlim(0, n)
axes.xaxis.set_major_formatter("{x:,.0f}")
axes.set_xlabel("payments so far")
axes.set_ylabel("threshold on the probability of fraud")
axes.set_title(f"{y.sum()} frauds among {n:,} payments", loc="left", size=10)
axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
axes.spines[["top", "right"]].set_visible(False)
save(figure, "plot_fraud.png")

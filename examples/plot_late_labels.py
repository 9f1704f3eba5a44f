"""
Delayed labels
==============

A decision is needed now, and its labels are known hours later, if at all. A learner counts each
decision when its labels come. Until then, the prior decides: here by a threshold of 0.25 for all
labels, which happens to be a good guess on this stream. Then the counts take over, and need some
time. With ``feedback="estimates"`` there is no waiting, as long as the probabilities are right.
"""

from collections import deque

import numpy as np
from matplotlib.figure import Figure

import omma
from omma.plots import LEARNING, save

eta, y = omma.datasets.long_tail(n=10_000, m=20, labels_per_row=2, seed=5)
metric = omma.metric("macro_f1")
figure = Figure(figsize=(7.5, 4.2))
axes = figure.add_axes((0.09, 0.14, 0.88, 0.76))
for color, (delay, share) in zip(
    LEARNING, ((0, 1.0), (500, 1.0), (3000, 1.0), (0, 0.05)), strict=False
):
    learner = omma.OnlineClassifier(omma.OMMA(metric), n_labels=20)
    rng = np.random.default_rng(0)
    waiting, decided, rows, values = deque(), np.zeros_like(y), [], []
    for t in range(len(eta)):
        decided[t] = learner.predict(eta[t])
        waiting.append(t)
        if len(waiting) > delay:
            late = waiting.popleft()
            if rng.random() < share:
                learner.update(y[late], prediction=decided[late], eta=eta[late])
        if (t + 1) % 250 == 0:
            rows.append(t + 1)
            values.append(100 * metric.score(y[: t + 1], decided[: t + 1]))
    name = f"{delay:,} rows later" if delay else "at once"
    text = name if share == 1 else f"{name}, for {share:.0%} of the rows"
    axes.plot(rows, values, color=color, label=f"{text}: {values[-1]:.1f} %")
axes.set_xlim(0, 10_000)
axes.set_xlabel("rows so far")
axes.set_title("Macro F1 so far, %, by when labels come", loc="left", size=10)
axes.legend(loc="lower right", frameon=False)
axes.spines[["top", "right"]].set_visible(False)
save(figure, "plot_late_labels.png")

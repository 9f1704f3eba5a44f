"""
Three slots to fill
===================

A page shows three items to each visitor. The three most probable items are nearly always the same
popular ones. If Auto maximizes macro-recall@3 or macro-F1@3, it shows rare items to visitors who
are likely to want them. There are fewer hits in total, but many more items are found.
"""

import numpy as np
from matplotlib.figure import Figure

import omma
from omma.plots import FIXED, LEARNING, save

eta, y = omma.datasets.long_tail(n=20_000, m=60, labels_per_row=3, tail=1.1, seed=1)
policies = {
    "the 3 most probable": omma.TopK(3),
    "Auto, macro-F1@3": omma.Auto("macro_f1", k=3),
    "Auto, macro-recall@3": omma.Auto("macro_recall", k=3),
}
colors = (FIXED[0], LEARNING[0], LEARNING[1])

figure = Figure(figsize=(9.5, 4.2))
axes = figure.add_axes((0.08, 0.14, 0.52, 0.78))
for color, (name, policy) in zip(colors, policies.items(), strict=True):
    counts = omma.replay(policy, eta, y, metric="macro_recall").counts
    recall = counts.tp / counts.positive
    hits = counts.tp.sum() / counts.n
    text = f"{name}\n{100 * recall.mean():.1f} % macro-recall, {hits:.2f} hits a visitor"
    axes.plot(100 * np.sort(recall)[::-1], color=color, lw=2, label=text)
axes.set_xlim(0, 59)
axes.set_ylim(0, 100)
axes.set_xlabel("items, those found most often first")
axes.set_ylabel("share of visitors who want it and see it, %")
axes.legend(
    loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=8, labelspacing=1
)
axes.spines[["top", "right"]].set_visible(False)
save(figure, "plot_slots.png")

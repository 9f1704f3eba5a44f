"""
Many classes, some of them rare
===============================

Ten classes; the rarest is about 40 times rarer than the most common. Predicting the most probable
class has the best accuracy, and hardly ever predicts a rare class. The geometric mean of the
recalls is low if any class is lost. Auto gives up some accuracy on common classes for the rare
ones.
"""

import numpy as np
from matplotlib.figure import Figure

import omma
from omma.plots import FIXED, LEARNING, save

rng = np.random.default_rng(3)
n, m = 30_000, 10
shares = np.geomspace(1, 0.01, m)
scores = np.log(shares) + 1.6 * rng.standard_normal((n, m))
eta = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
y = (eta.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)

policies = {"most probable class": omma.TopK(1), "Auto, G-mean": omma.Auto("multiclass_gmean")}
figure = Figure(figsize=(8, 4))
axes = figure.add_axes((0.08, 0.14, 0.62, 0.76))
for place, (name, policy) in enumerate(policies.items()):
    trace = omma.replay(policy, eta, y, metric="multiclass_gmean")
    recall = trace.counts.tp / trace.counts.positive
    accuracy = np.mean(trace.classes == y)
    text = f"{name}\nG-mean {100 * trace.value:.1f} %\naccuracy {100 * accuracy:.1f} %"
    color = (FIXED[1], LEARNING[0])[place]
    axes.bar(np.arange(m) + 0.4 * place - 0.2, 100 * recall, 0.38, color=color, label=text)
axes.set_xticks(range(m), [f"{100 * share:.1f}" for share in np.bincount(y) / n])
axes.set_xlabel("class, by its share of the rows in %")
axes.set_ylabel("recall, %")
axes.legend(
    loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, fontsize=9, labelspacing=1
)
axes.spines[["top", "right"]].set_visible(False)
save(figure, "plot_rare_class.png")

"""
Inside scikit-learn: any metric, more than two classes
======================================================

``MetricClassifier`` wraps a classifier, computes out-of-fold probabilities, and learns the rule
that is best for a metric. Here are five classes, one of them common. Each group of bars is a
classifier that maximizes one metric; each bar is its score by a metric on new rows.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import omma
from omma.plots import FIXED, LEARNING, save
from omma.sklearn import MetricClassifier

X, y = make_classification(
    12_000, 20, n_informative=6, n_classes=5, weights=[0.8, 0.1, 0.05, 0.03], random_state=1
)
model = LogisticRegression(max_iter=500)
metrics = {"multiclass_accuracy": "accuracy", "macro_f1": "macro-F1", "multiclass_gmean": "G-mean"}
aims = {"most probable class": model.fit(X[:6000], y[:6000]).predict(X[6000:])}
for name, title in metrics.items():
    wrapped = MetricClassifier(model, metric=name, k=1, random_state=0)
    aims[f"for {title}"] = wrapped.fit(X[:6000], y[:6000]).predict(X[6000:])

figure = Figure(figsize=(8, 4))
axes = figure.add_axes((0.08, 0.1, 0.74, 0.84))
for place, (name, title) in enumerate(metrics.items()):
    values = [100 * omma.metric(name).score(y[6000:], decided, n_labels=5) for decided in
              aims.values()]  # fmt: skip
    color = (FIXED[1], LEARNING[0], LEARNING[1])[place]
    bars = axes.bar(
        np.arange(len(aims)) + 0.27 * place - 0.27, values, 0.25, color=color, label=title
    )
    axes.bar_label(bars, fmt="%.0f", size=8, padding=1)
axes.set_xticks(range(len(aims)), aims)
axes.set_ylabel("%")
axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False, title="score")
axes.spines[["top", "right"]].set_visible(False)
save(figure, "plot_sklearn.png")

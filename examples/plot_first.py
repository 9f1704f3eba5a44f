"""
A first look: macro-F1 on a long tail
=====================================

Fifty labels, most of them rare. A threshold of 0.5 never predicts a label whose probability stays
below 0.5, so rare labels have an F1 of 0, and macro F1 is low. OMMA learns a threshold for each
label while rows come in. OMMA(η̂) does so without labels. Auto uses labels and probabilities, and
calibrates the probabilities.
"""

import omma
from omma.plots import plot_running, save

eta, y = omma.datasets.long_tail(n=20_000, m=50, seed=0)
policies = {
    "threshold 0.5": omma.Threshold(0.5),
    "Auto": omma.Auto("macro_f1"),
    "OMMA": omma.OMMA("macro_f1"),
    "OMMA(η̂)": omma.OMMA("macro_f1", feedback="estimates"),
}
traces = {name: omma.replay(one, eta, y, metric="macro_f1") for name, one in policies.items()}

axes = plot_running(traces, bottom=0.0)
save(axes.figure, "plot_first.png")

"""
How much more is there to gain?
===============================

Is 60 % good, or could other decisions with the same probabilities reach 70 %? The certificate
estimates the best attainable value while the stream runs, with its standard error. OMMA comes close
to it. A threshold of 0.5 does not, and the gap says by how much.
"""

import omma
from omma.plots import plot_running, save

eta, y = omma.datasets.long_tail(n=20_000, m=20, labels_per_row=3, seed=8)
policies = {"threshold 0.5": omma.Threshold(0.5), "OMMA": omma.OMMA("macro_gmean")}
traces = {
    name: omma.replay(one, eta, y, metric="macro_gmean", gap=True) for name, one in policies.items()
}
assert traces["threshold 0.5"].gap.value > 0.1 > traces["OMMA"].gap.value

axes = plot_running(traces, gap=True)
save(axes.figure, "plot_certificate.png")

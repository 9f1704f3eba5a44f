"""
Six policies compared
=====================

All policies see the same shuffled sequences. ``omma.compare`` runs them over several seeds, and
plots the mean and standard deviation. OMMA and Greedy are nearly the same. Frank-Wolfe must store
rows, and OMMA need not.
"""

import omma
from omma.plots import save

eta, y = omma.datasets.long_tail(n=3000, m=25, seed=6)
found = omma.compare(
    eta,
    y,
    metrics=["macro_f1", "macro_gmean"],
    policies=["baseline", "ofo", "greedy", "online_fw", "omma", "omma_eta"],
    priors=1e-6,
)
save(found.plot(), "plot_policies.png")

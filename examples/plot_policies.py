"""
Six ways to decide, compared
============================

All policies see the same shuffled sequences. ``omma.compare`` runs them over seeds, and draws the
mean with its spread. OMMA and Greedy are hard to tell apart; Frank-Wolfe keeps rows, which OMMA
need not.
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

"""The slow twin of ``omma.Window``: what each row added is kept, and added up each time."""

import naive_auto
import naive_forgetting
import numpy as np
from naive_forgetting import COUNTS


class Auto(naive_auto.Auto):
    """Auto that looks at the last rows; its calibration fades."""

    def __init__(self, metric, m, rows, **budget):
        super().__init__(metric, m, **budget)
        self.rows, self.added = rows, []

    def update(self, y=None):
        before = [np.copy(getattr(self, name)) for name in COUNTS]
        super().update(y)
        more = [getattr(self, name) - one for name, one in zip(COUNTS, before, strict=True)]
        self.added = [*self.added, more][-self.rows :]
        for name, parts in zip(COUNTS, zip(*self.added, strict=True), strict=True):
            setattr(self, name, np.sum(parts, axis=0))
        naive_forgetting.forget_calibration(self, np.exp(-2.0 / self.rows))


class OMMA(naive_forgetting.OMMA):
    """OMMA that looks at the last rows, for a macro or micro metric without a budget."""

    def __init__(self, metric, m, rows, feedback, prior):
        super().__init__(metric, m, np.inf, feedback, prior)
        self.rows, self.added = rows, []

    def update(self, eta, y, made, weight):
        if weight == 0 or (y is None and not self.soft):
            return
        seen = eta if self.soft else y
        parts = (weight * seen * made, weight * made, weight * seen, weight)
        self.added = [*self.added, parts][-self.rows :]
        columns = zip(*self.added, strict=True)
        self.tp, self.q, self.p, self.n = (np.sum(one, axis=0) for one in columns)

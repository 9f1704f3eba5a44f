"""The slow twin of ``omma.Forgetting``: all that was counted is multiplied after each row."""

import naive_auto
import numpy as np

COUNTS = ("tp_y", "pos_y", "tp_e", "pos_e", "tp_a", "pos_a", "q", "n")


def forget_calibration(auto, keep):
    """What was learned stays; how much is known of it, and how many logits were seen, shrinks."""
    for name in ("H", "h", "entries", "W", "N"):
        setattr(auto, name, getattr(auto, name) * keep)


class Auto(naive_auto.Auto):
    """Auto that forgets."""

    def __init__(self, metric, m, half_life, **budget):
        super().__init__(metric, m, **budget)
        self.keep = 0.5 ** (1.0 / half_life)

    def update(self, y=None):
        super().update(y)
        for name in COUNTS:
            setattr(self, name, getattr(self, name) * self.keep)
        forget_calibration(self, self.keep)


class OMMA:
    """OMMA that forgets, for a macro or micro metric without a budget."""

    def __init__(self, metric, m, half_life, feedback, prior):
        self.kind, self.m, self.prior = naive_auto.METRICS[metric], m, prior
        self.micro, self.soft = metric.startswith("micro_"), feedback == "estimates"
        self.tp, self.q, self.p, self.n = np.zeros(m), np.zeros(m), np.zeros(m), 0.0
        self.keep = 0.5 ** (1.0 / half_life)

    def predict(self, eta):
        tp, q, p = (x.sum() if self.micro else x for x in (self.tp, self.q, self.p))
        w, prior = self.m if self.micro else 1.0, self.prior
        total = self.n + 4 * prior
        cells = ((tp + w * prior) / total, (q + 2 * w * prior) / total, (p + 2 * w * prior) / total)
        slope, offset = naive_auto.gradient(self.kind, *cells, w)
        return ((slope * eta + offset >= 0) & (eta > 0)).astype(np.int8)

    def update(self, eta, y, made, weight):
        if weight == 0 or (y is None and not self.soft):
            return
        seen = eta if self.soft else y
        self.tp = (self.tp + weight * seen * made) * self.keep
        self.q = (self.q + weight * made) * self.keep
        self.p = (self.p + weight * seen) * self.keep
        self.n = (self.n + weight) * self.keep

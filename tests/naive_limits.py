"""The slow twin of limits: prices row by row, in plain NumPy, with no code shared.

`Price` has one limit, by the equations as they stand in the notes; `LimitedAuto` puts prices on the
slow twin of `omma.Auto`, and `Plain` on OMMA with labels or estimates as feedback.
"""

import naive_auto
import numpy as np

LAM = 1e-6


class Price:
    """One limit: `at` gives what it adds to slope and offset, `after` moves its price."""

    def __init__(self, kind, bound, m, j=None):
        self.kind, self.C, self.m, self.j = kind, bound, m, j
        self.mu, self.V, self.before, self.mean = 1.0, 1e-12, 0.0, 1.0

    def at(self, n, tp, q, pos):
        """(slope, offset) over all labels; counts are those before the row."""
        mu, C, m, j = self.mu, self.C, self.m, self.j
        slope, offset = np.zeros(m), np.zeros(m)
        dear = max(0.7 * min(C, 0.98) / (1 - min(C, 0.98)), 1.0)  # where precision starts
        one = np.zeros(m) if j is None else np.eye(m)[j] / np.sqrt(m)
        if self.kind == "micro_precision":  # over the mean of predictions and occurrences
            slope += dear * mu * n / max((q.sum() + pos.sum()) / 2, 1)
            offset -= C * slope
        elif self.kind == "micro_recall":
            slope += mu * n / max(pos.sum(), 1)
        elif (
            self.kind == "micro_specificity"
        ):  # tn - C negatives: predicting where absent costs one
            dear = max(0.1 / max(1 - C, 1e-4), 1.0)
            scale = dear * mu * n / max(n * m - pos.sum(), 1)
            slope += scale
            offset -= scale
        elif self.kind == "micro_accuracy":
            slope += 2 * mu * n / max(n * m, 1)
            offset -= mu * n / max(n * m, 1)
        elif self.kind == "micro_f1":  # 2 tp - C (predicted + positive)
            scale = mu * n / max(q.sum() + pos.sum(), 1)
            if mu >= 100 and q.sum() + pos.sum() > 0:  # out of reach: the most there is
                C = min(C, 2 * tp.sum() / (q.sum() + pos.sum()))
            slope += 2 * scale
            offset -= C * scale
        elif self.kind == "labels_per_row":
            offset -= mu / C
        elif self.kind == "predicted_rate":
            offset -= 0.3 * mu / C * one
        elif self.kind == "precision":
            slope += dear * mu * n / max((q[j] + pos[j]) / 2, 1) * one
            offset -= C * slope
        elif self.kind == "recall":
            slope += mu * n / max(pos[j], 1) * one
        else:  # macro_recall
            slope += mu * n / np.maximum(pos, 1) / m
        return slope, offset

    def excess(self, yhat, y, n=1.0):
        """By how much n rows, summed, miss the limit; y may be estimates."""
        C, m, j = self.C, self.m, self.j
        if self.kind == "labels_per_row":
            return yhat.sum() / C - n
        if self.kind == "predicted_rate":
            return yhat[j] / C - n
        hit = y["hit"]
        y = y["true"]
        if self.kind == "micro_precision":
            return C * yhat.sum() - hit.sum()
        if self.kind == "micro_recall":
            return C * y.sum() - hit.sum()
        if self.kind == "micro_specificity":
            tn = n * m - yhat.sum() - y.sum() + hit.sum()
            return C * (n * m - y.sum()) - tn
        if self.kind == "micro_accuracy":
            right = n * m - yhat.sum() - y.sum() + 2 * hit.sum()
            return C * n * m - right
        if self.kind == "micro_f1":
            return C * (yhat.sum() + y.sum()) - 2 * hit.sum()
        if self.kind == "precision":
            return C * yhat[j] - hit[j]
        return C * y[j] - hit[j]  # recall

    def draws(self, n, q, pos):
        """The denominator of the rate so far."""
        m, j = self.m, self.j
        return {
            "micro_precision": lambda: q.sum(),
            "micro_recall": lambda: pos.sum(),
            "micro_specificity": lambda: n * m - pos.sum(),
            "micro_accuracy": lambda: n * m,
            "micro_f1": lambda: q.sum() + pos.sum(),
            "precision": lambda: q[j],
            "recall": lambda: pos[j],
        }[self.kind]()

    def has_room(self, n, tp, q, pos):
        """Whether the rows so far do better than the limit asks for."""
        if self.kind == "macro_recall":
            some = pos > 0
            return (tp[some] / pos[some] - self.C).sum() > 0
        return self.excess(q, {"hit": tp, "true": pos}, n) < 0

    def after(self, n, tp, q, pos, yhat, y, weight=1.0, estimates=None, ease=0.0):
        """Counts include the row; y is None where its labels are unknown."""
        steady = self.kind in ("labels_per_row", "predicted_rate")
        counted = not steady and self.kind != "macro_recall"
        if y is None and not steady:
            return
        if self.kind == "macro_recall":
            some = pos > 0
            now = n * (self.C - tp[some] / pos[some]).sum() / self.m
            r, self.before = (now - self.before) / weight, now
        else:
            if counted and estimates is not None:  # worth as much as 20 labels
                w = 20 * weight / (20 * weight + self.draws(n, q, pos))
                y = (1 - w) * y + w * estimates
            r = self.excess(yhat, None if y is None else {"hit": y * yhat, "true": y})
        self.V += (weight * r) ** 2
        slow = 1 + 100 * weight / n if counted else 1.0
        place = self.mu if self.mu < 1 else 1 + np.log(self.mu)
        place = max(0.0, place + 0.7 * weight * r / np.sqrt(self.V * slow) - ease * place)
        self.mu = place if place < 1 else min(np.exp(place - 1), 1000.0)
        place = self.mu if self.mu < 1 else 1 + np.log(self.mu)
        # Of t rows, row i weighs about i ** 2.
        self.mean += min(3 * weight / (n + 2 * weight), 1.0) * (place - self.mean)


def move(prices, n, tp, q, pos, yhat, y, weight=1.0, estimates=None):
    """All prices after a row: several fall by themselves where all limits have room."""
    room = all(price.has_room(n, tp, q, pos) for price in prices)
    ease = 0.5 * weight / (n + 100 * weight) if len(prices) > 1 and room else 0.0
    for price in prices:
        price.after(n, tp, q, pos, yhat, y, weight, estimates, ease)


class LimitedAuto(naive_auto.Auto):
    """The slow twin of `omma.Auto` with prices, on counts of true labels."""

    def __init__(self, metric, m, prices, **budget):
        super().__init__(metric, m, **budget)
        self.prices, self.known, self.q_y = prices, 0.0, np.zeros(m)

    def rule(self, idx):
        slope, offset = super().rule(idx)
        slope, offset = (x if self.micro else x / self.m for x in (slope, offset))
        for price in self.prices:
            more = price.at(self.known, self.tp_y, self.q_y, self.pos_y)
            slope, offset = slope + more[0][idx], offset + more[1][idx]
        return slope, offset

    def update(self, y=None, chosen=()):
        super().update(y)
        idx, c, _, _ = self.last
        estimates = np.zeros(self.m)
        estimates[idx] = c
        yhat = np.zeros(self.m)
        yhat[list(chosen)] = 1.0
        true = None
        if y is not None:
            true = np.zeros(self.m)
            true[np.asarray(y, int)] = 1.0
            self.known += 1
            self.q_y += yhat
        counts = (self.known, self.tp_y, self.q_y, self.pos_y)
        move(self.prices, *counts, yhat, true, estimates=estimates)


class Plain:
    """OMMA with prices: counts of labels, or of probabilities in their place."""

    def __init__(self, metric, m, prices, feedback="labels", k=None, at_most=None):
        self.kind, self.micro = naive_auto.METRICS[metric], metric.startswith("micro")
        self.m, self.prices, self.feedback, self.k, self.at_most = m, prices, feedback, k, at_most
        self.tp, self.q, self.pos = np.zeros((3, m))
        self.n = 0.0

    def predict(self, eta):
        cells, w = (self.tp, self.q, self.pos), 1.0
        if self.micro:
            cells, w = tuple(one.sum() for one in cells), self.m
        inv = 1.0 / (self.n + 4 * LAM)
        t, q, p = (
            (one + times * LAM * w) * inv for one, times in zip(cells, (1, 2, 2), strict=True)
        )
        slope, offset = naive_auto.gradient(self.kind, t, q, p, w)
        shared = 1.0 if self.micro else self.m
        slope, offset = (np.zeros(self.m) + x / shared for x in (slope, offset))
        for price in self.prices:
            more = price.at(self.n, self.tp, self.q, self.pos)
            slope, offset = slope + more[0], offset + more[1]
        gain = np.where(eta > 0, slope * eta + offset, -np.inf)
        yhat = np.zeros(self.m)
        order = np.argsort(-gain, kind="stable")
        if self.k is not None:
            yhat[order[: self.k]] = 1
        elif self.at_most is not None:
            yhat[[j for j in order[: self.at_most] if gain[j] >= 0]] = 1
        else:
            yhat[gain >= 0] = 1
        return yhat

    def update(self, eta, y, yhat, weight=1.0):
        y = eta if self.feedback == "estimates" else y
        self.n += weight
        self.tp += weight * y * yhat
        self.q += weight * yhat
        self.pos += weight * y
        move(self.prices, self.n, self.tp, self.q, self.pos, yhat, y, weight)

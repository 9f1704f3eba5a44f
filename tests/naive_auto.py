"""The slow twin of ``omma.Auto``: row by row, in plain NumPy, with no code shared.

One object per stream.  `predict(eta, idx)` decides, `update(y)` counts (y=None: no labels came).
Rows are given by their stored entries: `eta` (values) at `idx` (labels).  eta = 0 is never a candidate.

Names: tp, pos: counts of true labels;  _y: of labels, _e: of calibrated estimates over the rows that had labels,
_a: of calibrated estimates over all rows.  q: predicted.

Constants (fixed for everything)
    LAM   = 0.01   prior in each of the four cells, added where a gradient is taken
    HJ0   = 10     precision of each label's bias before the first row
    WAIT  = 0.3    a label that was never predicted asks for less than a half after WAIT / 2 positives
    SURE  = 6      logits of labels beyond are squashed

Calibration: x = (z - mean_j, mean_j, 1), c = sigmoid(theta x + b_j), theta = (a, e, b) from (1, 1, 0).
Means of logits follow every decided row, and the features of its labels are taken after that; a row is
decided by the means before it. Decisions take the part T / (T + 2) of the way from (1, 1, 0) to theta, where
T is Wald's statistic; errors are those of theta itself.
"""

import numpy as np

LAM, HJ0, WAIT, SURE, EPS = 0.01, 10.0, 0.3, 6.0, 1e-9
START = np.array([1.0, 1.0, 0.0])

# name: (kind, average, default k)
METRICS = {
    "macro_f1": "f1",
    "micro_f1": "f1",
    "macro_recall": "recall",
    "macro_precision": "precision",
    "macro_gmean": "gmean",
    "macro_hmean": "hmean",
    "macro_mcc": "mcc",
    "f1": "f1",
    "mcc": "mcc",
    "multiclass_gmean": "class_g",
    "multiclass_hmean": "class_h",
    "multiclass_qmean": "class_q",
    "multiclass_min_recall": "class_min",
}


def gradient(kind, t, q, p, n=1.0, power=4.0):
    """Slope = d psi / d tp and offset = d psi / d predicted, at fractions (cells / n)."""
    if kind == "f1":
        d = 1.0 / (p + q + EPS)
        return 2.0 * d, -2.0 * t * d * d
    if kind == "recall":
        return 1.0 / (p + EPS), 0.0 * p
    if kind == "precision":
        d = 1.0 / (q + EPS)
        return d, -t * d * d
    if kind in ("gmean", "hmean"):
        tn = np.maximum(n - q - p + t, 0.0)
        P, N = p + EPS, n - p + EPS
        if kind == "gmean":
            half = 0.5 / np.sqrt(P * N * (t + 1e-12 * P) * (tn + 1e-12 * N))
            by_tp, by_tn = tn * half, t * half
        else:
            r, s = t / P, tn / N
            i = 1.0 / (r + s + EPS)
            by_tp, by_tn = 2 * i * i * s * (s + EPS) / P, 2 * i * i * r * (r + EPS) / N
        return by_tp + by_tn, -by_tn
    if kind == "class_g":  # of log G-mean; what all classes share drops out of the ranking
        return 1.0 / (t + EPS), 0.0 * t
    if kind == "class_h":
        return (p + EPS) / (t + EPS) ** 2, 0.0 * t
    if kind == "class_q":
        return (1.0 - t / (p + EPS)) / (p + EPS), 0.0 * t
    if kind == "class_min":  # the power mean of order 1 - power, which follows the smallest rates
        return np.maximum(t / (p + EPS), 1e-3) ** -power / (p + EPS), 0.0 * t
    cov, qv, pv = t * n - q * p, q * (n - q), p * (n - p)  # mcc
    i = 1.0 / (np.sqrt(np.maximum(qv * pv, 0.0)) + EPS)
    return n * i, -(p + cov * i * 0.5 * pv * (n - 2 * q) * i) * i


HITS, POSITIVES = 5.0, 10.0  # strengths of the correction by labels


def shrunk(y, e, a, s, rest):
    """Labels y, estimates e of the same rows, estimates a of all rows.

    e (y + s) / (e + s)  +  (a - e) (y + rest) / (e + rest); with all rows labelled the second part is 0.
    """
    y, e, a = np.broadcast_arrays(np.asarray(y, float), e, a)
    seen = e * (y + s) / (e + s)
    return np.where(e > 0, seen + (a - e) * (y + rest) / (e + rest), y + a - e)


def logits(eta, classes=False):
    """Logits of probabilities; those of labels beyond SURE are squashed."""
    x = np.clip(np.asarray(eta, float), 1e-12, 1 - 1e-7)
    z = np.log(x) - np.log1p(-x)
    far = (np.abs(z) > SURE) & (not classes)
    return np.where(far, np.sign(z) * (2 * SURE - SURE**2 / np.maximum(np.abs(z), SURE)), z)


def start_curvature(W, N):
    """What is known of theta before the first row: H0."""
    return np.diag([3.0 * max(W / N if N else 0.0, 1e-6), 30.0, 1.0])


class Auto:
    def __init__(self, metric, m, k=None, at_most=None):
        self.metric, self.kind, self.m = metric, METRICS[metric], m
        self.micro, self.classes = metric.startswith("micro_"), metric.startswith("multiclass_")
        self.k = 1 if k is None and self.classes and at_most is None else k
        self.at_most = at_most
        self.tp_y, self.pos_y, self.tp_e, self.pos_e = np.zeros((4, m))
        self.tp_a, self.pos_a, self.q = np.zeros((3, m))
        self.n = 0.0
        self.labelled = False  # until a label came the calibrator is skipped: eta is used as it is
        self.theta, self.H = START.copy(), np.zeros((3, 3))
        self.b, self.h, self.mean, self.entries = np.zeros((4, m))
        self.W = self.N = 0.0

    # -- decide ---------------------------------------------------------------------------------------------
    def calibrate(self, eta, idx):
        """(calibrated estimates c, logits z)."""
        eta = np.asarray(eta, float)
        z = logits(eta, self.classes)
        if not self.labelled:
            return eta.copy(), z
        c = self.curve(START + self.trust() * (self.theta - START), idx, z)
        return np.where(eta > 0, c, 0.0), z  # a stored zero is as good as none

    def trust(self):
        """The part of the correction that is made."""
        away = self.theta - START
        evidence = away @ self.H @ away
        return evidence / (evidence + 2.0)

    def features(self, idx, z):
        return np.stack([z - self.mean[idx], self.mean[idx], np.ones_like(z)])

    def curve(self, theta, idx, z):
        return 1.0 / (1.0 + np.exp(-(theta @ self.features(idx, z) + self.b[idx])))

    def cells(self, idx):
        """(tp, predicted, positive) where the gradient is taken, without the prior."""
        if self.micro:
            tp_y, pos_y, tp_e, pos_e, tp_a, pos_a, q = (
                getattr(self, x).sum()
                for x in ("tp_y", "pos_y", "tp_e", "pos_e", "tp_a", "pos_a", "q")
            )
        else:
            tp_y, pos_y, tp_e, pos_e, tp_a, pos_a, q = (
                getattr(self, x)[idx]
                for x in ("tp_y", "pos_y", "tp_e", "pos_e", "tp_a", "pos_a", "q")
            )
        t = shrunk(tp_y, tp_e, tp_a, HITS, POSITIVES)
        p = shrunk(pos_y, pos_e, pos_a, POSITIVES, POSITIVES)
        t = np.minimum(np.minimum(t, p), q)
        # The first prediction of a label; before the first label has come, estimates decide as they
        # do alone.
        eager = self.kind in ("precision", "mcc") and not self.micro
        if eager and self.labelled:
            u = 2.0 * p / WAIT
            t = np.where((q == 0) & (u > 1), LAM * (1 - u) / (1 + u), t)
        return t, q, p

    def rule(self, idx):
        t, q, p = self.cells(idx)
        w = self.m if self.micro else 1.0
        inv = 1.0 / (self.n + 4 * LAM)
        return gradient(
            self.kind, (t + LAM * w) * inv, (q + 2 * LAM * w) * inv, (p + 2 * LAM * w) * inv, w
        )

    def predict(self, eta, idx=None):
        idx = np.arange(self.m) if idx is None else np.asarray(idx)
        c, z = self.calibrate(eta, idx)
        slope, offset = self.rule(idx)
        gain = np.where(np.asarray(eta) > 0, slope * c + offset, -np.inf)
        yhat = np.zeros(len(idx), bool)
        if self.k is None and self.at_most is None:
            yhat = gain >= 0
        else:
            best = np.argsort(-gain, kind="stable")[: self.k or self.at_most]
            yhat[best] = np.isfinite(gain[best])
            if self.at_most is not None:
                yhat &= gain >= 0
        self.last = idx, c, z, yhat
        return idx[yhat]

    # -- learn ----------------------------------------------------------------------------------------------
    def update(self, y=None, unknown=(), audit=0.0):
        """y: the indexes of the true labels, or None where they are unknown.

        unknown: the indexes of labels of which it is not known whether the row has them.
        audit: not zero where labels are seen because they were predicted: -1, or in an audited row
        what its entries weigh in calibration that were not predicted.
        """
        idx, c, z, yhat = self.last
        self.n += 1
        self.q[idx] += yhat
        self.tp_a[idx] += c * yhat
        self.pos_a[idx] += c
        for j, value, logit in zip(idx, c, z, strict=True):
            if value > 0:  # a stored zero is as good as none
                self.entries[j] += 1
                d = logit - self.mean[j]
                self.mean[j] += d / self.entries[j]
                self.W += d * (logit - self.mean[j])
                self.N += 1
        if y is None:
            return
        self.labelled = True
        true, known = np.zeros(self.m), np.ones(self.m)
        true[np.asarray(y, int)] = 1.0
        known[np.asarray(unknown, int)] = 0.0
        if audit < 0:  # nobody saw what was not predicted
            known = np.zeros(self.m)
            known[idx[yhat]] = 1.0
            true *= known
        c, yhat = c * known[idx], yhat * known[idx]
        self.pos_y += true  # also where nothing is stored
        y = true[idx]
        self.tp_y[idx] += y * yhat
        self.tp_e[idx] += c * yhat
        self.pos_e[idx] += c
        self.fit(idx, c > 0, z, y)
        if audit > 1:
            self.fit(idx, c * (1 - yhat) > 0, z, y, audit - 1)

    def fit(self, idx, known, z, y, weight=1.0):
        """Newton's step of the calibrator, at the curvature added up so far."""
        c = self.curve(self.theta, idx, z)
        g = (c - y) * known
        w = np.maximum(c * (1 - c), g * g) * known
        x = self.features(idx, z)
        self.H += weight * (x * w) @ x.T
        self.h[idx] += weight * w
        # b has corrected 1 / m of it.
        self.b[idx] -= (1.0 - 1.0 / self.m) * weight * g / (HJ0 + self.h[idx])
        H = start_curvature(self.W, self.N) + self.H
        if np.linalg.det(H) > 1e-9 * np.prod(np.diag(H)):
            self.theta = self.theta - np.linalg.solve(H, weight * (x @ g))
            self.theta[:2] = np.clip(self.theta[:2], 0.05, 1000.0)

    # -- merge ----------------------------------------------------------------------------------------------
    def __add__(self, other):
        new = Auto(self.metric, self.m, self.k, self.at_most)
        for x in ("tp_y", "pos_y", "tp_e", "pos_e", "tp_a", "pos_a", "q", "n"):
            setattr(new, x, getattr(self, x) + getattr(other, x))
        new.labelled = self.labelled or other.labelled
        new.entries, new.N = self.entries + other.entries, self.N + other.N
        some = np.maximum(new.entries, 1e-300)
        new.mean = (self.entries * self.mean + other.entries * other.mean) / some
        apart = self.entries * other.entries / some * (self.mean - other.mean) ** 2
        new.W = self.W + other.W + apart.sum()
        new.H, new.h = self.H + other.H, self.h + other.h
        pull = sum(
            (start_curvature(one.W, one.N) + one.H) @ (one.theta - START) for one in (self, other)
        )
        new.theta = START + np.linalg.solve(start_curvature(new.W, new.N) + new.H, pull)
        new.b = ((HJ0 + self.h) * self.b + (HJ0 + other.h) * other.b) / (HJ0 + new.h)
        return new


def whole_gradient(eta, y, weights, theta, bias, classes=False):
    """The gradient of the loss that calibration by all rows minimizes, an entry at a time."""
    m, stored = len(bias), eta > 0.0
    z, mean, W, N = logits(eta, classes), np.zeros(m), 0.0, 0.0
    for j in range(m):
        known = weights * stored[:, j]
        if known.sum() > 0:
            mean[j] = (known * z[:, j]).sum() / known.sum()
        W, N = W + (known * (z[:, j] - mean[j]) ** 2).sum(), N + known.sum()
    start = np.diag(start_curvature(W, N))
    found = np.concatenate((start * (theta - START), HJ0 * np.asarray(bias, dtype=float)))
    for i in range(len(eta)):
        for j in np.flatnonzero(stored[i]):
            x = np.array([z[i, j] - mean[j], mean[j], 1.0])
            error = weights[i] * (1.0 / (1.0 + np.exp(-(theta @ x + bias[j]))) - y[i, j])
            found[:3] += error * x
            found[3 + j] += error
    return found

"""The slow twin of ``omma.Auto``: row by row, in plain NumPy, with no code shared.

One object per stream.  `predict(eta, idx)` decides, `update(y)` counts (y=None: no labels came).
Rows are given by their stored entries: `eta` (values) at `idx` (labels).  eta = 0 is never a candidate.

Names: tp, pos: counts of true labels;  _y: of labels, _e: of calibrated estimates over the rows that had labels,
_a: of calibrated estimates over all rows.  q: predicted.

Constants (fixed for everything)
    LAM   = 1e-6   prior in each of the four cells, added where a gradient is taken
    S     = 10     strength of the shrinkage of tp and of positive
    S_LUCK = 1     strength of tp for macro precision
    S_HIT = 0.1    strength of tp for a class that occurred and was never hit (geometric mean over classes only)
    H0    = 3      start of the shared 2x2 precision (H = 3 I)
    HJ0   = 4      start of each label's precision
"""

import numpy as np

LAM, S, S_LUCK, S_HIT, H0, HJ0, EPS = 1e-6, 10.0, 1.0, 0.1, 3.0, 4.0, 1e-9

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


def shrunk(y, e, a, s):
    """Labels y, estimates e of the same rows, estimates a of all rows.

    e (y + s) / (e + s)  +  (a - e) (y + S) / (e + S); with all rows labelled the second part is 0.
    """
    y, e, a = np.broadcast_arrays(np.asarray(y, float), e, a)
    seen = e * (y + s) / (e + s)
    return np.where(e > 0, seen + (a - e) * (y + S) / (e + S), y + a - e)


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
        self.theta, self.H = np.array([1.0, 0.0]), H0 * np.eye(2)
        self.b, self.h = np.zeros(m), np.full(m, HJ0)

    # -- decide ---------------------------------------------------------------------------------------------
    def calibrate(self, eta, idx):
        """(calibrated estimates c, logits z)."""
        eta = np.asarray(eta, float)
        x = np.clip(eta, 1e-12, 1 - 1e-7)
        z = np.log(x) - np.log1p(-x)
        if not self.labelled:
            return eta.copy(), z
        c = 1.0 / (1.0 + np.exp(-(self.theta[0] * z + self.theta[1] + self.b[idx])))
        return np.where(eta > 0, c, 0.0), z  # a stored zero is as good as none

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
        luck = self.kind == "precision" and not self.micro
        s = S_LUCK if luck else S
        if self.kind == "class_g":
            s = np.where((tp_y == 0) & (pos_y > 0), S_HIT, S)
        t = shrunk(tp_y, tp_e, tp_a, s)
        p = shrunk(pos_y, pos_e, pos_a, S)
        t = np.minimum(np.minimum(t, p), q)
        # The first prediction of a label asks for 1 / (1 + p / 5), and for no more than 1/2; before
        # the first label has come, estimates decide as they do alone.
        if luck and self.labelled:
            asked = 1.0 / (1.0 + np.maximum(p / 5.0, 1.0))
            t = np.where(q > 0, t, 2.0 * LAM * asked - LAM)
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
    def update(self, y=None, unknown=()):
        """y: the indexes of the true labels, or None where they are unknown.

        unknown: the indexes of labels of which it is not known whether the row has them.
        """
        idx, c, z, yhat = self.last
        self.n += 1
        self.q[idx] += yhat
        self.tp_a[idx] += c * yhat
        self.pos_a[idx] += c
        if y is None:
            return
        self.labelled = True
        true, known = np.zeros(self.m), np.ones(self.m)
        true[np.asarray(y, int)] = 1.0
        known[np.asarray(unknown, int)] = 0.0
        c, yhat = c * known[idx], yhat * known[idx]
        self.pos_y += true  # also where nothing is stored
        y = true[idx]
        self.tp_y[idx] += y * yhat
        self.tp_e[idx] += c * yhat
        self.pos_e[idx] += c
        g = (c - y) * (c > 0)
        w = np.maximum(c * (1 - c), g * g) * (c > 0)
        x = np.stack([z, np.ones_like(z)])
        self.H += (x * w) @ x.T
        self.h[idx] += w
        self.b[idx] -= (1.0 - 1.0 / self.m) * g / self.h[idx]  # b has corrected 1 / m of it
        det = self.H[0, 0] * self.H[1, 1] - self.H[0, 1] ** 2
        if det > 1e-9 * self.H[0, 0] * self.H[1, 1]:
            self.theta = self.theta - np.linalg.solve(self.H, x @ g)
            self.theta[0] = np.clip(self.theta[0], 0.05, 20.0)

    # -- merge ----------------------------------------------------------------------------------------------
    def __add__(self, other):
        new = Auto(self.metric, self.m, self.k, self.at_most)
        for x in ("tp_y", "pos_y", "tp_e", "pos_e", "tp_a", "pos_a", "q", "n"):
            setattr(new, x, getattr(self, x) + getattr(other, x))
        new.labelled = self.labelled or other.labelled
        new.H = self.H + other.H - H0 * np.eye(2)
        start = np.array([1.0, 0.0])
        new.theta = np.linalg.solve(new.H, self.H @ self.theta + other.H @ other.theta - H0 * start)
        new.theta[0] = np.clip(new.theta[0], 0.05, 20.0)
        new.h = self.h + other.h - HJ0
        new.b = (self.h * self.b + other.h * other.b) / new.h
        return new


def whole_gradient(eta, y, weights, a, b, bias):
    """The gradient of the loss that calibration by all rows minimizes, an entry at a time."""
    found = np.concatenate(([H0 * (a - 1.0), H0 * b], HJ0 * np.asarray(bias, dtype=float)))
    for i in range(len(eta)):
        for j in range(len(bias)):
            if eta[i, j] <= 0.0:
                continue
            p = min(max(eta[i, j], 1e-12), 1.0 - 1e-7)
            z = np.log(p / (1.0 - p))
            error = weights[i] * (1.0 / (1.0 + np.exp(-(a * z + b + bias[j]))) - y[i, j])
            found[0] += error * z
            found[1] += error
            found[2 + j] += error
    return found

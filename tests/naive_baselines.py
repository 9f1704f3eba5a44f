"""Slow textbook twins of the baselines, and streams to run them on; nothing here is of `omma`.

Greedy is the expected utility worked out label by label (and, for a few labels, over every
outcome), OFO its two counters, Frank-Wolfe the loop of the textbook with gradients by finite
differences, and the best mixture there is what a general solver finds. Layouts and utilities are
those of `naive`.
"""

import struct
from itertools import product

import naive
import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from streams import (
    class_stream as class_stream,
    dense as dense,
    one_hot as one_hot,
    stream as stream,
)

EPS = 1e-9
PRIORS = (0.0, 1e-6, 1e-3, 0.1, 1.0)
FEEDBACK = ("labels", "estimates")
LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}


# Streams


def row_of(matrix, t):
    """Row t as a learner takes it: a vector, or a sparse matrix of one row."""
    return matrix[[t]] if sparse.issparse(matrix) else matrix[t]


def stepped(learner, eta, y=None, weights=None, rows=None):
    """The predictions of a learner that is given one row after another, in rows' own places."""
    predictions = np.zeros(eta.shape, dtype=np.int8)
    for t in range(eta.shape[0]) if rows is None else rows:
        predictions[t] = dense(learner.predict(row_of(eta, t))).ravel()
        weight = 1.0 if weights is None else float(weights[t])
        learner.update(None if y is None else row_of(y, t), weight=weight)
    return predictions


def agree(ours, theirs, gains, k, tolerance=1e-7):
    """Compare decisions row by row up to the first that hangs on a tie; how many were compared."""
    for t, (mine, its) in enumerate(zip(dense(ours), theirs, strict=True)):
        if (mine != its).any():
            differing = gains[t][mine != its]
            gap = np.ptp(differing) if k else abs(differing).max()
            assert gap <= tolerance * abs(gains[t]).max(), f"row {t}: {mine} is not {its}"
            return t
    return len(theirs)


# Greedy


def fractions(counts, rows):
    """Counts divided by the rows counted, or by the number of rows that will come."""
    return naive.normalize(counts) if rows is None else counts / rows


def expected(f, counts, eta, prediction, eps=EPS, rows=None):
    """E over y in {0, 1} of a label's metric, the row (y, prediction) counted in."""
    worth = []
    for y in (1, 0):
        more = np.array([y * prediction, (1 - y) * prediction, y * (1 - prediction), 0.0])
        more[3] = 1 - more.sum()
        worth.append(f(*fractions(counts + more, rows), eps))
    return eta * worth[0] + (1 - eta) * worth[1]


def at_expected(f, counts, eta, prediction, eps=EPS, rows=None):
    """A label's metric at the counts expected once the row is counted in: the plug-in."""
    p = prediction
    more = np.array([eta * p, (1 - eta) * p, eta * (1 - p), (1 - eta) * (1 - p)])
    return f(*fractions(counts + more, rows), eps)


def greedy(
    f,
    eta,
    y,
    k=None,
    feedback="labels",
    prior=1e-6,
    weights=None,
    expectation=expected,
    eps=EPS,
    rows=None,
):
    """Predict where the expected macro metric is no less with the label than without it.

    Other labels add the same to both sides, so the difference is that of one label, over m.
    Returns predictions and differences, both (n, m).
    """
    eta = naive.as_columns(eta)
    labels = naive.as_columns(naive.seen(y, eta, feedback))
    n, m = eta.shape
    weights = np.ones(n) if weights is None else weights
    counts = np.full((m, 4), float(prior))
    predictions, gains = np.zeros((n, m), dtype=int), np.zeros((n, m))
    for t in range(n):
        for j in range(m):
            with_it, without = (expectation(f, counts[j], eta[t, j], p, eps, rows) for p in (1, 0))
            gains[t, j] = (with_it - without) / m
        predictions[t] = naive.choose(gains[t], eta[t], k)
        counts += naive.cells(labels[[t]], predictions[[t]], weights[t : t + 1])
    return predictions, gains


def expected_utility(psi, counts, eta, prediction, eps=EPS):
    """E over every outcome y of a row of psi, the row counted in: nothing is decomposed."""
    total = 0.0
    for y in product((0, 1), repeat=len(eta)):
        chance = np.prod([p if one else 1 - p for p, one in zip(eta, y, strict=True)])
        total += chance * psi(naive.label_fractions(counts + naive.cells([y], [prediction])), eps)
    return total


def allowed(m, k):
    """Every prediction of m labels: all of them, or those of exactly k."""
    return [p for p in product((0, 1), repeat=m) if k is None or sum(p) == k]


# OFO


def ofo(eta, y, average="macro", feedback="labels", prior=1e-6, weights=None):
    """Predict where eta >= a / b; a counts hits and b labels and predictions, from the prior.

    Counted over all labels together, the prior is there once for each of them.
    Returns predictions and how far each probability is above its threshold (where b = 0: by all).
    """
    labels = naive.seen(y, eta, feedback)
    n, m = eta.shape
    weights = np.ones(n) if weights is None else weights
    prior *= m if average == "micro" else 1
    a, b = np.full(m, float(prior)), np.full(m, float(prior))
    predictions, above = np.zeros((n, m), dtype=int), np.zeros((n, m))
    for t in range(n):
        above[t] = [eta[t, j] - naive.divide(a[j], b[j]) for j in range(m)]
        predictions[t] = naive.choose(above[t], eta[t])
        hits, seen = labels[t] * predictions[t], labels[t] + predictions[t]
        a += weights[t] * (hits if average == "macro" else hits.sum())
        b += weights[t] * (seen if average == "macro" else seen.sum())
    return predictions, above


# Frank-Wolfe


def decide_all(slope, offset, eta, k):
    return np.array([naive.choose(slope * row + offset, row, k) for row in eta])


def frank_wolfe(psi, eta, labels, k, prior, iterations, eps=EPS):
    """The textbook's loop with steps 2 / (i + 2): rules (slope, offset), shares and gaps.

    `labels` may be soft. Gradients are those of psi at the mixture's cells with the prior added.
    """
    m = eta.shape[1]
    rules = [(np.ones(m), np.full(m, -0.5 if k is None else 0.0))]
    shares, gaps = [1.0], []
    mixed = naive.cells(labels, decide_all(*rules[0], eta, k))
    for i in range(iterations):
        slope, offset = naive.slope_offset(psi, naive.label_fractions(mixed + prior), eps)
        corner = naive.cells(labels, decide_all(slope, offset, eta, k))
        tp, predicted = (corner - mixed)[:, 0], (corner - mixed)[:, :2].sum(axis=1)
        gaps.append((slope @ tp + offset @ predicted) / len(eta))
        step = 2 / (i + 2)
        mixed += step * (corner - mixed)
        shares = [(1 - step) * share for share in shares] + [step]
        rules.append((slope, offset))
    return rules, np.array(shares), gaps


def classifiers(n, m, k):
    """Every deterministic classifier of n rows, as (n, m) indicators."""
    return (np.array(rows) for rows in product(allowed(m, k), repeat=n))


def utility_of(name, labels, p, prior=0.0, eps=EPS):
    """A utility of classifiers that predict label j of row t with probability p[t, j]."""
    if name.startswith("multiclass_"):
        return naive.utility(name)(naive.normalize(labels.T @ p), eps)
    tp, predicted, positive = (labels * p).sum(0), p.sum(0), labels.sum(0)
    tn = len(p) - predicted - positive + tp
    cells = np.stack((tp, predicted - tp, positive - tp, tn), axis=1)
    return naive.utility(name)(naive.label_fractions(cells + prior), eps)


def best_mixture(name, labels, k=None, prior=0.0, starts=3):
    """The most that a mixture of any classifiers of the rows can be worth, by a general solver.

    Mixtures are probabilities p[t, j], each row adding up to the budget if there is one.
    """
    n, m = labels.shape
    rows = np.kron(np.eye(n), np.ones(m))
    within = [] if k is None else [{"type": "eq", "fun": lambda p: rows @ p - k}]
    found = []
    for seed in range(starts):
        rng = np.random.default_rng(seed)
        start = rng.uniform(0.3, 0.7, (n, m))
        if k is not None:
            start *= k / start.sum(axis=1, keepdims=True)
        solution = minimize(
            lambda p: -utility_of(name, labels, p.clip(0, 1).reshape(n, m), prior),
            start.ravel(),
            method="SLSQP",
            bounds=[(0, 1)] * (n * m),
            constraints=within,
            options={"maxiter": 300, "ftol": 1e-10},
        )
        found.append(-solution.fun)
    return max(found)


# The draws of mixtures

MASK = 2**64 - 1


def splitmix(z):
    """The finalizer of SplitMix64, on Python's own integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def fingerprint(row):
    """A number in [0, 1) from the probabilities above zero of a row and their places."""
    total = 0
    for j, value in enumerate(row):
        if value > 0:
            (bits,) = struct.unpack("<Q", struct.pack("<d", float(value)))
            total += splitmix(bits ^ splitmix((j + 1) * 0x9E3779B97F4A7C15 & MASK))
    return (splitmix((total + 0x9E3779B97F4A7C15) & MASK) >> 11) * 2.0**-53


# Online Frank-Wolfe


def run_rows(n, first=10.0, growth=1.1):
    """After how many rows the offline algorithm is run again, up to n."""
    rows, due, runs = [], first, 0
    while int(due) <= n:
        rows.append(int(due))
        runs += 1
        due += first * growth**runs
    return rows


def online_frank_wolfe(fit, eta, y, k=None, first=10.0, growth=1.1, history=None, seed=0):
    """Decide each row by a rule drawn from the latest mixture, fitted again when it is due.

    `fit(rows)` returns the rules (slope, offset) of a mixture for those rows, and its shares.
    """
    n, m = eta.shape
    drawn = np.random.Generator(np.random.PCG64(seed)).random(n)
    drawn = np.array([(u + fingerprint(row)) % 1.0 for u, row in zip(drawn, eta, strict=True)])
    rules, shares = [(np.ones(m), np.full(m, -0.5 if k is None else 0.0))], [1.0]
    due = run_rows(n, first, growth)
    predictions = np.zeros((n, m), dtype=int)
    for t in range(n):
        if t in due:
            rules, shares = fit(np.arange(0 if history is None else max(0, t - history), t))
        at, total = 0, shares[0]
        while drawn[t] >= total and at < len(shares) - 1:
            at += 1
            total += shares[at]
        slope, offset = rules[at]
        predictions[t] = naive.choose(slope * eta[t] + offset, eta[t], k)
    return predictions

"""The paper's decisions, from its formulas written out by hand; nothing here is of `omma`.

Where `naive` takes derivatives by differences in 60 digits, this file has them as a reader of the
paper works them out: of the four cells of each label, C = (tp, fp, fn, tn) with λ added to each and
divided by their sum, ε in every denominator. A gain is Σ over outcomes of ∂ψ/∂C, as in the paper's
algorithm. So two twins that share nothing agree with each other, or one of them is wrong.
"""

import numpy as np

EPS = 1e-9


# ψ of one label and its derivatives by (tp, fp, fn, tn)


def f1(tp, fp, fn, tn, eps):
    d = 2 * tp + fp + fn + eps
    return 2 * tp / d, (2 * (fp + fn + eps) / d**2, -2 * tp / d**2, -2 * tp / d**2, 0.0)


def precision(tp, fp, fn, tn, eps):
    d = tp + fp + eps
    return tp / d, ((fp + eps) / d**2, -tp / d**2, 0.0, 0.0)


def recall(tp, fp, fn, tn, eps):
    d = tp + fn + eps
    return tp / d, ((fn + eps) / d**2, 0.0, -tp / d**2, 0.0)


def specificity(tp, fp, fn, tn, eps):
    d = tn + fp + eps
    return tn / d, (0.0, -tn / d**2, 0.0, (fp + eps) / d**2)


def jaccard(tp, fp, fn, tn, eps):
    d = tp + fp + fn + eps
    return tp / d, ((fp + fn + eps) / d**2, -tp / d**2, -tp / d**2, 0.0)


def mean_of_rates(value, by_r, by_s):
    """A function of recall r and specificity s, by the chain rule."""

    def psi(tp, fp, fn, tn, eps):
        r, r_by = recall(tp, fp, fn, tn, eps)
        s, s_by = specificity(tp, fp, fn, tn, eps)
        first, second = by_r(r, s, eps), by_s(r, s, eps)
        by = tuple(first * a + second * b for a, b in zip(r_by, s_by, strict=True))
        return value(r, s, eps), by

    return psi


def root_of_misses(r, s):
    return np.sqrt(((1 - r) ** 2 + (1 - s) ** 2) / 2)


gmean = mean_of_rates(
    lambda r, s, eps: np.sqrt(r * s),
    lambda r, s, eps: np.sqrt(s / r) / 2,
    lambda r, s, eps: np.sqrt(r / s) / 2,
)
hmean = mean_of_rates(
    lambda r, s, eps: 2 * r * s / (r + s + eps),
    lambda r, s, eps: 2 * s * (s + eps) / (r + s + eps) ** 2,
    lambda r, s, eps: 2 * r * (r + eps) / (r + s + eps) ** 2,
)
qmean = mean_of_rates(
    lambda r, s, eps: 1 - root_of_misses(r, s),
    lambda r, s, eps: (1 - r) / (2 * root_of_misses(r, s) + eps),
    lambda r, s, eps: (1 - s) / (2 * root_of_misses(r, s) + eps),
)

LABELS = {
    "f1": f1,
    "precision": precision,
    "recall": recall,
    "jaccard": jaccard,
    "gmean": gmean,
    "hmean": hmean,
    "qmean": qmean,
}


# Gains of a row


def gains_of(by, eta):
    """Predicting turns fn into tp with probability η, and tn into fp with 1 − η."""
    by_tp, by_fp, by_fn, by_tn = by
    return eta * (by_tp - by_fn) + (1 - eta) * (by_fp - by_tn)


def macro_gains(psi, cells, eta, eps):
    return np.array(
        [gains_of(psi(*cell, eps)[1], p) for cell, p in zip(cells, eta, strict=True)]
    ) / len(eta)


def micro_gains(psi, cells, eta, eps):
    by = psi(*cells.mean(axis=0), eps)[1]
    return np.array([gains_of(by, p) for p in eta]) / len(eta)


def class_gains(mean):
    """Means over classes of C_jj / P_j, as far as they rank classes: ∂ψ/∂C_jj, times η_j."""

    def found(cells, eta, eps):
        hits, rows = cells[:, 0], cells[:, 0] + cells[:, 2]
        if mean == "hmean":  # m / Σ P_j / (C_jj + ε)
            return eta * rows / (hits + eps) ** 2
        rate = hits / (rows + eps)
        if mean == "gmean":  # log of the product
            return eta / (rate * (rows + eps))
        return eta * (1 - rate) / (rows + eps)

    return found


def plug_in_gains(psi, counts, eta, eps, rows=None):
    """ψ at the expected counts with the label, less ψ at those without it.

    Counts are divided by ``rows`` as the authors' code does, or by the rows so far.
    """
    gains = []
    for cell, p in zip(counts, eta, strict=True):
        with_it = cell + np.array([p, 1 - p, 0.0, 0.0])
        without = cell + np.array([0.0, 0.0, p, 1 - p])
        total = cell.sum() + 1 if rows is None else rows
        gains.append(psi(*(with_it / total), eps)[0] - psi(*(without / total), eps)[0])
    return np.array(gains) / len(eta)


# Decisions


def best(gains, eta, k):
    """All of gain at least 0, or the k of the largest gain; η = 0 only fills up."""
    order = sorted(range(len(eta)), key=lambda j: (eta[j] <= 0, -gains[j] if eta[j] > 0 else j, j))
    chosen = order[:k] if k is not None else [j for j in order if eta[j] > 0 and gains[j] >= 0]
    out = np.zeros(len(eta), dtype=int)
    out[chosen] = 1
    return out


def decide(gains, eta, y, k, feedback, prior, eps, normal=True):
    """Every row by the cells so far, then counted: `gains(cells, eta_row, eps)`."""
    labels = eta if feedback == "estimates" else y
    counts = np.full((eta.shape[1], 4), float(prior))
    predictions = np.zeros(eta.shape, dtype=int)
    for t in range(len(eta)):
        cells = counts / counts.sum(axis=1, keepdims=True) if normal else counts
        p = predictions[t] = best(gains(cells, eta[t], eps), eta[t], k)
        s = labels[t]
        counts += np.stack((s * p, (1 - s) * p, s * (1 - p), (1 - s) * (1 - p)), axis=1)
    return predictions


def omma(name, eta, y, k, feedback, prior, eps=EPS):
    """Decisions of the paper's algorithm for a metric of the catalogue's name."""
    average, _, of = name.partition("_")
    if average == "multiclass":
        gains = class_gains(of)
    else:
        make = macro_gains if average == "macro" else micro_gains

        def gains(cells, row, eps):
            return make(LABELS[of], cells, row, eps)

    return decide(gains, eta, y, k, feedback, prior, eps)


def greedy(name, eta, y, k, feedback, prior, eps=EPS, rows=None):
    """Decisions of the plug-in Greedy for a macro metric."""
    psi = LABELS[name.removeprefix("macro_")]

    def gains(counts, row, eps):
        return plug_in_gains(psi, counts, row, eps, rows)

    return decide(gains, eta, y, k, feedback, prior, eps, normal=False)


def ofo(average, eta, y, feedback, prior):
    """Predict from η·b ≥ a: a counts hits, b labels and predictions, from λ for each label."""
    labels = eta if feedback == "estimates" else y
    m = eta.shape[1]
    a, b = np.full(m, float(prior)), np.full(m, float(prior))
    predictions = np.zeros(eta.shape, dtype=int)
    for t in range(len(eta)):
        over, under = (a, b) if average == "macro" else (np.full(m, a.sum()), np.full(m, b.sum()))
        p = predictions[t] = (eta[t] > 0) & (eta[t] * under >= over)
        a, b = a + labels[t] * p, b + labels[t] + p
    return predictions


# Frank-Wolfe with steps 2 / (i + 2), by value


def start_of(name, k, m, seed):
    """The rule from which it starts: the top k or η ≥ ½, or slopes and offsets drawn uniformly."""
    if name == "top":
        return np.ones(m), np.full(m, -0.5 if k is None else 0.0)
    generator = np.random.default_rng((seed, 0))
    return generator.random(m), generator.random(m) - 0.5


def frank_wolfe(name, eta, y, k, start, prior, iterations, seed=0, eps=EPS):
    """The value that the mixture reaches on the sample, prior and ε included."""
    psi, m = LABELS[name.removeprefix("macro_")], eta.shape[1]

    def counted(slope, offset):
        p = np.array([best(slope * row + offset, row, k) for row in eta])
        cells = (y * p, (1 - y) * p, y * (1 - p), (1 - y) * (1 - p))
        return np.stack([cell.sum(axis=0) for cell in cells], axis=1).astype(float)

    def fractions(counts):
        return (counts + prior) / (len(eta) + 4 * prior)

    mixed = counted(*start_of(start, k, m, seed))
    for i in range(iterations):
        by = np.array([psi(*cell, eps)[1] for cell in fractions(mixed)]) / m
        offset = by[:, 1] - by[:, 3]
        slope = by[:, 0] - by[:, 2] - offset
        corner = counted(slope, offset)
        mixed += 2 / (i + 2) * (corner - mixed)
    return np.mean([psi(*cell, eps)[0] for cell in fractions(mixed)])

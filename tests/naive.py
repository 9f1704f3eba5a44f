"""Slow textbook twins of `omma`: loops written from the definitions, sharing no code with it.

Layouts: four cells are always (tp, fp, fn, tn), one row per label; a confusion matrix is
[true, predicted]. A utility `psi` takes *fractions* (cells or matrix divided by their total) and
`eps`, which the paper adds to every denominator when it takes a gradient, and never when it
reports a value.

Derivatives are finite differences computed in 60 digits, so no step is too small: they are right
to the last bit of a float. A utility must therefore work on `Decimal` as well as on `float`. Those
below do; your own does when its constants are integers (or pass through `like`) and its square
roots are `np.sqrt`.
"""

from decimal import Decimal, localcontext

import numpy as np

DIGITS = 60
RELATIVE_STEP = Decimal("1e-20")  # squared it is the truncation error; 60 digits leave room for it
STEP_FROM_ZERO = Decimal("1e-30")  # far below eps, the smallest scale on which a utility bends


# Small arithmetic


def divide(a, b):
    """Ratio a / b, where 0/0 (and anything else over 0) is 0: `zero_division=0`."""
    return a * 0 if b == 0 else a / b  # a * 0 is a zero of a's own kind, float or Decimal


def like(x, number):
    """`number` as the kind of number x is, because Python refuses to mix Decimal and float."""
    return Decimal(number) if isinstance(x, Decimal) else number


def normalize(counts):
    """Counts as fractions of their total; all zeros when nothing was counted."""
    counts = np.asarray(counts, dtype=float)
    total = counts.sum()
    return counts / total if total > 0 else np.zeros_like(counts)


def label_fractions(counts):
    """Each label's four cells as fractions of their own sum, shape (m, 4)."""
    return np.array([normalize(label) for label in counts])


def as_columns(y):
    """Indicators as an (n, m) float array; a vector is a single label."""
    y = np.asarray(y, dtype=float)
    return y.reshape(len(y), -1)


# 1. Counting


def cells(y_true, y_pred, weights=None):
    """Counts (tp, fp, fn, tn) of every label, shape (m, 4). Labels may be soft, in [0, 1]."""
    y_true, y_pred = as_columns(y_true), as_columns(y_pred)
    n, m = y_true.shape
    weights = np.ones(n) if weights is None else weights
    counts = np.zeros((m, 4))
    for t in range(n):
        for j in range(m):
            y, p = y_true[t, j], y_pred[t, j]
            one_row = np.array([y * p, (1 - y) * p, y * (1 - p), (1 - y) * (1 - p)])
            counts[j] += weights[t] * one_row
    return counts


def confusion(y_true, y_pred, weights=None):
    """Counts C[i, j] of rows of class i predicted as class j, from one-hot rows."""
    y_true, y_pred = as_columns(y_true), as_columns(y_pred)
    n, m = y_true.shape
    weights = np.ones(n) if weights is None else weights
    matrix = np.zeros((m, m))
    for t in range(n):
        for i in range(m):
            for j in range(m):
                matrix[i, j] += weights[t] * y_true[t, i] * y_pred[t, j]
    return matrix


def one_vs_rest(matrix):
    """The paper's rewriting of an m-by-m confusion matrix as m matrices of four cells."""
    m = len(matrix)
    counts = np.zeros((m, 4))
    for j in range(m):
        others = [i for i in range(m) if i != j]
        tp = matrix[j, j]
        fp = sum(matrix[i, j] for i in others)
        fn = sum(matrix[j, i] for i in others)
        tn = sum(matrix[i, other] for i in others for other in others)
        counts[j] = tp, fp, fn, tn
    return counts


# 2. Binary metrics, functions of four fractions


def accuracy(tp, fp, fn, tn, eps=0):
    """Share of right answers; it has no denominator, hence no eps."""
    return tp + tn


def precision(tp, fp, fn, tn, eps=0):
    """Share of the predicted that is positive."""
    return divide(tp, tp + fp + eps)


def recall(tp, fp, fn, tn, eps=0):
    """Share of the positive that is predicted: the true positive rate."""
    return divide(tp, tp + fn + eps)


def specificity(tp, fp, fn, tn, eps=0):
    """Share of the negative that is left out: the true negative rate."""
    return divide(tn, tn + fp + eps)


def rates(tp, fp, fn, tn, eps):
    """The true positive and the true negative rate, which four metrics average."""
    return recall(tp, fp, fn, tn, eps), specificity(tp, fp, fn, tn, eps)


def balanced_accuracy(tp, fp, fn, tn, eps=0):
    """Arithmetic mean of both rates."""
    tpr, tnr = rates(tp, fp, fn, tn, eps)
    return (tpr + tnr) / 2


def gmean(tp, fp, fn, tn, eps=0):
    """Geometric mean of both rates."""
    tpr, tnr = rates(tp, fp, fn, tn, eps)
    return np.sqrt(tpr * tnr)


def hmean(tp, fp, fn, tn, eps=0):
    """Harmonic mean of both rates."""
    tpr, tnr = rates(tp, fp, fn, tn, eps)
    return divide(2 * tpr * tnr, tpr + tnr + eps)


def qmean(tp, fp, fn, tn, eps=0):
    """One minus the quadratic mean of what both rates miss."""
    tpr, tnr = rates(tp, fp, fn, tn, eps)
    return 1 - np.sqrt(((1 - tpr) ** 2 + (1 - tnr) ** 2) / 2)


def fbeta(beta):
    """F-measure that holds recall `beta` times as important as precision."""

    def f(tp, fp, fn, tn, eps=0):
        b2 = like(tp, beta) ** 2
        return divide((1 + b2) * tp, (1 + b2) * tp + b2 * fn + fp + eps)

    return f


f1 = fbeta(1)


def jaccard(tp, fp, fn, tn, eps=0):
    """Intersection over union of the predicted and the positive."""
    return divide(tp, tp + fp + fn + eps)


def mcc(tp, fp, fn, tn, eps=0):
    """Matthews correlation of labels and predictions."""
    spread = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return divide(tp * tn - fp * fn, spread + eps)


def min_recall_specificity(tp, fp, fn, tn, eps=0):
    """The smaller of both rates."""
    return min(rates(tp, fp, fn, tn, eps))


BINARY = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "precision": precision,
    "recall": recall,
    "specificity": specificity,
    "f1": f1,
    "jaccard": jaccard,
    "gmean": gmean,
    "hmean": hmean,
    "qmean": qmean,
    "min_recall_specificity": min_recall_specificity,
    "mcc": mcc,
}


# 3. Averages over labels, and metrics of the m-by-m matrix


def macro(f):
    """Mean over labels of a binary metric. On one label it is the metric itself."""

    def psi(fractions, eps=0):
        return sum(f(*label, eps) for label in fractions) / len(fractions)

    return psi


def micro(f):
    """Binary metric of the mean over labels of the four cells."""

    def psi(fractions, eps=0):
        return f(*(sum(cell) / len(fractions) for cell in np.transpose(fractions)), eps)

    return psi


def class_recalls(matrix, eps):
    """Per class, the share of its rows that is predicted as that class."""
    return [divide(matrix[j, j], sum(matrix[j]) + eps) for j in range(len(matrix))]


def differ(a, b):
    """How often a class drawn from `a` differs from one drawn from `b`: 1 - a·b for fractions.

    Summed over pairs rather than subtracted from 1, so that it is exactly 0 when it should be.
    """
    return sum(a[i] * b[j] for i in range(len(a)) for j in range(len(b)) if i != j)


def beyond_chance(matrix):
    """Accuracy above that of independent guesses with the same margins, and the margins t, p."""
    t, p = [sum(row) for row in matrix], [sum(column) for column in matrix.T]
    return sum(np.diag(matrix)) - sum(a * b for a, b in zip(t, p, strict=True)), t, p


def multiclass_accuracy(matrix, eps=0):
    """Share of rows on the diagonal."""
    return sum(np.diag(matrix))


def multiclass_balanced_accuracy(matrix, eps=0):
    """Arithmetic mean of the class recalls."""
    return sum(class_recalls(matrix, eps)) / len(matrix)


def multiclass_gmean(matrix, eps=0):
    """Geometric mean of the class recalls."""
    product = np.prod(class_recalls(matrix, eps))
    return product ** (like(product, 1) / len(matrix))


def multiclass_hmean(matrix, eps=0):
    """Harmonic mean of the class recalls, as Table 1 writes it; 0 if a class is never hit."""
    hits = np.diag(matrix) + eps
    if min(hits) == 0:
        return hits[0] * 0
    inverse = sum(sum(row) / hit for row, hit in zip(matrix, hits, strict=True))
    return divide(like(inverse, len(matrix)), inverse)


def multiclass_qmean(matrix, eps=0):
    """One minus the quadratic mean of what the class recalls miss."""
    return 1 - np.sqrt(sum((1 - r) ** 2 for r in class_recalls(matrix, eps)) / len(matrix))


def multiclass_min_recall(matrix, eps=0):
    """The smallest of the class recalls."""
    return min(class_recalls(matrix, eps))


def multiclass_mcc(matrix, eps=0):
    """Matthews correlation over classes, scikit-learn's definition."""
    gain, t, p = beyond_chance(matrix)
    return divide(gain, np.sqrt(differ(p, p) * differ(t, t)) + eps)


def multiclass_kappa(matrix, eps=0):
    """Cohen's kappa: accuracy beyond chance over the most it could be."""
    gain, t, p = beyond_chance(matrix)
    return divide(gain, differ(t, p) + eps)


MULTICLASS = {
    "accuracy": multiclass_accuracy,
    "balanced_accuracy": multiclass_balanced_accuracy,
    "gmean": multiclass_gmean,
    "hmean": multiclass_hmean,
    "qmean": multiclass_qmean,
    "min_recall": multiclass_min_recall,
    "mcc": multiclass_mcc,
    "kappa": multiclass_kappa,
}


# 4. Values by name


def utility(name: str):
    """The utility called `name`: of an m-by-m matrix for `multiclass_*`, else of (m, 4) cells."""
    average, _, rest = name.partition("_")
    if average == "multiclass":
        return MULTICLASS[rest]
    if average in ("macro", "micro"):
        return {"macro": macro, "micro": micro}[average](BINARY[rest])
    return macro(BINARY[name])


def value(name: str, y_true, y_pred, weights=None) -> float:
    """The reported value of a metric: no eps, 0/0 is 0."""
    if name.startswith("multiclass_"):
        fractions = normalize(confusion(y_true, y_pred, weights))
    else:
        fractions = label_fractions(cells(y_true, y_pred, weights))
    return float(utility(name)(fractions, 0))


# 5. Gradients by finite differences


def gradient(psi, fractions, eps=0.0):
    """Derivative of psi(fractions, eps) by every entry, each a free variable, as floats.

    Central differences; forward ones where an entry is 0, since no cell may go below zero. Where
    the true derivative is infinite (a root at 0), the result is merely huge.
    """
    fractions = np.asarray(fractions, dtype=float)
    result = np.zeros(fractions.shape)
    with localcontext() as context:
        context.prec = DIGITS
        exact = np.vectorize(Decimal, otypes=[object])(fractions)
        eps = Decimal(eps)
        for at in np.ndindex(exact.shape):
            x = exact[at]
            low = x - x * RELATIVE_STEP
            high = x + (x * RELATIVE_STEP or STEP_FROM_ZERO)
            rise = psi(replaced(exact, at, high), eps) - psi(replaced(exact, at, low), eps)
            result[at] = rise / (high - low)
    return result


def replaced(array, at, entry):
    """A copy of the array with one entry changed."""
    copy = array.copy()
    copy[at] = entry
    return copy


def four_cell_gradient(psi, fractions, eps=0.0):
    """Derivative of psi by the tp, fp, fn, tn of every label, shape (m, 4)."""
    return gradient(psi, fractions, eps)


def slope_offset(psi, fractions, eps=0.0):
    """Per label, what a prediction gains: slope·eta + offset."""
    tp, fp, fn, tn = four_cell_gradient(psi, fractions, eps).T
    return tp - fp - fn + tn, fp - tn


def multiclass_gains(psi, matrix, eta, eps=0.0):
    """What predicting each class gains: the derivative by C[i, j], averaged over true i.

    Only differences between classes mean anything: the entries sum to 1, so a utility may be
    written differently off that plane, which adds one constant to every gain.
    """
    return np.asarray(eta, dtype=float) @ gradient(psi, matrix, eps)


# 6. Decisions


def choose(gains, eta, k: int | None = None) -> np.ndarray:
    """Predicted labels, as 0/1: those with gain ≥ 0, or the k best gains (ties: lowest index).

    Labels with eta = 0 are no candidates; with a budget they only fill up to k, lowest first.
    """
    m = len(gains)
    candidates = [j for j in range(m) if eta[j] > 0]
    if k is None:
        chosen = [j for j in candidates if gains[j] >= 0]
    else:
        best_first = sorted(candidates, key=lambda j: (-gains[j], j))
        others = [j for j in range(m) if j not in candidates]
        chosen = (best_first + others)[:k]
    y_hat = np.zeros(m, dtype=int)
    y_hat[chosen] = 1
    return y_hat


def threshold(eta, at: float = 0.5) -> np.ndarray:
    """Predict every label whose probability reaches `at`, row by row."""
    return np.array([choose(row - at, row) for row in as_columns(eta)])


def top_k(eta, k: int) -> np.ndarray:
    """Predict the k most probable labels, row by row."""
    return np.array([choose(row, row, k) for row in as_columns(eta)])


# 7. OMMA


def seen(y, eta, feedback):
    """What the algorithm counts as labels: the true ones, or its estimates in OMMA(eta)."""
    return {"labels": y, "estimates": eta}[feedback]


def omma(psi, eta, y, k=None, feedback="labels", prior=1e-6, weights=None, eps=1e-9):
    """OMMA on (m, 4) cells: decide each row by the gradient at the counts so far, then count it.

    Returns predictions and gains, both (n, m), so that a test can skip rows that hang on a tie.
    """
    eta = as_columns(eta)
    labels = as_columns(seen(y, eta, feedback))
    weights = np.ones(len(eta)) if weights is None else weights
    counts = np.full((eta.shape[1], 4), float(prior))
    predictions, gains = np.zeros(eta.shape, dtype=int), np.zeros(eta.shape)
    for t in range(len(eta)):
        slope, offset = slope_offset(psi, label_fractions(counts), eps)
        gains[t] = slope * eta[t] + offset
        predictions[t] = choose(gains[t], eta[t], k)
        counts += cells(labels[[t]], predictions[[t]], weights[t : t + 1])
    return predictions, gains


def omma_multiclass(
    psi, eta, y_onehot, k=1, feedback="labels", weights=None, eps=1e-9, *, start=None
):
    """OMMA on the m-by-m matrix, from counts `start` (zeros unless given). Returns as `omma`."""
    eta = as_columns(eta)
    labels = as_columns(seen(y_onehot, eta, feedback))
    weights = np.ones(len(eta)) if weights is None else weights
    m = eta.shape[1]
    matrix = np.zeros((m, m)) if start is None else np.array(start, dtype=float)
    predictions, gains = np.zeros(eta.shape, dtype=int), np.zeros(eta.shape)
    for t in range(len(eta)):
        gains[t] = multiclass_gains(psi, normalize(matrix), eta[t], eps)
        predictions[t] = choose(gains[t], eta[t], k)
        matrix += confusion(labels[[t]], predictions[[t]], weights[t : t + 1])
    return predictions, gains

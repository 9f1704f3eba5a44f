"""What the tests draw from: labels with their degenerate cases, streams, counts, own metrics."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from streams import (
    class_stream as class_stream,
    dense as dense,
    one_hot as one_hot,
    stream as stream,
)

import omma

BINARY = [name for name in omma.metrics.NAMES if omma.metric(name).binary]
MANY = [name for name in omma.metrics.NAMES if name.startswith(("macro_", "micro_"))]
CLASSES = [name for name in omma.metrics.NAMES if name.startswith("multiclass_")]

# A label may be left as drawn, or be (never, always) (true, predicted).
FATES = [(None, 0), (None, 0), (0, 0), (0, 1), (1, 0), (1, 1)]


# Labels


@st.composite
def label_pairs(draw, m=None, rows=12):
    """Indicators (y_true, y_pred) of shape (n, m), with labels that never or always occur."""
    n = draw(st.integers(1, rows))
    m = draw(st.integers(1, 4)) if m is None else m
    pair = draw(hnp.arrays(np.int8, (2, n, m), elements=st.integers(0, 1)))
    for j in range(m):
        side, fill = draw(st.sampled_from(FATES))
        if side is not None:
            pair[side, :, j] = fill
    return pair[0], pair[1]


@st.composite
def class_pairs(draw, rows=15):
    """Class ids (y_true, y_pred) and the number of classes, some of which may be absent."""
    m = draw(st.integers(2, 5))
    n = draw(st.integers(1, rows))
    sides = []
    for _ in range(2):
        present = draw(st.lists(st.integers(0, m - 1), min_size=1, max_size=m, unique=True))
        sides.append(draw(hnp.arrays(np.int64, n, elements=st.sampled_from(present))))
    return sides[0], sides[1], m


def row_weights(n):
    """None, or weights that add up without rounding, so that 0/0 is exactly that."""
    exact = hnp.arrays(np.float64, n, elements=st.sampled_from([0.25, 0.5, 1.0, 1.5, 3.0]))
    return st.one_of(st.none(), exact)


def close(expected):
    """Equal but for rounding."""
    return pytest.approx(expected, abs=1e-12)


# Streams


def stepwise(policy, eta, y, weights=None):
    """Predictions of a learner that sees one row after another, and the learner."""
    learner = omma.OnlineClassifier(policy, eta.shape[1])
    predictions = []
    for t in range(eta.shape[0]):
        predictions.append(dense(learner.predict(eta[[t]] if sparse.issparse(eta) else eta[t])))
        learner.update(y[t], weight=1.0 if weights is None else weights[t])
    return np.vstack(predictions), learner


# Counts


def interior_counts(seed=0, m=3, n=100.0):
    """Counts whose four cells are all well above zero."""
    rng = np.random.default_rng(seed)
    tp, fp, fn, _ = n * rng.dirichlet((2, 2, 2, 2), size=m).clip(0.02).T / 1.1
    return omma.Counts(tp, tp + fp, tp + fn, n)


def confusion_matrix(rng, positive):
    """A random confusion matrix with these class frequencies."""
    m = len(positive)
    return np.asarray(positive)[:, None] * rng.dirichlet(np.full(m, 0.7), size=m)


# A user's own metrics: at the level of a module, so that they can be pickled


def own_f1(tp, fp, fn, tn):
    return 2 * tp / (2 * tp + fp + fn + 1e-9)


def own_jaccard(tp, fp, fn, tn):
    return tp / (tp + fp + fn + 1e-9)


def own_gmean(tp, fp, fn, tn):
    return math.sqrt(tp / (tp + fn + 1e-9) * tn / (tn + fp + 1e-9))

"""Streams to run on, and rows of any layout; nothing here is of `omma`."""

import numpy as np
from scipy import sparse


def stream(seed=0, n=40, m=4, zeros=0.2):
    """Probabilities (a share of them zero) and labels drawn from them."""
    rng = np.random.default_rng(seed)
    eta = rng.beta(0.7, 1.5, size=(n, m))
    eta[rng.random((n, m)) < zeros] = 0.0
    return eta, (rng.random((n, m)) < eta).astype(np.int8)


def class_stream(seed=0, n=40, m=4, sharpness=0.6):
    """Probabilities that add up to one, and the classes drawn from them."""
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.full(m, sharpness), size=n)
    return eta, np.array([rng.choice(m, p=row) for row in eta])


def one_hot(ids, m):
    return np.eye(m, dtype=np.int8)[np.asarray(ids)]


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)

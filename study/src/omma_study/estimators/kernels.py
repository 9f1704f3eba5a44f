"""Linear models that learn by Adam, a row or a batch at a time.

``weights, first, second`` are (d + 1, m): a row for each feature and a last one for the intercept;
``first`` and ``second`` are Adam's running means of the gradient and of its square. ``hyper``
holds the learning rate, β1, β2, ε and the strength of L2, in the order of the names below;
``clock`` the steps so far and the rows that ``stats`` (mean and sum of squared deviations of each
feature) have seen.

``features`` is the ids of a row's stored features, or None where the row holds all of them in
order. Only features that a row holds are moved, zeros that it holds included: a dense row moves
all, as Adam does; a sparse row those it stores, as lazy ("sparse") Adam does, whose corrections
for the start go by the steps of the whole model. The intercept moves with each row and is not
regularized.
"""

from typing import Final, NamedTuple

import numba
import numpy as np

# As the library's kernels: divisions by zero do not raise, so loops can be vectorized.
helper = numba.njit(error_model="numpy")
entry = numba.njit(error_model="numpy", nogil=True, cache=True)

RATE, BETA1, BETA2, EPSILON, L2 = range(5)
STEPS, SEEN = range(2)

LIMIT: Final = 10.0  # deviations; rare features and first rows would else be far out


@helper
def add_scores(features, values, count, weights, scores):
    """Write the score of each label."""
    m = weights.shape[1]
    intercept = weights.shape[0] - 1
    for j in range(m):
        scores[j] = weights[intercept, j]
    for i in range(count):
        value, weight = values[i], weights[i if features is None else features[i]]
        for j in range(m):
            scores[j] += value * weight[j]


@helper
def squash(scores, softmax):
    """Turn scores into probabilities: classes of one row together, or each label by itself."""
    m = scores.shape[0]
    if softmax:
        top = scores[0]
        for j in range(m):
            top = max(top, scores[j])
        total = 0.0
        for j in range(m):
            scores[j] = np.exp(scores[j] - top)
            total += scores[j]
        for j in range(m):
            scores[j] /= total
    else:
        for j in range(m):
            small = np.exp(-abs(scores[j]))
            scores[j] = (1.0 if scores[j] >= 0.0 else small) / (1.0 + small)


@helper
def predict(features, values, count, weights, softmax, scores, eta, t):
    """The probabilities of row t, as scores and, unless that is empty, in ``eta``."""
    add_scores(features, values, count, weights, scores)
    squash(scores, softmax)
    if eta.shape[0] > 0:
        for j in range(scores.shape[0]):
            eta[t, j] = scores[j]


class Pace(NamedTuple):
    """The numbers of one step, as scalars: loops over arrays that may overlap stay vectors."""

    rate: float
    root: float
    keep1: float
    keep2: float
    epsilon: float


@helper
def next_step(hyper, clock):
    """Count a step, and correct its rate for running means that start at zero."""
    clock[STEPS] += 1
    rate = hyper[RATE] / (1.0 - hyper[BETA1] ** clock[STEPS])
    root = np.sqrt(1.0 - hyper[BETA2] ** clock[STEPS])
    return Pace(rate, root, hyper[BETA1], hyper[BETA2], hyper[EPSILON])


@helper
def move(gradient, pace, weight, first, second):
    """One coordinate by one step of Adam; returns it with its running means."""
    first += (gradient - first) * (1.0 - pace.keep1)
    second = pace.keep2 * second + (1.0 - pace.keep2) * gradient * gradient
    weight -= pace.rate * first / (np.sqrt(second) / pace.root + pace.epsilon)
    return weight, first, second


@helper
def move_feature(value, l2, errors, pace, weight, first, second):
    """The weights of one feature for every label."""
    for j in range(weight.shape[0]):
        gradient = errors[j] * value + l2 * weight[j]
        weight[j], first[j], second[j] = move(gradient, pace, weight[j], first[j], second[j])


@helper
def learn(features, values, count, errors, hyper, clock, weights, first, second):
    """Move the weights of a row's features, and the intercept, against the errors."""
    pace = next_step(hyper, clock)
    l2 = hyper[L2]
    for i in range(count):
        f = i if features is None else features[i]
        move_feature(values[i], l2, errors, pace, weights[f], first[f], second[f])
    last = weights.shape[0] - 1
    move_feature(1.0, 0.0, errors, pace, weights[last], first[last], second[last])


@helper
def standardised(given, stats, seen, values):
    """Write a row's features by mean and deviation so far; before the second row all are zero."""
    for f in range(given.shape[0]):
        value = np.float64(given[f]) - stats[0, f]
        if stats[1, f] > 0.0:
            value /= np.sqrt(stats[1, f] / seen)
        values[f] = min(max(value, -LIMIT), LIMIT) if seen > 1 else 0.0


@helper
def count_features(given, stats, clock):
    """Let a row count for mean and deviation of each feature (Welford's recurrence)."""
    clock[SEEN] += 1
    for f in range(given.shape[0]):
        value = np.float64(given[f])
        away = value - stats[0, f]
        stats[0, f] += away / clock[SEEN]
        stats[1, f] += away * (value - stats[0, f])


@helper
def find_errors(true, start, end, scores):
    """What the row's gradient is made of: probability minus label."""
    for place in range(start, end):
        scores[true[place]] -= 1.0


@entry
def run_dense(
    rows, true_start, true_end, true, learns, softmax, standardise, hyper, clock, stats,
    weights, first, second, values, scores, eta,
):  # fmt: skip
    """Predict each row into ``eta``, unless that is empty, then learn from it if wanted."""
    d = rows.shape[1]
    for t in range(rows.shape[0]):
        if standardise:
            standardised(rows[t], stats, clock[SEEN], values)
        else:
            for f in range(d):
                values[f] = rows[t, f]
        predict(None, values, d, weights, softmax, scores, eta, t)
        if learns:
            find_errors(true, true_start[t], true_end[t], scores)
            learn(None, values, d, scores, hyper, clock, weights, first, second)
            if standardise:
                count_features(rows[t], stats, clock)


@entry
def run_sparse(
    indices, data, starts, ends, true_start, true_end, true, learns, softmax, hyper, clock,
    weights, first, second, values, scores, eta,
):  # fmt: skip
    """As ``run_dense``, on rows that store some of their features."""
    for t in range(starts.shape[0]):
        features = indices[starts[t] : ends[t]]
        count = features.shape[0]
        for i in range(count):
            values[i] = data[starts[t] + i]
        predict(features, values, count, weights, softmax, scores, eta, t)
        if learns:
            find_errors(true, true_start[t], true_end[t], scores)
            learn(features, values, count, scores, hyper, clock, weights, first, second)


@entry
def step_all(gradient, hyper, clock, weights, first, second):
    """One step of Adam on every coordinate, for the gradient of a batch."""
    pace = next_step(hyper, clock)
    l2 = hyper[L2]
    last = weights.shape[0] - 1
    for f in range(last + 1):
        move_feature(
            1.0, l2 if f < last else 0.0, gradient[f], pace, weights[f], first[f], second[f]
        )

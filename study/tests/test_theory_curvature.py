"""Constants of metrics: no derivative of a textbook formula exceeds them, some reach them."""

import math

import numpy as np
import pytest

import omma
from omma_study.theory import Constants, constants, utilities, worst_constants

STEP = 1e-30  # of an imaginary step: no cancellation


def recall(c):
    return c[0] / (c[0] + c[2])


def specificity(c):
    return c[3] / (c[3] + c[1])


# Cells are (tp, fp, fn, tn).
TEXTBOOK = {
    "accuracy": lambda c: c[0] + c[3],
    "recall": recall,
    "specificity": specificity,
    "balanced_accuracy": lambda c: (recall(c) + specificity(c)) / 2,
    "precision": lambda c: c[0] / (c[0] + c[1]),
    "f1": lambda c: 2 * c[0] / (2 * c[0] + c[1] + c[2]),
    "f2": lambda c: 5 * c[0] / (5 * c[0] + c[1] + 4 * c[2]),
    "f0.5": lambda c: 1.25 * c[0] / (1.25 * c[0] + c[1] + 0.25 * c[2]),
    "jaccard": lambda c: c[0] / (c[0] + c[1] + c[2]),
    "gmean": lambda c: (recall(c) * specificity(c)) ** 0.5,
    "hmean": lambda c: 2 / (1 / recall(c) + 1 / specificity(c)),
    "qmean": lambda c: 1 - (((1 - recall(c)) ** 2 + (1 - specificity(c)) ** 2) / 2) ** 0.5,
    "mcc": lambda c: (
        (c[0] * c[3] - c[1] * c[2])
        / ((c[0] + c[1]) * (c[0] + c[2]) * (c[3] + c[1]) * (c[3] + c[2])) ** 0.5
    ),
}


def known(name):
    return omma.metrics.fbeta(float(name[1:])) if name in ("f2", "f0.5") else omma.metric(name)


def gradient(psi, c):
    steps = 1j * STEP * np.eye(len(c))
    return np.array([psi(c + step).imag / STEP for step in steps])


def curvature(psi, c, step=None):
    """The norm of the second derivative, from differences of exact gradients."""
    step = 1e-6 * np.abs(c[c > 0]).min() if step is None else step
    rows = [
        (gradient(psi, c + d) - gradient(psi, c - d)) / (2 * step) for d in step * np.eye(len(c))
    ]
    return np.linalg.norm(np.array(rows), 2)


def samples(p, near):
    """Matrices of one frequency: inside, and as near to each corner and side as is asked."""
    rng = np.random.default_rng(0)
    shares = np.vstack(
        (rng.random((60, 2)), [(a, b) for a in (near, 0.5, 1 - near) for b in (near, 1 - near)])
    )
    return [np.array([r * p, (1 - s) * (1 - p), (1 - r) * p, s * (1 - p)]) for r, s in shares]


@pytest.mark.parametrize("p", [0.5, 0.1, 0.8])
@pytest.mark.parametrize("name", TEXTBOOK)
def test_constants_hold_and_are_nearly_reached(name, p):
    claimed = constants(known(name), p)
    psi = TEXTBOOK[name]
    places = samples(p, near=1e-4)
    steep = max(np.linalg.norm(gradient(psi, c)) for c in places)
    bent = max(curvature(psi, c) for c in places)
    for reached, constant in ((steep, claimed.lipschitz), (bent, claimed.smoothness)):
        if math.isinf(constant):
            assert reached > 30  # and more, the nearer the corner
        else:
            assert reached <= constant * (1 + 1e-5) + 1e-6
            assert reached >= 0.98 * constant - 1e-6


@pytest.mark.parametrize("name", ["gmean", "mcc", "precision", "hmean", "qmean"])
def test_what_is_infinite_grows_without_end(name):
    psi = TEXTBOOK[name]
    steepness = constants(name, 0.3).lipschitz
    for measure, constant in (
        (lambda c: np.linalg.norm(gradient(psi, c)), steepness),
        (lambda c: curvature(psi, c), math.inf),
    ):
        if math.isinf(constant):
            near, nearer = (max(map(measure, samples(0.3, close))) for close in (1e-2, 1e-5))
            assert nearer > 5 * near


def test_averages_of_two_labels():
    p = np.array([0.2, 0.4])
    psi = TEXTBOOK["f1"]
    both = [
        np.concatenate((first, second))
        for first, second in zip(samples(p[0], 1e-5), reversed(samples(p[1], 1e-5)), strict=True)
    ] + [np.concatenate((c, d)) for c in samples(p[0], 1e-5)[-6:] for d in samples(p[1], 1e-5)[-6:]]
    for name, average in (
        ("macro_f1", lambda c: (psi(c[:4]) + psi(c[4:])) / 2),
        ("micro_f1", lambda c: psi((c[:4] + c[4:]) / 2)),
    ):
        claimed = constants(name, p)
        steep = max(np.linalg.norm(gradient(average, c)) for c in both)
        bent = max(curvature(average, c) for c in both)
        assert 0.98 * claimed.lipschitz <= steep <= claimed.lipschitz * (1 + 1e-6)
        assert 0.98 * claimed.smoothness <= bent <= claimed.smoothness * (1 + 1e-5)


def recalls(c, m):
    square = c.reshape(m, m)
    return np.diag(square) / square.sum(axis=1)


OVER_CLASSES = {
    "multiclass_accuracy": lambda c, m: np.trace(c.reshape(m, m)),
    "multiclass_balanced_accuracy": lambda c, m: recalls(c, m).sum() / m,
    "multiclass_hmean": lambda c, m: m / (1 / recalls(c, m)).sum(),
    "multiclass_qmean": lambda c, m: 1 - (((1 - recalls(c, m)) ** 2).sum() / m) ** 0.5,
}


@pytest.mark.parametrize("name", OVER_CLASSES)
def test_classes(name):
    p = np.array([0.2, 0.3, 0.5])
    m = len(p)
    rng = np.random.default_rng(1)
    claimed = constants(name, p)

    def psi(c):
        return OVER_CLASSES[name](c, m)

    def matrix(shares, where):
        """Recalls as given; the rest of each row goes to one class, or to all others."""
        square = np.full((m, m), 0.0)
        for j in range(m):
            others = [i for i in range(m) if i != j]
            square[j, others] = (1 - shares[j]) * p[j] * np.eye(m - 1)[where]
            square[j, j] = shares[j] * p[j]
        return square.ravel()

    extremes = [np.array(s) for s in np.ndindex(2, 2, 2)]
    close = [np.clip(s, 1e-7, 1 - 1e-7) for s in extremes]
    close += [np.where(s == 1, 1 - 1e-3, 1 - 1e-9) for s in extremes]
    places = [matrix(s, i) for s in (*close, *rng.random((40, m))) for i in range(m - 1)]
    steep = max(np.linalg.norm(gradient(psi, c)) for c in places)
    assert 0.98 * claimed.lipschitz <= steep <= claimed.lipschitz * (1 + 1e-6)
    if math.isfinite(claimed.smoothness):
        bent = max(curvature(psi, c, step=1e-6) for c in places)
        assert 0.98 * claimed.smoothness - 1e-5 <= bent <= claimed.smoothness * (1 + 1e-4) + 1e-5


@pytest.mark.parametrize(
    "make",
    [
        utilities.accuracy,
        utilities.geometric,
        utilities.harmonic,
        lambda: utilities.soft_least(0.05),
    ],
    ids=["accuracy", "geometric", "harmonic", "soft_least"],
)
def test_utilities_are_concave_with_their_constants(make):
    utility = make()
    delta = 0.1
    psi = {
        "accuracy": TEXTBOOK["accuracy"],
        "geometric_0.1": lambda c: ((c[0] + delta) * (c[3] + delta)) ** 0.5,
        "harmonic_0.1": lambda c: 2 / (1 / (c[0] + delta) + 1 / (c[3] + delta)),
        "soft_least_0.05": lambda c: -0.05 * np.log(np.exp(-c[0] / 0.05) + np.exp(-c[3] / 0.05)),
    }[utility.metric.name]
    rng = np.random.default_rng(2)
    corners = [np.array([0, 0, 0, 1.0]), np.array([0, 1.0, 0, 0])]
    places = [*rng.dirichlet(np.full(4, 0.3), 300), *corners]
    for c in places:
        counts = omma.Counts([c[0]], [c[0] + c[1]], [c[0] + c[2]], 1.0)
        assert utility.metric.value(counts) == pytest.approx(psi(c), abs=1e-12)
    steep = max(np.linalg.norm(gradient(psi, c)) for c in places)
    bent = max(curvature(psi, c, step=1e-5) for c in places)
    claimed = utility.constants
    assert 0.98 * claimed.lipschitz <= steep <= claimed.lipschitz * (1 + 1e-9)
    assert 0.9 * claimed.smoothness <= bent + 1e-6
    assert bent <= claimed.smoothness * (1 + 1e-6) + 1e-4
    for first, second in zip(places[::2], places[1::2], strict=False):
        assert psi((first + second) / 2) >= (psi(first) + psi(second)) / 2 - 1e-12


def test_worst_constants_are_those_of_an_end():
    p = np.linspace(0.05, 0.9, 50)
    for name in ("recall", "specificity", "balanced_accuracy", "f1", "qmean"):
        worst = worst_constants(name, 1, 0.05, 0.9)
        assert worst.lipschitz == pytest.approx(max(constants(name, x).lipschitz for x in p))


def test_bad_input():
    with pytest.raises(ValueError, match="frequencies of constants must be numbers strictly"):
        constants("f1", 0.0)
    with pytest.raises(ValueError, match="f1 is a metric of one label"):
        constants("f1", [0.2, 0.3])
    with pytest.raises(ValueError, match="constants of multiclass_kappa are not known"):
        constants("multiclass_kappa", [0.2, 0.8])
    assert Constants(2.0, 4.0).averaged(4) == Constants(1.0, 1.0)

"""Rules and probabilities to try targets with: full of ties, zeros and numbers that round."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import omma

ROUND = [0.0, 0.25, 0.5, 1.0]
numbers = st.one_of(st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0, 2.0]), st.floats(-3, 3))
# A tenth and a third do not add up exactly: gains tie only where a target rounds as the rule does.
chances = st.one_of(st.sampled_from([*ROUND, 0.1, 1 / 3, 2 / 3]), st.floats(0, 1))


@st.composite
def decided(draw, budgets=True, matrix=False, single=False):
    """A rule, probabilities, and what the rule decides."""
    m = draw(st.integers(1 if not matrix else 2, 6))
    n = draw(st.integers(1, 6))
    k = draw(st.integers(1, m)) if matrix or (budgets and draw(st.booleans())) else None
    slope, offset = (draw(hnp.arrays(float, m, elements=numbers)) for _ in range(2))
    if draw(st.booleans()):  # every label alike: ties everywhere
        slope, offset = np.full(m, slope[0]), np.full(m, offset[0])
    table = draw(hnp.arrays(float, (m, m), elements=numbers)) if matrix else None
    eta = draw(hnp.arrays(float, (n, m), elements=chances))
    if single:
        eta = eta.astype(np.float32)
    up_to = draw(st.integers(1, m)) if budgets and k is None and draw(st.booleans()) else None
    rule = omma.Rule(slope, offset, k, table, at_most=up_to)
    return rule, eta, rule.predict(eta)


def calibrated(rule, calibration):
    """A rule that carries a calibration (a, b, b_j), or (a, b, b_j, s)."""
    object.__setattr__(rule, "calibration", calibration)
    return rule


def calibrated_gains(rule, eta):
    """What the gains of such a rule are, in plain NumPy."""
    a, b, own, *squash = rule.calibration
    kept = np.clip(eta, 1e-12, 1 - 1e-7)
    z = np.log(kept / (1 - kept))
    if squash:
        far = np.maximum(np.abs(z), squash[0])
        z = np.where(far > squash[0], np.sign(z) * (2 * squash[0] - squash[0] ** 2 / far), z)
    used = 1 / (1 + np.exp(-(a * z + b + own)))
    return np.where(eta > 0, rule.slope * used + rule.offset, -np.inf)


ODD = [0.0, 5e-324, 1e-15, 1e-12, 1e-11, 0.25, 0.5, 0.75, 1 - 1e-6, 1 - 1e-7, 1 - 1e-8, 1.0]


def odd_rows(rng, n, m):
    """Probabilities that are nothing, nearly nothing, certain, or like others."""
    return np.where(rng.random((n, m)) < 0.5, rng.choice(ODD, (n, m)), rng.random((n, m)))


def odd_rule(rng, m, kind, calibrate=None):
    k, at_most = (int(rng.integers(1, m + 1)) if kind in one else None for one in ("km", "a"))
    slope, offset = rng.normal(0.5, 1.0, m), rng.normal(-0.3, 0.5, m)
    if rng.random() < 0.3:  # all alike
        slope, offset = np.full(m, slope[0]), np.full(m, offset[0])
    calibrate = rng.random() < 0.6 if calibrate is None else calibrate
    odds = rng.choice([0.05, 0.4, 1.0, 3.0, 20.0]), rng.normal(0, 3), rng.normal(0, 3, m)
    odds += () if rng.random() < 0.4 else (6.0,)
    matrix = rng.normal(size=(m, m)) if kind == "m" else None
    return omma.Rule(slope, offset, k, matrix, None, at_most, odds if calibrate else None)


# Calibration would make a certain thing of a probability of 1e-12: what is zero must stay so.
COSTLY = omma.Rule(
    [0.0, 0.0], [0.0, 0.0], 1, [[0.0, 9.0], [1.0, 0.0]], None, None, (0.05, 5.0, [0.0, 0.0])
)
ABSENT = np.array([[0.0, 0.5], [0.5, 0.0], [0.5, 0.5], [0.0, 0.0]])
COSTLY_CLASSES = [0, 1, 1, 0]

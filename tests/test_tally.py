"""Counting what a fixed rule does: as a plain loop counts it, and as a replay, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

import omma
from omma.kernels.layout import N
from omma.rows.batch import Batch
from omma.running.plan import fixed_plan
from omma.running.runner import Runner
from omma.running.tally import Part, tally_of
from omma.running.truth import labels_of


def made(seed, n, m, *, halves):
    """A sample with zeros and ties, its rule, its order, and which rows have labels."""
    rng = np.random.default_rng(seed)
    eta = rng.random((n, m)) * (rng.random((n, m)) < 0.8)
    if halves:
        eta = np.round(2 * eta) / 2
    y = (rng.random((n, m)) < 0.4).astype(np.int8)
    slope, offset = rng.integers(0, 3, m).astype(float), rng.integers(-2, 2, m) / 2
    return eta, y, slope, offset, rng.permutation(n), rng.random(n) < 0.7, rng.random(n) * 2


def by_hand(eta, y, weights, rule, k, order, known, soft):
    """Counts of a rule, label by label and row by row."""
    slope, offset = rule
    m = eta.shape[1]
    tp, predicted, positive, rows = np.zeros(m), np.zeros(m), np.zeros(m), 0.0
    for i in order:
        if not (soft or known[i]):
            continue
        gains = [slope[j] * eta[i, j] + offset[j] if eta[i, j] > 0 else -np.inf for j in range(m)]
        ranked = sorted(range(m), key=lambda j: (-gains[j], j))
        chosen = [j for j in range(m) if gains[j] >= 0] if k is None else ranked[:k]
        rows += weights[i]
        for j in range(m):
            present = eta[i, j] if soft else float(y[i, j])
            positive[j] += weights[i] * present
            if j in chosen:
                predicted[j] += weights[i]
                tp[j] += weights[i] * present
    return np.array([tp, predicted, positive]), rows


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, np.float32, np.asfortranarray, sparse.csr_array])
@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 12),
    m=st.integers(1, 20),
    k=st.sampled_from([None, 1, 2, 3]),
    halves=st.booleans(),
    weighted=st.booleans(),
    shuffled=st.booleans(),
    blocks=st.integers(1, 3),
)
def test_counts_are_those_of_a_plain_loop_and_of_a_replay(
    soft, layout, seed, n, m, k, halves, weighted, shuffled, blocks
):
    eta, y, slope, offset, order, known, weights = made(seed, n, m, halves=halves)
    k = None if k is None else min(k, m)
    if not shuffled:
        order = np.arange(n)
    if not weighted:
        weights = np.ones(n)
    given_y = y if soft or known.all() else np.where(known[:, np.newaxis], y, np.nan)
    batch = Batch.read("a test", layout(eta), given_y)
    parts = [
        Part(rows, labels_of(batch.labels, rows, listed=batch.thin), weights[rows])
        for rows in np.array_split(order, blocks)
    ]
    found = tally_of("a test", batch.eta, parts, k, soft=soft)(slope, offset)
    seen = np.float32(eta).astype(float) if layout is np.float32 else eta
    cells, rows = by_hand(seen, y, weights, (slope, offset), k, order, known, soft)
    np.testing.assert_allclose(found.cells, cells, rtol=1e-12)
    assert found.totals[N] == pytest.approx(rows, rel=1e-12)
    runner = Runner("a test", fixed_plan(slope, offset, k, soft=soft), batch.eta, keep=False)
    for part in parts:
        runner.feed(part.rows, part.true, part.weights)
    np.testing.assert_array_equal(found.cells, runner.state.cells)


def test_a_rule_does_not_change_what_another_counts():
    eta, y = omma.datasets.long_tail(n=200, m=5, seed=0)
    batch = Batch.read("a test", eta, y)
    rows = np.arange(200)
    count = tally_of(
        "a test", batch.eta, [Part(rows, labels_of(batch.labels, rows, listed=False), np.ones(0))],
        None, soft=False,
    )  # fmt: skip
    first = count(np.ones(5), np.full(5, -0.5))
    kept = first.cells.copy()
    assert (count(np.ones(5), np.zeros(5)).cells[1] == 200).all()
    np.testing.assert_array_equal(first.cells, kept)


@pytest.mark.parametrize("wrong", [1.5, -0.1, np.nan])
def test_wrong_probabilities_are_named(wrong):
    eta, y = omma.datasets.long_tail(n=50, m=3, seed=0)
    eta[7, 2] = wrong
    with pytest.raises(ValueError, match=r"FrankWolfe\.fit must hold .* in row 7, label 2"):
        omma.FrankWolfe("macro_f1").fit(eta, y)

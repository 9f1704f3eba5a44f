"""Averages weighed by how often labels occur."""

import numpy as np
import pytest
from naive_baselines import stream
from scipy import sparse
from sklearn import metrics as theirs

import omma

NAMES = ["precision", "recall", "f1", "jaccard"]
SKLEARN = {
    "precision": theirs.precision_score,
    "recall": theirs.recall_score,
    "f1": theirs.f1_score,
    "jaccard": theirs.jaccard_score,
}


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_scikit_learn(name):
    rng = np.random.default_rng(0)
    y, predicted = rng.integers(0, 2, (2, 60, 5))
    weights = rng.random(60)
    for sample_weight in (None, weights):
        expected = SKLEARN[name](
            y, predicted, average="weighted", zero_division=0, sample_weight=sample_weight
        )
        found = omma.metric(f"weighted_{name}").score(y, predicted, sample_weight=sample_weight)
        assert found == pytest.approx(expected, rel=1e-12)
    assert omma.metric(f"{name}_weighted") == omma.metric(f"weighted_{name}")


@pytest.mark.parametrize("prior", [1e-6, 0.5])
@pytest.mark.parametrize("name", [*NAMES, "f2"])
def test_gradients_are_differences(name, prior):
    metric = omma.metric(f"weighted_{name}")
    counts = omma.Counts([3.0, 1.0, 4.0], [5.0, 4.0, 6.0], [6.0, 2.0, 7.0], 20.0)
    slope, offset = metric.gradient(counts, prior)
    rows, h = counts.n + 4 * prior, 1e-6

    def at(tp, predicted):
        cells = (tp + prior, predicted + 2 * prior, counts.positive + 2 * prior)
        return metric.value(omma.Counts(*cells, rows))

    for j in range(3):
        step = np.zeros(3)
        step[j] = h
        by_tp = at(counts.tp + step, counts.predicted) - at(counts.tp - step, counts.predicted)
        by_predicted = at(counts.tp, counts.predicted + step) - at(
            counts.tp, counts.predicted - step
        )
        assert slope[j] == pytest.approx(by_tp / (2 * h) * rows, rel=1e-4, abs=1e-7)
        assert offset[j] == pytest.approx(by_predicted / (2 * h) * rows, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("kind", [omma.OMMA, omma.Auto])
def test_policies_maximize_it(kind, k):
    eta, y = stream(2, 300, 5, zeros=0.3)
    policy = kind("weighted_f1", k)
    trace = omma.replay(policy, eta, y)
    thin = omma.replay(policy, sparse.csr_array(eta), y)
    np.testing.assert_array_equal(trace.predictions, thin.predictions.toarray())
    baseline = omma.Threshold(0.5) if k is None else omma.TopK(k)
    assert trace.value >= omma.replay(baseline, eta, y, metric="weighted_f1").value - 0.02


def test_it_is_saved_by_its_name():
    from omma.metrics import metric_from_json

    for name in ("weighted_f1", "weighted_f2"):
        assert metric_from_json(omma.metric(name).to_json()) == omma.metric(name)


def test_a_gap_is_refused():
    with pytest.raises(ValueError, match="whose tangent is known"):
        omma.replay(omma.OMMA("weighted_f1"), *stream(1, 20, 3), gap=True)

"""Counts made elsewhere, added to a learner."""

import pytest
from strategies import stream

import omma


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
@pytest.mark.parametrize("metric", ["macro_f1", "micro_f1"])
def test_merging_is_counting_both(metric, feedback):
    eta, y = stream(n=60)
    policy = omma.OMMA(metric, feedback=feedback)
    one, other, both = (omma.OnlineClassifier(policy, 4) for _ in range(3))
    for learner, rows in ((one, range(30)), (other, range(30, 60)), (both, range(60))):
        for i in rows:
            late = omma.Rule([1.0] * 4, [-0.3] * 4).predict(eta[i])
            learner.update(y[i], prediction=late, eta=eta[i])
    soft = None
    if feedback == "estimates":
        soft = omma.Counts(*other.state.cells, float(other.state.totals[0]))
    one.merge(other.counts, soft)
    assert one.counts == both.counts
    assert one.rule.thresholds == pytest.approx(both.rule.thresholds)


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_counts_join_a_learner_that_forgets(feedback):
    policy = omma.Forgetting(omma.OMMA("macro_f1", feedback=feedback), half_life=5)
    learner = omma.OnlineClassifier(policy, 2)
    for _ in range(50):
        learner.update([1, 0], prediction=[1, 0], eta=[0.9, 0.2])
    rows, counts = learner.state.rows, omma.Counts([3, 1], [4, 4], [5, 2], 20)
    learner.merge(counts, None if feedback == "labels" else counts)
    assert learner.counts == omma.Counts([53, 1], [54, 4], [55, 2], 70)
    assert learner.state.rows == pytest.approx(rows + 20)


def test_what_cannot_be_merged_is_refused():
    counts = omma.Counts.zeros(4)
    soft = omma.OnlineClassifier(omma.OMMA("macro_f1", feedback="estimates"), 4)
    with pytest.raises(ValueError, match="estimates of merge must be given"):
        soft.merge(counts)
    costs = omma.OnlineClassifier(omma.OMMA(omma.metrics.costs([[1, 0], [0, 1]])), 2)
    with pytest.raises(ValueError, match="counts of merge must have a matrix"):
        costs.merge(omma.Counts.zeros(2))
    mixed = omma.OnlineClassifier(omma.OnlineFrankWolfe("macro_f1"), 4)
    with pytest.raises(TypeError, match="merge of OnlineClassifier cannot add"):
        mixed.merge(counts)
    with pytest.raises(ValueError, match="same number of labels"):
        omma.OnlineClassifier(omma.OMMA("macro_f1"), 3).merge(counts)


def test_states_of_a_rule_keep_its_calibration():
    eta, y = omma.datasets.long_tail(n=400, m=5, seed=0)
    rule = omma.replay(omma.Auto("macro_f1", at_most=2), eta**2, y).rule
    first, second = (
        omma.replay(omma.FixedRule(rule), eta[rows] ** 2, y[rows], metric="macro_f1").state
        for rows in (slice(0, 200), slice(200, 400))
    )
    both = first + second
    for state in (both, both - second, 0.5 * both):
        slope, intercept, biases, squash = state.calibration.curve
        assert (slope, intercept, squash) == (*rule.calibration[:2], rule.calibration[3])
        assert biases.tolist() == rule.calibration[2].tolist()


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
@pytest.mark.parametrize("forgets", [False, True])
def test_a_learner_can_be_saved_after_counts_were_added_and_rows_learned(
    tmp_path, feedback, forgets
):
    eta, y = stream(n=10)
    policy = omma.OMMA("micro_f1", feedback=feedback)
    policy = omma.Forgetting(policy, half_life=5) if forgets else policy
    learner = omma.OnlineClassifier(policy, 4)
    added = omma.Counts.from_labels(y, y, n_labels=4)
    learner.merge(added, None if feedback == "labels" else omma.Counts.zeros(4))
    for row, true in zip(eta, y, strict=True):
        learner.predict(row)
        learner.update(true)
    learner.save(tmp_path / "learner.npz")
    assert omma.OnlineClassifier.load(tmp_path / "learner.npz").state == learner.state

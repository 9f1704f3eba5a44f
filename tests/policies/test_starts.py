"""Frank-Wolfe from the top k or from a classifier at random, and never silently its start."""

import warnings

import numpy as np
import pytest
from naive_baselines import LAYOUTS, dense, stepped, stream

import omma
from omma.policies import ConvergenceWarning, frank_wolfe, online_frank_wolfe, policy_from_json


def fitted(eta, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return omma.FrankWolfe("macro_f1", **options).fit(eta, y)


def test_a_random_start_has_slopes_and_offsets_in_their_ranges():
    slope, offset = frank_wolfe.start_at("random", None, 5000, seed=3)
    assert 0 <= slope.min() < 0.01
    assert 0.99 < slope.max() < 1
    assert -0.5 <= offset.min() < -0.49
    assert 0.49 < offset.max() < 0.5
    for other in (
        frank_wolfe.start_at("random", None, 5000, 4),
        frank_wolfe.start_at("random", None, 5000, 3, run=1),
    ):
        assert not np.array_equal(slope, other[0])


@pytest.mark.parametrize("k", [None, 2])
def test_the_best_start_is_kept(k):
    for seed in range(4):
        eta, y = stream(seed, n=80, m=5)
        found = {
            start: fitted(eta, y, k=k, start=start, seed=seed)
            for start in ("best", "top", "random")
        }
        reached = {
            start: one.log[-1].value if one.log else one.values[0] for start, one in found.items()
        }
        assert reached["best"] == max(reached.values())
        assert found["best"].start == max(("top", "random"), key=reached.get)


def test_a_start_is_never_returned_in_silence():
    _, y = stream(1, n=60)
    eta = np.where(y, 0.98, 0.02)  # too good: the 0.5 threshold errs nowhere
    with pytest.warns(ConvergenceWarning, match=r"nothing better than its start \(top\)"):
        mixture = omma.FrankWolfe("macro_f1").fit(eta, y)
    assert mixture.is_start
    assert mixture.start == "top"
    assert policy_from_json(mixture.to_json()).is_start
    eta, y = stream(1, n=60)
    assert not fitted(eta, y).is_start


def test_a_start_that_is_proven_best_needs_no_warning():
    eta, _ = stream(2, n=60)
    mixture = omma.FrankWolfe("macro_accuracy", feedback="estimates", prior=0.0).fit(eta)
    assert mixture.is_start


def test_every_run_online_starts_from_draws_of_its_own(monkeypatch):
    given, maximize = [], online_frank_wolfe.maximize

    def watched(*arguments, start, **options):
        given.append(start)
        return maximize(*arguments, start=start, **options)

    monkeypatch.setattr(online_frank_wolfe, "maximize", watched)
    eta, y = stream(3, n=60)
    policy = omma.OnlineFrankWolfe("macro_f1", 2, start="random", seed=9)
    trace = omma.replay(policy, eta, y)
    given = given[1:]  # the first compiles
    assert len(given) == trace.state.runs > 2
    for run, (slope, offset) in enumerate(given, start=1):
        generator = np.random.default_rng((9, run))
        np.testing.assert_array_equal(slope, generator.random(4))
        np.testing.assert_array_equal(offset, generator.random(4) - 0.5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("k", [None, 2])
def test_stepping_from_random_starts_is_replaying(layout, k):
    eta, y = stream(4, n=60)
    given = LAYOUTS[layout](eta)
    policy = omma.OnlineFrankWolfe("macro_f1", k, start="random", seed=1)
    trace = omma.replay(policy, given, y)
    learner = omma.OnlineClassifier(policy, n_labels=4)
    np.testing.assert_array_equal(stepped(learner, given, y), dense(trace.predictions))


def test_surplus_predictions_move_about_when_starts_do():
    """With a budget, the labels that absorb surplus predictions change at every run."""
    eta, y = omma.datasets.long_tail(n=1500, m=20, seed=0)
    values = {
        start: omma.replay(omma.OnlineFrankWolfe("macro_precision", 3, start=start), eta, y).value
        for start in frank_wolfe.STARTS
    }
    assert values["top"] > values["random"] + 0.05


def test_starts_are_checked_and_saved():
    with pytest.raises(ValueError, match="start of FrankWolfe must be"):
        omma.FrankWolfe("macro_f1", start="bottom")
    with pytest.raises(ValueError, match="start of OnlineFrankWolfe must be"):
        omma.OnlineFrankWolfe("macro_f1", start="best")
    made = omma.OnlineFrankWolfe("macro_f1", start="random")
    assert policy_from_json(made.to_json()) == made
    old = {key: one for key, one in made.to_json().items() if key != "start"}
    assert policy_from_json(old).start == "top"

"""omma.drift: which labels moved."""

import numpy as np
import pytest
from scipy import stats

import omma


def counted(rng, rates, n):
    positive = rng.binomial(n, rates).astype(float)
    return omma.Counts(np.zeros(len(positive)), np.zeros(len(positive)), positive, n)


def test_it_finds_what_moved_and_nothing_else():
    rng = np.random.default_rng(0)
    before = np.array([0.4, 0.1, 0.02, 0.001])
    after = np.array([0.3, 0.1, 0.002, 0.001])
    found = omma.drift(counted(rng, before, 20_000), counted(rng, after, 5_000))
    assert sorted(found.moved) == [0, 2]
    assert found
    assert "label 2" in str(found)
    np.testing.assert_allclose(found.before, before, atol=0.02)


def test_a_world_that_stays_is_seldom_said_to_have_moved():
    rng = np.random.default_rng(1)
    rates = np.geomspace(0.5, 1e-4, 20)
    alarms = [bool(omma.drift(*(counted(rng, rates, 3000) for _ in "ab"))) for _ in range(500)]
    assert np.mean(alarms) <= 0.01 + 3 * np.sqrt(0.01 / 500)


def test_p_values_are_those_of_fisher():
    one, other = (omma.Counts([0], [0], [k], n) for k, n in ((30, 1000), (6, 700)))
    expected = [
        stats.fisher_exact([[30, 970], [6, 694]], alternative=side).pvalue
        for side in ("less", "greater")
    ]
    assert omma.drift(one, other).p_values[0] == pytest.approx(2 * min(expected))


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", [omma.Forgetting, omma.Window])
def test_what_forgets_needs_no_second_window(kind, changes):
    rng = np.random.default_rng(2)
    eta = np.full((6000, 3), 0.3)
    if changes:
        eta[4000:, 1] = 0.1
    y = (rng.random(eta.shape) < eta).astype(np.int8)
    trace = omma.replay(kind(omma.OMMA("macro_f1", prior=0.1), 300), eta, y)
    found = omma.drift(trace)
    assert found.moved == ((1,) if changes else ())
    assert found.now[1] == pytest.approx(0.1 if changes else 0.3, abs=0.06)
    assert str(found).startswith("1 of 3" if changes else "none of 3")
    assert omma.drift(trace.state).moved == found.moved


def test_what_cannot_be_compared_is_refused():
    some = omma.Counts([0], [0], [1], 10)
    with pytest.raises(ValueError, match="later of drift must be given"):
        omma.drift(some)
    with pytest.raises(TypeError, match="later of drift must be counts"):
        omma.drift(some, 3)
    with pytest.raises(ValueError, match="same labels"):
        omma.drift(some, omma.Counts.zeros(2))
    with pytest.raises(ValueError, match="must have rows"):
        omma.drift(some, omma.Counts.zeros(1))
    with pytest.raises(ValueError, match="level of drift"):
        omma.drift(some, some, level=2.0)

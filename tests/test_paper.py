"""Parity with the paper: decisions of a slow twin of its formulas, row for row, at λ > 0."""

import warnings
from itertools import product

import naive_paper as paper
import numpy as np
import pytest
from naive_baselines import FEEDBACK, LAYOUTS, class_stream, dense, one_hot, stepped, stream

import omma
from omma.policies import ConvergenceWarning

PRIORS = (1e-3, 0.1)
MACRO = [f"macro_{name}" for name in paper.LABELS]
MICRO = ["micro_f1", "micro_jaccard", "micro_precision"]
CLASSES = [f"multiclass_{name}" for name in ("gmean", "hmean", "qmean")]
EVERY_WAY = list(product(PRIORS, FEEDBACK, LAYOUTS))


def same_everywhere(policy, eta, y, theirs, layout):
    """A replay and single steps decide every row as the twin does."""
    given = LAYOUTS[layout](eta)
    np.testing.assert_array_equal(dense(omma.replay(policy, given, y).predictions), theirs)
    learner = omma.OnlineClassifier(policy, eta.shape[1])
    np.testing.assert_array_equal(stepped(learner, given, y), theirs)


def long_stream(seed):
    return stream(seed, n=120, m=6, zeros=0.3)


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("name", [*MACRO, *MICRO])
def test_omma_decides_every_row_as_the_paper(name, k):
    eta, y = long_stream(1)
    for prior, feedback, layout in EVERY_WAY:
        theirs = paper.omma(name, eta, y, k, feedback, prior)
        same_everywhere(omma.OMMA(name, k, feedback, prior), eta, y, theirs, layout)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", CLASSES)
def test_omma_over_classes_decides_every_row_as_the_paper(name, k):
    eta, ids = class_stream(2, n=120, m=6)
    y = one_hot(ids, 6)
    for prior, feedback, layout in EVERY_WAY:
        theirs = paper.omma(name, eta, y, k, feedback, prior)
        same_everywhere(omma.OMMA(name, k, feedback, prior), eta, y, theirs, layout)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_ofo_decides_every_row_as_the_paper(average):
    eta, y = long_stream(3)
    for prior, feedback, layout in EVERY_WAY:
        theirs = paper.ofo(average, eta, y, feedback, prior)
        same_everywhere(omma.OFO(average, feedback, prior), eta, y, theirs, layout)


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("name", ["macro_f1", "macro_precision", "macro_recall", "macro_gmean"])
def test_plug_in_greedy_decides_every_row_as_the_paper(name, k):
    eta, y = long_stream(4)
    for prior, feedback, layout in EVERY_WAY:
        theirs = paper.greedy(name, eta, y, k, feedback, prior)
        policy = omma.Greedy(name, k, feedback, prior, "plug_in")
        same_everywhere(policy, eta, y, theirs, layout)


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("name", ["macro_f1", "macro_precision"])
def test_plug_in_greedy_divides_by_the_whole_sequence_as_the_authors_code(name, k):
    eta, y = long_stream(6)
    different = 0
    for prior, feedback, layout in EVERY_WAY:
        by_rows_so_far, by_all_rows = (
            paper.greedy(name, eta, y, k, feedback, prior, 1e-2, rows) for rows in (None, len(eta))
        )
        policy = omma.Greedy(name, k, feedback, prior, "plug_in", rows=len(eta), epsilon=1e-2)
        same_everywhere(policy, eta, y, by_all_rows, layout)
        different += np.count_nonzero(by_rows_so_far != by_all_rows)
    assert different > 0


@pytest.mark.parametrize("name", ["macro_f1", "micro_f1", "macro_gmean"])
def test_another_epsilon_is_the_papers_too(name):
    eta, y = long_stream(5)
    decided = {}
    for eps in (1e-9, 1e-2):
        theirs = paper.omma(name, eta, y, None, "labels", 1e-3, eps)
        policy = omma.OMMA(name, prior=1e-3, epsilon=eps)
        same_everywhere(policy, eta, y, theirs, "dense")
        decided[eps] = theirs
    assert (decided[1e-9] != decided[1e-2]).any() == (name != "macro_gmean")


def test_the_h_mean_over_classes_has_its_epsilon_on_the_cells():
    """On the rates, as a check that can fail, rows are decided otherwise."""
    eta, ids = class_stream(7, n=120, m=6)
    y = one_hot(ids, 6)

    def on_rates(cells, row, eps):
        rows = cells[:, 0] + cells[:, 2]
        return row / rows / (cells[:, 0] / rows + eps) ** 2

    for eps, feedback, layout in product((1e-3, 1e-1), FEEDBACK, LAYOUTS):
        theirs = paper.omma("multiclass_hmean", eta, y, 1, feedback, 1e-3, eps)
        policy = omma.OMMA("multiclass_hmean", 1, feedback, 1e-3, epsilon=eps)
        same_everywhere(policy, eta, y, theirs, layout)
    assert (paper.decide(on_rates, eta, y, 1, feedback, 1e-3, eps) != theirs).any()


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("start", ["top", "random"])
@pytest.mark.parametrize("name", ["macro_f1", "macro_precision", "macro_gmean", "macro_hmean"])
def test_frank_wolfe_reaches_the_papers_value_from_either_start(name, start, k):
    eta, y = long_stream(6)
    for prior, layout in product(PRIORS, LAYOUTS):
        policy = omma.FrankWolfe(
            name, k, prior=prior, start=start, step="2/(i+2)", max_iter=12, tolerance=0.0, seed=5
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = policy.fit(LAYOUTS[layout](eta), y)
        theirs = paper.frank_wolfe(name, eta, y, k, start, prior, len(found.log), seed=5)
        assert found.start == start
        assert found.log[-1].value == pytest.approx(theirs, rel=1e-9)

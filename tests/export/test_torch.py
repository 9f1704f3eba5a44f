"""A PyTorch module decides as the rule does, scripted or not."""

import numpy as np
import pytest
from hypothesis import given, settings
from rules_elsewhere import ABSENT, COSTLY, COSTLY_CLASSES, calibrated, calibrated_gains, decided

import omma

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'omma-learn[torch]'"
)


@given(decided())
@settings(max_examples=100)
def test_the_module_decides_alike(case):
    rule, eta, expected = case
    np.testing.assert_array_equal(rule.to_torch()(torch.from_numpy(eta)).numpy(), expected)


@given(decided(single=True))
@settings(max_examples=40)
def test_single_precision_decides_alike(case):
    rule, eta, expected = case
    np.testing.assert_array_equal(rule.to_torch()(torch.from_numpy(eta)).numpy(), expected)


@given(decided(matrix=True))
@settings(max_examples=40)
def test_tables_of_costs_decide_alike(case):
    rule, eta, expected = case
    np.testing.assert_array_equal(rule.to_torch()(torch.from_numpy(eta)).numpy(), expected)


def test_with_costs_a_label_that_is_absent_is_not_calibrated():
    found = COSTLY.to_torch()(torch.from_numpy(ABSENT))
    assert found.numpy().argmax(axis=1).tolist() == COSTLY_CLASSES


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("budget", [{}, {"k": 1}, {"k": 3}, {"at_most": 2}])
def test_the_module_can_be_scripted_and_saved(budget, tmp_path):
    g = np.random.default_rng(0)
    rule = omma.Rule(g.choice([1.0, 2.0], 5), g.choice([-0.5, -0.25], 5), **budget)
    eta = g.choice([0.0, 0.1, 0.25, 0.5], (200, 5))
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Identity(), rule.to_torch()))
    scripted.save(str(tmp_path / "head.pt"))
    found = torch.jit.load(str(tmp_path / "head.pt"))(torch.from_numpy(eta))
    np.testing.assert_array_equal(found.numpy(), rule.predict(eta))


def test_shapes_and_types_are_those_of_the_rule():
    head = omma.Rule([1.0, 2.0], [-0.5, -0.2]).to_torch()
    assert head(torch.tensor([0.6, 0.3])).tolist() == [1, 1]
    assert omma.Rule([1.0], [-0.5]).to_torch()(torch.tensor([0.5, 0.4])).tolist() == [1, 0]
    assert head(torch.rand(3, 2)).dtype == torch.int8
    assert set(head.state_dict()) == {"slope", "offset", "matrix", "bias"}


def test_a_calibration_is_part_of_the_module():
    g = np.random.default_rng(2)
    curve = (0.7, -0.2, g.normal(size=4), 2.0)
    rule = calibrated(omma.Rule(g.random(4) + 0.5, -g.random(4)), curve)
    eta = np.vstack((g.random((500, 4)), np.zeros(4), np.ones(4)))
    found = rule.to_torch()(torch.from_numpy(eta)).numpy()
    np.testing.assert_array_equal(found, calibrated_gains(rule, eta) >= 0)

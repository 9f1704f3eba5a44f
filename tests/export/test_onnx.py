"""onnxruntime decides as the rule does, on every row."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from rules_elsewhere import ABSENT, COSTLY, COSTLY_CLASSES, calibrated, calibrated_gains, decided

import omma

pytest.importorskip("onnx", reason="onnx is not installed: pip install 'omma-learn[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def run(rule, eta):
    model = rule.to_onnx(dtype=eta.dtype.name)
    return ort.InferenceSession(model.SerializeToString()).run(None, {"eta": eta})


def as_given(rule):
    """Whether onnxruntime takes a rule of one label as it is.

    It leaves out adding a single number that is zero in single precision, as 1e-60 is there, and
    multiplying by one that is 1.
    """
    small, even = np.float32(rule.offset) == 0.0, np.float32(rule.slope) == 1.0
    changed = (small & (rule.offset != 0.0)) | (even & (rule.slope != 1.0))
    return len(rule.slope) > 1 or not changed.any()


@given(decided())
@settings(max_examples=150)
def test_double_precision_decides_alike(case):
    rule, eta, expected = case
    assume(as_given(rule))
    np.testing.assert_array_equal(run(rule, eta)[0], expected)


@given(decided(single=True))
@settings(max_examples=60)
def test_single_precision_decides_alike(case):
    rule, eta, expected = case
    assume(as_given(rule))
    np.testing.assert_array_equal(run(rule, eta)[0], expected)


@given(decided(matrix=True))
@settings(max_examples=60)
def test_tables_of_costs_decide_alike(case):
    rule, eta, expected = case
    np.testing.assert_array_equal(run(rule, eta)[0], expected)


def test_with_costs_a_label_that_is_absent_is_not_calibrated():
    assert COSTLY.predict(ABSENT).argmax(axis=1).tolist() == COSTLY_CLASSES
    assert run(COSTLY, ABSENT)[1].tolist() == COSTLY_CLASSES


@pytest.mark.parametrize("budget", [{}, {"k": 1}, {"k": 3}, {"k": 10}, {"at_most": 3}])
def test_many_rows_of_many_labels_with_ties(budget):
    g = np.random.default_rng(0)
    rule = omma.Rule(g.choice([0.5, 1.0, 2.0], 60), g.choice([-0.5, -0.25], 60), **budget)
    eta = g.choice([0.0, 0.1, 0.25, 0.5, 1.0], (2000, 60), p=[0.9, 0.025, 0.025, 0.025, 0.025])
    np.testing.assert_array_equal(run(rule, eta)[0], rule.predict(eta))


def test_one_class_a_row_has_its_place_as_an_output():
    g = np.random.default_rng(1)
    rule = omma.Rule(g.random(5), g.random(5) - 0.5, 1)
    eta = g.random((50, 5)).astype(np.float32)
    decisions, classes = run(rule, eta)
    np.testing.assert_array_equal(classes, rule.predict(eta).argmax(axis=1))
    np.testing.assert_array_equal(decisions.sum(axis=1), 1)


def test_the_model_tells_its_rule():
    rule = omma.Rule([1.0, 2.0], [-0.5, -0.2], names=["a", "b"])
    (prop,) = rule.to_onnx().metadata_props
    assert omma.Rule.from_json(prop.value) == rule


def test_a_calibration_is_part_of_the_model():
    g = np.random.default_rng(2)
    curve = (0.7, -0.2, g.normal(size=4), 2.0)
    rule = calibrated(omma.Rule(g.random(4) + 0.5, -g.random(4)), curve)
    eta = np.vstack((g.random((500, 4)), np.zeros(4), np.ones(4)))
    np.testing.assert_array_equal(run(rule, eta)[0], calibrated_gains(rule, eta) >= 0)


def test_bad_options_get_a_sentence():
    with pytest.raises(ValueError, match=r"dtype of Rule.to_onnx must be 'float32' or 'float64'"):
        omma.Rule([1.0], [-0.5]).to_onnx(dtype="float16")
    wide = omma.Rule(np.ones(300), np.zeros(300), 1, np.zeros((300, 300)))
    with pytest.raises(ValueError, match=r"at most 256 classes for Rule.to_onnx, got 300"):
        wide.to_onnx()

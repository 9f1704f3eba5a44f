"""The history of a replay: the metric and the limits after the first rows."""

import numpy as np
import pytest
from streams import class_stream, stream

import omma

NAMES = ("macro_f1", "micro_mcc", "macro_gmean", "macro_accuracy", "weighed", "sum")
OWN = {
    "weighed": omma.metric("weighted_f1"),
    "sum": omma.metric("macro_f1") + 2.0 * omma.metric("micro_accuracy"),
}


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_rows_so_far(name):
    metric = OWN.get(name) or omma.metric(name)
    eta, y = stream(0, 60, 4)
    trace = omma.replay(omma.OMMA(metric, prior=0.1), eta, y, checkpoints=7)
    for rows, value in zip(trace.history.rows, trace.history.values, strict=True):
        score = metric.score(y[:rows], trace.predictions[:rows])
        assert value == pytest.approx(score, abs=1e-12)
    assert trace.history.values[-1] == trace.value


@pytest.mark.parametrize("name", ["multiclass_kappa", "multiclass_hmean"])
def test_values_of_classes_are_those_of_the_rows_so_far(name):
    eta, ids = class_stream(1, 60, 4)
    trace = omma.replay(omma.OMMA(name, prior=0.1), eta, ids, checkpoints=5)
    for rows, value in zip(trace.history.rows, trace.history.values, strict=True):
        score = omma.metric(name).score(ids[:rows], trace.classes[:rows], n_labels=4)
        assert value == pytest.approx(score, abs=1e-12)


def test_rows_that_weigh_nothing_have_no_value():
    eta, y = stream(2, 40, 3)
    weights = np.repeat([0.0, 2.0], 20)
    policy = omma.OMMA("macro_accuracy", subject_to="labels_per_row <= 2")
    trace = omma.replay(policy, eta, y, weights=weights, checkpoints=[10, 20, 30, 40])
    (limit,) = trace.history.limits.values()
    for values in (trace.history.values, limit):
        assert np.isnan(values).tolist() == [True, True, False, False]
    score = omma.metric("macro_accuracy").score(y[20:30], trace.predictions[20:30])
    assert trace.history.values[2] == pytest.approx(score)
    assert limit[2] == pytest.approx(trace.predictions[20:30].sum() / 10)

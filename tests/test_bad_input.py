"""Bad input gets one clear sentence, and leaves the state untouched."""

import copy
import re

import numpy as np
import pytest
from scipy import sparse

import omma

ETA = np.array([[0.9, 0.2, 0.4], [0.1, 0.8, 0.3]])
Y = np.array([[1, 0, 1], [0, 1, 0]])
LAYOUTS = {"dense": np.array, "csr": sparse.csr_array}


def changed(row, column, value):
    eta = ETA.copy()
    eta[row, column] = value
    return eta


def one_sentence(text):
    """One line that does not ramble."""
    assert "\n" not in text
    assert len(text) < 260
    return text


def refused(call, pattern, error=ValueError):
    with pytest.raises(error) as caught:
        call()
    text = one_sentence(str(caught.value))
    assert re.search(pattern, text), text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-0.1, "-0.1"), (1.5, "1.5")]
)
def test_what_is_no_probability_is_named_with_its_place(layout, value, shown):
    eta = LAYOUTS[layout](changed(1, 2, value))
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), eta, Y),
        rf"eta of replay.*probabilities from 0 to 1, got {shown} in row 1, label 2",
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.5])
def test_a_learner_refuses_it_and_keeps_its_state(value):
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)
    learner.predict(ETA[0])
    learner.update(Y[0])
    before = copy.deepcopy(learner.state)
    refused(lambda: learner.predict(changed(0, 0, value)[0]), "eta of predict.*from 0 to 1, got")
    refused(lambda: learner.predict(sparse.csr_array(changed(0, 0, value)[[0]])), "eta of predict")
    refused(lambda: learner.update(Y[0]), "update of OnlineClassifier must come after predict")
    assert learner.state == before


def test_text_is_no_probability():
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), [["a", "b"]], [[1, 0]]),
        "eta of replay must hold real numbers, got the type <U1",
        TypeError,
    )


def test_a_wrong_width_is_named():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)
    refused(
        lambda: learner.predict([0.1, 0.2]),
        r"eta of predict must have the shape \(3,\) or \(rows, 3\), got \(2,\)",
    )
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), ETA, Y[:, :2]),
        r"y of replay must have the shape \(2, 3\), or \(2,\) for class ids to fit eta, got shape "
        r"\(2, 2\)",
    )
    refused(
        lambda: omma.Rule([1.0, 1.0], [0.0, 0.0]).predict(ETA),
        "eta of Rule.predict must have 2 labels, got 3",
    )
    refused(lambda: omma.replay(omma.OMMA("macro_f1"), np.zeros((2, 2, 2)), Y), r"\(2, 2, 2\)")


@pytest.mark.parametrize("name", ["macro_f", "macrof1", "gmeans"])
def test_an_unknown_metric_names_the_nearest(name):
    refused(lambda: omma.metric(name), f"unknown metric '{name}'; did you mean '")


def test_a_metric_of_another_kind_is_refused():
    refused(lambda: omma.metric(3), "a metric must be a name or a metric, got 3", TypeError)


def test_a_budget_above_the_number_of_labels_is_named():
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1", k=4), ETA, Y),
        "k of OMMA.* must be at most the number of labels, which is 3, got 4",
    )
    refused(lambda: omma.OnlineClassifier(omma.TopK(4), 3), "k of TopK.*which is 3, got 4")


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", True])
def test_a_budget_must_be_a_whole_number_above_zero(k):
    refused(
        lambda: omma.OMMA("macro_f1", k=k),
        "k of OMMA must be a whole number of at least 1, or None, got",
        (TypeError, ValueError),
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value", [2, -1, 0.5])
def test_labels_must_be_zero_or_one(layout, value):
    y = Y.astype(float)
    y[1, 0] = value
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), LAYOUTS[layout](ETA), LAYOUTS[layout](y)),
        "y of replay must hold only 0 and 1, got .* in row 1",
    )


@pytest.mark.parametrize("value", [2, -1, 0.5, np.inf])
def test_a_learner_refuses_other_labels_and_keeps_its_state(value):
    learner = omma.OnlineClassifier(omma.OMMA("micro_f1"), 3)
    learner.predict(ETA[0])
    before = copy.deepcopy(learner.state)
    refused(lambda: learner.update(np.array([1, value, 0])), "y of update must hold only 0 and 1")
    assert learner.state == before
    learner.update(Y[0])  # the prediction still waits
    assert learner.counts.n == 1


@pytest.mark.parametrize("ids", [[0, 3], [-1, 0], [0, 1.5]])
def test_class_ids_must_be_in_range(ids):
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1", k=1), ETA, ids),
        r"class ids in y of replay must be whole numbers from 0 to 2, got -?[\d.]+ in row \d",
    )
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1", k=1), 3)
    learner.predict(ETA[0])
    before = copy.deepcopy(learner.state)
    refused(lambda: learner.update(max(ids, key=abs)), "class ids in y of update must be")
    assert learner.state == before


def test_class_ids_without_a_budget_say_what_to_pass():
    refused(lambda: omma.replay(omma.OMMA("macro_f1"), ETA, [0, 1]), "pass k=1")
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)
    learner.predict(ETA[0])
    refused(lambda: learner.update(1), "pass k=1")


def test_two_columns_for_a_binary_metric_say_what_to_pass():
    refused(lambda: omma.replay(omma.OMMA("f1"), ETA[:, :2], Y[:, :2]), r"pass eta\[:, 1\]")
    refused(lambda: omma.replay(omma.OMMA("f1"), ETA, Y), "use macro_f1 or micro_f1")


def test_update_before_predict():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)
    before = copy.deepcopy(learner.state)
    refused(lambda: learner.update(Y[0]), "update of OnlineClassifier must come after predict")
    assert learner.state == before


def test_a_prediction_is_counted_once():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)
    learner.predict(ETA[0])
    learner.update(Y[0])
    refused(lambda: learner.update(Y[0]), "must come after predict")
    assert learner.counts.n == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_empty_sequence(layout):
    eta = LAYOUTS[layout](np.empty((0, 3)))
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), eta, np.empty((0, 3), dtype=int)),
        "eta of replay must have at least one row and label, got 0 rows and 3 labels",
    )


def test_misspelt_options():
    refused(lambda: omma.OMMA("macro_f1", feedbak="labels"), "feedbak", TypeError)
    refused(lambda: omma.replay(omma.OMMA("macro_f1"), ETA, Y, weight=[1, 1]), "weight", TypeError)
    refused(
        lambda: omma.OMMA("macro_f1", feedback="label"),
        "feedback of OMMA must be 'labels' or 'estimates' or 'both', got 'label'; did you mean "
        "'labels'",
    )


@pytest.mark.parametrize("prior", [-1, np.nan, np.inf, "1"])
def test_a_prior_must_be_a_number_of_at_least_zero(prior):
    refused(
        lambda: omma.OMMA("macro_f1", prior=prior),
        "prior of OMMA must be a finite number of at least 0, got",
        (TypeError, ValueError),
    )


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 1.0]]])
def test_weights_must_be_one_for_each_row(weights):
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), ETA, Y, weights=weights), "weights of replay"
    )


def test_labels_are_needed_unless_estimates_are_counted():
    refused(lambda: omma.replay(omma.OMMA("macro_f1"), ETA), "only feedback='estimates' learns")
    assert omma.replay(omma.OMMA("macro_f1", feedback="estimates"), ETA).value is None


def test_a_fixed_rule_needs_a_metric():
    refused(lambda: omma.replay(omma.Threshold(0.5), ETA, Y), "metric of replay must be given")


@pytest.mark.parametrize("name", ["multiclass_mcc", "multiclass_kappa"])
def test_agreement_over_classes_is_for_one_prediction_and_one_label(name):
    refused(lambda: omma.OMMA(name, k=2), f"k of OMMA must be 1 or None for {name}")
    refused(
        lambda: omma.replay(omma.OMMA(name), ETA, [[1, 1, 0], [0, 1, 0]]),
        f"exactly one label a row for {name}, got 2 in row 0",
    )


def test_thresholds_of_a_budget_name_the_rule():
    rule = omma.replay(omma.OMMA("macro_f1", k=1), ETA, Y).rule
    refused(lambda: rule.thresholds, r"rule.slope \* eta \+ rule.offset")


def test_a_policy_must_be_a_policy():
    refused(lambda: omma.replay("omma", ETA, Y), "policy of replay must be a policy", TypeError)
    refused(lambda: omma.OnlineClassifier("omma", 3), "policy of OnlineClassifier", TypeError)


@pytest.mark.parametrize("weight", [None, "a", [None], ["1"], [[1.0], [1.0, 2.0]], 1j])
def test_a_weight_must_be_a_number(weight):
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3)
    learner.predict(ETA[0])
    before = copy.deepcopy(learner.state)
    errors = (TypeError, ValueError)
    refused(lambda: learner.update(Y[0], weight=weight), "weight of update must be", errors)
    refused(lambda: learner.update([*Y[0]], weight=weight), "weight of update must be", errors)
    assert learner.state == before
    learner.update(Y[0], weight=2)
    assert learner.counts.n == 2


@pytest.mark.parametrize("weights", ["a", ["a", "b"], ["1", "2"], [[1.0], [1.0, 2.0]], {}, 1j])
def test_weights_must_be_numbers(weights):
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), ETA, Y, weights=weights),
        "weights of replay must be numbers, got",
        TypeError,
    )


@pytest.mark.parametrize("seed", [-1, "a", 0.5, True, [1]])
def test_a_seed_must_be_a_whole_number(seed):
    refused(
        lambda: omma.replay(omma.OMMA("macro_f1"), ETA, Y, seed=seed),
        "seed of replay must be a whole number of at least 0, got",
        (TypeError, ValueError),
    )


@pytest.mark.parametrize("slope", ['"a"', '["a"]', "[null]", "[[1], [1, 2]]", "{}", "null", "[]"])
def test_a_rule_of_something_else_is_refused(slope):
    text = f'{{"format": "omma-rule-1", "k": null, "slope": {slope}, "offset": [0.0]}}'
    refused(lambda: omma.Rule.from_json(text), "slope of Rule must be finite numbers")


@pytest.mark.parametrize("text", [5, None, "{", b"\xff"])
def test_a_rule_is_read_from_json(text):
    refused(lambda: omma.Rule.from_json(text), r"text of Rule\.from_json must be JSON")


def test_limits_of_waiting_are_checked_and_nothing_changes():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3, max_waiting=7)
    refused(lambda: learner.bound_waiting(-5), "limit of bound_waiting must be a whole number")
    refused(lambda: learner.bound_waiting(9, -1.0), "max_seconds of bound_waiting must be")
    assert learner.waiting.limit == 7


def test_a_calibrator_names_weights_of_another_length():
    calibrator = omma.calibration.OnlineCalibrator(3)
    refused(
        lambda: calibrator.update(ETA, Y, weight=[1.0, 2.0, 3.0]),
        r"weight of OnlineCalibrator.update must have the shape \(2,\), got shape \(3,\)",
    )
    calibrator.update(ETA, Y, weight=2)
    assert calibrator.rows == 4


@pytest.mark.parametrize("label", [3, -1, 1.5])
def test_reliability_names_a_label_that_there_is_not(label):
    error = TypeError if label == 1.5 else ValueError
    refused(
        lambda: omma.calibration.reliability(ETA, Y, label=label),
        "label of reliability must be a",
        error,
    )


def test_a_metric_with_a_budget_is_told_to_pass_both():
    refused(lambda: omma.metric("macro_f1@2"), "or pass 'macro_f1' and k=2")


def test_no_rows_of_a_batch_are_a_batch():
    assert omma.Batch.of(ETA, Y).take([]).n == 0


@pytest.mark.parametrize("name", ["youden", "macro_youden", "informedness", "micro_j_statistic"])
def test_names_of_balanced_accuracy_less_one_are_told_so(name):
    refused(lambda: omma.metric(name), "it is 2·balanced_accuracy − 1: use 'balanced_accuracy'")

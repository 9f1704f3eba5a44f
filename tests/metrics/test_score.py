"""``metric.score`` on classes of any name, label sets and undefined rates, against scikit-learn."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.metrics as skl
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from strategies import close

import omma

NAMES = {
    "macro_f1": lambda t, p, **o: skl.f1_score(t, p, average="macro", **o),
    "micro_f1": lambda t, p, **o: skl.f1_score(t, p, average="micro", **o),
    "macro_precision": lambda t, p, **o: skl.precision_score(t, p, average="macro", **o),
    "macro_recall": lambda t, p, **o: skl.recall_score(t, p, average="macro", **o),
    "macro_jaccard": lambda t, p, **o: skl.jaccard_score(t, p, average="macro", **o),
}
NAN_TOO = ("macro_f1", "macro_precision", "macro_recall", "micro_f1")

few_ids = st.sampled_from([-3, 1, 2, 3, 10])
pairs = st.lists(st.tuples(few_ids, few_ids), min_size=1, max_size=25)


def split(rows):
    return [one for one, _ in rows], [other for _, other in rows]


def as_text(ids):
    return [f"class {one}" for one in ids]


LAYOUTS = {
    "list": list,
    "array": np.array,
    "floats": lambda ids: np.array(ids, dtype=float),
    "text": as_text,
    "objects": lambda ids: np.array(as_text(ids), dtype=object),
    "categories": lambda ids: pd.Series(pd.Categorical(as_text(ids))),
    "bare categories": lambda ids: pd.Categorical(as_text(ids)),
    "polars": lambda ids: pl.Series(as_text(ids), dtype=pl.Categorical),
}


@pytest.mark.parametrize("name", NAMES)
@given(rows=pairs)
@settings(max_examples=60)
def test_classes_of_any_number_score_as_in_scikit_learn(name, rows):
    true, predicted = split(rows)
    expected = NAMES[name](true, predicted, zero_division=0)
    assert omma.metric(name).score(true, predicted) == close(expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(rows=pairs)
@settings(max_examples=15)
def test_every_layout_of_classes_scores_the_same(layout, rows):
    true, predicted = split(rows)
    expected = skl.f1_score(true, predicted, average="macro", zero_division=0)
    both = LAYOUTS[layout](true), LAYOUTS[layout](predicted)
    assert omma.metric("macro_f1").score(*both) == close(expected)


@pytest.mark.parametrize("name", NAN_TOO)
@given(rows=pairs)
@settings(max_examples=60)
def test_nan_leaves_out_undefined_labels_as_in_scikit_learn(name, rows):
    true, predicted = split(rows)
    expected = NAMES[name](true, predicted, zero_division=np.nan)
    found = omma.metric(name).score(true, predicted, zero_division=np.nan)
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(rows=pairs)
@settings(max_examples=60)
def test_means_over_classes_leave_out_classes_that_never_come(rows):
    true, predicted = split(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = skl.balanced_accuracy_score(true, predicted)
    found = omma.metric("multiclass_balanced_accuracy").score(true, predicted, zero_division=np.nan)
    assert found == close(expected)
    recalls = [np.mean([p == c for t, p in rows if t == c]) for c in sorted(set(true))]
    gmean = omma.metric("multiclass_gmean").score(true, predicted, zero_division=np.nan)
    assert gmean == close(np.prod(recalls) ** (1 / len(recalls)))


@given(rows=pairs)
@settings(max_examples=60)
def test_agreement_over_classes_is_scikit_learns(rows):
    true, predicted = split(rows)
    assert omma.metric("multiclass_accuracy").score(true, predicted) == close(
        skl.accuracy_score(true, predicted)
    )
    if len({*true, *predicted}) > 1:
        assert omma.metric("multiclass_mcc").score(true, predicted) == close(
            skl.matthews_corrcoef(true, predicted)
        )
        assert omma.metric("multiclass_kappa").score(as_text(true), as_text(predicted)) == close(
            skl.cohen_kappa_score(true, predicted)
        )


@given(rows=pairs, kept=st.lists(few_ids, min_size=1, max_size=4, unique=True))
@settings(max_examples=60)
def test_labels_choose_the_classes_that_are_judged(rows, kept):
    true, predicted = split(rows)
    for name, theirs in NAMES.items():
        if not {*kept} & {*true, *predicted}:
            continue  # scikit-learn refuses labels of which none is true
        expected = theirs(true, predicted, labels=kept, zero_division=0)
        assert omma.metric(name).score(true, predicted, labels=kept) == close(expected)


def test_wine_with_classes_from_one_is_as_good_as_scikit_learn_says():
    X, y = load_wine(return_X_y=True)
    y = y + 1
    found = cross_val_predict(LogisticRegression(max_iter=1000), X / X.std(axis=0), y, cv=3)
    expected = skl.f1_score(y, found, average="macro")
    assert omma.metric("macro_f1").score(y, found) == close(expected)
    recalls = skl.recall_score(y, found, average=None)
    assert omma.metric("multiclass_gmean").score(y, found) == close(np.prod(recalls) ** (1 / 3))
    assert omma.metric("multiclass_gmean").score(y, y) == 1.0


def test_n_labels_counts_classes_that_never_come():
    assert omma.metric("macro_f1").score([1, 2], [1, 2]) == 1.0
    assert omma.metric("macro_f1").score([1, 2], [1, 2], n_labels=4) == 0.5
    assert omma.metric("macro_f1").score(["a", "b"], ["a", "b"], n_labels=4) == 0.5
    with pytest.raises(
        ValueError, match=r"n_labels of macro_f1.score must be at least .* 3, got 2"
    ):
        omma.metric("macro_f1").score([0, 5], [0, 7], n_labels=2)


@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
def test_one_class_alone_scores_as_in_scikit_learn():
    ones = ["only", "only"]
    for name in ("accuracy", "balanced_accuracy", "gmean", "hmean", "qmean", "min_recall"):
        assert omma.metric(f"multiclass_{name}").score(ones, ones) == 1.0
    assert omma.metric("multiclass_kappa").score(ones, ones) == 0.0
    assert omma.metric("multiclass_mcc").score(ones, ones) == skl.matthews_corrcoef(ones, ones)


def test_a_metric_of_one_label_takes_its_positive_class():
    true, predicted = ["ham", "spam", "spam", "ham"], ["spam", "spam", "ham", "ham"]
    f1 = omma.metric("f1")
    assert f1.score(true, predicted, pos_label="spam") == 0.5
    assert f1.score([-1, 1, 1], [1, 1, -1]) == 0.5
    assert f1.score(pd.Series([True, False]), np.array([True, True])) == close(2 / 3)
    with pytest.raises(ValueError, match="pass pos_label, or use macro_f1"):
        f1.score(true, predicted)
    with pytest.raises(ValueError, match="pass pos_label, or use macro_f1"):
        f1.score([0, 1, 2], [0, 1, 2])
    with pytest.raises(ValueError, match=r"pos_label of macro_f1.score must be None"):
        omma.metric("macro_f1").score(true, predicted, pos_label="spam")


@pytest.mark.parametrize("column", [lambda y: np.array(y)[:, np.newaxis], pd.DataFrame])
@pytest.mark.parametrize("classes", [[0, 1, 2, 1, 0, 0], [0, 1, 1, 1, 0, 0], list("xyzyxx")])
def test_a_column_beside_a_vector_is_one(column, classes):
    """As frame[["target"]] beside what a model predicts; it is no label with 0 and 1."""
    predicted = [classes[i] for i in (0, 0, 2, 1, 1, 0)]
    macro = omma.metric("macro_f1")
    expected = close(skl.f1_score(classes, predicted, average="macro"))
    assert macro.score(column(classes), np.array(predicted)) == expected
    assert macro.score(classes, column(predicted)) == expected
    if isinstance(classes[0], str):
        assert macro.score(column(classes), column(predicted)) == expected
    ones = column([0, 1, 1]), column([0, 1, 0])
    assert macro.score(*ones) == close(2 / 3)  # two columns are a label


def test_costs_go_by_the_place_of_a_class():
    costs = omma.metrics.costs([[0, -1, -1], [-5, 0, -1], [-9, -1, 0]])
    assert costs.score([0, 2], [0, 0]) == -4.5  # the second class is not there, and keeps its place
    assert costs.score(["a", "c", "b"], ["a", "a", "b"]) == -3.0


SETS = [["sports"], ["music", "news"], []]
FOUND = [["sports", "news"], ["news"], []]


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_lists_of_labels_are_label_sets(kind):
    true, predicted = ([kind(row) for row in rows] for rows in (SETS, FOUND))
    matrices = [[0, 0, 1], [1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 1, 0], [0, 0, 0]]
    for name in ("macro_f1", "micro_f1", "macro_jaccard"):
        assert omma.metric(name).score(true, predicted) == omma.metric(name).score(*matrices)
    series = pd.Series(true), pd.Series(predicted)
    assert omma.metric("micro_f1").score(*series) == omma.metric("micro_f1").score(*matrices)
    some = omma.metric("macro_f1").score(true, predicted, labels=["news", "sports"])
    assert some == close(np.mean([2 / 3, 1.0]))


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([1.5, 2], [1, 2], r"y_true of macro_f1.score must hold classes, .* got 1.5 in row 0"),
        (["a", None], ["a", "b"], "got None in row 1"),
        ([1.0, np.nan], [1, 2], "got nan in row 1"),
        (["a", "b"], [0, 1], "must be of one kind, got int and str"),
        (["a", 1], ["a", "b"], "must be of one kind, got int and str"),
        ([1, 2], [1], "must have one length, got 2 and 1"),
        ([{1}, {2}], [[1, 0], "no"], "y_pred of macro_f1.score must be lists of labels"),
        ([[1], [1, 2]], [[1], [2]], "pass labels of rows as sets"),
        ([], [], "at least one row"),
    ],
)
def test_what_is_no_class_is_refused(true, predicted, message):
    with pytest.raises((ValueError, TypeError), match=message):
        omma.metric("macro_f1").score(true, predicted)


def test_options_that_mean_nothing_are_refused():
    indicators = [[1, 0], [0, 1]]
    macro_f1 = omma.metric("macro_f1")
    with pytest.raises(ValueError, match=r"labels of macro_f1.score must be None for indicators"):
        macro_f1.score(indicators, indicators, labels=[0, 1])
    with pytest.raises(ValueError, match=r"labels of macro_f1.score must be at least one class"):
        macro_f1.score([1, 2], [1, 2], labels=[1, 1])
    with pytest.raises(ValueError, match=r"multiclass_mcc.score must hold the classes"):
        omma.metric("multiclass_mcc").score([1, 2, 3], [1, 2, 3], labels=[1, 2])
    with pytest.raises(TypeError, match=r"zero_division of macro_f1.score"):
        macro_f1.score([1, 2], [1, 2], zero_division="warn")


def test_rows_of_pandas_are_paired_by_index():
    true, predicted = pd.Series(["a", "b"], index=[1, 2]), pd.Series(["b", "a"], index=[2, 1])
    with pytest.raises(ValueError, match="must have its rows in the order"):
        omma.metric("macro_f1").score(true, predicted)


def test_nan_leaves_out_parts_of_sums_and_of_one_label():
    mixed = 0.5 * omma.metric("macro_f1") + 0.5 * omma.metric("macro_recall")
    true, predicted = [1, 1, 2], [1, 3, 2]  # the recall of 3 is 0/0, its F1 is not
    f1, recall = (2 / 3 + 1 + 0) / 3, (1 / 2 + 1) / 2
    assert mixed.score(true, predicted, zero_division=np.nan) == close((f1 + recall) / 2)
    assert np.isnan(omma.metric("gmean").score([1, 1], [1, 1], zero_division=np.nan))

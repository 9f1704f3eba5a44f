"""omma's metrics in river equal river's own where river has them, and revert exactly."""

import pickle

import pytest
from hypothesis import given, settings, strategies as st
from river import base, cluster, linear_model, metrics, multioutput, preprocessing

import omma
from omma.river import Metric

BINARY = {
    "accuracy": metrics.Accuracy,
    "precision": metrics.Precision,
    "recall": metrics.Recall,
    "f1": metrics.F1,
    "jaccard": metrics.Jaccard,
    "mcc": metrics.MCC,
    "multiclass_gmean": metrics.GeometricMean,
}
CLASSES = {
    "multiclass_accuracy": metrics.Accuracy,
    "multiclass_kappa": metrics.CohenKappa,
    "multiclass_gmean": metrics.GeometricMean,
    "macro_precision": metrics.MacroPrecision,
    "macro_recall": metrics.MacroRecall,
    "macro_f1": metrics.MacroF1,
    "macro_jaccard": metrics.MacroJaccard,
    "micro_precision": metrics.MicroPrecision,
    "micro_recall": metrics.MicroRecall,
    "micro_f1": metrics.MicroF1,
    "micro_jaccard": metrics.MicroJaccard,
}
MANY = ["precision", "recall", "f1", "jaccard", "mcc", "accuracy"]

pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20)
classes = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), min_size=1, max_size=20
)
truth_tables = st.fixed_dictionaries(dict.fromkeys("abc", st.booleans()))
many = st.lists(st.tuples(truth_tables, truth_tables), min_size=1, max_size=12)
weights = st.floats(0.0, 10.0, allow_subnormal=False)


def agree(ours, theirs, rows):
    """Equal after every row, not only in the end."""
    for y_true, y_pred in rows:
        ours.update(y_true, y_pred)
        theirs.update(y_true, y_pred)
        assert ours.get() == pytest.approx(theirs.get(), abs=1e-9)


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=25)
@given(rows=pairs)
def test_yes_or_no_as_river(name, rows):
    agree(Metric(name), BINARY[name](), rows)


@settings(max_examples=25)
@given(rows=pairs, beta=st.sampled_from([0.5, 2.0]))
def test_fbeta_as_river(rows, beta):
    agree(Metric(omma.metrics.fbeta(beta)), metrics.FBeta(beta), rows)


@settings(max_examples=25)
@given(rows=pairs)
def test_another_positive_value_turns_it_round(rows):
    ours, theirs = Metric("f1", pos_val=False), metrics.F1()
    for y_true, y_pred in rows:
        ours.update(y_true, y_pred)
        theirs.update(not y_true, not y_pred)
    assert ours.get() == pytest.approx(theirs.get())


@pytest.mark.parametrize("name", CLASSES)
@settings(max_examples=25)
@given(rows=classes)
def test_classes_as_river(name, rows):
    agree(Metric(name), CLASSES[name](), rows)


@settings(max_examples=25)
@given(rows=classes)
def test_balanced_accuracy_as_river_where_every_class_has_rows(rows):
    ours, theirs = Metric("multiclass_balanced_accuracy"), metrics.BalancedAccuracy()
    for y_true, y_pred in [*rows, *zip("abcd", "abcd", strict=True)]:
        ours.update(y_true, y_pred)
        theirs.update(y_true, y_pred)
    assert ours.get() == pytest.approx(theirs.get())


@pytest.mark.parametrize("name", MANY)
@settings(max_examples=25)
@given(rows=many)
def test_many_labels_as_river(name, rows):
    agree(Metric(f"macro_{name}"), metrics.multioutput.MacroAverage(BINARY[name]()), rows)
    agree(Metric(f"micro_{name}"), metrics.multioutput.MicroAverage(BINARY[name]()), rows)


@pytest.mark.parametrize("name", omma.metrics.NAMES)
def test_every_metric_is_that_of_omma(name):
    metric = omma.metric(name)
    y_true, y_pred = "abcabcaabb", "abcbbcacab"
    ours = Metric(name, pos_val="a")
    for pair in zip(y_true, y_pred, strict=True):
        ours.update(*pair)
    if metric.binary:
        expected = metric.score([y == "a" for y in y_true], [y == "a" for y in y_pred])
    else:
        expected = metric.score(*([ord(y) - ord("a") for y in ys] for ys in (y_true, y_pred)))
    assert ours.get() == pytest.approx(expected)


@settings(max_examples=40)
@given(kept=many, taken=many, data=st.data())
def test_revert_is_exact(kept, taken, data):
    metric = Metric("macro_mcc")
    for pair in kept:
        metric.update(*pair, w=data.draw(weights))
    before = pickle.dumps(metric)
    rows = [(pair, data.draw(weights)) for pair in taken]
    for pair, w in rows:
        metric.update(*pair, w=w)
    for pair, w in data.draw(st.permutations(rows)):
        metric.revert(*pair, w=w)
    assert metric.counts == pickle.loads(before).counts
    assert metric.get() == pickle.loads(before).get()


def test_a_class_leaves_with_its_last_row():
    metric = Metric("macro_f1")
    metric.update("a", "a")
    metric.update("b", "c")
    metric.revert("b", "c")
    assert metric.get() == 1.0
    assert metric.counts.m == 1


def test_what_was_not_added_cannot_be_taken_back():
    metric = Metric("macro_f1")
    metric.update("a", "a")
    with pytest.raises(ValueError, match="revert of Metric must come after an update"):
        metric.revert("a", "b")
    assert metric.counts.n == 1


def test_labels_may_be_missing():
    metric = Metric("macro_f1")
    metric.update({"a": True, "new": True}, {"a": True})
    assert metric.get() == 0.5
    metric.update({"a": False}, {"a": False, "odd": True})
    assert metric.counts.m == 3


def test_it_knows_what_it_works_with():
    one = linear_model.LogisticRegression()
    many = multioutput.ClassifierChain(linear_model.LogisticRegression())
    piped = preprocessing.StandardScaler() | many
    assert Metric("f1").works_with(one)
    assert not Metric("f1").works_with(many)
    assert not Metric("multiclass_gmean").works_with(piped)
    assert Metric("macro_f1").works_with(one)
    assert Metric("macro_f1").works_with(piped)
    assert not Metric("macro_f1").works_with(linear_model.LinearRegression())
    assert not Metric("macro_f1").works_with(cluster.KMeans())


def test_it_is_a_metric_of_river():
    metric = Metric("f1")
    assert isinstance(metric, metrics.base.ClassificationMetric)
    assert isinstance(metric, base.Base)
    assert metric.bigger_is_better
    assert metric.requires_labels
    assert metric.works_with_weights
    assert metric.get() == 0.0
    metric.update(True, True, w=0.5)
    assert repr(metric) == "f1: 100.00%"
    assert metric.clone().get() == 0.0
    assert pickle.loads(pickle.dumps(metric)).get() == 1.0
    assert metric.is_better_than(metric.clone())


@pytest.mark.parametrize(
    ("name", "y_true", "y_pred", "words"),
    [
        ("macro_f1", {"a": True}, True, "y_pred of macro_f1 must be a dictionary .* got True"),
        ("macro_f1", True, {"a": True}, "y_pred of macro_f1 must be one class a row, got {'a'"),
        ("macro_f1", [1, 0], [1, 0], "y_true of macro_f1 must be one class a row"),
        ("f1", {"a": True}, True, "y_true of f1 must be one class a row, got {'a'"),
        ("multiclass_gmean", {"a": True}, "a", "y_true of .* must be one class a row"),
    ],
)
def test_labels_of_two_kinds_get_a_sentence(name, y_true, y_pred, words):
    metric = Metric(name)
    with pytest.raises(TypeError, match=words):
        metric.update(y_true, y_pred)
    assert metric.counts.n == 0


def test_a_dictionary_of_labels_is_refused_for_classes():
    with pytest.raises(TypeError, match="one class a row"):
        Metric("multiclass_gmean").update({"a": True}, {"a": True})

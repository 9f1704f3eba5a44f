"""The river classifier makes OMMA's decisions, whenever labels come and whichever they are."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from river import (
    base,
    datasets,
    evaluate,
    linear_model,
    metrics,
    multioutput,
    naive_bayes,
    preprocessing,
    utils,
)

import omma
from omma.river import Metric, MetricClassifier
from omma.river.waiting import WaitingRows, content_key

LABELS = ("ant", "bee", "cat", "dog")


class Oracle(base.Classifier):
    """Gives the probabilities that are in x; keeps what it was taught."""

    def __init__(self):
        self.taught = []

    def predict_proba_one(self, x, **kwargs):
        return {label: p for label, p in x.items() if label != "row"}

    def learn_one(self, x, y):
        self.taught.append((x["row"], y))

    @property
    def _multiclass(self):
        return True


class ManyOracle(base.MultiLabelClassifier):
    """The same for many labels."""

    def __init__(self):
        self.weights = []

    def predict_proba_one(self, x, **kwargs):
        return {label: {False: 1 - p, True: p} for label, p in x.items() if label != "row"}

    def learn_one(self, x, y, w=1.0):
        self.weights.append(w)


def sequence(n=300, seed=0):
    """Probabilities of four labels, and labels drawn by them."""
    rng = np.random.default_rng(seed)
    eta = rng.random((n, 4)) * [0.9, 0.5, 0.2, 0.05]
    return eta, (rng.random((n, 4)) < eta).astype(np.int8)


def as_rows(eta):
    return [{**dict(zip(LABELS, row.tolist(), strict=True)), "row": i} for i, row in enumerate(eta)]


def as_dicts(y):
    return [dict(zip(LABELS, map(bool, row), strict=True)) for row in y]


@pytest.mark.parametrize("metric", ["macro_f1", "micro_f1", "macro_gmean", "micro_mcc"])
@pytest.mark.parametrize("budget", [{}, {"k": 2}, {"at_most": 1}, {"at_most": 2}])
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_many_labels_are_decided_as_in_a_replay(metric, budget, feedback):
    eta, y = sequence()
    trace = omma.replay(omma.OMMA(metric, feedback=feedback, **budget), eta, y)
    model = MetricClassifier(ManyOracle(), metric, feedback=feedback, **budget)
    for x, true, expected in zip(as_rows(eta), as_dicts(y), trace.predictions, strict=True):
        assert list(model.predict_one(x).values()) == expected.astype(bool).tolist()
        model.learn_one(x, true)
    assert model.counts == trace.counts
    assert model.value == trace.value
    assert len(model._waiting) == 0


@pytest.mark.parametrize("metric", ["multiclass_gmean", "multiclass_kappa", "macro_f1"])
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_classes_are_decided_as_in_a_replay(metric, feedback):
    eta, _ = sequence()
    eta /= eta.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(1)
    y = np.array([rng.choice(4, p=row) for row in eta])
    trace = omma.replay(omma.OMMA(metric, k=1, feedback=feedback), eta, y)
    model = MetricClassifier(Oracle(), metric, feedback=feedback)
    for x, true, expected in zip(as_rows(eta), y, trace.classes, strict=True):
        assert model.predict_one(x) == LABELS[expected]
        model.learn_one(x, LABELS[true])
    assert model.counts == trace.counts


@pytest.mark.parametrize("metric", ["f1", "gmean", "mcc"])
def test_yes_or_no_is_decided_as_in_a_replay(metric):
    eta, y = sequence()
    trace = omma.replay(omma.OMMA(metric), eta[:, 2], y[:, 2])
    model = MetricClassifier(Oracle(), metric, feedback="labels", pos_val="yes")
    for i, (p, true) in enumerate(zip(eta[:, 2].tolist(), y[:, 2], strict=True)):
        x = {"yes": p, "no": 1 - p, "row": i}
        assert model.predict_one(x) == ("yes" if trace.predictions[i] else "no")
        model.learn_one(x, "yes" if true else "no")
    assert model.value == trace.value


@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("late", [False, True])
def test_auto_is_a_replay_to_the_bit_where_all_labels_are_named_at_first(late, most):
    """Late, calibration has divided what it learned among fewer: all but that is as before."""
    eta, y = sequence()
    eta[:100, 3], y[:100, 3] = 0.0, 0
    trace = omma.replay(omma.Auto("macro_f1", at_most=most), eta, y)
    model, same = MetricClassifier(ManyOracle(), "macro_f1", hedge=False, at_most=most), 0
    for i, (x, true) in enumerate(zip(as_rows(eta), as_dicts(y), strict=True)):
        if late and i < 100:
            del x["dog"], true["dog"]
        decided = model.predict_one(x)
        expected = trace.predictions[i].astype(bool).tolist()
        same += [decided.get(label, False) for label in LABELS] == expected
        model.learn_one(x, true)
    found, expected = model._growing._state, trace.state
    if not late:
        assert same == 300
        assert found == expected
        return
    assert same > 290
    assert np.array_equal(found.labels.cells[2], expected.labels.cells[2])
    bias = found.calibration.bias
    assert not np.array_equal(bias, expected.calibration.bias)
    np.testing.assert_allclose(bias, expected.calibration.bias, atol=0.05)


def test_a_label_may_turn_up_late():
    eta, y = sequence()
    eta[:100, 3] = 0.0
    y[:150, 3] = 0
    trace = omma.replay(omma.OMMA("macro_f1"), eta, y)
    model = MetricClassifier(ManyOracle(), "macro_f1", feedback="labels")
    for i, (x, true) in enumerate(zip(as_rows(eta), as_dicts(y), strict=True)):
        if i < 100:
            del x["dog"], true["dog"]  # neither the model nor the labels know of it
        prediction = model.predict_one(x)
        assert [prediction.get(label, False) for label in LABELS] == (
            trace.predictions[i].astype(bool).tolist()
        )
        model.learn_one(x, true)
    assert model.labels == LABELS
    assert model.counts == trace.counts


def test_a_label_that_only_the_truth_knows_is_missed():
    model = MetricClassifier(ManyOracle(), "macro_f1", hedge=False)
    x = {"ant": 0.5, "row": 0}
    assert model.predict_one(x) == {"ant": True}
    model.learn_one(x, {"ant": True, "new": True})
    assert model.labels == ("ant", "new")
    assert model.counts.fn.tolist() == [0.0, 1.0]
    assert model.predict_one(x) == {"ant": True, "new": False}


def test_nothing_is_decided_or_counted_before_a_label_is_known():
    model = MetricClassifier(naive_bayes.GaussianNB(), "multiclass_gmean")
    x = {"a": 1.0}
    assert model.predict_one(x) is None
    model.learn_one(x, "cat")
    assert model.value is None
    assert model.predict_one(x) == "cat"
    model.learn_one(x, "cat")
    assert model.value == 1.0


def test_a_budget_waits_for_enough_labels():
    model = MetricClassifier(ManyOracle(), "macro_f1", k=3)
    assert model.predict_one({"ant": 0.1, "bee": 0.2}) == {"ant": True, "bee": True}
    wide = {"ant": 0.1, "bee": 0.2, "cat": 0.3, "dog": 0.4}
    assert sum(model.predict_one(wide).values()) == 3


@pytest.mark.parametrize(
    "options", [{}, {"feedback": "labels"}, {"subject_to": "micro_recall >= 0.2"}]
)
def test_rows_get_at_most_so_many_labels(options):
    chain = multioutput.ClassifierChain(linear_model.LogisticRegression())
    model = MetricClassifier(chain, "macro_recall", at_most=3, **options)
    assert model.clone().at_most == 3
    sizes = []
    for x, y in datasets.Yeast().take(400):
        sizes.append(sum(model.predict_one(x).values()))
        model.learn_one(x, y)
    assert max(sizes) == 3
    assert model.counts.predicted.sum() == sum(sizes[1:])  # of the first row no label was known
    again = pickle.loads(pickle.dumps(model))
    assert sum(again.predict_one(x).values()) <= 3


def test_a_bound_waits_for_more_labels():
    model = MetricClassifier(ManyOracle(), "macro_recall", at_most=3, hedge=False)
    assert model.predict_one({"ant": 0.1, "bee": 0.2}) == {"ant": True, "bee": True}
    wide = {"ant": 0.1, "bee": 0.2, "cat": 0.3, "dog": 0.4}
    assert sum(model.predict_one(wide).values()) == 3


def test_the_models_own_decisions_are_bounded_too():
    model = MetricClassifier(ManyOracle(), "macro_f1", at_most=2)
    assert not model._hedge.tuned
    x = {"ant": 0.6, "bee": 0.9, "cat": 0.7, "dog": 0.4}
    assert model.predict_one(x) == {"ant": False, "bee": True, "cat": True, "dog": False}
    x = {"ant": 0.7, "bee": 0.7, "cat": 0.7, "dog": 0.7}
    assert model.predict_one(x) == {"ant": True, "bee": True, "cat": False, "dog": False}
    x = {"ant": 0.6, "bee": 0.3, "cat": 0.2, "dog": 0.5}
    assert model.predict_one(x) == {"ant": True, "bee": False, "cat": False, "dog": False}


def test_limits_are_weighed_against_the_bound():
    limits = [f"predicted_rate[{label}] >= 0.8" for label in LABELS[:3]]
    MetricClassifier(ManyOracle(), "macro_f1", subject_to=limits)
    with pytest.raises(ValueError, match=r"at least 2\.4 labels a row .* rows get at most 2"):
        MetricClassifier(ManyOracle(), "macro_f1", subject_to=limits, at_most=2)


@pytest.mark.parametrize("delay", [None, 1, 7, 400])
@pytest.mark.parametrize("metric", ["f1", "macro_f1"])
def test_what_was_decided_is_what_counts(metric, delay):
    model = MetricClassifier(linear_model.LogisticRegression(), metric)
    judge = Metric(metric)
    evaluate.progressive_val_score(datasets.Phishing(), model, judge, delay=delay)
    assert judge.get() == model.value
    assert judge.counts.n == model.counts.n == 1250
    assert len(model._waiting) == 0


@pytest.mark.parametrize("delay", [3, 50])
def test_late_labels_count_as_in_the_online_classifier(delay):
    eta, y = sequence()
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1", feedback="estimates"), n_labels=4)
    model = MetricClassifier(ManyOracle(), "macro_f1", feedback="estimates")
    rows, truth, made = as_rows(eta), as_dicts(y), []
    for i, x in enumerate(rows):
        if i >= delay:
            model.learn_one(copy.deepcopy(rows[i - delay]), truth[i - delay])
            learner.update(y[i - delay], prediction=made[i - delay], eta=eta[i - delay])
        made.append(learner.predict(eta[i]))
        assert list(model.predict_one(x).values()) == made[i].astype(bool).tolist()
    assert model.counts == learner.counts


def test_delay_by_a_model_that_learns_agrees_with_river_metrics():
    model = preprocessing.StandardScaler() | multioutput.ClassifierChain(
        linear_model.LogisticRegression()
    )
    model = MetricClassifier(model, "micro_f1")
    first = next(iter(datasets.Yeast()))
    model.learn_one(*first)  # river's metric needs all labels in the first prediction
    before = model.counts
    judge = metrics.multioutput.MicroAverage(metrics.F1())
    evaluate.progressive_val_score(datasets.Yeast().take(150), model, judge, delay=10)
    assert omma.metric("micro_f1").value(model.counts - before) == pytest.approx(judge.get())


def test_a_row_that_was_not_predicted_is_decided_when_learned_and_counted_once():
    eta, y = sequence()
    asked = MetricClassifier(ManyOracle(), "macro_f1")
    silent = MetricClassifier(ManyOracle(), "macro_f1")
    for x, true in zip(as_rows(eta), as_dicts(y), strict=True):
        asked.predict_one(x)
        asked.learn_one(x, true)
        silent.learn_one(x, true)
    assert asked.counts == silent.counts
    assert silent.counts.n == len(eta)


def test_predicting_changes_no_decision():
    eta, y = sequence()
    once, often = (MetricClassifier(ManyOracle(), "macro_f1") for _ in range(2))
    for x, true in zip(as_rows(eta), as_dicts(y), strict=True):
        assert [often.predict_one(x) for _ in range(3)] == [once.predict_one(x)] * 3
        once.learn_one(x, true)
        often.learn_one(x, true)
    assert once.counts == often.counts


def test_decisions_that_wait_are_bounded():
    model = MetricClassifier(Oracle(), "macro_f1", max_pending=10)
    for x in as_rows(sequence()[0]):
        model.predict_one(x)
    size = model._raw_memory_usage
    assert len(model._waiting) == len(model._waiting._lines) + 1 == 10
    for x in as_rows(sequence()[0]):
        model.predict_one(x)
    assert model._raw_memory_usage == size
    assert size < 200_000  # of the model, not of the compiler behind it


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=60), st.integers(1, 5))
@settings(max_examples=100)
def test_rows_of_equal_content_wait_in_line(steps, limit):
    pending, plain = WaitingRows(limit), []
    for number, (put, value) in enumerate(steps):
        if put:
            pending.put({"x": value}, number)
            plain = [*plain, (value, number)][-limit:]
            continue
        line = [one for one in plain if one[0] == value]
        found = pending.find({"x": value})
        assert (found is None) == (not line)
        if line:
            key, decision = found
            assert decision == line[0][1]
            plain.remove(line[0])
            pending.drop(key)
        assert len(pending) == len(plain)


def test_rows_that_cannot_be_compared_are_known_by_their_content():
    pending = WaitingRows(3)
    pending.put({"x": np.arange(3)}, "a")
    assert pending.find({"x": np.arange(3)})[1] == "a"
    pending = WaitingRows(3)
    row = {"x": 1.0}
    pending.put(row, "a")
    row["x"] = 2.0  # a buffer that is used again
    assert pending.find(row) is None
    assert pending.find({"x": 1.0})[1] == "a"


def test_the_content_of_a_row_is_all_that_counts():
    x = {"a": 1.5, "b": float("nan"), "c": [1, 2], 3: "text"}
    assert content_key(x) == content_key(copy.deepcopy(dict(reversed(x.items()))))
    assert content_key({"a": -1}) != content_key({"a": -2})
    assert content_key({"a": 1}) != content_key({"a": 1, "b": 1})
    assert content_key("some text") == content_key("some " + "text")


def test_weights_count_as_rows_and_reach_the_model():
    x = {"ant": 0.5, "row": 0}
    model = MetricClassifier(ManyOracle(), "macro_f1")
    model.learn_one(x, {"ant": True}, w=3.0)
    assert model.counts.n == 3.0
    assert model.model.weights == [3.0]
    plain = MetricClassifier(Oracle(), "macro_f1")  # its model takes no weights
    plain.learn_one(x, "ant", w=3.0)
    assert plain.counts.n == 3.0
    assert plain.model.taught == [(0, "ant")]


def test_a_model_that_refuses_a_row_leaves_the_counts_alone():
    class Refusing(Oracle):
        def learn_one(self, x, y):
            raise RuntimeError("no")

    model = MetricClassifier(Refusing(), "macro_f1")
    x = {"ant": 0.5, "bee": 0.5, "row": 0}
    model.predict_one(x)
    for y in ("ant", "cat"):  # known, and new
        with pytest.raises(RuntimeError):
            model.learn_one(x, y)
    assert model.counts.n == 0
    assert model.labels == ("ant", "bee")
    assert len(model._waiting) == 1


def test_it_is_the_kind_of_its_model():
    many = multioutput.ClassifierChain(linear_model.LogisticRegression())
    scaled = preprocessing.StandardScaler() | many
    for model in (many, scaled):
        wrapped = MetricClassifier(model, "macro_f1")
        assert isinstance(wrapped, MetricClassifier)
        assert isinstance(wrapped, base.MultiLabelClassifier)
        assert not isinstance(wrapped, base.Classifier)
        assert isinstance(wrapped.clone(), base.MultiLabelClassifier)
        assert isinstance(copy.deepcopy(wrapped), base.MultiLabelClassifier)
    wrapped = MetricClassifier(linear_model.LogisticRegression(), "f1")
    assert isinstance(wrapped, base.Classifier)
    assert not isinstance(wrapped, base.MultiLabelClassifier)


def test_a_clone_starts_anew_with_the_same_options():
    model = MetricClassifier(linear_model.LogisticRegression(), omma.metrics.fbeta(2.0), prior=0.1)
    model.learn_one({"a": 1.0}, True)
    clone = model.clone()
    assert clone.value is None
    assert clone.metric == model.metric
    assert clone.clone({"prior": 0.5}).prior == 0.5


def test_inside_a_pipeline_every_row_counts_once():
    model = preprocessing.StandardScaler() | MetricClassifier(
        linear_model.LogisticRegression(), "f1"
    )
    evaluate.progressive_val_score(datasets.Phishing().take(200), model, Metric("f1"))
    assert model["SingleLabelMetricClassifier"].counts.n == 200


@pytest.mark.parametrize(
    ("model", "options", "error", "words"),
    [
        (linear_model.LinearRegression(), {"metric": "f1"}, TypeError, "river classifier"),
        (None, {"metric": "f1"}, TypeError, "must be a river classifier .* got None"),
        (linear_model.LogisticRegression(), {"metric": "fone"}, ValueError, "unknown metric"),
        (
            linear_model.LogisticRegression(),
            {"metric": "macro_f1", "k": 2},
            ValueError,
            "one class",
        ),
        (
            linear_model.LogisticRegression(),
            {"metric": "macro_f1", "at_most": 1},
            ValueError,
            "at_most of MetricClassifier must be None for a model that predicts one class a row",
        ),
        (linear_model.LogisticRegression(), {"metric": "f1", "at_most": 1}, ValueError, "None for"),
        (ManyOracle(), {"metric": "macro_f1", "k": 2, "at_most": 2}, ValueError, "k .* or at_most"),
        (ManyOracle(), {"metric": "macro_f1", "at_most": 0}, ValueError, "at_most of MetricCl"),
        (ManyOracle(), {"metric": "macro_f1", "at_most": "2"}, TypeError, "at_most of MetricCl"),
        (linear_model.LogisticRegression(), {"metric": "f1", "prior": -1}, ValueError, "prior"),
        (
            linear_model.LogisticRegression(),
            {"metric": "f1", "max_pending": 0},
            ValueError,
            "max_p",
        ),
        (ManyOracle(), {"metric": "f1"}, ValueError, "macro_f1 or micro_f1"),
        (ManyOracle(), {"metric": "multiclass_gmean"}, ValueError, "macro_f1 or micro_f1"),
        (
            linear_model.LogisticRegression(),
            {"metric": omma.metrics.costs([[0, -1], [-20, 0]])},
            ValueError,
            "table of costs",
        ),
    ],
)
def test_bad_options_get_a_sentence(model, options, error, words):
    with pytest.raises(error, match=words):
        MetricClassifier(model, **options)


def test_bad_rows_get_a_sentence_and_change_nothing():
    model = MetricClassifier(ManyOracle(), "macro_f1")
    x = {"ant": 0.5, "row": 0}
    with pytest.raises(ValueError, match="True or False for each label, got 2 for 'ant'"):
        model.learn_one(x, {"ant": 2})
    with pytest.raises(ValueError, match="w of learn_one"):
        model.learn_one(x, {"ant": True}, w=-1.0)
    with pytest.raises(TypeError, match=r"y of learn_one must be a dictionary .* got \[1, 0\]"):
        model.learn_one(x, [1, 0])
    with pytest.raises(ValueError, match=r"probabilities from 0 to 1, got 1\.5"):
        model.predict_one({"ant": 1.5, "row": 0})
    assert model.model.weights == []
    assert model.value is None


@pytest.mark.parametrize("metric", ["f1", "macro_f1"])
@pytest.mark.parametrize("y", [[1, 0], {"ant": True}, np.array([1, 0])])
def test_one_class_a_row_is_no_list(metric, y):
    model = MetricClassifier(linear_model.LogisticRegression(), metric)
    with pytest.raises(TypeError, match="y of learn_one must be one class a row, got"):
        model.learn_one({"ant": 0.5}, y)
    assert model.value is None
    assert not model.model.weights


def test_rolling_windows_work():
    judge = utils.Rolling(Metric, window_size=100, metric="macro_f1")
    model = MetricClassifier(linear_model.LogisticRegression(), "macro_f1")
    for x, y in datasets.Phishing().take(300):
        judge.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert judge.counts.n == 100


class Flat(base.Classifier):
    """Says what x says of yes, and learns nothing."""

    def predict_proba_one(self, x, **kwargs):
        return {False: 1 - x["p"], True: x["p"]}

    def learn_one(self, x, y):
        pass


def yes_or_no(n, seed, share):
    rng = np.random.default_rng(seed)
    for i in range(n):
        p = float(rng.random() ** 4 * share)
        yield {"p": p, "row": i}, bool(rng.random() < p)


def test_of_two_ways_the_better_one_is_followed():
    """Tuned decisions win where 0.5 is no threshold at all, and lose to a model that is right."""
    tuned, plain = MetricClassifier(Flat(), "f1"), Metric("f1")
    for x, y in yes_or_no(2000, 0, 0.5):
        plain.update(y, x["p"] > 0.5)
        tuned.predict_one(x)
        tuned.learn_one(x, y)
    assert tuned._hedge.tuned
    assert tuned.value > plain.get() + 0.1
    misled, plain = MetricClassifier(Flat(), "f1"), Metric("f1")
    rng = np.random.default_rng(1)
    for i in range(3000):  # what the labels are is turned round every 40 rows, but where p > 0.5
        p = float(rng.random())
        y = p > 0.5 or (p > 0.3 and i // 40 % 2 == 0 and i < 300)
        plain.update(y, p > 0.5)
        misled.predict_one({"p": p, "row": i})
        misled.learn_one({"p": p, "row": i}, y)
    assert misled.value > plain.get() - 0.015  # what it costs to find out


def test_what_is_hedged_counts_what_was_given():
    model, judge = MetricClassifier(Flat(), "f1"), Metric("f1")
    for x, y in yes_or_no(400, 2, 0.7):
        judge.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert model.value == judge.get()
    assert model.counts != model._growing.counts  # those of the tuned decisions alone
    with pytest.raises(ValueError, match="hedge of MetricClassifier must be True, False or None"):
        MetricClassifier(Flat(), "f1", hedge="yes")
    limit = "precision >= 0.5"
    assert MetricClassifier(Flat(), "f1", subject_to=limit)._hedge is None
    with pytest.raises(ValueError, match="False or None with subject_to"):
        MetricClassifier(Flat(), "f1", subject_to=limit, hedge=True)


def test_the_first_rows_are_decided_as_the_model_does():
    model = MetricClassifier(Flat(), "f1")
    for x, y in yes_or_no(99, 3, 0.9):
        assert model.predict_one(x) == (x["p"] > 0.5)
        model.learn_one(x, y)


def indicators(yes):
    """Whether a row has the only label, as a hedge counts it."""
    return np.array([bool(yes)], dtype=np.int8)


def test_what_a_way_was_worth_fades_and_what_was_given_does_not():
    from omma.river.hedge import HALF_LIFE, Hedge

    hedge = Hedge(omma.metric("f1"))
    for i in range(20 * HALF_LIFE):
        true = indicators(i % 2)
        hedge.count((true, indicators(1), true, indicators(1)), 0.5)
    assert hedge.tuned
    assert hedge._late_weight < 0.5 * 1.6 * HALF_LIFE  # rows / log 2, and those since the last look
    rows = 10 * HALF_LIFE
    assert hedge.counts(2) == omma.Counts([rows / 2, 0], [rows, 0], [rows / 2, 0], rows)


def test_two_ways_that_are_worse_together_are_not_mixed():
    """Each way alone has an MCC; what is followed looks at what was given before, too."""
    from omma.river.hedge import Hedge

    def given_by(follow):
        hedge, chosen = Hedge(omma.metric("mcc")), []
        rng = np.random.default_rng(0)
        for t in range(6000):
            y = rng.random() < (0.9 if t // 2000 % 2 else 0.1)
            right = rng.random() < 0.75
            plain = indicators(y == right and rng.random() < 0.6)
            tuned = indicators(y == right or rng.random() < 0.4)
            given = follow(hedge, plain, tuned)
            hedge.count((indicators(y), plain, tuned, given), 1.0)
            chosen.append(given)
        return omma.metric("mcc").value(hedge.counts(1))

    hedged = given_by(lambda hedge, plain, tuned: tuned if hedge.tuned else plain)
    assert hedged > given_by(lambda hedge, plain, tuned: plain) - 0.01


def test_false_alarms_that_are_better_than_nothing_are_not_given_for_long():
    """While a model knows nothing, alarm on every row has the better F1; later it costs."""
    model, plain = MetricClassifier(Flat(), "f1"), Metric("f1")
    rng = np.random.default_rng(6)
    for i in range(4000):
        y = bool(rng.random() < 0.03)
        p = 0.03 if i < 2000 else 0.9 * y + 0.05
        plain.update(y, p > 0.5)
        model.predict_one({"p": p, "row": i})
        model.learn_one({"p": p, "row": i}, y)
    assert model.value > plain.get() - 0.01


@pytest.mark.parametrize("may_fall_behind", [False, True])
def test_decisions_that_fell_behind_are_given_up(may_fall_behind, monkeypatch):
    """Lately the tuned decisions were right; but what was given is behind the model's own."""
    from omma.river import hedge

    if may_fall_behind:
        monkeypatch.setattr(hedge, "BEHIND", 1.0)
    always, made = indicators(1), hedge.Hedge(omma.metric("f1"))
    for t in range(1500):
        true = indicators(t % 2)
        plain, tuned = (true, always) if t < 500 else (always, true)
        made.count((true, plain, tuned, always), 1.0)
    assert made.tuned == may_fall_behind


def test_text_needs_a_positive_value():
    model = MetricClassifier(linear_model.LogisticRegression(), "f1")
    with pytest.raises(ValueError, match="unless pos_val= names the positive class, got 'spam'"):
        model.learn_one({"a": 1.0}, "spam")
    assert model.value is None
    with pytest.raises(ValueError, match=r"y_true of f1 .* pos_val= names"):
        Metric("f1").update("spam", "ham")
    judge = Metric("f1", pos_val="spam")
    judge.update("spam", "spam")
    assert judge.get() == 1.0


@pytest.mark.parametrize(("name", "over"), [("accuracy", "multiclass"), ("f1", "macro")])
def test_numbers_of_classes_need_a_positive_value_too(name, over):
    """1 is True, and 2 would count as no: the number would be that of class 1 against all."""
    said = f"got 2; {name} over classes is {over}_{name}$"
    with pytest.raises(ValueError, match=f"y of learn_one must be True or False .* {said}"):
        MetricClassifier(linear_model.LogisticRegression(), name).learn_one({"a": 1.0}, 2)
    with pytest.raises(ValueError, match=f"y_true of {name} must be True or False .* {said}"):
        Metric(name).update(2, 1)
    judge = Metric(name, pos_val=2)
    judge.update(2, 2)
    for y in (0, 1, -1, False, True, 1.0, np.int64(0), np.bool_(True)):
        Metric(name).update(y, y)
    assert judge.get() == 1.0


def test_auto_decides_unless_feedback_or_prior_is_given():
    from omma.policies import OMMA, Auto

    plain = linear_model.LogisticRegression()
    assert MetricClassifier(plain, "f1")._growing.policy == Auto("f1")
    assert MetricClassifier(plain, "f1", prior=0.1)._growing.policy == OMMA("f1", prior=0.1)
    given = MetricClassifier(plain, "f1", feedback="estimates")
    assert given._growing.policy == OMMA("f1", feedback="estimates")


def grown(policy, eta, y, labels):
    """Counts over labels of which the last turn up late, asked and taught beside a learner."""
    from omma.river.growing import GrowingCounts

    growing, learner = GrowingCounts(policy), omma.OnlineClassifier(policy, eta.shape[1])
    for row, true, known in zip(eta, y, labels, strict=True):
        shown = {j: row[j] for j in range(known)}
        decision = growing.decide(shown)
        expected = learner.predict(row)
        assert decision.prediction.tolist() == expected[:known].tolist()
        assert not expected[known:].any()
        growing.count(decision, true.nonzero()[0].tolist(), 1.0)
        learner.update(true)
    return growing, learner


def test_labels_that_turn_up_late_are_decided_as_if_they_had_been_there():
    """A label joins with nothing counted and nothing learned."""
    eta, y = omma.datasets.long_tail(n=200, m=4, seed=1)
    eta[:60, 2:] = 0.0
    y[:60, 2:] = 0
    policy = omma.OMMA("macro_f1", feedback="both")
    growing, learner = grown(policy, eta, y, [2] * 60 + [4] * 140)
    assert growing.counts == learner.counts


def test_calibration_goes_on_where_a_label_turns_up():
    """What a label learns of its own depends on how many there are; what was learned stays."""
    eta, y = omma.datasets.long_tail(n=60, m=4, seed=1)
    growing, learner = grown(omma.Auto("macro_f1"), eta[:, :2], y[:, :2], [2] * 60)
    learned = learner.state.calibration.bias
    np.testing.assert_array_equal(growing._state.calibration.bias, learned)
    growing.decide(dict.fromkeys(range(4), 0.5))
    np.testing.assert_array_equal(growing._state.calibration.bias, [*learned, 0.0, 0.0])


def followed(metric, rows):
    """What a hedge gives, and the model's own decisions, over rows of (true, plain, tuned)."""
    from omma.river.hedge import Hedge

    hedge, plain_cells = Hedge(omma.metric(metric)), []
    for true, plain, tuned in rows:
        given = tuned if hedge.tuned else plain
        hedge.count(tuple(indicators(one) for one in (true, plain, tuned, given)), 1.0)
        plain_cells.append((true, plain))
    y, own = np.array(plain_cells).T
    found = omma.metric(metric)
    return found.value(hedge.counts(1)), found.score(y, own), hedge


def test_guessing_is_no_reason_to_leave_the_model():
    # The model says what is more frequent at the time, and nothing else can be known.
    rng = np.random.default_rng(0)
    for metric in ("gmean", "hmean", "min_recall_specificity"):
        rows = [(rng.random() < 0.7, True, rng.random() < 0.5) for _ in range(2500)]
        rows += [(rng.random() < 0.3, False, rng.random() < 0.5) for _ in range(2500)]
        given, own, _ = followed(metric, rows)
        assert own > 0.65
        assert given > own - 0.01


def test_better_than_guessing_is_followed():
    rng = np.random.default_rng(0)
    truth = rng.random(3000) < 0.1
    tuned = np.where(rng.random(3000) < 0.8, truth, ~truth)
    given, own, _ = followed("gmean", [(y, False, t) for y, t in zip(truth, tuned, strict=True)])
    assert own == 0.0
    assert given > 0.75


def test_errors_are_those_of_the_metric():
    # Rare hits, none of either way better than the other: MCC moves far by chance.
    rng = np.random.default_rng(1)
    left = 0
    for _ in range(150):
        truth = rng.random(500) < 0.03
        ways = [np.where(rng.random(500) < 0.5, truth, rng.random(500) < 0.03) for _ in range(2)]
        left += followed("mcc", zip(truth, *ways, strict=True))[2].tuned
    assert left <= 3


def test_metrics_of_recalls_are_known_by_what_they_do():
    from omma.river.hedge import of_recalls

    means = ("gmean", "hmean", "qmean", "balanced_accuracy")
    yes = [*means, "min_recall_specificity", *(f"multiclass_{name}" for name in means)]
    no = ["f1", "mcc", "accuracy", "precision", "recall", "specificity", "macro_f1", "macro_recall",
          "micro_f1", "multiclass_accuracy", "multiclass_mcc", "multiclass_kappa"]  # fmt: skip
    assert all(of_recalls(omma.metric(name)) for name in yes)
    assert not any(of_recalls(omma.metric(name)) for name in no)


@pytest.mark.parametrize(("hits", "behind"), [(75.0, False), (10.0, True)])
def test_a_bad_start_does_not_rule_out_what_is_far_better(hits, behind):
    from omma.river.hedge import OWN, PREDICTED, TUNED, Hedge

    hedge = Hedge(omma.metric("mcc"))
    hedge._all, hedge._late = np.zeros((3, 3, 1)), np.zeros((3, 3, 1))
    hedge._all[OWN, :, 0], hedge._all[PREDICTED, :, 0] = (15.0, 15.0, 200.0), (5.0, 60.0, 200.0)
    hedge._late[OWN, :, 0], hedge._late[TUNED, :, 0] = (
        (7.5, 7.5, 100.0),
        (hits, hits + 25.0, 100.0),
    )
    hedge._all_weight, hedge._late_weight, hedge._late_differ = 10_000.0, 5000.0, 120.0
    assert hedge._behind() == behind

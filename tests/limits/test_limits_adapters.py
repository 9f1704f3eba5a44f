"""Limits in scikit-learn, river and on the command line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import omma
from omma.cli import main


def probability(X):
    """How sure a row is."""
    return 1 / (1 + np.exp(-(X @ [2.0, 1.0, 0.0] - 3)))


def drawn(seed, n):
    """Features that tell one label in seven, and the label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (rng.random(n) < probability(X)).astype(int)


def precision(model, X):
    """What is expected of decisions on rows, without the chance of their labels."""
    return probability(X)[model.predict(X) == 1].mean()


def test_scikit_learn_keeps_a_floor_and_goes_on():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    from omma.sklearn import MetricClassifier

    (X, y), (fresh, true) = drawn(0, 3000), drawn(1, 20_000)
    limit = omma.at_least("precision", 0.8, margin=1.28)
    bold = MetricClassifier(LogisticRegression(), metric="recall", subject_to="precision >= 0.8")
    model = clone(bold).set_params(subject_to=limit)
    assert clone(model).get_params()["subject_to"] == limit
    (held,) = model.fit(X, y).limits_
    predicted = model.counts_.predicted[0]
    assert held.value - 0.8 >= 1.28 * np.sqrt(0.8 * 0.2 / predicted) > 0  # on the sample
    assert bold.fit(X, y).limits_[0].holds
    assert model.counts_.tp[0] < bold.counts_.tp[0]  # what the margin costs
    assert precision(model, fresh) > precision(bold, fresh) > 0.7
    before = model.counts_.n
    model.step(fresh[:500], true[:500])
    assert model.limits_[0].value == pytest.approx(model.counts_.tp[0] / model.counts_.predicted[0])
    assert model.counts_.n == before + 500


def test_scikit_learn_knows_classes_by_name():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.linear_model import LogisticRegression

    from omma.sklearn import MetricClassifier

    X, y = drawn(2, 2000)
    names = np.array(["fine", "spam"])[y]
    model = MetricClassifier(LogisticRegression(), subject_to="recall[spam] >= 0.9").fit(X, names)
    assert model.limits_[0].holds
    assert model.limits_[0].name == "recall[spam]"
    wrong = MetricClassifier(LogisticRegression(), subject_to="recall[span] >= 0.9")
    with pytest.raises(ValueError, match="did you mean 'spam'"):
        wrong.fit(X, names)


def test_scikit_learn_knows_classes_by_number():
    """Classes 1, 2 and 3: a number is the name of one, and not its place."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.linear_model import LogisticRegression

    from omma.sklearn import MetricClassifier

    X, binary = drawn(4, 1200)
    y = np.where(binary == 1, 1, 2 + (X[:, 1] > 0.3))
    for of in (1, 2, 3):
        model = MetricClassifier(LogisticRegression(), subject_to=f"recall[{of}] >= 0.9")
        (held,) = model.fit(X, y).limits_
        assert held.limit.index == of - 1
        counts = model.counts_
        assert held.value == counts.tp[of - 1] / counts.positive[of - 1]
    with pytest.raises(ValueError, match=r"recall\[0\] in subject_to of Auto must name a label"):
        MetricClassifier(LogisticRegression(), subject_to="recall[0] >= 0.9").fit(X, y)
    one = MetricClassifier(LogisticRegression(), metric="f1", subject_to="recall[1] >= 0.9")
    assert one.fit(X, binary).limits_[0].holds
    other = MetricClassifier(LogisticRegression(), metric="f1", subject_to="recall[0] >= 0.9")
    with pytest.raises(ValueError, match=r"recall\[0\] in subject_to of Auto must name a label"):
        other.fit(X, binary)  # of the positive class alone


def test_river_prices_as_a_learner_does():
    pytest.importorskip("river", reason="river is not installed")
    from river import linear_model

    from omma.river import MetricClassifier

    class Told(linear_model.LogisticRegression):
        """Knows the probability already."""

        def predict_proba_one(self, x):
            return {True: x["p"], False: 1 - x["p"]}

    rng = np.random.default_rng(0)
    eta = rng.random(300)
    y = rng.random(300) < eta
    model = MetricClassifier(Told(), metric="recall", subject_to="precision >= 0.8")
    made = []
    for p, true in zip(eta.tolist(), y.tolist(), strict=True):
        made.append(model.predict_one({"p": p}))
        model.learn_one({"p": p}, true)
    trace = omma.replay(omma.Auto("recall", subject_to="precision >= 0.8"), eta, y.astype(int))
    np.testing.assert_array_equal(made, trace.predictions)
    assert model.limits[0].value == trace.limits[0].value
    assert model.limits[0].price == pytest.approx(trace.limits[0].price)


def test_river_knows_classes_by_name_before_they_come():
    pytest.importorskip("river", reason="river is not installed")
    from river import naive_bayes

    from omma.river import MetricClassifier

    X, y = drawn(3, 400)
    model = MetricClassifier(
        naive_bayes.GaussianNB(), metric="macro_f1", subject_to="recall[spam] >= 0.9"
    )
    assert model.labels == ("spam",)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(enumerate(row))
        model.predict_one(x)
        model.learn_one(x, "spam" if label else "fine")
    (held,) = model.limits
    j = model.labels.index("spam")
    assert held.value == model.counts.tp[j] / model.counts.positive[j]


def test_river_knows_classes_by_number():
    pytest.importorskip("river", reason="river is not installed")
    from river import naive_bayes

    from omma.river import MetricClassifier

    X, y = drawn(3, 200)
    model = MetricClassifier(naive_bayes.GaussianNB(), "macro_f1", subject_to="recall[7] >= 0.9")
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(enumerate(row))
        model.predict_one(x)
        model.learn_one(x, 7 if label else 3)
    j = model.labels.index(7)
    assert model.limits[0].value == model.counts.tp[j] / model.counts.positive[j]


@pytest.mark.parametrize(
    "limits",
    [
        ["micro_f1 >= 0.9", "micro_recall <= 0.5"],
        ["predicted_rate[a] >= 0.7", "predicted_rate[b] >= 0.6"],
        ["recall[a] >= 0.9", "f1[a] >= 0.9", "precision[a] <= 0.2"],
    ],
)
def test_river_refuses_what_excludes_itself_before_the_first_row(limits):
    pytest.importorskip("river", reason="river is not installed")
    from river import naive_bayes

    from omma.river import MetricClassifier

    with pytest.raises(ValueError, match="must be compatible"):
        MetricClassifier(naive_bayes.GaussianNB(), metric="macro_f1", subject_to=limits)
    few = [f"predicted_rate[{label}] <= 0.1" for label in "abc"]  # others may come
    MetricClassifier(naive_bayes.GaussianNB(), metric="macro_f1", subject_to=few)


ROWS = "sport,art,y_sport,y_art\n" + "".join(
    f"{p},{q},{int(p > 0.4)},{int(q > 0.6)}\n"
    for p, q in np.random.default_rng(0).random((200, 2)).round(3)
)


def streamed(*options):
    return CliRunner().invoke(main, ["stream", *options], input=ROWS)


def test_stream_keeps_a_limit_and_says_so():
    given = ("--metric", "macro_f1", "--subject-to", "labels_per_row <= 0.5")
    result = streamed(*given, "--subject-to", "recall[art] >= 0.3 (margin 1)")
    assert result.exit_code == 0, result.output
    decided = np.loadtxt(result.stdout.splitlines()[1:], delimiter=",")
    assert decided.sum(axis=1).mean() == pytest.approx(0.5, abs=0.03)
    assert "labels_per_row <= 0.5: 0." in result.stderr
    assert "recall[art] >= 0.3 (margin 1): " in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--metric", "macro_f1", "--subject-to", "macro_prec >= 1"), "unknown limit 'macro_prec'"),
        (("--metric", "macro_f1", "--subject-to", "micro_recall >= 1.2"), "from 0 to 1, got 1.2"),
        (
            ("--metric", "macro_f1", "--policy", "ofo", "--subject-to", "micro_recall >= 0.2"),
            "ofo does not support limits: pass --policy auto or omma",
        ),
        (("--subject-to", "micro_recall >= 0.2"), "Missing option '--metric'"),
    ],
)
def test_stream_refuses_before_the_first_row(options, said):
    result = streamed(*options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    eta, y = omma.datasets.long_tail(n=400, m=3, seed=0)
    for name, values in (("eta.csv", eta), ("labels.csv", y)):
        np.savetxt(name, values, delimiter=",", header="a,b,c", comments="", fmt="%.4f")
    return ("--eta", "eta.csv", "--labels", "labels.csv", "--metric", "macro_recall")


def evaluated(*options):
    return CliRunner().invoke(main, ["evaluate", *options])


def test_evaluate_judges_rules_under_limits_on_unseen_rows(files, tmp_path):
    given = (*files, "--subject-to", "micro_precision >= 0.6", "--subject-to", "recall[b] >= 0.1")
    result = evaluated(*given, "--json", "--rule", "rule.json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    eta, y = np.loadtxt("eta.csv", delimiter=",", skiprows=1), np.loadtxt(
        "labels.csv", delimiter=",", skiprows=1
    )  # fmt: skip
    limits = ["micro_precision >= 0.6", "recall[1] >= 0.1"]
    choice = omma.choose(eta, y, "macro_recall", subject_to=limits)
    assert found["choice"]["best"] == choice.best.name
    holds = [one["holds"] for one in found["choice"]["rules"]]
    assert holds == [one.holds for one in choice.candidates]
    low, high = found["choice"]["rules"][1]["limits"][0]["interval"]
    assert low < choice["tuned"].limits[0].value < high
    written = omma.Rule.from_json((tmp_path / "rule.json").read_text())
    np.testing.assert_array_equal(written.thresholds, choice.rule.thresholds)
    evaluated(*given, "--decide", "tuned", "--rule", "tuned.json")
    whole = omma.TunedThresholds("macro_recall", limits).fit(eta, y).decision
    written = omma.Rule.from_json((tmp_path / "tuned.json").read_text())
    np.testing.assert_array_equal(written.thresholds, whole.thresholds)
    shown = evaluated(*given, "--decide", "auto", "--rule", "auto.json").stdout
    assert "recall[b] >= 0.1: " in shown
    assert "Auto online over all rows: macro_recall" in shown
    last = omma.replay(omma.Auto("macro_recall", subject_to=limits), eta, y).rule
    kept = omma.Rule.from_json((tmp_path / "auto.json").read_text())
    np.testing.assert_allclose(kept.thresholds, last.thresholds)


def test_evaluate_shows_the_frontier(files, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = evaluated(*files, "--frontier", "micro_precision", "--plot", "frontier.png")
    assert result.exit_code == 0, result.output
    assert "micro_precision at least" in result.stdout
    assert (tmp_path / "frontier.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--frontier", "micro_precison"), "did you mean 'micro_precision'"),
        (("--frontier", "micro_f1", "--subject-to", "micro_f1 >= 0.1"), "not both"),
        (("--subject-to", "micro_f1 >= 0.1", "--policy", "omma"), "does not go with --policy"),
        (("--subject-to", "micro_f1 >= 0.1", "--metric", "macro_f1"), "takes one --metric, got 2"),
        (("--subject-to", "micro_f1 >= 0.1", "--repeat", "3"), "does not go with --repeat: rows"),
        (("--subject-to", "micro_f1 >= 0.1", "--prior", "0.1"), "does not go with --prior: Auto"),
        (("--subject-to", "micro_f1 >= 0.1", "--decide", "omma"), "--decide must be auto or tuned"),
        (("--frontier", ""), "unknown limit ''; there are micro_accuracy"),
        (("--frontier", "micro_f1", "--rule", "rule.json"), "go with --rule: it writes none"),
        (("--frontier", "micro_f1", "--seed", "1"), "go with --seed: rows keep their order"),
        (("--frontier", "micro_f1", "--decide", "auto"), "--frontier does not go with --decide"),
        (
            ("--frontier", "micro_f1", "--train-eta", "eta.csv", "--train-labels", "labels.csv"),
            "--frontier does not go with --train-eta",
        ),
    ],
)
def test_evaluate_refuses_what_does_not_go_with_limits(files, options, said):
    result = evaluated(*files, *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())

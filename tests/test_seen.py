"""Labels seen only where predicted: what is estimated, what is counted, and what is refused."""

import json
import pickle
import warnings

import naive_auto
import naive_seen
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import omma
from omma.cli import main
from omma.unseen import EstimatedValue, _rank_share, labels_follow_scores, needs_unseen

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
ESTIMATES = omma.OMMA("macro_gmean", feedback="estimates")
LIMITS = ["labels_per_row <= 1.2", "micro_precision >= 0.6"]
POLICIES = {
    "auto": omma.Auto("macro_f1"),
    "micro at 2": omma.Auto("micro_f1", k=2),
    "estimates": ESTIMATES,
    "forgetting": omma.Forgetting(omma.Auto("macro_gmean"), half_life=20),
    "window": omma.Window(omma.Auto("macro_f1"), rows=15),
    "limits": omma.Auto("macro_f1", subject_to=LIMITS),
}


def labels_stream(seed=0, n=200, m=5):
    """Probabilities of labels, labels, and which rows are audited."""
    rng = np.random.default_rng(seed)
    eta = rng.beta(0.4, 1.5, size=(n, m))
    y = (rng.random((n, m)) < eta).astype(int)
    return eta, y, rng.random(n) < 0.1


def alarms(seed, n=5000):
    """A rare event, and probabilities that are wrong by a slope and an offset."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-3.0, 2.0, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return 1 / (1 + np.exp(-(0.7 * z + 0.8))), y


def audits(seed, n):
    """One row in twenty, by other numbers than those of the stream of that seed."""
    return np.random.default_rng([seed, 1]).random(n) < 0.05


def shifted_labels(seed):
    """Many labels, of which half have logits that are too high and half that are too low."""
    eta, y = omma.datasets.long_tail(n=4000, m=20, seed=seed)
    eta = np.clip(eta, 1e-7, 1 - 1e-7)
    shift = np.where(np.random.default_rng(seed).random(20) < 0.5, 1.5, -1.5)
    return 1 / (1 + np.exp(-(np.log(eta / (1 - eta)) + shift))), y


def true_value(metric, y, predictions):
    columns = (np.reshape(values, (len(y), -1)) for values in (y, predictions))
    return omma.metric(metric).value(omma.Counts.from_labels(*columns))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_estimate_is_that_of_the_textbook(layout):
    eta, y, audited = labels_stream()
    matrix = LAYOUTS[layout]
    trace = omma.replay(ESTIMATES, matrix(eta), matrix(y), seen="predicted", audited=audited)
    decided = trace.predictions.toarray() if layout == "csr" else trace.predictions
    counts = trace.counts
    expected = naive_seen.estimated(eta, y, decided, audited)
    np.testing.assert_allclose([counts.tp, counts.predicted, counts.positive], expected)
    assert counts.n == len(y)
    assert trace.history.values[-1] == pytest.approx(trace.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_auto_is_its_slow_twin(layout):
    """Decisions and calibration: audits weigh more where nothing was predicted."""
    eta, y, audited = labels_stream(seed=4, n=300)
    matrix = LAYOUTS[layout]
    trace = omma.replay(
        omma.Auto("macro_f1"), matrix(eta), matrix(y), seen="predicted", audited=audited
    )
    decided = trace.predictions.toarray() if layout == "csr" else trace.predictions
    twin = naive_auto.Auto("macro_f1", eta.shape[1])
    weights = naive_seen.audit_weights(audited.tolist())
    unseen = np.zeros(eta.shape[1])
    for row, labels, predicted, audit in zip(eta, y, decided, weights, strict=True):
        assert twin.predict(row).tolist() == np.flatnonzero(predicted).tolist()
        _, calibrated, _, _ = twin.last
        unseen += calibrated * (predicted == 0) * (audit < 0)
        twin.update(np.flatnonzero(labels), audit=audit)
    learned = trace.state.calibration
    np.testing.assert_allclose(learned.shared[:3], twin.theta, rtol=1e-8)
    np.testing.assert_allclose(learned.bias, twin.b, rtol=1e-7, atol=1e-10)
    # What nobody saw is added up as it was calibrated when the row was decided.
    np.testing.assert_allclose(trace.state.unseen.cells[0], unseen, rtol=1e-9)


def test_weights_of_audits_are_those_of_the_textbook():
    state = ESTIMATES.init(1)
    state.allow_unseen()
    audited = np.random.default_rng(3).random(200) < 0.3
    weights = []
    for part in np.split(audited, [70]):
        weights += [*state.unseen.audit_weights(part, np.ones(len(part)))]
    np.testing.assert_allclose(weights, naive_seen.audit_weights(audited.tolist()))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", POLICIES)
def test_a_replay_equals_single_steps(name, layout):
    policy, (eta, y, audited) = POLICIES[name], labels_stream(1)
    matrix = LAYOUTS[layout]
    trace = omma.replay(policy, matrix(eta), matrix(y), seen="predicted", audited=audited)
    learner = omma.OnlineClassifier(policy, 5)
    for row in range(len(y)):
        learner.predict(matrix(eta[row : row + 1]))
        learner.update(matrix(y[row : row + 1]), seen="predicted", audited=bool(audited[row]))
    assert learner.state == trace.state
    assert learner.value == trace.value


@pytest.mark.parametrize("name", POLICIES)
def test_what_was_not_predicted_is_not_looked_at(name):
    policy, (eta, y, audited) = POLICIES[name], labels_stream(2)
    trace = omma.replay(policy, eta, y, seen="predicted", audited=audited)
    hidden = (trace.predictions == 0) & ~audited[:, np.newaxis]
    for other in (1, 0, np.nan):
        changed = np.where(hidden, other, y)
        again = omma.replay(policy, eta, changed, seen="predicted", audited=audited)
        assert again.state == trace.state


def test_rows_audited_one_and_all_are_counted_as_they_are():
    eta, y, _ = labels_stream(3)
    policy = omma.Auto("macro_f1")
    plain, audited = (
        omma.replay(policy, eta, y, **options)
        for options in ({}, {"seen": "predicted", "audited": np.ones(len(y))})
    )
    np.testing.assert_array_equal(plain.predictions, audited.predictions)
    assert float(audited.value) == plain.value


# The truth is known: mean absolute errors over six streams, 5 % of the rows audited.
@pytest.mark.parametrize(
    ("metric", "k", "stream", "bound"),
    [
        ("f1", None, alarms, 0.02),
        ("mcc", None, alarms, 0.03),
        ("macro_f1", None, shifted_labels, 0.011),
        ("macro_recall", 3, shifted_labels, 0.04),
        ("macro_f1", 3, shifted_labels, 0.011),
    ],
)
def test_estimates_are_near_the_truth(metric, k, stream, bound):
    errors, of_hits = [], []
    for seed in range(6):
        eta, y = stream(seed)
        audited = audits(seed, len(y))
        policy = omma.Auto(metric, k=k)
        trace = omma.replay(policy, eta, y, seen="predicted", audited=audited)
        truth = true_value(metric, y, trace.predictions)
        errors.append(abs(trace.value - truth))
        of_hits.append(abs(true_value(metric, y * trace.predictions, trace.predictions) - truth))
        assert isinstance(trace.value, EstimatedValue)
    assert np.mean(errors) <= bound < np.mean(of_hits)


def test_recall_under_a_budget_of_alarms():
    errors = []
    for seed in range(6):
        eta, y = alarms(seed)
        audited = audits(seed, len(y))
        policy = omma.Auto("recall", subject_to="predicted_rate <= 0.02")
        trace = omma.replay(policy, eta, y, seen="predicted", audited=audited)
        errors.append(abs(trace.value - true_value("recall", y, trace.predictions)))
    assert np.mean(errors) <= 0.04


def test_precision_needs_no_estimate():
    eta, y, audited = labels_stream(4)
    policy = omma.Auto("macro_precision", k=2)
    trace = omma.replay(policy, eta, y, seen="predicted", audited=audited)
    assert type(trace.value) is float
    assert trace.value == pytest.approx(true_value("macro_precision", y, trace.predictions))
    assert not needs_unseen(omma.metric("micro_precision"), 5)


def test_a_precision_limit_holds():
    """Rows without an alarm are rows: the price of the limit counts them."""
    for seed in range(3):
        eta, y = alarms(seed, n=20_000)
        policy = omma.Auto("recall", subject_to="precision >= 0.7")
        trace = omma.replay(policy, eta, y, seen="predicted")
        (limit,) = trace.limits
        assert limit.excess < 2 * limit.error
        assert limit.value == pytest.approx(true_value("precision", y, trace.predictions))


def test_an_estimate_says_what_it_rests_on():
    eta, y = alarms(0, n=1000)
    learner = omma.OnlineClassifier(omma.Auto("f1"), 1)
    for row, true in zip(eta, y, strict=True):
        alarm = learner.predict(row)
        learner.update(true if alarm else None, seen="predicted")
    assert "no row was audited" in repr(learner.value)
    learner.predict(0.5)
    learner.update(1, seen="predicted", audited=True)
    assert repr(learner.value).endswith("(estimated: 1 of 1,001 rows audited)")
    stats = learner.stats()
    assert stats["estimated"] == {"rows": 1001.0, "audited": 1.0}
    assert json.loads(json.dumps(stats))["value"] == float(learner.value)
    assert repr(pickle.loads(pickle.dumps(learner.value))) == repr(learner.value)
    trace = omma.replay(omma.Auto("f1"), eta, y, seen="predicted")
    assert "estimated" in repr(trace)
    assert "estimated" in trace._repr_html_()


def test_alarms_whose_labels_never_come_count_as_the_others():
    eta, y = alarms(1)
    known = np.random.default_rng(0).random(len(y)) < 0.5
    whole, half = (
        omma.replay(omma.Threshold(0.5), eta, labels, metric="recall", seen="predicted")
        for labels in (y, np.where(known, y, np.nan))
    )
    assert half.counts.predicted == whole.counts.predicted
    assert half.value == pytest.approx(whole.value, abs=0.05)


def test_files_journals_ids_and_merges(tmp_path):
    eta, y, audited = labels_stream(5, n=60)
    y = y.astype(float)
    y[7] = np.nan
    policy = omma.Auto("macro_f1")
    plain = omma.OnlineClassifier(policy, 5)
    with omma.Journal(tmp_path / "journal", omma.OnlineClassifier(policy, 5)) as learner:
        for place, row in enumerate(eta):
            for online in (plain, learner):
                online.predict(row, id=place)
                online.update(y[place], id=place, seen="predicted", audited=bool(audited[place]))
    resumed = omma.Journal.resume(tmp_path / "journal")
    plain.save(tmp_path / "learner")
    saved = omma.OnlineClassifier.load(tmp_path / "learner")
    assert resumed.state == saved.state == plain.state
    assert repr(saved.value) == repr(plain.value)
    saved.merge(plain.state)
    assert saved.value.audited == 2 * plain.value.audited
    np.testing.assert_array_equal(saved.counts.tp, 2 * plain.counts.tp)
    np.testing.assert_array_equal(saved.counts.predicted, 2 * plain.counts.predicted)
    np.testing.assert_array_equal(saved.state.unseen.cells, 2 * plain.state.unseen.cells)
    # Twice as many audits are trusted more, so that the estimate itself is not twice the other.
    assert saved.counts.positive == pytest.approx(2 * plain.counts.positive, rel=0.15)


def test_several_rows_at_once():
    eta, y, audited = labels_stream(6, n=20)
    one, many = (omma.OnlineClassifier(ESTIMATES, 5) for _ in range(2))
    decided = many.predict(eta)
    many.update(y, seen="predicted", audited=audited)
    for place in range(20):
        row = {"prediction": decided[place], "eta": eta[place]}
        one.update(y[place], **row, seen="predicted", audited=bool(audited[place]))
    assert one.state == many.state


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (omma.OMMA("f1"), "needs a policy that looks at probabilities"),
        (omma.Auto("f1", subject_to="recall >= 0.8"), "cannot be held with seen='predicted'"),
        (omma.Greedy("f1"), "needs a policy that looks at probabilities"),
    ],
)
def test_what_would_be_misled_is_refused(policy, message):
    eta, y = alarms(0, n=50)
    with pytest.raises(ValueError, match=message):
        omma.replay(policy, eta, y, seen="predicted")
    learner = omma.OnlineClassifier(policy, 1)
    learner.predict(0.5)
    with pytest.raises(ValueError, match=message):
        learner.update(1, seen="predicted")


def test_bad_input_gets_one_sentence():
    eta, y = alarms(0, n=50)
    auto = omma.Auto("f1")
    for options, message in (
        ({"seen": "shown"}, "seen of replay must be None or 'predicted', got 'shown'"),
        ({"audited": np.ones(50)}, "audited of replay goes with seen='predicted'"),
        ({"seen": "predicted", "audited": [True]}, "audited of replay must be True or False"),
        ({"seen": "predicted", "audited": np.full(50, 0.3)}, "must be True or False"),
        ({"seen": "predicted", "gap": True}, "no gap=True"),
    ):
        with pytest.raises(ValueError, match=message):
            omma.replay(auto, eta, y, **options)
    with pytest.raises(ValueError, match="needs y"):
        omma.replay(auto, eta, seen="predicted")
    classes = np.full((3, 3), 1 / 3)
    with pytest.raises(ValueError, match="not possible for multiclass_gmean"):
        omma.replay(omma.Auto("multiclass_gmean"), classes, [0, 1, 2], seen="predicted")
    learner = omma.OnlineClassifier(omma.Threshold(0.5), 1, metric="f1")
    learner.predict(0.6)
    with pytest.raises(ValueError, match="pass eta="):
        learner.update(1, seen="predicted")
    learner.update(1, eta=0.6, seen="predicted")
    assert learner.counts.tp == [1.0]


def test_sparse_labels_that_follow_decisions_are_warned_of():
    eta, y, _ = labels_stream(7, n=400, m=8)
    eta[eta < 0.01] = 0.0  # not stored: probabilities of zero
    y[eta == 0.0] = 0
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), 8)
    for row, true in zip(eta, y, strict=True):
        shown = learner.predict(sparse.csr_array(row[np.newaxis])).toarray()[0]
        learned = np.where((shown == 1) | (row == 0.0), true, np.nan)
        learner.update(sparse.csr_array(learned[np.newaxis]))
    with pytest.warns(UserWarning, match="pass seen='predicted' for an estimate"):
        assert learner.value > 0


@pytest.mark.parametrize("m", [1, 5])
def test_labels_that_follow_decisions_are_warned_of(m):
    eta, y, _ = labels_stream(7, n=400, m=m)
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), m)
    other = omma.OnlineClassifier(omma.Auto("macro_f1"), m)
    rng = np.random.default_rng(0)
    for row, true in zip(eta, y, strict=True):
        shown = learner.predict(row)
        learner.update(np.where(shown == 1, true, np.nan))
        other.predict(row)
        other.update(np.where(rng.random(m) < 0.3, true, np.nan))
    with pytest.warns(UserWarning, match="pass seen='predicted' for an estimate"):
        assert learner.value > 0
    with pytest.warns(UserWarning, match="pass seen='predicted' for an estimate"):
        learner.stats()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert other.value > 0  # labels that are missing at random


@pytest.mark.parametrize(
    "policy",
    [
        omma.Auto("macro_recall"),
        omma.OMMA("macro_recall"),
        omma.OMMA("macro_recall", feedback="estimates"),
        omma.Forgetting(omma.Auto("macro_recall"), half_life=50),
        omma.Window(omma.OMMA("macro_recall", feedback="estimates"), rows=50),
        omma.Auto("macro_f1"),
        omma.Auto("macro_recall", k=4),
    ],
    ids=repr,
)
def test_labels_that_are_complete_or_missing_by_chance_are_not_warned_of(policy):
    """Even where everything is predicted, so that all known labels are of predictions."""
    eta, y, _ = labels_stream(7, n=400)
    rng = np.random.default_rng(1)
    entries = rng.random(y.shape) < 0.5
    entries[:, 0] |= ~entries.any(axis=1)
    patterns = [np.ones(y.shape, dtype=bool), entries]
    if policy.feedback != "labels":  # these policies refuse rows of which nothing is known
        patterns.append(np.broadcast_to(rng.random((len(y), 1)) < 0.5, y.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in patterns:
            trace = omma.replay(policy, eta, np.where(known, y, np.nan))
            assert 0 < trace.value <= 1


def test_few_unknown_labels_are_not_warned_of():
    eta, y, _ = labels_stream(7, n=400)
    hidden = eta < 1e-4  # what is not predicted, but that is next to nothing
    assert 20 < hidden.sum() < 100
    for policy in (omma.Auto("macro_f1"), omma.Threshold(1e-4)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trace = omma.replay(policy, eta, np.where(hidden, np.nan, y), metric="macro_f1")
            assert 0 < trace.value <= 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_labels_of_logs_that_follow_scores(layout):
    eta, y, audited = labels_stream(8)
    matrix = LAYOUTS[layout]
    top = eta >= np.sort(eta, axis=1)[:, -2:-1]
    by_chance = np.random.default_rng(0).random(eta.shape) < 0.3
    for known, follows in (
        (eta > 0.4, True),
        (top, True),
        (by_chance, False),
        (np.repeat(audited[:, np.newaxis], 5, axis=1), False),
        (np.ones(eta.shape, dtype=bool), False),
    ):
        rows = omma.Batch.of(matrix(eta), matrix(np.where(known, y, np.nan)))
        assert labels_follow_scores(rows) == follows


def test_ranks_count_ties_by_half_and_stay_within_labels():
    rng = np.random.default_rng(0)
    values, known = rng.integers(0, 4, (30, 3)) / 4, rng.random((30, 3)) < 0.4
    wins = pairs = 0.0
    for label in range(3):
        of_known, others = values[known[:, label], label], values[~known[:, label], label]
        above = of_known[:, np.newaxis] - others
        wins, pairs = wins + (above > 0).sum() + (above == 0).sum() / 2, pairs + above.size
    label = np.tile(np.arange(3), 30)
    assert _rank_share(values.ravel(), known.ravel(), label) == pytest.approx(wins / pairs)


def test_choose_refuses_sparse_labels_that_follow_scores():
    eta, y, _ = labels_stream(9, n=300)
    logged = sparse.csr_array(np.where(eta > 0.4, y, np.nan))
    with pytest.raises(ValueError, match="choose cannot judge rules by macro_f1"):
        omma.choose(sparse.csr_array(eta), logged, "macro_f1")


def test_choose_refuses_labels_that_follow_scores():
    eta, y = alarms(2, n=1000)
    logged = np.where(eta > 0.3, y, np.nan)
    for options in ({}, {"seen": "predicted"}):
        with pytest.raises(ValueError, match="choose cannot judge rules by f1, which needs posit"):
            omma.choose(eta, logged, "f1", **options)
    with pytest.raises(ValueError, match="cannot judge rules by recall"):
        omma.choose(eta, logged, "precision", subject_to="recall >= 0.2")
    with pytest.raises(ValueError, match="seen of choose must be None or 'predicted' or 'random'"):
        omma.choose(eta, y, "f1", seen="all")
    assert omma.choose(eta, logged, "f1", seen="random").best.value > 0
    with pytest.warns(UserWarning, match="labels are known where probabilities are high"):
        omma.choose(eta, logged, "precision")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        omma.choose(eta, logged, "precision", seen="predicted")
        omma.choose(eta, np.where(np.arange(1000) % 2, y, np.nan), "f1")


def test_choose_takes_class_names():
    eta, _, _ = labels_stream(9)
    eta = eta / eta.sum(axis=1, keepdims=True)
    classes, names = eta.argmax(axis=1), ["a", "b", "c", "d", "e"]
    by_id, by_name = (
        omma.choose(eta, labels, "multiclass_gmean", **options)
        for labels, options in ((classes, {}), (np.array(names)[classes], {"names": names}))
    )
    assert by_name.rule.names == tuple(names)
    assert by_name.data == by_id.data


def stream_of(lines, *options):
    """What ``omma stream --seen predicted`` writes to standard output and error."""
    runner = CliRunner()
    options = ("stream", "-", "--seen", "predicted", *options)
    result = runner.invoke(main, options, input="\n".join(lines) + "\n")
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("form", ["csv", "json"])
def test_the_command_estimates_as_a_learner_does(form):
    eta, y = alarms(3, n=60)
    audited = np.random.default_rng(0).random(60) < 0.3
    learner = omma.OnlineClassifier(omma.Auto("f1"), 1)
    lines = ["p,y,audited"] if form == "csv" else []
    for row, true, flag in zip(eta.tolist(), y.tolist(), audited.tolist(), strict=True):
        alarm = learner.predict(row)
        known = true if alarm or flag else None
        learner.update(known, seen="predicted", audited=flag)
        if form == "csv":
            lines.append(f"{row},{'' if known is None else known},{int(flag)}")
        else:
            lines.append(json.dumps({"eta": row, "y": known, "audited": flag}))
    code, _, said = stream_of(lines, "--metric", "f1")
    assert code == 0
    assert f"f1 {100 * learner.value:.2f} % (estimated: {learner.value.rests_on})" in said


def test_rows_without_a_prediction_do_not_wait():
    lines = [json.dumps({"id": name, "eta": eta}) for name, eta in (("a", 0.9), ("b", 0.0))]
    code, _, said = stream_of([*lines, json.dumps({"id": "a", "y": 1})], "--metric", "f1")
    assert code == 0
    assert "2 decided, 1 learned, f1 100.00 % (estimated: from probabilities alone" in said
    assert "waiting" not in said


def test_lines_with_wrong_audits_are_refused():
    code, _, said = stream_of([json.dumps({"eta": 0.5, "y": 1, "audited": 2})], "--metric", "f1")
    assert code == 3
    assert "expected true or false as audited, got 2" in said
    code, _, said = stream_of(["p,y,audited", "0.5,1,x"], "--metric", "f1")
    assert code == 3
    assert "expected 0 or 1 as audited, got 'x'" in said


def test_evaluate_refuses_labels_that_follow_scores(tmp_path):
    eta, y = alarms(4, n=300)
    rows = [f"{p},{true if p > 0.3 else ''}" for p, true in zip(eta, y, strict=True)]
    path = tmp_path / "logged.csv"
    path.write_text("\n".join(["p,y", *rows]) + "\n")
    command = ["evaluate", str(path), "--probability", "p", "--label", "y", "--metric", "f1"]
    for options in ([], ["--seen", "predicted"], ["--policy", "auto"]):
        result = CliRunner().invoke(main, [*command, *options])
        assert result.exit_code == 1
        assert "evaluate cannot judge rules by f1, which needs positives" in result.stderr
    assert CliRunner().invoke(main, [*command, "--seen", "random"]).exit_code == 0

"""Labels of which some are unknown, offline: scores, tuned thresholds, comparisons and choices.

Where all are known nothing may change by a bit, and what stands where a label is unknown nowhere
matters.
"""

import json

import naive
import naive_baselines as twins
import naive_partly
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from naive_baselines import class_stream, stream
from scipy import sparse

import omma
from omma.calibration import brier, log_loss, reliability
from omma.cli import main
from omma.comparison import compare
from omma.comparison.resampling import Resampler

NAN = np.nan
METRICS = sorted(naive.BINARY)
LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}


@st.composite
def samples(draw):
    """A few rows with equal probabilities and zeros, labels of which some are unknown, weights."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    eta = draw(hnp.arrays(np.float64, (n, m), elements=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0])))
    y = draw(hnp.arrays(np.float64, (n, m), elements=st.sampled_from([0.0, 1.0, 1.0, NAN])))
    for j in range(m):
        fate = draw(st.sampled_from([None, None, None, 0.0, 1.0, NAN]))
        if fate is not None:
            y[:, j] = fate
    y[0, draw(st.integers(0, m - 1))] = 1.0  # something is known
    exact = st.sampled_from([0.25, 0.5, 1.0, 3.0])  # sums without rounding, so that 0/0 is that
    weights = draw(st.none() | hnp.arrays(np.float64, n, elements=exact))
    return eta, y, weights


def partial(seed=0, n=300, m=4, share=0.4, rows=True):
    """A stream of which a share of labels is known; with ``rows``, something of each row."""
    eta, y = stream(seed, n, m)
    given = np.where(np.random.default_rng(seed).random(y.shape) < share, y, NAN)
    if rows:
        nothing = np.isnan(given).all(axis=1)
        given[nothing, 0] = y[nothing, 0]
    return eta, given


def marked(eta, y, weights=None):
    """The same labels with noise where they are unknown, and marks that say where that is."""
    noise = np.random.default_rng(1).integers(0, 2, y.shape)
    whole = np.where(np.isnan(y), noise, y).astype(np.int8)
    return omma.Batch.of(eta, whole, weights, known=~np.isnan(y))


# Scores


@given(sample=samples(), name=st.sampled_from(METRICS))
@settings(max_examples=80)
def test_scores_are_those_of_known_labels_in_proportion(sample, name):
    eta, y, weights = sample
    made = (eta >= 0.3).astype(np.int8)
    for average in ("macro", "micro"):
        metric = omma.metric(f"{average}_{name}")
        expected = naive_partly.value(metric.name, y, made, weights)
        for layout in LAYOUTS.values():
            found = metric.score(layout(y), made, sample_weight=weights)
            assert found == pytest.approx(expected, abs=1e-12)


@given(sample=samples())
@settings(max_examples=30)
def test_labels_that_are_known_count_to_the_bit_as_ever(sample):
    eta, y, weights = sample
    whole, made = np.nan_to_num(y), (eta >= 0.3).astype(np.int8)
    expected = omma.Counts.from_labels(whole.astype(np.int8), made, sample_weight=weights)
    assert omma.Counts.from_labels(whole, made, sample_weight=weights) == expected


def test_a_trace_and_a_score_agree():
    eta, y = partial(1, rows=False)
    for metric in ("macro_f1", "micro_f1", "macro_mcc"):
        trace = omma.replay(omma.Auto(metric), eta, y)
        assert trace.metric.score(y, trace.predictions) == trace.value


def test_a_vector_of_which_some_are_unknown():
    for y, made, how in (
        ([1, NAN, 0, 1], [1, 1, 0, 0], {}),
        ([1, NAN, -1, 1], [1, 1, -1, -1], {}),
        ([5, NAN, 2, 5], [5, 5, 2, 2], {"pos_label": 5}),
    ):
        assert omma.metric("recall").score(y, made, **how) == 0.5
        assert omma.metric("precision").score(y, made, **how) == 1.0


@pytest.mark.parametrize("metric", ["multiclass_gmean", "multiclass_mcc"])
def test_metrics_of_one_class_a_row_want_whole_rows(metric):
    y, made = np.array([[1.0, 0], [NAN, 1], [0, 1]]), [[1, 0], [0, 1], [1, 0]]
    why = f"or none for {metric}, which is about one class a row, got a part of them in row 1"
    with pytest.raises(ValueError, match=why):
        omma.metric(metric).score(y, made)
    y[1] = NAN  # then the row is left out
    assert omma.metric(metric).score(y, made) == omma.metric(metric).score(y[[0, 2]], made[::2])
    with pytest.raises(ValueError, match="must have a label that is known"):
        omma.metric("macro_f1").score([[NAN, NAN]], [[1, 0]])


# Tuned thresholds


@given(sample=samples(), name=st.sampled_from(METRICS))
@settings(max_examples=60)
def test_each_label_is_tuned_where_it_is_known(sample, name):
    eta, y, weights = sample
    policy = omma.TunedThresholds(f"macro_{name}")
    tuned = policy.fit(eta, y, weights=weights).decision
    for j in range(eta.shape[1]):
        cuts, worth = naive_partly.best_worth(name, eta[:, j], y[:, j], weights)
        threshold = tuned.thresholds[j]
        assert threshold in cuts  # of rows in which it is unknown, no cut is taken
        assert worth[cuts.index(threshold)] == pytest.approx(max(worth), abs=1e-12)
    assert policy.fit(marked(eta, y, weights)).decision == tuned
    for given_y in (y, sparse.csr_array(y)):
        assert policy.fit(sparse.csr_array(eta), given_y, weights=weights).decision == tuned


@pytest.mark.parametrize("name", METRICS)
def test_rows_in_which_a_label_is_unknown_are_no_evidence_against_it(name):
    eta, y = partial(15, n=60)
    tuned = omma.TunedThresholds(f"macro_{name}").fit(eta, y).decision
    for j in range(4):
        cuts, worth = naive_partly.best_worth(name, eta[:, j], y[:, j], None)
        best = worth[cuts.index(tuned.thresholds[j])]
        assert best == pytest.approx(max(worth), abs=1e-12)


@given(sample=samples(), limit=st.sampled_from(["recall >= 0.5", "specificity >= 0.6"]))
@settings(max_examples=40)
def test_limits_of_one_label_look_at_rows_in_which_it_is_known(sample, limit):
    eta, y, _ = (None if one is None else one[..., :1] for one in sample)
    rows = ~np.isnan(y[:, 0])
    if not rows.any():
        return
    policy = omma.TunedThresholds("f1", subject_to=limit)
    assert policy.fit(eta, y).decision == policy.fit(eta[rows], y[rows].astype(int)).decision


def test_limits_hold_on_known_labels_and_on_all_that_is_predicted():
    eta, y = partial(2, n=400, share=0.2, rows=False)
    tuner = omma.TunedThresholds
    few = tuner("macro_f1", subject_to="labels_per_row <= 1").fit(eta, y).decision.predict(eta)
    assert 0.9 < few.sum(axis=1).mean() <= 1
    sure = tuner("macro_f1", subject_to="micro_precision >= 0.8").fit(eta, y).decision
    free = tuner("macro_f1").fit(eta, y).decision
    assert naive_partly.value("micro_precision", y, sure.predict(eta)) >= 0.8
    assert naive_partly.value("micro_precision", y, free.predict(eta)) < 0.8
    both = ["micro_accuracy >= 0.8", "labels_per_row <= 1"]
    made = tuner("macro_f1", subject_to=both).fit(eta, y).decision.predict(eta)
    assert naive_partly.value("micro_accuracy", y, made) >= 0.8
    assert made.sum(axis=1).mean() <= 1


def test_nothing_known_is_refused():
    eta, y = stream(0)
    some = np.where(np.arange(len(y))[:, np.newaxis] < 3, y, NAN)
    weights = np.repeat([0.0, 1.0], [3, len(y) - 3])
    for fitter in (omma.TunedThresholds("macro_f1"), omma.FrankWolfe("macro_f1")):
        with pytest.raises(ValueError, match="must have labels that are known, got nan alone"):
            fitter.fit(eta, np.full(y.shape, NAN))
        with pytest.raises(ValueError, match="fit must have known labels in rows of weight"):
            fitter.fit(eta, some, weights=weights)
    for judge in (omma.choose, compare, brier):
        with pytest.raises(ValueError, match="must have labels that are known, got nan alone"):
            judge(eta, np.full(y.shape, NAN), *(["macro_f1"] if judge is not brier else []))


# Other policies


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.filterwarnings("ignore:FrankWolfe")
def test_frank_wolfe_counts_what_is_known(layout, k):
    eta, y = partial(3, rows=False)
    rows = LAYOUTS[layout](eta)
    mixture = omma.FrankWolfe("macro_gmean", k=k, max_iter=5).fit(rows, y)
    for rule, value in zip(mixture.rules, mixture.values, strict=True):
        assert naive_partly.value("macro_gmean", y, rule.predict(eta)) == pytest.approx(
            value, abs=1e-5
        )
    assert mixture.values.max() > 0.4
    same = omma.FrankWolfe("macro_gmean", k=k, max_iter=5).fit(marked(rows, y))
    assert np.array_equal(same.rules[0].offset, mixture.rules[0].offset)


def test_a_mixture_is_judged_where_labels_are_known():
    eta, y = partial(4)
    rules = (omma.Rule(np.ones(4), np.full(4, -0.2)), omma.Rule(np.ones(4), np.full(4, -0.6)))
    mixture = omma.policies.Mixture(rules, [0.5, 0.5], "macro_f1")
    trace = omma.replay(mixture, eta, y)
    assert trace.value == pytest.approx(naive_partly.value("macro_f1", y, trace.predictions))
    learner = omma.OnlineClassifier(mixture, 4)
    for row, true in zip(eta, y, strict=True):
        learner.predict(row)
        learner.update(true)
    assert learner.value == trace.value
    assert learner.state == trace.state


@pytest.mark.parametrize("name", ["f1", "gmean", "precision"])
def test_greedy_looks_at_counts_in_proportion(name):
    eta, y = partial(5, n=60)
    theirs, gains = naive_partly.greedy(naive.BINARY[name], eta, y, 0.5)
    for layout in LAYOUTS.values():
        ours = omma.replay(omma.Greedy(f"macro_{name}", prior=0.5), layout(eta), y).predictions
        assert twins.agree(ours, theirs, gains, None) == len(eta)


# Comparisons


def test_policies_are_compared_by_what_is_known():
    eta, y = partial(6, rows=True)
    names = ["baseline", "auto", "omma", "greedy", "ofo", "tuned", "online_fw"]
    found = compare(eta, y, ["macro_f1"], names, train=(eta, y), seeds=[3], priors=1e-6)
    trace = omma.replay(omma.OMMA("macro_f1"), eta, y, seed=3)
    assert found.cell("omma", "macro_f1").mean == trace.value
    decided = omma.TunedThresholds("macro_f1").fit(eta, y).decision.predict(eta)
    expected = naive_partly.value("macro_f1", y, decided)
    assert found.cell("tuned", "macro_f1").mean == pytest.approx(expected, abs=1e-12)
    left = {one.policy: one.reason for one in found.cells.values() if not one.supported}
    assert left == {"online_fw": "it needs all labels of a row or none for OnlineFrankWolfe"}
    same = compare(
        marked(eta, y), None, ["macro_f1"], names, train=marked(eta, y), seeds=[3], priors=1e-6
    )
    assert [one["mean"] for one in same.rows] == pytest.approx(
        [one["mean"] for one in found.rows], nan_ok=True, abs=0
    )


def test_who_learns_from_labels_alone_cannot_do_without_them():
    eta, y = partial(7, rows=False)
    y[0] = NAN
    found = compare(eta, y, ["macro_f1"], ["baseline", "auto", "omma"], seeds=[0], priors=1e-6)
    assert found.cell("auto", "macro_f1").supported
    assert "of some rows none is known" in found.cell("omma", "macro_f1").reason
    with pytest.raises(ValueError, match="y of compare must have all labels of a row or none for"):
        compare(eta, y, ["multiclass_gmean"], ["auto"])


# Choices


def test_choices_are_judged_by_what_is_known():
    eta, y = partial(8, n=240)
    choice = omma.choose(eta, y, "macro_f1", folds=3, seed=5)
    order = np.random.default_rng(5).permutation(240)
    for name in ("tuned", "auto"):
        made = np.zeros(y.shape, dtype=np.int8)
        for fold in range(3):
            others = np.concatenate([order[one::3] for one in range(3) if one != fold])
            if name == "tuned":
                rule = omma.TunedThresholds("macro_f1").fit(eta[others], y[others]).decision
            else:
                rule = omma.replay(omma.Auto("macro_f1"), eta[others], y[others]).rule
            made[order[fold::3]] = rule.predict(eta[order[fold::3]])
        expected = naive_partly.value("macro_f1", y, made)
        assert choice[name].out_of_fold == pytest.approx(expected, abs=1e-12)
    assert choice.labels.best.mean() == pytest.approx(choice.best.out_of_fold)
    assert "of their labels known" in choice.how
    assert choice["auto"].stream == omma.replay(omma.Auto("macro_f1"), eta, y, seed=5).value
    assert omma.choose(marked(eta, y), None, "macro_f1", folds=3, seed=5).data == choice.data
    thin = omma.choose(sparse.csr_array(eta), sparse.csr_array(y), "macro_f1", folds=3, seed=5)
    assert thin.best.out_of_fold == pytest.approx(choice.best.out_of_fold, abs=1e-12)


def test_whole_rows_are_chosen_by_as_ever():
    eta, y = stream(9, 200, 4)
    expected = omma.choose(eta, y, "micro_f1", k=2, folds=2)
    assert expected.notes == ()
    assert omma.choose(eta, y.astype(float), "micro_f1", k=2, folds=2).data == expected.data
    more, nothing = np.vstack((eta, eta[:5])), np.full((5, 4), NAN)
    choice = omma.choose(more, np.vstack((y, nothing)), "micro_f1", k=2, folds=2)
    assert choice.data == expected.data
    assert choice.notes == ("5 of 205 rows have no labels and were skipped.",)
    assert choice.notes[0] in str(choice)


def test_resamples_know_weights_and_gaps():
    eta, y = partial(10, n=50)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 50)
    batch = omma.Batch.of(eta, y, weights)
    made = (eta >= 0.4).astype(float)
    for name in ("macro_f1", "micro_f1"):
        sample = Resampler(batch, [sparse.csr_array(made)], omma.metric(name), 1)
        expected = naive_partly.value(name, y, made, weights)
        assert sample.values[0] == pytest.approx(expected, abs=1e-12)
        left_out = [
            naive_partly.value(name, y[rows], made[rows], weights[rows])
            for rows in (np.arange(50) != row for row in range(50))
        ]
        np.testing.assert_allclose(np.sort(sample.left_out(0)), np.sort(left_out), atol=1e-12)


def test_weights_count_for_rules_and_for_judgement():
    eta, y = stream(11, 150, 3)
    weights = np.random.default_rng(0).integers(1, 4, 150).astype(float)
    choice = omma.choose(omma.Batch.of(eta, y, weights), None, "macro_f1", folds=3)
    expected = omma.metric("macro_f1").score(y, eta >= 0.5, sample_weight=weights)
    assert choice["baseline"].out_of_fold == pytest.approx(expected, abs=1e-12)
    without = np.where(np.arange(150) % 3 == 0, 0.0, 1.0)
    kept = without > 0
    left = omma.choose(omma.Batch.of(eta, y, without), None, "macro_f1", folds=3)
    assert left.data == omma.choose(eta[kept], y[kept], "macro_f1", folds=3).data
    with pytest.raises(ValueError, match="weights of choose must not all be 0"):
        omma.choose(omma.Batch.of(eta, y, np.zeros(150)), None, "macro_f1")


def test_limits_of_choices_stand_on_known_labels():
    eta, y = partial(12, n=400)
    limits = ["micro_accuracy >= 0.7", "labels_per_row <= 1.5"]
    choice = omma.choose(eta, y, "macro_f1", subject_to=limits)
    assert [one.name for one in choice.candidates] == ["baseline", "tuned"]
    assert len(choice.notes) == 3
    said = "Auto is left out: it needs all labels of a row or none for a limit on micro_accuracy"
    assert choice.notes[0].startswith(said)
    accuracy, labels = choice["baseline"].limits
    made = (eta >= 0.5).astype(int)
    assert accuracy.value == pytest.approx(naive_partly.value("micro_accuracy", y, made))
    assert labels.value == made.sum(axis=1).mean()
    # As sure as the number of labels that were seen makes it, whatever stands for the others.
    seen = (~np.isnan(y)).sum()
    right = ((made == y) & ~np.isnan(y)).sum() / seen
    assert accuracy.error == pytest.approx(np.sqrt(right * (1 - right) / seen))


def test_metrics_of_one_class_a_row_are_refused_by_choices():
    eta, ids = class_stream(1, 60, 3)
    y = twins.one_hot(ids, 3).astype(float)
    y[7, 1] = NAN
    with pytest.raises(ValueError, match="y of choose must have all labels of a row or none for"):
        omma.choose(eta, y, "multiclass_gmean")
    some = np.where(np.arange(60) < 50, ids, NAN)
    choice = omma.choose(eta, some, "multiclass_gmean", folds=2)
    assert choice.data == omma.choose(eta[:50], ids[:50], "multiclass_gmean", folds=2).data


# Calibration


@given(sample=samples())
@settings(max_examples=30)
def test_reliability_looks_at_known_labels(sample):
    eta, y, weights = sample
    there = ~np.isnan(y)
    flat = (eta[there], y[there].astype(int))
    own = None if weights is None else np.repeat(weights, eta.shape[1])[there.ravel()]
    for layout in LAYOUTS.values():
        rows = layout(eta)
        for judge in (brier, log_loss):
            expected = judge(*flat, weights=own)
            assert judge(rows, y, weights=weights) == pytest.approx(expected, abs=1e-12)
        found = reliability(rows, y, bins=4, weights=weights)
        expected = reliability(*flat, bins=4, weights=own)
        np.testing.assert_allclose(found.count, expected.count)
        np.testing.assert_allclose(found.observed, expected.observed)
        j = int(np.flatnonzero(there.any(axis=0))[0])
        one = reliability(rows, y, bins=4, label=j)
        alone = reliability(eta[there[:, j], j], y[there[:, j], j].astype(int), bins=4)
        np.testing.assert_allclose(one.count, alone.count)


# The command line


def files(folder, eta, y):
    """Both as CSV files, unknown labels as empty cells."""
    head = ",".join("abcdef"[: eta.shape[1]])
    body = [",".join("" if np.isnan(one) else f"{one:g}" for one in row) for row in y]
    lines = [",".join(map(repr, row)) for row in eta.tolist()]
    for name, rows in (("eta", lines), ("y", body)):
        (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    return ["--eta", str(folder / "eta.csv"), "--labels", str(folder / "y.csv")]


def evaluated(*arguments):
    done = CliRunner().invoke(main, ["evaluate", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_evaluate_judges_by_empty_cells_what_is_known(tmp_path):
    eta, y = partial(13, n=120)
    y[5] = NAN
    given_files = files(tmp_path, eta, y)
    rule = str(tmp_path / "rule.json")
    told = json.loads(evaluated(*given_files, "--metric", "macro_f1", "--json", "--rule", rule))
    assert told["rows"] == 119
    assert "1 of 120 rows have no labels" in told["notes"][-1]
    kept = ~np.isnan(y).all(axis=1)
    choice = omma.choose(eta[kept], y[kept], "macro_f1")
    (found,) = told["choices"]
    for one, mine in zip(found["rules"], choice.data, strict=True):
        assert one["out_of_fold"] == pytest.approx(mine["out_of_fold"], abs=1e-9)
    made = omma.Rule.from_json((tmp_path / "rule.json").read_text())
    np.testing.assert_allclose(made.slope, choice.rule.slope)
    shown = evaluated(*given_files, "--metric", "macro_f1")
    assert "of all are known" in shown
    assert "of their labels known" in shown
    limited = evaluated(*given_files, "--metric", "macro_f1", "--subject-to", "labels_per_row <= 1")
    assert "Auto online over all rows" in limited


def test_evaluate_leaves_rows_out_for_metrics_of_one_class_a_row(tmp_path):
    eta, ids = class_stream(2, 80, 3)
    y = twins.one_hot(ids, 3).astype(float)
    y[3, 1] = y[9, 0] = NAN
    told = json.loads(evaluated(*files(tmp_path, eta, y), "--metric", "multiclass_gmean", "--json"))
    assert told["rows"] == 78
    assert told["notes"][-1].startswith("2 of 80 rows lack some labels and were skipped: multi")


def test_a_sample_to_train_on_may_lack_labels(tmp_path):
    eta, y = partial(14, n=60, m=3)
    (tmp_path / "train").mkdir()
    train = files(tmp_path / "train", eta[:, [2, 0, 1]], y[:, [2, 0, 1]])
    for path in (train[1], train[3]):  # the same columns in another order
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write("c,a,b" + text[5:])
    test = files(tmp_path, eta, np.nan_to_num(y))
    arguments = ["--train-eta", train[1], "--train-labels", train[3], "--policy", "tuned"]
    told = json.loads(evaluated(*test, "--metric", "macro_f1", "--json", *arguments))
    decided = omma.TunedThresholds("macro_f1").fit(eta, y).decision.predict(eta)
    expected = omma.metric("macro_f1").score(np.nan_to_num(y), decided)
    assert told["results"][0]["mean"] == pytest.approx(expected)


def strictly(text):
    """JSON by its own rules, which know no NaN."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_json_has_no_words_for_what_is_no_number(tmp_path):
    eta, y = partial(16, n=30, m=3)
    given_files = [*files(tmp_path, eta, 0 * np.nan_to_num(y)), "--metric", "macro_f1", "--json"]
    (choice,) = strictly(evaluated(*given_files))["choices"]
    assert any(one["threshold"] is None for one in choice["labels"]) or choice["best"] == "baseline"
    limited = strictly(evaluated(*given_files, "--subject-to", "micro_recall >= 0.5"))
    assert limited["online"]["limits"][0]["value"] is None
    costs = strictly(evaluated(*given_files, "--frontier", "micro_precision"))
    assert None in costs["reached"]
    shown = evaluated(*given_files[:-1], "--subject-to", "micro_recall >= 0.5")
    assert "nothing to judge it by" in shown
    assert "nan" not in evaluated(*given_files[:-1], "--frontier", "micro_precision")


@pytest.mark.parametrize("said", ["nan", ""])
def test_a_column_alone_says_nan_where_it_is_unknown(tmp_path, said):
    eta, y = stream(17, 30, 1)
    lines = [f"{one[0]:g}" if i % 3 else said for i, one in enumerate(y)]
    (tmp_path / "y.csv").write_text("\n".join(["a", *lines]) + "\n")
    (tmp_path / "eta.csv").write_text("\n".join(["a", *map(repr, eta[:, 0].tolist())]) + "\n")
    both = ["--eta", str(tmp_path / "eta.csv"), "--labels", str(tmp_path / "y.csv")]
    done = CliRunner().invoke(main, ["evaluate", *both, "--metric", "f1", "--json"])
    if said:
        assert json.loads(done.stdout)["rows"] == 20
    else:
        assert "a line with nothing in it is no row: write nan where a label is" in done.output


def test_a_picture_without_anything_in_it_is_refused(tmp_path):
    eta, y = partial(18, n=30, m=3)
    plot = ["--plot", str(tmp_path / "a.png"), "--policy", "online_fw"]
    done = CliRunner().invoke(
        main, ["evaluate", *files(tmp_path, eta, y), "--metric", "macro_f1", *plot]
    )
    assert done.exit_code == 1
    assert (
        "--plot has nothing to draw: no policy ran; online_fw by macro_f1: it needs" in done.output
    )
    assert not (tmp_path / "a.png").exists()

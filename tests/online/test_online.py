"""One row at a time: asking is free, labels may come late, and a learner can be put to sleep."""

import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from strategies import class_stream, dense, one_hot, own_f1, stream

import omma
from omma import Counts, OnlineClassifier

POLICIES = [
    omma.OMMA("macro_f1"),
    omma.OMMA("macro_f1", k=2),
    omma.OMMA("micro_gmean", feedback="estimates"),
    omma.OMMA("multiclass_kappa"),
    omma.OMMA(omma.metrics.costs([[1, -1, 0, 0], [0, 2, 0, -3], [0, 0, 1, 0], [-2, 0, 0, 1]])),
    omma.TopK(2),
    omma.Threshold(0.3),
]
policies = pytest.mark.parametrize(
    "policy", POLICIES, ids=lambda p: type(p).__name__ + str(p.budget)
)
LAYOUTS = [np.asarray, sparse.csr_array]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=["dense", "csr"])


def learner_of(policy, m=4):
    return OnlineClassifier(policy, m, metric=None if isinstance(policy, omma.OMMA) else "macro_f1")


def rows_for(policy, n=30):
    if isinstance(policy, omma.OMMA) and policy.metric.multiclass:
        eta, ids = class_stream(1, n)
        return eta, one_hot(ids, 4)
    return stream(1, n)


def row_of(eta, t):
    return eta[[t]] if sparse.issparse(eta) else eta[t]


def run(learner, eta, y, rows):
    """Decide and learn some rows; their predictions."""
    found = []
    for t in rows:
        found.append(dense(learner.predict(row_of(eta, t))))
        learner.update(y[t])
    return np.vstack(found)


def same(a, b):
    assert a.state == b.state
    assert a.counts == b.counts
    assert a.rule == b.rule
    assert a.value == b.value


# Asking


@policies
@layouts
def test_asking_changes_nothing(policy, layout):
    eta, y = rows_for(policy)
    eta = layout(eta)
    learner, asked = learner_of(policy), learner_of(policy)
    for t in range(30):
        learner.predict(row_of(eta, t))
        for other in (3, 5, t):  # what was asked last is what is counted
            state, counts = asked.state.copy(), asked.counts
            asked.predict(row_of(eta, other))
            asked.predict(eta)
            assert (asked.state, asked.counts) == (state, counts)
        last = asked.predict(row_of(eta, t))
        np.testing.assert_array_equal(dense(asked.predict(row_of(eta, t))), dense(last))
        learner.update(y[t])
        asked.update(y[t])
    same(asked, learner)


@policies
@layouts
def test_a_matrix_is_decided_on_the_present_counts(policy, layout):
    eta, y = rows_for(policy)
    learner = learner_of(policy)
    run(learner, eta, y, range(20))
    one_by_one = np.array([learner.predict(row) for row in eta])
    predictions = learner.predict(layout(eta))
    np.testing.assert_array_equal(dense(predictions), one_by_one)
    np.testing.assert_array_equal(dense(learner.rule.predict(layout(eta))), one_by_one)


def test_a_prediction_is_the_users_to_keep():
    learner = learner_of(POLICIES[0])
    eta, y = rows_for(POLICIES[0])
    first = learner.predict(eta[0])
    kept = first.copy()
    first[:] = 1 - first  # what was said stays said
    learner.update(y[0])
    assert learner.counts == Counts.from_labels(y[:1], kept[None])
    second = learner.predict(eta[1])
    learner.predict(eta[2])
    np.testing.assert_array_equal(second, omma.replay(POLICIES[0], eta[:2], y[:2]).predictions[1])


@layouts
@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 5)], ids=["row", "batch"])
def test_a_buffer_may_be_used_again_between_prediction_and_label(layout, rows):
    eta, y = stream(1, zeros=0.0)
    policy = omma.OMMA("macro_f1", feedback="estimates")
    learner, expected = OnlineClassifier(policy, 4), OnlineClassifier(policy, 4)
    buffer = layout(eta[rows].copy())
    row = buffer[0] if layout is np.asarray and rows.stop == 1 else buffer
    learner.predict(row)
    expected.predict(eta[rows])
    (buffer.data if sparse.issparse(buffer) else buffer)[...] = 0.5
    learner.update(y[rows])
    expected.update(y[rows])
    assert learner.state == expected.state


# Learning


@policies
@layouts
def test_a_batch_is_learned_as_rows_with_one_rule(policy, layout):
    eta, y = rows_for(policy)
    batch, single = learner_of(policy), learner_of(policy)
    for start in (0, 10, 20):
        part = slice(start, start + 10)
        predictions = batch.predict(layout(eta[part]))
        batch.update(y[part])
        for row, true, chosen in zip(eta[part], y[part], dense(predictions), strict=True):
            single.update(true, prediction=chosen, eta=row)
    assert batch.counts == single.counts
    assert batch.state == single.state


@policies
@layouts
def test_labels_may_come_late_and_out_of_order(policy, layout):
    eta, y = rows_for(policy)
    eta = layout(eta)
    learner = learner_of(policy)
    made = [learner.predict(row_of(eta, t)) for t in range(10)]
    for t in (7, 2, 9):
        learner.update(y[t], prediction=made[t], eta=row_of(eta, t), weight=t)
    rows = [7, 2, 9]
    chosen = np.vstack([dense(made[t]) for t in rows])
    assert learner.counts == Counts.from_labels(y[rows], chosen, sample_weight=rows)


def test_a_late_label_leaves_the_last_prediction_waiting():
    eta, y = stream(1)
    learner = learner_of(POLICIES[0])
    early = learner.predict(eta[0])
    late = learner.predict(eta[1])
    learner.update(y[0], prediction=early)
    learner.update(y[1])
    assert learner.counts == Counts.from_labels(y[:2], np.stack((early, late)))


@layouts
def test_weights_count_rows_many_times(layout):
    eta, y = stream(1)
    eta = layout(eta)
    weighted, repeated = learner_of(POLICIES[0]), learner_of(POLICIES[0])
    for t in range(20):
        chosen = weighted.predict(row_of(eta, t))
        weighted.update(y[t], weight=t % 4)
        for _ in range(t % 4):
            repeated.update(y[t], prediction=chosen)
    same(weighted, repeated)
    batch = weighted.predict(eta)
    weighted.update(y, weight=np.arange(40))
    for t in range(40):
        for _ in range(t):
            repeated.update(y[t], prediction=row_of(batch, t))
    same(weighted, repeated)


@layouts
def test_labels_in_any_form_count_alike(layout):
    eta, y = stream(1)
    forms = [
        lambda row: row.astype(np.int8),
        lambda row: row.astype(bool),
        lambda row: row.astype(float),
        lambda row: row.tolist(),
        lambda row: row[None],
        lambda row: sparse.csr_array(row[None]),
        lambda row: sparse.coo_matrix(row[None].astype(float)),
    ]
    expected = learner_of(POLICIES[0])
    run(expected, eta, y, range(10))
    for form in forms:
        learner = learner_of(POLICIES[0])
        for t in range(10):
            learner.predict(row_of(layout(eta), t))
            learner.update(form(y[t]))
        same(learner, expected)


@layouts
@pytest.mark.parametrize("name", ["multiclass_gmean", "multiclass_mcc"])
def test_class_ids_count_as_one_hot_rows(layout, name):
    eta, ids = class_stream(2)
    eta = layout(eta)
    by_id, by_row = learner_of(omma.OMMA(name)), learner_of(omma.OMMA(name))
    for t in range(20):
        for learner, true in ((by_id, ids[t]), (by_row, one_hot(ids[t], 4))):
            learner.predict(row_of(eta, t))
            learner.update(true)
    same(by_id, by_row)
    for learner, true in ((by_id, ids), (by_row, one_hot(ids, 4))):
        learner.predict(eta)
        learner.update(true)
    same(by_id, by_row)
    for rows in ([0, 1, 2, 3], [5]):  # as many rows as classes, and one
        for learner, true in ((by_id, ids[rows]), (by_row, one_hot(ids[rows], 4))):
            learner.predict(eta[rows])
            learner.update(true)
    same(by_id, by_row)


def test_one_label_takes_numbers_vectors_and_columns():
    eta, y = stream(3, n=20, m=1)
    policy = omma.OMMA("f1")
    expected = omma.replay(policy, eta, y)
    takes = [
        lambda x: float(x[0]),
        lambda x: np.float64(x[0]),
        lambda x: x,
        lambda x: x[None],
        lambda x: [float(x[0])],
    ]
    for take in takes:
        learner = OnlineClassifier(policy, 1)
        found = []
        for row, true in zip(eta, y, strict=True):
            prediction = learner.predict(take(row))
            assert np.shape(prediction) == np.shape(take(row))
            found.append(int(np.ravel(prediction)[0]))
            learner.update(take(true))
        assert found == expected.predictions[:, 0].tolist()
        assert learner.counts == expected.counts
        assert learner.rule == expected.rule


@pytest.mark.parametrize("form", [np.ravel, np.asarray, sparse.csr_array])
@layouts
def test_one_label_takes_batches(layout, form):
    eta, y = stream(3, n=20, m=1)
    learner = OnlineClassifier(omma.OMMA("f1"), 1)
    predictions = learner.predict(layout(eta))
    learner.update(form(y))
    assert learner.counts == Counts.from_labels(y, predictions)
    learner.predict(layout(eta[:1]))
    learner.update(form(y[:1]))
    assert learner.counts.n == 21


@layouts
def test_estimates_are_counted_with_and_without_labels(layout):
    eta, y = stream(4)
    policy = omma.OMMA("macro_f1", feedback="estimates")
    blind, seeing = OnlineClassifier(policy, 4), OnlineClassifier(policy, 4)
    thin = layout(eta)
    for t in range(40):
        np.testing.assert_array_equal(
            dense(blind.predict(row_of(thin, t))), dense(seeing.predict(row_of(thin, t)))
        )
        blind.update()
        seeing.update(y[t])
    trace = omma.replay(policy, eta, y)
    assert seeing.state == trace.state
    np.testing.assert_array_equal(blind.state.cells, seeing.state.cells)
    np.testing.assert_array_equal(blind.state.totals, seeing.state.totals)
    assert seeing.counts == trace.counts
    assert seeing.value == trace.value
    assert blind.value is None
    assert blind.counts == Counts.zeros(4)
    # A batch counts its probabilities too.
    before = blind.state.copy()
    blind.predict(thin)
    blind.update()
    np.testing.assert_allclose((blind.state.cells - before.cells)[2], eta.sum(axis=0))


# Refusals leave everything as it was


def check_refused(learner, error, message, act):
    state, counts = learner.state.copy(), learner.counts
    with pytest.raises(error, match=message):
        act()
    assert learner.state == state
    assert learner.counts == counts


@layouts
def test_an_update_before_any_prediction_is_refused(layout):
    learner = learner_of(POLICIES[0])
    for y in (np.array([1, 0, 0, 0]), [1, 0, 0, 0], layout(np.array([[1, 0, 0, 0]]))):
        check_refused(
            learner, ValueError, "update .* must come after predict", lambda y=y: learner.update(y)
        )
    eta, y = stream(1)
    learner.predict(eta[0])
    learner.update(y[0])
    check_refused(  # once is enough
        learner, ValueError, "update .* must come after predict", lambda: learner.update(y[0])
    )


WRONG_Y = [
    ([1, 0, 2, 0], "y of update must hold only 0 and 1, got 2"),
    (np.array([1, 0, 0.5, 0]), "y of update must hold only 0 and 1, got 0.5"),
    (np.array([1, 0, np.inf, 0]), "y of update must hold only 0 and 1, got inf"),
    (np.array([1, 0, -1, 0]), "y of update must hold only 0 and 1, got -1"),
    ([1, 0, 0], "y of update"),
    (np.array([1, 0, 0, 0, 0]), "y of update"),
    (np.ones((2, 4)), "as many rows"),
    (2, "y of update has class ids, and the policy has no budget: pass k=1"),
    (None, "y of update must be given"),
    (np.array(list("abcd")), "y of update"),
]


@layouts
@pytest.mark.parametrize(("y", "message"), WRONG_Y, ids=[str(i) for i in range(len(WRONG_Y))])
def test_wrong_labels_are_refused(layout, y, message):
    learner = learner_of(POLICIES[0])
    eta, right = stream(1)
    run(learner, eta, right, range(3))
    learner.predict(row_of(layout(eta), 3))
    check_refused(learner, ValueError, message, lambda: learner.update(y))
    learner.update(right[3])  # and the prediction still waits
    assert learner.counts.n == 4


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, [1.0, 2.0], -1])
def test_wrong_weights_are_refused(weight):
    learner = learner_of(POLICIES[0])
    eta, y = stream(1)
    learner.predict(eta[0])
    check_refused(
        learner, ValueError, "weight of update", lambda: learner.update(y[0], weight=weight)
    )


@pytest.mark.parametrize("wrong", [1.5, -0.1, np.nan, np.inf])
@layouts
@policies
def test_wrong_probabilities_are_refused(policy, layout, wrong):
    eta, y = rows_for(policy)
    learner = learner_of(policy)
    run(learner, eta, y, range(3))
    learner.predict(eta[3])
    bad = eta[3:5].copy()
    bad[0, 1] = wrong
    message = "eta of .*predict must hold probabilities from 0 to 1"
    check_refused(learner, ValueError, message, lambda: learner.predict(row_of(layout(bad), 0)))
    check_refused(learner, ValueError, message, lambda: learner.predict(layout(bad)))
    learner.update(y[3])  # the good prediction still waits
    expected = learner_of(policy)
    run(expected, eta, y, range(4))
    same(learner, expected)


@pytest.mark.parametrize("shape", [(3,), (5,), (2, 3), (1, 1, 4), ()])
def test_probabilities_of_another_width_are_refused(shape):
    learner = learner_of(POLICIES[0])
    check_refused(
        learner, ValueError, r"eta of .*predict must have", lambda: learner.predict(np.zeros(shape))
    )


def test_one_wrong_row_of_a_batch_refuses_it_all():
    learner = learner_of(POLICIES[0])
    eta, y = stream(1)
    wrong = y.astype(float)
    wrong[20, 2] = 3
    learner.predict(eta)
    check_refused(learner, ValueError, "got 3", lambda: learner.update(wrong))
    check_refused(
        learner, ValueError, "weight of update",
        lambda: learner.update(y, weight=np.where(np.arange(40) == 7, -1.0, 1.0)),
    )  # fmt: skip


def test_estimates_need_the_probabilities_of_a_late_row():
    learner = OnlineClassifier(omma.OMMA("macro_f1", feedback="estimates"), 4)
    eta, y = stream(1)
    made = learner.predict(eta[0])
    check_refused(
        learner, ValueError, "eta of update must be given",
        lambda: learner.update(y[0], prediction=made),
    )  # fmt: skip
    check_refused(
        learner, ValueError, "probabilities from 0 to 1",
        lambda: learner.update(y[0], prediction=made, eta=eta[0] + 1),
    )  # fmt: skip


@pytest.mark.parametrize("y", [[1, 1, 0, 0], [0, 0, 0, 0], np.array([1, 1, 0, 0])])
def test_metrics_of_one_class_a_row_refuse_other_labels(y):
    learner = OnlineClassifier(omma.OMMA("multiclass_kappa"), 4)
    learner.predict([0.1, 0.2, 0.3, 0.4])
    check_refused(learner, ValueError, "exactly one label a row", lambda: learner.update(y))


@pytest.mark.parametrize("ids", [4, -1, [0, 4]])
def test_class_ids_out_of_range_are_refused(ids):
    learner = OnlineClassifier(omma.OMMA("multiclass_gmean"), 4)
    learner.predict(np.full((np.size(ids), 4), 0.25))
    check_refused(
        learner, ValueError, "class ids in y of update must be whole numbers from 0 to 3",
        lambda: learner.update(ids),
    )  # fmt: skip


def crooked(matrix):
    """Sparse rows stored backwards, with zeros stored too."""
    n, m = np.shape(matrix)
    indices = np.tile(np.arange(m)[::-1], n)
    data = np.asarray(matrix, dtype=float)[:, ::-1].ravel()
    return sparse.csr_array((data, indices, np.arange(0, n * m + 1, m)), shape=(n, m))


@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 5)], ids=["row", "batch"])
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_learning_changes_nothing_it_is_given(rows, feedback):
    eta, y = stream(1)
    learner = OnlineClassifier(omma.OMMA("macro_f1", feedback=feedback), 4)
    given_eta, given_y = crooked(eta[rows]), crooked(y[rows])
    made = crooked(learner.predict(eta[rows]))
    kept = [[part.copy() for part in (one.data, one.indices, one.indptr)]
            for one in (given_eta, given_y, made)]  # fmt: skip
    learner.predict(given_eta)
    learner.update(given_y)
    learner.update(given_y, prediction=made, eta=given_eta)
    for one, parts in zip((given_eta, given_y, made), kept, strict=True):
        for now, then in zip((one.data, one.indices, one.indptr), parts, strict=True):
            np.testing.assert_array_equal(now, then)


# Sleeping and waking up


def slept_by_pickle(learner, path):
    return pickle.loads(pickle.dumps(learner))


def slept_by_file(learner, path):
    learner.save(path / "learner.omma")
    return OnlineClassifier.load(path / "learner.omma")


sleeps = pytest.mark.parametrize("sleep", [slept_by_pickle, slept_by_file])


@policies
@layouts
@sleeps
def test_a_learner_resumes_bit_by_bit(policy, layout, sleep, tmp_path):
    eta, y = rows_for(policy)
    eta = layout(eta)
    awake, sleeper = learner_of(policy), learner_of(policy)
    for t in range(30):
        predictions = [dense(learner.predict(row_of(eta, t))) for learner in (awake, sleeper)]
        np.testing.assert_array_equal(*predictions)
        if t % 7 == 3:
            sleeper = sleep(sleeper, tmp_path)  # between a prediction and its label
        awake.update(y[t])
        sleeper.update(y[t])
        if t % 7 == 5:
            sleeper = sleep(sleeper, tmp_path)
        same(awake, sleeper)
    assert sleeper.policy == policy
    assert repr(sleeper) == repr(awake)


@sleeps
@layouts
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_a_batch_may_wait_while_its_learner_sleeps(sleep, layout, feedback, tmp_path):
    eta, y = stream(2)
    learner = OnlineClassifier(omma.OMMA("macro_f1", feedback=feedback), 4)
    learner.predict(layout(eta))
    woken = sleep(learner, tmp_path)
    for one in (learner, woken):
        one.update(y)
    same(learner, woken)


@sleeps
def test_one_label_may_sleep(sleep, tmp_path):
    learner = OnlineClassifier(omma.OMMA("gmean"), 1)
    learner.predict(0.7)
    woken = sleep(learner, tmp_path)
    for one in (learner, woken):
        one.update(1)
    same(learner, woken)


@sleeps
def test_what_a_learner_is_judged_by_sleeps_too(sleep, tmp_path):
    learner = OnlineClassifier(omma.OMMA("macro_f1"), 4, metric="micro_jaccard")
    eta, y = stream(2)
    run(learner, eta, y, range(5))
    assert sleep(learner, tmp_path).metric == omma.metric("micro_jaccard")
    same(sleep(learner, tmp_path), learner)


@pytest.mark.parametrize(
    "policy",
    [omma.OMMA("macro_f1", k=np.int64(2)), omma.TopK(np.int32(2)), omma.Threshold(np.float32(0.5))],
    ids=["OMMA", "TopK", "Threshold"],
)
def test_numbers_that_came_from_numpy_can_be_saved(policy, tmp_path):
    learner = learner_of(policy)
    learner.save(tmp_path / "learner.omma")
    assert OnlineClassifier.load(tmp_path / "learner.omma").policy == policy


def test_sums_and_fbeta_can_be_saved(tmp_path):
    metric = omma.metrics.macro(omma.metrics.fbeta(2.0)) - 0.5 * omma.metric("micro_precision")
    learner = OnlineClassifier(omma.OMMA(metric, k=1, prior=0.01), 4)
    learner.save(tmp_path / "learner.omma")
    assert OnlineClassifier.load(tmp_path / "learner.omma").policy == learner.policy


def test_an_own_metric_is_given_again(tmp_path):
    own = omma.metrics.custom(own_f1, average="macro")
    other = omma.metrics.custom(own_f1, average="micro")
    learner = OnlineClassifier(omma.OMMA(own), 4)
    learner.update([1, 0, 0, 1], prediction=[1, 1, 0, 0])
    path = tmp_path / "learner.omma"
    learner.save(path)
    with pytest.raises(ValueError, match=r"'own_f1' is a function of your own.*pass it as metric="):
        OnlineClassifier.load(path)
    with pytest.raises(ValueError, match="metric must be the one that was saved"):
        OnlineClassifier.load(path, metric=other)
    woken = OnlineClassifier.load(path, metric=own)
    assert woken.counts == learner.counts
    assert woken.value == learner.value


@pytest.mark.parametrize("policy", [omma.Threshold(0.5), omma.OMMA("macro_f1")], ids=repr)
def test_an_own_metric_that_only_judges_is_given_again(policy, tmp_path):
    own = omma.metrics.custom(own_f1, average="macro")
    learner = OnlineClassifier(policy, 4, metric=own)
    learner.update([1, 0, 0, 1], prediction=[1, 1, 0, 0])
    learner.save(tmp_path / "learner.omma")
    with pytest.raises(ValueError, match="pass it as metric="):
        OnlineClassifier.load(tmp_path / "learner.omma")
    woken = OnlineClassifier.load(tmp_path / "learner.omma", metric=own)
    assert woken.metric == own
    assert woken.value == learner.value


# Files


def test_saving_is_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "learner.omma"
    learner = learner_of(POLICIES[0])
    learner.save(path)
    before = path.read_bytes()
    learner.update([1, 0, 0, 1], prediction=[1, 1, 0, 0])

    def fail(*arguments):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        learner.save(path)
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        learner.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["learner.omma"]
    learner.save(path)
    assert OnlineClassifier.load(path).counts == learner.counts


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        OnlineClassifier.load(tmp_path / "none")


def write_npy(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def write_npz(path):
    with path.open("wb") as file:
        np.savez(file, cells=np.zeros((3, 4)))


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content", "{}")


def write_content(text):
    def write(path):
        with path.open("wb") as file:
            np.savez(file, content=np.array(text))

    return write


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello"),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"a": 1})),
    "npy": write_npy,
    "npz": write_npz,
    "zip": write_zip,
    "folder": lambda path: path.mkdir(),
    "no JSON": write_content("{"),
    "list": write_content("[]"),
    "other format": write_content('{"format": "omma-learner-99"}'),
    "earlier format": write_content('{"format": "omma-learner-2", "n_labels": 3, "policy": {}}'),
    "no policy": write_content('{"format": "omma-learner-3", "n_labels": 3, "policy": 5}'),
    "unknown policy": write_content(
        '{"format": "omma-learner-3", "n_labels": 3, "policy": {"policy": "Omma"}}'
    ),
    "misspelt option": write_content(
        '{"format": "omma-learner-3", "n_labels": 3, "policy": {"policy": "TopK", "kk": 2}}'
    ),
    "no number of labels": write_content(
        '{"format": "omma-learner-3", "n_labels": "3", "policy": {"policy": "TopK", "k": 2}}'
    ),
    "no counts": write_content(
        '{"format": "omma-learner-3", "n_labels": 3, "policy": {"policy": "TopK", "k": 2}}'
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused(kind, tmp_path):
    path = tmp_path / "learner.omma"
    FOREIGN[kind](path)
    with pytest.raises(ValueError, match=r"learner\.omma is not|cannot make|unknown policy"):
        OnlineClassifier.load(path)


def saved(tmp_path_factory):
    learner = OnlineClassifier(omma.OMMA("macro_f1"), 3)
    run(learner, *stream(1, m=3), range(5))
    learner.predict([0.5, 0.2, 0.9])
    path = tmp_path_factory.mktemp("saved") / "learner.omma"
    learner.save(path)
    return learner, path


@given(data=st.data())
@settings(max_examples=150)
def test_a_damaged_file_is_refused_or_harmless(data, tmp_path_factory):
    learner, path = saved(tmp_path_factory)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1), label="byte")
    if data.draw(st.booleans(), label="cut"):
        path.write_bytes(content[:at])
    else:
        content[at] ^= data.draw(st.integers(1, 255), label="flipped")
        path.write_bytes(content)
    try:
        woken = OnlineClassifier.load(path)
    except ValueError:
        return
    same(woken, learner)


@pytest.mark.parametrize("part", ["state_cells", "state_totals", "state_labels_cells"])
@pytest.mark.parametrize("spoiled", ["shape", "nan", "missing"])
def test_a_file_with_spoiled_counts_is_refused(part, spoiled, tmp_path):
    path = tmp_path / "learner.omma"
    learner = OnlineClassifier(omma.OMMA("macro_f1", feedback="estimates"), 3)
    learner.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    if spoiled == "missing":
        del arrays[part]
    elif spoiled == "shape":
        arrays[part] = arrays[part][..., :-1]
    else:
        arrays[part][...] = np.nan
    with path.open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(ValueError, match=r"not a (whole|sound) omma learner: .*(cells|totals)"):
        OnlineClassifier.load(path)


def changed_file(learner, path, part, change):
    """Save a learner, and change one array of the file as somebody with an editor would."""
    learner.save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    arrays[part] = change(arrays[part]) if callable(change) else np.array(change)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def set_to(index, value):
    def change(array):
        array[index] = value
        return array

    return change


IMPOSSIBLE_COUNTS = {
    "tp above predicted": ("state_cells", set_to((0, 1), 1e60), r"got 1e\+60 of .* in label 1"),
    "predicted above n": ("state_cells", set_to((1, 0), 50.0), "predicted <= n"),
    "positive above n": ("state_labels_cells", set_to((2, 2), 6.0), "positive <= n"),
    "n below predicted": ("state_totals", set_to((0, 0), 0.0), "<= n"),
    "n not finite": ("state_totals", set_to((0, 0), np.inf), "finite"),
    "negative tp": ("state_known_cells", set_to((0, 0), -1.0), "at least 0"),
    "sums of other counts": ("state_totals", set_to((0, 2), 1e9), "sums"),
    "missed above n": ("state_missed", [[0.0] * 3, [7.0, 0.0, 0.0]], "missed"),
    "waiting: so many decisions": ("waiting_numbers", [1e300, 0, 3], "damaged"),
    "waiting: part of a decision": ("waiting_numbers", [2.5, 0, 2], "damaged"),
    "waiting: more forgotten than decided": ("waiting_numbers", [3, 4, 3], "damaged"),
    "waiting: more than decided": ("waiting_numbers", [1, 0, 1], "damaged"),
    "waiting: no number": ("waiting_numbers", [np.nan, 0, 2], "damaged"),
    "waiting: a time no row had": ("waiting_numbers", [2, 0, 1e18], "damaged"),
}


@pytest.mark.parametrize("kind", IMPOSSIBLE_COUNTS)
def test_counts_that_no_stream_has_are_refused(kind, tmp_path):
    part, change, sentence = IMPOSSIBLE_COUNTS[kind]
    learner = OnlineClassifier(omma.OMMA("micro_f1", feedback="both"), 3)
    run(learner, *stream(1, m=3), range(5))
    for name in "ab":
        learner.predict([0.5, 0.2, 0.9], id=name)
    path = changed_file(learner, tmp_path / "learner.omma", part, change)
    with pytest.raises(ValueError, match=rf"not a whole omma learner: .*{sentence}"):
        OnlineClassifier.load(path)


@pytest.mark.parametrize("rows", [-1, 2.5, 1e300])
def test_a_number_of_draws_that_cannot_be_is_refused(rows, tmp_path):
    learner = OnlineClassifier(omma.OnlineFrankWolfe("macro_f1"), 3)
    path = changed_file(learner, tmp_path / "learner.omma", "state_rows", rows)
    with pytest.raises(ValueError, match="rows of a state must be a whole number"):
        OnlineClassifier.load(path)


@pytest.mark.parametrize("schedule", [[1e300, 5.0], [6.0, 5.0], [0.5, 10.0]])
def test_a_schedule_that_cannot_be_is_refused(schedule, tmp_path):
    learner = OnlineClassifier(omma.OnlineFrankWolfe("macro_f1"), 3)
    run(learner, *stream(1, m=3), range(5))
    path = changed_file(learner, tmp_path / "learner.omma", "state_schedule", schedule)
    with pytest.raises(ValueError, match="schedule of a state must"):
        OnlineClassifier.load(path)


@pytest.mark.parametrize("weight", [1e-30, 0.1, 1.0, 1e60])
@pytest.mark.parametrize("policy", [
    omma.Auto("micro_f1"),
    omma.OMMA("multiclass_mcc", feedback="estimates"),
    omma.Forgetting(omma.Auto("macro_f1"), half_life=3),
    omma.Window(omma.OMMA("micro_f1", feedback="both"), rows=7),
])  # fmt: skip
def test_counts_of_weighted_rows_are_loaded_as_they_were_saved(policy, weight, tmp_path):
    """Sums of fractions are rounded: what is refused must be beyond that."""
    rng = np.random.default_rng(0)
    learner = OnlineClassifier(policy, 3)
    for eta in rng.dirichlet(np.ones(3), size=400):
        learner.predict(eta)
        learner.update(np.eye(3)[rng.choice(3, p=eta)], weight=weight * rng.random())
    learner.save(tmp_path / "learner.omma")
    same(OnlineClassifier.load(tmp_path / "learner.omma"), learner)


# What a learner tells


def test_a_learner_tells_what_it_knows():
    learner = OnlineClassifier(omma.OMMA("macro_f1"), 4)
    assert learner.value is None
    assert learner.counts == Counts.zeros(4)
    eta, y = stream(1)
    run(learner, eta, y, range(5))
    assert learner.value == omma.metric("macro_f1").value(learner.counts)
    learner.counts.tp[:] = 99  # a copy
    assert learner.counts.tp.max() < 99
    assert "5 rows counted" in repr(learner)
    with pytest.raises(ValueError, match="pass metric= to OnlineClassifier"):
        OnlineClassifier(omma.TopK(1), 4).value  # noqa: B018


def test_costs_keep_pairs_of_classes():
    policy = POLICIES[4]
    eta, y = rows_for(policy)
    learner = OnlineClassifier(policy, 4)
    predictions = run(learner, eta, y, range(30))
    expected = Counts.from_labels(y, predictions, matrix=True)
    np.testing.assert_array_equal(learner.counts.matrix, expected.matrix)
    assert learner.value == omma.replay(policy, eta, y).value


@pytest.mark.parametrize("policy", [
    omma.Auto("macro_f1"),
    omma.Auto("macro_f1", at_most=2, subject_to=["recall[3] >= 0.8", "labels_per_row <= 2"]),
    omma.OMMA("micro_f1", k=2, feedback="estimates", subject_to="precision[0] >= 0.6"),
    omma.OMMA("macro_gmean", subject_to="macro_recall >= 0.5"),
    omma.Window(omma.Auto("macro_f1", subject_to="recall[1] >= 0.7"), rows=20),
    omma.Forgetting(omma.OMMA("macro_f1", k=1), half_life=15),
])  # fmt: skip
def test_sparse_and_dense_rows_in_turns_leave_nothing_behind(policy):
    """A sparse row clears only what it will look at: nothing of other rows may be among that."""
    rng = np.random.default_rng(0)
    m, rows = 9, 200
    eta = rng.random((rows, m)) * (rng.random((rows, m)) < 0.3)
    y = (rng.random((rows, m)) < np.where(eta > 0, eta, 0.05)).astype(np.int8)
    turns, dense = (omma.OnlineClassifier(policy, n_labels=m) for _ in range(2))
    for t, (row, true) in enumerate(zip(eta, y, strict=True)):
        expected = dense.predict(row)
        thin = t % 5 != 0
        decided = turns.predict(sparse.csr_array(row[np.newaxis]) if thin else row)
        assert np.array_equal(decided.toarray()[0] if thin else decided, expected)
        turns.update(sparse.csr_array(true[np.newaxis]) if thin else true)
        dense.update(true)
    for name, one in turns.state.arrays().items():
        np.testing.assert_array_equal(one, dense.state.arrays()[name])


def test_stats_of_costs_tell_of_the_first_rows():
    learner = omma.OnlineClassifier(omma.OMMA(omma.metrics.costs(np.eye(3))), 3)
    learner.predict([0.2, 0.5, 0.3])
    learner.update(1)
    assert learner.stats()["recent_value"] == learner.value == 1.0
    learner.predict([0.2, 0.5, 0.3])
    learner.update(2)
    assert learner.stats()["recent_value"] == 0.0

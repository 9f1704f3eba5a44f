"""Rows that pandas would pair otherwise are refused, wherever two tables meet."""

import pickle

import numpy as np
import pytest
from strategies import class_stream, stream

import omma
from omma import calibration

pd = pytest.importorskip("pandas")
POLICY = omma.OMMA("macro_f1")
ROWS = 60
LETTERS = [f"row {i}" for i in range(ROWS)]


def frames(index=LETTERS):
    """Probabilities and labels with an index, and a random order of their rows."""
    eta, y = stream(n=ROWS)
    order = np.random.default_rng(1).permutation(ROWS)
    return pd.DataFrame(eta, index=index), pd.DataFrame(y, index=index), order


def learned_at_once(eta, y):
    learner = omma.OnlineClassifier(POLICY, 4)
    learner.predict(eta)
    learner.update(y)
    return learner.counts


def learned_late(eta, y):
    learner = omma.OnlineClassifier(POLICY, 4)
    found = learner.predict(eta)
    learner.predict(np.asarray(eta))
    learner.update(y, prediction=found)
    return learner.counts


def compared(eta, y):
    found = omma.compare(eta, y, metrics=["macro_f1"], policies=["omma"], seeds=[0])
    return found.cell("omma", "macro_f1").mean


def compared_train(eta, y):
    data = np.asarray(eta), np.asarray(y)
    found = omma.compare(*data, train=(eta, y), metrics=["macro_f1"], policies=["tuned"], seeds=[0])
    return found.cell("tuned", "macro_f1").mean


def tuned(eta, y):
    found = omma.TunedThresholds("macro_f1").fit(eta, y)
    return found.rule(found.init(4))


# Each gives something that tells how rows were paired.
MEETINGS = {
    "replay": lambda eta, y: omma.replay(POLICY, eta, y).counts,
    "compare": compared,
    "train of compare": compared_train,
    "FrankWolfe": lambda eta, y: omma.FrankWolfe("macro_f1", prior=0.1).fit(eta, y).rules,
    "TunedThresholds": tuned,
    "score": lambda eta, y: omma.metric("macro_f1").score(y, (eta > 0.5).astype(int)),
    "Counts": lambda eta, y: omma.Counts.from_labels(y, (eta > 0.5).astype(int)),
    "reliability": lambda eta, y: calibration.reliability(eta, y).expected_error,
    "expected_error": calibration.expected_error,
    "log_loss": calibration.log_loss,
    "brier": calibration.brier,
    "OnlineClassifier": learned_at_once,
    "OnlineClassifier, late": learned_late,
}
EVERYWHERE = pytest.mark.parametrize("meet", MEETINGS.values(), ids=list(MEETINGS))


@EVERYWHERE
@pytest.mark.parametrize("index", [LETTERS, range(ROWS), range(5, ROWS + 5)])
def test_the_same_index_in_another_order_is_refused(meet, index):
    eta, y, order = frames(index)
    with pytest.raises(ValueError, match=r"the same index in another order: pass .*\.loc\[.*index"):
        meet(eta, y.iloc[order])
    with pytest.raises(ValueError, match="the same index in another order"):
        meet(eta.iloc[order], y)
    meet(eta.iloc[order], y.iloc[order])
    meet(eta.iloc[order], y.loc[eta.iloc[order].index])  # as the sentence says


@EVERYWHERE
def test_an_index_with_other_values_is_refused(meet):
    eta, y, _ = frames()
    with pytest.raises(ValueError, match="got another index: select the same rows"):
        meet(eta, y.rename(index=lambda name: f"new {name}"))


@EVERYWHERE
def test_a_default_index_goes_with_any_other(meet):
    eta, y, order = frames()
    by_place = meet(eta.to_numpy(), y.to_numpy())
    assert meet(eta.reset_index(drop=True), y) == by_place
    assert meet(eta, y.reset_index(drop=True)) == by_place
    tested = y.set_axis(10 * order)  # some rows of many, as train_test_split leaves them
    assert meet(eta.reset_index(drop=True), tested) == by_place


@EVERYWHERE
def test_where_one_has_no_index_rows_go_by_their_place(meet):
    eta, y, order = frames()
    turned = y.iloc[order].to_numpy()
    by_place = meet(eta.to_numpy(), turned)
    assert meet(eta, turned) == by_place
    assert by_place != meet(eta.to_numpy(), y.to_numpy())  # rows do matter


def test_rows_that_go_by_their_place_have_the_value_of_arrays():
    eta, y, order = frames()
    right = omma.replay(POLICY, eta.to_numpy(), y.to_numpy()).value
    for first, second in (
        (eta.reset_index(drop=True), y),
        (eta, y.reset_index(drop=True)),
        (eta, y.to_numpy()),
        (eta.reset_index(drop=True), y.set_axis(10 * order)),
    ):
        assert omma.replay(POLICY, first, second).value == right


def test_nothing_is_paired_wrongly_any_more():
    eta, y, order = frames()
    right = omma.replay(POLICY, eta.to_numpy(), y.to_numpy()).value
    assert omma.replay(POLICY, eta, y.iloc[order].loc[eta.index]).value == right
    assert omma.replay(POLICY, eta.to_numpy(), y.to_numpy()[order]).value != right


@pytest.mark.parametrize(
    "meet",
    [
        lambda eta, y, w: omma.replay(POLICY, eta, y, weights=w),
        lambda eta, y, w: omma.replay(POLICY, eta, y.to_numpy(), weights=w),
        lambda eta, y, w: omma.FrankWolfe("macro_f1", prior=0.1).fit(eta, y, weights=w),
        lambda eta, y, w: omma.TunedThresholds("macro_f1").fit(eta, y, weights=w),
        lambda eta, y, w: omma.Counts.from_labels(y, eta > 0.5, sample_weight=w),
        lambda eta, y, w: omma.metric("macro_f1").score(y, eta > 0.5, w),
    ],
)
def test_weights_have_rows_too(meet):
    eta, y, order = frames()
    weights = pd.Series(np.arange(1.0, ROWS + 1), index=eta.index)
    with pytest.raises(ValueError, match=r"weights? of .* the same index in another order"):
        meet(eta, y, weights.iloc[order])
    meet(eta, y, weights)


def test_class_ids_and_binary_vectors_have_rows():
    eta, ids = class_stream()
    index = [f"row {i}" for i in range(len(ids))]
    frame, series = pd.DataFrame(eta, index=index), pd.Series(ids, index=index)
    policy = omma.OMMA("multiclass_gmean")
    omma.replay(policy, frame, series)
    with pytest.raises(ValueError, match="y of replay must have its rows in the order of eta"):
        omma.replay(policy, frame, series[::-1])
    with pytest.raises(ValueError, match="y of replay must have its rows in the order of eta"):
        omma.replay(omma.OMMA("f1"), frame[0], (series == 0)[::-1])
    learner = omma.OnlineClassifier(policy, eta.shape[1])
    learner.predict(frame)
    with pytest.raises(ValueError, match="y of update must have its rows in the order of predict"):
        learner.update(series[::-1])
    learner.update(series)
    binary = omma.OnlineClassifier(omma.OMMA("f1"), 1)
    binary.predict(frame[0])
    with pytest.raises(ValueError, match="y of update must have its rows in the order of predict"):
        binary.update((series == 0)[::-1])
    assert binary.counts.n == 0


def test_a_refused_update_changes_nothing_and_may_be_mended():
    eta, y, order = frames()
    learner, plain = (omma.OnlineClassifier(POLICY, 4) for _ in range(2))
    learner.predict(eta)
    weight = pd.Series(np.ones(ROWS), index=eta.index)
    for wrong in ({"y": y.iloc[order]}, {"y": y, "weight": weight.iloc[order]}):
        with pytest.raises(ValueError, match="must have its rows in the order of"):
            learner.update(**wrong)
    assert learner.counts.n == 0
    again = pickle.loads(pickle.dumps(learner))
    learner.update(y, weight=weight)
    again.update(y.to_numpy())
    plain.predict(eta.to_numpy())
    plain.update(y.to_numpy())
    assert learner.counts == plain.counts == again.counts
    learner.predict(eta.to_numpy())
    learner.update(y.iloc[order])  # the index of the frame before is forgotten


def test_one_row_as_a_series_has_names_of_labels_for_its_index():
    eta, y, _ = frames()
    learner = omma.OnlineClassifier(POLICY, 4)
    learner.predict(eta.iloc[[0]])
    learner.update(y.iloc[0])
    learner.predict(eta.iloc[[0]])
    with pytest.raises(ValueError, match="got another index"):
        learner.update(y.iloc[[1]])


def test_repeated_values_must_be_in_one_order():
    eta, y, _ = frames(["a", "b"] * (ROWS // 2))
    omma.replay(POLICY, eta, y)
    with pytest.raises(ValueError, match="got another index"):
        omma.replay(POLICY, eta, y.sort_index(kind="stable"))


def test_an_index_of_several_levels_is_one_too():
    levels = pd.MultiIndex.from_product([["a", "b"], range(ROWS // 2)])
    eta, y, order = frames(levels)
    omma.replay(POLICY, eta, y)
    omma.replay(POLICY, eta.reset_index(drop=True), y)
    with pytest.raises(ValueError, match="the same index in another order"):
        omma.replay(POLICY, eta, y.iloc[order])
    with pytest.raises(ValueError, match="got another index"):
        omma.replay(POLICY, frames()[0], y)


def test_calibration_finds_columns_by_name():
    eta, y = stream(n=ROWS)
    names = ["a", "b", "c", "d"]
    frame, labels = pd.DataFrame(eta, columns=names), pd.DataFrame(y, columns=names)
    assert calibration.brier(frame, labels[names[::-1]]) == calibration.brier(eta, y)

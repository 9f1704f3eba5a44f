"""Labels that come late, by the ids of their rows."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

import omma
from omma.online.waiting import (
    AlreadyWaitingError,
    ForgottenIdError,
    LabelledTwiceError,
    UnknownIdError,
)

ETA, Y = omma.datasets.long_tail(n=120, m=5, seed=3)
POLICIES = {
    "labels": omma.OMMA("macro_f1"),
    "estimates": omma.OMMA("macro_f1", feedback="estimates"),
    "budget": omma.OMMA("macro_recall", k=2),
    "micro": omma.OMMA("micro_f1", feedback="estimates"),
    "greedy": omma.Greedy("macro_f1"),
    "frank_wolfe": omma.OnlineFrankWolfe("macro_f1"),
    "frank_wolfe_eta": omma.OnlineFrankWolfe("macro_f1", feedback="estimates"),
    "mixture": omma.Mixture(
        (omma.Rule([1.0] * 5, [-0.5] * 5), omma.Rule([1.0] * 5, [-0.1] * 5)),
        [0.5, 0.5],
        metric="macro_f1",
    ),
}
DRAWS = ("frank_wolfe", "frank_wolfe_eta", "mixture")


def row_of(matrix, i, layout):
    return sparse.csr_array(matrix[[i]]) if layout == "sparse" else matrix[i]


def dense(prediction):
    return prediction.toarray()[0] if sparse.issparse(prediction) else prediction


def restarted(learner, how, path):
    if how == "file":
        learner.save(path)
        return omma.OnlineClassifier.load(path)
    return pickle.loads(pickle.dumps(learner)) if how == "pickle" else copy.deepcopy(learner)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("name", POLICIES)
def test_labels_that_come_at_once_are_a_replay(name, layout):
    policy = POLICIES[name]
    given = sparse.csr_array(ETA) if layout == "sparse" else ETA
    trace = omma.replay(policy, given, Y)
    learner, found = omma.OnlineClassifier(policy, 5), []
    for i in range(len(ETA)):
        found.append(dense(learner.predict(row_of(ETA, i, layout), id=i)))
        learner.update(row_of(Y, i, layout), id=i)
    expected = trace.predictions
    expected = expected.toarray() if sparse.issparse(expected) else expected
    assert (np.array(found) == expected).all()
    own, replayed = learner.state.arrays(), trace.state.arrays()
    assert own.keys() == replayed.keys()
    for part in own:
        # A learner of OnlineFrankWolfe keeps rows that a replay has at hand.
        assert part.startswith("kept_") or np.array_equal(own[part], replayed[part]), part


@pytest.mark.parametrize("name", ["estimates", "micro", "frank_wolfe_eta", "mixture"])
def test_what_needs_no_labels_decides_the_same_however_late_they_come(name):
    policy = POLICIES[name]
    trace = omma.replay(policy, ETA, Y)
    learner = omma.OnlineClassifier(policy, 5)
    found = [learner.predict(row, id=f"row {i}") for i, row in enumerate(ETA)]
    assert (np.array(found) == trace.predictions).all()
    for i in reversed(range(len(ETA))):
        learner.update(Y[i], id=f"row {i}")
    assert learner.counts == trace.counts


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    name=st.sampled_from([name for name in POLICIES if name not in DRAWS]),
    layout=st.sampled_from(["dense", "sparse"]),
)
def test_out_of_order_as_told_by_predictions(tmp_path_factory, data, name, layout):
    """An id is a short way to hand the prediction back; restarts in between change nothing."""
    policy = POLICIES[name]
    soft = policy.feedback == "estimates"
    by_id, by_hand = (omma.OnlineClassifier(policy, 5) for _ in range(2))
    path = tmp_path_factory.getbasetemp() / "late.npz"
    made = {}
    for i in range(data.draw(st.integers(1, 15))):
        eta = row_of(ETA, i, layout)
        found, expected = by_id.predict(eta, id=i), by_hand.predict(eta)
        assert (dense(found) == dense(expected)).all()
        made[i] = (expected, eta)
        if soft:
            by_hand.update(eta=eta, prediction=expected)
        while made and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(made)))
            prediction, of_row = made.pop(key)
            by_id.update(row_of(Y, key, layout), id=key)
            if not soft:
                by_hand.update(row_of(Y, key, layout), prediction=prediction, eta=of_row)
        how = data.draw(st.sampled_from([None, None, "file", "pickle", "copy"]))
        by_id = by_id if how is None else restarted(by_id, how, path)
    assert sorted(by_id.waiting) == sorted(made)
    if soft:
        assert np.array_equal(by_id.state.cells, by_hand.state.cells)
    else:
        assert by_id.state == by_hand.state


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_several_rows_at_once(layout, feedback):
    policy = omma.OMMA("macro_f1", feedback=feedback)
    one, batch = omma.OnlineClassifier(policy, 5), omma.OnlineClassifier(policy, 5)
    given = sparse.csr_array(ETA[:6]) if layout == "sparse" else ETA[:6]
    found = batch.predict(given, ids=list("abcdef"))
    expected = one.predict(given)
    assert (found != expected).sum() == 0
    order = [4, 1, 0]
    batch.update(Y[order], ids=np.array(["e", "b", "a"]))
    batch.update(Y[[5, 2, 3]], ids=["f", "c", "d"])
    one.update(Y[:6])
    assert batch.counts == one.counts
    assert len(batch.waiting) == 0


def test_classes_names_and_weights():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1", k=1), 3, names=["a", "b", "c"])
    learner.predict([[0.1, 0.2, 0.9], [0.5, 0.2, 0.1]], ids=[1, 2])
    learner.update(["c", "b"], ids=[1, 2], weight=[2.0, 0.5])
    assert learner.counts.positive.tolist() == [0, 0.5, 2]
    learner.predict([0.1, 0.2, 0.9], id=3)
    learner.update("a", id=3)
    assert learner.counts.positive.tolist() == [1, 0.5, 2]


def test_frames_are_paired_by_names():
    learner, plain = (omma.OnlineClassifier(omma.OMMA("macro_f1"), 5) for _ in range(2))
    frame = pd.DataFrame(ETA[:4], columns=list("abcde"))
    learner.predict(frame, ids=range(4))
    turned = frame[list("edcba")]
    learner.predict(turned, ids=range(4, 8))
    labels = pd.DataFrame(Y[:4], columns=list("abcde"))[list("cabed")]
    learner.update(labels, ids=range(4, 8))
    learner.update(labels, ids=range(4))
    plain.predict(ETA[:4])
    plain.update(Y[:4])
    plain.merge(plain.counts)
    assert learner.counts == plain.counts
    learner.predict(turned, ids=range(8, 12))
    with pytest.raises(ValueError, match="must be a frame with names"):
        learner.update(Y[:4], ids=range(8, 12))
    assert len(learner.waiting) == 4


REFUSED = [
    ("unknown", lambda one: one.update([1, 0], id="who"), UnknownIdError),
    ("labelled_twice", lambda one: one.update([1, 0], id="done"), LabelledTwiceError),
    ("still_waiting", lambda one: one.predict([0.5, 0.5], id="a"), AlreadyWaitingError),
    ("forgotten", lambda one: one.update([1, 0], id="old"), ForgottenIdError),
    ("unknown", lambda one: one.update([[1, 0], [1, 0]], ids=["a", "who"]), UnknownIdError),
    (
        "still_waiting",
        lambda one: one.predict([[0.5, 0.5], [0.5, 0.5]], ids=["z", "a"]),
        AlreadyWaitingError,
    ),
    ("unsound", lambda one: one.update([1, 2], id="a"), ValueError),
    ("unsound", lambda one: one.update([1, 0, 0], id="a"), ValueError),
    ("unsound", lambda one: one.update([1, 0], id="a", weight=-1.0), ValueError),
    ("unsound", lambda one: one.update([1, 0], id="a", prediction=[1, 0]), ValueError),
    ("unsound", lambda one: one.update(id="a"), ValueError),
    ("unsound", lambda one: one.update([[1, 0]], id="a", ids=["a"]), ValueError),
    ("unsound", lambda one: one.update([[1, 0], [1, 0]], ids=["a", "a"]), ValueError),
    ("unsound", lambda one: one.update([[1, 0]], ids=["a", "b"]), ValueError),
    ("unsound", lambda one: one.predict([0.5, 1.5], id="new"), ValueError),
    ("unsound", lambda one: one.predict([[0.5, 0.5]], ids=["u", "v"]), ValueError),
    ("unsound", lambda one: one.predict([0.5, 0.5], id=2.5), TypeError),
    ("unsound", lambda one: one.predict([[0.5, 0.5]], ids="x"), TypeError),
]


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
@pytest.mark.parametrize(("kind", "call", "error"), REFUSED)
def test_what_is_refused_changes_nothing_and_is_counted(kind, call, error, feedback):
    policy = omma.OMMA("macro_f1", feedback=feedback)
    learner = omma.OnlineClassifier(policy, 2, max_waiting=2)
    for key in ("old", "done", "a"):
        learner.predict([0.9, 0.2], id=key)
    learner.update([1, 0], id="done")
    learner.predict([0.2, 0.3], id="b")
    before, arrays = copy.deepcopy(learner.state), learner.waiting.arrays()
    with pytest.raises(error) as caught:
        call(learner)
    assert len(str(caught.value)) < 200
    assert learner.state == before
    after = learner.waiting.arrays()
    assert all(np.array_equal(arrays[name], after[name]) for name in arrays)
    assert learner.stats()["refused"] == {**dict.fromkeys(learner.stats()["refused"], 0), kind: 1}
    learner.update([1, 0], id="a")  # the stream goes on
    assert learner.counts.n == 2


def test_estimates_have_one_weight():
    learner = omma.OnlineClassifier(POLICIES["estimates"], 5)
    learner.predict(ETA[0], id=0)
    with pytest.raises(ValueError, match="weight of update must be 1 with an id"):
        learner.update(Y[0], id=0, weight=0.5)
    learner.update(Y[0], id=0, weight=1)


@pytest.mark.parametrize("bound", [{"max_waiting": 3}, {"max_age": 3}])
@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_what_falls_out_is_counted(bound, feedback):
    policy = omma.OMMA("macro_f1", feedback=feedback)
    learner = omma.OnlineClassifier(policy, 5, **bound)
    for i, row in enumerate(ETA[:10]):
        learner.predict(row, id=i)
    stats = learner.stats()
    assert stats["waiting"] + stats["dropped"] == 10
    assert stats["waiting"] <= 4
    assert learner.state.rows == (10 if feedback == "estimates" else 0)
    again = pickle.loads(pickle.dumps(learner))
    assert (again.waiting.limit, again.waiting.max_age) == (
        learner.waiting.limit,
        learner.waiting.max_age,
    )


def test_without_an_id_nothing_has_changed():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 5)
    learner.predict(ETA[0])
    learner.predict(ETA[1], id="later")
    learner.update(Y[0])  # of the row without an id
    with pytest.raises(ValueError, match="must come after predict"):
        learner.update(Y[1])
    learner.update(Y[1], id="later")
    assert learner.counts.n == 2


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_the_gap_sees_late_rows(feedback):
    policy = omma.OMMA("macro_f1", feedback=feedback)
    late, straight = (omma.OnlineClassifier(policy, 5, gap=True) for _ in range(2))
    for i, row in enumerate(ETA):
        late.predict(row, id=i)
        late.update(Y[i], id=i)
        straight.predict(row)
        straight.update(Y[i])
    assert late.gap == straight.gap

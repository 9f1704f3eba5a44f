"""Edges at which a learner once lost what it knew."""

import copy
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import omma
from omma import npz
from omma.online.codec import Decision, join, pack

NAMES = list("abcd")
ETA, Y = omma.datasets.long_tail(n=30, m=4, seed=1)
FRAME = pd.DataFrame(ETA[:6], columns=NAMES)
LABELS = pd.DataFrame(Y[:6], columns=NAMES)


@pytest.fixture
def learner():
    return omma.OnlineClassifier(omma.OMMA("macro_f1"), 4)


def straight():
    plain = omma.OnlineClassifier(omma.OMMA("macro_f1"), 4)
    plain.predict(ETA[:6])
    plain.update(Y[:6])
    return plain


def test_a_restart_between_predict_and_update_keeps_names_and_order(learner, tmp_path):
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 4, names=NAMES)
    learner.predict(FRAME[NAMES[::-1]])
    learner.save(tmp_path / "s.npz")
    again = omma.OnlineClassifier.load(tmp_path / "s.npz")
    with pytest.raises(ValueError, match="must be a frame with names"):
        again.update(Y[:6])
    again.update(LABELS[["b", "d", "a", "c"]])
    assert again.counts == straight().counts
    assert list(again.names) == NAMES


def test_a_restart_keeps_names_that_only_the_frame_told(learner, tmp_path):
    learner.predict(FRAME)
    learner.save(tmp_path / "s.npz")
    again = omma.OnlineClassifier.load(tmp_path / "s.npz")
    again.update(LABELS[NAMES[::-1]])
    assert again.counts == straight().counts


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("gap", [False, True])
def test_a_learner_that_decided_no_rows_survives_a_restart(tmp_path, layout, gap):
    learner = omma.OnlineClassifier(omma.Auto("macro_f1"), 4, gap=gap)
    learner.predict(ETA[0])
    learner.update(Y[0])
    nothing = layout(np.zeros((0, 4)))
    learner.predict(nothing)
    learner.save(tmp_path / "s.npz")
    with omma.Journal(tmp_path / "j", learner):
        pass
    loaded = omma.OnlineClassifier.load(tmp_path / "s.npz")
    for again in (loaded, omma.Journal.read(tmp_path / "j")):
        again.update(nothing)
        assert again.counts == learner.counts


def test_a_refused_predict_keeps_the_guards_of_the_one_before(learner):
    learner.predict(FRAME)
    for bad in (ETA[:2] + 1, FRAME + 1, FRAME[["a", "b"]], "none", ETA[:, :2]):
        with pytest.raises((ValueError, TypeError)):
            learner.predict(bad)
    with pytest.raises(ValueError, match="index"):
        learner.update(LABELS[::-1])
    learner.update(LABELS[NAMES[::-1]])
    assert learner.counts == straight().counts


def test_weights_stay_small_enough_for_a_file(learner, tmp_path):
    learner.predict(ETA[0], id="late")
    for weight in (1e308, np.float64(1e308), [1e308], 1.1e60, np.inf, np.nan):
        learner.predict(ETA[0])
        with pytest.raises(ValueError, match="weight"):
            learner.update(Y[0], weight=weight)
        with pytest.raises(ValueError, match="weight"):
            learner.update(Y[0], id="late", weight=weight)
    for _ in range(3):
        learner.predict(ETA[0])
        learner.update(Y[0], weight=1e60)
    learner.save(tmp_path / "s.npz")
    assert omma.OnlineClassifier.load(tmp_path / "s.npz").state == learner.state


@pytest.mark.parametrize("feedback", ["labels", "estimates"])
def test_a_refused_merge_leaves_nothing_half_changed(feedback):
    policy = omma.OMMA("micro_f1", feedback=feedback)
    learner = omma.OnlineClassifier(policy, 4)
    learner.predict(ETA)
    learner.update(Y)
    before = copy.deepcopy(learner.state)
    other = omma.Counts.zeros(4)
    for counts, estimates in ((omma.Counts.zeros(3), other), (other, omma.Counts.zeros(3))):
        if feedback == "labels" and counts is other:
            continue
        with pytest.raises((ValueError, TypeError)):
            learner.merge(counts, estimates=estimates if feedback == "estimates" else None)
        assert learner.state == before


def test_estimates_that_add_nothing_change_no_bit():
    learner = omma.OnlineClassifier(omma.OMMA("micro_f1", feedback="estimates"), 4)
    for row, true in zip(ETA, Y, strict=True):
        learner.predict(row)
        learner.update(true)
    before = copy.deepcopy(learner.state)
    learner.merge(learner.counts, estimates=omma.Counts.zeros(4))
    assert np.array_equal(learner.state.cells, before.cells)
    assert np.array_equal(learner.state.totals, before.totals)
    assert learner.counts.n == 60


def edited(path, **changes):
    with np.load(path) as file:
        parts = dict(file)
    content = json.loads(str(parts["content"]))
    for name, value in changes.items():
        if name in parts:
            parts[name] = value
        else:
            content[name] = value
    parts = {name: one for name, one in parts.items() if one is not None}
    parts["content"] = json.dumps(content)
    npz.write(path, parts)


CELLS = np.ones((3, 4))
BAD = {
    "negative counts": {"state_cells": -CELLS},
    "too many labels": {"n_labels": 10**9},
    "no labels": {"n_labels": 0},
    "no counts": {"state_cells": None},
    "no totals": {"state_totals": None},
    "infinite counts": {"state_cells": CELLS * np.inf},
    "other shape": {"state_cells": np.ones((3, 5))},
    "no records": {"waiting_records": None},
    "fewer records": {"waiting_records": np.zeros(0, np.uint8)},
    "ids": {"waiting_ids": np.frombuffer(b"[" * 100_000, np.uint8)},
    "same ids": {"waiting_ids": np.frombuffer(b'["a", "a"]', np.uint8)},
    "numbers": {"waiting_numbers": np.array([np.nan, 0, 0])},
    "records": {"waiting_records": np.zeros(54, np.uint8)},
    "limit": {"max_waiting": -1},
    "age": {"max_age": "old"},
    "refused": {"refused": {"unknown": -1}},
    "names": {"names": ["a"]},
    "policy": {"policy": {"policy": "os.system"}},
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_are_none(learner, tmp_path, name):
    path = tmp_path / "s.npz"
    for key in ("a", "b"):
        learner.predict(ETA[0], id=key)
    learner.save(path)
    edited(path, **BAD[name])
    with pytest.raises(ValueError, match=r".") as caught:
        omma.OnlineClassifier.load(path)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
    assert "NoneType" not in str(caught.value)  # what is missing is said to be


@pytest.mark.parametrize(
    ("made", "match"),
    [
        (Decision(np.zeros(4)), "without its probabilities"),
        (Decision(np.zeros(4), ETA[0], moved=True), "on columns in another order"),
    ],
)
def test_decisions_that_a_learner_cannot_have_made(tmp_path, made, match):
    path, one = tmp_path / "s.npz", omma.OnlineClassifier(omma.Auto("macro_f1"), 4)
    one.predict(ETA[0], id="a")
    one.save(path)
    record = bytes(8) + pack(made)
    edited(path, waiting_records=np.frombuffer(join([record]), np.uint8))
    with pytest.raises(ValueError, match=rf"s\.npz is not a whole omma learner: .*{match}"):
        omma.OnlineClassifier.load(path)


@pytest.mark.parametrize("part", ["cells", "weights", "intercept", "place", "tangents"])
def test_files_without_a_part_of_the_gap(tmp_path, part):
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 4, gap=True)
    learner.save(tmp_path / "s.npz")
    edited(tmp_path / "s.npz", **{f"gap_{part}": None})
    sentence = rf"s\.npz is not a whole omma learner: (it has no )?'?{part}"
    with pytest.raises(ValueError, match=sentence):
        omma.OnlineClassifier.load(tmp_path / "s.npz")


IDS = np.array([0, 2], np.int32)
PAIR = (IDS, np.array([0.5, 0.25]))
LAST = {  # records of the rows that were decided last
    "cut": [pack(Decision(IDS, PAIR))[:-1]],
    "longer": [pack(Decision(IDS, PAIR)) + b"\0"],
    "ids that go back": [pack(Decision(IDS[::-1], PAIR))],
    "an id below zero": [pack(Decision(IDS, (IDS - 1, PAIR[1])))],
    "an id beyond the last": [pack(Decision(IDS, (IDS + 70_000_000, PAIR[1])))],
    "fewer ids": [pack(Decision(IDS, (IDS[:1], PAIR[1])))],
    "another width": [pack(Decision(np.zeros(2, np.int8), np.zeros(2)))],
    "not a number": [pack(Decision(IDS, (IDS, PAIR[1] * np.nan)))],
    "below zero": [pack(Decision(IDS, (IDS, -PAIR[1])))],
    "above one": [pack(Decision(np.zeros(4, np.int8), np.full(4, 2.0)))],
    "without probabilities": [pack(Decision(IDS))],
    "of different kinds": [pack(Decision(IDS, PAIR)), pack(Decision(ETA[0], ETA[0]))],
    "in another order": [pack(Decision(IDS, PAIR, moved=True))],
}


@pytest.mark.parametrize("name", LAST)
def test_rows_that_were_decided_last_are_as_sound_as_any_other(tmp_path, name):
    path = tmp_path / "s.npz"
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1", k=4, feedback="estimates"), 4)
    learner.predict(sparse.csr_array(ETA[:2]))
    learner.save(path)
    again = omma.OnlineClassifier.load(path)
    again.update(sparse.csr_array(Y[:2]))
    assert again.counts.n == 2
    edited(path, last=np.frombuffer(join(LAST[name]), np.uint8))
    with pytest.raises(ValueError, match=r"s\.npz is not a whole omma learner: "):
        omma.OnlineClassifier.load(path)


BOMB = np.zeros(1 << 23)  # 64 MiB, and next to nothing when it is packed


@pytest.mark.parametrize("member", ["other", "state_other", "waiting_other", "gap_cells"])
def test_members_that_nobody_needs_are_not_unpacked(learner, tmp_path, member):
    learner.save(tmp_path / "s.npz")
    packed(tmp_path / "s.npz", member)
    peak, found = traced(lambda: omma.OnlineClassifier.load(tmp_path / "s.npz"))
    assert found.state == learner.state
    assert peak < BOMB.nbytes / 10


@pytest.mark.parametrize("member", ["state_cells", "state_totals", "pairs", "gap_weights"])
def test_members_of_another_size_than_the_labels_allow_are_not_unpacked(tmp_path, member):
    metric = omma.metrics.costs(np.eye(4)) if member == "pairs" else "macro_f1"
    learner = omma.OnlineClassifier(omma.OMMA(metric), 4, gap=member == "gap_weights")
    learner.save(tmp_path / "s.npz")
    packed(tmp_path / "s.npz", member)
    peak, found = traced(lambda: omma.OnlineClassifier.load(tmp_path / "s.npz"))
    assert f"values in '{member}', got the shape" in str(found)
    assert peak < BOMB.nbytes / 10


@pytest.mark.parametrize("n_labels", [10**6, 10**9])
def test_no_room_is_made_for_labels_that_nobody_counted(learner, tmp_path, n_labels):
    learner.save(tmp_path / "s.npz")
    edited(tmp_path / "s.npz", n_labels=n_labels)
    peak, found = traced(lambda: omma.OnlineClassifier.load(tmp_path / "s.npz"))
    assert f"expected 3 × {n_labels} values in 'state_cells', got the shape" in str(found)
    assert peak < 1 << 20


def packed(path, member):
    """The same file with a bomb for one of its members."""
    with np.load(path) as file:
        parts = dict(file)
    npz.write(path, {**parts, member: BOMB}, pack=True)
    assert path.stat().st_size < 1 << 18


def traced(call):
    """The most memory that a call takes, and what it gives: its refusal, too."""
    tracemalloc.start()
    try:
        found = call()
    except ValueError as error:
        found = error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, found


@pytest.mark.parametrize("weight", [2.0**-199, 1.0, 2.0**199])  # which round nothing
@pytest.mark.parametrize("metric", ["macro_f1", "macro_gmean", "macro_mcc", "micro_gmean"])
def test_all_weights_alike_change_nothing(metric, weight):
    policy = omma.OMMA(metric, prior=0.0)
    light = omma.replay(policy, ETA, Y)
    heavy = omma.replay(policy, ETA, Y, weights=np.full(len(ETA), weight))
    assert heavy.value == pytest.approx(light.value)
    np.testing.assert_array_equal(heavy.predictions, light.predictions)


def test_weights_that_products_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="at most 1e\\+60"):
        omma.replay(omma.OMMA("macro_gmean"), ETA, Y, weights=np.full(len(ETA), 1e78))


def test_a_learner_of_classes_with_names_returns_names():
    names, eta = ["cat", "dog", "cow"], [[0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]
    learner = omma.OnlineClassifier(omma.OMMA("multiclass_accuracy"), 3, names=names)
    assert learner.predict(eta[0]) == "dog"
    learner.update("dog")
    np.testing.assert_array_equal(learner.predict(np.array(eta)), ["dog", "cow"])
    learner.update(["dog", "cat"])
    learner.update("cow", prediction=learner.predict(eta[1]))
    learner.update(["cow", "dog"], prediction=learner.predict(np.array(eta)))
    assert learner.counts.n == 6
    assert learner.counts.tp.tolist() == [0, 2, 1]
    np.testing.assert_array_equal(learner.decide(eta[0]), [0, 1, 0])
    with pytest.raises(ValueError, match=r"prediction of update must be among \['cat', 'dog'"):
        learner.update("cow", prediction="horse")
    several = omma.OnlineClassifier(omma.OMMA("macro_f1"), 3, names=names)
    assert several.predict(eta[0]).dtype == np.int8


def test_a_binary_learner_refuses_two_probabilities():
    learner = omma.OnlineClassifier(omma.Auto("f1"), 1)
    for eta in ([0.3, 0.7], [[0.3, 0.7], [0.9, 0.1]], np.array([[0.5, 0.5]])):
        with pytest.raises(ValueError, match=r"f1 is a metric of one label, got 2 columns: pass"):
            learner.predict(eta)
    assert learner.predict([0.3, 0.8]).shape == (2,)  # two rows
    other = omma.OnlineClassifier(omma.Threshold(0.5), 1)
    with pytest.raises(ValueError, match=r"got 2 columns: pass eta\[1\], or for two rows"):
        other.predict([0.25, 0.75])

"""Spark gives what one process gives that merges as often."""

import numpy as np
import pytest
from naive_baselines import class_stream, stream as long_stream
from spark_streams import as_ids, batches_of, decisions, dense, read, replayed, thin, write

import omma
from omma.batch_step import WorkerPart, handed_out, merged

NOW = {"availableNow": True}


def hidden(y, seed=0):
    """Labels of which a third of the rows has none."""
    made = y.astype(float)
    made[np.random.default_rng(seed).random(len(y)) < 1 / 3] = np.nan
    return made


def close(one, other, rtol=1e-12):
    first, second = one.arrays(), other.arrays()
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol, rtol, err_msg=name)


def run(spark, folder, policy, data, size, parts=None):
    rows = batches_of(data.eta.shape[0], size)
    write(data, folder / "in", rows)
    sdf = read(spark, data, folder / "in")
    query = omma.spark.stream(
        sdf if parts is None else sdf.coalesce(parts),
        policy,
        y="y",
        id="id",
        checkpoint=folder / "checkpoint",
        sink=folder / "out",
        trigger=NOW,
        **data.options,
    )
    query.awaitTermination()
    return omma.spark.load_state(folder / "checkpoint"), *replayed(policy, data, rows)


ETA, Y = long_stream(0, 1200, 6)
CLASS_ETA, CLASS_IDS = class_stream(0, 1200, 5)
LABELS = {
    "f1, arrays": (omma.OMMA("macro_f1", prior=1.0), dense(ETA, Y)),
    "micro f1, packed": (omma.OMMA("micro_f1", prior=1.0), dense(ETA, Y, "binary")),
    "f1@2, sparse": (omma.OMMA("macro_f1@2", prior=1.0), thin(ETA, Y)),
    "sparse, some unknown": (omma.OMMA("macro_gmean", prior=1.0), thin(ETA, hidden(Y))),
    "some unknown": (omma.OMMA("macro_jaccard", prior=1.0), dense(ETA, hidden(Y))),
    "classes": (omma.OMMA("multiclass_mcc", prior=1.0), dense(CLASS_ETA, CLASS_IDS)),
    "classes, some unknown": (
        omma.OMMA("multiclass_gmean", prior=1.0),
        dense(CLASS_ETA, hidden(CLASS_IDS)),
    ),
    "one label": (omma.OMMA("f1", prior=1.0), dense(ETA[:, :1], Y[:, 0], "float")),
}


@pytest.mark.parametrize("case", LABELS)
def test_label_feedback_gives_the_same_bits(spark, tmp_path, case):
    policy, data = LABELS[case]
    state, expected, predictions = run(spark, tmp_path, policy, data, 600)
    assert state == expected
    assert decisions(tmp_path / "out") == as_ids(predictions)
    known = ~np.isnan(np.asarray(data.y, float).reshape(1200, -1)[:, 0])
    assert state.rows == known.sum()


def test_estimates_and_fading_counts_agree_to_rounding(spark, tmp_path):
    """One query after another on the same rows: nothing depends on how these were spread."""
    policies = [
        omma.OMMA("macro_f1", feedback="estimates"),
        omma.OMMA("macro_f1@2", feedback="both"),
        omma.Forgetting(omma.OMMA("macro_f1", prior=1.0), half_life=300),
        omma.Forgetting(omma.OMMA("macro_f1", k=2, feedback="estimates"), half_life=300),
    ]
    for number, policy in enumerate(policies):
        folder = tmp_path / str(number)
        state, expected, predictions = run(spark, folder, policy, dense(ETA, hidden(Y)), 600)
        close(state, expected)
        assert decisions(folder / "out") == as_ids(predictions)


def test_auto_is_the_same_in_one_part_and_near_in_several(spark, tmp_path):
    """What calibration learns from a row depends on what the same worker had before it."""
    policy, data = omma.Auto("macro_f1"), dense(ETA**1.5, hidden(Y))
    state, expected, predictions = run(spark, tmp_path / "one", policy, data, 300, parts=1)
    close(state, expected)
    assert decisions(tmp_path / "one/out") == as_ids(predictions)
    spread, *_ = run(spark, tmp_path / "several", policy, data, 300)
    assert spread.rows == len(Y)
    np.testing.assert_allclose(spread.cells, expected.cells, rtol=0.05, atol=5)
    known = ~np.isnan(data.y[:, 0])
    made = decisions(tmp_path / "several/out")
    scored = np.array([np.isin(np.arange(ETA.shape[1]), made[i]) for i in range(len(Y))])
    values = [omma.metric("macro_f1").score(Y[known], one[known]) for one in (scored, predictions)]
    alone = omma.replay(policy, data.eta[known], Y[known]).value
    assert abs(values[0] - values[1]) < 0.01  # in several parts, and in one
    assert values[0] > 0.9 * alone  # and one row after another


def test_limits_hold_and_are_the_same_in_one_part(spark, tmp_path):
    policy = omma.OMMA("macro_recall", prior=1.0, subject_to="labels_per_row <= 1.5")
    data, rows = dense(ETA, Y), batches_of(len(Y), 600)
    state, *_ = run(spark, tmp_path / "one", policy, data, 600, parts=1)
    expected, made = policy.init(ETA.shape[1]), []
    for some in rows:
        part = WorkerPart(policy, handed_out(expected))
        made.append(part.decide(data.eta[some], Y[some]))
        expected = merged(expected, [part.delta])
    close(state, expected)
    assert decisions(tmp_path / "one/out") == as_ids(np.concatenate(made))
    spread, *_ = run(spark, tmp_path / "several", policy, data, 600)
    assert spread.rows == len(Y)
    counted = sum(map(len, decisions(tmp_path / "several/out").values()))
    assert 1.45 * len(Y) < counted < 1.55 * len(Y)


def test_a_batch_without_rows_changes_nothing(spark, tmp_path):
    policy, data = LABELS["f1, arrays"]
    rows = [slice(0, 0), slice(0, 600), slice(600, 600)]
    write(data, tmp_path / "in", rows)
    query = omma.spark.stream(
        read(spark, data, tmp_path / "in"),
        policy,
        eta="eta",
        y="y",
        id="id",
        checkpoint=tmp_path / "checkpoint",
        sink=tmp_path / "out",
        trigger=NOW,
    )
    query.awaitTermination()
    assert omma.spark.store.Store(str(tmp_path / "checkpoint")).batches() == [0, 1, 2]
    expected, predictions = replayed(policy, data, rows[1:2])
    assert omma.spark.load_state(tmp_path / "checkpoint") == expected
    assert decisions(tmp_path / "out") == as_ids(predictions)
    with pytest.raises(ValueError, match="must have a state, got no row in 1 batches"):
        omma.spark.load_state(tmp_path / "checkpoint", 0)

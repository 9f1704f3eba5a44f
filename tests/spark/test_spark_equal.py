"""Spark gives what one process gives that merges as often."""

import numpy as np
import pytest
from naive_baselines import class_stream, stream as long_stream
from spark_streams import as_ids, batches_of, decisions, dense, read, replayed, thin, write

import omma

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


def run(spark, folder, policy, data, size):
    rows = batches_of(data.eta.shape[0], size)
    write(data, folder / "in", rows)
    query = omma.spark.stream(
        read(spark, data, folder / "in"),
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
        omma.Forgetting(omma.OMMA("macro_f1", prior=1.0), half_life=300),
        omma.Forgetting(omma.OMMA("macro_f1", k=2, feedback="estimates"), half_life=300),
    ]
    for number, policy in enumerate(policies):
        folder = tmp_path / str(number)
        state, expected, predictions = run(spark, folder, policy, dense(ETA, hidden(Y)), 600)
        close(state, expected)
        assert decisions(folder / "out") == as_ids(predictions)

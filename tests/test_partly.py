"""Rows of which some labels are known: these count as labels, others as far as estimates do.

Run as a script, this file tries every kind of policy with the compiler switched off: kernels are
the same, and need not be compiled for each.
"""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import naive_auto
import naive_partly
import numpy as np
import pytest
from naive_baselines import class_stream, stream
from scipy import sparse
from serving import keeper_of
from streams import dense

import omma
from omma.cli.lines import CsvLines
from omma.cli.streaming import Stream
from omma.datasets import read_scored
from omma.datasets.json_lines import JsonLines

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
LIMITS = ["labels_per_row <= 1.2", "recall[1] >= 0.5"]
SOFT = {
    "auto": omma.Auto("macro_f1"),
    "auto micro at 2": omma.Auto("micro_f1", k=2),
    "auto with limits": omma.Auto("macro_f1", subject_to=[*LIMITS, "micro_precision >= 0.6"]),
    "forgetting": omma.Forgetting(omma.Auto("macro_gmean"), half_life=20),
    "forgetting limits": omma.Forgetting(omma.Auto("macro_f1", subject_to=LIMITS), half_life=20),
    "window": omma.Window(omma.Auto("macro_f1"), rows=15),
    "window limits": omma.Window(omma.Auto("macro_f1", subject_to="macro_recall >= 0.6"), rows=9),
    "estimates": omma.OMMA("macro_gmean", feedback="estimates"),
    "estimates limits": omma.OMMA("macro_f1", feedback="estimates", subject_to=LIMITS),
    "both": omma.OMMA("macro_mcc", feedback="both"),
    "calibrated": omma.OMMA("micro_f1", feedback="estimates", calibration="online"),
}
HARD = {
    "labels": omma.OMMA("macro_gmean"),
    "labels micro at 2": omma.OMMA("micro_f1", k=2),
    "labels with limits": omma.OMMA("macro_f1", subject_to=LIMITS),
    "labels forgetting": omma.Forgetting(omma.OMMA("macro_mcc"), half_life=20),
    "ofo": omma.OFO("macro"),
    "threshold": omma.Threshold(0.3),
    "greedy": omma.Greedy("macro_f1", k=2),
    "greedy plug-in": omma.Greedy("macro_gmean", expectation="plug_in"),
    "mixture": omma.policies.Mixture(
        [omma.Rule(np.ones(5), np.full(5, -cut)) for cut in (0.2, 0.5)], [0.4, 0.6], "macro_f1"
    ),
}


def partial(seed=0, n=40, m=5, soft=True, share=0.3):
    """Probabilities and labels of which some are NaN: of some rows a part, of some all."""
    eta, y = stream(seed, n, m)
    rng = np.random.default_rng(seed + 100)
    given = np.where(rng.random(y.shape) < share, np.nan, y)
    given[:, 0] = np.where(np.arange(n) % 2, y[:, 0], given[:, 0])
    kind = rng.integers(0, 4, n)
    given[kind == 0] = y[kind == 0]
    if soft:
        given[kind == 1] = np.nan
    else:  # at least one is known
        nothing = np.isnan(given).all(axis=1)
        given[nothing] = y[nothing]
    return eta, given


def row_of(matrix, t):
    return matrix[[t]] if sparse.issparse(matrix) else matrix[t]


def with_stored_nan(y):
    """The same labels as a CSR matrix that stores ones, and NaN where they are unknown."""
    return sparse.csr_array(y)


def same(first, second):
    mine, others = first.arrays(), second.arrays()
    return mine.keys() == others.keys() and all(np.array_equal(mine[x], others[x]) for x in mine)


def stepped(learner, eta, y, weights):
    made = np.zeros(eta.shape, dtype=np.int8)
    for t in range(eta.shape[0]):
        made[t] = dense(learner.predict(row_of(eta, t))).ravel()
        learner.update(row_of(y, t), weight=float(weights[t]))
    return made


def replayed(policy, eta, y, **options):
    return omma.replay(policy, eta, y, metric=policy.objective or "macro_f1", **options)


# What is tried with the compiler switched off


def try_all_ways(policy, soft, seed):
    """Steps, replays and both layouts agree to the bit; files and sums keep all of it."""
    eta, y = partial(seed, soft=soft)
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], len(eta))
    found = {}
    for layout, given in (("dense", y), ("csr", y), ("csr", with_stored_nan(y))):
        rows = LAYOUTS[layout](eta)
        trace = replayed(policy, rows, given, weights=weights, checkpoints=7)
        learner = omma.OnlineClassifier(policy, 5, metric=trace.metric)
        made = stepped(learner, rows, given, weights)
        assert np.array_equal(made, dense(trace.predictions)), layout
        assert same(trace.state, learner.state), layout
        assert trace.counts == learner.counts
        assert trace.history.values[-1] == trace.value
        assert learner.rule.slope.tobytes() == trace.rule.slope.tobytes()
        found[layout, sparse.issparse(given)] = trace
    first = next(iter(found.values()))
    for other in found.values():
        assert same(first.state, other.state)
        assert np.array_equal(dense(first.predictions), dense(other.predictions))
        assert np.array_equal(first.history.values, other.history.values)
    try_saving(learner)
    try_marking(policy, eta, y, first, weights)


def try_saving(learner):
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder, "learner"))
        again = omma.OnlineClassifier.load(Path(folder, "learner"))
    assert same(again.state, learner.state)
    assert again.counts == learner.counts


def try_marking(policy, eta, y, trace, weights):
    """Labels that are said to be unknown beside y are as good as NaN."""
    noise = np.where(np.isnan(y), np.random.default_rng(1).integers(0, 2, y.shape), y)
    batch = omma.Batch.of(eta, noise.astype(np.int8), weights, known=~np.isnan(y))
    assert same(replayed(policy, batch, None).state, trace.state)


def try_whole_rows(policy, seed):
    """Where all labels of a row are known, or none are, nothing is as it was not before."""
    eta, y = stream(seed, 40, 5)
    known = np.random.default_rng(seed).random(40) < 0.6
    y = np.where(known[:, np.newaxis], y, np.nan)
    whole = replayed(policy, eta, y)
    learner = omma.OnlineClassifier(policy, 5, metric=whole.metric)
    for t in range(40):
        learner.predict(eta[t])
        learner.update(y[t].astype(np.int8) if known[t] else None)
    assert same(whole.state, learner.state)
    assert whole.state.truth.missed is None
    marked = omma.Batch.of(eta, np.nan_to_num(y), known=np.repeat(known[:, np.newaxis], 5, axis=1))
    assert same(replayed(policy, marked, None).state, whole.state)


def try_late_labels(policy, seed):
    """Labels by id, some of them unknown; and the same done again from a journal."""
    eta, y = partial(seed)
    with tempfile.TemporaryDirectory() as folder:
        learner = omma.OnlineClassifier(policy, 5)
        with omma.Journal(Path(folder, "journal"), learner):
            for t in range(len(eta)):
                learner.predict(eta[t], id=t)
                late = t - 3
                if late >= 0 and not np.isnan(y[late]).all():
                    learner.update(y[late], id=late)
            learner.predict(eta[0])
            learner.update([1, np.nan, 0, 0, np.nan])
        with omma.Journal.resume(Path(folder, "journal")) as journal:
            again = journal.learner
    assert same(again.state, learner.state)
    assert again.counts == learner.counts


def try_sums(policy):
    """What two learners missed adds up, and so do their counts."""
    eta, y = partial(3)
    halves = (slice(20), slice(20, 40))
    first, second = (replayed(policy, eta[part], y[part]).state for part in halves)
    learner = omma.OnlineClassifier(policy, 5)
    learner.merge(first)
    learner.merge(second)
    both = learner.state
    for name in ("cells", "missed"):
        mine = getattr(both.truth, name)
        assert np.allclose(mine, getattr(first.truth, name) + getattr(second.truth, name))
    assert np.allclose((both - second).truth.missed, first.truth.missed)
    state = first + omma.step(policy, first, eta[20:], y[20:])[1]
    assert state.truth.rows == both.truth.rows
    assert np.array_equal(state.truth.missed, both.truth.missed)


def try_calibration():
    """A calibrator learns of a row what is known of it, as that of Auto does."""
    eta, y = partial(4)
    learned = omma.replay(omma.Auto("macro_f1"), eta, y).state.calibration
    for layout in LAYOUTS.values():
        calibrator = omma.calibration.OnlineCalibrator(5)
        calibrator.update(layout(eta), y)
        for name, one in calibrator.arrays().items():
            assert np.array_equal(one, getattr(learned, name))


def try_prices():
    """What is predicted moves its price once, whatever comes of labels, now or later."""
    policy = omma.Auto("macro_f1", subject_to="labels_per_row <= 0.5")
    learners = [omma.OnlineClassifier(policy, 3) for _ in range(3)]
    row = [0.9, 0.8, 0.7]  # one row, as decisions after it hang on what was learned
    labels = (None, [1, np.nan, 0], [1, 0, 0])
    for learner, true, key in zip(learners, labels, (None, None, "late"), strict=True):
        learner.predict(row, id=key)
        learner.update(true, id=key)
    nothing, part, late = (learner.state.prices for learner in learners)
    assert nothing.mu != 1.0
    assert nothing.mu == part.mu == late.mu
    assert nothing.spread == part.spread == late.spread


def try_everything():
    try_prices()
    try_calibration()
    for name, policy in {**SOFT, **HARD}.items():
        try_all_ways(policy, name in SOFT, seed=0)
        if name in SOFT:
            try_whole_rows(policy, seed=0)
    for name in ("auto", "auto with limits", "forgetting", "window", "estimates", "both"):
        try_late_labels(SOFT[name], 2)
    for name in ("auto", "both", "estimates"):
        try_sums(SOFT[name])
    try_sums(omma.OMMA("macro_f1", feedback="estimates", prior=1.0))
    hard = omma.OMMA("macro_gmean", prior=1.0)
    eta, y = partial(3, soft=False)
    parts = [replayed(hard, eta[part], y[part]).state for part in (slice(20), slice(20, 40))]
    assert np.array_equal((parts[0] + parts[1]).missed, np.isnan(y).sum(axis=0))


def test_all_policies_in_all_ways():
    code = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert code.returncode == 0, code.stderr[-2000:]


# Compiled


@pytest.mark.parametrize("layout", LAYOUTS)
def test_auto_is_its_slow_twin(layout):
    eta, y = partial(5, n=300)
    slow, made = naive_auto.Auto("macro_f1", 5), np.zeros(eta.shape, dtype=np.int8)
    for t, true in enumerate(y):
        made[t, slow.predict(eta[t])] = 1
        nothing = np.isnan(true).all()
        slow.update(None if nothing else np.flatnonzero(true == 1), np.flatnonzero(np.isnan(true)))
    trace = omma.replay(omma.Auto("macro_f1"), LAYOUTS[layout](eta), y)
    np.testing.assert_array_equal(dense(trace.predictions), made)
    np.testing.assert_allclose(trace.state.labels.cells[0], slow.tp_y)
    np.testing.assert_allclose(trace.state.known.cells[[0, 2]], [slow.tp_e, slow.pos_e])
    np.testing.assert_allclose(trace.state.calibration.bias, slow.b)


def test_labels_alone_are_their_slow_twin():
    eta, y = partial(6, n=300, soft=False)
    trace = omma.replay(omma.OMMA("macro_gmean"), eta, y)
    np.testing.assert_array_equal(trace.predictions, naive_partly.decided("macro_gmean", eta, y))


def test_labels_are_counted_where_they_are_known():
    eta, y = partial(7, n=300)
    trace = omma.replay(omma.Auto("macro_f1"), eta, y)
    cells, n = naive_partly.counted(y, trace.predictions)
    counts = trace.counts
    assert counts.n == n
    np.testing.assert_allclose([counts.tp, counts.predicted, counts.positive], cells)
    assert trace.value == trace.metric.value(counts)


def test_more_labels_are_worth_more_than_fewer():
    """Of an estimate that is far off, labels that are known in a third of the entries say so."""
    eta, y = omma.datasets.long_tail(n=3000, m=8, seed=1)
    wrong = eta**2
    rng = np.random.default_rng(0)
    known = rng.random(y.shape) < 0.33
    some = omma.replay(omma.Auto("macro_f1"), wrong, np.where(known, y, np.nan))
    none = omma.replay(omma.Auto("macro_f1"), wrong, np.full(y.shape, np.nan))
    metric = omma.metric("macro_f1")
    assert metric.score(y, some.predictions) > metric.score(y, none.predictions) + 0.02


# Streams


def test_empty_cells_of_a_stream_are_unknown():
    keeper = keeper_of("stream", "--metric", "macro_f1", "--json")
    reader = CsvLines(",", None, keeper.options)
    assert reader.read("a,b,y_a,y_b") is None
    line = reader.read("0.5,0.25,1,")
    np.testing.assert_array_equal(line.y, [1, np.nan])
    np.testing.assert_array_equal(JsonLines(2).read('{"y": [null, 0]}').y, [np.nan, 0])
    classes = CsvLines(",", None, keeper.options)
    assert classes.read("a,b,class") is None
    assert [classes.read(f"0.5,0.25,{one}").y for one in ("", "nan", "1")] == [None, None, 1]
    said = io.StringIO()
    made = Stream(said, keeper)
    made.take(line, ("a", "b"))
    assert made.keeper.learner.counts.n == 1
    assert made.keeper.learner.state.labels.missed.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a,b\n1,0\n,\n0,\n1,1\n", [[1, 0], [0, np.nan], [1, 1]]),
        ("id,a,b\nw,1,0\nx,,\ny,0,1\nz,1,1\n", [[1, 0], [0, 1], [1, 1]]),
        ("id,class\nw,1\nx,\ny,0\nz,1\n", [1, 0, 1]),
    ],
)
def test_evaluate_leaves_rows_out_that_lack_all_labels(tmp_path, text, kept):
    (tmp_path / "y.csv").write_text(text)
    rows = ["0.5,0.25", "0.125,0.75", "0.5,0.5", "0.25,0.25"]
    with_ids = text.startswith("id")
    head = "id,a,b" if with_ids else "a,b"
    body = [f"{one},{row}" for one, row in zip("wxyz", rows, strict=True)] if with_ids else rows
    (tmp_path / "eta.csv").write_text("\n".join([head, *body]) + "\n")
    files = str(tmp_path / "eta.csv"), str(tmp_path / "y.csv")
    found = read_scored(*files, id="id" if with_ids else None)
    y, known = found.batch.labels.values, found.batch.known
    y = y.indices if found.batch.class_ids else y
    np.testing.assert_array_equal(y if known is None else np.where(known, y, np.nan), kept)
    assert found.batch.values.tolist() == [[0.5, 0.25], [0.5, 0.5], [0.25, 0.25]]
    assert found.rows == (("id", ("w", "y", "z")) if with_ids else None)
    assert "1 of 4 rows have no labels and were skipped" in found.notes[-1]


# What has no meaning


@pytest.mark.parametrize(
    ("policy", "metric", "why"),
    [
        (omma.Auto("multiclass_gmean"), None, "for multiclass_gmean, which is about one class"),
        (omma.Auto("macro_f1", k=1), "multiclass_mcc", "for multiclass_mcc, which is about one"),
        (omma.Greedy("multiclass_balanced_accuracy"), None, "for multiclass_balanced_accuracy"),
        (omma.OnlineFrankWolfe("macro_f1", feedback="estimates"), None, "for OnlineFrankWolfe"),
        (omma.Window(omma.OMMA("macro_f1"), 9), None, "for a Window that counts nothing but"),
        (
            omma.Auto("macro_f1", subject_to="micro_accuracy >= 0.9"),
            None,
            "for a limit on micro_accuracy, which counts all rows",
        ),
    ],
)
def test_who_needs_whole_rows_says_so(policy, metric, why):
    eta, _ = class_stream(1, 3, 3)
    y = [[1, 0, 0], [np.nan, 0, 0], [0, 0, 1]]
    message = f"y of replay must have all labels of a row or none {why}.*, got a part of them in"
    with pytest.raises(ValueError, match=message):
        omma.replay(policy, eta, y, metric=metric)
    learner = omma.OnlineClassifier(policy, 3, metric=metric)
    learner.predict(eta[1])
    with pytest.raises(ValueError, match="y of update must have all labels of a row or none"):
        learner.update(y[1])
    assert learner.counts.n == 0


def test_labels_alone_need_one_that_is_known():
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 2)
    learner.predict([0.3, 0.4])
    with pytest.raises(ValueError, match="must have a label that is known in each row"):
        learner.update([np.nan, np.nan])


def test_counts_alone_cannot_be_merged():
    policy = omma.OMMA("macro_f1", feedback="estimates")
    learner = omma.OnlineClassifier(policy, 2)
    learner.predict([0.3, 0.4])
    learner.update([1, np.nan])
    with pytest.raises(TypeError, match=r"of rows labelled in part: pass other\.state"):
        learner.merge(omma.Counts.zeros(2), estimates=omma.Counts.zeros(2))


if __name__ == "__main__":
    try_everything()


@pytest.mark.parametrize("checkpoints", [1, 7, [10, 25], [40]])
def test_history_has_a_value_for_each_checkpoint(checkpoints):
    eta, y = omma.datasets.long_tail(n=40, m=4, seed=0)
    some = np.where(np.random.default_rng(0).random(y.shape) < 0.5, np.nan, y)
    whole, part = (
        omma.replay(omma.OMMA("macro_f1"), eta, labels, checkpoints=checkpoints).history
        for labels in (y, some)
    )
    np.testing.assert_array_equal(part.rows, whole.rows)
    assert len(part.values) == len(part.rows)


@pytest.mark.parametrize("policy", [omma.OMMA("macro_f1"), omma.Auto("macro_f1")])
def test_states_with_and_without_unknown_labels_add_up(policy):
    """In both orders, and what is missed is forgotten as counts are."""
    eta, y = omma.datasets.long_tail(n=60, m=4, seed=0)
    some = np.where(np.random.default_rng(0).random(y.shape) < 0.3, np.nan, y)
    whole = omma.replay(policy, eta[:20], y[:20]).state
    part = omma.replay(policy, eta[20:], some[20:]).state
    missed = np.isnan(some[20:]).sum(axis=0)
    for total in (whole + part, part + whole):
        np.testing.assert_array_equal(total.truth.missed, missed)
        np.testing.assert_array_equal(
            total.truth.cells[2], y[:20].sum(axis=0) + np.nansum(some[20:], axis=0)
        )
    np.testing.assert_array_equal((0.5 * part).truth.missed, 0.5 * missed)

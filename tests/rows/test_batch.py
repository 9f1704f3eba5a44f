"""Rows are read once, and what was read is passed on."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from streams import dense

import omma
from omma.calibration import brier, log_loss, reliability
from omma.comparison import compare
from omma.metrics import Metric
from omma.rows.batch import Batch

NAN = float("nan")


def stream(n=300, m=4, seed=0):
    return omma.datasets.long_tail(n=n, m=m, seed=seed)


LAYOUTS = {
    "dense": lambda eta: eta,
    "float32": lambda eta: eta.astype(np.float32),
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
}
LABELS = {
    "int8": lambda y: y.astype(np.int8),
    "float": lambda y: y.astype(np.float64),
    "csr": sparse.csr_array,
}


@pytest.fixture
def reads(monkeypatch):
    """What is read, and how often."""
    count = Counter()
    read = Batch.read.__func__

    def counted(cls, owner, eta, *args, **kwargs):
        count["rows"] += not isinstance(eta, Batch)
        return read(cls, owner, eta, *args, **kwargs)

    monkeypatch.setattr(Batch, "read", classmethod(counted))
    return count


# Equal answers


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", [omma.OMMA("macro_f1"), omma.OMMA("macro_f1", k=2)])
def test_a_batch_gives_the_same_bits_as_what_it_was_made_of(policy, layout, labels):
    eta, y = stream()
    given, true = LAYOUTS[layout](dense(eta)), LABELS[labels](dense(y))
    weights = np.random.default_rng(0).integers(0, 3, len(dense(eta))).astype(float)
    expected = omma.replay(policy, given, true, weights=weights, seed=1)
    batch = Batch.of(given, true, weights)
    for one in (batch, batch.ready(), batch.take(slice(None)), batch.ready().ready()):
        found = omma.replay(policy, one, seed=1)
        assert found.value == expected.value
        assert found.counts == expected.counts
        np.testing.assert_array_equal(dense(found.predictions), dense(expected.predictions))
        np.testing.assert_array_equal(found.history.values, expected.history.values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_part_is_what_a_part_of_the_arrays_gives(layout):
    eta, y = (dense(one) for one in stream())
    rows = np.random.default_rng(1).permutation(len(eta))[:100]
    batch = Batch.of(LAYOUTS[layout](eta), y, np.arange(len(eta), dtype=float))
    flags = np.zeros(len(eta), dtype=bool)
    flags[rows] = True
    for which in (rows, flags, slice(10, 60)):
        part = batch.take(which)
        expected = omma.replay(
            omma.OMMA("macro_f1"),
            LAYOUTS[layout](eta)[which],
            y[which],
            weights=np.arange(len(eta), dtype=float)[which],
        )
        assert omma.replay(omma.OMMA("macro_f1"), part).value == expected.value
        assert (part.n, part.m) == (len(eta[which]), eta.shape[1])


def test_class_ids_stay_class_ids():
    eta, y = (dense(one) for one in stream())
    ids = eta.argmax(axis=1)
    batch = Batch.of(eta, ids)
    assert batch.class_ids
    assert batch.one_label_each
    assert batch.ready().class_ids
    policy = omma.OMMA("macro_f1", k=1)
    assert omma.replay(policy, batch.ready()).value == omma.replay(policy, eta, ids).value
    assert not Batch.of(eta, y).class_ids


def test_whether_each_row_has_one_label_is_known():
    y = np.eye(3)[[0, 1, 2, 1]]
    assert Batch.of(np.full((4, 3), 0.5), y).one_label_each
    y[2, 0] = 1
    batch = Batch.of(np.full((4, 3), 0.5), y)
    assert not batch.one_label_each
    assert batch.odd_row == (2, 2)
    assert not Batch.of(np.full((4, 3), 0.5)).one_label_each


def test_fits_and_calibration_take_a_batch():
    eta, y = stream()
    batch = Batch.of(eta, y)
    one = omma.FrankWolfe("macro_f1").fit(batch)
    other = omma.FrankWolfe("macro_f1").fit(eta, y)
    np.testing.assert_array_equal(one.shares, other.shares)
    tuned = omma.TunedThresholds("macro_f1").fit(batch).decision
    assert tuned == omma.TunedThresholds("macro_f1").fit(eta, y).decision
    assert log_loss(batch) == log_loss(eta, y)
    assert brier(batch) == brier(eta, y)
    np.testing.assert_array_equal(reliability(batch).count, reliability(eta, y).count)


# One reading


def test_a_replay_reads_once(reads, monkeypatch):
    pandas = pytest.importorskip("pandas")
    eta, y = (pandas.DataFrame(dense(one)).add_prefix("label ") for one in stream())
    to_numpy = pandas.DataFrame.to_numpy

    def counted(frame, *args, **kwargs):
        reads["eta" if frame is eta else "y"] += 1
        return to_numpy(frame, *args, **kwargs)

    monkeypatch.setattr(pandas.DataFrame, "to_numpy", counted)
    omma.replay(omma.OMMA("macro_f1"), eta, y, seed=0, gap=True)
    assert reads == {"rows": 1, "eta": 1, "y": 1}


def test_a_small_replay_makes_few_calls():
    eta, y = stream(n=60)
    policy, calls = omma.OMMA("macro_f1"), Counter()
    room = str(Path(omma.__file__).parent)

    def count(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(room):
            calls[frame.f_code.co_filename] += 1

    for _ in range(2):  # the first compiles
        calls.clear()
        sys.setprofile(count)
        try:
            omma.replay(policy, eta, y)
        finally:
            sys.setprofile(None)
    assert calls.total() <= 60
    assert len(calls) <= 10


def test_a_comparison_reads_once_and_once_what_it_learns_from(reads):
    eta, y = stream()
    compare(eta, y, ["macro_f1", "micro_f1"], ["baseline", "omma"], seeds=range(2), n_jobs=1)
    assert reads["rows"] == 1
    both = ["tuned", "offline_fw"]
    compare(eta, y, "macro_f1", both, train=stream(seed=1), seeds=range(2), n_jobs=1)
    assert reads["rows"] == 3


def test_a_batch_is_never_read_again(reads):
    batch = Batch.of(*stream())
    reads.clear()
    compare(batch, metrics="macro_f1", policies=["tuned", "omma"], train=batch, seeds=[0], n_jobs=1)
    omma.replay(omma.OMMA("macro_f1"), batch)
    omma.curve(batch, None, "macro_f1")
    log_loss(batch)
    assert reads["rows"] == 0


@pytest.mark.parametrize("cv", [2, 3, "prefit"])
def test_a_fit_reads_its_rows_once(reads, cv):
    pytest.importorskip("sklearn")
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    from omma.sklearn import MetricClassifier

    X, y = make_classification(300, weights=[0.8], random_state=0)
    model = LogisticRegression()
    if cv == "prefit":
        model.fit(X, y)
    MetricClassifier(model, metric="f1", cv=cv, random_state=0).fit(X, y)
    assert reads["rows"] == 1


def test_evaluate_reads_each_file_once(reads, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from omma.cli import main
    from omma.datasets import matrices

    files = Counter()
    read = matrices.npz.mapped
    monkeypatch.setattr(
        matrices.npz, "mapped", lambda path: (files.update([str(path)]), read(path))[1]
    )
    monkeypatch.chdir(tmp_path)
    eta, y = (dense(one) for one in stream())
    for name, one in (("eta", eta), ("y", y), ("eta2", eta), ("y2", y)):
        np.save(f"{name}.npy", one)
    common = ["evaluate", "--eta", "eta.npy", "--labels", "y.npy", "--metric", "macro_f1"]
    done = CliRunner().invoke(main, [*common, "--predictions", "out.csv", "--rule", "rule.json"])
    assert done.exit_code == 0, done.output
    assert files == {"eta.npy": 1, "y.npy": 1}
    assert reads["rows"] == 1
    more = ["--train-eta", "eta2.npy", "--train-labels", "y2.npy"]
    done = CliRunner().invoke(main, [*common, *more])
    assert done.exit_code == 0, done.output
    assert reads["rows"] == 1 + 2


def test_the_number_of_labels_is_checked_once(monkeypatch):
    seen = Counter()
    check = Metric.check_labels
    monkeypatch.setattr(
        Metric, "check_labels", lambda self, m: (seen.update(checks=1), check(self, m))[1]
    )
    omma.replay(omma.OMMA("macro_f1"), *stream())
    assert seen["checks"] <= 1


@pytest.mark.parametrize("kind", ["omma", "mixture"])
def test_nobody_describes_a_policy_that_nothing_is_wrong_with(kind, monkeypatch):
    eta, y = stream()
    policy = omma.OMMA("macro_f1") if kind == "omma" else omma.FrankWolfe("macro_f1").fit(eta, y)

    def refuse(self):
        raise AssertionError("described without need")

    monkeypatch.setattr(type(policy), "__repr__", refuse)
    omma.replay(policy, eta, y)


def test_a_metric_is_found_by_its_name_once(monkeypatch):
    policy = omma.OMMA("macro_f1")
    expected = omma.replay(policy, *stream()).value
    monkeypatch.setattr("omma.policies.base.read_target", None)  # a second look would fail
    assert omma.replay(policy, *stream()).value == expected


# Pickles


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("metric", ["macro_f1", "multiclass_gmean"])
def test_a_trace_can_be_pickled(metric, gap):
    eta, y = (dense(one) for one in stream())
    true = eta.argmax(axis=1) if metric.startswith("multiclass") else y
    trace = omma.replay(omma.OMMA(metric), eta, true, gap=gap)
    again = pickle.loads(pickle.dumps(trace))
    assert again.value == trace.value
    assert again.gap == trace.gap
    assert again.history.gaps == trace.history.gaps
    np.testing.assert_array_equal(again.history.values, trace.history.values)
    np.testing.assert_array_equal(again.predictions, trace.predictions)
    assert again.rule == trace.rule


def test_a_trace_of_a_cost_matrix_can_be_pickled():
    eta, _ = (dense(one) for one in stream())
    metric = omma.metrics.costs(np.eye(4))
    trace = omma.replay(omma.OMMA(metric), eta, eta.argmax(axis=1))
    again = pickle.loads(pickle.dumps(trace))
    np.testing.assert_array_equal(again.history.values, trace.history.values)


def test_a_batch_can_be_pickled_and_gives_frames_back():
    pandas = pytest.importorskip("pandas")
    eta, y = (dense(one) for one in stream(50))
    columns, index = list("abcd"), [f"row {i}" for i in range(50)]
    table = pandas.DataFrame(eta[:, ::-1], index=index, columns=columns[::-1])
    batch = Batch.of(table, pandas.DataFrame(y, index=index, columns=columns), names=columns)
    again = pickle.loads(pickle.dumps(batch))
    found = omma.replay(omma.OMMA("macro_f1"), again).predictions
    expected = omma.replay(omma.OMMA("macro_f1"), eta, y).predictions
    assert list(found.columns) == columns[::-1]
    np.testing.assert_array_equal(found[columns], expected)
    part = omma.replay(omma.OMMA("macro_f1"), batch.take([3, 1])).predictions
    assert list(part.index) == ["row 3", "row 1"]


# Labels that are not known


def test_labels_that_are_nan_are_unknown():
    eta = np.full((3, 2), 0.5)
    batch = Batch.of(eta, [[0, 1], [NAN, NAN], [1, 0]])
    np.testing.assert_array_equal(batch.known, [True, False, True])
    assert batch.take(batch.known).known is None
    assert batch.take([1]).known.tolist() == [False]
    starts, ends, _ = batch.labels.block(np.arange(3))
    np.testing.assert_array_equal(ends - starts, [1, 0, 1])


def test_rows_may_be_labelled_in_part():
    batch = Batch.of(np.full((3, 2), 0.5), [[0, 1], [NAN, 1], [1, 0]])
    np.testing.assert_array_equal(batch.known, [[True, True], [False, True], [True, True]])
    read = batch.labels.indicators(np.arange(3))[0]
    np.testing.assert_array_equal(read, [[0, 1], [0, 1], [1, 0]])


def test_classes_that_are_nan_are_unknown():
    batch = Batch.of(np.full((3, 2), 0.5), np.array([1, NAN, 0]))
    np.testing.assert_array_equal(batch.known, [True, False, True])
    starts, ends, ids = batch.labels.block(np.arange(3))
    np.testing.assert_array_equal(ends - starts, [1, 0, 1])
    np.testing.assert_array_equal(ids[starts[ends > starts]], [1, 0])


@pytest.mark.parametrize(
    ("names", "classes"),
    [("ab", ["b", None, "a"]), ("ab", ["b", NAN, "a"]), ("57", [7, NAN, 5]), ("57", [7, None, 5])],
)
def test_names_of_classes_may_be_missing(names, classes):
    y = np.array(classes, dtype=object if None in classes or "a" in classes else None)
    batch = Batch.of(np.full((3, 2), 0.5), y, names=list(names))
    np.testing.assert_array_equal(batch.known, [True, False, True])
    starts, ends, ids = batch.labels.block(np.arange(3))
    np.testing.assert_array_equal(ids[starts[ends > starts]], [1, 0])


@pytest.mark.parametrize("kind", LABELS)
def test_what_is_known_may_be_said_apart(kind):
    y = LABELS[kind](np.array([[0, 1], [1, 1], [1, 0]]))
    batch = Batch.of(np.full((3, 2), 0.5), y, known=[True, False, True])
    np.testing.assert_array_equal(batch.known, [True, False, True])
    starts, ends, _ = batch.labels.block(np.arange(3))
    np.testing.assert_array_equal(ends - starts, [1, 0, 1])
    assert Batch.of(np.full((3, 2), 0.5), y, known=[True] * 3).known is None


@pytest.mark.parametrize("known", [[True], [1, 0, 1], [[True, False, True]]])
def test_a_wrong_mask_is_refused(known):
    with pytest.raises(ValueError, match="known of Batch must be True or False for each row"):
        Batch.of(np.full((3, 2), 0.5), np.ones((3, 2)), known=known)


@pytest.mark.parametrize(
    "use",
    [
        lambda batch: omma.replay(omma.OMMA("macro_f1"), batch),
        lambda batch: omma.curve(batch, None, "macro_f1"),
    ],
)
def test_who_has_no_use_for_unknown_labels_says_so(use):
    batch = Batch.of(np.full((3, 2), 0.5), [[0, 1], [NAN, NAN], [1, 0]])
    with pytest.raises(ValueError, match=r"got nan in row 1, whose labels are unknown: leave such"):
        use(batch)


@pytest.mark.parametrize(
    "use",
    [
        lambda batch: omma.FrankWolfe("macro_f1").fit(batch).rules[0],
        lambda batch: omma.TunedThresholds("macro_f1").fit(batch).decision,
        log_loss,
    ],
)
@pytest.mark.filterwarnings("ignore:FrankWolfe")
def test_who_learns_or_judges_offline_leaves_rows_out_of_which_nothing_is_known(use):
    eta, y = np.array([[0.2, 0.6], [0.5, 0.5], [0.7, 0.1]]), [[0, 1], [NAN, NAN], [1, 0]]
    batch = Batch.of(eta, y)
    assert use(batch) == use(batch.take(batch.known))


# What is refused, and what is said of it


def test_nothing_comes_beside_a_batch():
    batch = Batch.of(*stream(20))
    with pytest.raises(TypeError, match="y of replay must not be given beside a Batch"):
        omma.replay(omma.OMMA("macro_f1"), batch, np.ones((20, 4)))
    with pytest.raises(TypeError, match="weights of replay must not be given beside a Batch"):
        omma.replay(omma.OMMA("macro_f1"), batch, weights=np.ones(20))


def test_a_batch_of_other_names_than_a_rule_is_refused():
    eta, y = (dense(one) for one in stream(50))
    rule = omma.TunedThresholds("macro_f1").fit(Batch.of(eta, y, names=list("abcd")))
    with pytest.raises(ValueError, match=r"eta of replay must have labels in the order"):
        omma.replay(rule, Batch.of(eta, y, names=list("abdc")))
    assert omma.replay(rule, Batch.of(eta, y)).value is not None


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda p: np.log(p / (1 - p)), r"log-odds \(logits\), pass their sigmoid.*softmax"),
        (lambda p: 100 * p, "if these are percent, divide them by 100"),
    ],
)
def test_numbers_that_are_something_else_get_a_hint(layout, change, hint):
    p = np.random.default_rng(0).uniform(0.02, 0.98, (50, 4))
    given = LAYOUTS[layout](change(p))
    for use in (
        lambda: omma.replay(omma.Threshold(0.5), given, metric="macro_f1"),
        lambda: log_loss(given, np.ones((50, 4))),
    ):
        with pytest.raises(ValueError, match=hint):
            use()


def test_one_number_that_is_wrong_is_no_scale():
    p = np.random.default_rng(0).uniform(0.02, 0.98, (50, 4))
    p[3, 2] = -0.1
    with pytest.raises(ValueError, match=r"got -0.1 in row 3, label 2$"):
        omma.replay(omma.Threshold(0.5), p, metric="macro_f1")


def test_numbers_in_columns_of_objects_are_numbers():
    pandas = pytest.importorskip("pandas")
    eta, y = (dense(one) for one in stream(50))
    objects = pandas.DataFrame(eta).astype(object)
    objects.iloc[0, 0] = Decimal(float(eta[0, 0]))
    true = pandas.DataFrame(y.astype(int)).astype(object)
    found = omma.replay(omma.OMMA("macro_f1"), objects, true)
    assert found.value == omma.replay(omma.OMMA("macro_f1"), eta, y).value
    objects.iloc[0, 0] = "0.5"
    with pytest.raises(TypeError, match="eta of replay must hold real numbers, got the type obj"):
        omma.replay(omma.OMMA("macro_f1"), objects, true)


class Labelled:
    """As much of a DataArray of xarray as tells it from others."""

    dims = ("row", "label")

    def __init__(self, values, coords):
        self.values, self.coords = values, coords

    def to_numpy(self):
        return self.values


def test_coordinates_are_not_lost_in_silence():
    eta, y = (dense(one) for one in stream(50))
    with pytest.raises(TypeError, match=r"eta of replay must have no coordinates.*to_pandas\(\)"):
        omma.replay(omma.OMMA("macro_f1"), Labelled(eta, {"label": list("abcd")}), y)
    plain = omma.replay(omma.OMMA("macro_f1"), Labelled(eta, {}), y)
    assert plain.value == omma.replay(omma.OMMA("macro_f1"), eta, y).value


@pytest.mark.parametrize("eta_layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("y", "expected"),
    [
        ([[1, 0], [0, 0], [1, 1]], [[1, 0], [0, 0], [1, 1]]),
        (sparse.csr_array([[1, 0], [0, 0], [1, 1]]), [[1, 0], [0, 0], [1, 1]]),
        ([[1, NAN], [NAN, NAN], [0, 1]], [[1, 0], [0, 0], [0, 1]]),
        ([1, NAN, 0], [[0, 1], [0, 0], [1, 0]]),
    ],
)
def test_labels_of_any_kind_are_one_matrix(eta_layout, y, expected):
    batch = Batch.of(eta_layout(np.full((3, 2), 0.5)), y)
    np.testing.assert_array_equal(batch.labels.matrix.toarray(), expected)


def test_labels_of_rows_flagged_as_unknown_are_in_no_matrix():
    y = sparse.csr_array([[1, 0], [1, 1]])
    batch = Batch.of([[0.5, 0.5], [0.5, 0.5]], y, known=[False, True])
    np.testing.assert_array_equal(batch.labels.matrix.toarray(), [[0, 0], [1, 1]])

"""However rows are laid out, split up or ordered, the same numbers come out; nothing is changed."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from strategies import class_stream, dense, one_hot, stepwise, stream

import omma
from omma.rows import arrays, labels as true_labels

POLICIES = [
    omma.OMMA("macro_f1"),
    omma.OMMA("macro_f1", k=2),
    omma.OMMA("micro_gmean", feedback="estimates"),
    omma.OMMA("multiclass_kappa"),
]
policies = pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{p.metric.name}-{p.k}")


def rows_for(policy, n=80, m=6):
    """Probabilities that float32 holds exactly, and labels: one a row where that is needed."""
    eta, y = stream(1, n, m)
    if policy.metric.single_label:
        eta, ids = class_stream(1, n, m)
        y = one_hot(ids, m)
    return eta.astype(np.float32).astype(np.float64), y


def same(trace, expected):
    np.testing.assert_array_equal(dense(trace.predictions), dense(expected.predictions))
    assert trace.counts == expected.counts
    assert trace.rule == expected.rule
    assert trace.value == expected.value
    np.testing.assert_array_equal(trace.history.rows, expected.history.rows)
    np.testing.assert_array_equal(trace.history.values, expected.history.values)


# Layouts of eta


def strided(array):
    """The array as every other row and column of a larger one."""
    larger = np.full((2 * array.shape[0], 2 * array.shape[1]), np.nan, dtype=array.dtype)
    larger[::2, ::2] = array
    return larger[::2, ::2]


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


ETA = {
    "float32": lambda eta: eta.astype(np.float32),
    "longdouble": lambda eta: eta.astype(np.longdouble),
    "big-endian": lambda eta: eta.astype(">f8"),
    "fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda eta: eta[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda eta: eta.T.copy().T,
    "read-only": read_only,
    "read-only float32": lambda eta: read_only(eta.astype(np.float32)),
    "list": lambda eta: eta.tolist(),
}


@policies
@pytest.mark.parametrize("layout", ETA)
def test_dense_probabilities_of_any_layout(policy, layout):
    eta, y = rows_for(policy)
    for seed in (None, 3):
        expected = omma.replay(policy, eta, y, seed=seed)
        same(omma.replay(policy, ETA[layout](eta), y, seed=seed), expected)


@policies
def test_probabilities_mapped_from_a_file(policy, tmp_path):
    eta, y = rows_for(policy)
    for dtype in (np.float64, np.float32):
        np.save(tmp_path / "eta.npy", eta.astype(dtype))
        np.save(tmp_path / "y.npy", y)
        mapped, labels = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("eta", "y"))
        same(omma.replay(policy, mapped, labels, seed=1), omma.replay(policy, eta, y, seed=1))


def unsorted(matrix):
    """The same matrix with the entries of each row stored backwards."""
    result = sparse.csr_array(matrix)
    for start, stop in zip(result.indptr[:-1], result.indptr[1:], strict=True):
        for part in (result.indices, result.data):
            part[start:stop] = part[start:stop][::-1].copy()
    return sparse.csr_array((result.data, result.indices, result.indptr), shape=result.shape)


def halves(matrix):
    """The same matrix with every entry stored as two halves."""
    coo = sparse.coo_array(matrix)
    rows, columns = np.repeat(coo.row, 2), np.repeat(coo.col, 2)
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=matrix.shape[0])
    indptr = np.concatenate(([0], np.cumsum(counts)))
    data = np.repeat(coo.data / 2, 2)[order]
    return sparse.csr_array((data, columns[order], indptr), shape=matrix.shape)


def every_entry_stored(matrix):
    n, m = matrix.shape
    indices = np.tile(np.arange(m), n)
    return sparse.csr_array((matrix.ravel(), indices, np.arange(0, n * m + 1, m)), shape=(n, m))


def wide_indices(matrix):
    csr = sparse.csr_array(matrix)
    parts = (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64))
    result = sparse.csr_array(csr.shape)
    result.data, result.indices, result.indptr = parts
    assert result.indices.dtype == np.int64
    return result


def frozen(matrix):
    csr = sparse.csr_array(matrix)
    for part in (csr.data, csr.indices, csr.indptr):
        part.flags.writeable = False
    return csr


SPARSE = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "coo_matrix": sparse.coo_matrix,
    "float32": lambda eta: sparse.csr_array(eta.astype(np.float32)),
    "int64 indices": wide_indices,
    "unsorted": unsorted,
    "duplicates": halves,
    "stored zeros": every_entry_stored,
    "read-only": frozen,
}


@policies
@pytest.mark.parametrize("layout", SPARSE)
def test_sparse_probabilities_of_any_layout(policy, layout):
    eta, y = rows_for(policy)
    given = SPARSE[layout](eta)
    for seed in (None, 3):
        expected = omma.replay(policy, eta, y, seed=seed)
        trace = omma.replay(policy, given, y, seed=seed)
        same(trace, expected)
        assert type(trace.predictions) is type(given.tocsr())
        assert trace.predictions.dtype == np.int8
        assert trace.predictions.has_canonical_format


# Layouts of y

Y = {
    "bool": lambda y: y.astype(bool),
    "uint8": lambda y: y.astype(np.uint8),
    "int64": lambda y: y.astype(np.int64),
    "float32": lambda y: y.astype(np.float32),
    "float64": lambda y: y.astype(np.float64),
    "fortran": np.asfortranarray,
    "strided": lambda y: strided(y.astype(float)),
    "read-only": read_only,
    "list": lambda y: y.tolist(),
    "csr_array": sparse.csr_array,
    "csr_matrix float": lambda y: sparse.csr_matrix(y.astype(float)),
    "csr bool": lambda y: sparse.csr_array(y.astype(bool)),
    "csc_array": sparse.csc_array,
    "int64 indices": wide_indices,
    "unsorted": unsorted,
    "stored zeros": every_entry_stored,
    "csr read-only": frozen,
}


@policies
@pytest.mark.parametrize("layout", Y)
def test_labels_of_any_layout(policy, layout):
    eta, y = rows_for(policy)
    labels = Y[layout](y)
    for probabilities in (eta, sparse.csr_array(eta)):
        expected = omma.replay(policy, probabilities, y, seed=2)
        same(omma.replay(policy, probabilities, labels, seed=2), expected)


@pytest.mark.parametrize("layout", ["csr_array", "int64 indices", "int64", "bool", "csc_array"])
def test_kernels_see_one_type_of_label_ids(layout):
    # Every other type would be compiled for, which takes some ten seconds.
    y = Y[layout](stream()[1])
    starts, ends, ids = true_labels.read_labels("test", y, *y.shape).block(np.arange(3))
    assert (starts.dtype, ends.dtype, ids.dtype) == (np.int64, np.int64, np.int32)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_class_ids_are_one_hot_rows(dtype, layout):
    eta, ids = class_stream(4, n=60, m=5)
    for policy in (omma.OMMA("multiclass_gmean"), omma.OMMA("macro_f1", k=1), omma.TopK(2)):
        options = {"metric": "macro_recall", "seed": 1}
        expected = omma.replay(policy, layout(eta), one_hot(ids, 5), **options)
        same(omma.replay(policy, layout(eta), ids.astype(dtype), **options), expected)


def test_classes_are_the_ids_of_predictions():
    eta, ids = class_stream(4, n=60, m=5)
    expected = omma.replay(omma.OMMA("multiclass_gmean"), eta, ids)
    np.testing.assert_array_equal(expected.classes, expected.predictions.argmax(axis=1))
    thin = omma.replay(omma.OMMA("multiclass_gmean"), sparse.csr_array(eta), ids)
    np.testing.assert_array_equal(thin.classes, expected.classes)
    assert thin.classes.dtype == expected.classes.dtype == np.int32


def test_one_label_as_a_vector_a_column_or_a_sparse_column():
    eta, y = stream(5, n=50, m=1)
    policy = omma.OMMA("f1")
    expected = omma.replay(policy, eta, y)
    assert expected.predictions.shape == (50, 1)
    vector = omma.replay(policy, eta[:, 0], y[:, 0])
    assert vector.predictions.shape == (50,)
    assert vector.counts == expected.counts
    np.testing.assert_array_equal(vector.predictions, expected.predictions[:, 0])
    same(omma.replay(policy, eta, y[:, 0]), expected)
    same(omma.replay(policy, sparse.csr_array(eta), y[:, 0]), expected)
    same(omma.replay(policy, sparse.csr_array(eta), sparse.csr_array(y)), expected)


def test_a_sparse_matrix_that_stores_nothing():
    empty = sparse.csr_array((3, 4))
    y = np.zeros((3, 4))
    assert omma.replay(omma.OMMA("macro_f1"), empty, y).predictions.nnz == 0
    filled = omma.replay(omma.OMMA("macro_f1", k=2), empty, y).predictions.toarray()
    assert filled.tolist() == [[1, 1, 0, 0]] * 3


# Nothing is changed


def snapshot(given):
    if sparse.issparse(given):
        return [part.copy() for part in (given.data, given.indices, given.indptr)]
    return [np.array(given)]


@pytest.mark.parametrize("layout", ["unsorted", "duplicates", "stored zeros", "csr_array"])
@policies
def test_a_replay_changes_nothing_it_is_given(policy, layout):
    eta, y = rows_for(policy)
    labels = every_entry_stored(y) if layout == "stored zeros" else unsorted(y)
    weights = np.ones(len(eta))
    given = [SPARSE[layout](eta), labels, weights, eta, y]
    before = [snapshot(one) for one in given]
    omma.replay(policy, given[0], labels, weights=weights, seed=1)
    omma.replay(policy, eta, y, weights=weights, seed=1)
    for one, parts in zip(given, before, strict=True):
        for now, then in zip(snapshot(one), parts, strict=True):
            np.testing.assert_array_equal(now, then)


# Options of a replay


@policies
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_predictions_need_not_be_kept(policy, layout):
    eta, y = rows_for(policy)
    kept = omma.replay(policy, layout(eta), y, seed=1)
    trace = omma.replay(policy, layout(eta), y, seed=1, predictions=False)
    assert trace.predictions is None
    assert trace.counts == kept.counts
    assert trace.rule == kept.rule
    np.testing.assert_array_equal(trace.history.values, kept.history.values)
    for converted in (ETA["fortran"](eta), SPARSE["int64 indices"](eta)):
        assert omma.replay(policy, converted, y, seed=1, predictions=False).counts == kept.counts


@policies
def test_history_is_the_value_so_far(policy):
    eta, y = rows_for(policy)
    trace = omma.replay(policy, eta, y, checkpoints=[1, 7, 50, 80])
    assert trace.history.rows.tolist() == [1, 7, 50, 80]
    for rows, value in zip(trace.history.rows, trace.history.values, strict=True):
        assert value == omma.replay(policy, eta[:rows], y[:rows]).value
    assert trace.value == trace.metric.value(trace.counts)


@policies
@pytest.mark.parametrize("checkpoints", [1, 3, 7, 50, 1000])
def test_history_ends_with_the_value(policy, checkpoints):
    eta, y = rows_for(policy)
    trace = omma.replay(policy, eta, y, checkpoints=checkpoints, seed=4)
    assert len(trace.history) == min(checkpoints, len(eta))
    assert trace.history.rows[-1] == len(eta)
    assert trace.history.values[-1] == trace.value


def test_history_may_be_left_out():
    eta, y = stream()
    assert len(omma.replay(omma.OMMA("macro_f1"), eta, y, checkpoints=0).history) == 0


@policies
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_seed_is_an_order_of_rows(policy, layout):
    eta, y = rows_for(policy)
    order = np.random.default_rng(11).permutation(len(eta))
    shuffled = omma.replay(policy, layout(eta), y, seed=11)
    by_hand = omma.replay(policy, layout(eta[order]), y[order])
    # Predictions come in the order in which rows were given.
    np.testing.assert_array_equal(dense(shuffled.predictions)[order], dense(by_hand.predictions))
    assert shuffled.counts == by_hand.counts
    assert shuffled.rule == by_hand.rule
    np.testing.assert_array_equal(shuffled.history.values, by_hand.history.values)


@policies
def test_weights_follow_their_rows_when_shuffled(policy):
    eta, y = rows_for(policy)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 4.0], size=len(eta))
    order = np.random.default_rng(11).permutation(len(eta))
    shuffled = omma.replay(policy, eta, y, weights=weights, seed=11)
    by_hand = omma.replay(policy, eta[order], y[order], weights=weights[order])
    assert shuffled.counts == by_hand.counts
    assert shuffled.rule == by_hand.rule


@policies
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_a_row_of_weight_w_counts_as_w_rows_with_one_decision(policy, layout):
    eta, y = rows_for(policy, n=25)
    weights = np.random.default_rng(0).integers(1, 4, size=len(eta))
    trace = omma.replay(policy, layout(eta), y, weights=weights)
    learner = omma.OnlineClassifier(policy, eta.shape[1])
    for row, true, weight in zip(eta, y, weights, strict=True):
        decision = learner.predict(row)
        for _ in range(weight):
            learner.update(true, prediction=decision, eta=row)
    assert trace.counts == learner.counts
    np.testing.assert_allclose(trace.rule.slope, learner.rule.slope, rtol=1e-12)
    np.testing.assert_allclose(trace.rule.offset, learner.rule.offset, rtol=1e-12)


def test_weights_of_one_are_no_weights():
    eta, y = stream(2)
    for policy in (omma.OMMA("macro_f1"), omma.OMMA("micro_f1", k=2)):
        weighted = omma.replay(policy, eta, y, weights=np.ones(len(eta)))
        same(weighted, omma.replay(policy, eta, y))


def test_rows_of_no_weight_leave_no_trace():
    eta, y = stream(2)
    weights = np.arange(len(eta)) % 2
    trace = omma.replay(omma.OMMA("macro_f1"), eta, y, weights=weights)
    assert trace.counts == omma.replay(omma.OMMA("macro_f1"), eta[1::2], y[1::2]).counts


def test_estimates_alone_need_no_labels():
    eta, y = stream(6)
    policy = omma.OMMA("macro_f1", feedback="estimates")
    for layout in (np.asarray, sparse.csr_array):
        without = omma.replay(policy, layout(eta))
        with_labels = omma.replay(policy, layout(eta), y)
        assert without.value is None
        assert without.counts is None
        assert without.history is None
        assert without.rule == with_labels.rule
        np.testing.assert_array_equal(dense(without.predictions), dense(with_labels.predictions))


# Blocks: the seams between them must not show


COSTS = omma.OMMA(omma.metrics.costs(np.eye(6) - 0.3))


@pytest.mark.parametrize("policy", [*POLICIES, COSTS], ids=lambda p: f"{p.metric.name}-{p.k}")
@pytest.mark.parametrize("seed", [None, 5])
def test_many_blocks_are_as_one(policy, seed, monkeypatch):
    eta, y = rows_for(policy, n=211)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], size=len(eta))
    options = {"seed": seed, "weights": weights, "checkpoints": [1, 10, 11, 100, 110, 211]}
    layouts = [np.asarray, sparse.csr_array, ETA["fortran"], SPARSE["int64 indices"]]
    labels = [y, sparse.csr_array(y), y.astype(float)]
    whole = [omma.replay(policy, layout(eta), y, **options) for layout in layouts]
    monkeypatch.setattr(arrays, "BLOCK", 64)
    for layout, expected in zip(layouts, whole, strict=True):
        given = layout(eta)
        assert arrays.read_probabilities("test", given).rows_per_block < 30
        for true in labels:
            same(omma.replay(policy, given, true, **options), expected)
        np.testing.assert_array_equal(
            dense(expected.rule.predict(given)), expected.rule.predict(eta)
        )


def test_blocks_of_one_row(monkeypatch):
    eta, y = stream(3, n=30, m=8)
    expected = omma.replay(omma.OMMA("macro_f1"), eta, y)
    monkeypatch.setattr(arrays, "BLOCK", 1)
    same(omma.replay(omma.OMMA("macro_f1"), eta, y), expected)
    same(omma.replay(omma.OMMA("macro_f1"), sparse.csr_array(eta), y), expected)


@pytest.mark.parametrize("row", [0, 50, 79])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.asfortranarray, wide_indices])
def test_a_wrong_row_is_named_as_it_was_given(row, layout, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", 64)
    policy = omma.OMMA("macro_f1")
    eta, y = rows_for(policy)
    eta[row, 3] = 1.5
    with pytest.raises(ValueError, match=rf"got 1\.5 in row {row}, label 3"):
        omma.replay(policy, layout(eta), y, seed=1)
    eta[row, 3] = np.nan
    with pytest.raises(ValueError, match=rf"got nan in row {row}, label 3"):
        omma.replay(policy, layout(eta), y)


@pytest.mark.parametrize("row", [0, 50, 79])
@pytest.mark.parametrize("kind", [np.int8, np.float64, sparse.csr_array])
def test_a_wrong_label_is_named_as_it_was_given(row, kind, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", 64)
    policy = omma.OMMA("macro_f1")
    eta, y = rows_for(policy)
    y[row, 3] = 2
    labels = kind(y) if kind is sparse.csr_array else y.astype(kind)
    with pytest.raises(ValueError, match=rf"y of replay must hold only 0 and 1, got 2.* row {row}"):
        omma.replay(policy, eta, labels, seed=1)


def test_stepping_reads_the_same_layouts():
    policy = POLICIES[0]
    eta, y = rows_for(policy, n=20)
    expected, _ = stepwise(policy, eta, y)
    for layout in ("float32", "big-endian", "fortran", "strided", "read-only"):
        predictions, _ = stepwise(policy, ETA[layout](eta), y)
        np.testing.assert_array_equal(predictions, expected)
    for layout in ("csr_matrix", "float32", "unsorted", "duplicates", "stored zeros"):
        predictions, _ = stepwise(policy, SPARSE[layout](eta), y)
        np.testing.assert_array_equal(predictions, expected)


MALFORMED = """
import numpy as np, omma
from scipy import sparse

def bad(label, value, rows):
    # SciPy does not look at the ids when a matrix is made of its parts. Ids of 32 bits go to
    # kernels as they are, others are copied first.
    ids, ends = np.full(rows, label, dtype=kind), np.arange(rows + 1, dtype=kind)
    return sparse.csr_array((np.full(rows, value), ids, ends), shape=(rows, 4))

every = [(label, kind) for label in (4, -1, 70_000_000) for kind in (np.int32, np.int64)]
for label, kind in every:
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), 4)
    auto = omma.OnlineClassifier(omma.Auto("macro_f1"), 4)
    tries = [
        lambda: auto.predict(bad(label, 0.5, 1)),
        lambda: auto.predict(bad(label, 0.5, 3)),
        lambda: omma.replay(omma.OMMA("macro_f1"), bad(label, 0.5, 3), np.zeros((3, 4))),
        lambda: omma.replay(omma.OMMA("macro_f1"), np.zeros((3, 4)), bad(label, 1, 3)),
        lambda: learner.predict(bad(label, 0.5, 1)),
        lambda: learner.update(bad(label, 1, 1), prediction=sparse.csr_array((1, 4))),
        lambda: learner.update(np.zeros((1, 4)), prediction=bad(label, 1, 1)),
    ]
    for i, one in enumerate(tries):
        try:
            one()
            print("accepted", i, label, kind, flush=True)
        except ValueError:
            pass
"""


def test_label_ids_out_of_range_are_refused_and_never_followed():
    ran = subprocess.run([sys.executable, "-c", MALFORMED], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")

"""Datasets: their types, their parts, and folders they are kept in."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from streams import dense

from omma.datasets import Dataset, read_folder, write_folder


def toy(n=10, task="multiclass", split=None):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n) if task == "binary" else rng.integers(0, 3, n)
    if task == "multilabel":
        y = (rng.random((n, 4)) < 0.4).astype(np.int8)
    return Dataset("toy", task, np.arange(2.0 * n).reshape(n, 2), y, split)


def same(first, second):
    assert (first.name, first.task, first.split) == (second.name, second.task, second.split)
    assert (first.labels, first.m) == (second.labels, second.m)
    assert sparse.issparse(first.X) == sparse.issparse(second.X)
    for one, other in ((first.X, second.X), (first.y, second.y)):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(dense(one), dense(other))


def test_everything_is_brought_to_the_same_types():
    data = Dataset("a", "multilabel", np.ones((3, 2), order="F"), np.eye(3, dtype=bool))
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    assert isinstance(data.y, sparse.csr_array)
    assert data.y.dtype == np.int8
    assert data.y.nnz == 3
    ids = Dataset("a", "binary", sparse.csc_matrix(np.eye(3)), [True, False, False])
    assert isinstance(ids.X, sparse.csr_array)
    assert (ids.y.dtype, ids.y.shape, ids.m) == (np.int64, (3,), 2)


def test_stored_zeros_are_not_labels():
    stored = sparse.csr_array((np.array([1, 0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    assert Dataset("a", "multilabel", np.ones((1, 1)), stored).y.nnz == 1
    assert stored.nnz == 2


def test_types_that_fit_are_not_copied():
    X, y = np.ones((3, 2), np.float32), np.arange(3)
    data = Dataset("a", "multiclass", X, y)
    assert np.shares_memory(data.X, X)
    assert np.shares_memory(data.y, y)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"task": "multi-label"}, "task of Dataset must be"),
        ({"y": np.arange(4)}, "as many rows as each other, got 3 and 4"),
        ({"y": np.arange(3.0)}, "whole numbers"),
        ({"y": np.array([0, -1, 0])}, "class ids from 0, got -1"),
        ({"y": np.array([0, 7, 0]), "m": 3}, "class ids below 3, got 7"),
        ({"y": np.array([0, 2, 0]), "task": "binary"}, "class ids below 2, got 2"),
        ({"y": np.full((3, 2), 2), "task": "multilabel"}, "only 0 and 1, got 2 in row 0"),
        ({"task": "multilabel"}, "indicator matrix"),
        ({"X": np.arange(3)}, "rows and columns"),
        ({"split": "2"}, "between 1 and 2, got '2'"),
        ({"split": 3}, "between 1 and 2, got 3"),
        ({"labels": ["a"], "m": 3}, "labels of Dataset must agree"),
    ],
)
def test_what_does_not_fit_is_one_sentence(change, sentence):
    arguments = {"name": "a", "task": "multiclass", "X": np.ones((3, 1)), "y": np.arange(3)}
    with pytest.raises(ValueError, match=sentence):
        Dataset(**{**arguments, **change})


@given(n=st.integers(2, 60), seed=st.integers(0, 5), test=st.floats(0.1, 0.9))
def test_parts_without_a_split_are_a_seeded_draw(n, seed, test):
    whole = toy(n)
    if round(test * n) in (0, n):
        with pytest.raises(ValueError, match="rows in both parts"):
            whole.parts(seed, test)
        return
    train, held = whole.parts(seed, test)
    assert held.n == round(test * n)
    rows = np.concatenate([train.X[:, 0], held.X[:, 0]])
    np.testing.assert_array_equal(np.sort(rows), whole.X[:, 0])
    np.testing.assert_array_equal(
        np.concatenate([train.y, held.y]), whole.y[(rows / 2).astype(int)]
    )
    assert train.m == held.m == whole.m
    again = whole.parts(seed, test)[0]
    np.testing.assert_array_equal(again.X, train.X)


def test_other_seeds_draw_other_parts():
    assert not np.array_equal(toy(50).parts(0)[1].X, toy(50).parts(1)[1].X)


def test_an_official_split_is_kept_whatever_the_seed():
    whole = toy(10, split=8)
    train, test = whole.parts(seed=3, test=0.9)
    np.testing.assert_array_equal(train.X, whole.X[:8])
    np.testing.assert_array_equal(test.y, whole.y[8:])
    assert train.split is None


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_folders_give_back_what_was_put_in(tmp_path, task, layout):
    whole = toy(9, task, split=6)
    names = [f"label {j}" for j in range(whole.m)]
    whole = Dataset("toy", task, layout(whole.X), whole.y, 6, names)
    write_folder(whole, tmp_path / "toy", licence="CC0")
    same(read_folder(tmp_path / "toy"), whole)
    assert json.loads((tmp_path / "toy" / "meta.json").read_text())["licence"] == "CC0"


def test_folders_that_disagree_with_themselves(tmp_path):
    write_folder(toy(), tmp_path)
    meta = json.loads((tmp_path / "meta.json").read_text())
    (tmp_path / "meta.json").write_text(json.dumps({**meta, "d": 5}))
    with pytest.raises(ValueError, match=r"meta.json: expected d to be 2 .* got 5"):
        read_folder(tmp_path)
    (tmp_path / "meta.json").write_text("{}")
    with pytest.raises(ValueError, match=r"meta.json: expected an object that names the task"):
        read_folder(tmp_path)
    np.savez(tmp_path / "X.npz", a=1, b=2)
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match=r"X.npz: expected a sparse matrix or an array named X"):
        read_folder(tmp_path)
    (tmp_path / "meta.json").write_text("{\n oh")
    with pytest.raises(ValueError, match=r"meta.json must be JSON, .* line 2"):
        read_folder(tmp_path)
    (tmp_path / "Y.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"Y.npz is missing"):
        read_folder(tmp_path)

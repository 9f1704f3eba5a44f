"""Counts: all ways to count agree, and counts add up as numbers do."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.metrics import confusion_matrix, multilabel_confusion_matrix
from strategies import class_pairs, label_pairs, one_hot, row_weights

import omma
from omma import Counts

some = settings(max_examples=50)


def cells(counts):
    return np.stack((counts.tp, counts.fp, counts.fn, counts.tn), axis=1)


def same(a, b):
    np.testing.assert_allclose(cells(a), cells(b), rtol=1e-13, atol=1e-13)
    assert a.n == pytest.approx(b.n)


@given(pair=label_pairs(), data=st.data())
@some
def test_counts_are_the_four_cells_of_the_textbook(pair, data):
    weights = data.draw(row_weights(len(pair[0])))
    counts = Counts.from_labels(*pair, sample_weight=weights)
    np.testing.assert_array_equal(cells(counts), naive.cells(*pair, weights))
    assert counts.n == (len(pair[0]) if weights is None else weights.sum())


@given(pair=label_pairs(), data=st.data())
@some
def test_soft_labels_count_to_their_degree(pair, data):
    shape = pair[0].shape
    soft = data.draw(hnp.arrays(np.float64, shape, elements=st.floats(0, 1)))
    weights = data.draw(row_weights(shape[0]))
    counts = Counts.from_labels(soft, pair[1], sample_weight=weights)
    expected = naive.cells(soft, pair[1], weights)
    np.testing.assert_allclose(cells(counts), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "layout", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array, np.asarray]
)
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32, np.float64])
@given(pair=label_pairs())
@settings(max_examples=10)
def test_all_layouts_count_the_same(layout, dtype, pair):
    true, predicted = (layout(y.astype(dtype)) for y in pair)
    expected = Counts.from_labels(*pair)
    assert Counts.from_labels(true, predicted) == expected
    assert Counts.from_labels(pair[0], predicted) == expected
    assert Counts.from_labels(true, pair[1]) == expected


@given(triple=class_pairs(), data=st.data())
@some
def test_class_ids_count_as_one_hot_rows(triple, data):
    true, predicted, m = triple
    weights = data.draw(row_weights(len(true)))
    rows = one_hot(true, m), one_hot(predicted, m)
    expected = Counts.from_labels(*rows, sample_weight=weights, matrix=True)
    options = {"sample_weight": weights, "n_labels": m, "matrix": True}
    mixed = [(true, predicted), (rows[0], predicted), (true, rows[1])]
    mixed += [(true.astype(float), predicted.tolist())]
    for pair in mixed:
        counts = Counts.from_labels(*pair, **options)
        assert counts == expected
        np.testing.assert_array_equal(counts.matrix, expected.matrix)


@given(triple=class_pairs(), data=st.data())
@some
def test_a_confusion_matrix_is_rewritten_class_against_rest(triple, data):
    true, predicted, m = triple
    weights = data.draw(row_weights(len(true)))
    matrix = confusion_matrix(true, predicted, labels=range(m), sample_weight=weights)
    counts = Counts.from_confusion(matrix)
    np.testing.assert_allclose(cells(counts), naive.one_vs_rest(matrix), atol=1e-12)
    direct = Counts.from_labels(true, predicted, sample_weight=weights, n_labels=m, matrix=True)
    same(counts, direct)
    np.testing.assert_allclose(direct.matrix, matrix)


@given(pair=label_pairs(m=3), data=st.data())
@some
def test_as_2x2_is_scikit_learns_tensor(pair, data):
    weights = data.draw(row_weights(len(pair[0])))
    expected = multilabel_confusion_matrix(*pair, sample_weight=weights)
    np.testing.assert_array_equal(
        Counts.from_labels(*pair, sample_weight=weights).as_2x2(), expected
    )


@given(pair=label_pairs(), data=st.data())
@some
def test_adding_rows_one_by_one_counts_them_all(pair, data):
    weights = data.draw(row_weights(len(pair[0])))
    counts = Counts.zeros(pair[0].shape[1], matrix=True)
    for t, (true, predicted) in enumerate(zip(*pair, strict=True)):
        form = [np.asarray, list, lambda row: sparse.csr_array(row[None])][t % 3]
        counts.add(form(true), form(predicted), 1.0 if weights is None else weights[t])
    expected = Counts.from_labels(*pair, sample_weight=weights, matrix=True)
    assert counts == expected
    np.testing.assert_array_equal(counts.matrix, expected.matrix)


def test_adding_a_class_id_counts_its_row():
    counts = Counts.zeros(3)
    counts.add(2, 1, weight=2.0)
    counts.add(0, [1, 0, 0])
    assert counts == Counts([1, 0, 0], [1, 2, 0], [1, 0, 2], 3)


def test_a_row_that_is_refused_is_not_counted():
    counts = Counts([1, 0, 0], [1, 2, 0], [1, 0, 2], 3)
    before = counts.copy()
    wrong = [([1, 0], [1, 0], 1.0), ([2, 0, 0], [1, 0, 0], 1.0), ([1, 0, 0], [0.5, 0, 0], 1.0)]
    wrong += [(3, 1, 1.0), ([1, 0, 0], [1, 0, 0], -1.0), ([1, 0, 0], [1, 0, 0], np.nan)]
    wrong += [([1, np.nan, 0], [1, 0, 0], 1.0)]  # there is no room for what is unknown
    for true, predicted, weight in wrong:
        with pytest.raises(ValueError, match=r"got"):
            counts.add(true, predicted, weight)
    assert counts == before


@given(pairs=st.tuples(label_pairs(m=3), label_pairs(m=3)))
@some
def test_counts_of_parts_add_up_and_a_window_is_a_difference(pairs):
    first, rest = (Counts.from_labels(*pair, matrix=True) for pair in pairs)
    together = (np.vstack(sides) for sides in zip(*pairs, strict=True))
    whole = Counts.from_labels(*together, matrix=True)
    assert first + rest == whole
    assert whole - first == rest
    np.testing.assert_array_equal((first + rest).matrix, whole.matrix)
    np.testing.assert_array_equal((whole - first).matrix, rest.matrix)


@given(pair=label_pairs(), factor=st.sampled_from([0.0, 0.5, 2.0, 3.0]))
@some
def test_forgetting_is_a_product(pair, factor):
    counts = Counts.from_labels(*pair, matrix=True)
    weights = np.full(len(pair[0]), factor)
    weighted = Counts.from_labels(*pair, sample_weight=weights, matrix=True)
    for product in (counts * factor, factor * counts, np.float64(factor) * counts):
        assert product == weighted
        np.testing.assert_array_equal(product.matrix, weighted.matrix)


@pytest.mark.parametrize("copied", [lambda c: c.copy(), lambda c: c * 1, lambda c: c + c - c])
def test_a_copy_goes_its_own_way(copied):
    counts = Counts.from_confusion([[5, 1], [2, 4]])
    copy = copied(counts)
    assert copy == counts
    copy.add(1, 0)
    copy.tp[0] = 99.0
    assert counts == Counts.from_confusion([[5, 1], [2, 4]])
    np.testing.assert_array_equal(counts.matrix, [[5, 1], [2, 4]])


def test_counts_hold_arrays_of_their_own():
    tp = np.array([1.0, 2.0])
    counts = Counts(tp, [2, 2], [2, 2], 5)
    tp[0] = 77.0
    assert counts.tp.tolist() == [1.0, 2.0]


def test_equality_looks_at_every_cell():
    counts = Counts([1, 2], [3, 4], [5, 6], 10)
    assert counts == Counts([1, 2], [3, 4], [5, 6], 10)
    others = [
        Counts([0, 2], [3, 4], [5, 6], 10),
        Counts([1, 2], [3, 5], [5, 6], 10),
        Counts([1, 2], [3, 4], [5, 7], 10),
        Counts([1, 2], [3, 4], [5, 6], 11),
        Counts([1, 2, 0], [3, 4, 0], [5, 6, 0], 10),
    ]
    assert all(counts != other for other in others)
    assert counts != "counts"
    with pytest.raises(TypeError, match="unhashable"):
        hash(counts)


def test_counts_of_other_sizes_or_kinds_cannot_be_added():
    with pytest.raises(ValueError, match="same number of labels only, got 2 and 3"):
        Counts.zeros(2) + Counts.zeros(3)
    with pytest.raises(TypeError):
        Counts.zeros(2) + 1
    with pytest.raises(ValueError, match="factor of Counts"):
        Counts.zeros(2) * -1


def test_repr_is_short_and_shows_the_counts():
    assert repr(Counts([1], [2], [3], 4)) == "Counts(n=4, tp=[1.], predicted=[2.], positive=[3.])"
    assert len(repr(Counts(*np.zeros((3, 10_000)), 1))) < 200


@pytest.mark.parametrize(
    ("true", "predicted", "message"),
    [
        ([[0, 2]], [[0, 1]], "y_true must hold numbers from 0 to 1, got 2.0"),
        ([[np.nan, np.nan]], [[0, 1]], "y_true must have a label that is known"),
        ([[0, 1]], [[0, np.nan]], "y_pred must hold only 0 and 1, got nan"),
        ([[0, 1]], [[0, 0.5]], "y_pred must hold only 0 and 1, got 0.5"),
        ([[0, 1]], [[0, 1, 1]], "must have one shape"),
        ([0, 1], [[0, 1]], "must have one shape"),
        ([0, -1], [0, 1], "class ids in y_true of Counts.from_labels must be whole numbers"),
        ([0, 1.5], [0, 1], "class ids in y_true of Counts.from_labels must be whole numbers"),
        (["a", "b"], [0, 1], r"y_true must hold numbers, got the classes .* pass class ids from 0"),
        (np.array(["a", "b"], dtype=object), [0, 1], "pass class ids from 0"),
        ([None, 1], [0, 1], "y_true must be numbers"),
        (np.zeros((0, 2)), np.zeros((0, 2)), "at least one row"),
        (np.zeros((2, 0)), np.zeros((2, 0)), "at least one row and label"),
    ],
)
def test_what_is_no_label_is_refused(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        Counts.from_labels(true, predicted)


@pytest.mark.parametrize("side", [0, 1])
def test_entries_stored_twice_are_one_label_of_their_sum(side):
    # Stored as 1 + 1, the value there is 2, which is no label.
    twice = sparse.csr_array(([1.0, 1.0], [0, 0], [0, 2]), shape=(1, 2))
    pair = [sparse.csr_array([[1.0, 0.0]])] * 2
    pair[side] = twice
    with pytest.raises(ValueError, match="got 2"):
        Counts.from_labels(*pair)


@given(pair=label_pairs())
@settings(max_examples=10)
def test_counting_changes_nothing_it_is_given(pair):
    for layout in (np.asarray, lambda y: sparse.csr_array(y.astype(float))):
        true, predicted = map(layout, pair)
        kept = true.copy(), predicted.copy()
        omma.metric("macro_f1").score(true, predicted)
        for given_one, before in zip((true, predicted), kept, strict=True):
            parts = ("data", "indices", "indptr") if sparse.issparse(true) else ("T",)
            for part in parts:
                np.testing.assert_array_equal(getattr(given_one, part), getattr(before, part))


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, -1e-6])
@pytest.mark.parametrize("name", ["tp", "predicted", "positive", "n", "matrix"])
def test_counts_are_finite_and_not_negative(name, value):
    good = {"tp": [1.0], "predicted": [1.0], "positive": [2.0], "n": 3.0, "matrix": [[1.0]]}
    odd = {"n": value, "matrix": [[value]]}.get(name, [value])
    with pytest.raises(ValueError, match=f"{name} of Counts must be .*finite number.*got"):
        omma.Counts(**{**good, name: odd})
    with pytest.raises(ValueError, match=r"matrix of Counts.from_confusion must be finite"):
        omma.Counts.from_confusion([[1.0, value], [0.0, 1.0]])


@pytest.mark.parametrize("value", ["a", ["a"], [[1.0], [1.0, 2.0]], None, {}])
def test_counts_are_numbers(value):
    with pytest.raises((TypeError, ValueError), match="tp of Counts must"):
        omma.Counts(value, [1.0], [1.0], 1.0)


@given(
    parts=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1e12)), min_size=1, max_size=20),
    data=st.data(),
)
def test_what_was_added_can_be_taken_away_in_any_order(parts, data):
    every = [omma.Counts([soft * n], [n], [soft * n], n, [[soft * n]]) for soft, n in parts]
    total = every[0]
    for one in every[1:]:
        total = total + one
    left = total
    for one in data.draw(st.permutations(every)):
        left = left - one
    assert left.n == pytest.approx(0, abs=1e-9 * (1 + total.n))
    np.testing.assert_allclose(left.tp, 0, atol=1e-9 * (1 + total.n))
    assert left.copy() == left
    Counts(left.tp, left.predicted, left.positive, max(left.n, 0.0) + total.n)  # no error

"""A rule: what it predicts, its thresholds, and that it keeps."""

import dataclasses
import doctest
import json
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from rules_elsewhere import odd_rows, odd_rule
from scipy import sparse
from strategies import stream

import omma
from omma import Rule

# Few different values, so that gains tie and vanish often.
weights = st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0])
chances = st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.75, 1.0])


@st.composite
def rules_and_rows(draw):
    m = draw(st.integers(1, 6))
    k = draw(st.one_of(st.none(), st.integers(1, m)))
    slope, offset = draw(hnp.arrays(np.float64, (2, m), elements=weights))
    eta = draw(hnp.arrays(np.float64, (draw(st.integers(1, 4)), m), elements=chances))
    return Rule(slope, offset, k), eta


def chosen(rule, eta):
    gains = rule.slope * eta + rule.offset
    return np.array([naive.choose(*row, rule.k) for row in zip(gains, eta, strict=True)])


@given(case=rules_and_rows())
@settings(max_examples=300)
def test_a_rule_chooses_as_the_textbook_does(case):
    rule, eta = case
    expected = chosen(rule, eta)
    np.testing.assert_array_equal(rule.predict(eta), expected)
    np.testing.assert_array_equal(rule.predict(sparse.csr_array(eta)).toarray(), expected)


@pytest.mark.parametrize("m", [8, 15, 16, 17, 33, 40, 100])
@pytest.mark.parametrize("ties", [False, True])
def test_wide_rows_are_chosen_alike(m, ties):
    # The kernels take other ways to the k best when a row or a budget is large.
    rng = np.random.default_rng(m)
    eta = rng.random((60, m)) * (rng.random((60, m)) < rng.random((60, 1)))
    slope, offset = rng.normal(size=(2, m))
    if ties:
        eta, slope, offset = np.round(eta * 3) / 3, np.ones(m), np.zeros(m)
    stored = sparse.csr_array(eta)
    for k in (None, 1, 2, 3, 7, 8, 9, m // 2, m - 1, m):
        if k is None or k <= m:
            rule = Rule(slope, offset, k)
            expected = chosen(rule, eta)
            np.testing.assert_array_equal(rule.predict(eta), expected)
            np.testing.assert_array_equal(rule.predict(stored).toarray(), expected)


def test_a_gain_of_exactly_zero_is_predicted():
    rule = Rule([1.0, 1.0, 0.0], [-0.5, -0.25, 0.0])
    assert rule.predict([0.5, 0.125, 0.1]).tolist() == [1, 0, 1]


def test_equal_gains_go_to_the_lowest_labels():
    assert Rule(np.ones(5), np.zeros(5), 2).predict([0.1, 0.5, 0.5, 0.5, 0.2]).tolist() == [
        0, 1, 1, 0, 0,
    ]  # fmt: skip


def test_a_label_of_probability_zero_only_fills_up():
    always = Rule(np.ones(4), np.full(4, 9.0))
    eta = np.array([0.0, 0.3, 0.0, 0.1])
    assert always.predict(eta).tolist() == [0, 1, 0, 1]
    # The two candidates first, whatever they gain; then the lowest others.
    for offset in (9.0, -9.0):
        rule = Rule(np.ones(4), np.full(4, offset), 3)
        assert rule.predict(eta).tolist() == [1, 1, 0, 1]
    assert Rule(np.ones(4), np.zeros(4), 4).predict(np.zeros(4)).tolist() == [1, 1, 1, 1]
    assert Rule(np.ones(4), np.zeros(4), 2).predict(np.zeros(4)).tolist() == [1, 1, 0, 0]


def test_stored_zeros_are_zeros():
    stored = sparse.csr_array(([0.0, 0.4, 0.0], [0, 1, 2], [0, 3]), shape=(1, 3))
    assert Rule(np.ones(3), np.ones(3)).predict(stored).toarray().tolist() == [[0, 1, 0]]
    assert Rule(np.ones(3), np.ones(3), 1).predict(stored).toarray().tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("slope", "offset", "expected"),
    [
        (2.0, -0.5, 0.25),
        (1.0, 0.5, -0.5),
        (1.0, -3.0, 3.0),
        (1.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, -0.0, 0.0),
        (-0.0, 1.0, 0.0),
        (0.0, -1.0, np.inf),
        (-1.0, 0.5, np.nan),
        (-1.0, -0.5, np.nan),
    ],
)
def test_thresholds_say_from_where_a_label_is_predicted(slope, offset, expected):
    found = Rule([slope], [offset]).thresholds
    np.testing.assert_array_equal(found, [expected])
    assert not np.signbit(found[0]) or found[0] < 0  # never minus zero


def test_thresholds_of_a_vanishing_slope_are_infinite_without_a_warning():
    assert Rule([1e-310], [-1.0]).thresholds.tolist() == [np.inf]


@given(case=rules_and_rows())
def test_thresholds_decide_as_the_rule_does(case):
    rule, eta = case
    if rule.k is None and (rule.slope >= 0).all():
        by_hand = (eta >= rule.thresholds) & (eta > 0)  # exact: all numbers are binary fractions
        np.testing.assert_array_equal(rule.predict(eta), by_hand)


def test_a_rule_with_a_budget_has_no_thresholds():
    with pytest.raises(ValueError, match=r"rule with a budget .*k=2.* use rule\.predict"):
        Rule([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 2).thresholds  # noqa: B018


def test_a_deployed_rule_needs_no_omma():
    eta, y = stream(n=60, m=5, zeros=0.0)
    rule = omma.replay(omma.OMMA("macro_f1"), eta, y).rule
    np.testing.assert_array_equal(rule.predict(eta), rule.slope * eta + rule.offset >= 0)
    rule = omma.replay(omma.OMMA("macro_f1", k=2), eta, y).rule
    best = np.argsort(-(rule.slope * eta + rule.offset), axis=1, kind="stable")[:, :2]
    np.testing.assert_array_equal(np.sort(best), np.nonzero(rule.predict(eta))[1].reshape(-1, 2))


@given(case=rules_and_rows(), exact=st.floats(allow_nan=False, allow_infinity=False))
def test_json_reads_back_the_same_bits(case, exact):
    rule, eta = case
    rule = Rule(rule.slope, np.full(rule.m, exact), rule.k)
    again = Rule.from_json(rule.to_json())
    assert again == rule
    assert again.offset.tobytes() == rule.offset.tobytes()
    np.testing.assert_array_equal(again.predict(eta), rule.predict(eta))


def test_json_of_a_rule_with_costs_reads_back():
    rule = Rule([0.0, 0.0], [0.0, 0.0], 1, [[0.0, -1.0], [-20.0, 0.0]])
    assert Rule.from_json(rule.to_json()) == rule
    assert Rule.from_json(rule.to_json()) != Rule([0.0, 0.0], [0.0, 0.0], 1)


def test_budgets_may_be_numbers_of_numpy():
    for budget in ({"k": np.int64(2)}, {"at_most": np.int64(2)}):
        rule = Rule([1.0, 1.0], [0.0, 0.0], **budget)
        assert Rule.from_json(rule.to_json()) == rule
        policy = omma.Auto("macro_f1", **budget)
        assert repr(policy) == repr(omma.Auto("macro_f1", **dict.fromkeys(budget, 2)))


def test_json_of_a_budget_that_came_from_numpy():
    rule = Rule([1.0, 1.0], [0.0, 0.0], np.int64(1))
    assert Rule.from_json(rule.to_json()) == rule


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "other"}', '{"format": "omma-rule-1"}']
)
def test_text_that_is_no_rule_is_refused(text):
    with pytest.raises(ValueError, match=r"Rule\.from_json must"):
        Rule.from_json(text)


def test_a_rule_is_frozen():
    given_slope = np.array([1.0, 1.0])
    rule = Rule(given_slope, [0.0, 0.0], 1, np.eye(2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.k = 2
    for array in (rule.slope, rule.offset, rule.matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0
    given_slope[0] = 5.0  # and it holds arrays of its own
    assert rule.slope[0] == 1.0


def test_equality_looks_at_everything():
    rule = Rule([1.0, 2.0], [0.0, 0.5], 1)
    assert rule == Rule([1.0, 2.0], [0.0, 0.5], 1)
    others = [
        Rule([1.0, 3.0], [0.0, 0.5], 1),
        Rule([1.0, 2.0], [0.0, 0.6], 1),
        Rule([1.0, 2.0], [0.0, 0.5], 2),
        Rule([1.0, 2.0], [0.0, 0.5]),
        Rule([1.0, 2.0], [0.0, 0.5], 1, np.eye(2)),
        json,
    ]
    assert all(rule != other for other in others)


def test_one_row_gives_one_row_and_one_label_a_vector():
    assert Rule([1.0, 1.0], [-0.5, -0.5]).predict([0.7, 0.2]).tolist() == [1, 0]
    one = Rule([1.0], [-0.5])
    assert one.predict([0.7, 0.2]).tolist() == [1, 0]
    assert one.predict([[0.7], [0.2]]).tolist() == [[1], [0]]


def check_costs(slope, offset, eta, matrix):
    rule = Rule(slope, offset, 1, matrix)
    gains = slope * eta + offset + eta @ matrix  # exact: all numbers are binary fractions
    expected = np.eye(3)[gains.argmax(axis=1)]
    np.testing.assert_array_equal(rule.predict(eta), expected)
    np.testing.assert_array_equal(rule.predict(sparse.csr_array(eta)).toarray(), expected)


rows = hnp.arrays(np.float64, (5, 3), elements=chances)
costs = hnp.arrays(np.float64, (3, 3), elements=weights)


@given(eta=rows, matrix=costs)
def test_with_costs_every_label_is_a_candidate(eta, matrix):
    check_costs(np.zeros(3), np.zeros(3), eta, matrix)


@given(eta=rows, matrix=costs, pair=hnp.arrays(np.float64, (2, 3), elements=weights))
def test_costs_add_to_slope_and_offset_of_every_label(eta, matrix, pair):
    check_costs(*pair, eta, matrix)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0, 2.0]), "of one length, got 1 and 2"),
        (([1.0], [np.nan]), "offset of Rule must be finite"),
        (([1.0], [0.0], 2), "k of Rule must be at most"),
        (([1.0, 1.0], [0.0, 0.0], 0), "k of Rule must be a whole number"),
        (([1.0, 1.0], [0.0, 0.0], None, np.eye(2)), "matrix of Rule needs a budget"),
        (([1.0, 1.0], [0.0, 0.0], 1, np.eye(3)), "matrix of Rule needs a budget"),
    ],
)
def test_what_is_no_rule_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Rule(*arguments)


@pytest.mark.parametrize(
    "eta", [[0.5, np.nan], [0.5, 1.5], [-0.1, 0.5], [[0.5, np.inf]], [0.1, 0.2, 0.3], 0.5]
)
def test_what_is_no_row_of_probabilities_is_refused(eta):
    with pytest.raises(ValueError, match=r"eta of Rule\.predict must"):
        Rule([1.0, 1.0], [0.0, 0.0]).predict(eta)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 100_000, "must be JSON, got too many brackets inside each other"),
        ('{"a": ' * 100_000, "must be JSON, got too many brackets inside each other"),
        ("[" * 500 + "]" * 500, 'must be an object with "format"'),
        ('{"k": ' + "9" * 400 + "}", "a whole number of 400 digits is too large"),
        ('{"k": ' + "9" * 5000 + "}", "a whole number of 5000 digits is too large"),
        ("x" * 10_000_000, "must be JSON, got 'xxxx"),
        (None, "must be JSON, got None"),
        (b"\xff\xfe\x00", "must be JSON, got "),
    ],
)
def test_text_that_is_no_rule(text, sentence):
    with pytest.raises(ValueError, match=r"text of Rule\.from_json") as caught:
        Rule.from_json(text)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 300


def test_numbers_beyond_floats_are_no_slope():
    with pytest.raises(ValueError, match="slope of Rule must be finite numbers"):
        Rule([10**400], [0.0])
    whole = '{"format": "omma-rule-1", "k": null, "slope": [%s], "offset": [0]}'
    for number in ("1e999", "Infinity", "NaN", '"a"', "[[[[]]]]", "null"):
        with pytest.raises(ValueError, match="slope of Rule must be finite numbers"):
            Rule.from_json(whole % number)


@pytest.mark.parametrize("kind", ["<f4", "<f8", ">f8", "<f2", "g", "i1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("m", [1, 3, 70_000])  # more labels than are decided at once
def test_cuts_are_those_of_the_compiled_rule_to_the_bit(kind, order, m):
    rng = np.random.default_rng(m)
    eta = rng.integers(0, 8, size=(5, m)) / 7
    eta = np.asarray(eta, dtype=kind, order=order)
    slope = rng.normal(size=m)
    values = np.asarray(eta[rng.integers(5, size=m), np.arange(m)], dtype=np.float64)
    offset = -slope * values  # ties, or a rounding beside them
    rule = Rule(slope, offset)
    by_kernels = sparse.csr_array(np.asarray(eta, dtype=np.float64))
    expected = rule.predict(by_kernels).toarray()
    found = rule.predict(eta)
    assert found.dtype == np.int8
    assert np.array_equal(found, expected)


# Odd probabilities, and rules that calibrate


@pytest.fixture(scope="module")
def recipe():
    """``decide`` of the page on deploying, as it stands there."""
    page = Path(__file__).parents[1] / "docs" / "recipes" / "deploying.md"
    names = {}
    for one in doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8")):
        if one.source.startswith(("import json", "from math", "def ")):
            exec(one.source, names)
    return names["decide"]


@pytest.mark.parametrize("kind", ["none", "k", "a", "m"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_recipe_of_the_docs_decides_as_the_rule_does(recipe, kind, dtype):
    rng = np.random.default_rng(0)
    for _ in range(40):
        m = int(rng.integers(1, 7))
        rule, eta = odd_rule(rng, m, kind), odd_rows(rng, 30, m).astype(dtype)
        text = json.loads(rule.to_json())
        decided = [recipe(text, row) for row in eta.tolist()]
        assert decided == [np.flatnonzero(row).tolist() for row in rule.predict(eta)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_thresholds_take_calibration_in_at_both_ends_too(dtype):
    """Probabilities beyond 1e-12 and 1 - 1e-7 are calibrated as these: no cut lies between them."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        rule = odd_rule(rng, 4, "none", calibrate=True)
        cut = rng.choice([-0.1, 0.0, 1e-14, 1e-9, 0.5, 1 - 1e-9, 1 - 1e-14, 1.1], 4)
        rule = dataclasses.replace(rule, offset=-rule.slope * cut)
        eta = odd_rows(rng, 100, 4).astype(dtype)
        np.testing.assert_array_equal(rule.folded().predict(eta), rule.predict(eta))

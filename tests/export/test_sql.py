"""Databases decide as the rule does: DuckDB and SQLite by running, the others by their grammar."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rules_elsewhere import calibrated, calibrated_gains, decided

import omma
from omma.export.sql import DIALECTS

NAMES = ["sports", "it's", 'the "news"', "back\\slash", "a.b", "last"]


class Sqlite:
    """A database in memory, of one table."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def load(self, columns, rows):
        listed = ", ".join(columns)
        self.connection.execute(f"CREATE TABLE probabilities ({listed})")
        marks = ", ".join("?" for _ in columns)
        self.connection.executemany(f"INSERT INTO probabilities VALUES ({marks})", rows)

    def query(self, text):
        """Asked once, and closed: from Python 3.13 on it is an error to leave it open."""
        found = self.connection.execute(text).fetchall()
        self.connection.close()
        return found


class DuckDB(Sqlite):
    """The same, in DuckDB."""

    def __init__(self):
        duckdb = pytest.importorskip("duckdb", reason="no DuckDB: pip install 'omma-learn[sql]'")
        self.connection = duckdb.connect()


DATABASES = {
    "sqlite": (Sqlite, "REAL", "TEXT"),
    "duckdb": (DuckDB, "DOUBLE", "VARCHAR"),
}


def long_rows(eta, labels, stored):
    """(id, label, eta) of what is stored, and of the first label of each row."""
    return [
        (i, labels[j], float(eta[i, j]))
        for i in range(len(eta))
        for j in range(eta.shape[1])
        if stored or j == 0 or eta[i, j] > 0
    ]


def in_database(dialect, rule, eta, stored=True):
    kind, real, text = DATABASES[dialect]
    database = kind()
    labels = rule.names or list(range(rule.m))
    columns = ("id INTEGER", f"label {text if rule.names else 'INTEGER'}", f"eta {real}")
    database.load(columns, long_rows(eta, labels, stored))
    found = np.zeros(eta.shape, dtype=int)
    for i, label in database.query(rule.to_sql(dialect)):
        found[i, labels.index(label)] += 1
    return found


@pytest.mark.parametrize("dialect", DATABASES)
@given(case=decided(), named=st.booleans(), stored=st.booleans())
@settings(max_examples=60)
def test_the_long_layout_decides_alike(dialect, case, named, stored):
    rule, eta, expected = case
    rule = rule.named(NAMES[: rule.m]) if named else rule
    np.testing.assert_array_equal(in_database(dialect, rule, eta, stored), expected)


@pytest.mark.parametrize("dialect", DATABASES)
@given(case=decided(budgets=False), named=st.booleans())
@settings(max_examples=40)
def test_the_wide_layout_decides_alike(dialect, case, named):
    rule, eta, expected = case
    kind, real, _ = DATABASES[dialect]
    names = NAMES[: rule.m] if named else [f"p{j}" for j in range(rule.m)]
    rule = rule.named(names) if named else rule
    database = kind()
    quoted = [DIALECTS[dialect].column(name) for name in names]
    columns = ["id INTEGER", *(f"{name} {real}" for name in quoted)]
    database.load(columns, [(i, *row) for i, row in enumerate(eta.tolist())])
    query = rule.to_sql(dialect, layout="wide", columns=None if named else names)
    found = sorted(database.query(query))
    np.testing.assert_array_equal([row[1:] for row in found], expected)


@pytest.mark.parametrize("dialect", DATABASES)
@given(number=st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
@settings(max_examples=200)
def test_numbers_are_read_back_as_they_are(dialect, number):
    if abs(number) > 1e300 or (number and abs(number) < 1e-280):
        return  # beyond what any slope is
    database = DATABASES[dialect][0]()
    ((found,),) = database.query(f"SELECT {DIALECTS[dialect].number(number)}")
    assert found == number


@pytest.mark.parametrize("dialect", DATABASES)
def test_a_calibration_is_part_of_the_query(dialect):
    g = np.random.default_rng(2)
    for k in (None, 2):
        rule = omma.Rule(g.random(4) + 0.5, -g.random(4), k)
        rule = calibrated(rule, (0.7, -0.2, g.normal(size=4), 2.0))
        eta = np.vstack((g.random((200, 4)), np.ones(4)))
        gains = calibrated_gains(rule, eta)
        expected = gains >= 0 if k is None else gains >= np.sort(gains, axis=1)[:, [-k]]
        np.testing.assert_array_equal(in_database(dialect, rule, eta), expected)


SQLGLOT = {"postgresql": "postgres", "spark": "spark", "bigquery": "bigquery"}


@pytest.mark.parametrize("layout", ["long", "wide"])
@pytest.mark.parametrize("dialect", SQLGLOT)
def test_other_databases_can_read_the_query(dialect, layout):
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot, which knows grammars, is missing")
    budgets = ({}, {"k": 2}, {"at_most": 2})
    for budget in budgets[:1] if layout == "wide" else budgets:
        rule = omma.Rule(np.ones(6), -np.full(6, 0.5), names=NAMES, **budget)
        for one in (rule, calibrated(rule.named(NAMES), (1.0, 0.1, np.zeros(6)))):
            query = one.to_sql(dialect, table="my.scores", layout=layout)
            assert len(sqlglot.parse(query, dialect=SQLGLOT[dialect])) == 1


def test_names_are_quoted_as_each_database_does():
    rule = omma.Rule([1.0, 1.0], [-0.5, -0.5], names=["it's", "b"])
    duck = rule.to_sql("duckdb", table="a.scores", row_id="row id")
    assert '"a"."scores"' in duck
    assert 'p."row id"' in duck
    assert "'it''s'" in duck
    assert "'it\\'s'" in rule.to_sql("bigquery")
    assert "`scores`" in rule.to_sql("spark", table="scores")


@pytest.mark.parametrize("dialect", ["bigquery", "spark"])
def test_lines_do_not_end_within_a_text(dialect):
    """BigQuery refuses a literal with a line end in it, and both escape by a backslash."""
    names = ["a\rb", "a\r\nb", "a\nb", "\\r"]
    query = omma.Rule([1.0] * 4, [-0.5] * 4, names=names).to_sql(dialect)
    assert "\r" not in query
    for text in (r"'a\rb'", r"'a\r\nb'", r"'a\nb'", r"'\\r'"):
        assert text in query


def test_bad_options_get_a_sentence():
    rule = omma.Rule([1.0, 1.0], [-0.5, -0.5])
    with pytest.raises(ValueError, match=r"dialect of Rule.to_sql must be 'postgresql' or"):
        rule.to_sql("oracle")
    with pytest.raises(ValueError, match=r"layout of Rule.to_sql must be 'long' for a rule with"):
        omma.Rule([1.0, 1.0], [-0.5, -0.5], 1).to_sql("duckdb", layout="wide")
    with pytest.raises(ValueError, match=r"got 'wide' with at_most=1"):
        omma.Rule([1.0, 1.0], [-0.5, -0.5], at_most=1).to_sql("duckdb", layout="wide")
    with pytest.raises(ValueError, match=r"columns of Rule.to_sql must name the 2 columns"):
        rule.to_sql("duckdb", layout="wide")
    with pytest.raises(ValueError, match=r"columns of Rule.to_sql must be None in the long"):
        rule.to_sql("duckdb", columns=["a", "b"])
    with pytest.raises(TypeError, match=r"table of Rule.to_sql must be a name, got 3"):
        rule.to_sql("duckdb", table=3)
    costs = omma.Rule([1.0, 1.0], [0.0, 0.0], 1, [[0.0, -1.0], [-1.0, 0.0]])
    with pytest.raises(ValueError, match="got a rule with a table of costs"):
        costs.to_sql("duckdb")

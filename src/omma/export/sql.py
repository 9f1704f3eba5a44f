"""A rule as a SELECT that decides where the probabilities are, in five SQL dialects."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from omma._validate import check_choice, shown
from omma.export import seats_of
from omma.kernels.calibrate import STRAIGHT
from omma.kernels.layout import LEAST, MOST

CHUNK = 52  # halvings written as one division: 2**52 is read without rounding everywhere


def _number(value: float) -> str:
    """A double in exponent form: without it databases read a decimal of fixed places."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _quotient(value: float) -> str:
    """A double as a whole number and halvings: SQLite rounds some decimals to a neighbour.

    >>> _quotient(0.75)
    '(3.0 / 4.0)'
    """
    mantissa, exponent = math.frexp(value)
    whole, halvings = int(math.ldexp(mantissa, 53)), 53 - exponent
    while halvings > 0 and whole % 2 == 0 and whole:
        whole, halvings = whole // 2, halvings - 1
    if not whole or halvings <= 0:
        return f"{value:.1f}"
    # A division by a power of two is exact, and a subnormal number needs more than one.
    steps = [CHUNK] * (halvings // CHUNK) + [halvings % CHUNK] * bool(halvings % CHUNK)
    return f"({whole}.0{''.join(f' / {2**step}.0' for step in steps)})"


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    """BigQuery ends a line, and so the literal, at either sign of a line end."""
    # Backslashes first: those that follow are put in by us.
    marked = text.replace("\\", "\\\\").replace("'", "\\'")
    marked = marked.replace("\n", "\\n").replace("\r", "\\r")
    return f"'{marked}'"


def _values(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table written out: ``VALUES`` under a list of columns."""
    lines = ",\n    ".join(f"({', '.join(row)})" for row in rows)
    return f"omma_rule({', '.join(columns)}) AS (\n  VALUES\n    {lines}\n)"


def _structs(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as an array of records."""
    first = ", ".join(f"{cell} AS {name}" for cell, name in zip(rows[0], columns, strict=True))
    # BigQuery takes the names of all records from the first.
    lines = [f"STRUCT({first})", *(f"({', '.join(row)})" for row in rows[1:])]
    listed = ",\n    ".join(lines)
    return f"omma_rule AS (\n  SELECT * FROM UNNEST([\n    {listed}\n  ])\n)"


@dataclass(frozen=True)
class Dialect:
    """How a database spells types, names, literals and functions."""

    double: str
    quote: str = '"'
    text: Callable[[str], str] = _doubled
    number: Callable[[float], str] = _number
    table: Callable[[Sequence[str], Sequence[Sequence[str]]], str] = _values
    larger: str = "GREATEST"
    smaller: str = "LEAST"

    def name(self, table: str) -> str:
        """The name of a table: quoted, its parts apart where it has dots."""
        return ".".join(map(self.column, table.split(".")))

    def column(self, name: str) -> str:
        """The name of a column, quoted."""
        mark = self.quote
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    def real(self, expression: str) -> str:
        """An expression in double precision."""
        return f"CAST({expression} AS {self.double})"


DIALECTS = {
    "postgresql": Dialect("DOUBLE PRECISION"),
    "duckdb": Dialect("DOUBLE"),
    "spark": Dialect("DOUBLE", quote="`", text=_escaped),
    "bigquery": Dialect("FLOAT64", quote="`", text=_escaped, table=_structs),
    # SQLite has no GREATEST, and rounds some decimals.
    "sqlite": Dialect("REAL", number=_quotient, larger="MAX", smaller="MIN"),
}


def query_of(
    rule: Any,
    dialect: str,
    table: str,
    layout: str,
    row_id: str,
    label: str,
    eta: str,
    columns: Sequence[str] | None,
) -> str:
    """The rule as a query; ``Rule.to_sql`` says more."""
    owner = "Rule.to_sql"
    check_choice(owner, "dialect", dialect, tuple(DIALECTS))
    check_choice(owner, "layout", layout, ("long", "wide"))
    for parameter, name in (("table", table), ("row_id", row_id), ("label", label), ("eta", eta)):
        if not isinstance(name, str) or not name:
            raise TypeError(f"{parameter} of {owner} must be a name, got {shown(name)}")
    if rule.matrix is not None:
        raise ValueError(
            f"{owner} decides by slope and offset, got a rule with a table of costs: use "
            "Rule.to_onnx or Rule.to_torch"
        )
    words = DIALECTS[dialect]
    if layout == "wide":  # labels are columns: each is decided by itself
        return _wide(rule, words, words.name(table), words.column(row_id), columns, eta)
    if columns is not None:
        raise ValueError(
            f"columns of {owner} must be None in the long layout, got {shown(columns)}"
        )
    return _long(
        rule, words, words.name(table), words.column(row_id), words.column(label), words.column(eta)
    )


def _rule_table(rule: Any, words: Dialect) -> str:
    """The rule as a table: a row for each label."""
    rows = []
    for place, numbers in enumerate(_numbers(rule, words)):
        named = str(place) if rule.names is None else words.text(rule.names[place])
        rows.append([str(place), named, *numbers])
    # ``offset`` is a word of SQL, so that the column is called shift.
    columns = ["place", "label", "slope", "shift", "bias"]
    return f"WITH {words.table(columns[: len(rows[0])], rows)}"


def _numbers(rule: Any, words: Dialect) -> list[list[str]]:
    """Slope and offset of each label, and its bias where the rule is calibrated."""
    vectors = [rule.slope, rule.offset]
    if rule.curve is not None:
        _, common, biases, _ = rule.curve
        vectors.append(common + biases)
    return [[words.number(float(x)) for x in label] for label in zip(*vectors, strict=True)]


def _gain(rule: Any, words: Dialect, eta: str, slope: str, shift: str, bias: str = "") -> str:
    """The gain of a label, in double precision."""
    used = words.real(eta)  # a column may be a decimal, or single precision
    if rule.curve is not None:
        scale, _, _, squash = rule.curve
        raised = f"{words.larger}({used}, {words.real(words.number(LEAST))})"
        clipped = f"{words.smaller}({raised}, {words.real(words.number(MOST))})"
        logit = f"LN({clipped} / (1 - {clipped}))"
        if squash != STRAIGHT:  # z·r·(2 − r), r = s / max(|z|, s)
            bound = words.real(words.number(squash))
            r = f"({bound} / {words.larger}(ABS({logit}), {bound}))"
            logit = f"({logit} * ({r} * (2 - {r})))"
        scaled = f"{words.real(words.number(scale))} * {logit} + {words.real(bias)}"
        used = f"(1 / (1 + EXP(-({scaled}))))"
    return f"{words.real(slope)} * {used} + {words.real(shift)}"


def _long(rule: Any, words: Dialect, table: str, row_id: str, label: str, eta: str) -> str:
    """A row for each label that is predicted, of a table with a row for each probability."""
    gain = _gain(rule, words, f"p.{eta}", "r.slope", "r.shift", "r.bias")
    seats = seats_of(rule)
    if seats is None:
        return f"""{_rule_table(rule, words)}
SELECT p.{row_id} AS {row_id}, r.label AS {label}
FROM {table} AS p
JOIN omma_rule AS r ON r.label = p.{label}
WHERE p.{eta} > 0 AND {gain} >= 0
ORDER BY p.{row_id}, r.place"""
    candidates = f"""omma_candidates AS (
  SELECT p.{row_id} AS id, r.place AS place, r.label AS label, {gain} AS gain
  FROM {table} AS p
  JOIN omma_rule AS r ON r.label = p.{label}
  WHERE p.{eta} > 0
)"""
    # The best labels of each row first.
    ranked = """omma_ranked AS (
  SELECT
    id, place, label,
    ROW_NUMBER() OVER (PARTITION BY id ORDER BY gain DESC, place) AS seat
  FROM omma_candidates
  WHERE gain >= 0
)"""
    if rule.k is not None:
        # Other labels fill up: of those that are no candidates the first k are enough.
        ranked = f"""omma_others AS (
  SELECT i.id AS id, r.place AS place, r.label AS label
  FROM (SELECT DISTINCT {row_id} AS id FROM {table}) AS i
  CROSS JOIN omma_rule AS r
  LEFT JOIN omma_candidates AS c ON c.id = i.id AND c.place = r.place
  WHERE r.place < {rule.k} AND c.place IS NULL
),
omma_all AS (
  SELECT id, place, label, 0 AS filler, gain FROM omma_candidates
  UNION ALL
  SELECT id, place, label, 1 AS filler, {words.real("0")} AS gain FROM omma_others
),
omma_ranked AS (
  SELECT
    id, place, label,
    ROW_NUMBER() OVER (PARTITION BY id ORDER BY filler, gain DESC, place) AS seat
  FROM omma_all
)"""
    return f"""{_rule_table(rule, words)},
{candidates},
{ranked}
SELECT id AS {row_id}, label AS {label}
FROM omma_ranked
WHERE seat <= {seats}
ORDER BY id, place"""


def _wide(
    rule: Any, words: Dialect, table: str, row_id: str, columns: Sequence[str] | None, eta: str
) -> str:
    """A column of decisions for each column of probabilities."""
    if seats_of(rule) is not None:
        budget = "at_most" if rule.k is None else "k"
        raise ValueError(
            "layout of Rule.to_sql must be 'long' for a rule with a budget, got 'wide' with "
            f"{budget}={seats_of(rule)}"
        )
    decisions = []
    for name, numbers in zip(_columns(rule, columns, eta), _numbers(rule, words), strict=True):
        column = words.column(name)
        gain = _gain(rule, words, column, *numbers)
        decisions.append(f"  CASE WHEN {column} > 0 AND {gain} >= 0 THEN 1 ELSE 0 END AS {column}")
    listed = ",\n".join(decisions)
    return f"SELECT\n  {row_id},\n{listed}\nFROM {table}"


def _columns(rule: Any, columns: Sequence[str] | None, eta: str) -> list[str]:
    if columns is None:
        if rule.names is not None:
            return list(rule.names)
        columns = [eta] if rule.m == 1 else None  # for one label, its column is named already
    if columns is None or isinstance(columns, str) or len(set(columns)) != rule.m:
        raise ValueError(
            f"columns of Rule.to_sql must name the {rule.m} columns of probabilities, got "
            f"{shown(columns)}"
        )
    return list(columns)

"""A rule as a SELECT that decides where the probabilities are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omma._validate import check_choice, shown
from omma.export.dialects import DIALECTS, Dialect
from omma.export.parts import Parts
from omma.kernels.layout import LEAST, MOST


def query_of(
    rule: Any,
    dialect: str,
    *,
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
    for parameter, given in (("table", table), ("row_id", row_id), ("label", label), ("eta", eta)):
        if not isinstance(given, str) or not given:
            raise TypeError(f"{parameter} of {owner} must be a name, got {shown(given)}")
    parts = Parts.of(rule)
    if parts.matrix is not None:
        raise ValueError(
            f"{owner} decides by slope and offset, got a rule with a table of costs: use "
            "Rule.to_onnx or Rule.to_torch"
        )
    words = DIALECTS[dialect]
    if layout == "wide":
        return _wide(parts, words, words.name(table), words.column(row_id), columns, eta)
    if columns is not None:
        raise ValueError(
            f"columns of {owner} must be None in the long layout, got {shown(columns)}"
        )
    names = _Names(words.name(table), words.column(row_id), words.column(label), words.column(eta))
    if parts.at_most is not None:
        return _up_to(parts, words, names)
    return _all_above(parts, words, names) if parts.k is None else _k_best(parts, words, names)


class _Names:
    """What tables and columns are called in the database."""

    def __init__(self, table: str, row_id: str, label: str, eta: str) -> None:
        self.table, self.id, self.label, self.eta = table, row_id, label, eta


def _rule_table(parts: Parts, words: Dialect) -> str:
    """The rule as a table: a row for each label."""
    rows = []
    for place in range(parts.m):
        named = str(place) if parts.names is None else words.text(parts.names[place])
        numbers = [parts.slope[place], parts.offset[place]]
        if parts.bias is not None:
            numbers.append(parts.bias[place])
        rows.append([str(place), named, *(words.number(float(one)) for one in numbers)])
    columns = ["place", "label", "slope", "shift", *(["bias"] if parts.bias is not None else [])]
    return f"WITH {words.table(columns, rows)}"


def _gain(parts: Parts, words: Dialect, eta: str, slope: str, shift: str, bias: str) -> str:
    """The gain of a label, in double precision."""
    used = words.real(eta)
    if parts.scale is not None:
        low = f"{words.larger}({used}, {words.real(words.number(LEAST))})"
        kept = f"{words.smaller}({low}, {words.real(words.number(MOST))})"
        logit = f"LN({kept} / (1 - {kept}))"
        scaled = f"{words.real(words.number(parts.scale))} * {logit} + {words.real(bias)}"
        used = f"(1 / (1 + EXP(-({scaled}))))"
    return f"{words.real(slope)} * {used} + {words.real(shift)}"


def _all_above(parts: Parts, words: Dialect, names: _Names) -> str:
    """Every label whose gain is at least zero."""
    gain = _gain(parts, words, f"p.{names.eta}", "r.slope", "r.shift", "r.bias")
    return f"""{_rule_table(parts, words)}
SELECT p.{names.id} AS {names.id}, r.label AS {names.label}
FROM {names.table} AS p
JOIN omma_rule AS r ON r.label = p.{names.label}
WHERE p.{names.eta} > 0 AND {gain} >= 0
ORDER BY p.{names.id}, r.place"""


def _up_to(parts: Parts, words: Dialect, names: _Names) -> str:
    """The best of those whose gain is at least zero, up to so many a row."""
    gain = _gain(parts, words, f"p.{names.eta}", "r.slope", "r.shift", "r.bias")
    return f"""{_rule_table(parts, words)},
omma_candidates AS (
  SELECT p.{names.id} AS id, r.place AS place, r.label AS label, {gain} AS gain
  FROM {names.table} AS p
  JOIN omma_rule AS r ON r.label = p.{names.label}
  WHERE p.{names.eta} > 0
),
omma_ranked AS (
  SELECT id, place, label, ROW_NUMBER() OVER (PARTITION BY id ORDER BY gain DESC, place) AS seat
  FROM omma_candidates
  WHERE gain >= 0
)
SELECT id AS {names.id}, label AS {names.label}
FROM omma_ranked
WHERE seat <= {parts.at_most}
ORDER BY id, place"""


def _k_best(parts: Parts, words: Dialect, names: _Names) -> str:
    """The k best labels of each row; the lowest others fill up, of which the first k are enough."""
    gain = _gain(parts, words, f"p.{names.eta}", "r.slope", "r.shift", "r.bias")
    return f"""{_rule_table(parts, words)},
omma_candidates AS (
  SELECT p.{names.id} AS id, r.place AS place, r.label AS label, {gain} AS gain
  FROM {names.table} AS p
  JOIN omma_rule AS r ON r.label = p.{names.label}
  WHERE p.{names.eta} > 0
),
omma_others AS (
  SELECT i.id AS id, r.place AS place, r.label AS label
  FROM (SELECT DISTINCT {names.id} AS id FROM {names.table}) AS i
  CROSS JOIN omma_rule AS r
  LEFT JOIN omma_candidates AS c ON c.id = i.id AND c.place = r.place
  WHERE r.place < {parts.k} AND c.place IS NULL
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
)
SELECT id AS {names.id}, label AS {names.label}
FROM omma_ranked
WHERE seat <= {parts.k}
ORDER BY id, place"""


def _wide(
    parts: Parts, words: Dialect, table: str, row_id: str, columns: Sequence[str] | None, eta: str
) -> str:
    """A column of decisions for each column of probabilities."""
    if parts.k is not None or parts.at_most is not None:
        given_one = f"k={parts.k}" if parts.at_most is None else f"at_most={parts.at_most}"
        raise ValueError(
            "layout of Rule.to_sql must be 'long' for a rule with a budget, got 'wide' with "
            f"{given_one}"
        )
    given = _columns(parts, columns, eta)
    decisions = []
    for place, name in enumerate(given):
        numbers = [parts.slope[place], parts.offset[place]]
        bias = 0.0 if parts.bias is None else float(parts.bias[place])
        slope, shift = (words.number(float(one)) for one in numbers)
        column = words.column(name)
        gain = _gain(parts, words, column, slope, shift, words.number(bias))
        decisions.append(f"  CASE WHEN {column} > 0 AND {gain} >= 0 THEN 1 ELSE 0 END AS {column}")
    listed = ",\n".join(decisions)
    return f"SELECT\n  {row_id},\n{listed}\nFROM {table}"


def _columns(parts: Parts, columns: Sequence[str] | None, eta: str) -> list[str]:
    if columns is None:
        if parts.names is not None:
            return list(parts.names)
        columns = [eta] if parts.m == 1 else None
    if columns is None or isinstance(columns, str) or len(set(columns)) != parts.m:
        raise ValueError(
            f"columns of Rule.to_sql must name the {parts.m} columns of probabilities, got "
            f"{shown(columns)}"
        )
    return list(columns)

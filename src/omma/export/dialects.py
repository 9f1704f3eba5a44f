"""How five databases write the few things that they write differently."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CHUNK = 52  # halvings written as one division: 2**52 is read without rounding everywhere


def _number(value: float) -> str:
    """A double in the exponent form, which no database takes for a decimal of fixed places."""
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
    steps = [CHUNK] * (halvings // CHUNK) + [halvings % CHUNK] * bool(halvings % CHUNK)
    return f"({whole}.0{''.join(f' / {2**step}.0' for step in steps)})"


def _doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    marked = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{marked}'"


def _values(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table written out: ``VALUES`` under a list of columns."""
    lines = ",\n    ".join(f"({', '.join(row)})" for row in rows)
    return f"omma_rule({', '.join(columns)}) AS (\n  VALUES\n    {lines}\n)"


def _structs(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as an array of records."""
    first = ", ".join(f"{one} AS {name}" for one, name in zip(rows[0], columns, strict=True))
    lines = [f"STRUCT({first})", *(f"({', '.join(row)})" for row in rows[1:])]
    listed = ",\n    ".join(lines)
    return f"omma_rule AS (\n  SELECT * FROM UNNEST([\n    {listed}\n  ])\n)"


@dataclass(frozen=True)
class Dialect:
    """The words of a database."""

    double: str
    quote: str = '"'
    text: Callable[[str], str] = _doubled
    number: Callable[[float], str] = _number
    table: Callable[[Sequence[str], Sequence[Sequence[str]]], str] = _values
    larger: str = "GREATEST"
    smaller: str = "LEAST"

    def name(self, given: str) -> str:
        """The name of a table: quoted, its parts apart where it has dots."""
        return ".".join(map(self.column, given.split(".")))

    def column(self, given: str) -> str:
        """A name as it is: quoted."""
        mark = self.quote
        return f"{mark}{given.replace(mark, mark * 2)}{mark}"

    def real(self, expression: str) -> str:
        """An expression in double precision."""
        return f"CAST({expression} AS {self.double})"


DIALECTS = {
    "postgresql": Dialect("DOUBLE PRECISION"),
    "duckdb": Dialect("DOUBLE"),
    "spark": Dialect("DOUBLE", quote="`", text=_escaped),
    "bigquery": Dialect("FLOAT64", quote="`", text=_escaped, table=_structs),
    "sqlite": Dialect("REAL", number=_quotient, larger="MAX", smaller="MIN"),
}

"""Checks of parameters: one sentence with the parameter, its owner, what was expected, what came.

The rows of large arrays are checked where they are read.
"""

import difflib
import math
from collections.abc import Iterable
from importlib import import_module
from numbers import Integral, Real
from typing import Any


def shown(value: Any, limit: int = 60) -> str:
    """A value as an error message shows it: on one line, and not at length."""
    if isinstance(value, str | bytes):
        value = value[: limit + 1]  # a file may be all of one line
    try:
        text = " ".join(repr(value).split())
    except (RecursionError, ValueError):  # too deep, or a number of too many digits
        text = f"something of the type {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(name: str, known: Iterable[str | None], count: int = 3) -> str:
    """', did you mean …?' with the names that look most alike, or nothing."""
    words = [word for word in known if isinstance(word, str)]
    close = difflib.get_close_matches(name, words, n=count, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def repeated(values: Iterable[Any]) -> Any:
    """The first value that has come before; None where all differ.

    >>> repeated("abcb"), repeated("abc")
    ('b', None)
    """
    seen = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def require(package: str, who: str, how: str, name: str | None = None) -> Any:
    """A package that is optional, or a sentence on who needs it and how pip gets it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{who} {name or package}, which is not installed: pip install {how}"
        ) from error


def check_choice(owner: str, parameter: str, value: Any, choices: tuple[str | None, ...]) -> None:
    """One of a few words."""
    if not isinstance(value, str | type(None)) or value not in choices:
        expected = " or ".join(repr(choice) for choice in choices)
        hint = nearest(value, choices) if isinstance(value, str) else ""
        raise ValueError(f"{parameter} of {owner} must be {expected}, got {shown(value)}{hint}")


def check_number(
    owner: str,
    parameter: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    strict: bool = False,
) -> float:
    """A finite real number within bounds; ``strict`` leaves the lower bound out."""
    # A flag passes as a number in Python, and is a mistake here.
    fits = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or value < low or value > high or (strict and value == low):
        if high < math.inf:
            expected = f"a number from {low:g} to {high:g}"
        elif low > -math.inf:
            expected = f"a finite number {'above' if strict else 'of at least'} {low:g}"
        else:
            expected = "a finite number"
        # As Python has it: the wrong type, or a value out of range.
        kind = TypeError if not isinstance(value, Real) else ValueError
        raise kind(f"{parameter} of {owner} must be {expected}, got {shown(value)}")
    return float(value)


def check_positive_int(
    owner: str, parameter: str, value: Any, *, optional: bool = False, least: int = 1
) -> Any:
    """A whole number of at least one, or None where that is allowed; returns it as Python's own."""
    if optional and value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        expected = f"a whole number of at least {least}" + (", or None" if optional else "")
        kind = ValueError if isinstance(value, Integral) else TypeError
        raise kind(f"{parameter} of {owner} must be {expected}, got {shown(value)}")
    return int(value)


def check_seed(owner: str, seed: Any) -> int:
    """A whole number of at least zero."""
    return int(check_positive_int(owner, "seed", seed, least=0))


def check_budget(owner: str, k: int | None, m: int) -> None:
    """A budget cannot exceed the number of labels."""
    if k is not None and k > m:
        raise ValueError(
            f"k of {owner} must be at most the number of labels, which is {m}, got {k}"
        )

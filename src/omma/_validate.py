"""Checks of parameters: each error names the parameter, its owner, what was expected and the value.

The rows of large arrays are checked where they are read.
"""

import difflib
import math
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from numbers import Integral, Real
from typing import Any


def shown(value: Any, limit: int = 60) -> str:
    """A value for an error message: on one line, and shortened."""
    if isinstance(value, str | bytes):
        value = value[: limit + 1]  # a file may be all of one line
    try:
        text = " ".join(repr(value).split())
    except (RecursionError, ValueError):  # too deep, or a number of too many digits
        text = f"something of the type {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(name: str, known: Iterable[str | None], count: int = 3) -> str:
    """'; did you mean …?' with the most similar names, or nothing."""
    words = [word for word in known if isinstance(word, str)]
    close = difflib.get_close_matches(name, words, n=count, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def repeated(values: Iterable[Any]) -> Any:
    """The first value that occurs twice; None where all differ.

    >>> repeated("abcb"), repeated("abc")
    ('b', None)
    """
    return next((value for value, count in Counter(values).items() if count > 1), None)


def require(package: str, who: str, how: str, name: str | None = None) -> Any:
    """Import an optional package; the error says who needs it and how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{who} {name or package}, which is not installed: pip install {how}"
        ) from error


def check_choice(owner: str, parameter: str, value: Any, choices: tuple[str | None, ...]) -> None:
    """Check that a value is one of a few words."""
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
    """Check a finite real number within bounds; ``strict`` excludes the lower bound."""
    # True is a number in Python, and a mistake here.
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
    """Check a whole number of at least ``least``, or None if optional; returns a Python int."""
    if optional and value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        expected = f"a whole number of at least {least}" + (", or None" if optional else "")
        kind = ValueError if isinstance(value, Integral) else TypeError
        raise kind(f"{parameter} of {owner} must be {expected}, got {shown(value)}")
    return int(value)


def check_seed(owner: str, seed: Any) -> int:
    """Check a whole number of at least zero."""
    return int(check_positive_int(owner, "seed", seed, least=0))


def check_budget(owner: str, k: int | None, m: int) -> None:
    """Check that a budget does not exceed the number of labels."""
    if k is not None and k > m:
        raise ValueError(
            f"k of {owner} must be at most the number of labels, which is {m}, got {k}"
        )

"""JSON from files and people: a sentence for everything that is none."""

from __future__ import annotations

import json
from typing import Any

from omma._validate import shown

DIGITS = 300  # of a whole number: those with more are beyond any float


def parse_json(what: str, text: Any) -> Any:
    """What a text of JSON holds; ValueError in one sentence for everything else.

    >>> parse_json("text of example", '{"k": [1, 2.5]}')
    {'k': [1, 2.5]}
    >>> parse_json("text of example", "[" * 100_000)
    Traceback (most recent call last):
    ValueError: text of example must be JSON, got too many brackets inside each other
    """
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError(f"{what} must be JSON, got too many brackets inside each other") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be JSON, got {shown(text)}: {error}") from error


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits is too large")
    return int(text)

"""JSON: one clear sentence for errors, and no NaN in output."""

import json
import math
from typing import Any

from omma._validate import shown

DIGITS = 300  # of a whole number: more are beyond any float, and slow to read


def parse_json(source: str, text: Any) -> Any:
    """Parse JSON; anything else raises a ValueError of one sentence.

    >>> parse_json("text of example", '{"k": [1, 2.5]}')
    {'k': [1, 2.5]}
    >>> parse_json("text of example", "[" * 100_000)
    Traceback (most recent call last):
    ValueError: text of example must be JSON, got too many brackets inside each other
    """
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError(
            f"{source} must be JSON, got too many brackets inside each other"
        ) from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source} must be JSON, got {shown(text)}: {error}") from error


def finite(content: Any) -> Any:
    """The same content with null for NaN and infinity, which JSON lacks.

    >>> finite({"value": float("nan"), "ends": [0.5, float("inf")]})
    {'value': None, 'ends': [0.5, None]}
    """
    if isinstance(content, dict):
        return {name: finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits is too large")
    return int(text)

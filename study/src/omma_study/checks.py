"""Checks of names that everything shares."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def choice(owner: str, name: Any, known: Any) -> Any:
    """The name, if it is known; else an error with the nearest one.

    >>> choice("task", "multilable", ("multilabel", "multiclass"))
    Traceback (most recent call last):
    ...
    ValueError: task must be one of multilabel, multiclass; got 'multilable', did you mean ...?
    """
    if name in known:
        return name
    near = get_close_matches(str(name), list(known), 1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{owner} must be one of {', '.join(known)}; got {name!r}{hint}")


def choices(owner: str, names: Iterable[Any], known: Any) -> None:
    """Raise the same error for the first name that is not known."""
    for name in names:
        choice(owner, name, known)

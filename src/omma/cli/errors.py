"""Errors and warnings of the command line take one line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

# What the library says in the words of Python, in those of the command line.
WORDS = (
    (re.compile(r" of (replay|choose|predict) ha(ve|s) "), r" ha\2 "),
    (re.compile(r"use at_most=(\d+) in place of"), r"pass --at-most \1 in place of"),
    (re.compile(r" \(this is said once\)"), ""),
    (re.compile(r": use omma\.metrics\.smoothed\(.*\), or omma\.Auto"), "; that of Auto is not"),
)


class OneLineErrors(click.Group):
    """A group of commands whose errors take one line: click puts the usage before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line(), _plainly():
            return super().invoke(ctx)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except click.MissingParameter as error:
        # click lists what could be chosen below each other
        raise click.UsageError(" ".join(error.format_message().split())) from error
    except click.UsageError as error:
        error.ctx = None  # without it click has no usage to show
        raise


@contextmanager
def _plainly() -> Iterator[None]:
    """Show what the library warns of as a line, without the place in the code, and once."""
    said: set[str] = set()
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if category is not UserWarning:
                before(message, category, *where, **more)
                return
            text = in_options(str(message))
            if text not in said:
                said.add(text)
                click.echo(f"Note: {text}.", err=True)

        warnings.showwarning = show
        yield


def in_options(text: str) -> str:
    """A warning of the library in the words of the command line.

    >>> in_options("2 of 9 rows of replay have fewer than k=3: use at_most=3 in place of k=3")
    '2 of 9 rows have fewer than k=3: pass --at-most 3 in place of k=3'
    """
    for found, instead in WORDS:
        text = found.sub(instead, text)
    return text

"""Errors of the command line take one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


class OneLineErrors(click.Group):
    """A group of commands whose errors take one line: click puts the usage before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _one_line():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line():
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

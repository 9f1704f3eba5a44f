"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

ENDINGS = (".png", ".svg", ".pdf")


def whole_number(
    name: str, default: int, text: str, least: int = 1
) -> Callable[[Command], Command]:
    """An option that takes a whole number."""
    return click.option(
        name,
        type=click.IntRange(min=least),
        metavar="N",
        default=default,
        show_default=True,
        help=text,
    )


def picture_path(output: Path | None, default: Path) -> Path | None:
    """Where the picture goes: nowhere if nobody asked and it cannot be drawn."""
    path = default if output is None else output
    if path.suffix.lower() not in ENDINGS:
        raise click.BadParameter(
            f"'{path}' must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.",
            param_hint="--output",
        )
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"'{path.parent}' is not a folder.", param_hint="--output")
    from omma.plots import require_matplotlib

    try:
        require_matplotlib()
    except ImportError as error:
        if output is not None:
            raise click.ClickException(str(error)) from error
        click.echo(f"No picture: {error}", err=True)
        return None
    return path

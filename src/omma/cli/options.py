"""Options that several commands have."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

ENDINGS = (".png", ".svg", ".pdf")


def whole_number(
    name: str, default: int, text: str, least: int = 1, most: int | None = None
) -> Callable[[Command], Command]:
    """An option that takes a whole number."""
    return click.option(
        name,
        type=click.IntRange(min=least, max=most),
        metavar="N",
        default=default,
        show_default=True,
        help=text,
    )


def file_option(name: str, metavar: str, text: str) -> Callable[[Command], Command]:
    """An option that takes the path of a file."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option(name, type=kind, metavar=metavar, help=text)


def read_token(path: Path) -> str:
    """The token in the file that ``--token-file`` names."""
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        text = sentence(f"'{path}': {error.strerror}")
        raise click.BadParameter(text, param_hint="--token-file") from error
    if not token or len(token.split()) > 1 or not token.isascii():
        text = f"'{path}' must hold one word of ASCII."
        raise click.BadParameter(text, param_hint="--token-file")
    return token.decode()


raw_cells_option = click.option(
    "--raw-cells",
    is_flag=True,
    help="Write names and ids to CSV as they are; else those that a spreadsheet would run as "
    "formulas get an apostrophe first.",
)


def say(sentence: str) -> None:
    """Tell people something; what programs read is on standard output."""
    click.echo(sentence, err=True)


def check_folder(path: Path, option: str) -> None:
    """Before anything long is run: a file needs a folder to go into."""
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"'{path.parent}' is not a folder.", param_hint=option)
    if path.is_dir():
        raise click.BadParameter(f"'{path}' is a folder.", param_hint=option)


def picture_path(output: Path | None, default: Path, option: str = "--output") -> Path | None:
    """Where the picture goes: nowhere if nobody asked and it cannot be drawn."""
    path = default if output is None else output
    if path.suffix.lower() not in ENDINGS:
        raise click.BadParameter(
            f"'{path}' must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.",
            param_hint=option,
        )
    check_folder(path, option)
    from omma.plots import require_matplotlib

    try:
        require_matplotlib()
    except ImportError as error:
        if output is not None:
            raise click.ClickException(str(error)) from error
        say(f"No picture: {error}")
        return None
    return path


def sentence(what: object) -> str:
    """A text as a sentence that ends once.

    >>> sentence("no such name"), sentence("did you mean f1?")
    ('no such name.', 'did you mean f1?')
    """
    text = str(what)
    return text if text.endswith(("?", ".")) else f"{text}."


@contextmanager
def usage(option: str) -> Iterator[None]:
    """What an option is refused for is bad usage."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.BadParameter(sentence(error), param_hint=option) from error


@contextmanager
def work() -> Iterator[None]:
    """What fails in the work, such as a file that cannot be read, takes one line."""
    try:
        yield
    except OSError as error:
        what = error.strerror or str(error)
        where = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(sentence(where + what)) from error
    except MemoryError as error:
        raise click.ClickException("This does not fit in memory.") from error
    except (ValueError, TypeError, ImportError) as error:
        raise click.ClickException(sentence(error)) from error

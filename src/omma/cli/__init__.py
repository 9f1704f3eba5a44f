"""The command ``omma``: a group whose commands are files of this folder, imported when called."""

import codecs
import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from omma import __version__
from omma._validate import nearest
from omma.cli.options import sentence, with_options

# In the order that the help shows them.
COMMANDS = ("demo", "evaluate", "stream", "serve", "watch", "journal", "report", "list", "warmup")
MOVED = "omma run moved to the package omma-study: pip install omma-study, then omma-study run"


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Errors of usage take one line: click would print the usage before them."""
    try:
        yield
    except click.MissingParameter as error:
        # click writes choices below each other
        raise click.UsageError(" ".join(error.format_message().split())) from error
    except click.UsageError as error:
        error.ctx = None  # without a context click prints no usage
        raise


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show each warning of the library once, as a line without its place in the code."""
    texts: set[str] = set()
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if category is not UserWarning:
                show_other(message, category, *where, **more)
                return
            text = with_options(str(message))
            if text not in texts:
                texts.add(text)
                click.echo(f"Note: {text}.", err=True)

        warnings.showwarning = show
        yield


class Commands(click.Group):
    """A group that imports a command only when it is asked for, and whose errors take one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Redirected output is cp1252 on Windows, which has no η: printing would fail midway.
        for stream in (sys.stdout, sys.stderr):
            # Another kind of stream was put there by a caller: leave it alone.
            if (
                isinstance(stream, io.TextIOWrapper)
                and codecs.lookup(stream.encoding).name != "utf-8"
            ):
                stream.reconfigure(encoding="utf-8", errors=stream.errors)
        with _one_line_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _one_line_errors(), _one_line_warnings():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]  # list is the module omma.cli.list once that command was called

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name == "run":
            raise click.UsageError(MOVED)
        if cmd_name not in COMMANDS:
            hint = nearest(cmd_name, COMMANDS, 1) or f"; there are {', '.join(COMMANDS)}"
            raise click.UsageError(sentence(f"No such command {cmd_name!r}{hint}"))
        command: click.Command = import_module(f"omma.cli.{cmd_name}").command
        return command


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, prog_name="omma")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Decisions that maximize the metric you are judged by.

    \b
    Examples:
        omma demo
        omma evaluate --eta eta.npz --labels y.npz --metric macro_f1
        omma stream --metric macro_f1 < rows.csv
        omma list metrics
    """  # noqa: D301
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())

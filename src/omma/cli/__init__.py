"""The command ``omma``: a group whose commands are files of this folder, imported when called."""

from __future__ import annotations

import codecs
import io
import sys
from importlib import import_module

import click

from omma import __version__
from omma._validate import nearest
from omma.cli.errors import OneLineErrors
from omma.cli.options import sentence

# In the order that the help shows them.
COMMANDS = ("demo", "evaluate", "stream", "serve", "watch", "run", "report", "list", "warmup")


def print_utf8() -> None:
    """Let standard output and error take any letter: tables and help have some that codes lack.

    Redirected output is cp1252 on Windows, which has no η and would end a report in the middle.
    """
    for stream in (sys.stdout, sys.stderr):
        # Anything else was put there by a caller, who knows better.
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


class Commands(OneLineErrors):
    """A group that imports a command only when it is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        print_utf8()  # before anything is printed, help and errors of arguments included
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]  # not list: here that is a command, once it was called

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"omma.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            hint = nearest(args[0], COMMANDS, 1) or f"; there are {', '.join(COMMANDS)}"
            raise click.UsageError(sentence(f"No such command {args[0]!r}{hint}"))
        return super().resolve_command(ctx, args)


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

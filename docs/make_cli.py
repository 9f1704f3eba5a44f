"""Write the command-line reference from the commands themselves.

    python docs/make_cli.py

docs/make_pages.py writes the page before the site is built.
"""

import click

from omma.cli import main

HEAD = """# Command line

`omma` comes with the package. Each command explains itself with `--help`; this page is what they
say. Progress goes to the standard error, so results can be piped.
"""


def page():
    """The page, in Markdown."""
    parent = click.Context(main, info_name="omma")
    sections = [HEAD, _section(main, parent)]
    for name in main.list_commands(parent):
        command = main.get_command(parent, name)
        sections.append(_section(command, click.Context(command, info_name=name, parent=parent)))
    return "\n".join(sections)


def _section(command, context):
    context.terminal_width = context.max_content_width = 78
    return f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    click.echo(page())

"""The command ``omma-study``."""

import click

from omma_study.cli.list import command as list_command
from omma_study.cli.report import command as report_command
from omma_study.cli.run import command as run_command


@click.group()
@click.version_option(package_name="omma-study", prog_name="omma-study")
def main() -> None:
    """Rerun the study of the OMMA paper, and make its tables and figures.

    \b
    Examples:
        omma-study run smoke
        omma-study report
        omma-study list suites
    """  # noqa: D301


for each in (run_command, report_command, list_command):
    main.add_command(each)

"""``omma report``: a page about a journal."""

from pathlib import Path

import click

from omma._atomic import replacing
from omma.cli.options import work

MOVED = (
    "omma report makes a page of the folder of a --journal; reports of the study moved to the "
    "package omma-study: pip install omma-study, then omma-study report"
)


@click.command("report", context_settings={"ignore_unknown_options": True})
@click.argument("places", metavar="JOURNAL", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format", "form", metavar="html", default="html", show_default=True, help="What to make."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where the page goes.  [default: standard output]",
)
def command(places: tuple[Path, ...], form: str, output: Path | None) -> None:
    """Make a page of a journal: its decisions, their value, and each label.

    \b
    Examples:
        omma report journal --output journal.html
    """  # noqa: D301
    journals = [place for place in places if any(place.glob("snapshot-*.npz"))]
    if len(places) != 1 or not journals or form != "html":
        raise click.UsageError(MOVED)
    from omma.cli.journal_page import page

    with work():
        text = page(journals[0])
        if output is None:
            click.echo(text, nl=not text.endswith("\n"))
            return
        with replacing(output) as file:
            file.write(text.encode("utf-8"))
    click.echo(f"Wrote {output}")

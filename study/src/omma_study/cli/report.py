"""``omma-study report``: what the records of a study say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omma._atomic import replacing
from omma.cli.options import names_in, say, work

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from omma_study.records import Record

PRINTED = ("latex", "html", "png")  # what the paper's layout is drawn as
FORMATS = ("terminal", "markdown", "latex", "csv", "png", "html")
WIDTH = 110
RECORDS = Path("omma-records")  # where omma-study run leaves them unless told otherwise
PICTURES = Path("omma-figures")


@click.command("report")
@click.argument("places", metavar="[RECORDS]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="terminal",
    show_default=True,
    help="What to make of them.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A file, for png a folder.  [default: standard output; for png omma-figures]",
)
@click.option("--suite", metavar="NAME", help="Only records of this suite.")
@click.option("--datasets", metavar="A,B", help="Only records of these datasets.")
@click.option("--extended", is_flag=True, help="Standard deviations and seconds, too.")
@click.option("--paper", is_flag=True, help="The paper's own layout: for latex, html and png.")
def command(
    places: tuple[Path, ...],
    form: str,
    output: Path | None,
    suite: str | None,
    datasets: str | None,
    extended: bool,
    paper: bool,
) -> None:
    """Make tables or figures of the records that `omma-study run` left.

    RECORDS are folders and files; without any, the folder omma-records. Tables follow the paper:
    policies against metrics, the best bold, the second best italic; for datasets that the paper
    used, its figures stand beside. The folder of a --journal makes a page, too: --format html.

    \b
    Examples:
        omma-study report --extended
        omma-study report omma-records --format html --output study.html
        omma-study report --paper --format latex --extended
    """  # noqa: D301
    if any(place.is_dir() and any(place.glob("snapshot-*.npz")) for place in places):
        _write_journal(places, form, output)
        return
    if paper and form not in PRINTED:
        raise click.UsageError(f"--paper is for --format {', '.join(PRINTED)}, got {form}")
    records = _records(places or (RECORDS,), suite, datasets)
    if paper:
        _print_as_paper(form, _of("study", records), output, extended)
    elif form == "terminal":
        _print(records, output, extended)
    elif form == "png":
        _draw(records, output or PICTURES)
    else:
        _write(_text(form, records, extended), output)


def _write_journal(places: tuple[Path, ...], form: str, output: Path | None) -> None:
    """A page about the one journal that was asked about."""
    if len(places) > 1 or form != "html":
        raise click.UsageError("A journal makes a page by itself: one folder, and --format html.")
    from omma.cli.journal_page import page

    with work():
        text = page(places[0])
    _write(text, output)


def _records(places: tuple[Path, ...], suite: str | None, datasets: str | None) -> list[Record]:
    from omma_study.fields import check_study
    from omma_study.records import distinct, read

    names = names_in(datasets)
    try:
        every = read(places, bad=say, check=check_study)
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from error
    found = distinct(every)
    if len(found) < len(every):
        say(f"Left out {len(every) - len(found)} records of runs that others are of, too")
    found = [
        record
        for record in found
        if (suite is None or record["suite"] == suite)
        and (names is None or record["spec"].get("dataset") in names)
    ]
    if not any(record["result"] for record in found):
        shown = ", ".join(map(str, places))
        raise click.ClickException(f"{shown} holds no finished runs of a study that fit")
    return found


def _print_as_paper(form: str, records: list[Record], output: Path | None, extended: bool) -> None:
    """Tables in the paper's layout; both families of its figures as png, or within the page."""
    from omma.plots.frames import png_of
    from omma_study import printed

    if not records:
        raise click.ClickException("--paper is for records of a study, and there are none")
    if form == "latex":
        _write(printed.document(printed.tables(records, extended=extended)) + "\n", output)
        return
    try:
        pictures = printed.families(records)
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    if form == "html":
        tables = printed.tables(records, extended=extended)
        drawn = {name: png_of(one, dpi=130) for name, one in pictures.items()}
        _write(printed.page(tables, drawn), output)
        return
    from omma_study.records import safe

    folder = output or PICTURES
    try:
        _save({safe(name): picture for name, picture in pictures.items()}, folder)
    except OSError as error:
        raise _unwritten(error, folder) from error
    click.echo(f"Wrote {len(pictures)} figures into {folder}")


def _of(kind: str, records: list[Record]) -> list[Record]:
    """Records of a kind, if any of them has a result."""
    mine = [record for record in records if record["kind"] == kind]
    return mine if any(record["result"] for record in mine) else []


def _text(form: str, records: list[Record], extended: bool) -> str:
    """The records in a format that is text; a page of HTML is of one kind of them."""
    study, theory, evidence = (_of(kind, records) for kind in ("study", "theory", "auto"))
    if form == "html" and sum(map(bool, (study, theory, evidence))) > 1:
        raise click.ClickException(
            "a page is of the study, of the theory or of Auto: choose by --suite"
        )
    parts = [_study_text(form, study, extended)] if study else []
    if theory:
        from omma_study.theory import text

        parts.append(text(theory, form))
    if evidence:
        from omma_study import auto
        from omma_study.theory.report import written

        parts.append(written(auto.tables(evidence), {}, form, title="omma: Auto"))
    return "\n".join(parts)


def _study_text(form: str, records: list[Record], extended: bool) -> str:
    from omma_study import report

    if form == "html":
        from omma_study.page import page

        return page(records)
    if form == "markdown":
        return report.to_markdown(records, extended=extended)
    if form == "latex":
        return report.to_latex(records, extended=extended)
    return report.to_csv(records)


def _print(records: list[Record], output: Path | None, extended: bool) -> None:
    """Tables as a terminal shows them; in a file they are plain, and as wide as most screens."""
    import io

    from rich.console import Console

    from omma.tables import to_terminal as drawn
    from omma_study.report import to_terminal

    text = io.StringIO()
    plain = {} if output is None else {"file": text, "width": WIDTH}
    console = Console(highlight=False, **plain)  # type: ignore[arg-type]
    from omma_study import auto, theory

    if _of("study", records):
        to_terminal(_of("study", records), console, extended=extended)
    for kind, tables in (("theory", theory.tables), ("auto", auto.tables)):
        # Tables one after another; a narrow terminal breaks lines, better than numbers cut off.
        for grid in tables(_of(kind, records)) if _of(kind, records) else ():
            console.print(drawn(grid), "", width=max(console.width, WIDTH), crop=False)
    if output is not None:
        _write(text.getvalue(), output)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    try:
        with replacing(output) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise _unwritten(error, output) from error
    click.echo(f"Wrote {output}")


def _unwritten(error: OSError, output: Path) -> click.ClickException:
    path = error.filename or output
    return click.ClickException(f"'{path}' cannot be written: {error.strerror}")


def _draw(records: list[Record], folder: Path) -> None:
    from omma_study.report import to_png

    study, theory = _of("study", records), _of("theory", records)
    try:
        paths = list(to_png(study, folder)) if study else []
        if theory:
            from omma_study.theory import figures

            drawn = figures(theory)
            paths += _save({f"theory-{name}": one for name, one in drawn.items()}, folder)
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise _unwritten(error, folder) from error
    for path in paths:
        click.echo(f"Wrote {path}")


def _save(figures: dict[str, Figure], folder: Path) -> list[Path]:
    from omma.plots import save

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        save(figure, path)
    return paths

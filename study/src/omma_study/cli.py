"""The command ``omma-study``: run suites, report on records, list suites and datasets."""

import base64
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pandas as pd
from rich.console import Console
from rich.progress import track

from omma_study import auto, config, figures, runs, tables, theory
from omma_study.datasets import CATALOGUE
from omma_study.records import Record, read
from omma_study.sections import sections

RECORDS = Path("omma-records")
FORMATS = ("terminal", "markdown", "latex", "csv", "png", "html")
# One page that needs no other file, so its style is in it.
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 1rem auto; max-width: 1400px }
td, th { padding: .1rem .6rem; text-align: right; white-space: nowrap }
td:first-child, th:first-child { text-align: left }
img { max-width: 100% }
"""


def say(sentence: str) -> None:
    """Print a sentence for people; standard output is for results."""
    click.echo(sentence, err=True)


@contextmanager
def one_line() -> Iterator[None]:
    """Show an error in one line."""
    try:
        yield
    # str(error) would begin with a number in brackets.
    except OSError as error:
        where = f"'{error.filename}': " if error.filename else ""
        raise click.ClickException(f"{where}{error.strerror or error}") from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error


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


def _names(context: Any, parameter: Any, text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _bar(records: Any, total: int) -> Any:
    return track(records, "Runs", total, console=Console(stderr=True), transient=True)


@main.command()
@click.argument("suite")
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="The folder of data.  [default: what OMMA_DATA names]")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=RECORDS, show_default=True,
              help="Where records go.")  # fmt: skip
@click.option("--datasets", metavar="A,B", callback=_names, help="Only these datasets.")
@click.option("--policies", metavar="A,B", callback=_names, help="Only these policies.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Runs at a time.")
@click.option("--seeds", type=click.IntRange(min=1), help="Number of sequences.")
@click.option("--quick", is_flag=True, help="One sequence and one λ (1e-6): a first look.")
@click.option("--strict", is_flag=True, help="A dataset that is not there is an error.")
def run(
    suite: str,
    data: Path | None,
    out: Path,
    datasets: list[str] | None,
    policies: list[str] | None,
    jobs: int,
    seeds: int | None,
    quick: bool,
    strict: bool,
) -> None:
    """Perform a suite of the study, and keep a record of each run.

    SUITE is a name (`omma-study list suites` has them) or the path of a TOML file; `theory`
    simulates what the paper proves, which takes no data and some minutes; `auto` sets omma.Auto
    against every choice of feedback and λ. Runs that have a record are skipped, so that an
    interrupted study goes on where it stopped; failed ones are tried again.

    \b
    Examples:
        omma-study run smoke
        omma-study run theory --jobs 2
        omma-study run multilabel_fixed --data ~/data --datasets yeast,news20
    """  # noqa: D301
    # A bar in a terminal; elsewhere, such as in a log, a line a minute.
    progress = _bar if sys.stderr.isatty() else runs.once_a_minute(say)
    options: dict[str, Any] = {"n_jobs": jobs, "progress": progress, "report": say}
    if policies is not None and (suite == "auto" or suite.startswith("theory")):
        raise click.ClickException(f"--policies is for suites of policies, and {suite} is none")
    # Theory and Auto are no TOML files: they have grids of their own.
    with one_line():
        if suite.startswith("theory"):
            summary = theory.run(suite, out, quick=quick, **options)
        elif suite == auto.SUITE:
            summary = auto.run(
                out, data=data, datasets=datasets, seeds=seeds, quick=quick, **options
            )
        else:
            limited = config.suite(suite).limited(
                datasets=datasets,
                policies=policies,
                seeds=1 if quick and seeds is None else seeds,
                priors=[1e-6] if quick else None,
            )
            summary = runs.run(limited, out, data=data, **options)
    # A summary of the runs; the exit code says whether anything failed.
    for name, sentence in summary.missing.items():
        say(f"Skipped {name}: {sentence}")
    click.echo(f"Runs: {summary}. Records are in {out}")
    # 130 is what shells report after Ctrl-C.
    if summary.left:
        raise click.exceptions.Exit(130)
    if summary.failed:
        raise click.ClickException(f"{summary.failed} runs failed; their records say why")
    if strict and summary.missing:
        raise click.ClickException(f"{len(summary.missing)} datasets are not there")
    if summary.missing and not summary.done + summary.skipped:
        raise click.ClickException(
            "nothing could be run, as no dataset is there: name the folder of your data by --data "
            "or OMMA_DATA, or get one by omma_study.datasets.load(name, folder, download=True)"
        )


@main.command()
@click.argument("places", metavar="[RECORDS]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), default="terminal",
              show_default=True, help="What to make of them.")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), metavar="PATH",
              help="A file, for png a folder.  [default: standard output; for png omma-figures]",
              )  # fmt: skip
@click.option("--suite", metavar="NAME", help="Only records of this suite.")
@click.option("--datasets", metavar="A,B", callback=_names, help="Only these datasets.")
@click.option("--extended", is_flag=True, help="Seconds, too.")
def report(
    places: tuple[Path, ...],
    form: str,
    output: Path | None,
    suite: str | None,
    datasets: list[str] | None,
    extended: bool,
) -> None:
    """Make tables or figures of the records that `omma-study run` left.

    RECORDS are folders and files; without any, the folder omma-records. Tables follow the paper:
    policies against metrics, the best bold, the second best italic; for datasets that the paper
    used, its figures stand beside.

    \b
    Examples:
        omma-study report --extended
        omma-study report omma-records --format html --output study.html
        omma-study report --format latex --extended
    """  # noqa: D301
    with one_line():
        records = [
            record
            for record in read(places or (RECORDS,), bad=say)
            if (suite is None or record["suite"] == suite)
            and (datasets is None or record["spec"].get("dataset") in datasets)
        ]
        # Failed runs are shown as missing cells, but alone they make no table.
        if not any(record["result"] for record in records):
            where = ", ".join(map(str, places or (RECORDS,)))
            raise ValueError(f"{where} holds no finished runs that fit")
        if form == "png":
            folder = output or Path("omma-figures")
            paths = figures.to_png(records, folder)
            for name, figure in theory.figures(records).items():
                paths.append(folder / f"theory-{name}.png")
                figure.savefig(paths[-1], dpi=100, facecolor="white")
            for path in paths:
                click.echo(f"Wrote {path}")
            return
        text = to_text(records, form, extended)
        if output is None:
            click.echo(text, nl=not text.endswith("\n"))
            return
        output.write_text(text, encoding="utf-8")
        click.echo(f"Wrote {output}")


def to_text(records: list[Record], form: str, extended: bool = False) -> str:
    """Records of the study, of the theory and of Auto, in a format that is text."""
    of_study = sections(records)
    # For programs: numbers, one line for each cell. Tables of theory and Auto hold texts.
    if form == "csv" and of_study:
        return tables.cells_csv(of_study)
    if form in ("latex", "html"):
        all_tables = tables.paper_tables(of_study, form, extended=extended)
    else:
        all_tables = [tables.table_of(section, form, extended=extended) for section in of_study]
    all_tables += theory.tables(records) + auto.tables(records)
    text = tables.written(all_tables, form)
    if form != "html":
        return text
    pictures = [figures.draw(section) for section in of_study]
    pictures += theory.figures(records).values()
    images = []
    for picture in pictures:  # within the page, so that it needs no other file
        file = io.BytesIO()
        picture.savefig(file, dpi=100, facecolor="white")
        source = base64.b64encode(file.getvalue()).decode()
        images.append(f'<img alt="" src="data:image/png;base64,{source}">')
    body = text + "\n".join(images)
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>omma: the study</title>' \
           f"<style>{STYLE}</style><body>{body}</body></html>\n"  # fmt: skip


@main.command("list")
@click.argument("what", type=click.Choice(("datasets", "suites")))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(what: str, as_json: bool) -> None:
    """List datasets or suites.

    \b
    Examples:
        omma-study list suites
        omma-study list datasets --json
    """  # noqa: D301
    if what == "datasets":
        columns = ["name", "task", "n", "d", "m", "split", "paper", "licence", "source", "title"]
        table = pd.DataFrame(map(vars, CATALOGUE.values()), columns=columns, dtype=object)
    else:
        all_suites: list[Any] = [*config.suites(), *theory.suites()]
        listed = [(suite.name, len(suite.runs), suite.title) for suite in all_suites]
        listed.append((auto.SUITE, len(list(auto.specs(auto.SOURCES))), auto.TITLE))
        table = pd.DataFrame(listed, columns=["suite", "runs", "title"])
    # All columns, for programs.
    if as_json:
        click.echo(table.to_json(orient="records", force_ascii=False))
        return
    # A terminal is too narrow for these columns; JSON has them.
    table = table.drop(columns=["d", "split", "paper", "licence", "source"], errors="ignore")
    for name in table.columns[[type(value) is str for value in table.iloc[0]]]:
        table[name] = table[name].str.ljust(table[name].str.len().max())  # pandas aligns right
    click.echo(table.to_string(index=False, justify="left"))

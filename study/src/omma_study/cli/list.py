"""``omma-study list``: datasets and suites."""

from typing import Any

import click
import pandas as pd

from omma_study.datasets import CATALOGUE


@click.command("list")
@click.argument("what", type=click.Choice(("datasets", "suites")))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(what: str, as_json: bool) -> None:
    """List datasets or suites.

    \b
    Examples:
        omma-study list suites
        omma-study list datasets --json
    """  # noqa: D301
    table = datasets() if what == "datasets" else suites()
    if as_json:
        click.echo(table.to_json(orient="records", force_ascii=False))
        return
    # For lack of room; JSON has these columns.
    table = table.drop(columns=["d", "split", "paper", "licence", "source"], errors="ignore")
    for name in table.columns[[type(value) is str for value in table.iloc[0]]]:
        table[name] = table[name].str.ljust(table[name].str.len().max())  # pandas aligns right
    click.echo(table.to_string(index=False, justify="left"))


def datasets() -> pd.DataFrame:
    """Every dataset of the catalogue."""
    columns = ["name", "task", "n", "d", "m", "split", "paper", "licence", "source", "title"]
    rows = [[getattr(entry, column) for column in columns] for entry in CATALOGUE.values()]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def suites() -> pd.DataFrame:
    """Every suite of runs: of the study, of the theory, and of Auto."""
    import omma_study
    from omma_study import auto, theory

    every: list[Any] = [*omma_study.suites(), *theory.suites()]
    rows = [(suite.name, len(suite.runs), suite.title) for suite in every]
    title = "Auto against OMMA with every feedback and λ, probabilities as they are and distorted"
    rows.append((auto.SUITE, auto.size(), title))
    return pd.DataFrame(rows, columns=["suite", "runs", "title"])

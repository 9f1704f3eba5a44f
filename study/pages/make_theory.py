"""Simulates what the paper proves, and refreshes the pictures and tables of docs/theory.md.

    python study/pages/make_theory.py [FOLDER]

Takes some minutes; records are kept in FOLDER (default omma-records), and those that are there are
not made again. They are packed into study/records: a test says that the tables are what they give.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from omma import tables
from omma_study import theory
from omma_study.records import pack, read

STUDY = Path(__file__).resolve().parents[1]
RECORDS, DOCS = STUDY / "records", STUDY.parent / "docs"
PAGE, PICTURES = DOCS / "theory.md", DOCS / "images" / "theory"
DPI, SMALL = 80, {"optimize": True}
MARKED = re.compile(r"(<!-- table (\d+) of (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def as_markdown(table):
    """A table under its title."""
    return f"*{tables.markdown(table.title)}*\n\n{tables.to_markdown(table, aligned=False)}"


def refreshed(page, records):
    """The page with the tables of these records made anew; other tables stay."""
    found = {}
    for suite in theory.suites():
        mine = [record for record in records if record["suite"] == suite.name]
        for number, table in enumerate(theory.tables(mine), start=1):
            found[suite.name, number] = as_markdown(table)

    def replaced(match):
        table = found.get((match[3], int(match[2])))
        return match[0] if table is None else f"{match[1]}\n{table}\n\n{match[4]}"

    return MARKED.sub(replaced, page)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default="omma-records")
def main(folder):
    """Run, draw, write."""
    done = theory.run("theory", folder, progress=sys.stderr.isatty())
    click.echo(f"Runs: {done}")
    records = [record for record in read(folder) if record["kind"] == "theory"]
    pack(records, RECORDS)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, figure in theory.figures(records).items():
        figure.savefig(PICTURES / f"{name}.png", dpi=DPI, facecolor="white", pil_kwargs=SMALL)
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")


if __name__ == "__main__":
    main()

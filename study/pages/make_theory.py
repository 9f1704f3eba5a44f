"""Simulates what the paper proves, and refreshes the pictures and tables of docs/theory.md.

    python study/pages/make_theory.py [FOLDER]

Takes some minutes; records are kept in FOLDER (default omma-records), and those that are there are
not made again. They are packed into study/records: a test says that the tables are what they give.
"""

import re
import sys

import click

from common import DOCS, RECORDS, captioned
from omma_study import theory
from omma_study.records import pack, read

PAGE, PICTURES = DOCS / "theory.md", DOCS / "images" / "theory"


def refreshed(page, records):
    """The page with the tables of these records made anew; other tables stay."""
    for suite in theory.suites():
        of_suite = [record for record in records if record["suite"] == suite.name]
        for number, table in enumerate(theory.tables(of_suite), start=1):
            marked = rf"(<!-- table {number} of {suite.name} -->\n).*?(<!-- end -->)"
            text = captioned(table)
            # A function, as a text may have backslashes.
            page = re.sub(
                marked,
                lambda match, text=text: f"{match[1]}\n{text}\n{match[2]}",
                page,
                flags=re.DOTALL,
            )
    return page


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "omma-records"
    click.echo(f"Runs: {theory.run('theory', folder)}")
    records = [record for record in read(folder) if record["kind"] == "theory"]
    pack(records, RECORDS)
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, figure in theory.figures(records).items():
        # The repository keeps every version of a picture.
        small = {"optimize": True}
        figure.savefig(PICTURES / f"{name}.png", dpi=80, facecolor="white", pil_kwargs=small)
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")

"""Tables: one grid, the same in every format."""

import csv
import io
import re
from dataclasses import replace

from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

from omma import tables
from omma.tables import Grid, GridEntry, fitting, text_grid

GRID = Grid(
    ("a_1", "b"),
    ("OMMA(η̂)", "x|y", "z"),
    (
        (GridEntry(0.5, 0.01, 0.002), GridEntry(0.1)),
        (GridEntry(0.6, 0.02, 1.5), GridEntry(instead="×")),
        (GridEntry(0.600001, 0.03), GridEntry(0.2, partial=True)),
    ),
    ("A note.",),
)


def test_markdown_is_aligned():
    text = tables.to_markdown(replace(GRID, seconds=True))
    *lines, blank, note = text.split("\n")
    assert (blank, note) == ("", "A note.")
    assert len({cell_len(line) for line in lines}) == 1
    assert lines[0].startswith("| policy  |")
    assert lines[1] == f"| :------ | {'-' * 23}: | {'-' * 9}: |"
    assert "*50.00 ± 1.00 (2 ms)*" in lines[2]
    assert "**60.00 ± 2.00 (1.5 s)**" in lines[3]
    assert r"| x\|y" in lines[3]
    assert "**60.00 ± 3.00**" in lines[4]
    assert "**20.00†**" in lines[4]


def test_latex_marks_best_and_second():
    lines = tables.to_latex(GRID).split("\n")
    assert r"  \begin{tabular}{lrr}" in lines
    assert any(r"\caption{A note.}" in line for line in lines)
    body = lines[lines.index(r"    \midrule") + 1 : lines.index(r"    \bottomrule")]
    cells = [[cell.strip() for cell in line.removesuffix(r" \\").split("&")] for line in body]
    assert cells == [
        [r"OMMA($\hat{\eta}$)", r"\textit{50.00 $\pm$ 1.00}", r"\textit{10.00}"],
        ["x|y", r"\textbf{60.00 $\pm$ 2.00}", r"$\times$"],
        ["z", r"\textbf{60.00 $\pm$ 3.00}", r"\textbf{20.00$^\dagger$}"],
    ]
    assert r"a\_1" in lines[lines.index(r"    \midrule") - 1]


def test_the_terminal_shows_best_bold_and_second_italic():
    table = tables.to_terminal(replace(GRID, std=False))
    styles = [[str(cell.style) for cell in column.cells] for column in table.columns[1:]]
    assert styles == [["italic", "bold", "bold"], ["italic", "dim", "bold"]]
    assert [cell.plain for cell in table.columns[2].cells] == ["10.00", "×", "20.00†"]
    assert table.caption == "A note."


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8)


def without_blanks(line):
    return "".join(line.split())


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=5))
def test_a_table_of_texts_says_the_same_in_every_format(rows):
    grid = text_grid("first", ["second", "number"], rows)
    assert tables.ranks(grid) == [[0, 0]] * len(rows)
    head, rule, *lines = tables.to_markdown(grid).split("\n")
    assert without_blanks(head) == "|first|second|number|"
    assert re.fullmatch(r"\| :-+ \| -+: \| -+: \|", rule)
    assert [without_blanks(line) for line in lines] == [
        without_blanks(f"| {' | '.join(map(tables.markdown, row))} |") for row in rows
    ]
    latex = tables.to_latex(grid).split("\n")
    assert latex[4] == r"  \begin{tabular}{lrr}"
    assert [without_blanks(line) for line in latex[8:-3]] == [
        without_blanks(f"{' & '.join(map(tables.latex, row))} \\\\") for row in rows
    ]
    shown = tables.to_terminal(grid)
    assert [cell.plain for cell in shown.columns[2].cells] == [row[2] for row in rows]
    assert [column.justify for column in shown.columns] == ["left", "right", "right"]


def test_csv_has_numbers_in_full():
    rows = [{"name": "a,b", "value": 0.1 + 0.2}, {"name": "c", "value": None}]
    again = list(csv.DictReader(io.StringIO(tables.to_csv(rows))))
    assert [row["name"] for row in again] == ["a,b", "c"]
    assert float(again[0]["value"]) == 0.1 + 0.2
    assert again[1]["value"] == ""


def test_a_wide_table_is_shown_in_parts_that_fit():
    names = tuple(f"metric_{place}" for place in range(9))
    grid = Grid(names, ("OMMA",), (tuple(GridEntry(0.5) for _ in names),), ("a note",))
    console = Console(width=40, file=io.StringIO())
    parts = list(fitting(grid, console))
    heads = [column.header for part in parts for column in part.columns[1:]]
    assert heads == list(names)
    for part in parts:
        console.print(part)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert not any("…" in line or "note" in line for line in lines)
    assert len(list(fitting(grid, Console(width=200)))) == 1

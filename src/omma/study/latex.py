"""The paper's tables in LaTeX: one for each suite, a block of rows for each dataset."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from omma import tables
from omma.study.grids import grid_of
from omma.study.records import Record
from omma.study.sections import Section, sections
from omma.tables import BEST, SECOND, Grid, content, latex, ranks

COMMANDS = {BEST: r"\textbf", SECOND: r"\textit"}
# As in the paper, a line separates the baseline, the rivals, OMMA, and what learns beforehand.
GROUPS = {"baseline": 0, "top_k_or_half": 0, "omma": 2, "omma_eta": 2, "offline_fw": 3, "tuned": 3}


def to_latex(records: Iterable[Record], *, extended: bool = False) -> str:
    """A table (booktabs) for each suite; how λ was chosen and the rest is in its caption."""
    by_suite = groupby(sections(records), key=lambda section: section.suite)
    return "\n\n".join(_table(suite, list(found), extended) for suite, found in by_suite) + "\n"


def _table(suite: str, found: list[Section], extended: bool) -> str:
    grids = [grid_of(section, std=extended) for section in found]
    columns = list(dict.fromkeys(name for grid in grids for name in grid.columns))
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table*}[t]",
        f"  \\caption{{{latex(f'{suite}. {_caption(grids)}')}}}",
        r"  \centering",
        f"  \\begin{{tabular}}{{l|{'c' * len(columns)}}}",
        r"    \toprule",
        f"    Method & {' & '.join(map(latex, columns))} \\\\",
    ]
    for section, grid in zip(found, grids, strict=True):
        lines += _block(section, grid, columns, extended)
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}", r"\end{table*}"])


def _caption(grids: list[Grid]) -> str:
    """Each sentence once: most hold for all datasets."""
    return " ".join(dict.fromkeys(note for grid in grids for note in grid.notes))


def _block(section: Section, grid: Grid, columns: list[str], extended: bool) -> list[str]:
    head = f"{latex(section.dataset)} ($m = {section.m}$, $n = {section.n}$)"
    lines = [r"    \midrule", f"    & \\multicolumn{{{len(columns)}}}{{c}}{{{head}}} \\\\"]
    before = None
    rows = zip(section.comparison.policies, grid.names, grid.entries, ranks(grid), strict=True)
    for policy, name, entries, ranked in rows:
        group = GROUPS.get(policy, 1)
        lines += [r"    \midrule"] * (group != before)
        before = group
        texts = {
            column: _marked(content(entry, std=extended, seconds=extended), rank)
            for column, entry, rank in zip(grid.columns, entries, ranked, strict=True)
        }
        cells = [texts.get(column, latex(tables.MISSING)) for column in columns]
        lines.append(f"    {latex(name)} & {' & '.join(cells)} \\\\")
    return lines


def _marked(text: str, rank: int) -> str:
    return f"{COMMANDS[rank]}{{{latex(text)}}}" if rank else latex(text)

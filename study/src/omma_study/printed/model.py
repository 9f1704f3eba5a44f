"""A table of the paper before it is drawn: blocks of datasets, lines of policies.

Under each line that the paper has, too, stands the paper's: of the same data, or of the set that
these data stand in for. Where a policy was run in two ways, the paper's line stands under the one
that decides as the code behind its tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from omma.comparison.results import Cell
from omma.metrics.target import Target
from omma.tables import MISSING, PARTIAL, UNSUPPORTED, Entry, Grid, ranks
from omma_study.policies import TRAINED
from omma_study.records import Record
from omma_study.sections import AVERAGES, NAMES, Figure, Section, decides_as, find, sections

SHORT = {"recall": "Rec.", "precision": "Pr."}
MEANS = {"gmean": "G-", "hmean": "H-", "qmean": "Q-"}
# As in the paper, a line separates the baseline, the rivals, OMMA, and what learns beforehand.
GROUPS = {"baseline": 0, "top_k_or_half": 0, "omma": 2, "omma_eta": 2, "auto": 2}
GROUPS |= dict.fromkeys(TRAINED, 3)
EXTENDED_ONLY = ("greedy_eta", "greedy_plug_in_eta", *TRAINED)
THEIRS = "the paper"
# As the paper has its tables; others come after these.
SUITES = ("multilabel_fixed", "multiclass_fixed", "multiclass_adam", "online_cpe")


@dataclass(frozen=True)
class Column:
    """A metric: the group of its head, its short name in it, and its name in full."""

    group: str
    name: str
    full: str

    @classmethod
    def of(cls, metric: str, k: int | None) -> Column:
        """The head that the paper gives a metric.

        >>> Column.of("macro_recall", 3)
        Column(group='Macro', name='Rec.@3', full='Macro recall@3')
        >>> Column.of("multiclass_gmean", 1).name
        'G-'
        """
        average, _, name = metric.partition("_")
        if average not in AVERAGES or name not in NAMES:
            text = str(Target(metric, k))
            return cls("", text, text)
        if average == "multiclass" and name in MEANS:
            return cls("Multi-class means", MEANS[name], f"Multi-class {NAMES[name]}")
        k = None if k == 1 and name == "f1" else k
        short, full = (str(Target(one, k)) for one in (SHORT.get(name, NAMES[name]), NAMES[name]))
        return cls(AVERAGES[average], short, f"{AVERAGES[average]} {full}")


@dataclass(frozen=True)
class Number:
    """A value with its deviation, and seconds with theirs; NaN where there is none.

    ``instead`` is what stands in its place; ``rank`` is 1 of the best and 2 of the second best.
    """

    value: float = math.nan
    std: float = math.nan
    seconds: float = math.nan
    seconds_std: float = math.nan
    instead: str = ""
    rank: int = 0
    partial: bool = False

    @property
    def shown(self) -> str:
        """The value in %, or what stands in its place."""
        return self.instead or f"{100 * self.value:.2f}{PARTIAL if self.partial else ''}"

    @property
    def time(self) -> str:
        """The seconds, or what stands in their place."""
        return self.instead or (MISSING if math.isnan(self.seconds) else clock(self.seconds))


@dataclass(frozen=True)
class Line:
    """A policy, or the paper's figures of the policy above."""

    name: str
    numbers: tuple[Number, ...]
    group: int
    theirs: bool = False


@dataclass(frozen=True)
class Block:
    """A dataset: its title, whether the paper has the same data or what they stand for, its lines.

    ``sequences`` is over how many the means are.
    """

    title: str
    m: int
    n: int
    lines: tuple[Line, ...]
    paper: str = ""
    sequences: int = 1


@dataclass(frozen=True)
class Table:
    """All datasets of a suite."""

    suite: str
    caption: str
    columns: tuple[Column, ...]
    blocks: tuple[Block, ...]
    extended: bool = False

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Heads that stand above several columns, and how many."""
        by_group = groupby(self.columns, lambda column: column.group)
        return [(name, len(list(some))) for name, some in by_group]


def clock(seconds: float) -> str:
    """Seconds as the paper has them; ours need more digits.

    >>> clock(12.345), clock(0.00123)
    ('12.35', '0.0012')
    """
    return f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.4f}"


def tables(records: Iterable[Record], *, extended: bool = False) -> list[Table]:
    """A table for each suite; ``extended`` has deviations, seconds, and policies that the paper
    shows in its appendix alone.
    """
    return [_table(suite, found, extended) for suite, found in by_suite(records).items()]


def by_suite(records: Iterable[Record]) -> dict[str, list[Section]]:
    """The sections of each suite; suites stand in the order of the paper's tables."""
    found: dict[str, list[Section]] = {}
    for section in sections(records):
        found.setdefault(section.suite, []).append(section)
    order = [*(name for name in SUITES if name in found), *sorted(set(found) - set(SUITES))]
    return {name: found[name] for name in order}


def _table(suite: str, found: list[Section], extended: bool) -> Table:
    targets = list(dict.fromkeys(target for one in found for target in one.targets.values()))
    blocks = [_block(section, targets, extended) for section in found]
    return Table(
        suite,
        _caption(found, extended) + _fewer(blocks),
        tuple(Column.of(*target) for target in targets),
        tuple(blocks),
        extended,
    )


def _caption(found: list[Section], extended: bool) -> str:
    counts = sorted({len(one.comparison.seeds) for one in found})
    over = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    times = " and running times" if extended else ""
    spread = ", with standard deviations" if extended and counts[-1] > 1 else ""
    kind = {"multilabel": "multi-label", "multiclass": "multi-class"}[found[0].task]
    cpe = " with incrementally updated CPE" if found[0].protocol == "online" else ""
    return (
        f"Values{times} on {kind} problems{cpe}, means over {over} sequences, in %{spread}. The "
        "best on each metric is bold, the second best italic; λ is the best of those tried, with "
        f"hindsight. {UNSUPPORTED} means not supported, {MISSING} not run. Small figures are the "
        "paper's own, of the same set or of the one that the set stands in for."
    )


def _fewer(blocks: list[Block]) -> str:
    """What the mark means, where a number has it."""
    numbers = (number for block in blocks for line in block.lines for number in line.numbers)
    marked = any(number.partial for number in numbers)
    return f" {PARTIAL} Some of the runs are missing." if marked else ""


def _block(section: Section, targets: list[tuple[str, int | None]], extended: bool) -> Block:
    comparison = section.comparison
    shown = [one for one in comparison.policies if extended or one not in EXTENDED_ONLY]
    names = {target: name for name, target in section.targets.items()}
    cells = [
        [comparison.cells.get((policy, names[one])) if one in names else None for one in targets]
        for policy in shown
    ]
    ranked = ranks(_grid(cells))
    known = section.paper or section.stands_for
    lines = []
    for policy, row, places in zip(shown, cells, ranked, strict=True):
        group = GROUPS.get(policy, 1)
        numbers = tuple(_ours(cell, rank) for cell, rank in zip(row, places, strict=True))
        lines.append(Line(comparison.titles[policy], numbers, group))
        if known and decides_as(policy, comparison.policies):
            figures = [find(section.protocol, known, policy, *one) for one in targets]
            if any(figures):
                lines.append(Line(THEIRS, tuple(map(_theirs, figures)), group, theirs=True))
    standing = f"stands in for {known}" if known and not section.paper else ""
    return Block(
        section.dataset,
        section.m,
        section.n,
        tuple(lines),
        f"{known} of the paper" if section.paper else standing,
        len(comparison.seeds),
    )


def _grid(cells: list[list[Cell | None]]) -> Grid:
    rows = [tuple(Entry() if one is None else Entry(mean=one.mean) for one in row) for row in cells]
    columns = tuple("" for _ in cells[0])
    return Grid(columns, tuple("" for _ in cells), tuple(rows))


def _ours(cell: Cell | None, rank: int) -> Number:
    if cell is None or not cell.by_prior:
        return Number(instead=UNSUPPORTED if cell is not None and cell.reason else MISSING)
    return Number(
        cell.mean,
        cell.std,
        cell.seconds,
        cell.seconds_std,
        rank=rank,
        partial=not cell.complete,
    )


def _theirs(figure: Figure | None) -> Number:
    if figure is None:
        return Number(instead=MISSING)
    seconds, spread = (
        math.nan if one is None else one for one in (figure.seconds, figure.seconds_std)
    )
    return Number(figure.value, figure.std, seconds, spread)

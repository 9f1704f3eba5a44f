"""What the page says of time."""

from __future__ import annotations

from statistics import median

from study_cells import LABELS, table
from study_claims import fixed

from omma import tables
from omma.comparison.entrants import TITLES

NAMES = ("baseline", "ofo", "greedy", "online_fw", "omma", "auto")


def times(study):
    """Seconds of a replay, and two ratios."""
    rows, ratios = [], []
    for section in fixed(study):
        found = {name: _seconds(section, name) for name in NAMES}
        shape = f"{section.n:,} × {section.m:,}"
        ratios.append([_ratio(found[name], found["omma"]) for name in ("online_fw", "auto")])
        kind = "" if section.suite == LABELS else " (classes)"
        shown = ("–" if value is None else tables.duration(value) for value in found.values())
        last = ("–" if one is None else f"{one:,.1f}" for one in ratios[-1])
        rows.append([f"{section.dataset}{kind}", shape, *shown, *last])
    head = ["dataset", "rows × labels", *(TITLES[name] for name in NAMES), "Online-FW / OMMA",
            "Auto / OMMA"]  # fmt: skip
    slower, auto = (
        median(one for one in column if one is not None) for column in zip(*ratios, strict=True)
    )
    words = (
        f"In the median Online-FW takes {slower:,.0f} times as long as OMMA, and Auto, which also "
        f"calibrates, {auto:.1f} times."
    )
    return f"{words}\n\n{table(head, rows)}"


def _ratio(seconds, of):
    return None if None in (seconds, of) else seconds / of


def _seconds(section, policy):
    """Median over the metrics that a policy has."""
    cells = (section.comparison.cells.get((policy, one)) for one in section.comparison.metrics)
    found = [cell.seconds for cell in cells if cell is not None and cell.by_prior]
    return median(found) if found else None

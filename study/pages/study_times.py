"""What the page says of time.

Records of the study come from machines that had other work to do. Times are measured apart, by
``omma-study run SUITE --quick`` on a machine that has none, and kept in a file of their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from omma import tables
from omma.comparison.entrants import TITLES
from omma_study.records import read
from omma_study.sections import sections
from study_cells import LABELS, finished, table
from study_claims import fixed

NAMES = ("baseline", "ofo", "greedy", "online_fw", "omma", "auto")
TIMES = Path(__file__).resolve().parents[1] / "records" / "times.jsonl"


def keep_times(place):
    """Keep the times of what was run for them, a line for each policy on a set."""
    found = [
        {"suite": section.suite, "dataset": section.dataset, "policy": name, "seconds": seconds}
        for section in sections(finished(read(place)))
        for name in NAMES
        if (seconds := _seconds(section, name)) is not None
    ]
    lines = (json.dumps({**one, "seconds": float(f"{one['seconds']:.3g}")}) for one in found)
    TIMES.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def kept_times():
    """Seconds by suite, dataset and policy."""
    lines = TIMES.read_text(encoding="utf-8").splitlines()
    found = (json.loads(line) for line in lines)
    return {(one["suite"], one["dataset"], one["policy"]): one["seconds"] for one in found}


def times(study):
    """Seconds of a replay, and two ratios."""
    rows, ratios, seconds = [], [], kept_times()
    for section in fixed(study):
        found = {name: seconds.get((section.suite, section.dataset, name)) for name in NAMES}
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

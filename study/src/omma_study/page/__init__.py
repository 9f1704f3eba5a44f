"""The report as one page that works without a network: tables, and curves to look into."""

import json
import math
import re
from collections.abc import Iterable
from html import escape
from importlib import resources
from typing import Any

from omma.comparison.results import Cell
from omma.counts import Counts
from omma.metrics import Metric, metric as find_metric
from omma.metrics.averages import Macro, Micro
from omma.plots.palette import FIXED, LEARNING, looks, variables
from omma.tables import to_html
from omma_study.records import Record
from omma_study.sections import Section, grid_of, grouped, heading, policy_of, section_of, title

FEW = 500  # labels: of more, only some policies are shown label by label
FIRST = ("baseline", "greedy", "omma", "omma_eta")
__all__ = ["page"]


def model(section: Section, records: Iterable[Record]) -> dict[str, Any]:
    """All that can be looked into of a section."""
    comparison = section.comparison
    still = {policy for (policy, _), cell in comparison.cells.items() if cell.fixed}
    return {
        "id": section.name,
        "columns": {name: heading(*target) for name, target in section.targets.items()},
        "policies": {
            policy: {"title": comparison.titles[policy], **look}
            for policy, look in looks(comparison.policies, still).items()
        },
        "running": _by_column(section, _running),
        "priors": _by_column(section, _priors),
        "labels": labels(section, records),
    }


def _by_column(section: Section, of_cell: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in section.targets:
        for policy in section.comparison.policies:
            cell = section.comparison.cells[policy, name]
            if len(cell.values):
                found.setdefault(name, {})[policy] = of_cell(cell)
    return found


def _running(cell: Cell) -> dict[str, Any]:
    return {
        "rows": cell.rows.tolist(),
        "mean": percents(cell.running_mean),
        "std": percents(cell.running_std),
    }


def _priors(cell: Cell) -> list[dict[str, Any]]:
    """What each λ is worth; a policy without one has a single entry."""
    return [
        {"prior": prior, "mean": percents(runs.mean), "std": percents(runs.std)}
        for prior, runs in cell.by_prior.items()
    ]


def percents(values: Any) -> Any:
    """Fractions in %, short enough for a page; null where there is no number.

    >>> percents([0.123456, float("nan")])
    [12.35, None]
    """
    if isinstance(values, float):
        return None if math.isnan(values) else round(100 * values, 2)
    return [percents(float(value)) for value in values]


def labels(section: Section, records: Iterable[Record]) -> dict[str, Any] | None:
    """The metric of each label by itself, with the prior that the table shows."""
    counted = _counted(section, records)
    if not counted:
        return None
    any_counts = next(iter(counted.values()))
    measures = {
        name: measured_by(find_metric(metric)) for name, (metric, _) in section.targets.items()
    }
    return {
        "names": _names(section, records),
        "rates": [float(f"{share:.3g}") for share in any_counts.positive / max(any_counts.n, 1.0)],
        "measured": {name: said for name, (said, _) in measures.items()},
        "values": {
            name: {
                policy: percents(measure(counts))
                for (policy, column), counts in counted.items()
                if column == name
            }
            for name, (_, measure) in measures.items()
        },
    }


def measured_by(metric: Metric) -> tuple[str, Any]:
    """By what a label is measured alone: its part of the mean, or its recall.

    >>> from omma.metrics import metric
    >>> measured_by(metric("macro_f1"))[0], measured_by(metric("multiclass_gmean"))[0]
    ('f1', 'recall')
    """
    part = metric.of if isinstance(metric, Macro | Micro) else find_metric("recall")
    return part.name, Macro(part).of_labels  # type: ignore[arg-type]


def _counted(section: Section, records: Iterable[Record]) -> dict[tuple[str, str], Counts]:
    """Counts of all seeds together, of each policy and column, with the prior of the table."""
    found: dict[tuple[str, str], Counts] = {}
    for record in records:
        spec = record["spec"]
        policy, name = policy_of(record), title(spec["metric"], spec["k"])
        if record["result"] is None or (section.m > FEW and policy not in FIRST):
            continue
        kept = record["result"]["counts"]  # None where left out, of many labels
        if kept is not None and spec["prior"] == section.comparison.cells[policy, name].prior:
            counts, key = Counts(**kept), (policy, name)
            found[key] = found[key] + counts if key in found else counts
    return found


def _names(section: Section, records: Iterable[Record]) -> list[str]:
    results = (record["result"] for record in records if record["result"] is not None)
    named = (result["names"] for result in results if result.get("names"))
    return list(next(named, [f"label {j}" for j in range(section.m)]))


def page(records: Iterable[Record], *, title: str = "omma: the study") -> str:
    """A page of HTML that needs no other file and no network.

    Records that are not of a study are left out. The browser's window says ``title``, too.

    >>> page([]).startswith("<!doctype html>")
    True
    """
    groups = grouped(records)
    sections = [section_of(group) for group in groups]
    models = [model(*pair) for pair in zip(sections, groups, strict=True)]
    parts = {
        "title": escape(title),
        "style": _filled("style.css", light=variables(dark=False), dark=variables(dark=True)),
        "script": _filled("script.js", learning=str(len(LEARNING)), fixed=str(len(FIXED))),
        "versions": escape(_versions(groups)),
        "links": "\n".join(
            f'<option value="{escape(one.name)}">{escape(f"{one.suite}: {one.dataset}")}</option>'
            for one in sections
        ),
        "sections": "\n".join(map(_section, sections)) or "<p>There are no finished runs.</p>",
        # "<" would let a label's name end the script.
        "models": json.dumps(models, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
    }
    # In one pass: what one part says is no place for another.
    return re.sub("<!--(\\w+)-->", lambda place: parts[place[1]], _file("page.html"))


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _filled(name: str, **places: str) -> str:
    """A file whose comments ``/*name*/`` are places for what is known here."""
    return re.sub(r"/\*(\w+)\*/", lambda place: places[place[1]], _file(name))


def _versions(groups: list[list[Record]]) -> str:
    """All versions that the runs were made with."""
    records = [record for group in groups for record in group]
    every = {pair for record in records for pair in record["versions"].items()}
    return ", ".join(f"{name} {version}" for name, version in sorted(every))


def _section(section: Section) -> str:
    grid = grid_of(section)
    notes = "".join(f"<p>{escape(note)}</p>" for note in grid.notes)
    table = to_html(grid, f"{section.title}, values in %")
    return (
        f'<section id="{escape(section.name)}">\n'
        f"<h2>{escape(section.title)}<small>{escape(section.suite)}</small></h2>\n"
        f'<div class="scroll" tabindex="0">{table}</div>\n'
        f'<div class="notes">{notes}</div>\n'
        '<div class="views"></div>\n</section>'
    )

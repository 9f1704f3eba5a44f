"""Records in the order of tables, a section for each dataset; the paper's figures beside."""

import csv
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from omma.comparison import Comparison
from omma.comparison.results import Cell, Runs
from omma.metrics.target import Target as Named
from omma.policies.roster import ONLINE, ROSTER
from omma.tables import Entry, Grid
from omma_study.datasets import CATALOGUE
from omma_study.policies import has_prior, name_of, supports
from omma_study.records import Record

# Sets of the paper that cannot be had here, by those that stand in for them.
STAND_INS = {
    "youtube_deepwalk": "YouTube",
    "eurlex4k": "Eurlex-LexGlue",
    "rcv1_subsets": "RCV1X",
    "delicious": "AmazonCat",
    "kddcup99": "Ledgar-LexGlue",
    "covtype": "Caltech-256",
}
# Ours that decide as the code behind the paper's tables, by the paper's names.
VARIANTS = {
    "greedy_plug_in": "greedy",
    "greedy_plug_in_eta": "greedy_eta",
    "online_fw_random": "online_fw",
    "online_fw_random_eta": "online_fw_eta",
    "offline_fw_random": "offline_fw",
}
KNOWN_AS = {"baseline": "top_k_or_half", **VARIANTS}
# As the paper's tables have them; others come after these.
POLICIES = (
    "baseline", "top_k_or_half", "ofo", "greedy", "greedy_eta", "greedy_plug_in",
    "greedy_plug_in_eta", "online_fw", "online_fw_eta", "online_fw_random", "online_fw_random_eta",
    "omma", "omma_eta", "auto", "offline_fw", "offline_fw_top", "offline_fw_random", "tuned",
)  # fmt: skip
METRICS = (
    "micro_f1", "macro_f1", "macro_recall", "macro_precision", "macro_gmean", "macro_hmean",
    "multiclass_gmean", "multiclass_hmean", "multiclass_qmean",
)  # fmt: skip
WHOLE = ("micro_f1", "macro_f1")  # without a budget they come before those with one
Target = tuple[str, int | None]
NAMES = {
    "f1": "F1", "recall": "recall", "precision": "precision", "gmean": "G-mean",
    "hmean": "H-mean", "qmean": "Q-mean", "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy", "jaccard": "Jaccard", "mcc": "MCC",
    "kappa": "kappa", "specificity": "specificity",
}  # fmt: skip
AVERAGES = {"micro": "Micro", "macro": "Macro", "multiclass": "Multi-class"}


class Place(NamedTuple):
    """Where in the paper a figure stands."""

    protocol: str
    dataset: str
    policy: str
    metric: str
    k: int | None


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: a fraction and seconds where measured, each with its deviation."""

    value: float
    std: float
    seconds: float | None
    n: int
    m: int
    seconds_std: float | None = None


@cache
def figures() -> dict[Place, Figure]:
    """All figures of its tables, by where they stand.

    >>> len(figures())
    682
    >>> figures()[Place("fixed", "News20", "omma", "macro_f1", 3)].value
    0.7284
    """
    file = resources.files("omma_study") / "paper.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    return dict(map(_figure, csv.DictReader(lines)))


def _figure(row: dict[str, str]) -> tuple[Place, Figure]:
    place = Place(row["cpe"], row["dataset"], row["method"], row["metric"], int(row["k"]) or None)
    figure = Figure(
        value=round(float(row["value"]) / 100, 6),
        std=round(float(row["std"]) / 100, 6),
        seconds=float(row["seconds"]) if row["seconds"] else None,
        n=int(row["n"]),
        m=int(row["m"]),
        seconds_std=float(row["seconds_std"]) if row["seconds_std"] else None,
    )
    return place, figure


def decides_as(policy: str, policies: Collection[str]) -> bool:
    """Whether, of those that were run, it is the policy that the paper's figures are of.

    >>> decides_as("greedy", ["greedy"]), decides_as("greedy", ["greedy", "greedy_plug_in"])
    (True, False)
    """
    return not any(VARIANTS.get(other) == policy for other in policies)


def find(protocol: str, dataset: str, policy: str, metric: str, k: int | None) -> Figure | None:
    """The paper's figure for a cell, under the paper's name of the dataset."""
    return figures().get(Place(protocol, dataset, KNOWN_AS.get(policy, policy), metric, k))


@dataclass(frozen=True)
class Section:
    """All records of one dataset with one estimator in one suite."""

    suite: str
    dataset: str
    protocol: str
    task: str
    estimator: dict[str, Any]  # its name and options, and what it said of itself
    n: int
    m: int
    targets: dict[str, Target]  # metric and budget of each column
    comparison: Comparison
    failed: int = 0  # runs
    paper: str | None = None  # the paper's name of the same data
    stands_for: str | None = None  # or of those that these stand in for

    @property
    def name(self) -> str:
        """For files and headings."""
        return f"{self.suite}-{self.dataset}-{self.estimator['name']}"

    @property
    def title(self) -> str:
        """As the paper heads its tables."""
        return f"{self.dataset} (m = {self.m}, n = {self.n})"


def sections(records: Iterable[Record]) -> list[Section]:
    """Records of studies, a section for each suite, dataset and estimator, in their order."""
    return [section_of(group) for group in grouped(records)]


def grouped(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each section; without sections of which nothing is finished."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record["kind"] == "study":
            spec = record["spec"]
            key = (record["suite"], spec["dataset"], repr(sorted(spec["estimator"].items())))
            groups.setdefault(key, []).append(record)
    return [group for group in groups.values() if any(map(_done, group))]


def _done(record: Record) -> bool:
    return record["result"] is not None


def section_of(records: list[Record]) -> Section:
    """One group of records as a section."""
    done = list(filter(_done, records))
    first = done[0]
    spec = first["spec"]
    entry = CATALOGUE.get(spec["dataset"])
    return Section(
        suite=first["suite"],
        dataset=spec["dataset"],
        protocol=spec["protocol"],
        task=spec["task"],
        estimator={**spec["estimator"], **(first["estimator"] or {})},
        n=first["result"]["rows"],
        m=first["result"].get("labels") or len(first["result"]["counts"]["tp"]),
        targets={title(*target): target for target in _targets(records)},
        comparison=_comparison(records),
        failed=len(records) - len(done),
        paper=None if entry is None or spec.get("made") else entry.paper,
        stands_for=_stands_for(spec),
    )


def _stands_for(spec: dict[str, Any]) -> str | None:
    made = spec.get("made") or {}
    name = made.get("name") if made.get("by") == "like" else STAND_INS.get(spec["dataset"])
    return None if name is None else str(name)


def title(metric: str, k: int | None) -> str:
    """What a column is called.

    >>> title("macro_f1", 3), title("micro_f1", None)
    ('macro_f1@3', 'micro_f1')
    """
    return str(Named(metric, k))


def _target(record: Record) -> Target:
    return record["spec"]["metric"], record["spec"]["k"]


def policy_of(record: Record) -> str:
    """The name of a record's policy, its kind of feedback included."""
    return name_of(record["spec"]["policy"], record["spec"]["feedback"])


def _targets(records: list[Record]) -> list[Target]:
    def place(target: Target) -> tuple[Any, ...]:
        metric, k = target
        budgeted = k is not None and k > 1
        ahead = metric.startswith("macro") if budgeted else metric in WHOLE
        return not ahead, ahead and budgeted, _rank(metric, METRICS), k or 0

    return sorted(dict.fromkeys(map(_target, records)), key=place)


def _rank(name: str, order: tuple[str, ...]) -> tuple[int, str]:
    return (order.index(name), "") if name in order else (len(order), name)


def _comparison(records: list[Record]) -> Comparison:
    policies = sorted(dict.fromkeys(map(policy_of, records)), key=lambda one: _rank(one, POLICIES))
    targets = _targets(records)
    seeds = tuple(sorted({record["spec"]["seed"] for record in records}))
    priors = {record["spec"]["prior"] for record in records} - {None}
    by_cell: dict[tuple[str, Target], list[Record]] = {}
    for record in records:
        by_cell.setdefault((policy_of(record), _target(record)), []).append(record)
    cells = {
        (policy, title(*target)): _cell(
            policy, target, by_cell.get((policy, target), []), len(seeds), len(priors)
        )
        for policy in policies
        for target in targets
    }
    return Comparison(
        policies=tuple(policies),
        metrics=tuple(title(*target) for target in targets),
        cells=cells,
        seeds=seeds,
        priors=tuple(sorted(priors)),
        complete=all(cell.complete for cell in cells.values()),
        titles={policy_of(record): record["label"] for record in records},
    )


def _cell(policy: str, target: Target, records: list[Record], seeds: int, priors: int) -> Cell:
    reason = "" if records or supports(policy, *target) else "not supported"
    by_prior: dict[float | None, list[Record]] = {}
    for record in sorted(filter(_done, records), key=lambda one: int(one["spec"]["seed"])):
        by_prior.setdefault(record["spec"]["prior"], []).append(record)
    wanted = seeds * (priors if has_prior(policy) else 1)
    order = sorted(by_prior, key=lambda prior: -1.0 if prior is None else prior)
    return Cell(
        policy=policy,
        metric=title(*target),
        k=target[1],
        by_prior={prior: _runs(prior, by_prior[prior]) for prior in order},
        reason=reason,
        complete=bool(reason) or sum(map(len, by_prior.values())) == wanted,
        fixed=ROSTER[policy].kind != ONLINE,
    )


def _runs(prior: float | None, records: list[Record]) -> Runs:
    results = [record["result"] for record in records]
    return Runs(
        prior,
        tuple(record["spec"]["seed"] for record in records),
        np.array([result["value"] for result in results]),
        np.array(results[0]["history"]["rows"], dtype=np.int64),
        np.array([record["seconds"]["run"] for record in records]),
        tuple(np.array(result["history"]["values"]) for result in results),
    )


def heading(metric: str, k: int | None) -> str:
    """A column's head as in the paper.

    >>> heading("macro_f1", 3), heading("multiclass_gmean", 1)
    ('Macro F1@3', 'Multi-class G-mean')
    """
    average, _, name = metric.partition("_")
    if average not in AVERAGES or name not in NAMES:
        return title(metric, k)
    return f"{AVERAGES[average]} {Named(NAMES[name], None if average == 'multiclass' else k)}"


def grid_of(section: Section, *, std: bool = False, paper: bool = True) -> Grid:
    """The table of a section; where the paper used the same data, its figures stand beside."""
    grid = section.comparison.grid(std)
    columns = tuple(heading(*section.targets[name]) for name in grid.columns)
    known = paper and section.paper is not None
    rows = [
        tuple(
            replace(entry, beside=_beside(entry, find_figure(section, policy, column)))
            if known
            else entry
            for entry, column in zip(row, grid.columns, strict=True)
        )
        for policy, row in zip(section.comparison.policies, grid.entries, strict=True)
    ]
    notes = (*grid.notes, *_notes(section, known))
    return replace(grid, columns=columns, entries=tuple(rows), notes=notes)


def find_figure(section: Section, policy: str, column: str) -> Figure | None:
    """What the paper reports for a cell, where it used the same data."""
    if section.paper is None:
        return None
    return find(section.protocol, section.paper, policy, *section.targets[column])


def _beside(entry: Entry, figure: Figure | None) -> str:
    """The paper's figure, and how far ours is from it."""
    if figure is None or not entry.shown:
        return ""
    return f"{100 * figure.value:.2f} {points(entry.mean - figure.value)}"


def points(difference: float) -> str:
    """A difference in points.

    >>> points(0.0123), points(-0.5)
    ('+1.23', '−50.00')
    """
    return f"{100 * difference:+.2f}".replace("-", "−")


def _notes(section: Section, known: bool) -> Iterator[str]:
    """How η was estimated, and what the brackets are."""
    said = section.estimator
    told = {key: said[key] for key in ("C", "learning_rate", "train_rows") if key in said}
    options = ", ".join(f"{key} = {_number(value)}" for key, value in told.items())
    how = {"known": "as the data were drawn with"}.get(said["name"], f"by {said['name']}")
    when = "learned along the sequence" if section.protocol == "online" else "fitted beforehand"
    known_options = f" ({options})" if options else ""
    yield f"Probabilities {how}{known_options}{'' if said['name'] == 'known' else f', {when}'}."
    if known:
        yield "In brackets the paper's figure and the difference to it in points."
    if section.failed:
        yield f"{section.failed} runs failed."


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)

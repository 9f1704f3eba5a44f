"""What wrong probabilities cost when they are calibrated on the way: the floor goes away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omma.study.records import Record
from omma.study.theory.cases import AUTO, CASES, ESTIMATES, OMMA, policy
from omma.study.theory.curves import averaged, fitted_rate, until
from omma.study.theory.shortfall import measure
from omma.study.theory.suite import Spec, Suite, label, last, power, table, with_power
from omma.study.theory.suites.drawing import COLORS, band, legend, named, panels
from omma.study.theory.suites.estimation import distortion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEMS = ("f1", "macro-f1")
# The first two are what calibration can undo, the last is not.
WRONG = {
    "log-odds × 2": ("overconfidence", 2.0),
    "log-odds + 1": ("bias", 1.0),
    "log-odds ± 1": ("noise", 1.0),
}
ENTRANTS = (OMMA, ESTIMATES, AUTO)


def simulate(spec: Spec) -> dict[str, Any]:
    """One policy on one problem, told the wrong probabilities."""
    problem = CASES[spec["dataset"]].problem()
    chosen = policy(spec["policy"], problem.metric, problem.k)
    distort = distortion(*WRONG[spec["distortion"]])
    found = measure(
        problem,
        chosen,
        until(spec["rows"]),
        spec["sequences"],
        seed=spec["seed"],
        distort=distort,
    )
    rate = fitted_rate(found.rows, found.regret)
    return {
        "rows": found.rows.tolist(),
        **averaged("regret", found.regret),
        "rate": rate and list(rate),
    }


def _at(rows: int) -> Any:
    """The regret after so many rows, as a column; after the last where there are fewer."""

    def cell(record: Record) -> str:
        seen = record["result"]["rows"]
        place = seen.index(rows) if rows in seen else len(seen) - 1
        return f"{record['result']['regret'][place]:.2e}"

    return cell


tables = table(
    "Regret with wrong probabilities, with and without calibration",
    {
        "problem": lambda record: CASES[record["spec"]["dataset"]].title,
        "told": lambda record: record["spec"]["distortion"],
        "policy": label,
    },
    {
        "n = 1,000": _at(1000),
        "n = 10,000": _at(10_000),
        "at the end": last("regret", ".2e"),
        "± 2 s.e.": last("regret_error", ".1e", times=2),
        "power": power,
    },
)


def figures(records: list[Record]) -> dict[str, Figure]:
    """A panel for each problem and distortion, on logarithmic axes."""
    places = [(name, told) for name in PROBLEMS for told in WRONG]
    mine = {
        place: {
            record["label"]: record
            for record in records
            if (record["spec"]["dataset"], record["spec"]["distortion"]) == place
        }
        for place in places
    }
    present = [place for place in places if mine[place]]
    if not present:
        return {}
    titles = [f"{told}: {CASES[name].title}" for name, told in present]
    figure, axes = panels(titles, columns=3, high=2.8, logs=True)
    for ax, place in zip(axes, present, strict=True):
        for entrant in ENTRANTS:
            if entrant in mine[place]:
                result = mine[place][entrant]["result"]
                curve = (result["rows"], result["regret"], result["regret_error"])
                said = with_power(entrant, mine[place][entrant])
                band(ax, *curve, color=COLORS[entrant], label=said)
        named(ax, "rows n", "regret")
        legend(ax, loc="best")
    return {"calibration": figure}


SUITE = Suite(
    "theory-calibration",
    "What wrong probabilities cost when they are calibrated on the way",
    [
        {"dataset": name, "policy": entrant, "distortion": told}
        for name in PROBLEMS
        for told in WRONG
        for entrant in ENTRANTS
    ],
    simulate,
    rows=(100_000, 3000),
    sequences=(12, 4),
    seed=4,
    tables=tables,
    figures=figures,
)

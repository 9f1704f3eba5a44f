"""What wrong probabilities cost when they are calibrated on the way: the floor goes away."""

from functools import partial
from typing import Any

from omma.study.records import Record
from omma.study.theory.cases import AUTO, CASES, ESTIMATES, OMMA, measured
from omma.study.theory.shortfall import averaged, fitted_rate
from omma.study.theory.suite import Spec, Suite, label, last, power, table, titled
from omma.study.theory.suites.drawing import curve, pictured
from omma.study.theory.suites.estimation import distortion

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
    distort = distortion(*WRONG[spec["distortion"]])
    found = measured(CASES[spec["dataset"]].problem(), spec, distort)
    return {
        "rows": found.rows.tolist(),
        **averaged("regret", found.regret),
        "rate": fitted_rate(found.rows, found.regret),
    }


def _at(rows: int, record: Record) -> str:
    """The regret after so many rows; after the last where there are fewer."""
    seen = record["result"]["rows"]
    place = seen.index(rows) if rows in seen else len(seen) - 1
    return f"{record['result']['regret'][place]:.2e}"


tables = table(
    "Regret with wrong probabilities, with and without calibration",
    {
        "problem": titled(CASES),
        "told": lambda record: record["spec"]["distortion"],
        "policy": label,
    },
    {
        "n = 1,000": partial(_at, 1000),
        "n = 10,000": partial(_at, 10_000),
        "at the end": last("regret", ".2e"),
        "± 2 s.e.": last("regret_error", ".1e", times=2),
        "power": power,
    },
)


def _draw(ax: Any, records: list[Record]) -> None:
    for record in records:
        curve(ax, record)


TITLE = "{distortion}: {case.title}"
figures = pictured("calibration", TITLE, _draw, CASES, place="best", columns=3, high=2.8)
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

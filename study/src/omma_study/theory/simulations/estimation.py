"""What wrong probabilities cost, and when to stop trusting them.

``CALIBRATION`` is what they cost when they are calibrated on the way: the floor goes away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import special

from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.tables import Table
from omma_study.theory import figures as drawing, utilities
from omma_study.theory.bounds import Task, omma_bound
from omma_study.theory.cases import AUTO, CASES, ESTIMATES, OMMA, Case, measured, policy
from omma_study.theory.regret import Distort, averaged, fitted_rate, measure, standard_error
from omma_study.theory.simulation import Simulation, Spec, last, power, table

Vector = NDArray[np.float64]
PROBLEMS = ("binary", "macro-f1")
STRENGTHS = {
    "noise": (0.0, 0.1, 0.25, 0.5, 1.0, 2.0),
    "bias": (0.0, 0.1, 0.25, 0.5, 1.0, 2.0),
    "negative bias": (0.0, -0.1, -0.25, -0.5, -1.0, -2.0),
    "overconfidence": (1.0, 1.1, 1.25, 1.5, 2.0, 3.0),
    "underconfidence": (1.0, 0.9, 0.8, 0.67, 0.5, 0.33),
}
MEANING = {
    "noise": "log-odds ± σ, σ =",
    "bias": "log-odds + b, b =",
    "negative bias": "log-odds + b, b =",
    "overconfidence": "log-odds × T, T =",
    "underconfidence": "log-odds × T, T =",
}


def distortion(kind: str, strength: float) -> Distort:
    """What an estimator of some kind makes of probabilities.

    >>> distortion("overconfidence", 2.0)(np.array([0.5, 0.75]), None).round(4).tolist()
    [0.5, 0.9]
    """

    def distort(eta: Vector, rng: np.random.Generator) -> Vector:
        odds = special.logit(np.clip(eta, 1e-12, 1.0 - 1e-12))
        if kind == "noise":
            odds = odds + strength * rng.standard_normal(eta.shape)
        else:
            odds = odds + strength if "bias" in kind else odds * strength
        return special.expit(odds)

    return distort


def distance(case: Case, distort: Distort, seed: int, rows: int = 100_000) -> float:
    """E‖η − η̂‖, the estimation error of the theorems."""
    rng = np.random.default_rng(seed)
    eta = case.problem().distribution.draw(rows, rng).eta
    return float(np.linalg.norm(eta - distort(eta, rng), axis=1).mean())


def simulate(spec: Spec) -> dict[str, Any]:
    """One policy under one kind of distortion of every strength."""
    case = CASES[spec["dataset"]]
    problem, rows = case.problem(), np.array(spec["rows"])
    curves: dict[str, list[Any]] = {"distance": [], "regret": [], "error": [], "bound": []}
    for strength in STRENGTHS[spec["distortion"]]:
        distort = distortion(spec["distortion"], strength)
        chosen = policy(spec["policy"], problem.metric, case.k)
        measured = measure(
            problem, chosen, rows, spec["sequences"], seed=spec["seed"], distort=distort
        )
        away = distance(case, distort, spec["seed"])
        curves["distance"].append(away)
        curves["regret"].append(measured.regret.mean(axis=0).tolist())
        curves["error"].append(standard_error(measured.regret).tolist())
        if case.name == "binary":
            known = utilities.geometric().constants
            curves["bound"].append(omma_bound(rows, known, Task.multilabel(1), away).tolist())
    return {**curves, "rows": rows.tolist(), "strength": STRENGTHS[spec["distortion"]]}


def crossing(record: Record, reference: Record, place: int) -> float | None:
    """From which strength on a policy's regret is above the other's, at one number of rows.

    Between the strengths that were tried, by a straight line; None if it is never above at the end.
    """
    mine, theirs = (np.array(r["result"]["regret"])[:, place] for r in (record, reference))
    lead = mine - theirs
    if lead[-1] <= 0:
        return None
    # The last strength at which it is no worse; from there on it stays above.
    below = np.flatnonzero(lead <= 0)
    strengths = np.array(record["result"]["strength"])
    if not len(below):
        return float(strengths[0])
    last = below[-1]
    share = -lead[last] / (lead[last + 1] - lead[last])
    return float(strengths[last] + share * (strengths[last + 1] - strengths[last]))


def _pairs(records: list[Record]) -> dict[tuple[str, str], dict[str, Record]]:
    """Records of both policies, by problem and kind of distortion."""
    pairs: dict[tuple[str, str], dict[str, Record]] = {}
    for record in records:
        place = (record["spec"]["dataset"], record["spec"]["distortion"])
        pairs.setdefault(place, {})[record["label"]] = record
    ordered = [(name, kind) for kind in STRENGTHS for name in PROBLEMS]
    return {place: pairs[place] for place in ordered if len(pairs.get(place, {})) == 2}


def tables(records: list[Record]) -> list[Table]:
    """The strength of a distortion from which on labels are worth more than estimates."""
    lines = []
    for (name, kind), pair in _pairs(records).items():
        line = {"problem": CASES[name].title, "distortion": f"{kind}, {MEANING[kind]}"}
        for place, n in enumerate(pair[OMMA]["result"]["rows"]):
            strength = crossing(pair[ESTIMATES], pair[OMMA], place)
            line[f"n = {n:,}"] = "never" if strength is None else f"{strength:.2f}"
        lines.append(line)
    title = f"{OMMA} is better than {ESTIMATES} from this strength on"
    return [Table(title, pd.DataFrame(lines), words=2)]


def figures(records: list[Record]) -> dict[str, Figure]:
    """Regret against the measured error, and what trusting the estimates costs."""
    pairs = _pairs(records)
    if not pairs:
        return {}
    return {"estimation": _against_distance(pairs), "trust": _against_strength(pairs)}


def _against_distance(pairs: dict[tuple[str, str], dict[str, Record]]) -> Figure:
    titles = [f"{kind}: {CASES[name].title}" for name, kind in pairs]
    figure, places = drawing.panels(titles, high=2.5, logs=True)
    for ax, pair in zip(places, pairs.values(), strict=True):
        for entrant, record in pair.items():
            result = record["result"]
            away = np.array(result["distance"])[1:]  # without distortion there is no distance
            regret, error = (np.array(result[part])[1:, -1] for part in ("regret", "error"))
            drawing.band(ax, away, regret, error, color=drawing.COLORS[entrant], label=entrant)
        if result["bound"]:
            drawing.bound(ax, away, np.array(result["bound"])[1:, -1], "bound of OMMA", width=1.2)
        ax.set_xticks(away, [f"{each:.2g}" for each in away])
        ax.set_xticks([], minor=True)
        loc = "lower right" if result["bound"] else "upper left"
        names = ("distance of η̂ from η", f"regret at n = {result['rows'][-1]:,}")
        drawing.finish(ax, *names, loc)
    return figure


def _against_strength(pairs: dict[tuple[str, str], dict[str, Record]]) -> Figure:
    figure, places = drawing.panels(
        [f"{kind}: {CASES[name].title}" for name, kind in pairs], high=2.5
    )
    for ax, ((_, kind), pair) in zip(places, pairs.items(), strict=True):
        ax.set_yscale("symlog", linthresh=1e-4)
        ax.axhline(0.0, color=drawing.BOUND, linewidth=1)
        result = pair[OMMA]["result"]
        for place, n in enumerate(result["rows"]):
            lead, error = _lead(pair, place)
            drawing.band(
                ax, result["strength"], lead, error, color=LEARNING[place], label=f"n = {n:,}"
            )
        if result["strength"][-1] < result["strength"][0]:
            ax.invert_xaxis()  # no distortion is on the left
        names = (MEANING[kind].rstrip(" ="), f"regret of {ESTIMATES}\n− that of {OMMA}")
        drawing.finish(ax, *names, loc="best")
    return figure


def _lead(pair: dict[str, Record], place: int) -> tuple[Vector, Vector]:
    """How much more OMMA(η̂) regrets than OMMA, and the error of that."""
    regrets, errors = (
        [np.array(pair[who]["result"][part])[:, place] for who in (ESTIMATES, OMMA)]
        for part in ("regret", "error")
    )
    return regrets[0] - regrets[1], np.hypot(*errors)


SUITE = Simulation(
    "theory-estimation",
    "What wrong probabilities cost",
    [
        {"dataset": name, "policy": entrant, "distortion": kind}
        for name in PROBLEMS
        for kind in STRENGTHS
        for entrant in (OMMA, ESTIMATES)
    ],
    simulate,
    rows=((1_000, 10_000, 100_000), (300, 3_000)),
    sequences=(16, 4),
    seed=2,
    tables=tables,
    figures=figures,
)

# The first two are what calibration can undo, the last is not.
WRONG = {
    "log-odds × 2": ("overconfidence", 2.0),
    "log-odds + 1": ("bias", 1.0),
    "log-odds ± 1": ("noise", 1.0),
}
ENTRANTS = (OMMA, ESTIMATES, AUTO)


def calibrated(spec: Spec) -> dict[str, Any]:
    """One policy on one problem, told the wrong probabilities."""
    distort = distortion(*WRONG[spec["distortion"]])
    curves = measured(CASES[spec["dataset"]].problem(), spec, distort)
    return {
        "rows": curves.rows.tolist(),
        **averaged("regret", curves.regret),
        "rate": fitted_rate(curves.rows, curves.regret),
    }


def _at(rows: int, record: Record) -> str:
    """The regret after so many rows; after the last where there are fewer."""
    seen = record["result"]["rows"]
    place = seen.index(rows) if rows in seen else len(seen) - 1
    return f"{record['result']['regret'][place]:.2e}"


def _row(record: Record) -> dict[str, str]:
    return {
        "problem": CASES[record["spec"]["dataset"]].title,
        "told": record["spec"]["distortion"],
        "policy": record["label"],
        "n = 1,000": _at(1000, record),
        "n = 10,000": _at(10_000, record),
        "at the end": last(record, "regret", ".2e"),
        "± 2 s.e.": last(record, "regret_error", ".1e", times=2),
        "power": power(record),
    }


CALIBRATION = Simulation(
    "theory-calibration",
    "What wrong probabilities cost when they are calibrated on the way",
    [
        {"dataset": name, "policy": entrant, "distortion": told}
        for name in ("f1", "macro-f1")
        for told in WRONG
        for entrant in ENTRANTS
    ],
    calibrated,
    rows=(100_000, 3000),
    sequences=(12, 4),
    seed=4,
    tables=table("Regret with wrong probabilities, with and without calibration", _row, words=3),
    figures=drawing.pictured(
        "calibration",
        "{distortion}: {case.title}",
        drawing.curves,
        CASES,
        place="best",
        columns=3,
        high=2.8,
    ),
)

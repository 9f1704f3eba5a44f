"""The cost of wrong probabilities, and when labels are worth more than estimates.

``CALIBRATION`` repeats this with online calibration, under which regret falls to zero.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import special

from omma.plots import LEARNING
from omma_study.records import Record
from omma_study.tables import Table
from omma_study.theory import utilities
from omma_study.theory.bounds import Task, omma_bound
from omma_study.theory.cases import AUTO, CASES, ESTIMATES, OMMA, measured, policy
from omma_study.theory.distributions import Vector
from omma_study.theory.regret import Distort, averaged, fitted_rate, measure, standard_error
from omma_study.theory.simulation import (
    BOUND,
    COLORS,
    Simulation,
    Spec,
    band,
    bound,
    curves,
    finish,
    last,
    panels,
    pictured,
    power_and_interval,
    table,
)

PROBLEMS = ("binary", "macro-f1")
DISTANCE_ROWS = 100_000  # by which the distance of estimates is measured
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
    """A function that distorts probabilities, as an estimator with this kind of error does.

    >>> distortion("overconfidence", 2.0)(np.array([0.5, 0.75]), None).round(4).tolist()
    [0.5, 0.9]
    """

    def distort(eta: Vector, rng: np.random.Generator) -> Vector:
        # Log-odds of 0 and 1 are infinite.
        odds = special.logit(np.clip(eta, 1e-12, 1.0 - 1e-12))
        if kind == "noise":
            odds = odds + strength * rng.standard_normal(eta.shape)
        else:
            odds = odds + strength if "bias" in kind else odds * strength
        return special.expit(odds)

    return distort


def simulate(spec: Spec) -> dict[str, Any]:
    """One policy under one kind of distortion of every strength."""
    problem, rows = CASES[spec["dataset"]].problem, np.array(spec["rows"])
    chosen = policy(spec["policy"], problem.metric, problem.k)
    results: dict[str, list[Any]] = {"distance": [], "regret": [], "error": [], "bound": []}
    for strength in STRENGTHS[spec["distortion"]]:
        distort = distortion(spec["distortion"], strength)
        regret = measure(
            problem, chosen, rows, spec["sequences"], seed=spec["seed"], distort=distort
        ).regret
        # E‖η − η̂‖, the estimation error of the theorems, on rows of its own.
        rng = np.random.default_rng(spec["seed"])
        eta = problem.distribution.draw(DISTANCE_ROWS, rng).eta
        distance = float(np.linalg.norm(eta - distort(eta, rng), axis=1).mean())
        results["distance"].append(distance)
        results["regret"].append(regret.mean(axis=0).tolist())
        results["error"].append(standard_error(regret).tolist())
        if spec["dataset"] == "binary":  # the utility whose constants are known
            constants = utilities.geometric().constants
            results["bound"].append(
                omma_bound(rows, constants, Task.multilabel(1), distance).tolist()
            )
    return {**results, "rows": rows.tolist(), "strength": STRENGTHS[spec["distortion"]]}


def crossing(record: Record, reference: Record, place: int) -> float | None:
    """The strength from which on a policy has more regret than another, at one number of rows.

    It is interpolated between the strengths that were tried. None if the policy has no more regret
    at the largest strength.
    """
    regrets, other_regrets = (
        np.array(r["result"]["regret"])[:, place] for r in (record, reference)
    )
    lead = regrets - other_regrets
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


def pairs_of(records: list[Record]) -> dict[tuple[str, str], dict[str, Record]]:
    """Records of both policies, by problem and kind of distortion."""
    pairs: dict[tuple[str, str], dict[str, Record]] = {
        (name, kind): {} for kind in STRENGTHS for name in PROBLEMS
    }
    for record in records:
        pairs[record["spec"]["dataset"], record["spec"]["distortion"]][record["label"]] = record
    return {place: pair for place, pair in pairs.items() if len(pair) == 2}


def tables(records: list[Record]) -> list[Table]:
    """The strength of a distortion from which on labels are worth more than estimates."""
    lines = []
    for (name, kind), pair in pairs_of(records).items():
        line = {"problem": CASES[name].title, "distortion": f"{kind}, {MEANING[kind]}"}
        for place, n in enumerate(pair[OMMA]["result"]["rows"]):
            strength = crossing(pair[ESTIMATES], pair[OMMA], place)
            line[f"n = {n:,}"] = "never" if strength is None else f"{strength:.2f}"
        lines.append(line)
    title = f"{OMMA} is better than {ESTIMATES} from this strength on"
    return [Table(title, pd.DataFrame(lines), words=2)]


def figures(records: list[Record]) -> dict[str, Figure]:
    """Regret against the measured error, and what trusting the estimates costs."""
    pairs = pairs_of(records)
    if not pairs:
        return {}
    titles = [f"{kind}: {CASES[name].title}" for name, kind in pairs]
    by_distance, axes = panels(titles, high=2.5, logs=True)
    for ax, pair in zip(axes, pairs.values(), strict=True):
        for entrant, record in pair.items():
            result = record["result"]
            distance = np.array(result["distance"])[1:]  # without distortion there is no distance
            regret, error = (np.array(result[part])[1:, -1] for part in ("regret", "error"))
            band(ax, distance, regret, error, color=COLORS[entrant], label=entrant)
        if result["bound"]:
            bound(ax, distance, np.array(result["bound"])[1:, -1], "bound of OMMA", width=1.2)
        ax.set_xticks(distance, [f"{each:.2g}" for each in distance])
        ax.set_xticks([], minor=True)
        loc = "lower right" if result["bound"] else "upper left"
        finish(ax, "distance of η̂ from η", f"regret at n = {result['rows'][-1]:,}", loc)

    by_strength, axes = panels(titles, high=2.5)
    for ax, ((_, kind), pair) in zip(axes, pairs.items(), strict=True):
        ax.set_yscale("symlog", linthresh=1e-4)
        ax.axhline(0.0, color=BOUND, linewidth=1)
        trusting, result = pair[ESTIMATES]["result"], pair[OMMA]["result"]
        # How much more OMMA(η̂) regrets than OMMA: a row for each strength, a column for each n.
        lead = np.array(trusting["regret"]) - np.array(result["regret"])
        errors = np.hypot(trusting["error"], result["error"])
        for place, n in enumerate(result["rows"]):
            look = {"color": LEARNING[place], "label": f"n = {n:,}"}
            band(ax, result["strength"], lead[:, place], errors[:, place], **look)
        if result["strength"][-1] < result["strength"][0]:
            ax.invert_xaxis()  # no distortion is on the left
        aside = f"regret of {ESTIMATES}\n− that of {OMMA}"
        finish(ax, MEANING[kind].rstrip(" ="), aside, loc="best")
    return {"estimation": by_distance, "trust": by_strength}


ESTIMATION = Simulation(
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

# Distortions by kind and strength. Calibration can undo the first two, not the last.
WRONG = {
    "log-odds × 2": ("overconfidence", 2.0),
    "log-odds + 1": ("bias", 1.0),
    "log-odds ± 1": ("noise", 1.0),
}


def simulate_calibration(spec: Spec) -> dict[str, Any]:
    """One policy on one problem, with wrong probabilities."""
    distort = distortion(*WRONG[spec["distortion"]])
    shortfalls = measured(CASES[spec["dataset"]].problem, spec, distort)
    return {
        "rows": shortfalls.rows.tolist(),
        **averaged("regret", shortfalls.regret),
        "rate": fitted_rate(shortfalls.rows, shortfalls.regret),
    }


def _row(record: Record) -> dict[str, str]:
    rows, regret = record["result"]["rows"], record["result"]["regret"]
    # A quick run ends before 10,000 rows: then its last value is shown.
    early, late = (regret[rows.index(n) if n in rows else -1] for n in (1_000, 10_000))
    return {
        "problem": CASES[record["spec"]["dataset"]].title,
        "told": record["spec"]["distortion"],
        "policy": record["label"],
        "n = 1,000": f"{early:.2e}",
        "n = 10,000": f"{late:.2e}",
        "at the end": last(record, "regret", ".2e"),
        "± 2 s.e.": last(record, "regret_error", ".1e", times=2),
        "power": power_and_interval(record)["power"],
    }


CALIBRATION = Simulation(
    "theory-calibration",
    "What wrong probabilities cost when they are calibrated on the way",
    [
        {"dataset": name, "policy": entrant, "distortion": told}
        for name in ("f1", "macro-f1")
        for told in WRONG
        for entrant in (OMMA, ESTIMATES, AUTO)
    ],
    simulate_calibration,
    rows=(100_000, 3000),
    sequences=(12, 4),
    seed=4,
    tables=table("Regret with wrong probabilities, with and without calibration", _row, words=3),
    figures=pictured(
        "calibration",
        "{distortion}: {case.title}",
        curves,
        CASES,
        place="best",
        columns=3,
        high=2.8,
    ),
)

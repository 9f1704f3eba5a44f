"""Rules that must keep a limit on rows not seen: ours with a margin, and MAPIE's risk control.

    python -m benchmarks risk [--splits 200] [--rows 2000]

leaves MAPIE out where it is not installed (`pip install mapie`). One label with a known
distribution: each split draws rows to fit a threshold on, and the precision or recall of that
threshold on all other rows is known exactly. A method says how sure it is (90 %), and should break
the limit in no more than 10 % of splits; what it gives for that is the other rate.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import omma
from benchmarks.measure import Table

Array = NDArray[Any]
SURE, ERRORS = 0.9, 1.2816  # one-sided, and the same in standard errors
SPREAD, MIDDLE = 2.5, -3.0  # of log-odds: one row in six is positive
GRID = np.linspace(-9.0, 9.0, 20_001)
WEIGHT = np.exp(-(GRID**2) / 2.0) / np.exp(-(GRID**2) / 2.0).sum()
TASKS = (("recall", "precision", 0.8), ("specificity", "recall", 0.8))


def probabilities(z: Array) -> Array:
    """Of rows at some places of the distribution."""
    found: Array = 1.0 / (1.0 + np.exp(-(SPREAD * z + MIDDLE)))
    return found


def drawn(seed: int, n: int) -> tuple[Array, Array]:
    """Probabilities, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    eta = probabilities(rng.normal(size=n))
    return eta, (rng.random(n) < eta).astype(np.int8)


def truth(threshold: float) -> dict[str, float]:
    """Precision and recall of a threshold on the distribution; precision of nothing is one."""
    eta = probabilities(GRID)
    chosen = WEIGHT * (eta >= threshold)
    tp, predicted = float((chosen * eta).sum()), float(chosen.sum())
    precision = tp / predicted if predicted > 0 else 1.0
    return {"precision": precision, "recall": tp / float((WEIGHT * eta).sum())}


def tuned(margin: float) -> Callable[..., float]:
    """Thresholds tuned under the limit, so many standard errors away from it."""

    def fit(metric: str, limit: str, bound: float, eta: Array, y: Array) -> float:
        wanted = omma.at_least(limit, bound, margin=margin)
        found = omma.TunedThresholds(metric, subject_to=wanted).fit(eta, y)
        return float(found.decision.thresholds[0])

    return fit


def streamed(margin: float) -> Callable[..., float]:
    """The rule of one pass, at its mean price."""

    def fit(metric: str, limit: str, bound: float, eta: Array, y: Array) -> float:
        wanted = omma.at_least(limit, bound, margin=margin)
        trace = omma.replay(omma.Auto(metric, subject_to=wanted), eta, y, checkpoints=0)
        return float(trace.rule.thresholds[0])

    return fit


def chosen(margin: float) -> Callable[..., float]:
    """The rule that is recommended, of all that are judged on rows they have not seen."""

    def fit(metric: str, limit: str, bound: float, eta: Array, y: Array) -> float:
        wanted = omma.at_least(limit, bound, margin=margin)
        found = omma.choose(eta, y, metric, subject_to=wanted, draws=2)
        return float(found.rule.thresholds[0])

    return fit


def classifier(margin: float) -> Callable[..., float]:
    """What ``MetricClassifier`` keeps, its model fitted to the same rows.

    The model knows the log-odds but for their scale and level, and its probabilities rise with
    them: so its decisions are those of a threshold of the true probability.
    """
    from sklearn.linear_model import LogisticRegression

    from omma.sklearn import MetricClassifier

    def fit(metric: str, limit: str, bound: float, eta: Array, y: Array) -> float:
        wanted = omma.at_least(limit, bound, margin=margin)
        places = (np.log(eta / (1.0 - eta)) - MIDDLE) / SPREAD
        model = MetricClassifier(LogisticRegression(), metric=metric, subject_to=wanted)
        predicted = model.fit(places[:, np.newaxis], y).predict(GRID[:, np.newaxis])
        return float(probabilities(GRID)[predicted.argmax()]) if predicted.any() else np.inf

    return fit


def mapie(method: str) -> Callable[..., float]:
    """MAPIE's controller over its hundred thresholds, the safest first; infinite where none is."""
    from mapie.risk_control import BinaryClassificationController

    def both(rows: Array) -> Array:
        values = np.asarray(rows, dtype=float)[:, 0]
        return np.stack((1.0 - values, values), axis=1)

    def fit(metric: str, limit: str, bound: float, eta: Array, y: Array) -> float:
        tried = np.linspace(0.0, 0.99, 100)
        controller = BinaryClassificationController(
            both,
            limit,
            bound,
            confidence_level=SURE,
            list_predict_params=tried[::-1] if limit == "precision" else tried,
            fwer_method=method,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where no threshold is sure enough
            controller.calibrate(eta[:, np.newaxis], y)
        found = controller.best_predict_param
        return np.inf if found is None else float(found)

    return fit


def methods() -> dict[str, Callable[..., float]]:
    """All that are compared, by name."""
    theirs = {}
    if find_spec("mapie") is not None:
        theirs = {
            "MAPIE, 90 % sure (default)": mapie("bonferroni_holm"),
            "MAPIE, 90 % sure, fixed sequence": mapie("fixed_sequence"),
        }
    return {
        **theirs,
        f"TunedThresholds, margin {ERRORS:.2f}": tuned(ERRORS),
        "TunedThresholds, no margin": tuned(0.0),
        f"Auto's rule, margin {ERRORS:.2f}": streamed(ERRORS),
        "Auto's rule, no margin": streamed(0.0),
        f"choose, margin {ERRORS:.2f}": chosen(ERRORS),
        "choose, no margin": chosen(0.0),
        f"MetricClassifier, margin {ERRORS:.2f}": classifier(ERRORS),
        "MetricClassifier, no margin": classifier(0.0),
    }


def compared(splits: int, rows: int) -> Table:
    """Violations and value of each method."""
    lines = []
    for metric, limit, bound in TASKS:
        other = "precision" if limit == "recall" else "recall"
        for name, fit in methods().items():
            found = [truth(fit(metric, limit, bound, *drawn(seed, rows))) for seed in range(splits)]
            kept = np.array([one[limit] for one in found])
            lines.append(
                {
                    "method": name,
                    "limit": f"{limit} >= {bound:g}",
                    "rows": rows,
                    "broken, %": round(100 * float(np.mean(kept < bound - 1e-9)), 1),
                    "limit reached": round(float(kept.mean()), 4),
                    "the other rate": round(float(np.mean([one[other] for one in found])), 4),
                }
            )
    return Table("A limit on rows not seen", f"{splits} splits; judged exactly", lines)


def main() -> None:
    """Compare, and show it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    given = parser.parse_args()
    compared(given.splits, given.rows).show(Console(width=120))

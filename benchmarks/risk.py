"""Rules that must keep a limit on rows not seen: ours with a margin, and MAPIE's risk control.

MAPIE is left out where it is not installed (`pip install mapie`). One label with a known
distribution: each split draws rows to fit a threshold on, and the precision or recall of that
threshold on all other rows is known exactly. A method says how sure it is (90 %), and should break
the limit in no more than 10 % of splits; what it gives for that is the other rate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

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
    return np.asarray(expit(SPREAD * z + MIDDLE))


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


def tuned(metric: str, limit: omma.Limit, eta: Array, y: Array) -> omma.Rule:
    """Thresholds tuned under the limit."""
    return omma.TunedThresholds(metric, subject_to=limit).fit(eta, y).decision


def streamed(metric: str, limit: omma.Limit, eta: Array, y: Array) -> omma.Rule:
    """The rule of one pass, at its mean price."""
    return omma.replay(omma.Auto(metric, subject_to=limit), eta, y, checkpoints=0).rule


def chosen(metric: str, limit: omma.Limit, eta: Array, y: Array) -> omma.Rule:
    """The rule that is recommended, of all that are judged on rows they have not seen."""
    return omma.choose(eta, y, metric, subject_to=limit, draws=2).rule


def classifier(metric: str, limit: omma.Limit, eta: Array, y: Array) -> float:
    """What ``MetricClassifier`` keeps, its model fitted to the same rows.

    The model knows the log-odds but for their scale and level, and its probabilities rise with
    them: so its decisions are those of a threshold of the true probability.
    """
    from sklearn.linear_model import LogisticRegression

    from omma.sklearn import MetricClassifier

    places = (np.log(eta / (1.0 - eta)) - MIDDLE) / SPREAD
    model = MetricClassifier(LogisticRegression(), metric=metric, subject_to=limit)
    predicted = model.fit(places[:, np.newaxis], y).predict(GRID[:, np.newaxis])
    return float(probabilities(GRID)[predicted.argmax()]) if predicted.any() else np.inf


OURS = {
    "TunedThresholds": tuned,
    "Auto's rule": streamed,
    "choose": chosen,
    "MetricClassifier": classifier,
}


def with_margin(fit: Callable[..., Any], margin: float) -> Callable[..., float]:
    """A threshold under a limit from which the rule stays so many standard errors away."""

    def threshold(metric: str, limit: str, bound: float, eta: Array, y: Array) -> float:
        rule = fit(metric, omma.at_least(limit, bound, margin=margin), eta, y)
        return float(rule.thresholds[0] if isinstance(rule, omma.Rule) else rule)

    return threshold


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
        threshold = controller.best_predict_param
        return np.inf if threshold is None else float(threshold)

    return fit


def risk(splits: int = 200, rows: int = 2000) -> Iterator[Table]:
    """Violations and value of each method."""
    methods: dict[str, Callable[..., float]] = {}
    if find_spec("mapie") is not None:
        methods["MAPIE, 90 % sure (default)"] = mapie("bonferroni_holm")
        methods["MAPIE, 90 % sure, fixed sequence"] = mapie("fixed_sequence")
    for name, fit in OURS.items():
        methods[f"{name}, margin {ERRORS:.2f}"] = with_margin(fit, ERRORS)
        methods[f"{name}, no margin"] = with_margin(fit, 0.0)
    table = Table("A limit on rows not seen", f"{splits} splits; judged exactly")
    for metric, limit, bound in TASKS:
        counterpart = "precision" if limit == "recall" else "recall"
        for name, threshold in methods.items():
            rates = [
                truth(threshold(metric, limit, bound, *drawn(seed, rows))) for seed in range(splits)
            ]
            reached = np.array([of_split[limit] for of_split in rates])
            gained = np.mean([of_split[counterpart] for of_split in rates])
            table.rows.append(
                {
                    "method": name,
                    "limit": f"{limit} >= {bound:g}",
                    "rows": rows,
                    "broken, %": round(100 * float(np.mean(reached < bound - 1e-9)), 1),
                    "limit reached": round(float(reached.mean()), 4),
                    "the other rate": round(float(gained), 4),
                }
            )
    yield table

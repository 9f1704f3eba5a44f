"""Compare tuned thresholds with Auto on unseen rows: the tables of docs/thresholds.md.

    python docs/make_thresholds.py

It takes about a minute and writes the tables into the page. Each figure is a mean over five seeds.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import omma

PAGE = Path(__file__).parent / "thresholds.md"
SEEDS = range(5)
LABELS, UNSEEN = 20, 20_000  # labels, and rows to score on
CHANGED = 3.0  # odds of every label are multiplied by this after the drift


def overconfident(eta):
    """The same ranking with log-odds times 1.5, as a model that is too sure of itself gives."""
    return 1 / (1 + ((1 - eta) / eta) ** 1.5)


def tuned_rule(metric, eta, y, **options):
    """One threshold a label, each the best on the given rows."""
    return omma.TunedThresholds(metric, **options).fit(eta, y).decision


def auto_rule(metric, eta, y, **options):
    """The rule that Auto has learned after the given rows."""
    return omma.replay(omma.Auto(metric, **options), eta, y).rule


def score(metric, rule, eta, y):
    """The metric of a rule's decisions."""
    return omma.metric(metric).score(y, rule.predict(eta))


def few_labels(warp=lambda eta: eta):
    """Macro F1 on unseen rows after 100 to 10,000 labelled ones."""
    for rows in (100, 300, 1000, 3000, 10_000):
        yield (f"{rows:,}", *_mean(_few_labels(rows, seed, warp) for seed in SEEDS))


def _few_labels(rows, seed, warp):
    eta, y = omma.datasets.long_tail(n=rows + UNSEEN, m=LABELS, seed=seed)
    eta = warp(eta)
    seen, unseen = (eta[:rows], y[:rows]), (eta[rows:], y[rows:])
    rules = (
        omma.Rule(np.ones(LABELS), np.full(LABELS, -0.5)),
        tuned_rule("macro_f1", *seen),
        auto_rule("macro_f1", *seen),
    )
    return [score("macro_f1", rule, *unseen) for rule in rules]


def one_label():
    """F1 of one label with a base rate of 5 %, and micro F1 with one threshold for all labels."""
    for rows in (100, 300, 1000, 10_000):
        yield (f"F1 of one label, {rows:,}", *_mean(_one_label(rows, seed) for seed in SEEDS))
    for rows in (100, 300, 1000):
        yield (f"micro F1 of 20 labels, {rows:,}", *_mean(_micro(rows, seed) for seed in SEEDS))


def _one_label(rows, seed):
    eta, y = omma.datasets.long_tail(n=rows + UNSEEN, m=LABELS, seed=seed)
    scores = []
    for j in range(4, 12):  # labels in 3 to 10 % of the rows
        seen, unseen = (eta[:rows, j], y[:rows, j]), (eta[rows:, j], y[rows:, j])
        rules = tuned_rule("f1", *seen), auto_rule("f1", *seen)
        half = omma.metric("f1").score(unseen[1], (unseen[0] >= 0.5).astype(int))
        scores.append([half, *(score("f1", rule, *unseen) for rule in rules)])
    return np.mean(scores, axis=0)


def _micro(rows, seed):
    eta, y = omma.datasets.long_tail(n=rows + UNSEEN, m=LABELS, seed=seed)
    metric = omma.metric("micro_f1")
    cuts = np.arange(0.01, 1, 0.01)
    tuned = [metric.score(y[:rows], (eta[:rows] >= cut).astype(int)) for cut in cuts]
    best = cuts[np.argmax(tuned)]
    rule = auto_rule("micro_f1", eta[:rows], y[:rows])
    shared = [metric.score(y[rows:], (eta[rows:] >= cut).astype(int)) for cut in (0.5, best)]
    return [*shared, score("micro_f1", rule, eta[rows:], y[rows:])]


def budgets():
    """Exactly 3 labels a row: macro recall and macro F1 after 1,000 labelled rows."""
    for metric in ("macro_recall", "macro_precision", "macro_f1"):
        yield (f"{metric}@3", *_mean(_budget(metric, seed) for seed in SEEDS))


def _budget(metric, seed, rows=1000, k=3):
    eta, y = omma.datasets.long_tail(n=rows + UNSEEN, m=LABELS, seed=seed)
    seen, unseen = (eta[:rows], y[:rows]), (eta[rows:], y[rows:])
    thresholds = tuned_rule("macro_f1", *seen).thresholds
    rules = (
        omma.Rule(np.ones(LABELS), np.zeros(LABELS), k=k),
        omma.Rule(np.ones(LABELS), -thresholds, k=k),  # the furthest above their thresholds
        auto_rule(metric, *seen, k=k),
    )
    return [score(metric, rule, *unseen) for rule in rules]


def limits():
    """Macro F1 and precision after the limit micro_precision >= 0.5, set on 300 or 3,000 rows."""
    for rows in (300, 3000):
        results = np.array([_limit(rows, seed) for seed in SEEDS])
        for name, columns in (("tuned thresholds", results[:, 0]), ("Auto", results[:, 1])):
            macro_f1, precision = columns.mean(axis=0)
            missed = int((columns[:, 1] < 0.495).sum())
            yield f"{rows:,}", name, macro_f1, precision, f"{missed} of {len(SEEDS)}"


def _limit(rows, seed, limit="micro_precision >= 0.5"):
    eta, y = omma.datasets.long_tail(n=rows + UNSEEN, m=LABELS, seed=seed)
    tuned = tuned_rule("macro_f1", eta[:rows], y[:rows], subject_to=limit).predict(eta[rows:])
    stream = omma.replay(omma.Auto("macro_f1", subject_to=limit), eta, y).predictions[rows:]
    return [
        [omma.metric(name).score(y[rows:], decided) for name in ("macro_f1", "micro_precision")]
        for decided in (tuned, stream)
    ]


def drift():
    """Macro F1 after the base rates rise: thresholds of before, and Auto that goes on learning."""
    results = _mean(_drift(seed) for seed in SEEDS)
    for name, value in zip(("before", "after"), np.reshape(results, (2, 3)), strict=True):
        yield (name, *value)


def _drift(seed, rows=3000):
    """Labels become three times as likely, and the model does not know."""
    eta, y = omma.datasets.long_tail(n=rows + 2 * UNSEEN, m=LABELS, seed=seed)
    odds = CHANGED * eta / (1 - eta)
    changed = rows + UNSEEN
    draws = np.random.default_rng(seed).random(y[changed:].shape)
    y[changed:] = draws < (odds / (1 + odds))[changed:]
    tuned = tuned_rule("macro_f1", eta[:rows], y[:rows]).predict(eta)
    policy = omma.Forgetting(omma.Auto("macro_f1"), half_life=3000)
    online = omma.replay(policy, eta, y).predictions
    metric = omma.metric("macro_f1")
    parts = (slice(rows, changed), slice(changed, None))
    ways = ((eta >= 0.5).astype(int), tuned, online)
    return [metric.score(y[part], way[part]) for part in parts for way in ways]


def no_labels():
    """Macro F1 without any label, by probabilities that are exact or too sure."""
    for name, warp in (("calibrated", lambda eta: eta), ("overconfident", overconfident)):
        yield (name, *_mean(_no_labels(seed, warp) for seed in SEEDS))


def _no_labels(seed, warp):
    eta, y = omma.datasets.long_tail(n=UNSEEN, m=LABELS, seed=seed)
    eta = warp(eta)
    half = omma.metric("macro_f1").score(y, (eta >= 0.5).astype(int))
    return [half, omma.replay(omma.OMMA("macro_f1", feedback="estimates", prior=0.1), eta, y).value]


def confident():
    """Digits of scikit-learn: a model that is nearly always right leaves little to decide."""
    yield ("macro F1 of 10 digits, 300", *_mean(_confident(seed) for seed in SEEDS))


def _confident(seed, rows=300, trained=600):
    pixels, digit = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(pixels))
    pixels, digit = pixels[order] / 16, digit[order]
    model = LogisticRegression(max_iter=1000).fit(pixels[:trained], digit[:trained])
    eta, y = model.predict_proba(pixels[trained:]), np.eye(10, dtype=int)[digit[trained:]]
    seen, unseen = (eta[:rows], y[:rows]), (eta[rows:], y[rows:])
    half = omma.metric("macro_f1").score(unseen[1], (unseen[0] >= 0.5).astype(int))
    rules = tuned_rule("macro_f1", *seen), auto_rule("macro_f1", *seen)
    return [half, *(score("macro_f1", rule, *unseen) for rule in rules)]


def _mean(scores):
    return np.mean(list(scores), axis=0)


# The tables of the page, by the marker above each: heads and rows.
WAYS = ("threshold 0.5", "tuned thresholds", "Auto")
TABLES = {
    "few": (("labelled rows", *WAYS), few_labels),
    "overconfident": (("labelled rows", *WAYS), lambda: few_labels(overconfident)),
    "one": (("metric, labelled rows", *WAYS), lambda: [*one_label(), *confident()]),
    "budgets": (("metric", "top 3", "3 furthest above tuned thresholds", "Auto"), budgets),
    "limits": (("labelled rows", "rule", "macro F1", "precision", "limit missed"), limits),
    "drift": (("rows", *WAYS), drift),
    "none": (("probabilities", "threshold 0.5", "OMMA without labels"), no_labels),
}


def table(name):
    """One table in Markdown."""
    heads, rows = TABLES[name]
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1)]
    lines += [[cell if isinstance(cell, str) else f"{cell:.3f}" for cell in row] for row in rows()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def written(page):
    """The page with all its tables made anew."""
    for name in TABLES:
        found = re.compile(rf"(<!-- table {name} -->\n\n)(?:\|.*\n)*")
        page = found.sub(lambda match, name=name: f"{match[1]}{table(name)}\n", page)
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

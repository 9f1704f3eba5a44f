"""Compare tuned thresholds with Auto on unseen rows: the tables of docs/thresholds.md.

    python docs/make_thresholds.py

It takes about a minute and writes the tables into the page. Each figure is a mean over five seeds.
"""

from pathlib import Path

import numpy as np
from page_parts import markdown, replaced
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


def stream(rows, seed, warp=lambda eta: eta):
    """Probabilities and labels of the labelled rows, and those of the unseen ones."""
    eta, y = omma.datasets.long_tail(n=rows + UNSEEN, m=LABELS, seed=seed)
    eta = warp(eta)
    return (eta[:rows], y[:rows]), (eta[rows:], y[rows:])


def three_ways(metric, labelled, unseen):
    """The metric on unseen rows of the threshold 0.5, of tuned thresholds and of Auto."""
    eta, y = unseen
    half = omma.metric(metric).score(y, (eta >= 0.5).astype(int))
    rules = tuned_rule(metric, *labelled), auto_rule(metric, *labelled)
    return [half, *(score(metric, rule, eta, y) for rule in rules)]


def mean(scores):
    """The mean of each column, mostly over seeds."""
    return np.mean(list(scores), axis=0)


def few_labels(warp=lambda eta: eta):
    """Macro F1 on unseen rows after 100 to 10,000 labelled ones."""
    for rows in (100, 300, 1000, 3000, 10_000):
        scores = (three_ways("macro_f1", *stream(rows, seed, warp)) for seed in SEEDS)
        yield (f"{rows:,}", *mean(scores))


def one_label():
    """F1 of one label with a base rate of 5 %, and micro F1 with one threshold for all labels."""
    for rows in (100, 300, 1000, 10_000):
        yield (f"F1 of one label, {rows:,}", *mean(_one_label(rows, seed) for seed in SEEDS))
    for rows in (100, 300, 1000):
        yield (f"micro F1 of 20 labels, {rows:,}", *mean(_micro(rows, seed) for seed in SEEDS))


def _one_label(rows, seed):
    (eta, y), (new_eta, new_y) = stream(rows, seed)
    labels = range(4, 12)  # labels in 3 to 10 % of the rows
    return mean(
        three_ways("f1", (eta[:, j], y[:, j]), (new_eta[:, j], new_y[:, j])) for j in labels
    )


def _micro(rows, seed):
    labelled, unseen = stream(rows, seed)
    metric = omma.metric("micro_f1")

    def shared(cut, eta, y):
        return metric.score(y, (eta >= cut).astype(int))

    best = max(np.arange(0.01, 1, 0.01), key=lambda cut: shared(cut, *labelled))
    rule = auto_rule("micro_f1", *labelled)
    return [shared(0.5, *unseen), shared(best, *unseen), score("micro_f1", rule, *unseen)]


def budgets():
    """Exactly 3 labels a row: macro recall and macro F1 after 1,000 labelled rows."""
    for metric in ("macro_recall", "macro_precision", "macro_f1"):
        yield (f"{metric}@3", *mean(_budget(metric, seed) for seed in SEEDS))


def _budget(metric, seed, rows=1000, k=3):
    labelled, unseen = stream(rows, seed)
    thresholds = tuned_rule("macro_f1", *labelled).thresholds
    rules = (
        omma.Rule(np.ones(LABELS), np.zeros(LABELS), k=k),
        omma.Rule(np.ones(LABELS), -thresholds, k=k),  # the furthest above their thresholds
        auto_rule(metric, *labelled, k=k),
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
    online = omma.replay(omma.Auto("macro_f1", subject_to=limit), eta, y).predictions[rows:]
    return [
        [omma.metric(name).score(y[rows:], decided) for name in ("macro_f1", "micro_precision")]
        for decided in (tuned, online)
    ]


def drift():
    """Macro F1 after the base rates rise: thresholds of before, and Auto that goes on learning."""
    results = mean(_drift(seed) for seed in SEEDS)
    for name, value in zip(("before", "after"), np.reshape(results, (2, 3)), strict=True):
        yield (name, *value)


def _drift(seed, rows=3000):
    """Labels become three times as likely, and the model does not know."""
    eta, y = omma.datasets.long_tail(n=rows + 2 * UNSEEN, m=LABELS, seed=seed)
    # Labels are drawn anew by other odds; the model keeps its probabilities.
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
        yield (name, *mean(_no_labels(seed, warp) for seed in SEEDS))


def _no_labels(seed, warp):
    eta, y = omma.datasets.long_tail(n=UNSEEN, m=LABELS, seed=seed)
    eta = warp(eta)
    half = omma.metric("macro_f1").score(y, (eta >= 0.5).astype(int))
    return [half, omma.replay(omma.OMMA("macro_f1", feedback="estimates", prior=0.1), eta, y).value]


def confident():
    """Digits of scikit-learn: a model that is nearly always right leaves little to decide."""
    yield ("macro F1 of 10 digits, 300", *mean(_confident(seed) for seed in SEEDS))


def _confident(seed, rows=300, trained=600):
    pixels, digit = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(pixels))
    pixels, digit = pixels[order] / 16, digit[order]
    model = LogisticRegression(max_iter=1000).fit(pixels[:trained], digit[:trained])
    eta, y = model.predict_proba(pixels[trained:]), np.eye(10, dtype=int)[digit[trained:]]
    return three_ways("macro_f1", (eta[:rows], y[:rows]), (eta[rows:], y[rows:]))


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
    texts = [[cell if isinstance(cell, str) else f"{cell:.3f}" for cell in row] for row in rows()]
    return markdown(heads, texts)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    for name in TABLES:
        page = replaced(page, f"table {name}", table(name))
    PAGE.write_text(page, encoding="utf-8")

"""The table of docs/seen.md: how far estimates are from the truth where few labels are seen.

    python docs/make_seen.py DATA

DATA is the folder of the study's sets. The truth is known, as all labels are there; a replay with
``seen="predicted"`` looks only at those that were predicted or audited. Of real sets, a logistic
model is fitted to one half of the rows, and the other half is decided in shuffled order.
"""

import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
from page_parts import markdown, replaced
from scipy.special import expit, logit

import omma
from omma_study.small import MODELS, estimates, read_study

PAGE = Path(__file__).with_name("seen.md")
SEEDS, AUDITED = range(20), 0.05


def alarms(seed, n):
    """A rare event, and probabilities that are wrong by a slope and an offset."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-3.0, 2.0, n)
    y = (rng.random(n) < expit(z)).astype(int)
    return expit(0.7 * z + 0.8), y


def shifted_labels(seed, n):
    """Many labels, of which half have logits that are too high and half that are too low."""
    eta, y = omma.datasets.long_tail(n=n, m=20, seed=seed)
    shift = np.where(np.random.default_rng(seed).random(20) < 0.5, 1.5, -1.5)
    return expit(logit(np.clip(eta, 1e-7, 1 - 1e-7)) + shift), y


@cache
def decided_half(name):
    """Probabilities and labels of the half of a set that a model was not fitted to."""
    features, y = read_study(Path(sys.argv[1]) / name)
    order = np.random.default_rng(0).permutation(len(y))
    return estimates(MODELS["logistic"], features[order], y[order])


def real(name, seed):
    """The decided half of a set in an order of its own."""
    eta, y = decided_half(name)
    order = np.random.default_rng(seed).permutation(len(y))
    return eta[order], y[order]


STREAMS = {
    "rare event, 5,000 rows, probabilities off": (partial(alarms, n=5000), "f1", None),
    "the same, 20,000 rows": (partial(alarms, n=20_000), "f1", None),
    "rare event, 5,000 rows, alarms ≤ 2 % of the rows": (
        partial(alarms, n=5000), "recall", "predicted_rate <= 0.02",
    ),
    "20 labels, 4,000 rows, half of the logits ± 1.5": (
        partial(shifted_labels, n=4000), "macro_f1", None,
    ),
    "the same, three labels a row": (partial(shifted_labels, n=4000), "macro_recall@3", None),
    "`mammography`, 5,592 rows, 130 positives": (partial(real, "mammography"), "f1", None),
    "`yeast`, 1,209 rows, 14 labels": (partial(real, "yeast"), "macro_f1", None),
}  # fmt: skip


def errors(stream, target, limit):
    """Mean absolute errors in points: from hits alone, without audits, and with them."""
    metric, k = omma.metrics.read_target(target)
    policy = omma.Auto(metric, k=k, subject_to=limit)
    of_seeds = []
    for seed in SEEDS:
        eta, y = stream(seed)
        # Another seed than that of the stream: audits must not depend on its numbers.
        audited = np.random.default_rng([seed, 1]).random(len(y)) < AUDITED
        estimates = []
        for rows in (np.zeros(len(y), dtype=bool), audited):
            trace = omma.replay(policy, eta, y, seen="predicted", audited=rows)
            shown = np.reshape(trace.predictions, (len(y), -1))
            labels = np.reshape(y, shown.shape)
            true, of_hits = (
                metric.value(omma.Counts.from_labels(known, shown))
                for known in (labels, labels * shown)
            )
            estimates.append((abs(of_hits - true), abs(trace.value - true)))
        (_, without_audits), with_audits = estimates
        of_seeds.append((with_audits[0], without_audits, with_audits[1]))
    return 100 * np.mean(of_seeds, axis=0)


def table():
    """A row for each stream."""
    heads = ["stream", "metric", "hits alone", "no audits", "5 % audited"]
    rows = [
        [name, f"`{target}`", *(f"{error:.1f}" for error in errors(stream, target, limit))]
        for name, (stream, target, limit) in STREAMS.items()
    ]
    return markdown(heads, rows, words=2)


if __name__ == "__main__":
    page = replaced(PAGE.read_text(encoding="utf-8"), "table: make_seen.py", table())
    PAGE.write_text(page, encoding="utf-8")

"""Measures how far the certificate can be trusted, and draws it: docs/certificate.md.

    python docs/make_certificate.py

Takes a minute or two.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from matplotlib.figure import Figure
from scipy import optimize

import omma
from omma.plots import plot_running

FOLDER, DPI = Path(__file__).parent / "images", 150
ROWS, STREAMS = (500, 2000, 8000), 200
FEW, LONG, FIRST_SEED = (60, 200, 1000, 4000), 200_000, 1000  # for labels that are rare
LABELS, KINDS = 4, 10
CASES = (
    ("macro_gmean", None),
    ("macro_gmean", 2),
    ("macro_qmean", 2),
    ("micro_accuracy", 2),
    ("multiclass_gmean", 1),
    ("macro_min_recall_specificity", None),
    ("macro_min_recall_specificity", 2),
    ("macro_f1", None),
    ("macro_f1", 2),
    ("micro_f1", None),
)


def world(classes):
    """A known distribution: the shares of some kinds of rows, and their probabilities."""
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(KINDS, 3.0))
    if classes:
        return shares, rng.dirichlet(np.full(LABELS, 0.5), KINDS)
    return shares, rng.beta(0.6, 2.4, (KINDS, LABELS))


def best_attainable(metric, k, shares, kinds):
    """ψ(C*): how often to predict each label for each kind of row, by a general solver."""

    def loss(flat):
        often = shares[:, np.newaxis] * np.clip(flat.reshape(kinds.shape), 0, 1)
        counts = omma.Counts((often * kinds).sum(axis=0), often.sum(axis=0), shares @ kinds, 1.0)
        return -metric.value(counts)

    budget = {"type": "eq", "fun": lambda flat: flat.reshape(kinds.shape).sum(axis=1) - k}
    starts = [np.full(kinds.size, (k or 2) / LABELS), np.linspace(0.3, 0.6, kinds.size)]
    found = [
        optimize.minimize(
            loss, start, method="SLSQP", bounds=[(0, 1)] * kinds.size,
            constraints=[] if k is None else [budget], options={"maxiter": 500, "ftol": 1e-12},
        )
        for start in starts
    ]  # fmt: skip
    return max(-one.fun for one in found)


def stream(shares, kinds, n, seed, classes):
    """Probabilities and labels."""
    rng = np.random.default_rng(seed)
    eta = kinds[rng.choice(len(shares), n, p=shares)]
    if classes:
        return eta, (rng.random((n, 1)) > eta.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return eta, (rng.random(eta.shape) < eta).astype(np.int8)


def covered(name, k, n):
    """Of many streams: error of the estimate, its own error bar, and how often that held."""
    classes = name.startswith("multiclass_")
    shares, kinds = world(classes)
    metric = omma.metric(name)
    star = best_attainable(metric, k, shares, kinds)
    found = []
    for seed in range(STREAMS):
        eta, y = stream(shares, kinds, n, seed, classes)
        policy = omma.OMMA(name, k=k)
        gap = omma.replay(policy, eta, y, gap=True, predictions=False, checkpoints=0).gap
        true = star - (gap.attainable - gap.value)
        low, high = gap.interval
        found.append((gap.value - true, gap.error, low <= true <= high, true <= gap.upper))
    return np.array(found, dtype=float).mean(axis=0)


def report():
    """Write the table in markdown."""
    heads = " | ".join(f"n = {n:,}" for n in ROWS)
    click.echo(f"| metric | k | {heads} |")
    click.echo("| --- " * (2 + len(ROWS)) + "|")
    for name, k in CASES:
        cells = []
        for n in ROWS:
            off, error, inside, below = covered(name, k, n)
            cells.append(
                f"{100 * off:+.2f} ± {100 * error:.2f}, {100 * inside:.0f}%, {100 * below:.0f}%"
            )
        click.echo(f"| `{name}` | {k or ''} | {' | '.join(cells)} |")


def report_rare():
    """Write the same for twenty labels, most of them rare; a long stream stands for the truth."""
    click.echo(f"| k | {' | '.join(f'n = {n:,}' for n in FEW)} |")
    click.echo("| --- " * (1 + len(FEW)) + "|")
    for k in (None, 3):
        star = rare(k, LONG, FIRST_SEED - 1).attainable
        cells = []
        for n in FEW:
            every = [rare(k, n, FIRST_SEED + seed) for seed in range(STREAMS)]
            off = np.array([gap.attainable - star for gap in every])
            error = np.array([gap.error for gap in every])
            inside, below = abs(off) <= 1.96 * error, off >= -1.645 * error
            cells.append(
                f"{100 * off.mean():+.2f} ± {100 * error.mean():.2f}, "
                f"{100 * inside.mean():.0f}%, {100 * below.mean():.0f}%"
            )
        click.echo(f"| {k or ''} | {' | '.join(cells)} |")


def rare(k, n, seed):
    """The gap of macro G-mean on a stream with a long tail."""
    eta, y = omma.datasets.long_tail(n, 20, seed=seed)
    policy = omma.OMMA("macro_gmean", k=k)
    return omma.replay(policy, eta, y, gap=True, predictions=False, checkpoints=0).gap


def draw():
    """A stream on which one policy has nothing left to gain, and another has."""
    eta, y = omma.datasets.long_tail(4000, 20, seed=0)
    options = {"metric": "macro_gmean", "gap": True, "checkpoints": 100}
    traces = {
        "OMMA": omma.replay(omma.OMMA("macro_gmean"), eta, y, **options),
        "threshold 0.1": omma.replay(omma.Threshold(0.1), eta, y, **options),
    }
    figure = Figure(figsize=(7.2, 3.7))
    ax = figure.add_axes((0.06, 0.14, 0.68, 0.73))
    plot_running(traces, ax, gap=True, bottom=60.0)
    return figure


PICTURES = {"certificate": draw}

if __name__ == "__main__":
    draw().savefig(FOLDER / "certificate.png", dpi=DPI, facecolor="white")
    report_rare()
    report()

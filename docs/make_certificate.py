"""Measures how reliable the certificate is, and draws it: docs/certificate.md.

    python docs/make_certificate.py

Takes a minute or two.
"""

import click
import numpy as np
from matplotlib.figure import Figure
from page_parts import markdown, save
from scipy import optimize

import omma
from omma.plots import plot_running

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

    # Decisions about a kind of row may be mixed, but add up to k labels.
    budget = {"type": "eq", "fun": lambda flat: flat.reshape(kinds.shape).sum(axis=1) - k}
    starts = [np.full(kinds.size, (k or 2) / LABELS), np.linspace(0.3, 0.6, kinds.size)]
    maxima = [
        optimize.minimize(
            loss, start, method="SLSQP", bounds=[(0, 1)] * kinds.size,
            constraints=[] if k is None else [budget], options={"maxiter": 500, "ftol": 1e-12},
        )
        for start in starts
    ]  # fmt: skip
    return max(-maximum.fun for maximum in maxima)


def stream(shares, kinds, n, seed, classes):
    """Probabilities and labels."""
    rng = np.random.default_rng(seed)
    eta = kinds[rng.choice(len(shares), n, p=shares)]
    if classes:
        return eta, (rng.random((n, 1)) > eta.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return eta, (rng.random(eta.shape) < eta).astype(np.int8)


def gap_of(metric, k, eta, y):
    """How much OMMA may still gain at the end of a stream, by its certificate."""
    policy = omma.OMMA(metric, k=k)
    return omma.replay(policy, eta, y, gap=True, predictions=False, checkpoints=0).gap


def reliability(gaps, star):
    """Error of the estimate, its own error bar, and how often interval and upper bound held."""
    of_streams = []
    for gap in gaps:
        # The value that was reached is exact; what is attainable was estimated.
        exact = star - (gap.attainable - gap.value)
        low, high = gap.interval
        of_streams.append((gap.value - exact, gap.error, low <= exact <= high, exact <= gap.upper))
    off, error, inside, below = np.mean(of_streams, axis=0)
    return f"{100 * off:+.2f} ± {100 * error:.2f}, {100 * inside:.0f}%, {100 * below:.0f}%"


def report():
    """Write the table in Markdown."""
    rows = []
    for name, k in CASES:
        classes = name.startswith("multiclass_")
        shares, kinds = world(classes)
        star = best_attainable(omma.metric(name), k, shares, kinds)
        cells = []
        for n in ROWS:
            streams = (stream(shares, kinds, n, seed, classes) for seed in range(STREAMS))
            cells.append(reliability([gap_of(name, k, *rows) for rows in streams], star))
        rows.append([f"`{name}`", str(k or ""), *cells])
    heads = ["metric", "k", *(f"n = {n:,}" for n in ROWS)]
    click.echo(markdown(heads, rows, words=len(heads)))


def report_rare():
    """Write the same for twenty labels, most of them rare; a long stream stands for the truth."""
    rows = []
    for k in (None, 3):
        star = rare_gap(k, LONG, FIRST_SEED - 1).attainable
        seeds = range(FIRST_SEED, FIRST_SEED + STREAMS)
        cells = [reliability([rare_gap(k, n, seed) for seed in seeds], star) for n in FEW]
        rows.append([str(k or ""), *cells])
    heads = ["k", *(f"n = {n:,}" for n in FEW)]
    click.echo(markdown(heads, rows, words=len(heads)))


def rare_gap(k, n, seed):
    """The gap of macro G-mean on a stream with a long tail."""
    return gap_of("macro_gmean", k, *omma.datasets.long_tail(n, 20, seed=seed))


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
    save(PICTURES)
    report_rare()
    report()

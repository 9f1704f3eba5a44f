"""Measures and draws the effect of the prior: the tables of docs/prior.md and its picture.

    python docs/make_prior.py

Takes a minute or two.
"""

from collections import defaultdict
from itertools import product
from pathlib import Path

import click
import numpy as np
from matplotlib.figure import Figure
from page_parts import markdown, save

import omma
from omma.plots import color_of
from omma.plots.frames import INK, bare
from omma.plots.palette import DASHES

ROWS, LABELS, SEEDS = 100_000, 200, range(5)
PRIORS = (0.0, 1e-6, 1e-3, 0.1, 1.0)
FEEDBACKS = ("labels", "estimates")
CHOSEN = (2.0, 3.0)  # tail, noise
SETTINGS = ((1.5, 1.5), (1.5, 3.0), (2.0, 2.0), CHOSEN, (2.0, 4.0))
GROUPS = ((0, 9, "under 10"), (10, 99, "10 to 99"), (100, 999, "100 to 999"), (1000, ROWS, "more"))
NAMES = {
    "half": "threshold 0.5",
    "known": "best thresholds\nby the probabilities",
    "hindsight": "best thresholds\nin hindsight",
}
PAGE = Path(__file__).parent / "prior.md"
COLOR, LINES = color_of("omma"), {"labels": "-", "estimates": DASHES[1]}
GREY = "#666666"


def stream(tail, noise, seed):
    """Probabilities and labels."""
    return omma.datasets.long_tail(ROWS, LABELS, tail=tail, noise=noise, seed=seed)


def counted(policy, eta, y):
    """F1 and the number of predictions of each label under a policy."""
    trace = omma.replay(policy, eta, y, metric="macro_f1", predictions=False, checkpoints=0)
    return trace.metric.of_labels(trace.counts), trace.counts.predicted


def thresholded(eta, y, weight):
    """The same at the threshold that is best by ``weight``: y itself, or eta."""
    f1, predicted = np.zeros(LABELS), np.zeros(LABELS)
    sizes = np.arange(1, len(eta) + 1)
    for j in range(LABELS):
        # F1 if the most probable rows are predicted, for each number of them.
        order = np.argsort(-eta[:, j], kind="stable")
        best = np.argmax(2 * weight[order, j].cumsum() / (sizes + weight[:, j].sum()))
        predicted[j] = best + 1
        f1[j] = 2 * y[order[: best + 1], j].sum() / (best + 1 + y[:, j].sum())
    return f1, predicted


def measure():
    """F1 and predictions, by name, as (2, seeds, labels); and how often each label occurs."""
    measured, positives = defaultdict(list), []
    for seed in SEEDS:
        eta, y = stream(*CHOSEN, seed)
        positives.append(y.sum(axis=0, dtype=np.int64))
        for feedback, prior in product(FEEDBACKS, PRIORS):
            policy = omma.OMMA("macro_f1", feedback=feedback, prior=prior)
            measured[feedback, prior].append(counted(policy, eta, y))
        measured["half"].append(counted(omma.Threshold(0.5), eta, y))
        measured["known"].append(thresholded(eta, y, eta))
        measured["hindsight"].append(thresholded(eta, y, y))
    by_name = {name: np.array(seeds).transpose(1, 0, 2) for name, seeds in measured.items()}
    return by_name, np.array(positives)


def report(measured, positives):
    """Write the table in Markdown."""
    # Masks of the labels of each stream by how often they occur.
    groups = {title: (positives >= low) & (positives <= high) for low, high, title in GROUPS}
    rarest = groups["under 10"]
    click.echo(f"labels a row: {positives.sum() / len(positives) / ROWS:.2f}")
    for title, group in groups.items():
        click.echo(f"labels that occur {title}: {group.sum() / len(positives):.1f} of {LABELS}")
    click.echo(f"occurrences of a label under 10, mean: {positives[rarest].mean():.1f}")
    heads = ["feedback", "λ", "macro-F1", *groups, "predictions, under 10"]
    rows = []
    for name, (f1, predicted) in measured.items():
        who, prior = (name[0], f"{name[1]:g}") if isinstance(name, tuple) else (NAMES[name], "")
        streams = 100 * f1.mean(axis=1)
        rows.append([
            " ".join(who.split()), prior, f"{streams.mean():.1f} ± {streams.std():.1f}",
            *(f"{100 * f1[group].mean():.1f}" for group in groups.values()),
            f"{predicted[rarest].mean():,.1f}",
        ])  # fmt: skip
    click.echo(markdown(heads, rows, words=len(heads)))


def report_settings():
    """Write macro-F1 on one stream of every kind, in Markdown."""
    heads = ["tail", "noise", "feedback", *(f"λ = {prior:g}" for prior in PRIORS),
             "threshold 0.5", "by the probabilities"]  # fmt: skip
    rows = []
    for tail, noise in SETTINGS:
        eta, y = stream(tail, noise, seed=0)
        ends = [counted(omma.Threshold(0.5), eta, y)[0], thresholded(eta, y, eta)[0]]
        for feedback in FEEDBACKS:
            policies = [omma.OMMA("macro_f1", feedback=feedback, prior=prior) for prior in PRIORS]
            f1 = [counted(policy, eta, y)[0] for policy in policies] + ends
            means = (f"{100 * of_labels.mean():.1f}" for of_labels in f1)
            rows.append([str(tail), str(noise), feedback, *means])
    click.echo(markdown(heads, rows, words=len(heads)))


def macro_f1():
    """The first column of the table on the page, by feedback and λ, or by name."""
    lines = PAGE.read_text(encoding="utf-8").partition("| feedback | λ | macro-F1")[2].split("\n")
    cells = [map(str.strip, line.split("|")[1:4]) for line in lines if " ± " in line]
    return {(name, prior): float(value.split()[0]) for name, prior, value in cells}


def draw():
    """The first column of the table as a picture."""
    values = macro_f1()
    figure = Figure(figsize=(7.2, 3.7))
    ax = figure.add_axes((0.06, 0.14, 0.66, 0.73))
    for title in NAMES.values():
        height = values[title.replace("\n", " "), ""]
        ax.axhline(height, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        ax.annotate(
            f"{height:.1f}  {title}", (1, height), (6, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", color=GREY, size=9.5, annotation_clip=False,
        )  # fmt: skip
    for feedback, line in LINES.items():
        curve = [values[feedback, f"{prior:g}".replace("e-0", "e-")] for prior in PRIORS]
        ax.plot(curve, marker="o", color=COLOR, linestyle=line, linewidth=2)
        for place, height in enumerate(curve):
            above = (feedback == "estimates") != (place == len(curve) - 1)
            ax.annotate(
                f"{height:.1f}", (place, height), (-9, 11) if above else (-1, -11),
                textcoords="offset points", va="center", color=COLOR, size=9.5,
                bbox={"color": "white", "pad": 0.3},
            )  # fmt: skip
        x, y = (1.1, 16.4) if feedback == "estimates" else (2.3, 10.4)
        ax.text(x, y, f"feedback={feedback!r}", color=COLOR, size=9.5, va="center")
    bare(ax, "y")
    ax.set_xticks(range(len(PRIORS)), [f"{prior:g}" for prior in PRIORS])
    ax.set_xlim(-0.3, len(PRIORS) - 0.7)
    ax.set_ylim(0, 30)
    ax.set_xlabel("prior λ", size=9.5, color=INK)
    title = "macro-F1 over the whole stream, %"
    ax.set_ylabel(title, size=11, color=INK, rotation=0, ha="left", va="bottom")
    ax.yaxis.set_label_coords(0.0, 1.04)
    return figure


PICTURES = {"prior": draw}

if __name__ == "__main__":
    report(*measure())
    report_settings()
    save(PICTURES)

"""Draw the pictures of docs/index.md and docs/how.md.

    python docs/make_idea.py

Takes some seconds.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from page_parts import save

import omma
from omma.plots import LEARNING, color_of
from omma.plots.frames import INK, bare

GREY = "#666666"
BLUE, ORANGE, GREEN, PINK = LEARNING[:4]
METRICS = {"accuracy": GREY, "f1": BLUE, "gmean": ORANGE}
SHOWN = {0: BLUE, 4: ORANGE, 19: GREEN, 49: PINK}  # labels of the stream


def framed(height, place, xlabel, title):
    """A figure with one frame in the style of the library's pictures."""
    figure = Figure(figsize=(7.2, height))
    ax = figure.add_axes(place)
    bare(ax, "y")
    ax.set_xlabel(xlabel, size=9.5, color=INK)
    ax.set_title(title, size=11, color=INK, loc="left", pad=12)
    return figure, ax


def worth():
    """Macro F1 on unseen rows by the number of labelled rows, from the table of thresholds.md."""
    page = (Path(__file__).parent / "thresholds.md").read_text(encoding="utf-8")
    lines = page.partition("<!-- table few -->\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [line.replace(",", "").strip("| ").split(" | ") for line in lines]
    rows, half, tuned, auto = np.array(cells, float).T
    figure, ax = framed(
        3.4, (0.06, 0.16, 0.7, 0.68), "labelled rows",
        "Macro F1 on 20,000 unseen rows, in %",
    )  # fmt: skip
    ways = {  # values, colour, and where the last and the first number stand
        "Auto": (auto, color_of("auto"), 6, 8),
        "tuned thresholds": (tuned, ORANGE, -7, -16),
        "threshold 0.5": (half, color_of("baseline"), 0, 8),
    }
    for name, (values, color, last, first) in ways.items():
        ax.plot(rows, 100 * values, color=color, linewidth=2, marker="o", markersize=5)
        ax.annotate(
            f"{100 * values[-1]:.1f}  {name}", (rows[-1], 100 * values[-1]), (10, last),
            va="center", textcoords="offset points", color=color, size=10.5, annotation_clip=False,
        )  # fmt: skip
        ax.annotate(
            f"{100 * values[0]:.1f}", (rows[0], 100 * values[0]), (0, first), ha="center",
            textcoords="offset points", color=color, size=10.5,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks(rows, [f"{count:,.0f}" for count in rows])
    ax.minorticks_off()
    ax.set_ylim(0, 48)
    return figure


def thresholds():
    """Three metrics of one rare label, at every threshold."""
    eta, y = omma.datasets.long_tail(200_000, 1, labels_per_row=0.02, noise=1.8, seed=0)
    order = np.argsort(-eta[:, 0])
    sizes = np.unique(np.geomspace(1, len(eta), 400).astype(int))
    tp = y[order, 0].cumsum()[sizes - 1]
    cuts = eta[order, 0][sizes - 1]
    figure, ax = framed(
        3.7, (0.06, 0.15, 0.76, 0.7), "threshold",
        "A label in 1 of 50 rows: every metric has a best threshold of its own, %",
    )  # fmt: skip
    for name, color in METRICS.items():
        metric = omma.metric(name)
        curve = np.array([
            100 * metric.value(omma.Counts([hits], [size], [y.sum()], len(y)))
            for hits, size in zip(tp, sizes, strict=True)
        ])  # fmt: skip
        ax.plot(cuts, curve, color=color, linewidth=2)
        best = curve.argmax()
        ax.plot(cuts[best], curve[best], "o", color=color, markersize=7)
        ax.annotate(
            f"best at {cuts[best]:.2f}", (cuts[best], curve[best]),
            (10, 6) if name == "gmean" else (0, 9), ha="left" if name == "gmean" else "center",
            textcoords="offset points", color=color, size=9.5,
        )  # fmt: skip
        # Names of metrics stand at the right end of the picture.
        last = curve[cuts >= 0.6][-1]
        ax.annotate(
            {"gmean": "G-mean", "f1": "F1"}.get(name, name), (0.6, last), (8, 0), va="center",
            textcoords="offset points", color=color, size=9.5, annotation_clip=False,
        )  # fmt: skip
    ax.set_xlim(0, 0.6)
    ax.set_ylim(0, 108)
    ax.axvline(0.5, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    ax.text(0.495, 60, "0.5", color=GREY, size=9.5, ha="right")
    return figure


def best_thresholds(eta):
    """For each label the threshold that maximizes F1 at known probabilities."""
    # Expected F1 if the most probable rows are predicted, for each number of them.
    falling = -np.sort(-eta, axis=0)
    predicted = np.arange(1, len(eta) + 1)[:, np.newaxis]
    f1 = 2 * falling.cumsum(axis=0) / (predicted + eta.sum(axis=0))
    return np.take_along_axis(falling, f1.argmax(axis=0)[np.newaxis], axis=0)[0]


def learning():
    """How the thresholds of four labels find their places."""
    rows = 20_000
    eta, y = omma.datasets.long_tail(rows, 50, seed=0)
    learner = omma.OnlineClassifier(omma.OMMA("macro_f1"), n_labels=50)
    marks = np.unique(np.geomspace(1, rows, 300).astype(int))
    thresholds = []
    for start, stop in pairwise([0, *marks]):
        for i in range(start, stop):
            learner.predict(eta[i])
            learner.update(y[i])
        thresholds.append(learner.rule.thresholds)
    curves = np.transpose(thresholds)
    goals = best_thresholds(eta)
    figure, ax = framed(
        3.7, (0.06, 0.15, 0.66, 0.7), "rows so far",
        "The thresholds that OMMA learns on macro F1, and the best (dashed)",
    )  # fmt: skip
    for label, color in SHOWN.items():
        ax.plot(marks, curves[label], color=color, linewidth=1.8)
        ax.axhline(goals[label], color=color, linewidth=1, linestyle=(0, (4, 3)))
        ax.annotate(
            f"{curves[label][-1]:.2f}  label in 1 of {rows / y[:, label].sum():,.0f} rows",
            (rows, curves[label][-1]), (8, {19: 4, 49: -4}.get(label, 0)), va="center",
            textcoords="offset points", color=color, size=9.5, annotation_clip=False,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
    ax.minorticks_off()
    ax.set_xlim(1, rows)
    ax.set_ylim(0, 0.5)
    return figure


def gains():
    """The gains of three labels by their probability, and one row decided with them."""
    eta, y = omma.datasets.long_tail(20_000, 50, seed=0)
    rule = omma.replay(omma.OMMA("macro_f1"), eta, y).rule
    labels, row = (0, 4, 49), {0: 0.3, 4: 0.5, 49: 0.22}
    scale = np.abs(rule.offset[list(labels)]).max()
    figure, ax = framed(
        3.7, (0.06, 0.15, 0.66, 0.7), "probability of the label in this row, η",
        "What predicting a label gains: slope · η + offset",
    )  # fmt: skip
    ax.axhline(0, color=INK, linewidth=1)
    x = np.linspace(0, 0.6, 2)
    for label in labels:
        color = SHOWN[label]
        line = (rule.slope[label] * x + rule.offset[label]) / scale
        ax.plot(x, line, color=color, linewidth=2)
        height = (rule.slope[label] * row[label] + rule.offset[label]) / scale
        chosen = height >= 0
        ax.plot(
            row[label], height, "o", markersize=9, color=color,
            markerfacecolor=color if chosen else "white", markeredgewidth=2, zorder=3,
        )  # fmt: skip
        ax.annotate(
            f"η = {row[label]:.2f}: {'yes' if chosen else 'no'}", (row[label], height),
            (-10, 10) if chosen else (8, -12), ha="right" if chosen else "left", va="center",
            textcoords="offset points", color=color, size=9.5,
        )  # fmt: skip
        ax.annotate(
            f"label in 1 of {len(y) / y[:, label].sum():,.0f} rows", (0.6, line[-1]), (8, 0),
            va="center", textcoords="offset points", color=color, size=9.5, annotation_clip=False,
        )  # fmt: skip
    ax.set_xlim(0, 0.6)
    ax.set_yticks([0], ["0"])
    return figure


PICTURES = {"worth": worth, "thresholds": thresholds, "learning": learning, "gains": gains}

if __name__ == "__main__":
    save(PICTURES)

"""The pictures of the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure

from omma.plots import LEARNING
from study_cells import LABELS, RARE, pairs

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "images" / "study"
BLUE, ORANGE, INK = *LEARNING[:2], "#333333"


def panels(section, metrics, policies=None):
    """The comparison of a section with some of its metrics."""
    kept = tuple(metric for metric in metrics if metric in section.comparison.metrics)
    names = section.comparison.policies if policies is None else tuple(
        name for name in section.comparison.policies if name in policies
    )  # fmt: skip
    return replace(section.comparison, metrics=kept, policies=names)


def draw(study):
    """Three pictures: running values, what λ is worth, and where estimates help."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    first, last = shown(study)
    running = panels(first, ("macro_f1@3", "macro_precision@3"))
    _save(running.plot(title=f"{first.title}. "), "running.png")
    who = ("greedy", "greedy_eta", "omma", "omma_eta", "online_fw", "online_fw_eta")
    priors = panels(last, ("macro_f1", "macro_f1@3"), who)
    _save(priors.plot_priors(title=f"{last.title}. "), "priors.png")
    _save(draw_rare(study), "rare.png")


def shown(study):
    """The sections whose running values and priors are drawn."""
    every = study.by_suite[LABELS]
    return every.get("youtube_deepwalk") or next(iter(every.values())), study.of(LABELS)[-1]


def _save(figure, name):
    figure.savefig(PICTURES / name, dpi=100, facecolor="white")


def draw_rare(study):
    """What estimates add, by the share of rare labels."""
    found = study.of(LABELS)
    names = [f"{one.dataset}, {100 * study.rare[LABELS, one.dataset]:.0f} %" for one in found]
    gaps = {
        metric: [100 * gap for *_, gap in pairs(found, "omma_eta", "omma", [metric])]
        for metric in ("macro_f1", "macro_f1@3")
    }
    return dots(names, {"Macro F1": gaps["macro_f1"], "Macro F1@3": gaps["macro_f1@3"]})


def dots(names, gaps):
    """A line for each dataset, so that no name runs into the next; a dot for each metric."""
    figure = Figure(figsize=(7.4, 1.1 + 0.34 * len(names)), layout="constrained")
    ax = figure.add_subplot()
    for (metric, values), color, aside in zip(
        gaps.items(), (BLUE, ORANGE), (-0.12, 0.12), strict=True
    ):
        places = [place + aside for place in range(len(names))]
        ax.plot(values, places, "o", color=color, markersize=7, label=metric)
    ax.axvline(0, color="#999999", linewidth=0.8)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    for side in ("top", "right", "left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.grid(color="#e4e4e4", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.set_xlabel("OMMA(η̂) − OMMA, points", size=9.5, color=INK)
    ax.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    title = f"share of labels that occur under {RARE} times"
    figure.suptitle(title, size=9.5, color=INK, x=0.01, ha="left")
    return figure

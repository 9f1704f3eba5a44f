"""The pictures of the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
from study_cells import LABELS, RARE, pairs

PICTURES = Path(__file__).parent / "images" / "study"
BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"


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
    shown = study.by_suite[LABELS]
    first = shown.get("youtube_deepwalk") or next(iter(shown.values()))
    running = panels(first, ("macro_f1@3", "macro_precision@3"))
    _save(running.plot(title=f"{first.title}. "), "running.png")
    last = study.of(LABELS)[-1]
    who = ("greedy", "greedy_eta", "omma", "omma_eta", "online_fw", "online_fw_eta")
    priors = panels(last, ("macro_f1", "macro_f1@3"), who)
    _save(priors.plot_priors(title=f"{last.title}. "), "priors.png")
    _save(draw_rare(study), "rare.png")
    return first, last


def _save(figure, name):
    figure.savefig(PICTURES / name, dpi=100, facecolor="white")


def draw_rare(study):
    """What estimates add, by the share of rare labels."""
    figure = Figure(figsize=(7.4, 3.6))
    ax = figure.add_axes((0.09, 0.15, 0.88, 0.72))
    found = study.of(LABELS)
    for metric, color, name, aside in (
        ("macro_f1", BLUE, "Macro F1", -0.07),
        ("macro_f1@3", ORANGE, "Macro F1@3", 0.07),
    ):
        gaps = [100 * gap for *_, gap in pairs(found, "omma_eta", "omma", [metric])]
        places = [place + aside for place in range(len(gaps))]
        ax.plot(places, gaps, "o", color=color, markersize=7, label=name)
    ax.axhline(0, color="#999999", linewidth=0.8)
    texts = [f"{one.dataset}\n{100 * study.rare[LABELS, one.dataset]:.0f} %" for one in found]
    ax.set_xticks(range(len(found)), texts)
    ax.set_xlim(-0.6, len(found) - 0.4)
    for side in ("top", "right", "left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="y", color="#e4e4e4", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, labelsize=8, labelcolor=INK)
    title = f"OMMA(η̂) − OMMA, points; below: labels under {RARE} times"
    ax.set_title(title, size=10, color=INK, loc="left")
    ax.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 0.99), ncols=2)
    return figure

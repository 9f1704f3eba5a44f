"""Figures and their axes, before anything is drawn on them."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omma._atomic import replacing
from omma._validate import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, AXIS = "#333333", "#e4e4e4", "#999999"
LONGEST = 40  # letters of a label, its value included


def require_matplotlib() -> None:
    """Say how to get matplotlib where it is missing."""
    require("matplotlib", "plots need", '"omma[plots]"')


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file; its ending (.png, .svg, .pdf) says in which form.

    Without an ending it becomes a .png file.
    """
    target = Path(path)
    if not target.suffix:
        target = target.with_name(f"{target.name}.png")
    with replacing(target) as file:
        figure.savefig(file, format=target.suffix[1:].lower(), dpi=150, facecolor="white")


def png_of(figure: Figure, dpi: int) -> bytes:
    """A figure as the bytes of a picture."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi, facecolor="white")
    return file.getvalue()


def check_panels(owner: str, panels: Mapping[str, Collection[str]]) -> None:
    """At least one panel, and in each at least one curve."""
    require_matplotlib()
    if not panels:
        raise ValueError(f"panels of {owner} must hold at least one panel, got none")
    for metric, names in panels.items():
        if not names:
            raise ValueError(f"panels of {owner} must have curves, got none for {metric!r}")


def frames(
    panels: Mapping[str, Collection[str]], title: str, columns: int = 2
) -> tuple[Figure, list[Axes]]:
    """A figure with a frame for each panel, and room to its right for the names of curves."""
    from matplotlib.figure import Figure

    longest = max(len(name) for names in panels.values() for name in names)
    most = max(map(len, panels.values()))
    columns = min(len(panels), columns)
    rows = -(-len(panels) // columns)
    # Inches around and between panels, which are as high as the names of their curves need.
    left, below, above, head = 0.55, 0.62, 0.5, 0.38 if title else 0.0
    right = 0.6 + 0.08 * min(longest + 7, LONGEST)
    wide, high = (3.6, max(2.2, 0.2 * most + 0.3)) if columns > 1 else (4.8, max(2.9, 0.2 * most))
    width, height = columns * (left + wide + right), rows * (below + high + above) + head
    figure = Figure(figsize=(width, height))
    figure.text(left / width, 1 - 0.16 / height, title, size=10, color=INK, va="top")
    places = []
    for place in range(len(panels)):
        row, column = divmod(place, columns)
        x = left + column * (left + wide + right)
        y = height - head - above - high - row * (below + high + above)
        places.append(figure.add_axes((x / width, y / height, wide / width, high / height)))
    return figure, places


def bare(ax: Axes, lines: Literal["both", "x", "y"], ticks: Any = "major") -> None:
    """Leave what helps reading: lines at the ticks of one axis, or of both, and no ticks."""
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(AXIS)
    ax.grid(axis=lines, color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(which=ticks, length=0, labelsize=9, labelcolor=INK)


def clean(ax: Axes) -> None:
    """The same for values above numbers, of which there are few."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    bare(ax, "y")
    ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def entitle(ax: Axes, title: str, below: str) -> None:
    """Labels of both axes."""
    ax.set_xlabel(below, size=9.5, color=INK)
    # The label of the vertical axis reads as a title: level, above its numbers.
    ax.set_ylabel(title, size=11, color=INK, rotation=0, ha="left", va="bottom")
    ax.yaxis.set_label_coords(0.0, 1.05)

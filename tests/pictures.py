"""What can go wrong with words in a picture: cut off at its edge, or one upon another."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

HAIR = 1.0  # pixels


def _extents(figure, texts):
    """The texts that are seen, and where, in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    seen = [one for one in texts if one.get_visible() and one.get_text().strip()]
    return [(one, one.get_window_extent(canvas.get_renderer())) for one in seen]


def cut_off(figure):
    """The texts of a figure that do not fit into it."""
    width, height = figure.bbox.size
    ticks = {label for ax in figure.axes for label in _unseen_ticks(ax)}
    return [
        text.get_text()
        for text, box in _extents(figure, figure.findobj(Text))
        if text not in ticks
        and not (
            box.x0 > -HAIR and box.y0 > -HAIR and box.x1 < width + HAIR and box.y1 < height + HAIR
        )
    ]


def colliding(figure):
    """Pairs of names along an axis that run into each other."""
    found = []
    for ax in figure.axes:
        for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
            boxes = _extents(figure, labels)
            found += [
                (first.get_text(), second.get_text())
                for (first, one), (second, other) in combinations(boxes, 2)
                if one.overlaps(other)
            ]
    return found


def _unseen_ticks(ax):
    """Labels of ticks beyond the limits of an axis, which are never drawn."""
    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        low, high = sorted(limits)
        for tick in axis.get_major_ticks() + axis.get_minor_ticks():
            if not low <= tick.get_loc() <= high:
                yield from (tick.label1, tick.label2)

"""Cuts that do not hang on a few rows.

The cut that is best on a sample is decided by accident: near the top the metric is flat, and a
handful of rows say where its highest point is. So rows are drawn again and again (the bootstrap),
each drawing has a best cut, and the geometric mean of how many rows these take is a steadier one.
Rows that a drawing left out tell what cuts are worth on rows that they were not tuned on. Where the
rule made of probabilities does as well there, half of it is mixed in: it is wrong where they are
wrong, but scatters less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omma.counts import Counts
from omma.policies import OMMA, Auto
from omma.rows.batch import Batch
from omma.rule import Rule
from omma.sklearn._cuts import Cuts, Ranked

DRAWINGS = 30
PLACES = 500  # looked at, at most, from either end of the ranks: dense where few rows are taken
TOGETHER = 2_000_000  # numbers that are worked on at a time

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def steady_rule(
    policy: OMMA | Auto,
    sample: Batch,
    standing: Rule,
    seed: int,
    worth: Callable[[Counts], float],
) -> Rule:
    """The rule to decide by, where ``standing`` was made of probabilities.

    It is ``standing`` itself where labels are not decided by cuts, or where no cuts are better on
    the sample.
    """
    cuts = Cuts.of(policy, sample)
    if cuts is None:
        return standing
    stands = cuts.taken_by(standing, sample)
    exact = Drawn.of(cuts, stands, np.ones((1, sample.n), dtype=np.uint8))
    if not worth(cuts.counts(exact.tuned)) > worth(cuts.counts(exact.standing)):
        return standing
    several = Drawn.of(cuts, stands, drawings(sample.n, seed))
    taken = several.mean
    if not worth(cuts.counts(several.tuned_left)) > worth(cuts.counts(several.standing_left)):
        taken = np.sqrt((taken + 0.5) * (stands + 0.5)) - 0.5
    return cuts.rule(taken)


def drawings(n: int, seed: int) -> NDArray[np.uint8]:
    """How often each row is in each drawing of n rows."""
    rng = np.random.default_rng(seed)
    drawn = (np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(DRAWINGS))
    return np.stack([np.minimum(one, 255).astype(np.uint8) for one in drawn])


@dataclass(frozen=True)
class Drawn:
    """The best cut of each label in each drawing, and a standing one.

    ``taken`` has how many rows each cut takes, (labels, drawings). The others are (labels, 4), true
    positives, predicted, positive and all rows, of the best cuts and of the standing ones: on rows
    as they were drawn, and on those that were left out; summed over drawings.
    """

    taken: Ints
    tuned: Floats
    standing: Floats
    tuned_left: Floats
    standing_left: Floats

    @classmethod
    def of(cls, cuts: Cuts, stands: Ints, drawn: NDArray[np.uint8]) -> Drawn:
        """Look at every label."""
        pairs = zip(cuts.labels, stands.tolist(), strict=True)
        found = [_of_label(cuts, label, at, drawn) for label, at in pairs]
        taken = np.stack([one for one, _ in found])
        cells = np.stack([one for _, one in found], axis=1)
        return cls(taken, *cells)

    @property
    def mean(self) -> Floats:
        """The geometric mean of how many rows are taken."""
        return np.asarray(np.exp(np.log(self.taken + 0.5).mean(axis=1)) - 0.5)


def _of_label(
    cuts: Cuts, label: Ranked, stands: int, drawn: NDArray[np.uint8]
) -> tuple[Ints, Floats]:
    """The best cut of one label in each drawing, and the four kinds of cells."""
    places = places_of(label, stands)
    at = int(np.searchsorted(places, stands))
    block = max(1, TOGETHER // max(len(label.true), 1))
    taken, sums = [], np.zeros((4, 4))
    for start in range(0, len(drawn), block):
        here = drawn[start : start + block]
        kept = _Cells.of(label, places, here * cuts.weight)
        left = _Cells.of(label, places, (here == 0) * cuts.weight)
        best = kept.best(cuts)
        # A drawing without the label, or with nothing else, says nothing.
        best = np.where((kept.positive > 0) & (kept.positive < kept.n), best, at)
        taken.append(places[best])
        standing = np.full(len(here), at)
        pairs = ((kept, best), (kept, standing), (left, best), (left, standing))
        sums += np.array([cells.sum(chosen) for cells, chosen in pairs])
    return np.concatenate(taken), sums


def places_of(label: Ranked, stands: int) -> Ints:
    """Numbers of rows to try: all there are, or so many that steps are about one per cent."""
    found = label.cuts
    if len(found) > 2 * PLACES:
        steps = np.unique(np.geomspace(1, len(found), PLACES).astype(np.int64)) - 1
        found = found[np.union1d(steps, len(found) - 1 - steps)]
    return np.union1d(found, [0, stands])


@dataclass(frozen=True)
class _Cells:
    """What each place of one label would count in some drawings."""

    tp: Floats
    predicted: Floats
    positive: Floats
    n: Floats

    @classmethod
    def of(cls, label: Ranked, places: Ints, weight: Floats) -> _Cells:
        ranked = weight[:, label.rows]
        tp, predicted = _up_to(places, ranked * label.true[label.rows]), _up_to(places, ranked)
        return cls(tp, predicted, weight @ label.true, weight.sum(axis=1))

    def best(self, cuts: Cuts) -> Ints:
        """Of equals, the fewest rows."""
        cells = (self.tp, self.predicted, self.positive[:, np.newaxis], self.n[:, np.newaxis])
        worth = cuts.worth(*(np.broadcast_to(cell, self.tp.shape).ravel() for cell in cells))
        worth = np.nan_to_num(worth.reshape(self.tp.shape), nan=-np.inf)
        return np.asarray(worth.argmax(axis=1))

    def sum(self, chosen: Ints) -> Floats:
        """Of one place in each drawing, over all of these."""
        every = np.arange(len(chosen))
        picked = self.tp[every, chosen], self.predicted[every, chosen], self.positive, self.n
        return np.array([cell.sum() for cell in picked])


def _up_to(places: Ints, weight: Floats) -> Floats:
    """Sums of the first so many of each row."""
    if places[-1] == 0:
        return np.zeros((len(weight), len(places)))
    parts = np.add.reduceat(weight[:, : places[-1]], places[:-1], axis=1)
    return np.concatenate((np.zeros((len(weight), 1)), parts.cumsum(axis=1)), axis=1)

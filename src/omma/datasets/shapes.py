"""Sizes and label statistics of the OMMA paper's sets, for streams that look like them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Shape:
    """What a stream is made to look like.

    The r-th commonest label has a share of ``min(commonest, c / r**tail)`` of the rows, with c
    such that a row has ``labels_per_row`` labels on average. Rows of several classes have one.

    Parameters
    ----------
    paper : str
        Name in the paper's results.
    m, rows : int
        Labels, and rows of the test part.
    labels_per_row, commonest, tail : float
        See above; ``labels_per_row`` is 1 for classes.
    signal : float
        How far the evidence for a label that is there lies from the evidence for one that is not,
        in standard deviations: how much a row tells.
    stored : int, optional
        How many probabilities of a row are kept, the others being zero; all by default.
    """

    paper: str
    m: int
    rows: int
    labels_per_row: float
    commonest: float
    tail: float
    signal: float
    stored: int | None = None
    classes: bool = False

    def frequencies(self) -> NDArray[np.float64]:
        """The share of rows that each label is in, commonest first."""
        falling = 1.0 / np.arange(1, self.m + 1) ** self.tail
        low, high = 0.0, self.m * falling[0] / falling[-1]
        for _ in range(200):  # bisection for c; halving more often changes nothing
            middle = (low + high) / 2
            total = np.minimum(self.commonest, middle * falling).sum()
            low, high = (middle, high) if total < self.labels_per_row else (low, middle)
        return np.asarray(np.minimum(self.commonest, high * falling))


# m and rows are the paper's. Labels per row of Mediamill, RCV1X and AmazonCat are those that the
# Extreme Classification Repository publishes. All other statistics of labels are measured on the
# sets that stand in for the paper's: share of the commonest label, and slope of log frequency
# against log rank. Classes: tail = log(largest / smallest class) / log m. The signal is chosen so
# that deciding at 0.5 has the micro F1 (with classes: the likeliest one has the macro F1) that the
# paper reports, to within two percent points.
SHAPES: dict[str, Shape] = {
    shape.paper: shape
    for shape in (
        # youtube_deepwalk: 1.65 labels a row, commonest 6143 of 26444 rows, slope 0.61
        Shape("YouTube", 46, 7926, 1.65, 0.23, 0.61, signal=1.73),
        # eurlex4k: 5.31 labels a row, slope 1.44; commonest as in rcv1_subsets
        Shape("Eurlex-LexGlue", 100, 5000, 5.31, 0.45, 1.44, signal=2.21),
        # rcv1_subsets: commonest 12474 of 27613 rows, slope 1.63
        Shape("Mediamill", 101, 12914, 4.38, 0.45, 1.63, signal=1.33),
        # youtube_deepwalk again: users and groups too
        Shape("Flickr", 195, 24154, 1.65, 0.23, 0.61, signal=2.16),
        # rcv1_subsets
        Shape("RCV1X", 2456, 155962, 4.79, 0.45, 1.63, signal=2.13, stored=100),
        # eurlex4k: commonest 1253 of 19348 rows, slope 1.44
        Shape("AmazonCat", 13330, 306784, 5.04, 0.065, 1.44, signal=2.64, stored=100),
        # news20: 999 and 628 rows in the largest and smallest class
        Shape("News20", 20, 7532, 1.0, 1.0, 0.155, signal=2.98, classes=True),
        # covtype: 283301 and 2747 rows
        Shape("Ledgar-LexGlue", 100, 10000, 1.0, 1.0, 1.007, signal=3.5, classes=True),
        # Caltech-256 itself: from about 800 pictures down to 80
        Shape("Caltech-256", 256, 14890, 1.0, 1.0, 0.415, signal=3.76, classes=True),
    )
}

"""What a target has to compute, as plain numbers.

For each row, with η in double precision:

1. where the rule is calibrated and η > 0, c = sigmoid(a·logit(clip(η)) + b + b_j), else c = η;
2. gain = slope·c + offset, and with a table of costs + Σ c_i·matrix[i, j], in the order of i;
3. without a table of costs, η = 0 is no candidate: its gain is minus infinity;
4. every gain of at least 0, of these up to ``at_most`` of the largest, or the k largest whatever
   they are; equal ones go to the lowest label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """A rule taken apart; ``scale`` and ``bias`` of the logits are None where η is taken as it is.

    >>> from omma import Rule
    >>> Parts.of(Rule([1.0, 2.0], [-0.5, -0.2], k=1)).k
    1
    """

    slope: Vector
    offset: Vector
    k: int | None
    matrix: Vector | None
    names: tuple[str, ...] | None
    scale: float | None = None
    bias: Vector | None = None
    at_most: int | None = None

    @classmethod
    def of(cls, rule: Any) -> Parts:
        """The parts of a rule, its calibration included if it has one."""
        parts = (rule.slope, rule.offset, rule.k, rule.matrix, rule.names)
        if rule.calibration is None:
            return cls(*parts, at_most=rule.at_most)
        scale, common, own = rule.calibration
        bias = np.broadcast_to(np.asarray(own, dtype=np.float64) + common, rule.slope.shape)
        return cls(*parts, float(scale), bias, rule.at_most)

    @property
    def seats(self) -> int | None:
        """How many labels a row can get: k, or at_most; None for any number."""
        return self.at_most if self.k is None else self.k

    @property
    def m(self) -> int:
        """Number of labels."""
        return len(self.slope)

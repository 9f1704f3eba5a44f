"""A policy as compiled code reads it: what is maximized, what is counted, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import SURE
from omma.kernels.gains import compiled, deciding_alone
from omma.kernels.objectives import (
    CostMatrix,
    FixedRules,
    Nothing,
    SumOfTerms,
    linearized,
    looks_at_every_class,
    sign_form,
)
from omma.kernels.select import selector_address
from omma.state_parts import Curve

NOTHING = Nothing(0.0)


class Shrinkage(NamedTuple):
    """How strongly labels correct counts of probabilities; see ``omma.kernels.counts.Both``.

    Strengths for hits and for positives were chosen on streams that are not among those reported
    (docs/auto.md). Values hardly depend on them: 3 to 10 for hits do as well.
    """

    hits: float = 5.0
    positives: float = 10.0
    eager: float = 0.0
    patience: float = 0.3


class Limited(NamedTuple):
    """Limits as the kernels know them; see ``omma.kernels.limits``."""

    numbers: NDArray[np.float64]
    kinds: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """A rule that follows its counts: what kernels need to know of a policy."""

    k: int | None
    term: Any = NOTHING  # the objective
    matrix: NDArray[Any] | None = None  # what predicting j is worth where i is true
    prior: float = 0.0
    soft: bool = False  # probabilities are counted, in place of labels or beside them
    sums: int = 0  # 1 where the objective looks at sums over labels
    at_most: int | None = None
    shrinkage: Shrinkage | None = None  # feedback from labels and estimates both
    calibrated: bool = False
    squash: float = SURE  # from where on logits are squashed, if calibrated
    settled: Curve | None = None  # calibration that learns no more
    growth: float | None = None  # of the weight of rows, where the past decays
    limits: Limited | None = None
    window: int | None = None  # rows that decisions look at

    @cached_property
    def budget(self) -> int:
        """K labels a row, −k at most k, 0 without a budget."""
        return (self.k or 0) if self.at_most is None else -self.at_most

    @cached_property
    def objective(self) -> Any:
        """What decides, as kernels know it."""
        if self.matrix is not None:
            return CostMatrix(self.gradient, np.ascontiguousarray(self.matrix, dtype=np.float64))
        return compiled(self.deciding_term)

    @cached_property
    def deciding_term(self) -> Any:
        """The objective, or without a budget and limits its form, where it has one."""
        only_signs = self.budget == 0 and self.limits is None
        return sign_form(self.term) if only_signs else self.term

    @cached_property
    def gradient(self) -> Any:
        """What the objective's derivatives come from."""
        return compiled(linearized(self.term))

    @cached_property
    def needs_every_label(self) -> bool:
        """Whether sparse rows are run as dense ones: a label's gain depends on all labels."""
        return self.matrix is not None or looks_at_every_class(self.term)

    @cached_property
    def decision(self) -> tuple[Any, Any]:
        """The address of the function that flags labels, and the objective beside it."""
        term = self.deciding_term
        adds_up = isinstance(term, SumOfTerms | FixedRules) or self.matrix is not None
        if adds_up or self.limits is not None:
            return selector_address(self.budget), self.objective
        return deciding_alone(term, self.budget != 0)

    @cached_property
    def sets(self) -> tuple[str, ...]:
        """The sets of counts beside those that decisions look at (``omma.kernels.layout``)."""
        forgets = self.growth is not None or self.window is not None
        used = {"labels": self.soft, "known": self.shrinkage is not None, "judged": forgets}
        return tuple(name for name in used if used[name])


def fixed_plan(
    slope: NDArray[np.float64],
    offset: NDArray[np.float64],
    k: int | None,
    *,
    matrix: NDArray[np.float64] | None = None,
    soft: bool = False,
    at_most: int | None = None,
    calibration: Curve | None = None,
) -> Plan:
    """The plan of a rule that never changes."""
    return Plan(
        k,
        FixedRules(np.stack((slope, offset))[np.newaxis]),
        matrix,
        soft=soft,
        at_most=at_most,
        calibrated=calibration is not None,
        settled=calibration,
    )

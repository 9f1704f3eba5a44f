"""A policy in the form that kernels read: what is maximized, what is counted, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omma.kernels.calibrate import SURE
from omma.kernels.counts import Both
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


class Limited(NamedTuple):
    """Limits in the form that kernels read; see ``omma.kernels.limits``."""

    numbers: NDArray[np.float64]
    kinds: NDArray[np.int64]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """A rule that follows its counts: all that kernels need to know about a policy."""

    k: int | None
    term: Any = NOTHING  # the objective
    matrix: NDArray[Any] | None = None  # gain of predicting j if i is true
    prior: float = 0.0
    soft: bool = False  # probabilities are counted, in place of labels or beside them
    sums: int = 0  # 1 if the objective uses sums over labels
    at_most: int | None = None
    shrinkage: Both | None = None  # feedback="both": how strongly labels correct estimates
    calibrated: bool = False
    squash: float = SURE  # logits beyond it are squashed, if calibrated
    settled: Curve | None = None  # calibration that does not learn
    growth: float | None = None  # of the weight of a row per row, with decay or a window
    limits: Limited | None = None
    window: int | None = None  # the number of latest rows that decisions use

    @cached_property
    def budget(self) -> int:
        """K labels a row, −k at most k, 0 without a budget."""
        return (self.k or 0) if self.at_most is None else -self.at_most

    @cached_property
    def objective(self) -> Any:
        """The objective that decides, in the form that kernels read."""
        if self.matrix is not None:
            return CostMatrix(self.gradient, np.ascontiguousarray(self.matrix, dtype=np.float64))
        return compiled(self.deciding_term)

    @cached_property
    def deciding_term(self) -> Any:
        """The objective; without budget and limits its form, if it has one, which is faster."""
        only_signs = self.budget == 0 and self.limits is None
        return sign_form(self.term) if only_signs else self.term

    @cached_property
    def gradient(self) -> Any:
        """The objective whose derivatives are those of the metric."""
        return compiled(linearized(self.term))

    @cached_property
    def needs_every_label(self) -> bool:
        """Whether the gain of a label depends on all labels; sparse rows are then run as dense."""
        return self.matrix is not None or looks_at_every_class(self.term)

    @cached_property
    def decision(self) -> tuple[Any, Any]:
        """The address of the function that flags labels, and the objective that goes with it."""
        term = self.deciding_term
        is_single = self.matrix is None and not isinstance(term, SumOfTerms | FixedRules)
        if is_single and self.limits is None:
            return deciding_alone(term, self.budget != 0)
        return selector_address(self.budget), self.objective

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """The arrays with numbers of each label in a state of the plan (``omma.state.PLACES``)."""
        used = {
            "cells": True,
            "labels_cells": self.soft,
            "known_cells": self.shrinkage is not None,
            "lifetime_cells": self.growth is not None,
            "calibration": self.calibrated,
        }
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

"""What Adam remembers between steps, and where it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_number, check_seed
from omma.estimators.choosing import check_grid

Floats = NDArray[np.float64]


@dataclass
class Moments:
    """Weights (d + 1, m), the last row being intercepts, with their running means, and a clock."""

    weights: Floats
    first: Floats
    second: Floats
    clock: NDArray[np.int64]

    @classmethod
    def start(cls, d: int, m: int, seed: int) -> Moments:
        """Weights drawn evenly from ±1/√d, as PyTorch's linear layer does."""
        bound = 1 / np.sqrt(max(d, 1))
        weights = np.random.default_rng(seed).uniform(-bound, bound, size=(d + 1, m))
        zeros = np.zeros((2, d + 1, m))
        return cls(weights, zeros[0], zeros[1], np.zeros(2, dtype=np.int64))


def check_adam(owner: str, estimator: Any) -> None:
    """Options that every model learned by Adam has."""
    if estimator.learning_rate is not None:
        check_number(owner, "learning_rate", estimator.learning_rate, low=0.0, strict=True)
    for name in ("beta1", "beta2"):
        if check_number(owner, name, getattr(estimator, name), low=0.0, high=1.0) == 1.0:
            raise ValueError(f"{name} of {owner} must be below 1, got 1")
    check_number(owner, "epsilon", estimator.epsilon, low=0.0, strict=True)
    for name in ("rates", "penalties"):
        object.__setattr__(estimator, name, check_grid(owner, name, getattr(estimator, name)))
    check_seed(owner, estimator.seed)


def hyperparameters(estimator: Any, learning_rate: float, l2: float) -> Floats:
    """Numbers in the order that kernels read them."""
    return np.array([learning_rate, estimator.beta1, estimator.beta2, estimator.epsilon, l2])

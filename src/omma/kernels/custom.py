"""Derivatives of a user's own metric, as functions that the replay kernels can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from omma.kernels.dual import Dual, lift
from omma.kernels.jit import function as both, helper

# Of (tp, predicted, positive, whole).
Partials = Callable[[float, float, float, float], tuple[float, float]]


@helper
def finite(number):
    """Zero for what is no number: with no counts to look at, nothing speaks for or against."""
    return number if np.isfinite(number) else 0.0


@helper
def cells_of(tp, predicted, positive, whole):
    """The four cells; rounding must not make one negative."""
    return (
        tp,
        max(predicted - tp, 0.0),
        max(positive - tp, 0.0),
        max(whole - predicted - positive + tp, 0.0),
    )


def compile_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a user's function; nothing is compiled before it is called."""
    return numba.njit(error_model="numpy")(function)


def partials_of(psi: Callable[..., Any]) -> Partials:
    """Derivatives of compiled ``psi(tp, fp, fn, tn)`` by its own arithmetic on duals."""

    @both
    def partials(tp, predicted, positive, whole):
        tp_, fp, fn, tn = cells_of(tp, predicted, positive, whole)
        value = lift(
            psi(
                Dual(tp_, 1.0, 0.0),
                Dual(fp, -1.0, 1.0),
                Dual(fn, -1.0, 0.0),
                Dual(tn, 1.0, -1.0),
            )
        )
        return finite(value.along_tp), finite(value.along_predicted)

    return partials


def partials_from(gradient: Callable[..., Any]) -> Partials:
    """Derivatives from a compiled function that returns those by tp, fp, fn and tn."""

    @both
    def partials(tp, predicted, positive, whole):
        tp_, fp, fn, tn = cells_of(tp, predicted, positive, whole)
        by_tp, by_fp, by_fn, by_tn = gradient(tp_, fp, fn, tn)
        return finite(by_tp - by_fp - by_fn + by_tn), finite(by_fp - by_tn)

    return partials


def value_of(psi: Callable[..., Any]) -> Callable[..., float]:
    """Compiled ``psi`` as a function of (tp, predicted, positive, whole)."""

    @both
    def value(tp, predicted, positive, whole):
        return finite(psi(*cells_of(tp, predicted, positive, whole)))

    return value

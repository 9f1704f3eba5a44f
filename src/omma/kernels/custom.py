"""Derivatives of a user's own metric, as functions that the replay kernels can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from omma.kernels import values
from omma.kernels.dual import Dual, lift
from omma.kernels.jit import helper, section

# (tp, predicted, positive, whole, inverse), the last being one over the number of rows.
Partials = Callable[[float, float, float, float, float], tuple[float, float]]


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

    @section
    def partials(tp, predicted, positive, whole, inverse):
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

    @section
    def partials(tp, predicted, positive, whole, inverse):
        tp_, fp, fn, tn = cells_of(tp, predicted, positive, whole)
        by_tp, by_fp, by_fn, by_tn = gradient(tp_, fp, fn, tn)
        return finite(by_tp - by_fp - by_fn + by_tn), finite(by_fp - by_tn)

    return partials


def changes_of(psi: Callable[..., Any]) -> Partials:
    """What one more row would change of compiled ``psi``, in place of its derivatives."""

    @helper
    def value(form, tp, predicted, positive, whole):
        return psi(*cells_of(tp, predicted, positive, whole))

    @section
    def changes(tp, predicted, positive, whole, inverse):
        slope, offset = values.changes(value, None, tp, predicted, positive, whole, inverse)
        return finite(slope), finite(offset)

    return changes


def value_of(psi: Callable[..., Any]) -> Callable[..., float]:
    """Compiled ``psi`` as a function of (tp, predicted, positive, whole)."""

    @section
    def value(tp, predicted, positive, whole):
        return finite(psi(*cells_of(tp, predicted, positive, whole)))

    return value


def scaled_value(weight: float, value: Callable[..., float]) -> Callable[..., float]:
    """A multiple of a metric."""

    @section
    def product(tp, predicted, positive, whole):
        return weight * value(tp, predicted, positive, whole)

    return product


def added_values(first: Callable[..., float], second: Callable[..., float]) -> Callable[..., float]:
    """The sum of two metrics."""

    @section
    def total(tp, predicted, positive, whole):
        return first(tp, predicted, positive, whole) + second(tp, predicted, positive, whole)

    return total


def scaled(weight: float, partials: Partials) -> Partials:
    """A multiple of a metric's derivatives."""

    @section
    def product(tp, predicted, positive, whole, inverse):
        slope, offset = partials(tp, predicted, positive, whole, inverse)
        return weight * slope, weight * offset

    return product


def added(first: Partials, second: Partials) -> Partials:
    """The sum of two metrics' derivatives."""

    @section
    def total(tp, predicted, positive, whole, inverse):
        a_slope, a_offset = first(tp, predicted, positive, whole, inverse)
        b_slope, b_offset = second(tp, predicted, positive, whole, inverse)
        return a_slope + b_slope, a_offset + b_offset

    return total

"""A user's own metric: a plain function of the four fractions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import errors
from numpy.typing import NDArray

from omma._validate import check_choice, shown
from omma.kernels.objectives import Own
from omma.metrics.averages import Macro, Micro
from omma.metrics.base import Metric
from omma.metrics.binary import LabelMetric

if TYPE_CHECKING:
    from omma.kernels.custom import Partials

Psi = Callable[[float, float, float, float], float]
Gradient = Callable[[float, float, float, float], tuple[float, float, float, float]]

# Where the derivative is checked: fractions (tp, predicted, positive) well inside their bounds.
# No round numbers: those are where people put a kink.
POINTS = (
    (0.2137, 0.3319, 0.3571),
    (0.0523, 0.1541, 0.1063),
    (0.3089, 0.5527, 0.4129),
    (0.1033, 0.1237, 0.5081),
)
STEP = 1e-6
CANNOT_COMPILE: tuple[type[Exception], ...] = (
    errors.NumbaError,
    getattr(errors, "UnsupportedBytecodeError", errors.NumbaError),  # no NumbaError where it exists
    TypeError,
    AttributeError,
    NotImplementedError,
)
TOLERANCE = 1e-5


@dataclass(frozen=True, repr=False)
class Custom(LabelMetric):
    """A metric of one label that a user wrote; made by ``omma.metrics.custom``."""

    psi: Psi
    partials: Partials
    derivative: Gradient | None
    name: str
    concave: bool = False
    smooth: bool = False
    linear: bool = False
    linear_fractional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "formula", f"{self.name}(tp, fp, fn, tn) of fractions")

    def of_cells(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        cells = np.stack((tp, predicted - tp, positive - tp, n - predicted - positive + tp)) / n
        # Rounding must not make a fraction negative.
        labels = np.maximum(cells, 0.0).reshape(len(cells), -1).T.tolist()
        values = np.array([_value(self.psi, label) for label in labels]).reshape(cells.shape[1:])
        return np.where(np.isfinite(values), values, zero_division)

    @cached_property
    def kind(self) -> Any:
        from omma.kernels.custom import first_class, over_rows

        return Own(over_rows(self.partials), first_class(self._value) if self.compiles else None)

    @cached_property
    def _value(self) -> Any:
        """The function as kernels call it; nothing is compiled before one does."""
        from omma.kernels.custom import compile_function, value_of

        try:
            return value_of(compile_function(getattr(self.psi, "py_func", self.psi)))
        except CANNOT_COMPILE:
            return None

    @cached_property
    def compiles(self) -> bool:
        try:
            return self._value is not None and bool(np.isfinite(self._value(*POINTS[0], 1.0)))
        except CANNOT_COMPILE:
            return False

    def to_json(self) -> Any:
        return {"custom": self.name}

    def __reduce__(self) -> Any:
        flags = (self.concave, self.smooth, self.linear, self.linear_fractional)
        return _rebuild, (self.psi, self.derivative, self.name, flags)


def custom(
    psi: Psi,
    *,
    average: str | None = None,
    gradient: Gradient | None = None,
    name: str | None = None,
    concave: bool = False,
    smooth: bool = False,
) -> Custom | Macro | Micro:
    """A metric from a plain function ``psi(tp, fp, fn, tn)`` of fractions (cells / n).

    The function is compiled, its derivatives are taken exactly by the rules of calculus, and
    checked against differences. Arithmetic, powers, ``sqrt``, ``log``, ``exp``, ``abs``, ``min``,
    ``max`` and branches may be used.

    Parameters
    ----------
    psi : callable
    average : {None, "macro", "micro"}
        None makes a metric of one label, for ``omma.metrics.macro`` or ``micro`` to wrap.
    gradient : callable, optional
        ``gradient(tp, fp, fn, tn)`` returns the derivatives by tp, fp, fn and tn, in that order.
        With it, psi itself need not compile.
    name : str, optional
        Default: the function's own.
    concave, smooth : bool
        What you know of it (used by bounds, never by decisions).

    Examples
    --------
    >>> import omma
    >>> def lift(tp, fp, fn, tn):
    ...     return tp / ((tp + fp) * (tp + fn) + 0.01)
    >>> metric = omma.metrics.custom(lift, average="macro")
    >>> metric
    <metric macro_lift>
    >>> round(metric.value(omma.Counts([2], [3], [4], 10)), 4)
    1.5385
    """
    check_choice("custom", "average", average, (None, "macro", "micro"))
    if not callable(psi) or isinstance(psi, Metric):  # a metric is called by scikit-learn alone
        raise TypeError(f"psi of custom must be a function, got {shown(psi)}")
    if gradient is not None and not callable(gradient):
        raise TypeError(f"gradient of custom must be a function, got {shown(gradient)}")
    made = _made(psi, gradient, name or _name_of(psi), (concave, smooth, False, False))
    if average is None:
        return made
    return Macro(made) if average == "macro" else Micro(made)


def _rebuild(psi: Psi, gradient: Gradient | None, name: str, flags: Any) -> Custom:
    return _made(psi, gradient, name, flags)


@lru_cache(maxsize=256)
def _made(psi: Psi, gradient: Gradient | None, name: str, flags: Any) -> Custom:
    """One compilation for one function, however often it is registered."""
    partials = _compiled(psi, gradient)
    _check_derivative(psi, partials, name)
    return Custom(psi, partials, gradient, name, *flags)


def _value(psi: Psi, cells: list[float]) -> float:
    """The metric of one label; NaN where it is not defined."""
    try:
        return float(psi(*cells))
    except (ZeroDivisionError, ValueError, OverflowError):
        return np.nan


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "custom" if name == "<lambda>" else name


def _compiled(psi: Psi, gradient: Gradient | None) -> Partials:
    """Compile the derivatives, or say why that cannot be done and what can."""
    # Imported by those who have a metric of their own: dual numbers take a while.
    from omma.kernels.custom import compile_function, partials_from, partials_of

    given = psi if gradient is None else gradient
    tp, predicted, positive = POINTS[0]
    try:
        function = compile_function(getattr(given, "py_func", given))
        partials = partials_of(function) if gradient is None else partials_from(function)
        partials(tp, predicted, positive, 1.0)
    except CANNOT_COMPILE as error:
        what = "psi" if gradient is None else "gradient"
        way_out = (
            "pass gradient=, a function of (tp, fp, fn, tn) that returns the four derivatives "
            "and uses only arithmetic"
            if gradient is None
            else "write it as a plain function with arithmetic on its four numbers only"
        )
        raise ValueError(
            f"{what} of custom must be compiled, and {_name_of(given)} cannot be: "
            f"{_reason(error)}; {way_out}"
        ) from error
    return partials


def _reason(error: Exception) -> str:
    """The line of a compiler's long message that names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "During", "File"))]
    return shown((telling or lines or [type(error).__name__])[0], limit=200)


def _check_derivative(psi: Psi, partials: Partials, name: str) -> None:
    """Compare with central differences of the function itself."""
    for tp, predicted, positive in POINTS:

        def at(tp: float, predicted: float, positive: float = positive) -> float:
            value = psi(tp, predicted - tp, positive - tp, 1.0 - predicted - positive + tp)
            return _number(value, name)

        differences = (
            (at(tp + STEP, predicted) - at(tp - STEP, predicted)) / (2 * STEP),
            (at(tp, predicted + STEP) - at(tp, predicted - STEP)) / (2 * STEP),
        )
        derivatives = partials(tp, predicted, positive, 1.0)
        if not np.allclose(derivatives, differences, rtol=TOLERANCE, atol=TOLERANCE):
            cells = (tp, predicted - tp, positive - tp, 1.0 - predicted - positive + tp)
            raise ValueError(
                f"gradient of {name} must match its differences: at (tp, fp, fn, tn) = "
                f"{tuple(round(cell, 4) for cell in cells)} the derivatives by tp and by "
                f"predicted are {_pair(derivatives)}, the differences {_pair(differences)}"
            )


def _pair(numbers: tuple[float, float]) -> str:
    return f"({numbers[0]:.6g}, {numbers[1]:.6g})"


def _number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(
            f"psi of custom must return a finite number for fractions between 0 and 1, "
            f"{name} returned {shown(value)}"
        )
    return number

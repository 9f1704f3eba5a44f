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
STEP = 1e-6  # of central differences: their error is about 1e-10, far below TOLERANCE
CANNOT_COMPILE: tuple[type[Exception], ...] = (
    errors.NumbaError,
    getattr(errors, "UnsupportedBytecodeError", errors.NumbaError),  # no NumbaError where it exists
    TypeError,
    AttributeError,
    NotImplementedError,
)
TOLERANCE = 1e-5  # between derivatives and differences, relative and absolute


@dataclass(frozen=True, repr=False)
class Custom(LabelMetric):
    """A metric of one label that a user wrote; made by ``omma.metrics.custom``."""

    rates = ()
    mean = ""

    psi: Psi
    partials: Partials
    derivative: Gradient | None
    name: str
    concave: bool = False
    smooth: bool = False

    def __post_init__(self) -> None:
        self._set(formula=f"{self.name}(tp, fp, fn, tn) of fractions")

    def of_cells(
        self, tp: Any, predicted: Any, positive: Any, n: Any, zero_division: float = 0.0
    ) -> NDArray[np.float64]:
        cells = np.stack((tp, predicted - tp, positive - tp, n - predicted - positive + tp)) / n
        # Rounding must not make a fraction negative: a user's function may take its root.
        labels = np.maximum(cells, 0.0).reshape(len(cells), -1).T.tolist()
        # One call a label: psi need not take arrays.
        values = np.array([self._value_of(label) for label in labels]).reshape(cells.shape[1:])
        return np.where(np.isfinite(values), values, zero_division)

    def _value_of(self, cells: list[float]) -> float:
        """The metric of one label; NaN where it is not defined."""
        try:
            return float(self.psi(*cells))
        except (ZeroDivisionError, ValueError, OverflowError):
            return np.nan

    @cached_property
    def kind(self) -> Any:
        return Own(self.partials, self._compiled_value)

    @cached_property
    def _compiled_value(self) -> Any:
        """The function as kernels call it; None where it does not compile, as with a gradient."""
        from omma.kernels.custom import compile_function, value_of

        try:
            value = value_of(compile_function(getattr(self.psi, "py_func", self.psi)))
            return value if np.isfinite(value(*POINTS[0], 1.0)) else None
        except CANNOT_COMPILE:
            return None

    @property
    def compiles(self) -> bool:
        return self._compiled_value is not None

    def to_json(self) -> Any:
        return {"custom": self.name}

    def __reduce__(self) -> Any:
        options = (self.derivative, self.name, self.concave, self.smooth)
        return _compiled_metric, (self.psi, *options)  # compiled code is not pickled


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

    The function is compiled and differentiated exactly (by dual numbers); the derivatives are
    checked against finite differences. It may use arithmetic, powers, ``sqrt``, ``log``, ``exp``,
    ``abs``, ``min``, ``max`` and branches.

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
        Whether it is concave and smooth, if you know (used by bounds, never by decisions).

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
    metric = _compiled_metric(psi, gradient, name or _name_of(psi), concave, smooth)
    if average is None:
        return metric
    return Macro(metric) if average == "macro" else Micro(metric)


@lru_cache(maxsize=256)
def _compiled_metric(
    psi: Psi, gradient: Gradient | None, name: str, concave: bool, smooth: bool
) -> Custom:
    """One compilation for one function, however often it is registered."""
    partials = _compiled_partials(psi, gradient)
    _check_derivative(psi, partials, name)
    return Custom(psi, partials, gradient, name, concave, smooth)


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "custom" if name == "<lambda>" else name


def _compiled_partials(psi: Psi, gradient: Gradient | None) -> Partials:
    """Compile the derivatives, or say why that cannot be done and what can."""
    # Imported by those who have a metric of their own: dual numbers take a while.
    from omma.kernels.custom import compile_function, partials_from, partials_of

    written = psi if gradient is None else gradient
    # Calling it once compiles it: most errors of a user's function come up here.
    try:
        function = compile_function(getattr(written, "py_func", written))
        partials = partials_of(function) if gradient is None else partials_from(function)
        partials(*POINTS[0], 1.0)
    except CANNOT_COMPILE as error:
        parameter, way_out = (
            "psi",
            "pass gradient=, a function of (tp, fp, fn, tn) that returns the four derivatives "
            "and uses only arithmetic",
        )
        if gradient is not None:
            parameter = "gradient"
            way_out = "write it as a plain function with arithmetic on its four numbers only"
        raise ValueError(
            f"{parameter} of custom must compile, and {_name_of(written)} does not: "
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

    def value_at(tp: float, predicted: float, positive: float) -> float:
        value = psi(tp, predicted - tp, positive - tp, 1.0 - predicted - positive + tp)
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

    for tp, predicted, positive in POINTS:
        above = value_at(tp + STEP, predicted, positive), value_at(tp, predicted + STEP, positive)
        below = value_at(tp - STEP, predicted, positive), value_at(tp, predicted - STEP, positive)
        differences = np.subtract(above, below) / (2 * STEP)
        derivatives = partials(tp, predicted, positive, 1.0)
        if not np.allclose(derivatives, differences, rtol=TOLERANCE, atol=TOLERANCE):
            cells = (tp, predicted - tp, positive - tp, 1.0 - predicted - positive + tp)
            pairs = [f"({by_tp:.6g}, {by_p:.6g})" for by_tp, by_p in (derivatives, differences)]
            raise ValueError(
                f"gradient of {name} must match its differences: at (tp, fp, fn, tn) = "
                f"{tuple(round(cell, 4) for cell in cells)} the derivatives by tp and by "
                f"predicted are {pairs[0]}, the differences {pairs[1]}"
            )

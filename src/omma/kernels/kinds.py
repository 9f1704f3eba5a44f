"""What is maximized, as compiled code sees it: the kind is a type, the coefficients are numbers.

A metric of one label is a ``Rate``, a mean of recall and specificity, a ``Correlation``, the
``Smaller`` of two rates, or a user's ``Own``; ``Change`` stands for what one more row would change
of it. A term is an average of one of these over labels (``Macro``), of one at the counts averaged
over labels (``Micro``), or a metric of classes. A ``Sum`` adds two terms; ``PlugIn`` asks
for differences of values in place of derivatives. ``Fixed`` are rules that follow no counts.

Every case that kernels know of a kind is found by its class in the files beside this one:
``one_label`` for one label, ``gradient`` and ``utility`` for terms.
"""

from typing import Any, NamedTuple

Form = tuple[float, float, float, float]  # over (tp, predicted, positive, n)


class Rate(NamedTuple):
    """A ratio of two linear forms."""

    over: Form
    under: Form
    epsilon: float


class Arithmetic(NamedTuple):
    """(r + s) / 2 of recall r and specificity s."""

    epsilon: float


class Geometric(NamedTuple):
    """√(r s) of recall and specificity; over classes, of their rates."""

    epsilon: float


class Harmonic(NamedTuple):
    """2 r s / (r + s) of recall and specificity; over classes, of their rates."""

    epsilon: float


class Quadratic(NamedTuple):
    """1 − √(((1 − r)² + (1 − s)²) / 2) of recall and specificity; over classes, of their rates."""

    epsilon: float


class Steep(NamedTuple):
    """Over classes, a mean that follows the smallest rates: what stands for their minimum."""

    epsilon: float


class Correlation(NamedTuple):
    """Matthews: covariance over the root of the product of the two variances."""

    epsilon: float


class Smaller(NamedTuple):
    """The smaller of two rates; ``gamma`` smooths it, a negative one by the number of rows.

    ``rows`` is the number of rows that is for; zero is those seen so far.
    """

    first: Rate
    second: Rate
    gamma: float
    rows: float


class Own(NamedTuple):
    """A user's own metric: compiled functions of (tp, predicted, positive, whole)."""

    partials: Any
    value: Any


class Change(NamedTuple):
    """What one more row would change of a metric of one label, in place of its derivatives."""

    of: Any


class Macro(NamedTuple):
    """The mean over labels of a metric of one label."""

    weight: float
    of: Any


class Micro(NamedTuple):
    """A metric of one label at the counts averaged over labels."""

    weight: float
    of: Any


class Weighted(NamedTuple):
    """The mean over labels of a metric of one label, weighed by how often each occurs."""

    weight: float
    of: Any


class Classes(NamedTuple):
    """A mean of one rate over classes; its derivatives only in proportion, as a ranking needs."""

    weight: float
    of: Any  # Geometric, Harmonic or Quadratic
    rate: Rate


class WeighedClasses(NamedTuple):
    """The same with the factor that all classes share: it ranks nothing, but weighs in a sum."""

    weight: float
    of: Any
    rate: Rate


class Smallest(NamedTuple):
    """The smallest rate over classes, smoothed as ``Smaller`` is."""

    weight: float
    rate: Rate
    gamma: float
    rows: float


class Kappa(NamedTuple):
    """Cohen's kappa over classes."""

    weight: float
    epsilon: float


class ClassCorrelation(NamedTuple):
    """The Matthews correlation over classes."""

    weight: float
    epsilon: float


class MacroThreshold(NamedTuple):
    """OFO's own rule, a threshold for each label."""

    weight: float


class MicroThreshold(NamedTuple):
    """OFO's own rule, one threshold for all labels."""

    weight: float


class Fixed(NamedTuple):
    """Rules that never change, (rules, 2, m): slopes and offsets of each."""

    rules: Any


class Nothing(NamedTuple):
    """No term at all: gains come from elsewhere, as from a matrix of costs."""

    weight: float


class Costs(NamedTuple):
    """A term, and what predicting j is worth where i is true, (m, m)."""

    of: Any
    matrix: Any


class Priced(NamedTuple):
    """A term to which prices of limits add, label by label."""

    of: Any


class Sum(NamedTuple):
    """Two terms added."""

    of: Any
    rest: Any


class PlugIn(NamedTuple):
    """A term, a ``Macro`` or a sum of them, valued at the counts that one more row would leave."""

    of: Any


def with_epsilon(kind: Any, epsilon: float) -> Any:
    """A kind whose every ε is another number; a user's own metric has none of ours."""
    if not hasattr(kind, "_replace"):
        return kind
    parts = {name: with_epsilon(getattr(kind, name), epsilon) for name in kind._fields}
    return kind._replace(**{**parts, **({"epsilon": epsilon} if "epsilon" in parts else {})})

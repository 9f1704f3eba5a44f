"""Frank-Wolfe: the best mixture of linear rules on a sample, by linearizing again and again."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from numpy.typing import ArrayLike

from omma._validate import check_choice, check_number, check_positive_int, check_seed
from omma.kernels.layout import EPSILON
from omma.limits import check_limits, check_per_row, read_limits
from omma.metrics import Metric
from omma.metrics.names import MetricName
from omma.plan import Plan
from omma.policies.base import MetricPolicy, UnsupportedMetricError, check_task, whole_for
from omma.policies.best_mixture import STARTS, Solution, confusion_of, maximize, start_at
from omma.policies.mixture import Mixture
from omma.rows.batch import Batch
from omma.rule import Rule

STEPS = ("line_search", "2/(i+2)")


class ConvergenceWarning(UserWarning):
    """Frank-Wolfe stopped before its tolerance was reached, or where it had started."""


def check_metric(owner: str, metric: Metric) -> None:
    """A cost matrix needs no mixture: its best rule is fixed from the start."""
    if metric.needs_matrix:
        raise UnsupportedMetricError(
            f"metric of {owner} must be a function of per-label counts, got {metric.name}; the "
            "best rule for a cost matrix is fixed, and OMMA has it at once"
        )


@dataclass(frozen=True)
class FrankWolfe:
    """Fit a mixture of rules to a labelled sample: the paper's offline Frank-Wolfe.

    Most metrics are not concave, and probabilities of rows that the estimator was fitted to are
    overconfident: then no step from a start may seem to gain. So the algorithm starts several times
    and keeps the best mixture on the sample; where that is a start itself, ``mixture.is_start`` and
    a warning say so. Fitting on out-of-fold probabilities is the better cure.

    Parameters
    ----------
    metric, k, feedback, prior, epsilon
        As of ``omma.OMMA``.
    start : {"best", "top", "random"}
        "top" starts from the k most probable labels, or from the 0.5 threshold where there is no
        budget; "random" from slopes in [0, 1) and offsets in [-1/2, 1/2) drawn by ``seed``, as the
        code of the paper's tables. "best" tries both, and keeps the better mixture.
    step : {"line_search", "2/(i+2)"}
        The step size of each iteration.
    max_iter : int
        Stop after this number of iterations, with a warning.
    tolerance : float
        Stop when the duality gap is at most this.
    seed : int
        Seed of the mixture's draws and of the random start.
    subject_to : str or Limit, optional
        One limit that the mixture keeps on the sample, for concave metrics (recall, accuracy,
        G- and H-mean …): the mixture is then the best that keeps it, up to its gap. Each step takes
        about thirty passes over the sample.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> mixture = omma.FrankWolfe("macro_gmean").fit(eta, y)
    >>> round(omma.replay(mixture, eta, y).value, 2)
    0.75
    >>> few = omma.FrankWolfe("macro_recall", subject_to="labels_per_row <= 1").fit(eta, y)
    >>> bool(abs(omma.replay(few, eta, y).counts.predicted.sum() / 2000 - 1) < 0.05)
    True
    """

    metric: MetricName | Metric | str
    k: int | None = None
    feedback: Literal["labels", "estimates"] = "labels"
    prior: float = 1e-6
    start: str = "best"
    step: str = "line_search"
    max_iter: int = 100
    tolerance: float = 1e-4
    seed: int = 0
    epsilon: float = field(default=EPSILON, kw_only=True)
    subject_to: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        owner, shared = "FrankWolfe", self._shared
        metric, k = shared.objective, shared.budget
        object.__setattr__(self, "metric", metric)
        limits = read_limits(owner, self.subject_to)
        object.__setattr__(self, "subject_to", limits)
        # The number of labels is not known yet: without a budget a row may get any number.
        check_per_row(owner, limits or (), float(k or 0), float(k or "inf"))
        if limits and not metric.concave:  # a mixture need not be the best there
            raise UnsupportedMetricError(
                f"metric of {owner} must be concave for subject_to, such as macro_recall or "
                f"macro_gmean, got {metric.name}; TunedThresholds and Auto take it"
            )
        if limits and (len(limits) > 1 or limits[0].margin):
            raise ValueError(
                f"subject_to of {owner} must be one limit without a margin, got "
                f"{' and '.join(map(str, limits))}"
            )
        check_metric(owner, metric)
        check_choice(owner, "start", self.start, ("best", *STARTS))
        check_choice(owner, "step", self.step, STEPS)
        check_positive_int(owner, "max_iter", self.max_iter)
        check_number(owner, "tolerance", self.tolerance, low=0.0)
        check_seed(owner, self.seed)

    @cached_property
    def _shared(self) -> _Objective:
        return _Objective(self.metric, self.k, self.feedback, self.prior, epsilon=self.epsilon)

    def fit(self, eta: Any, y: Any = None, *, weights: ArrayLike | None = None) -> Mixture:
        """Find the mixture that maximizes the metric on a sample.

        Parameters
        ----------
        eta, y, weights
            As of ``omma.replay``, be it a ``Batch``; y may be left out with
            ``feedback="estimates"``.
        """
        owner, shared = "FrankWolfe.fit", self._shared
        metric, k = shared.objective, shared.budget
        batch = Batch.read(owner, eta, y, weights)
        m = batch.m
        shared.check_labels(m)
        check_sample(owner, batch, k, metric, optional=shared.soft, whole=whole_for(metric))
        limits = tuple(limit.named(batch.names, m, "FrankWolfe") for limit in self.subject_to or ())
        # With a budget each row gets exactly k labels.
        low, high = (0.0, float(m)) if k is None else (float(k), float(k))
        check_limits("FrankWolfe", limits, m, low, high)
        # With estimates as feedback, a small gap proves that no mixture is better; labels promise
        # only as much as eta is good.
        proves = shared.soft and metric.concave
        confusion = confusion_of(owner, batch, k, soft=shared.soft)
        # Most metrics are not concave: another start may lead to a better mixture.
        solutions = []
        for name in STARTS if self.start == "best" else (self.start,):
            solution = maximize(
                shared,
                confusion,
                start=start_at(name, k, m, self.seed),
                max_iter=self.max_iter,
                tolerance=self.tolerance,
                step=self.step,
                limit=limits[0] if limits else None,
            )
            solutions.append(replace(solution, start=name))
            if solution.converged and proves:
                break
        best = max(solutions, key=lambda solution: solution.value)  # of equals, the first
        self._warn_of(best, proves)
        rules = (Rule(atom.slope, atom.offset, k).named(batch.names) for atom in best.atoms)
        return Mixture(
            tuple(rules),
            best.shares,
            metric,
            self.seed,
            best.values,
            tuple(best.log),
            best.start,
            best.is_start,
        )

    def _warn_of(self, solution: Solution, proven: bool) -> None:
        """Warn of a run that did not end, or that ended where it began without proof."""
        if not solution.met:
            (limit,) = self.subject_to
            message = f"FrankWolfe found no mixture that keeps {limit}: the result comes nearest"
        elif not solution.converged:
            gap = solution.log[-1].gap if solution.log else float("nan")
            stuck = bool(solution.log) and solution.log[-1].step == 0.0
            advice = "no step gains any more" if stuck else "raise max_iter or tolerance"
            message = (
                f"FrankWolfe stopped after {len(solution.log)} iterations with a gap of {gap:.2g} "
                f"above its tolerance {self.tolerance:g}: {advice}"
            )
        elif solution.is_start and not proven:
            message = (
                f"FrankWolfe found nothing better than its start ({solution.start}): if eta is of "
                "rows that the estimator was fitted to, fit on out-of-fold probabilities"
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


def check_sample(
    owner: str,
    batch: Batch,
    k: int | None = None,
    metric: Metric | None = None,
    *,
    optional: bool = False,
    whole: str | None = None,
) -> None:
    """Refuse samples that nothing can be fitted to; ``optional`` allows unknown labels.

    ``whole`` is why no row may be labelled in part, as of ``check_task``.
    """
    # With estimates as feedback labels are not needed, and rows of any weight will do.
    if batch.labels is None and optional:
        return
    if batch.n == 0:
        raise ValueError(f"eta of {owner} must have at least one row, got none")
    if batch.labels is None:
        raise ValueError(f"y of {owner} must be given, got None")
    check_task(owner, batch, k, metric, unknown=True, whole=whole)
    if len(batch.weights) and batch.weights.sum() == 0:
        raise ValueError(f"weights of {owner} must not all be 0")
    known = batch.labels.known
    if optional or known is None:
        return
    if not (batch.weights[known] if len(batch.weights) else known).any():
        raise ValueError(f"y of {owner} must have known labels in rows of weight above 0, got none")


class _Objective(MetricPolicy):
    """The checks and names that metric, k, feedback and prior share with the online policies."""

    owner = "FrankWolfe"

    def plan(self, m: int) -> Plan:
        return self.metric_plan

"""A mixture of rules: one of them is drawn for each row.

The draw for the t-th row is the t-th number of a seeded generator plus the row's fingerprint (a
hash), modulo 1. So predicting a row twice gives the same decision, different rows get different
draws even where nothing is counted in between, steps draw as replays do, and dense rows as sparse.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_seed, shown
from omma.engine import Engine, Stretch
from omma.kernels.fingerprint import fingerprints_dense, fingerprints_sparse
from omma.kernels.objectives import FixedRules
from omma.kernels.row import Spec
from omma.metrics import Metric, MetricName, metric as find_metric
from omma.plan import Plan
from omma.policies.base import Policy
from omma.policies.fixed import FixedPolicy
from omma.rows.arrays import Probabilities, Rows, SparseProbabilities, blocks, read_probabilities
from omma.rows.batch import Batch
from omma.rows.frames import Names
from omma.rows.row import PartlyKnown, Row, probabilities_of_row
from omma.rule import Rule
from omma.state import State
from omma.state_parts import check_array

Vector = NDArray[np.float64]


def fingerprints(eta: Probabilities, order: Rows | None = None) -> Vector:
    """The fingerprints of all rows, in the order in which they come: numbers in [0, 1)."""
    prints = np.empty(eta.n)
    kernel = fingerprints_sparse if isinstance(eta, SparseProbabilities) else fingerprints_dense
    with np.errstate(over="ignore"):  # hashes wrap around, and plain Python would warn of it
        for start, rows in blocks(eta.n, eta.rows_per_block, order):
            kernel(*eta.block(rows), prints[start : start + len(rows)])
    return prints


@dataclass(frozen=True)
class Iteration:
    """One step of Frank-Wolfe: its size, the value of the mixture after it, and the duality gap.

    ``gap`` is how much the linearized metric could gain before the step. With
    ``feedback="estimates"`` and a concave metric, no mixture of classifiers is better by more than
    that; with labels the bound is only as good as eta.
    """

    step: float
    value: float
    gap: float


class MixtureState(State):
    """Counts, and the number of rows for which a rule was drawn."""

    drawn = 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), "rows": np.array(self.drawn)}

    def take_own(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.drawn = int(arrays["rows"])

    def check(self, arrays: dict[str, NDArray[Any]]) -> None:
        check_array("rows", arrays.get("rows"), ())
        rows = float(arrays["rows"])
        if not (0 <= rows <= 2**53 and rows.is_integer()):  # counted by ones, in float64 elsewhere
            raise ValueError(f"rows of a state must be a whole number from 0 to 2**53, got {rows}")
        super().check(arrays)


class DrawsRules(Policy):
    """A policy that draws one of several rules for each row."""

    seed: int

    @abstractmethod
    def mixture_of(self, state: Any) -> tuple[Vector, Vector]:
        """Slope and offset of each rule, of shape (rules, 2, m), and the probability of each.

        Another thread may replace both, so read them together, and once for each decision.
        """

    def plan_of(self, rules: Vector) -> Plan:
        """The rules in the form that kernels read."""
        # Each rule is one of Eq. (6); ``picks`` chooses among them for each row.
        return Plan(self.budget, FixedRules(rules), soft=self.feedback != "labels")

    def plan(self, m: int) -> Plan:
        rules, _ = self.mixture_of(self.init(m))
        return self.plan_of(rules)

    def picks(self, state: Any, shares: Vector, prints: Vector) -> NDArray[np.int32]:
        """The rules drawn for the next rows: the same whether one by one or all together."""
        generator = np.random.PCG64(self.seed)
        generator.advance(state.drawn)  # the t-th row has the t-th draw, whenever it is decided
        # Modulo 1 a draw plus a fingerprint is as uniform as before, and differs between rows.
        draws = np.random.Generator(generator).random(len(prints)) + prints
        # Rounded shares may add up to less than one: the last rule takes the remainder.
        edges = np.cumsum(shares)
        places = np.searchsorted(edges, draws - (draws >= 1.0), side="right")
        return np.minimum(places, len(edges) - 1).astype(np.int32)

    def engine(self, state: Any) -> MixtureEngine:
        return MixtureEngine(self, state)

    def decide_rows(self, state: Any, eta: Any) -> Any:
        rows = read_probabilities(self.owner, eta)
        if rows.m != state.m:  # kernels do not check it
            raise ValueError(f"eta of {self.owner} must have {state.m} labels, got {rows.m}")
        rules, shares = self.mixture_of(state)
        picks = self.picks(state, shares, fingerprints(rows))
        # On a new state: deciding must not change the counts of this one.
        engine = Engine.start(self.plan_of(rules), state.m)
        return engine.replay(self.owner, Batch(rows), stretches=[(0, rows.n, picks)]).predictions

    def rule(self, state: Any) -> Rule:
        """One of the rules, drawn by the row number alone: rows add their own hash to it."""
        rules, shares = self.mixture_of(state)
        slope, offset = rules[self.picks(state, shares, np.zeros(1))[0]]
        return Rule(slope, offset, self.budget).named(self.names)


class MixtureEngine(Engine):
    """Rows of a policy that draws a rule for each."""

    def __init__(self, policy: DrawsRules, state: Any) -> None:
        rules, _ = policy.mixture_of(state)
        super().__init__(policy.plan_of(rules), state)
        self.policy = policy

    def decide(self, eta: Row, pick: int = 0, spec: Spec | None = None) -> NDArray[Any]:
        # The mixture may have changed since this engine was made.
        rules, shares = self.policy.mixture_of(self.state)
        prints = fingerprints(probabilities_of_row(eta, self.m))
        (pick,) = self.policy.picks(self.state, shares, prints)
        spec = self.spec._replace(objective=FixedRules(rules))
        return super().decide(eta, int(pick), spec)

    def learn(
        self,
        eta: Row | None,
        y: NDArray[Any] | PartlyKnown | None,
        prediction: NDArray[Any],
        weight: float,
        *,
        late: bool = False,
        audit: float = 0.0,
    ) -> None:
        super().learn(eta, y, prediction, weight, late=late, audit=audit)
        if not late:
            self.drew()

    def drew(self) -> None:
        self.state.drawn += 1  # type: ignore[attr-defined]

    def stretches(self, batch: Batch, order: Rows | None) -> Iterator[Stretch]:
        _, shares = self.policy.mixture_of(self.state)
        picks = self.policy.picks(self.state, shares, fingerprints(batch.eta, order))
        yield 0, batch.n, picks
        self.state.drawn += batch.n  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class Mixture(DrawsRules, FixedPolicy):
    """Rules of which one is drawn for each row; what ``FrankWolfe.fit`` returns.

    The draw for a row depends on the seed, on the number of rows counted before, and on the row's
    own probabilities. So predicting a row twice gives the same decision, and each rule decides its
    share of rows even if nothing is ever counted. Equal rows between two counts are decided alike.

    Parameters
    ----------
    rules : sequence of Rule
    shares : array-like
        The probability of each rule.
    metric : str or Metric, optional
        What it was made to maximize.
    seed : int
        The draws are those of ``numpy.random.PCG64(seed)``, one per row, each plus a hash of the
        row, modulo 1.
    values : array-like, optional
        The metric of each rule alone on the sample.
    log : tuple of Iteration
        How the mixture was found.
    start : str, optional
        Where Frank-Wolfe started.
    is_start : bool
        Whether it found nothing better: the mixture is then its start alone.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> mixture = omma.FrankWolfe("macro_f1").fit(eta, y)
    >>> omma.replay(mixture, eta, y).value > 0.3
    True
    >>> len(mixture.deterministic().rules)
    1
    """

    rules: tuple[Rule, ...]
    shares: Vector
    metric: MetricName | Metric | str | None = None
    seed: int = 0
    values: Vector | None = field(default=None, repr=False)
    log: tuple[Iteration, ...] = field(default=(), repr=False)
    start: str | None = field(default=None, repr=False)
    is_start: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        rules = tuple(
            Rule.from_json(rule) if isinstance(rule, str) else rule for rule in self.rules
        )
        shares = np.array(self.shares, dtype=np.float64)
        fits = shares.shape == (len(rules),) and np.isfinite(shares).all() and (shares >= 0).all()
        if not rules or not fits or shares.sum() <= 0:
            raise ValueError(
                f"shares of Mixture must be finite numbers of at least 0, one for each of "
                f"{len(rules)} rules, and not all 0, got {shown(self.shares)}"
            )
        if any(rule.matrix is not None for rule in rules):
            raise ValueError("rules of Mixture must have no matrix of costs")
        if len({(rule.m, rule.k) for rule in rules}) > 1:
            raise ValueError("rules of Mixture must all have the same number of labels and k")
        self._set(seed=check_seed("Mixture", self.seed), rules=rules, shares=shares / shares.sum())
        if self.metric is not None:
            self._set(metric=find_metric(self.metric))

    @property
    def names(self) -> Names | None:
        return self.rules[0].names

    @property
    def budget(self) -> int | None:
        return self.rules[0].k

    def check_labels(self, m: int) -> None:
        super().check_labels(m)
        if m != self.rules[0].m:
            raise ValueError(f"the rules of Mixture are for {self.rules[0].m} labels, got {m}")

    def deterministic(self) -> Mixture:
        """The rule with the highest value on the sample; of equals, that of the largest share."""
        order = self.shares if self.values is None else self.values
        best = int(np.lexsort((self.shares, order))[-1])
        values = None if self.values is None else np.array(self.values)[[best]]
        return replace(self, rules=(self.rules[best],), shares=np.ones(1), values=values)

    @cached_property
    def _weights(self) -> Vector:
        return np.array([(rule.slope, rule.offset) for rule in self.rules])

    def mixture_of(self, state: Any) -> tuple[Vector, Vector]:
        return self._weights, self.shares

    def init(self, m: int) -> MixtureState:
        self.check_labels(m)
        return MixtureState(m)

    def to_json(self) -> dict[str, Any]:
        return {
            "policy": "Mixture",
            "rules": [rule.to_json() for rule in self.rules],
            "shares": self.shares.tolist(),
            "metric": None if self.objective is None else self.objective.to_json(),
            "seed": self.seed,
            "values": None if self.values is None else np.asarray(self.values).tolist(),
            "start": self.start,
            "is_start": self.is_start,
        }

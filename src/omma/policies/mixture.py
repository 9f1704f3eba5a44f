"""A mixture of rules: for each row one of them is drawn.

The draw for the t-th row is the t-th of a seeded generator, turned round the circle [0, 1) by the
row's fingerprint. So a row that is asked for twice gets the same answer, other rows draw anew even
where nothing is counted in between, stepping draws as replaying does, and dense rows as sparse.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_seed, shown
from omma.kernels.fingerprint import fingerprints_dense, fingerprints_sparse
from omma.kernels.kinds import Fixed as Rules
from omma.metrics import Metric, metric as find_metric
from omma.metrics.names import MetricName
from omma.parts import check_part
from omma.policies.fixed import Fixed
from omma.policies.stepper import Stepper
from omma.rows.arrays import Probabilities, Rows, SparseProbabilities, blocks, read_probabilities
from omma.rows.batch import Batch
from omma.rows.frames import Names
from omma.rows.row import Partly, Row, as_block
from omma.rule import Rule
from omma.running.plan import Plan
from omma.running.runner import Run, run
from omma.running.sequence import Sequence
from omma.state import State

Draws = NDArray[np.float64]


def draws(seed: int, start: int, fingerprints: Draws) -> Draws:
    """The draws for rows ``start`` onwards: the same whether taken one by one or together."""
    generator = np.random.PCG64(seed)
    generator.advance(start)
    turned = np.random.Generator(generator).random(len(fingerprints)) + fingerprints
    return turned - (turned >= 1.0)


def picked(shares: NDArray[np.float64], drawn: Draws) -> NDArray[np.int32]:
    """Which rule each draw falls on."""
    edges = np.cumsum(shares)
    return np.minimum(np.searchsorted(edges, drawn, side="right"), len(shares) - 1).astype(np.int32)


def of_rows(eta: Probabilities, order: Rows | None = None) -> Draws:
    """The fingerprints of all rows, in the order in which they come."""
    out = np.empty(eta.n)
    for start, rows in blocks(eta.n, eta.rows_per_block, order):
        thin, part = isinstance(eta, SparseProbabilities), out[start : start + len(rows)]
        _fill(thin, *eta.block(rows), part)
    return out


def of_row(eta: Row) -> Draws:
    """The fingerprint of one row."""
    out = np.empty(1)
    _fill(isinstance(eta, tuple), *as_block(eta), out)
    return out


def _fill(thin: bool, *arguments: Any) -> None:
    kernel = fingerprints_sparse if thin else fingerprints_dense
    with np.errstate(over="ignore"):  # hashes wrap around, and plain Python would warn of it
        kernel(*arguments)


@dataclass(frozen=True)
class Iteration:
    """One step of Frank-Wolfe: how far it went, and what the mixture was worth then.

    ``gap`` is what the linearized metric promised before the step. With ``feedback="estimates"``,
    where the linear rule is the best answer to a linear metric, no mixture of classifiers is better
    by more than that if the metric is concave; with labels the promise is only as good as eta.
    """

    step: float
    value: float
    gap: float


@dataclass(eq=False)
class MixtureState(State):
    """Counts, and how many rows were drawn for."""

    drawn: int = 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**super().arrays(), "rows": np.array(self.drawn)}

    def take_own(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.drawn = int(arrays["rows"])

    def check(self, arrays: dict[str, NDArray[Any]]) -> None:
        check_part("rows", arrays.get("rows"), ())
        rows = float(arrays["rows"])
        if not (0 <= rows <= 2**53 and rows.is_integer()):  # counted by ones, in float64 elsewhere
            raise ValueError(f"rows of a state must be a whole number from 0 to 2**53, got {rows}")
        super().check(arrays)


class MixtureStepper(Stepper):
    """Single steps of a policy that draws a rule for each row."""

    def decide(self, state: Any, eta: Row, pick: int | None = None) -> NDArray[Any]:
        return super().decide(state, eta, self.policy.pick(state, eta) if pick is None else pick)

    def count(
        self,
        state: Any,
        eta: Row | None,
        y: NDArray[Any] | Partly | None,
        prediction: NDArray[Any],
        weight: float,
        *,
        late: bool = False,
    ) -> None:
        super().count(state, eta, y, prediction, weight, late=late)
        if not late:
            self.drew(state)

    def drew(self, state: Any) -> None:
        state.drawn += 1


@dataclass(frozen=True, eq=False)
class Mixture(Fixed):
    """Rules of which one is drawn for each row; what ``FrankWolfe.fit`` returns.

    The draw for a row hangs on the seed, on how many rows were counted before, and on the row's own
    probabilities: who asks twice gets the same answer, and who only asks, and never counts, still
    gets each rule as often as its share. Equal rows between two counts are decided alike.

    Parameters
    ----------
    rules : sequence of Rule
    shares : array-like
        The probability of each rule.
    metric : str or Metric, optional
        What it was made to maximize.
    seed : int
        The draws are those of ``numpy.random.PCG64(seed)``, one a row, each turned round the circle
        [0, 1) by a hash of the row.
    values : array-like, optional
        What each rule alone was worth on the sample.
    log : tuple of Iteration
        How the mixture was found.
    start : str, optional
        Where Frank-Wolfe started.
    is_start : bool
        Whether it found nothing better than that: the mixture is then its start alone.

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
    shares: NDArray[np.float64]
    metric: MetricName | Metric | str | None = None
    seed: int = 0
    values: NDArray[np.float64] | None = field(default=None, repr=False)
    log: tuple[Iteration, ...] = field(default=(), repr=False)
    start: str | None = field(default=None, repr=False)
    is_start: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        rules = tuple(Rule.from_json(one) if isinstance(one, str) else one for one in self.rules)
        shares = np.array(self.shares, dtype=np.float64)
        fits = shares.shape == (len(rules),) and np.isfinite(shares).all() and (shares >= 0).all()
        if not rules or not fits or shares.sum() <= 0:
            raise ValueError(
                f"shares of Mixture must be a finite number of at least 0 for each of "
                f"{len(rules)} rules, and not all 0, got {shown(self.shares)}"
            )
        if any(rule.matrix is not None for rule in rules):
            raise ValueError("rules of Mixture must have no matrix of costs")
        object.__setattr__(self, "seed", check_seed("Mixture", self.seed))
        if len({(rule.m, rule.k) for rule in rules}) > 1:
            raise ValueError("rules of Mixture must have one number of labels and one budget")
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "shares", shares / shares.sum())
        if self.metric is not None:
            object.__setattr__(self, "metric", find_metric(self.metric))

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
        """The one rule that was worth most on the sample; of equals, that of the largest share."""
        order = self.shares if self.values is None else self.values
        best = int(np.lexsort((self.shares, order))[-1])
        values = None if self.values is None else np.array(self.values)[[best]]
        return replace(self, rules=(self.rules[best],), shares=np.ones(1), values=values)

    def plan(self, m: int) -> Plan:
        fixed = np.array([(rule.slope, rule.offset) for rule in self.rules])
        return Plan(self.budget, Rules(fixed))

    def init(self, m: int) -> MixtureState:
        self.check_labels(m)
        state = State.zeros(m)
        return MixtureState(state.cells, state.totals)

    def pick(self, state: Any, eta: Row) -> int:
        """The rule drawn for a row that comes now."""
        return int(picked(self.shares, draws(self.seed, state.drawn, of_row(eta)))[0])

    def stepper(self, m: int) -> MixtureStepper:
        return MixtureStepper(self, m)

    def decide_rows(self, state: Any, eta: Any) -> Any:
        rows = read_probabilities("Mixture", eta)
        picks = picked(self.shares, draws(self.seed, state.drawn, of_rows(rows)))
        return run("Mixture", self.plan(rows.m), Sequence(Batch(rows)), picks).predictions

    def rule(self, state: Any) -> Rule:
        """One of the rules, drawn for the place alone: a row's own draw is turned by its hash."""
        return self.rules[int(picked(self.shares, draws(self.seed, state.drawn, np.zeros(1)))[0])]

    def replay(self, given: Sequence) -> Run:
        n = given.eta.n
        picks = picked(self.shares, draws(self.seed, 0, of_rows(given.eta, given.order)))
        done = run("replay of Mixture", self.plan(given.eta.m), given, picks)
        found = done.state
        done.state = MixtureState(found.cells, found.totals, missed=found.missed, drawn=n)
        return done

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

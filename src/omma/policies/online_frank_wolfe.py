"""Online Frank-Wolfe: the offline algorithm, run again and again on all rows so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_choice, check_number, check_positive_int, check_seed
from omma.kernels.decide import deciding
from omma.kernels.kinds import Fixed
from omma.parts import check_part
from omma.policies.base import MetricPolicy
from omma.policies.best_mixture import STARTS, maximize, start_at, top
from omma.policies.frank_wolfe import check_metric
from omma.policies.mixture import MixtureState, MixtureStepper, draws, of_row, of_rows, picked
from omma.policies.rows_kept import Kept, Sample
from omma.rows.arrays import read_probabilities
from omma.rows.batch import Batch
from omma.rows.row import Partly, Row
from omma.rule import Rule
from omma.running.empty import NO_NUMBERS, NO_ROWS
from omma.running.plan import Plan
from omma.running.runner import Run, Runner, run
from omma.running.sequence import Sequence
from omma.running.tally import Part, tally_of
from omma.running.truth import part_of
from omma.state import Shapes, State


@dataclass(eq=False)
class OnlineFrankWolfeState(MixtureState):
    """The present mixture, when the next run is due, and the rows that it will look at."""

    fixed: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2, 0)))
    shares: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    runs: int = 0
    due: float = 0.0
    kept: Kept | None = None

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = {
            **super().arrays(),
            "fixed": self.fixed,
            "shares": self.shares,
            "schedule": np.array([self.runs, self.due]),
        }
        return found if self.kept is None else {**found, **self.kept.arrays()}

    def shapes(self) -> Shapes:
        kept = (f"kept_{name}" for name in Kept.NAMES)
        return {**super().shapes(), **dict.fromkeys(("fixed", "shares", *kept))}

    def check(self, arrays: dict[str, NDArray[Any]]) -> None:
        check_part("schedule", arrays.get("schedule"), (2,), signed=False)
        shares = arrays.get("shares")
        rules = len(shares) if isinstance(shares, np.ndarray) and shares.ndim == 1 else 1
        check_part("shares", shares, (max(rules, 1),), signed=False)
        check_part("fixed", arrays.get("fixed"), (rules, 2, self.m))
        super().check(arrays)
        runs = float(arrays["schedule"][0])
        if not runs.is_integer() or runs > arrays["rows"]:
            raise ValueError(
                f"schedule of a state must have a whole number of runs, at most one for each of "
                f"its {int(arrays['rows'])} rows, got {runs:g}"
            )

    def take_own(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().take_own(arrays)
        self.fixed = np.array(arrays["fixed"], dtype=np.float64)
        self.shares = np.array(arrays["shares"], dtype=np.float64)
        self.runs, self.due = int(arrays["schedule"][0]), float(arrays["schedule"][1])
        self.kept = Kept.from_arrays(self.m, arrays) if "kept_weights" in arrays else None


@dataclass(frozen=True, repr=False)
class OnlineFrankWolfe(MetricPolicy):
    """Mix linear rules by Frank-Wolfe on all rows so far, again after every 10·1.1^i rows.

    The paper's main rival of OMMA. It **keeps every row it has seen** (bound that by ``history``),
    and draws one rule of its mixture for each row. Before the first run it predicts by the 0.5
    threshold, or the top k.

    Parameters
    ----------
    metric, k, feedback, prior, epsilon
        As of ``omma.OMMA``.
    start : {"top", "random"}
        Where each run starts: from the top k (or the 0.5 threshold), or from a classifier drawn
        anew, slopes in [0, 1) and offsets in [-1/2, 1/2), as in the code of the paper's tables.
        With a budget that matters much: labels that absorb surplus predictions then change with
        every run, and precision suffers.
    first, growth : float
        The next run comes ``first * growth**i`` rows after the last.
    max_iter, tolerance
        As of ``omma.FrankWolfe``, for each run.
    history : int, optional
        Look at no more than so many of the latest rows.
    seed : int
        Of the draws, and of random starts.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=10, seed=0)
    >>> omma.replay(omma.OnlineFrankWolfe("macro_f1"), eta, y).value > 0.4
    True
    """

    start: str = "top"
    first: float = 10.0
    growth: float = 1.1
    max_iter: int = 20
    tolerance: float = 1e-4
    history: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_metric("OnlineFrankWolfe", self.objective)
        owner = "OnlineFrankWolfe"
        check_choice(owner, "start", self.start, STARTS)
        checked = {
            "first": check_number(owner, "first", self.first, low=1.0),
            "growth": check_number(owner, "growth", self.growth, low=1.0),
            "max_iter": check_positive_int(owner, "max_iter", self.max_iter),
            "tolerance": check_number(owner, "tolerance", self.tolerance, low=0.0),
            "history": check_positive_int(owner, "history", self.history, optional=True),
            "seed": check_seed(owner, self.seed),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def needs_eta(self) -> bool:
        return True

    def init(self, m: int) -> OnlineFrankWolfeState:
        self.check_labels(m)
        start = State.zeros(m, soft=self.soft)
        fixed = np.stack(top(self.budget, m))[np.newaxis]
        return OnlineFrankWolfeState(
            start.cells, start.totals, start.labels, fixed=fixed, due=float(self.first)
        )

    def plan(self, m: int) -> Plan:
        return self.plan_of(self.init(m))

    def plan_of(self, state: OnlineFrankWolfeState) -> Plan:
        """The present mixture as the kernels see it."""
        return Plan(self.budget, Fixed(state.fixed), soft=self.soft)

    def pick(self, state: OnlineFrankWolfeState, eta: Row) -> int:
        """The rule drawn for a row that comes now."""
        return int(picked(state.shares, draws(self.seed, state.drawn, of_row(eta)))[0])

    def rule(self, state: Any) -> Rule:
        """One of the rules, drawn for the place alone: a row's own draw is turned by its hash."""
        pick = picked(state.shares, draws(self.seed, state.drawn, np.zeros(1)))[0]
        slope, offset = state.fixed[pick]
        return Rule(slope, offset, self.budget)

    def decide_rows(self, state: Any, eta: Any) -> Any:
        given = Sequence(Batch(read_probabilities("OnlineFrankWolfe", eta)))
        picks = picked(state.shares, draws(self.seed, state.drawn, of_rows(given.eta)))
        return run("OnlineFrankWolfe", self.plan_of(state), given, picks).predictions

    def stepper(self, m: int) -> OnlineFrankWolfeStepper:
        return OnlineFrankWolfeStepper(self, m)

    def is_due(self, state: OnlineFrankWolfeState) -> bool:
        """Whether Frank-Wolfe runs before the next row."""
        return state.drawn >= int(state.due)

    def run_again(self, state: OnlineFrankWolfeState, sample: Callable[[], Sample]) -> None:
        """Replace the mixture by the best one for the rows so far."""
        eta, rows, true, weights = sample()
        state.runs += 1
        state.due += self.first * self.growth**state.runs
        if len(weights) and weights.sum() == 0:
            return  # nothing that counts has come yet
        parts = [Part(rows, true, weights)]
        found = maximize(
            self.objective,
            tally_of("OnlineFrankWolfe", eta, parts, self.budget, soft=self.soft),
            k=self.budget,
            m=eta.m,
            prior=self.prior,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
            step="line_search",
            epsilon=self.epsilon,
            start=start_at(self.start, self.budget, eta.m, self.seed, state.runs),
        )
        used = found.shares > 0
        state.fixed = np.stack((found.slopes[used], found.offsets[used]), axis=1)
        state.shares = found.shares[used]

    def replay(self, given: Sequence) -> Run:
        eta = given.eta.ready()
        rows = np.arange(eta.n, dtype=np.int64) if given.order is None else given.order
        state = self.init(eta.m)
        runner = Runner(
            "replay of OnlineFrankWolfe",
            self.plan_of(state),
            eta,
            checkpoints=given.checkpoints,
            keep=given.keep,
        )
        # Compile, or load from disk, outside the clock.
        runner.feed(NO_ROWS, given.true(NO_ROWS))
        one = (eta, rows[:1], given.true(rows[:1]), NO_NUMBERS)
        self.run_again(self.init(eta.m), lambda: one)
        started = time.perf_counter()
        true = given.true(rows)
        weights = given.weights[rows] if len(given.weights) else given.weights
        drawn = draws(self.seed, 0, of_rows(eta, given.order))

        def part(start: int, stop: int) -> Sample:
            some = slice(start, stop)
            return eta, rows[some], part_of(true, some), weights[some]

        while state.drawn < eta.n:
            start, stop = state.drawn, min(int(state.due), eta.n)
            _, some, labels_of, weights_of = part(start, stop)
            runner.plan = self.plan_of(state)
            runner.feed(some, labels_of, weights_of, picked(state.shares, drawn[start:stop]))
            state.drawn = stop
            if self.is_due(state):
                oldest = 0 if self.history is None else max(0, stop - self.history)
                self.run_again(state, lambda oldest=oldest, stop=stop: part(oldest, stop))  # type: ignore[misc]
            if given.progress is not None:
                given.progress(stop - start)
        done = runner.result(time.perf_counter() - started)
        state.cells, state.totals = done.state.cells, done.state.totals
        state.labels = done.state.labels
        done.state = state
        return done


class OnlineFrankWolfeStepper(MixtureStepper):
    """Single steps, which keep each counted row and run Frank-Wolfe when it is due."""

    policy: OnlineFrankWolfe

    def decide(self, state: Any, eta: Row, pick: int | None = None) -> NDArray[Any]:
        fixed = state.fixed  # another thread may put a new mixture in its place
        by = deciding(Fixed(fixed), 0.0, self.policy.plan_of(state).budget)
        drawn = self.policy.pick(state, eta) if pick is None else pick
        return self.decide_by(by, state, eta, min(drawn, len(fixed) - 1))

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
        if late and state.labels is not None:
            return  # kept when it was decided
        assert eta is not None  # its policy says that it needs it,
        assert not isinstance(y, Partly)  # and takes no such rows
        if state.kept is None:
            state.kept = Kept(state.m, thin=isinstance(eta, tuple))
        kept, limit = state.kept, self.policy.history
        if y is None:
            true = np.empty(0, dtype=np.int32)
        else:
            true = y if isinstance(eta, tuple) else np.flatnonzero(y).astype(np.int32)
        kept.append(eta, true, weight)
        if limit is not None:
            kept.forget(limit)
        if self.policy.is_due(state):
            self.policy.run_again(state, lambda: kept.sample(limit))

"""Online Frank-Wolfe: the offline algorithm, run again and again on all rows so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._validate import check_choice, check_number, check_positive_int, check_seed
from omma.kernels.objectives import Fixed
from omma.kernels.row import Spec
from omma.plan import Plan
from omma.policies.base import MetricPolicy
from omma.policies.best_mixture import STARTS, maximize, start_at, top
from omma.policies.frank_wolfe import check_metric
from omma.policies.mixture import MixtureEngine, MixtureState, draws, of_row, of_rows, picked
from omma.policies.rows_kept import Kept
from omma.replaying import NO_ROWS, Replay, Run, Sequence, confusion_of, replay
from omma.rows.arrays import Rows, read_probabilities
from omma.rows.batch import Batch
from omma.rows.row import Partly, Row
from omma.rule import Rule
from omma.state import Shapes, State, check_part


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
        sequence = Sequence(Batch(read_probabilities("OnlineFrankWolfe", eta)))
        picks = picked(state.shares, draws(self.seed, state.drawn, of_rows(sequence.eta)))
        return replay("OnlineFrankWolfe", self.plan_of(state), sequence, picks).predictions

    def engine(self, state: Any) -> OnlineFrankWolfeEngine:
        return OnlineFrankWolfeEngine(self, state)

    def is_due(self, state: OnlineFrankWolfeState) -> bool:
        """Whether Frank-Wolfe runs before the next row."""
        return state.drawn >= int(state.due)

    def run_again(self, state: OnlineFrankWolfeState, sample: Batch, rows: Rows) -> None:
        """Replace the mixture by the best one for some rows of a sample."""
        state.runs += 1
        state.due += self.first * self.growth**state.runs
        weights = sample.weights[rows] if len(sample.weights) else sample.weights
        if len(weights) and weights.sum() == 0:
            return  # nothing that counts has come yet
        found = maximize(
            self.objective,
            confusion_of("OnlineFrankWolfe", sample, self.budget, soft=self.soft, rows=rows),
            k=self.budget,
            m=sample.m,
            prior=self.prior,
            max_iter=self.max_iter,
            tolerance=self.tolerance,
            step="line_search",
            epsilon=self.epsilon,
            start=start_at(self.start, self.budget, sample.m, self.seed, state.runs),
        )
        used = found.shares > 0
        state.fixed = np.stack((found.slopes[used], found.offsets[used]), axis=1)
        state.shares = found.shares[used]

    def replay(self, sequence: Sequence) -> Run:
        batch, rows = sequence.batch.ready(), sequence.rows
        state = self.init(batch.m)
        running = Replay(
            "replay of OnlineFrankWolfe",
            self.plan_of(state),
            batch,
            checkpoints=sequence.checkpoints,
            keep=sequence.keep,
            state=state,
            look=sequence.look,
        )
        # Compile, or load from disk, outside the clock.
        running.feed(NO_ROWS)
        self.run_again(self.init(batch.m), batch, rows[:1])
        started = time.perf_counter()
        drawn = draws(self.seed, 0, of_rows(batch.eta, sequence.order))
        while state.drawn < len(rows):
            start, stop = state.drawn, min(int(state.due), len(rows))
            running.plan = self.plan_of(state)
            running.feed(rows[start:stop], picked(state.shares, drawn[start:stop]))
            state.drawn = stop
            if self.is_due(state):
                oldest = 0 if self.history is None else max(0, stop - self.history)
                self.run_again(state, batch, rows[oldest:stop])
            if sequence.progress is not None:
                sequence.progress(stop - start)
        return running.result(time.perf_counter() - started)


class OnlineFrankWolfeEngine(MixtureEngine):
    """Single steps, which keep each counted row and run Frank-Wolfe when it is due."""

    policy: OnlineFrankWolfe
    state: OnlineFrankWolfeState

    def decide(self, eta: Row, pick: int | None = None, spec: Spec | None = None) -> NDArray[Any]:
        fixed = self.state.fixed  # another thread may put a new mixture in its place
        drawn = self.policy.pick(self.state, eta) if pick is None else pick
        by = self._spec._replace(objective=Fixed(fixed)) if spec is None else spec
        return super().decide(eta, min(drawn, len(fixed) - 1), by)

    def learn(
        self,
        eta: Row | None,
        y: NDArray[Any] | Partly | None,
        prediction: NDArray[Any],
        weight: float,
        *,
        late: bool = False,
    ) -> None:
        super().learn(eta, y, prediction, weight, late=late)
        state, limit = self.state, self.policy.history
        if late and state.labels is not None:
            return  # kept when it was decided
        assert eta is not None  # its policy says that it needs it,
        assert not isinstance(y, Partly)  # and takes no such rows
        if state.kept is None:
            state.kept = Kept(state.m, thin=isinstance(eta, tuple))
        if y is None:
            true = np.empty(0, dtype=np.int32)
        else:
            true = y if isinstance(eta, tuple) else np.flatnonzero(y).astype(np.int32)
        state.kept.append(eta, true, weight)
        if limit is not None:
            state.kept.forget(limit)
        if self.policy.is_due(state):
            self.policy.run_again(state, *state.kept.sample(limit))

"""Online Frank-Wolfe: the offline algorithm, rerun on all rows so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from omma._validate import check_choice, check_number, check_positive_int, check_seed
from omma.engine import Stretch
from omma.metrics import Metric
from omma.policies.base import MetricPolicy
from omma.policies.frank_wolfe import STARTS, check_metric, maximize, rule_counter, start_at
from omma.policies.mixture import (
    DrawsRules,
    MixtureEngine,
    MixtureState,
    Vector,
    fingerprints,
)
from omma.rows.arrays import NO_IDS, NO_NUMBERS, Rows, SparseProbabilities, csr
from omma.rows.batch import Batch
from omma.rows.labels import TrueLabels
from omma.rows.row import PartlyKnown, Row, SparseRow
from omma.state import Shapes
from omma.state_parts import check_array

# Kept rows in a file: CSR matrices of probabilities and of true labels, and weights.
KEPT = (
    "kept_values",
    "kept_indices",
    "kept_ends",
    "kept_true",
    "kept_true_ends",
    "kept_weights",
)


class OnlineFrankWolfeState(MixtureState):
    """The present mixture, the row at which the next run is due, and the rows kept for it."""

    mixture = (np.empty((0, 2, 0)), np.ones(1))  # rules and shares, replaced at once for threads
    runs = 0
    due = 0.0
    history: RowHistory

    def arrays(self) -> dict[str, NDArray[Any]]:
        rules, shares = self.mixture
        return {
            **super().arrays(),
            "fixed": rules,
            "shares": shares,
            "schedule": np.array([self.runs, self.due]),
            **self.history.arrays(),
        }

    def shapes(self) -> Shapes:
        return {**super().shapes(), **dict.fromkeys(("fixed", "shares", *KEPT))}

    def check(self, arrays: dict[str, NDArray[Any]]) -> None:
        # Kernels do not check their input, and a file may be damaged.
        shares = arrays.get("shares")
        rules = len(shares) if isinstance(shares, np.ndarray) and shares.ndim == 1 else 1
        check_array("shares", shares, (max(rules, 1),), signed=False)
        check_array("fixed", arrays.get("fixed"), (rules, 2, self.m))
        super().check(arrays)
        runs = float(arrays["schedule"][0])
        if not runs.is_integer() or runs > arrays["rows"]:
            raise ValueError(
                f"schedule of a state must have a whole number of runs, at most one for each of "
                f"its {int(arrays['rows'])} rows, got {runs:g}"
            )

    def take_own(self, arrays: dict[str, NDArray[Any]]) -> None:
        super().take_own(arrays)
        rules, shares = (np.array(arrays[name], dtype=float) for name in ("fixed", "shares"))
        self.mixture = rules, shares
        self.runs, self.due = int(arrays["schedule"][0]), float(arrays["schedule"][1])
        self.history = RowHistory.from_arrays(self.m, arrays)


@dataclass(frozen=True, repr=False)
class OnlineFrankWolfe(DrawsRules, MetricPolicy):
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
        With a budget that matters: the labels that fill up the budget then change with every run,
        which costs precision.
    first, growth : float
        The next run comes ``first * growth**i`` rows after the last.
    max_iter, tolerance
        As of ``omma.FrankWolfe``, for each run.
    history : int, optional
        Use only this number of latest rows in each run.
    seed : int
        Seed of the draws and of random starts.

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
        owner = self.owner
        check_metric(owner, self.objective)
        check_choice(owner, "start", self.start, STARTS)
        self._set(
            first=check_number(owner, "first", self.first, low=1.0),
            growth=check_number(owner, "growth", self.growth, low=1.0),
            max_iter=check_positive_int(owner, "max_iter", self.max_iter),
            tolerance=check_number(owner, "tolerance", self.tolerance, low=0.0),
            history=check_positive_int(owner, "history", self.history, optional=True),
            seed=check_seed(owner, self.seed),
        )

    @property
    def needs_eta(self) -> bool:
        return True

    def whole_rows(self, metric: Metric | None) -> str | None:
        return f" for {self.owner}"  # which keeps rows, and not which labels are unknown

    def init(self, m: int) -> OnlineFrankWolfeState:
        self.check_labels(m)
        state = OnlineFrankWolfeState(m, ["cells", "labels_cells"] if self.soft else ["cells"])
        state.mixture = start_at("top", self.budget, m, self.seed)[np.newaxis], np.ones(1)
        state.due = float(self.first)
        state.history = RowHistory(m)
        return state

    def mixture_of(self, state: OnlineFrankWolfeState) -> tuple[Vector, Vector]:
        return state.mixture

    def engine(self, state: Any) -> OnlineFrankWolfeEngine:
        return OnlineFrankWolfeEngine(self, state)

    def is_due(self, state: OnlineFrankWolfeState) -> bool:
        """Whether Frank-Wolfe runs before the next row."""
        return state.drawn >= int(state.due)

    def run_again(self, state: OnlineFrankWolfeState, sample: Batch, rows: Rows) -> None:
        """Replace the mixture by the best one for some rows of a sample."""
        # Section 6 of the paper: runs after 10, 10·1.1, 10·1.1², … further rows.
        state.runs += 1
        state.due += self.first * self.growth**state.runs
        if sample.row_weights[rows].sum() == 0:
            return  # nothing that counts has come yet
        solution = maximize(
            self,
            rule_counter("OnlineFrankWolfe", sample, self.budget, soft=self.soft, rows=rows),
            start=start_at(self.start, self.budget, sample.m, self.seed, state.runs),
            max_iter=self.max_iter,
            tolerance=self.tolerance,
        )
        state.mixture = np.array([atom.weights for atom in solution.atoms]), solution.shares


class OnlineFrankWolfeEngine(MixtureEngine):
    """Runs Frank-Wolfe when it is due; single steps keep each counted row for that."""

    policy: OnlineFrankWolfe
    state: OnlineFrankWolfeState

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
        state, policy = self.state, self.policy
        if late and policy.soft:
            return  # kept when it was decided
        if y is None and not policy.soft:
            return  # a run on it would take it for a row without any label
        # ``needs_eta`` asks for probabilities, and ``whole_rows`` refuses partly labelled rows.
        assert eta is not None
        assert not isinstance(y, PartlyKnown)
        if not isinstance(eta, tuple):
            ids = np.flatnonzero(eta).astype(np.int32)
            eta, y = (ids, eta[ids]), None if y is None else np.flatnonzero(y).astype(np.int32)
        state.history.append(eta, NO_IDS if y is None else y, weight, policy.history)
        if policy.is_due(state):
            batch = state.history.batch()
            policy.run_again(state, batch, np.arange(batch.n, dtype=np.int64))

    def stretches(self, batch: Batch, order: Rows | None) -> Iterator[Stretch]:
        # A replay starts from a new state: rows of earlier sequences are not kept.
        policy, state = self.policy, self.state
        batch = batch.ready()
        rows = np.arange(batch.n, dtype=np.int64) if order is None else order
        # A run on one row compiles, or loads from disk, before the clock starts.
        policy.run_again(policy.init(batch.m), batch, rows[:1])
        prints = fingerprints(batch.eta, order)
        while state.drawn < len(rows):
            # All rows up to the next run are decided by one mixture.
            start, stop = state.drawn, min(int(state.due), len(rows))
            rules, shares = state.mixture
            self.bind(policy.plan_of(rules))
            yield start, stop, policy.picks(state, shares, prints[start:stop])
            state.drawn = stop
            if policy.is_due(state):
                oldest = 0 if policy.history is None else max(0, stop - policy.history)
                policy.run_again(state, batch, rows[oldest:stop])


class RowHistory:
    """Probabilities, true labels and weights of rows, all of them as sparse rows.

    A row is (label ids, probabilities, ids of true labels, weight).
    """

    def __init__(self, m: int) -> None:
        self.m = m
        self.rows: deque[tuple[NDArray[Any], NDArray[Any], NDArray[Any], float]] = deque()

    def append(
        self, eta: SparseRow, true: NDArray[np.int32], weight: float, limit: int | None = None
    ) -> None:
        """Keep one more row, and no more than ``limit`` of the latest."""
        self.rows.append((*eta, true, weight))
        # A loop, as a state from a file may have more rows than the policy keeps.
        while limit is not None and len(self.rows) > limit:
            self.rows.popleft()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All rows as plain arrays, for a file."""
        ids, values, true, weights = zip(*self.rows, strict=True) if self.rows else ((),) * 4
        lists = (
            np.concatenate([NO_NUMBERS, *values]),
            np.concatenate([NO_IDS, *ids]),
            np.cumsum([0, *map(len, ids)]),
            np.concatenate([NO_IDS, *true]),
            np.cumsum([0, *map(len, true)]),
            np.array(weights, dtype=np.float64),
        )
        return dict(zip(KEPT, lists, strict=True))

    @classmethod
    def from_arrays(cls, m: int, arrays: dict[str, NDArray[Any]]) -> RowHistory:
        """Rows from the arrays of a file, checked here because kernels do not check ids."""
        values, ids, ends, true, true_ends, weights = (arrays[name] for name in KEPT)
        check_array("kept_weights", weights, (len(weights),), signed=False)
        shape = (len(weights), m)
        eta = sparse.csr_array((values, ids, ends), shape)
        present = sparse.csr_array((np.ones(len(true)), true, true_ends), shape)
        for matrix in (eta, present):
            matrix.check_format()  # ids are those of labels, and ends rise
        history = cls(m)
        for i, weight in enumerate(weights.tolist()):
            row, labels = (slice(*matrix.indptr[i : i + 2]) for matrix in (eta, present))
            entries = eta.indices[row].astype(np.int32), eta.data[row].astype(np.float64)
            history.append(entries, present.indices[labels].astype(np.int32), weight)
        return history

    def batch(self) -> Batch:
        """All rows, for a run."""
        values, ids, ends, true, true_ends, weights = self.arrays().values()
        shape = (len(weights), self.m)
        present = csr((np.ones(len(true), dtype=np.int8), true, true_ends), shape)
        labels = TrueLabels("OnlineFrankWolfe", present, self.m)
        return Batch(SparseProbabilities(csr((values, ids, ends), shape)), labels, weights)

"""A suite: datasets, an estimator, policies and metrics, and the grid of runs that they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omma.comparison.entrants import TITLES
from omma.comparison.protocol import PRIORS
from omma_study.policies import has_prior, parts_of, supports

SEEDS = 5


@dataclass(frozen=True)
class Source:
    """Where the probabilities of a run come from.

    The ``task`` is "multilabel" or "multiclass": classes count as labels in the former. By the
    ``protocol`` "fixed" an estimator is fitted to the training part, and the test part is decided;
    "online", it learns along the sequence of both parts.
    """

    dataset: str
    task: str
    protocol: str
    estimator: Mapping[str, Any]  # its name and its options
    made: Mapping[str, Any] = field(default_factory=dict)  # how, where data are synthetic
    max_train: int | None = None  # fit to no more than so many rows of the training part

    @property
    def spec(self) -> dict[str, Any]:
        """As records name it; what is not used is left out."""
        given = {**vars(self), "estimator": dict(self.estimator), "made": dict(self.made)}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True)
class Run:
    """One policy, as ``omma.compare`` names it, on one sequence."""

    suite: str
    source: Source
    policy: str
    metric: str
    k: int | None
    prior: float | None  # λ, for policies that have one
    seed: int  # of the order of the rows
    options: Mapping[str, Any] = field(default_factory=dict)  # further ones, of the policy
    checkpoints: int = 50  # how often the running value is taken

    @property
    def spec(self) -> dict[str, Any]:
        """What its record is known by."""
        policy, feedback = parts_of(self.policy)
        found = {
            **self.source.spec,
            "policy": policy,
            "feedback": feedback,
            "metric": self.metric,
            "k": self.k,
            "prior": self.prior,
            "seed": self.seed,
        }
        return {**found, "options": dict(self.options)} if self.options else found

    @property
    def label(self) -> str:
        """How tables name the policy."""
        return TITLES[self.policy]


@dataclass(frozen=True)
class Suite:
    """What is run for one table or figure: policies by their names, on sources, for targets.

    A suite that has ``parts`` runs these, and has no runs of its own.

    >>> import omma_study as study
    >>> smoke = study.suite("smoke")
    >>> smoke.title
    'A small grid on made-up data, for a first try'
    >>> smoke.runs[0].label
    'Top-k / η̂ ≥ 0.5'
    """

    name: str
    title: str
    paper: str = ""  # which table or figure it follows
    sources: tuple[Source, ...] = ()  # one for each dataset and estimator
    policies: tuple[str, ...] = ()
    targets: tuple[tuple[str, int | None], ...] = ()  # metrics with their budgets
    priors: tuple[float, ...] = PRIORS  # the λ that are tried; records keep them all
    seeds: int = SEEDS  # how many sequences
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of policies
    checkpoints: int = 50
    parts: tuple[Suite, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of all datasets, each once."""
        every = [one.dataset for one in self.sources]
        every += [name for part in self.parts for name in part.datasets]
        return tuple(dict.fromkeys(every))

    @property
    def entrants(self) -> tuple[str, ...]:
        """Names of all policies, each once."""
        every = [*self.policies, *(name for part in self.parts for name in part.entrants)]
        return tuple(dict.fromkeys(every))

    @property
    def runs(self) -> list[Run]:
        """All runs; seeds come outermost, so that an early end leaves whole sequences."""
        found = [run for part in self.parts for run in part.runs]
        return found + [
            run
            for source in self.sources
            for seed in range(self.seeds)
            for run in self._sequence(source, seed)
        ]

    def _sequence(self, source: Source, seed: int) -> Iterator[Run]:
        for metric, k in self.targets:
            for policy in self.policies:
                if not supports(policy, metric, k):
                    continue
                for prior in self.priors if has_prior(policy) else (None,):
                    options = self.options.get(policy, {})
                    target = (policy, metric, k, prior, seed)
                    yield Run(self.name, source, *target, options, self.checkpoints)

    def limited(
        self,
        *,
        datasets: Sequence[str] | None = None,
        policies: Sequence[str] | None = None,
        seeds: int | None = None,
        priors: Sequence[float] | None = None,
    ) -> Suite:
        """The same suite with fewer datasets, policies, sequences or priors."""
        kept = [one for one in self.sources if datasets is None or one.dataset in datasets]
        fewer: dict[str, Any] = {"policies": policies, "seeds": seeds, "priors": priors}
        parts = [part.limited(datasets=datasets, **fewer) for part in self.parts]
        return replace(
            self,
            sources=tuple(kept),
            policies=tuple(one for one in self.policies if policies is None or one in policies),
            seeds=self.seeds if seeds is None else seeds,
            priors=self.priors if priors is None else tuple(priors),
            parts=tuple(parts),
        )

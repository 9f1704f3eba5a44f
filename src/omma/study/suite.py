"""A suite: datasets, an estimator, policies and metrics, to be run as a grid; read from TOML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omma.study.policies import has_prior, supports
from omma.study.run import Run, Source

PRIORS = (0.0, 1e-6, 1e-3, 0.1, 1.0)  # those of the paper
SEEDS = 5


@dataclass(frozen=True)
class Suite:
    """What is run for one table or figure.

    Attributes
    ----------
    name, title, paper : str
        ``paper`` says which table or figure it follows.
    sources : tuple of Source
        One for each dataset and estimator.
    policies : tuple of str
        As ``omma.compare`` names them.
    targets : tuple of (str, int or None)
        Metrics with their budgets.
    priors : tuple of float
        The λ that are tried; records keep them all.
    seeds : int
        How many sequences.
    options : dict of str to dict
        Further options of policies.
    checkpoints : int
        How often the running value is taken.
    parts : tuple of Suite
        Suites whose runs are these; such a suite has none of its own.

    Examples
    --------
    >>> from omma import study
    >>> smoke = study.suite("smoke")
    >>> smoke.title
    'A small grid on made-up data, for a first try'
    >>> smoke.runs[0].label
    'Top-k / η̂ ≥ 0.5'
    """

    name: str
    title: str
    paper: str = ""
    sources: tuple[Source, ...] = ()
    policies: tuple[str, ...] = ()
    targets: tuple[tuple[str, int | None], ...] = ()
    priors: tuple[float, ...] = PRIORS
    seeds: int = SEEDS
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    checkpoints: int = 50
    parts: tuple[Suite, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of all datasets, each once."""
        every = [one.dataset for one in self.sources]
        every += [name for part in self.parts for name in part.datasets]
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
                    yield Run(
                        self.name,
                        source,
                        policy,
                        metric,
                        k,
                        prior,
                        seed,
                        self.options.get(policy, {}),
                        self.checkpoints,
                    )

    def limited(
        self,
        *,
        datasets: Sequence[str] | None = None,
        seeds: int | None = None,
        priors: Sequence[float] | None = None,
    ) -> Suite:
        """The same suite on fewer datasets, sequences or priors."""
        return replace(
            self,
            sources=tuple(
                one for one in self.sources if datasets is None or one.dataset in datasets
            ),
            seeds=self.seeds if seeds is None else seeds,
            priors=self.priors if priors is None else tuple(priors),
            parts=tuple(
                part.limited(datasets=datasets, seeds=seeds, priors=priors) for part in self.parts
            ),
        )

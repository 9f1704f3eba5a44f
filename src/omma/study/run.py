"""One run of a study: what is decided, on which data, by which policy, measured by which metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omma.study.policies import label_of, parts_of


@dataclass(frozen=True)
class Source:
    """Where the probabilities of a run come from.

    Attributes
    ----------
    dataset : str
    task : str
        ``"multilabel"`` or ``"multiclass"``: classes count as labels in the former.
    protocol : str
        ``"fixed"``: fitted to the training part, decides the test part. ``"online"``: learns along
        the sequence of both parts.
    estimator : dict
        Its name and its options.
    made : dict
        How the data are made, where they are synthetic; else empty.
    max_train : int, optional
        Fit to no more than so many rows of the training part.
    """

    dataset: str
    task: str
    protocol: str
    estimator: Mapping[str, Any]
    made: Mapping[str, Any] = field(default_factory=dict)
    max_train: int | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """As records name it; what is not used is left out."""
        found: dict[str, Any] = {
            "dataset": self.dataset,
            "task": self.task,
            "protocol": self.protocol,
            "estimator": dict(self.estimator),
        }
        if self.made:
            found["made"] = dict(self.made)
        if self.max_train is not None:
            found["max_train"] = self.max_train
        return found


@dataclass(frozen=True)
class Run:
    """One policy on one sequence.

    Attributes
    ----------
    suite : str
        The suite it belongs to.
    source : Source
    policy : str
        As ``omma.compare`` names it: ``omma``, ``omma_eta``, ``offline_fw``...
    metric : str
    k, prior : optional
        The budget, and λ for policies that have one.
    seed : int
        Of the order of the rows.
    options : dict
        Further options of the policy.
    checkpoints : int
        How often the running value is taken.
    """

    suite: str
    source: Source
    policy: str
    metric: str
    k: int | None
    prior: float | None
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    checkpoints: int = 50

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
        return label_of(self.policy)

"""Forgetting: counts that fade, for a world that does not stay as it was."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omma._validate import check_number
from omma.policies.around import Around
from omma.policies.base import Policy
from omma.running.plan import Plan

HALF_LIFE = 10_000


@dataclass(frozen=True)
class Forgetting(Around):
    """A policy whose counts fade: after ``half_life`` rows a row counts for half of a new one.

    Counts that hold for ever follow a world that changes more and more slowly, and where labels
    become rare they may never recover. Here decisions look at the recent past: after many rows
    at half_life / ln 2 of them, 1.44 half-lives. What was decided is still judged by all rows:
    ``trace.counts`` and ``learner.counts`` do not fade. Counts, calibration and corrections fade
    alike, without a pass over labels that a row does not touch.

    A row of any weight is one row of the half-life. Rows that are not counted, as without labels
    where only labels are feedback, make nothing older.

    Parameters
    ----------
    policy : OMMA, Auto or OFO
        What decides.
    half_life : float
        After how many rows a row counts for half; at least 1. The page on drift says what the
        default costs where nothing changes, and what it saves where something does.

    Examples
    --------
    >>> import numpy as np, omma
    >>> rng = np.random.default_rng(0)
    >>> rates = np.repeat([0.4, 0.02], 3000)  # after 3000 rows the label becomes rare
    >>> eta = rng.beta(8 * rates, 8 * (1 - rates))
    >>> y = rng.random(6000) < eta
    >>> policy = omma.OMMA("f1")
    >>> plain, fading = (omma.replay(one, eta, y) for one in (policy, omma.Forgetting(policy, 200)))
    >>> plain.rule.thresholds.round(1), fading.rule.thresholds.round(1)
    (array([0.2]), array([0.1]))
    """

    policy: Policy
    half_life: float = HALF_LIFE

    def __post_init__(self) -> None:
        self.check_inside("whose counts can fade")
        check_number("Forgetting", "half_life", self.half_life, low=1.0)

    @property
    def growth(self) -> float:
        """By what the weight of a row grows from one to the next."""
        return float(2.0 ** (1.0 / self.half_life))

    def plan(self, m: int) -> Plan:
        return replace(self.policy.plan(m), growth=self.growth)

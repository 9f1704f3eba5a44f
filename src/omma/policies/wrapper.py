"""Wrappers for data that drifts: ``Forgetting`` decays counts, ``Window`` counts the last rows."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from omma._validate import check_number, check_positive_int, shown
from omma.metrics import Metric
from omma.plan import Plan
from omma.policies.base import Policy
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.rows.frames import Names

HALF_LIFE = ROWS = 10_000  # see the page on drift for their cost without drift and gain with it


def _delegated(name: str) -> Any:
    """A property that the wrapped policy has."""
    doc = "What is counted." if name == "feedback" else getattr(Policy, name).__doc__
    return property(lambda wrapper: getattr(wrapper.policy, name), doc=doc)


class PolicyWrapper(Policy):
    """A policy that decides as the one in its field ``policy`` does."""

    policy: Policy

    def check_wrapped(self, why: str) -> None:
        """Refuse a policy that keeps more than counts."""
        if not isinstance(self.policy, OMMA | OFO):
            raise TypeError(
                f"policy of {type(self).__name__} must be an OMMA, Auto or OFO, {why}, got "
                f"{shown(self.policy)}"
            )

    feedback = _delegated("feedback")
    names = _delegated("names")
    objective = _delegated("objective")
    needs_labels = _delegated("needs_labels")
    needs_eta = _delegated("needs_eta")
    budget = _delegated("budget")
    limits = _delegated("limits")
    check_labels = _delegated("check_labels")
    whole_rows = _delegated("whole_rows")

    def for_names(self, names: Names | None) -> Any:
        policy = self.policy.for_names(names)
        # The same wrapper has its plan ready, another would make it again.
        return self if policy is self.policy else replace(self, policy=policy)  # type: ignore[type-var]


@dataclass(frozen=True)
class Forgetting(PolicyWrapper):
    """A policy whose counts decay: after ``half_life`` rows a row counts for half of a new one.

    Counts over all rows follow drift more and more slowly, and may never recover where labels
    become rare. With decay, decisions look at the recent past: in the long run at half_life / ln 2
    rows, 1.44 half-lives. Decisions are still judged by all rows: ``trace.counts`` and
    ``learner.counts`` do not decay. Counts, calibration and corrections decay alike, without a pass
    over labels that a row does not touch.

    A row of any weight is one row of the half-life. Rows that are not counted, such as rows without
    labels where only labels are feedback, do not age the others.

    Parameters
    ----------
    policy : OMMA, Auto or OFO
        The policy that decides.
    half_life : float
        Number of rows after which a row counts for half; at least 1. The page on drift shows what
        the default costs without drift, and what it gains with drift.

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
        self.check_wrapped("whose counts can decay")
        check_number("Forgetting", "half_life", self.half_life, low=1.0)

    @property
    def growth(self) -> float:
        """The factor by which the weight of each row exceeds that of the row before it."""
        # Shrinking old counts would touch all labels at each row: new rows weigh more instead.
        return float(2.0 ** (1.0 / self.half_life))

    def plan(self, m: int) -> Plan:
        return replace(self.policy.plan(m), growth=self.growth)


@dataclass(frozen=True)
class Window(PolicyWrapper):
    """A policy whose decisions look at the last ``rows`` rows only (a sliding window).

    ``omma.Forgetting`` decays all rows; here a row counts in full, and then not at all. So after a
    sudden change the past is gone after ``rows`` rows. That takes memory, as the counts of each row
    are kept to be subtracted later: 24 bytes a row, 4 for each label predicted or true, and, where
    probabilities are counted, 12 for each one above zero; up to twice as much is allocated. A row
    of 46 labels takes 40 to 80 bytes with ``OMMA("macro_f1")`` and 600 to 1,200 with ``Auto``.

    Decisions are still judged by all rows: ``trace.counts`` and ``learner.counts`` include them
    all. Late labels (by id) are counted when they come. Where probabilities are counted, these
    count from the decision on, and the labels from when they come, each for ``rows`` rows. Steps of
    calibration and prices of limits cannot be subtracted: they decay with a half-life of 0.35
    ``rows``, which looks at about as many rows of about the same age. States of windows cannot be
    added: the order of rows in two streams is unknown.

    Parameters
    ----------
    policy : OMMA, Auto or OFO
        The policy that decides.
    rows : int
        The length of the window. A row of any weight above zero is one row; rows that are not
        counted, such as rows without labels where only labels are feedback, are left out.

    Examples
    --------
    >>> import omma
    >>> eta, y = omma.datasets.long_tail(n=2000, m=20, seed=0)
    >>> trace = omma.replay(omma.Window(omma.OMMA("macro_f1"), rows=500), eta, y)
    >>> trace.state.rows, trace.counts.n  # what decisions look at, and what they are judged by
    (500.0, 2000.0)
    """

    policy: Policy
    rows: int = ROWS

    def __post_init__(self) -> None:
        self.check_wrapped("whose counts can be subtracted")
        self._set(rows=check_positive_int("Window", "rows", self.rows))

    def plan(self, m: int) -> Plan:
        # Steps of calibration and of prices cannot be subtracted. They decay by exp(-2 / rows) a
        # row: then their rows have the mean age of those in the window, rows / 2, and the same
        # effective number, rows.
        growth = float(np.exp(2.0 / self.rows))
        return replace(self.policy.plan(m), window=self.rows, growth=growth)

    def whole_rows(self, metric: Metric | None) -> str | None:
        # To subtract a row, its unknown labels would have to be kept beside its known ones.
        if self.feedback == "labels":
            return " for a Window that counts nothing but labels"
        return self.policy.whole_rows(metric)

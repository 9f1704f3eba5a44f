"""Wrappers that change which rows the counts of a policy are of: all, with decay, or the last.

``Forgetting`` is for data that drifts; with a ``Window`` decisions look at the last rows, and at no
others.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from omma._validate import check_number, check_positive_int, shown
from omma.metrics import Metric
from omma.plan import Plan
from omma.policies.auto import Auto
from omma.policies.base import Policy
from omma.policies.ofo import OFO
from omma.policies.omma import OMMA
from omma.rows.frames import Names

HALF_LIFE = ROWS = 10_000  # the page on drift has what these cost and save


def _delegated(name: str) -> Any:
    """A property that the wrapped policy has."""
    doc = "What is counted." if name == "feedback" else getattr(Policy, name).__doc__
    return property(lambda wrapper: getattr(wrapper.policy, name), doc=doc)


class PolicyWrapper(Policy):
    """A policy that decides as the one inside does, which is a field ``policy``."""

    policy: Policy

    def check_wrapped(self, why: str) -> None:
        """Refuse a policy that keeps more than counts."""
        if not isinstance(self.policy, OMMA | Auto | OFO):
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

    def for_names(self, names: Names | None) -> Any:
        return replace(self, policy=self.policy.for_names(names))  # type: ignore[type-var]

    def check_labels(self, m: int) -> None:
        self.policy.check_labels(m)

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON describes it: the one inside, and the options of this one."""
        options = [option.name for option in fields(self) if option.name != "policy"]  # type: ignore[arg-type]
        own = {name: getattr(self, name) for name in options}
        return {"policy": type(self).__name__, "of": self.policy.to_json(), **own}

    def whole_rows(self, metric: Metric | None) -> str | None:
        return self.policy.whole_rows(metric)


@dataclass(frozen=True)
class Forgetting(PolicyWrapper):
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
        self.check_wrapped("whose counts can fade")
        check_number("Forgetting", "half_life", self.half_life, low=1.0)

    @property
    def growth(self) -> float:
        """By what the weight of a row grows from one to the next."""
        # Counts do not shrink, which would touch all labels at each row: new rows weigh more.
        return float(2.0 ** (1.0 / self.half_life))

    def plan(self, m: int) -> Plan:
        return replace(self.policy.plan(m), growth=self.growth)


@dataclass(frozen=True)
class Window(PolicyWrapper):
    """A policy that decides by the last ``rows`` rows: what a row added is taken off again.

    Where ``omma.Forgetting`` lets all rows fade, here a row counts in full, and then not at all. So
    after a sudden change the past is gone for certain after so many rows; the price is memory, as
    what each row added has to be kept: 24 bytes a row, 4 for each label predicted or true, and,
    where probabilities are counted, 12 for each one above zero; there is room for up to twice as
    much. A row of 46 labels takes 40 to 80 bytes with ``OMMA("macro_f1")`` and 600 to 1,200 with
    ``Auto``.

    What was decided is still judged by all rows: ``trace.counts`` and ``learner.counts`` are of
    those. Labels that come late, by id, are counted when they come where only labels are feedback;
    where probabilities are, these count from the decision and the labels from when they come, each
    for as many rows. Steps of calibration and prices of limits cannot be taken back: they fade,
    with a half-life of 0.35 ``rows``, so that they look at rows that are as old and as many on the
    whole. States of windows cannot be added: which rows are the last is not known of two streams.

    Parameters
    ----------
    policy : OMMA, Auto or OFO
        What decides.
    rows : int
        How many rows it looks at. A row of any weight above zero is one; rows that are not counted,
        as without labels where only labels are feedback, are none.

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
        self.check_wrapped("whose counts can be taken off")
        self._set(rows=check_positive_int("Window", "rows", self.rows))

    def plan(self, m: int) -> Plan:
        return replace(self.policy.plan(m), window=self.rows)

    def whole_rows(self, metric: Metric | None) -> str | None:
        # To take a row off again, its unknown labels would have to be kept beside its known ones.
        if self.feedback == "labels":
            return " for a Window that counts nothing but labels"
        return super().whole_rows(metric)

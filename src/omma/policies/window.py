"""Window: decisions that look at the last rows, and at no others."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omma._validate import check_positive_int
from omma.metrics import Metric
from omma.policies.around import Around
from omma.policies.base import Policy
from omma.running.plan import Plan

ROWS = 10_000


@dataclass(frozen=True)
class Window(Around):
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
        self.check_inside("whose counts can be taken off")
        object.__setattr__(self, "rows", check_positive_int("Window", "rows", self.rows))

    def plan(self, m: int) -> Plan:
        return replace(self.policy.plan(m), window=self.rows)

    def whole_rows(self, metric: Metric | None) -> str | None:
        if self.feedback == "labels":  # what a row lacked would have to be kept, too
            return " for a Window that counts nothing but labels"
        return super().whole_rows(metric)

"""The metric so far, at some rows of a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from omma.certificate import Gap, Look
from omma.counts import Counts
from omma.kernels.layout import POSITIVE, PREDICTED, TP
from omma.limits import Limit
from omma.metrics import Metric
from omma.state import in_proportion


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Counts after some rows as plain arrays: cells (places, 3, m), and how much rows weighed.

    ``missed`` is how much of that each label was unknown in.
    """

    cells: NDArray[np.float64]
    rows: NDArray[np.float64]
    missed: NDArray[np.float64] | None = None

    def __iter__(self) -> Iterator[Counts]:
        missed = [None] * len(self.rows) if self.missed is None else self.missed
        for kept, n, less in zip(self.cells, self.rows, missed, strict=True):
            cells = in_proportion(kept, float(n), less)
            yield Counts(cells[TP], cells[PREDICTED], cells[POSITIVE], float(n))


@dataclass(frozen=True)
class History:
    """The metric so far, at some rows of the sequence.

    ``rows`` are numbers of rows, ``values`` the metric over that many; it is worked out when it is
    first asked for.
    """

    rows: NDArray[np.int64]
    _counts: Iterable[Counts] = field(repr=False)
    _metric: Metric = field(repr=False)
    _looks: tuple[Look, ...] = field(default=(), repr=False)  # what a certificate saw at each
    _limits: tuple[Limit, ...] = field(default=(), repr=False)

    @cached_property
    def limits(self) -> dict[str, NDArray[np.float64]]:
        """The values of the policy's limits over the first ``rows[i]`` rows, by their texts.

        They are of true labels, and of rows where these are known; ``trace.limits`` has what is
        held, which may be estimates, and what is predicted in all rows.
        """
        every = list(self._counts) if self._limits else []
        return {
            str(one): np.array([one.value(counts) if counts.n > 0 else np.nan for counts in every])
            for one in self._limits
        }

    @cached_property
    def gaps(self) -> tuple[Gap | None, ...]:
        """What could still be gained after ``rows[i]`` rows; empty where it was not asked for."""
        pairs = zip(self._looks, self.values, strict=False)  # the last look is after all rows
        return tuple(look(float(value)) for look, value in pairs)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The metric over the first ``rows[i]`` rows; NaN where their weight is zero."""
        return np.array(
            [self._metric.value(counts) if counts.n > 0 else np.nan for counts in self._counts]
        )

    def __len__(self) -> int:
        return len(self.rows)

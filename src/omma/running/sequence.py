"""What a policy runs over: rows in an order, and where to look at the counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omma._pool import Progress
from omma.rows.arrays import Probabilities, Rows
from omma.rows.batch import Batch
from omma.rows.labels import Ids
from omma.running.empty import NO_ROWS
from omma.running.truth import labels_of


@dataclass(frozen=True)
class Sequence:
    """What a policy is to run over.

    ``order`` says in which order the rows come (None is theirs), ``checkpoints`` after how many
    rows to keep the counts, ``keep`` whether to keep predictions; ``progress`` hears of rows done.
    """

    batch: Batch
    order: Rows | None = None
    checkpoints: NDArray[np.int64] = field(default_factory=lambda: NO_ROWS)
    keep: bool = True
    progress: Progress | None = None

    @property
    def eta(self) -> Probabilities:
        """The probabilities of the batch."""
        return self.batch.eta

    @property
    def weights(self) -> NDArray[Any]:
        """The weights of the batch."""
        return self.batch.weights

    def true(self, rows: Rows) -> Any:
        """The true labels of some rows, as kernels read them."""
        return labels_of(self.batch.labels, rows, listed=self.batch.thin)

    def unknown(self, rows: Rows) -> Ids | None:
        """Which labels are unknown in rows that are labelled in part."""
        return None if self.batch.labels is None else self.batch.labels.unknown_of(rows)

    def pieces(self, rows: Rows, start: int) -> Iterator[Rows]:
        """Rows that come one after another; to each checkpoint, where labels are known in part."""
        if self.batch.labels is None or self.batch.labels.missing is None:
            yield rows
            return
        places = self.checkpoints - start
        yield from np.split(rows, places[(places > 0) & (places < len(rows))])
